//! What an image has at a path, without following a link at any level.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use stockade_wire::message::{PathFacts, PathKind};

use super::file::Root;

pub(super) fn classify(root: &Root, path: &[u8]) -> PathFacts {
    let (what, stat) = look(root, path);
    PathFacts {
        path: path.into(),
        what,
        uid: stat.as_ref().map_or(0, |stat| stat.st_uid),
        gid: stat.as_ref().map_or(0, |stat| stat.st_gid),
        mode: stat.as_ref().map_or(0, |stat| stat.st_mode & 0o7777),
    }
}

/// Opens what is at a path, level by level and without following links: a
/// link is then opened itself or refused, as `flags` say.
pub(super) fn walk(root: &Root, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut names = names(path)?.into_iter().peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let directory = at.as_ref().unwrap_or(root.descriptor());
        let flags = match names.peek() {
            Some(_) => OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            None => flags | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        };
        let next = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        if names.peek().is_some() && is(&rustix::fs::fstat(&next)?, FileType::Symlink) {
            return Err(Errno::LOOP);
        }
        at = Some(next);
    }
    match at {
        Some(found) => Ok(found),
        None => {
            let flags = flags | OFlags::DIRECTORY;
            rustix::fs::openat(root.descriptor(), ".", flags, Mode::empty())
        }
    }
}

fn look(root: &Root, path: &[u8]) -> (PathKind, Option<Stat>) {
    let found = match walk(root, path, OFlags::PATH) {
        Ok(found) => found,
        Err(Errno::NOENT) => return (PathKind::Absent, None),
        Err(Errno::LOOP) => return (PathKind::Link, None),
        Err(_) => return (PathKind::Other, None),
    };
    let Ok(stat) = rustix::fs::fstat(&found) else {
        return (PathKind::Other, None);
    };
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => PathKind::Link,
        FileType::RegularFile => PathKind::File,
        FileType::Directory => directory(found.as_fd()),
        _ => PathKind::Other,
    };
    (what, Some(stat))
}

/// One that is closed to this process, which has no capability, counts as one
/// with entries: what it holds must not be hidden either.
fn directory(found: BorrowedFd<'_>) -> PathKind {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(found, ".", flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::ACCESS) => return PathKind::Directory,
        Err(_) => return PathKind::Other,
    };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&opened, &mut buffer);
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) if [c".", c".."].contains(&entry.file_name()) => {}
            Ok(_) => return PathKind::Directory,
            Err(_) => return PathKind::Other,
        }
    }
    PathKind::EmptyDirectory
}

/// The levels of an absolute path. `..` is refused: where it leads depends
/// on links.
fn names(path: &[u8]) -> rustix::io::Result<Vec<&[u8]>> {
    if path.first() != Some(&b'/') {
        return Err(Errno::INVAL);
    }
    let names: Vec<&[u8]> = path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .collect();
    if names.contains(&&b".."[..]) {
        return Err(Errno::INVAL);
    }
    Ok(names)
}

fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn each_kind_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("full/empty")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        symlink("full", at("link")).unwrap();
        let root = Root::open_at(folder.path()).unwrap();
        for (path, expected) in [
            ("/", PathKind::Directory),
            ("/full", PathKind::Directory),
            ("/full/./empty//", PathKind::EmptyDirectory),
            ("/file", PathKind::File),
            ("/link", PathKind::Link),
            ("/link/empty", PathKind::Link),
            ("/absent", PathKind::Absent),
            ("/absent/below", PathKind::Absent),
            ("/file/below", PathKind::Other),
            ("/full/../file", PathKind::Other),
            ("relative", PathKind::Other),
            ("", PathKind::Other),
        ] {
            assert_eq!(classify(&root, path.as_bytes()).what, expected, "{path}");
        }
    }

    #[test]
    fn owner_and_mode_are_those_of_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o2750)).unwrap();
        let root = Root::open_at(folder.path()).unwrap();
        let facts = classify(&root, b"/file");
        assert_eq!(facts.mode, 0o2750);
        assert_eq!(facts.uid, rustix::process::getuid().as_raw());
        assert_eq!(classify(&root, b"/absent").mode, 0);
    }
}
