//! Files of an image.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

/// Largest file that is read, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Largest marker of a runtime volume, in bytes: a SHA-256 in hex, and a line feed.
const LARGEST_MARKER: usize = 65;

/// The root directory of an image.
pub(super) struct Root(OwnedFd);

impl Root {
    pub(super) fn open() -> io::Result<Self> {
        Self::open_at("/")
    }

    pub(super) fn open_at(path: impl rustix::path::Arg) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// The content of an ordinary file, `None` when there is none. Links are
    /// followed inside the root only (images link `/etc/passwd` to elsewhere
    /// in the image), and never into another file system such as `/proc`.
    ///
    /// # Errors
    ///
    /// When it is something else, too large, or unreadable.
    pub(super) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let error = |what: String| format!("{path} {what}");
        let found = match self.resolve(path, OFlags::PATH) {
            Ok(found) => found,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(error(format!("cannot be reached: {errno}"))),
        };
        let stat = rustix::fs::fstat(&found).map_err(|errno| error(errno.to_string()))?;
        // A look first: opening a device or a pipe can do anything.
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(error("is no ordinary file".into()));
        }
        if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > LARGEST {
            return Err(error(format!("is larger than {LARGEST} bytes")));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .resolve(path, flags)
            .map_err(|errno| error(format!("cannot be opened: {errno}")))?;
        read_bounded(&file, LARGEST)
            .map(Some)
            .map_err(|errno| error(format!("cannot be read: {errno}")))
    }

    /// Whether there is an ordinary file that anybody may execute.
    pub(super) fn is_executable(&self, path: &str) -> bool {
        let found = self.resolve(path, OFlags::PATH);
        let stat = found.and_then(rustix::fs::fstat);
        stat.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && stat.st_mode & 0o111 != 0
        })
    }

    fn resolve(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        match rustix::fs::openat2(&self.0, path, flags, Mode::empty(), how) {
            // Kernels before 5.6, and system call filters that do not know
            // it: then without links, which is stricter.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                super::paths::walk(self, path.as_bytes(), flags)
            }
            result => result,
        }
    }
}

/// Content of the runtime volume's marker file, empty when it has none.
pub(crate) fn marker(runtime_dir: &[u8]) -> String {
    let path = [runtime_dir, b"/", stockade_wire::MARKER.as_bytes()].concat();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
    let mut buffer = [0; LARGEST_MARKER];
    let read = opened.and_then(|file| rustix::io::read(file, &mut buffer));
    let content = read.ok().and_then(|read| buffer.get(..read));
    String::from_utf8_lossy(content.unwrap_or_default())
        .trim()
        .to_owned()
}

fn read_bounded(file: &OwnedFd, bound: u64) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut content = Vec::new();
    let mut file = std::fs::File::from(file.try_clone()?).take(bound + 1);
    file.read_to_end(&mut content)?;
    if content.len() as u64 > bound {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn image() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("etc")).unwrap();
        let root = Root::open_at(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn a_link_is_followed_inside_the_image_and_never_out_of_it() {
        let (folder, root) = image();
        std::fs::write(folder.path().join("real"), "content").unwrap();
        symlink("/real", folder.path().join("etc/absolute")).unwrap();
        symlink("../../../../../real", folder.path().join("etc/climbing")).unwrap();
        symlink("/proc/self/environ", folder.path().join("etc/out")).unwrap();
        for name in ["/etc/absolute", "/etc/climbing"] {
            assert_eq!(root.read(name), Ok(Some(b"content".to_vec())), "{name}");
        }
        assert_eq!(root.read("/etc/out"), Ok(None));
        assert_eq!(root.read("/etc/absent"), Ok(None));
    }

    #[test]
    fn what_is_no_ordinary_file_is_refused_without_being_opened() {
        let (folder, root) = image();
        let pipe = folder.path().join("etc/pipe");
        let name = rustix::fs::CWD;
        rustix::fs::mknodat(name, &pipe, FileType::Fifo, Mode::from(0o644), 0).unwrap();
        assert!(
            root.read("/etc/pipe")
                .unwrap_err()
                .contains("no ordinary file")
        );
        assert!(root.read("/etc").unwrap_err().contains("no ordinary file"));
    }

    #[test]
    fn a_file_over_the_bound_is_refused() {
        let (folder, root) = image();
        let file = std::fs::File::create(folder.path().join("etc/large")).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        assert!(root.read("/etc/large").unwrap_err().contains("larger than"));
        file.set_len(LARGEST).unwrap();
        assert_eq!(
            root.read("/etc/large").unwrap().unwrap().len() as u64,
            LARGEST
        );
    }

    #[test]
    fn only_an_ordinary_file_that_may_be_executed_is_executable() {
        let (folder, root) = image();
        let file = folder.path().join("sh");
        std::fs::write(&file, "").unwrap();
        assert!(!root.is_executable("/sh"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink("sh", folder.path().join("link")).unwrap();
        assert!(root.is_executable("/sh"));
        assert!(root.is_executable("/link"));
        assert!(!root.is_executable("/etc"));
        assert!(!root.is_executable("/absent"));
    }
}
