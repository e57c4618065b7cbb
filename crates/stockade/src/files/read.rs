//! What is read.

use std::collections::BTreeSet;

use super::{FileContent, FileStat, GuestPath};
use crate::limits::TransferLimits;
use crate::refusal::{FileRefusal, Refusal};

/// One file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct FileRead {
    path: GuestPath,
    max_bytes: Option<u64>,
}

/// Files to be read in one operation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ReadRequest {
    files: Vec<FileRead>,
}

/// A request as a backend gets it: each file with its own limit, none twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    files: Vec<(GuestPath, u64)>,
    max_total_bytes: u64,
}

/// A file that was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadFile {
    /// Where it was.
    pub path: GuestPath,
    /// What it was when it was read.
    pub stat: FileStat,
    /// Its content, whole.
    pub content: FileContent,
}

impl FileRead {
    /// A file, of at most the bytes that the spec allows.
    pub const fn new(path: GuestPath) -> Self {
        Self {
            path,
            max_bytes: None,
        }
    }

    /// Lowers the limit for this file; what the spec allows is not raised.
    pub const fn max_bytes(mut self, most: u64) -> Self {
        self.max_bytes = Some(most);
        self
    }
}

impl ReadRequest {
    /// These files.
    pub fn new(files: impl IntoIterator<Item = FileRead>) -> Self {
        Self {
            files: files.into_iter().collect(),
        }
    }

    /// Files of these paths.
    pub fn of(paths: impl IntoIterator<Item = GuestPath>) -> Self {
        Self::new(paths.into_iter().map(FileRead::new))
    }
}

impl Download {
    pub(super) fn prepare(request: ReadRequest, limits: &TransferLimits) -> Result<Self, Refusal> {
        let count = request.files.len() as u64;
        if count > limits.max_files {
            let most = limits.max_files;
            let last = request.files.last().map(|file| file.path.clone());
            let last = last.unwrap_or_default();
            return Err(last.refused(FileRefusal::TooManyFiles { count, most }));
        }
        let mut paths = BTreeSet::new();
        for file in &request.files {
            if file.path.is_work_dir() {
                return Err(file.path.refused(FileRefusal::IsDirectory));
            }
            if !paths.insert(&file.path) {
                return Err(file.path.refused(FileRefusal::Duplicate));
            }
        }
        let most = limits.max_bytes_per_file;
        let files = request.files.into_iter().map(|file| {
            let limit = file.max_bytes.map_or(most, |own| own.min(most));
            (file.path, limit)
        });
        Ok(Self {
            files: files.collect(),
            max_total_bytes: limits.max_total_bytes,
        })
    }

    /// The files, each with the most bytes that it may have.
    #[must_use]
    pub fn files(&self) -> &[(GuestPath, u64)] {
        &self.files
    }

    /// Most bytes of all files.
    #[must_use]
    pub const fn max_total_bytes(&self) -> u64 {
        self.max_total_bytes
    }

    /// Checks sizes before any body is read: one for each file, in order.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] with [`FileRefusal::TooLarge`] or
    /// [`FileRefusal::BatchTooLarge`].
    pub fn check_sizes(&self, sizes: impl IntoIterator<Item = u64>) -> Result<(), Refusal> {
        let mut total = 0_u64;
        for ((path, most), size) in self.files.iter().zip(sizes) {
            if size > *most {
                return Err(path.refused(FileRefusal::TooLarge { size, most: *most }));
            }
            total = total.saturating_add(size);
            if total > self.max_total_bytes {
                return Err(path.refused(FileRefusal::BatchTooLarge {
                    size: total,
                    most: self.max_total_bytes,
                }));
            }
        }
        Ok(())
    }
}

impl ReadFile {
    /// A file that was read.
    #[must_use]
    pub const fn new(path: GuestPath, stat: FileStat, content: FileContent) -> Self {
        Self {
            path,
            stat,
            content,
        }
    }
}
