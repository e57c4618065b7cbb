//! The file operations of a handle: what is the same for every backend.

use bytes::Bytes;

use super::{
    Content, Download, FileRead, FileStat, FileWrite, GuestPath, ListRequest, Listing, ReadFile,
    ReadRequest, Upload,
};
use crate::call::{Call, Phase};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::instance::Sandbox;
use crate::refusal::Refusal;

impl Sandbox {
    /// A path relative to the work directory, or absolute at or below it.
    ///
    /// # Errors
    ///
    /// As of [`GuestPath::resolve`].
    pub fn path(&self, path: impl AsRef<[u8]>) -> Result<GuestPath, Refusal> {
        GuestPath::resolve(self.instance().spec().work_dir(), path)
    }

    /// Writes one file of mode 0644; see [`Sandbox::write_files`].
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::write_files`], and the refusal of a path that is none.
    ///
    /// Cancel safety: as of [`Sandbox::write_files`].
    pub async fn write_file(
        &self,
        call: &Call,
        path: impl AsRef<[u8]>,
        content: impl Into<Content>,
    ) -> Result<()> {
        let path = self.parsed(Operation::WriteFiles, path)?;
        let file = FileWrite::new(path, content);
        self.write_files(call, vec![file]).await
    }

    /// Writes a batch of files and directories.
    ///
    /// The batch is checked whole, and sources are read to their ends, before
    /// anything moves. Directories are made as needed; a file is replaced; a
    /// link or a directory in the place of a file is refused. An empty batch
    /// does nothing.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Refused`], [`ErrorKind::NotFound`] and
    ///   [`ErrorKind::LimitExceeded`] with a [`Refusal::File`]. Unless
    ///   [`Error::arrived`] says otherwise, nothing was written.
    /// - [`ErrorKind::TimedOut`] and [`ErrorKind::Cancelled`] when the call
    ///   must end; what has arrived by then is in [`Error::arrived`].
    /// - [`ErrorKind::Lost`] and [`ErrorKind::Unavailable`] as of
    ///   [`Sandbox::spawn`].
    ///
    /// Cancel safety: not safe; each file may be there or not, none in part
    /// once the sandbox answers again.
    pub async fn write_files(&self, call: &Call, files: Vec<FileWrite>) -> Result<()> {
        let operation = Operation::WriteFiles;
        let _phase = begin(operation, call)?;
        let spec = self.instance().spec();
        let prepared = Upload::prepare(files, spec.files_in());
        // A source that never gives anything must not outlast the call.
        let upload = match call.bound(prepared).await {
            Ok(upload) => upload?,
            Err(why) => return Err(Error::interrupted(operation, why).into()),
        };
        if upload.entries().is_empty() {
            return Ok(());
        }
        self.instance().write_files(call, upload).await
    }

    /// Reads one file into memory.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::read_files`], and the refusal of a path that is none.
    ///
    /// Cancel safety: safe.
    pub async fn read_file(&self, call: &Call, path: impl AsRef<[u8]>) -> Result<Bytes> {
        let path = self.parsed(Operation::ReadFiles, path)?;
        let request = ReadRequest::new([FileRead::new(path)]);
        let files = self.read_files(call, request).await?;
        let Some(file) = files.first() else {
            return Err(Error::new(ErrorKind::Internal, Operation::ReadFiles).build());
        };
        file.content.to_bytes().await.map_err(|error| {
            Error::new(ErrorKind::Unavailable, Operation::ReadFiles)
                .message(format!(
                    "content set aside in the host's temporary directory cannot be read: {error}"
                ))
                .source(error)
                .build()
        })
    }

    /// Reads files, in the order in which they were asked for.
    ///
    /// Sizes are checked before any body is read; a file over a limit is
    /// refused, never cut. All of it is set aside on the host (memory up to
    /// 1 MiB, then an unnamed temporary file) before the answer, so that
    /// nothing in the sandbox waits for the caller.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::write_files`]; a file that is missing is
    /// [`ErrorKind::NotFound`].
    ///
    /// Cancel safety: safe.
    pub async fn read_files(&self, call: &Call, request: ReadRequest) -> Result<Vec<ReadFile>> {
        let _phase = begin(Operation::ReadFiles, call)?;
        let limits = self.instance().spec().files_out();
        let download = Download::prepare(request, limits)
            .map_err(|refusal| Error::refused(Operation::ReadFiles, refusal))?;
        if download.files().is_empty() {
            return Ok(Vec::new());
        }
        self.instance().read_files(call, download).await
    }

    /// What is at a path; nothing when there is nothing. A link is named as
    /// a link.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::write_files`].
    ///
    /// Cancel safety: safe.
    pub async fn stat(&self, call: &Call, path: impl AsRef<[u8]>) -> Result<Option<FileStat>> {
        let path = self.parsed(Operation::Stat, path)?;
        let _phase = begin(Operation::Stat, call)?;
        self.instance().stat(call, &path).await
    }

    /// What a directory holds; links are named as links.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::write_files`].
    ///
    /// Cancel safety: safe.
    pub async fn list_dir(&self, call: &Call, request: ListRequest) -> Result<Listing> {
        let _phase = begin(Operation::ListDir, call)?;
        self.instance().list_dir(call, &request).await
    }

    /// Removes what is at a path. Nothing there is success; a link is removed
    /// and never followed; any directory, even an empty one, needs `recursive`.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::write_files`].
    ///
    /// Cancel safety: not safe; a part of a tree may be gone.
    pub async fn remove(&self, call: &Call, path: impl AsRef<[u8]>, recursive: bool) -> Result<()> {
        let path = self.parsed(Operation::Remove, path)?;
        let _phase = begin(Operation::Remove, call)?;
        self.instance().remove(call, &path, recursive).await
    }

    /// Removes a directory that the host made for itself, with all that is in
    /// it, and makes sure that it is gone. Nothing there is success.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::write_files`].
    ///
    /// Cancel safety: not safe; a part of it may be gone.
    pub async fn reclaim(&self, call: &Call, path: impl AsRef<[u8]>) -> Result<()> {
        let path = self.parsed(Operation::Reclaim, path)?;
        let _phase = begin(Operation::Reclaim, call)?;
        self.instance().reclaim(call, &path).await
    }

    fn parsed(&self, operation: Operation, path: impl AsRef<[u8]>) -> Result<GuestPath> {
        self.path(path)
            .map_err(|refusal| Error::refused(operation, refusal))
    }
}

/// Whether there is time at all.
fn begin(operation: Operation, call: &Call) -> Result<impl Drop> {
    match call.interruption() {
        Some(why) => Err(Error::interrupted(operation, why).into()),
        None => Ok(call.enter(Phase::Transfer)),
    }
}
