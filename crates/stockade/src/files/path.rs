//! Paths of files in a sandbox.

use std::ffi::OsStr;
use std::fmt;

use crate::refusal::{FileRefusal, Refusal};
use crate::spec::WorkDir;
use crate::text::excerpt_bytes;

/// Most bytes of one name. Linux: `NAME_MAX`.
const NAME: usize = 255;

/// Most bytes of a path. Linux: `PATH_MAX`, less the terminating NUL.
const PATH: usize = 4095;

/// Most names: each is a directory that is looked at before a file moves.
const DEPTH: usize = 64;

/// A path below the work directory, or the work directory itself (`.`).
///
/// A list of names, which are bytes: no empty name, `.` or `..`, no NUL, `/`
/// or backslash; at most 255 bytes a name, 4,095 bytes in all and 64 names.
/// Repeated and trailing slashes and `.` are dropped; `..` is refused, since
/// what it means depends on links that nobody can trust.
///
/// ```
/// use stockade::files::GuestPath;
///
/// let path = GuestPath::new("out//./plot.png")?;
/// assert_eq!(path.to_string(), "out/plot.png");
/// assert!(GuestPath::new("../etc/passwd").is_err());
/// # Ok::<(), stockade::Refusal>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GuestPath {
    /// The names, joined by slashes; empty for the work directory.
    joined: Vec<u8>,
}

impl GuestPath {
    /// The work directory.
    #[must_use]
    pub const fn work_dir() -> Self {
        Self { joined: Vec::new() }
    }

    /// A path relative to the work directory.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] with the rule that it breaks, in this order: empty,
    /// NUL, backslash, too long, absolute, `..`, a name that is too long, too
    /// many names.
    pub fn new(path: impl AsRef<[u8]>) -> Result<Self, Refusal> {
        let path = path.as_ref();
        let refuse = |why| Err(refused(path, why));
        check_bytes(path)?;
        if path[0] == b'/' {
            return refuse(FileRefusal::Absolute);
        }
        Self::of_names(path, path)
    }

    /// A path relative to the work directory, or absolute at or below it.
    ///
    /// # Errors
    ///
    /// As of [`GuestPath::new`], with [`FileRefusal::Outside`] instead of
    /// [`FileRefusal::Absolute`].
    pub fn resolve(work_dir: &WorkDir, path: impl AsRef<[u8]>) -> Result<Self, Refusal> {
        let path = path.as_ref();
        check_bytes(path)?;
        if path[0] != b'/' {
            return Self::of_names(path, path);
        }
        // Before the comparison: `/work/../etc` is outside by its `..`, and
        // `/work-outside` is not below `/work`.
        let mut names = names(path);
        let inside = work_dir.as_str()[1..]
            .split('/')
            .all(|wanted| names.next() == Some(wanted.as_bytes()));
        if path.split(|&byte| byte == b'/').any(|name| name == b"..") {
            return Err(refused(path, FileRefusal::Parent));
        }
        if !inside {
            return Err(refused(path, FileRefusal::Outside));
        }
        let rest: Vec<&[u8]> = names.collect();
        Self::of_names(path, &rest.join(&b'/'))
    }

    fn of_names(asked: &[u8], path: &[u8]) -> Result<Self, Refusal> {
        let mut joined = Vec::with_capacity(path.len());
        let mut depth = 0;
        for name in names(path) {
            if name == b".." {
                return Err(refused(asked, FileRefusal::Parent));
            }
            if name.len() > NAME {
                let bytes = name.len();
                return Err(refused(asked, FileRefusal::NameTooLong { bytes }));
            }
            depth += 1;
            if depth > DEPTH {
                return Err(refused(asked, FileRefusal::TooDeep { most: DEPTH }));
            }
            if !joined.is_empty() {
                joined.push(b'/');
            }
            joined.extend_from_slice(name);
        }
        Ok(Self { joined })
    }

    /// This path with another one below it.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] when the whole is too long or too deep.
    pub fn join(&self, below: &Self) -> Result<Self, Refusal> {
        match (self.is_work_dir(), below.is_work_dir()) {
            (true, _) => Ok(below.clone()),
            (_, true) => Ok(self.clone()),
            _ => Self::new([self.as_bytes(), below.as_bytes()].join(&b'/')),
        }
    }

    /// Whether it is the work directory itself.
    #[must_use]
    pub fn is_work_dir(&self) -> bool {
        self.joined.is_empty()
    }

    /// Its names, from the work directory downward; none for the work
    /// directory itself.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.joined
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty())
    }

    /// Its last name; none for the work directory.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        self.names().next_back()
    }

    /// The directory that it is in; none for the work directory.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_work_dir() {
            return None;
        }
        let end = self.joined.iter().rposition(|&byte| byte == b'/');
        Some(Self {
            joined: self.joined[..end.unwrap_or(0)].to_vec(),
        })
    }

    /// The directories between the work directory and it, outermost first;
    /// neither of the two ends.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        let ends = self.joined.iter().enumerate();
        ends.filter(|&(_, &byte)| byte == b'/')
            .map(|(end, _)| Self {
                joined: self.joined[..end].to_vec(),
            })
    }

    /// Whether it is below the other path; not of itself.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        !self.is_work_dir()
            && (other.is_work_dir()
                || self
                    .joined
                    .strip_prefix(other.joined.as_slice())
                    .is_some_and(|rest| rest.first() == Some(&b'/')))
    }

    /// The names joined by slashes; `.` for the work directory.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        if self.is_work_dir() {
            b"."
        } else {
            &self.joined
        }
    }

    /// The absolute path in a sandbox of this work directory.
    #[must_use]
    pub fn absolute(&self, work_dir: &WorkDir) -> Vec<u8> {
        let mut path = work_dir.as_str().as_bytes().to_vec();
        if !self.is_work_dir() {
            path.push(b'/');
            path.extend_from_slice(&self.joined);
        }
        path
    }

    /// The reason why this path was refused, as a refusal.
    #[must_use]
    pub fn refused(&self, why: FileRefusal) -> Refusal {
        refused(self.as_bytes(), why)
    }
}

/// Rules of the bytes, before the path is taken apart.
fn check_bytes(path: &[u8]) -> Result<(), Refusal> {
    let refuse = |why| Err(refused(path, why));
    if path.is_empty() {
        return refuse(FileRefusal::Empty);
    }
    if path.contains(&0) {
        return refuse(FileRefusal::Nul);
    }
    if path.contains(&b'\\') {
        return refuse(FileRefusal::Backslash);
    }
    if path.len() > PATH {
        return refuse(FileRefusal::TooLong { bytes: path.len() });
    }
    Ok(())
}

fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
}

fn refused(path: &[u8], why: FileRefusal) -> Refusal {
    Refusal::File {
        path: excerpt_bytes(path),
        why,
    }
}

/// Lossy where a name is not UTF-8, shortened, and without control characters.
impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&excerpt_bytes(self.as_bytes()))
    }
}

impl std::str::FromStr for GuestPath {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::new(text)
    }
}

impl TryFrom<&str> for GuestPath {
    type Error = Refusal;

    fn try_from(text: &str) -> Result<Self, Refusal> {
        Self::new(text)
    }
}

impl TryFrom<String> for GuestPath {
    type Error = Refusal;

    fn try_from(text: String) -> Result<Self, Refusal> {
        Self::new(text)
    }
}

impl TryFrom<&[u8]> for GuestPath {
    type Error = Refusal;

    fn try_from(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::new(bytes)
    }
}

impl TryFrom<&OsStr> for GuestPath {
    type Error = Refusal;

    fn try_from(text: &OsStr) -> Result<Self, Refusal> {
        Self::new(text.as_encoded_bytes())
    }
}

impl From<&Self> for GuestPath {
    fn from(path: &Self) -> Self {
        path.clone()
    }
}
