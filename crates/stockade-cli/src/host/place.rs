//! A place on the host, and what is in the way of a file there.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::unmet::Unmet;

/// A place below a folder that the user named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The user's folder; links in it are the user's own.
    pub(super) folder: PathBuf,
    /// Names below it, which may be the guest's; none is empty, `.` or `..`,
    /// and none is followed when it is a link.
    pub(super) names: Vec<OsString>,
}

impl Place {
    /// The place of these names below a folder.
    pub(crate) fn below<'a>(
        folder: &Path,
        names: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, String> {
        let names: Vec<OsString> = names
            .into_iter()
            .map(|name| OsString::from_vec(name.to_vec()))
            .collect();
        let unfit = |name: &OsString| {
            let bytes = name.as_bytes();
            bytes.is_empty()
                || bytes == b"."
                || bytes == b".."
                || bytes.contains(&b'/')
                || bytes.contains(&0)
        };
        if let Some(name) = names.iter().find(|name| unfit(name)) {
            return Err(format!("{name:?} is no name of a file"));
        }
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        Ok(Self {
            folder: folder.to_owned(),
            names,
        })
    }

    /// A place that the user named as a whole.
    pub(crate) fn named(path: &Path) -> Result<Self, String> {
        let Some(name) = path.file_name() else {
            return Err(format!(
                "`{}` names no file; give it a name",
                path.display()
            ));
        };
        Self::below(path.parent().unwrap_or(Path::new("")), [name.as_bytes()])
    }

    /// The whole path, for people and for comparing.
    pub(crate) fn path(&self) -> PathBuf {
        let folder = if self.folder == Path::new(".") {
            Path::new("")
        } else {
            &self.folder
        };
        self.names
            .iter()
            .fold(folder.to_owned(), |path, name| path.join(name))
    }

    /// What is wrong with landing a file here, as far as can be told before
    /// anything is made.
    pub(crate) fn obstacle(&self, overwrite: bool) -> Option<Unmet> {
        let Some((name, above)) = self.names.split_last() else {
            return Some(Unmet::host(
                &self.folder,
                "is_directory",
                format!("`{}` is a directory", self.folder.display()),
            ));
        };
        let directory = match self.existing(above) {
            Ok(Existing::Whole(directory)) => directory,
            Ok(Existing::Part(directory)) => return unwritable(&directory),
            Err(unmet) => return Some(unmet),
        };
        let path = directory.join(name);
        let kind = match path.symlink_metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return unwritable(&directory);
            }
            Err(error) => return Some(unreadable(&path, &error)),
        };
        let shown = self.path();
        let shown = shown.display();
        let (reason, text) = if kind.is_symlink() {
            return Some(link(&path));
        } else if kind.is_dir() {
            ("is_directory", format!("`{shown}` is a directory"))
        } else if !overwrite {
            (
                "exists",
                format!("`{shown}` exists; give --overwrite to replace it"),
            )
        } else if !kind.is_file() {
            (
                "not_regular",
                format!("`{shown}` is no regular file; remove it"),
            )
        } else {
            return unwritable(&directory);
        };
        Some(Unmet::host(&self.path(), reason, text))
    }

    /// What is wrong with landing files in a directory here.
    pub(crate) fn obstacle_to_directory(&self) -> Option<Unmet> {
        match self.existing(&self.names) {
            Ok(Existing::Whole(directory) | Existing::Part(directory)) => unwritable(&directory),
            Err(unmet) => Some(unmet),
        }
    }

    /// Goes down as far as there are directories.
    fn existing(&self, names: &[OsString]) -> Result<Existing, Unmet> {
        let mut above = self.folder.ancestors();
        let (folder, whole) = loop {
            let Some(folder) = above.next() else {
                return Ok(Existing::Part(PathBuf::from(".")));
            };
            // The last ancestor of a relative path is empty.
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            match folder.metadata() {
                Ok(metadata) if metadata.is_dir() => break (folder, folder == self.folder),
                Ok(_) => return Err(no_directory(folder)),
                // What is in the way is found above.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(unreadable(folder, &error)),
            }
        };
        if !whole {
            return Ok(Existing::Part(folder.to_owned()));
        }
        let mut path = folder.to_owned();
        for name in names {
            let below = path.join(name);
            match below.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err(link(&below)),
                Ok(metadata) if metadata.is_dir() => path = below,
                Ok(_) => return Err(no_directory(&below)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Existing::Part(path));
                }
                Err(error) => return Err(unreadable(&below, &error)),
            }
        }
        Ok(Existing::Whole(path))
    }
}

/// The deepest directory of a path that is there.
enum Existing {
    Whole(PathBuf),
    /// The rest is to be made in it.
    Part(PathBuf),
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Without the dot of the folder that a person is in.
fn plain(path: &Path) -> &Path {
    match path.strip_prefix(".") {
        Ok(rest) if !rest.as_os_str().is_empty() => rest,
        _ => path,
    }
}

fn link(path: &Path) -> Unmet {
    let path = plain(path);
    let text = format!(
        "`{}` is a link, and links are not followed; remove it",
        path.display()
    );
    Unmet::host(path, "link", text)
}

fn no_directory(path: &Path) -> Unmet {
    let path = plain(path);
    let text = format!("`{}` is no directory", path.display());
    Unmet::host(path, "not_directory", text)
}

fn unreadable(path: &Path, error: &io::Error) -> Unmet {
    let path = plain(path);
    let text = format!("`{}` cannot be looked at: {error}", path.display());
    Unmet::host(path, "unreadable", text)
}

/// Whether files can be made in a directory, as far as it tells.
fn unwritable(directory: &Path) -> Option<Unmet> {
    match access(directory, Access::WRITE_OK | Access::EXEC_OK) {
        Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::PERM)) => {
            let text = format!(
                "nothing can be written into `{}`: {}",
                directory.display(),
                io::Error::from(error)
            );
            Some(Unmet::host(directory, "unwritable", text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_of_the_guest_cannot_lead_out_of_the_folder() {
        for names in [
            &[b"..".as_slice()][..],
            &[b"a", b".."],
            &[b"."],
            &[b""],
            &[b"a/b"],
            &[b"a\0"],
        ] {
            assert!(Place::below(Path::new("out"), names.iter().copied()).is_err());
        }
        let bytes = Place::below(Path::new("out"), [b"\xff\n-".as_slice()]).unwrap();
        assert_eq!(bytes.path().as_os_str().as_bytes(), b"out/\xff\n-");
        assert!(Place::named(Path::new("x/..")).is_err());
        assert_eq!(Place::named(Path::new("x")).unwrap().path(), Path::new("x"));
        assert_eq!(
            Place::named(Path::new("../x")).unwrap().path(),
            Path::new("../x")
        );
    }

    #[test]
    fn a_folder_that_cannot_take_files_is_known_before_there_are_any() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::create_dir(at("real")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        let reason = |folder: &Path, names: &[&[u8]]| {
            let place = Place::below(folder, names.iter().copied()).unwrap();
            place
                .obstacle_to_directory()
                .map(|unmet| unmet.object()["reason"].clone())
        };
        assert_eq!(reason(&at("file"), &[]), Some("not_directory".into()));
        assert_eq!(reason(&at("file/below"), &[]), Some("not_directory".into()));
        assert_eq!(
            reason(folder.path(), &[b"file", b"x"]),
            Some("not_directory".into())
        );
        assert_eq!(reason(folder.path(), &[b"link"]), Some("link".into()));
        assert_eq!(reason(&at("link"), &[b"x"]), None, "the user's own link");
        assert_eq!(reason(&at("none/deep"), &[b"x"]), None);
        assert_eq!(reason(Path::new("none"), &[]), None);
    }
}
