//! Whether an image's own directory can be the work directory.

use stockade::Refusal;
use stockade::spec::Storage;
use stockade_wire::message::{PathFacts, PathKind};

use super::User;
use crate::image::ImageFacts;
use crate::permission::granted;

/// Bits of a directory's mode, for one class of users.
const SEARCH: u32 = 0o1;
const WRITE: u32 = 0o2;
const WRITE_AND_SEARCH: u32 = WRITE | SEARCH;

/// Every directory above a path, from the root down.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let below = path.match_indices('/').map(|(at, _)| &path[..at]);
    below.map(|ancestor| if ancestor.is_empty() { "/" } else { ancestor })
}

/// Refuses a directory that is none, that a link leads to, or in which the
/// sandbox's user could not write. There is no capability that would help it,
/// so that the permission bits are the whole rule, for root as well.
pub(super) fn check(path: &str, image: &ImageFacts, user: &User) -> Result<(), Refusal> {
    for ancestor in ancestors(path) {
        let facts = directory(ancestor, path, image)?;
        if !grants(facts, user, SEARCH) {
            return Err(mismatch(user, "pass through", ancestor, facts));
        }
    }
    let facts = directory(path, path, image)?;
    if grants(facts, user, WRITE_AND_SEARCH) {
        Ok(())
    } else {
        Err(mismatch(user, "write in", path, facts))
    }
}

/// Whether the sandbox's user could move a directory above this one, where it
/// can write in the root. What is mounted at the path moves along, and the
/// engine, which looks for the path anew with each copy, would follow whatever
/// was put there instead, and make directories, as root.
///
/// The directory itself cannot be moved: it is a mount point.
pub(super) fn can_be_moved(path: &str, image: &ImageFacts, user: &User) -> bool {
    let above: Vec<&str> = ancestors(path).collect();
    // The last holds the mount point, and nothing else on the way.
    let holders = above.split_last().map_or(&[][..], |(_, rest)| rest);
    holders.iter().any(|holder| match image.at(holder) {
        Some(facts) => match facts.what {
            PathKind::Directory | PathKind::EmptyDirectory => {
                facts.uid == user.uid || grants(facts, user, WRITE)
            }
            // The engine makes it, as root.
            PathKind::Absent => user.uid == 0,
            _ => true,
        },
        None => true,
    })
}

fn directory<'a>(at: &str, path: &str, image: &'a ImageFacts) -> Result<&'a PathFacts, Refusal> {
    let directories = [PathKind::Directory, PathKind::EmptyDirectory];
    image
        .at(at)
        .filter(|facts| directories.contains(&facts.what))
        .ok_or_else(|| Refusal::WorkDirNotDirectory {
            path: path.to_owned(),
        })
}

fn grants(directory: &PathFacts, user: &User, wanted: u32) -> bool {
    let is_owner = directory.uid == user.uid;
    let is_member = directory.gid == user.gid || user.groups.contains(&directory.gid);
    granted(directory.mode, is_owner, is_member, wanted)
}

fn mismatch(user: &User, what: &str, path: &str, facts: &PathFacts) -> Refusal {
    let PathFacts { uid, gid, mode, .. } = facts;
    Refusal::StorageMismatch {
        storage: Storage::Root,
        why: format!(
            "the sandbox's user {user} may not {what} {path}, which belongs to {uid}:{gid} with mode {mode:o}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(uid: u32, gid: u32, groups: &[u32]) -> User {
        User {
            uid,
            gid,
            groups: groups.to_vec(),
            name: None,
            home: None,
        }
    }

    fn directory(uid: u32, gid: u32, mode: u32) -> PathFacts {
        PathFacts {
            path: "/srv".into(),
            what: PathKind::Directory,
            uid,
            gid,
            mode,
        }
    }

    #[test]
    fn ancestors_go_from_the_root_down_to_the_parent() {
        let all: Vec<_> = ancestors("/srv/app/work").collect();
        assert_eq!(all, ["/", "/srv", "/srv/app"]);
        assert_eq!(ancestors("/work").collect::<Vec<_>>(), ["/"]);
    }

    #[test]
    fn permission_is_that_of_the_first_class_that_fits() {
        let rows = [
            (user(0, 0, &[]), directory(0, 0, 0o755), true),
            // Root has no capability: it is a user like any other.
            (user(0, 0, &[]), directory(5, 5, 0o755), false),
            (user(0, 0, &[]), directory(5, 5, 0o757), true),
            (user(0, 0, &[]), directory(0, 0, 0o555), false),
            (user(5, 6, &[]), directory(5, 0, 0o700), true),
            // The owner's own bits count, however much others may.
            (user(5, 6, &[]), directory(5, 6, 0o077), false),
            (user(5, 6, &[]), directory(0, 6, 0o770), true),
            (user(5, 6, &[7]), directory(0, 7, 0o770), true),
            (user(5, 6, &[7]), directory(0, 7, 0o707), false),
            (user(5, 6, &[]), directory(0, 0, 0o1777), true),
            (user(5, 6, &[]), directory(0, 0, 0o772), false),
        ];
        for (user, directory, expected) in rows {
            let granted = grants(&directory, &user, WRITE_AND_SEARCH);
            assert_eq!(granted, expected, "{user} {directory:?}");
        }
    }

    #[test]
    fn a_mount_moves_with_a_directory_that_the_user_can_move() {
        let at = |path: &str, what, uid, mode| PathFacts {
            path: path.into(),
            what,
            uid,
            gid: uid,
            mode,
        };
        let image = ImageFacts {
            id: String::new(),
            user_name: String::new(),
            user: Err(String::new()),
            env: vec![],
            volumes: vec![],
            paths: vec![
                at("/", PathKind::Directory, 0, 0o755),
                at("/home", PathKind::Directory, 0, 0o755),
                at("/home/u", PathKind::Directory, 5, 0o755),
                at("/home/u/a", PathKind::Absent, 0, 0),
                at("/open", PathKind::Directory, 0, 0o777),
            ],
        };
        let guest = user(5, 5, &[]);
        for (path, expected) in [
            ("/work", false),
            ("/home/work", false),
            ("/home/u/work", false),
            ("/home/u/a/work", true),
            ("/open/a/work", true),
            ("/unknown/a/work", true),
        ] {
            assert_eq!(can_be_moved(path, &image, &guest), expected, "{path}");
        }
        let root = user(0, 0, &[]);
        assert!(!can_be_moved("/work", &image, &root));
        assert!(can_be_moved("/home/work", &image, &root), "root owns `/`");
    }
}
