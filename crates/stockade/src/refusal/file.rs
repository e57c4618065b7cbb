//! Why a file cannot be moved, looked at or removed.

use std::fmt;

use crate::error::{ErrorKind, Retry};
use crate::files::EntryKind;

/// Why a file operation was refused. Each is of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileRefusal {
    /// The path is empty.
    Empty,
    /// The path holds a NUL byte.
    Nul,
    /// The path holds a backslash.
    Backslash,
    /// The path is longer than a path may be.
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// The path is absolute, where one relative to the work directory is needed.
    Absolute,
    /// The path is not below the work directory.
    Outside,
    /// The path has a `..`.
    Parent,
    /// A name is longer than a name may be.
    NameTooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// The path has too many names.
    TooDeep {
        /// The most.
        most: usize,
    },
    /// The operation may not be done to the work directory itself.
    WorkDir,
    /// The work directory, or a directory above it, is a link.
    WorkDirLinked,
    /// A directory on the way is a link.
    LinkedParent {
        /// Which.
        at: String,
    },
    /// Something on the way is no directory.
    ParentNotDirectory {
        /// Which.
        at: String,
    },
    /// A link is in its place; links are not followed.
    Link,
    /// A directory is in its place.
    IsDirectory,
    /// Something else than a directory is in its place.
    NotDirectory,
    /// Neither a file nor a directory is in its place.
    NotRegular {
        /// What is.
        kind: EntryKind,
    },
    /// Nothing is there.
    Missing,
    /// The file is larger than a file may be.
    TooLarge {
        /// Its bytes.
        size: u64,
        /// The most.
        most: u64,
    },
    /// With this file the batch is larger than a batch may be.
    BatchTooLarge {
        /// Bytes of the batch up to here.
        size: u64,
        /// The most.
        most: u64,
    },
    /// There are more files than a batch may have.
    TooManyFiles {
        /// How many.
        count: u64,
        /// The most.
        most: u64,
    },
    /// The batch names it twice.
    Duplicate,
    /// The batch has it as a file, and has files below it.
    AlsoDirectory,
    /// The source ended too early.
    SourceShort {
        /// Bytes that it said.
        said: u64,
        /// Bytes that it gave.
        was: u64,
    },
    /// The source gave more than it said.
    SourceLong {
        /// Bytes that it said.
        said: u64,
    },
    /// The source is no regular file.
    SourceNotRegular,
    /// The source cannot be read.
    SourceUnreadable {
        /// Why.
        why: String,
    },
    /// It is on a mount that a copy does not see.
    MountHidden {
        /// Where that is mounted.
        mount: String,
    },
    /// A directory is removed only with everything in it.
    NeedsRecursive,
    /// The work directory is full.
    NoSpace,
    /// The guest's user may not.
    Denied,
    /// The file system cannot be written.
    ReadOnly,
    /// The file system refuses the name.
    NameRefused,
    /// The guest changed it while it was read.
    Changed,
    /// The guest put something there while it was removed.
    StillThere,
    /// Something is mounted there.
    MountPoint,
    /// The sandbox's system refused for a reason of its own.
    System {
        /// Its error number.
        errno: i32,
    },
}

impl FileRefusal {
    /// A stable name of the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.told().0
    }

    /// The kind of error that it makes.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing => ErrorKind::NotFound,
            Self::TooLarge { .. }
            | Self::BatchTooLarge { .. }
            | Self::TooManyFiles { .. }
            | Self::NoSpace => ErrorKind::LimitExceeded,
            Self::Changed | Self::StillThere => ErrorKind::Conflict,
            _ => ErrorKind::Refused,
        }
    }

    /// Whether asking again can help.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Changed | Self::StillThere | Self::NoSpace => Retry::Later,
            _ => Retry::Never,
        }
    }

    /// Its code, what is wrong, and what to do: one table.
    const fn told(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Empty => ("file_path_empty", "the path is empty", "name a file"),
            Self::Nul => ("file_path_nul", "the path holds a NUL byte", "leave it out"),
            Self::Backslash => (
                "file_path_backslash",
                "the path holds a backslash",
                "separate names with `/`",
            ),
            Self::TooLong { .. } => (
                "file_path_too_long",
                "the path is too long",
                "use at most 4095 bytes",
            ),
            Self::Absolute => (
                "file_path_absolute",
                "the path is absolute",
                "give it relative to the work directory",
            ),
            Self::Outside => (
                "file_path_outside",
                "the path is not below the work directory",
                "name a file below it",
            ),
            Self::Parent => (
                "file_path_parent",
                "the path has a `..`, and what that means depends on links",
                "name the file without it",
            ),
            Self::NameTooLong { .. } => (
                "file_name_too_long",
                "a name in the path is too long",
                "use at most 255 bytes for a name",
            ),
            Self::TooDeep { .. } => (
                "file_path_too_deep",
                "the path has too many names",
                "keep the file in fewer directories",
            ),
            Self::WorkDir => (
                "file_work_dir",
                "this is the work directory itself",
                "name something in it",
            ),
            Self::WorkDirLinked => (
                "file_work_dir_linked",
                "the work directory, or a directory above it, has become a link",
                "acquire a fresh sandbox",
            ),
            Self::LinkedParent { .. } => (
                "file_linked_parent",
                "a directory on the way is a link, and links are not followed",
                "name the file by the directory that it is in",
            ),
            Self::ParentNotDirectory { .. } => (
                "file_parent_not_directory",
                "something on the way is no directory",
                "choose another place",
            ),
            Self::Link => (
                "file_link",
                "this is a link, and links are not followed",
                "name the file itself, or remove the link",
            ),
            Self::IsDirectory => (
                "file_is_directory",
                "this is a directory",
                "name a file, or list the directory",
            ),
            Self::NotDirectory => (
                "file_not_directory",
                "this is no directory",
                "name a directory",
            ),
            Self::NotRegular { .. } => (
                "file_not_regular",
                "this is no regular file",
                "move regular files only",
            ),
            Self::Missing => ("file_missing", "there is no such file", "check the name"),
            Self::TooLarge { .. } => (
                "file_too_large",
                "the file is over its limit",
                "raise `max_bytes_per_file` in the spec, or move less",
            ),
            Self::BatchTooLarge { .. } => (
                "file_batch_too_large",
                "the batch is over its limit",
                "move the files in several batches, or raise `max_total_bytes` in the spec",
            ),
            Self::TooManyFiles { .. } => (
                "file_too_many",
                "the batch has too many files",
                "move the files in several batches, or raise `max_files` in the spec",
            ),
            Self::Duplicate => (
                "file_duplicate",
                "the batch names it twice",
                "name each file once",
            ),
            Self::AlsoDirectory => (
                "file_also_directory",
                "the batch has it as a file, and has files below it",
                "rename one of them",
            ),
            Self::SourceShort { .. } => (
                "file_source_short",
                "the source ended before the size that it said",
                "say the right size, and do not change a file while it is sent",
            ),
            Self::SourceLong { .. } => (
                "file_source_long",
                "the source gave more than the size that it said",
                "say the right size, and do not change a file while it is sent",
            ),
            Self::SourceNotRegular => (
                "file_source_not_regular",
                "the source is no regular file",
                "send regular files only, or give a reader with a size",
            ),
            Self::SourceUnreadable { .. } => (
                "file_source_unreadable",
                "the source cannot be read",
                "check that it can be read",
            ),
            Self::MountHidden { .. } => (
                "file_mount_hidden",
                "it is on a mount of the sandbox that a copy does not see",
                "use the guest plane, or keep the file elsewhere",
            ),
            Self::NeedsRecursive => (
                "file_needs_recursive",
                "this is a directory",
                "ask for a recursive removal",
            ),
            Self::NoSpace => (
                "file_no_space",
                "the work directory is full, in bytes or in files",
                "remove something, or raise `work_bytes` or `work_inodes` in the spec",
            ),
            Self::Denied => (
                "file_denied",
                "the sandbox's user may not do that",
                "check owner and permission bits",
            ),
            Self::ReadOnly => (
                "file_read_only",
                "the file system cannot be written",
                "choose another place",
            ),
            Self::NameRefused => (
                "file_name_refused",
                "the sandbox's file system refuses the name",
                "choose another name",
            ),
            Self::Changed => (
                "file_changed",
                "the guest changed it meanwhile",
                "try again when nothing writes to it",
            ),
            Self::StillThere => (
                "file_still_there",
                "the guest put something there while it was removed",
                "end what runs in the sandbox, and try again",
            ),
            Self::MountPoint => (
                "file_mount_point",
                "something is mounted there",
                "name something else",
            ),
            Self::System { .. } => (
                "file_system",
                "the sandbox's system refused it",
                "look the error number up",
            ),
        }
    }

    /// Numbers and names that belong to the reason.
    fn particulars(&self) -> Option<String> {
        match self {
            Self::TooLong { bytes } | Self::NameTooLong { bytes } => Some(format!("{bytes} bytes")),
            Self::TooDeep { most } => Some(format!("more than {most}")),
            Self::LinkedParent { at } | Self::ParentNotDirectory { at } => {
                Some(format!("`{}`", crate::text::excerpt(at)))
            }
            Self::NotRegular { kind } => Some(kind.to_string().replace('_', " ")),
            Self::TooLarge { size, most } | Self::BatchTooLarge { size, most } => {
                Some(format!("{size} bytes, at most {most}"))
            }
            Self::TooManyFiles { count, most } => Some(format!("{count}, at most {most}")),
            Self::SourceShort { said, was } => Some(format!("said {said} bytes, gave {was}")),
            Self::SourceLong { said } => Some(format!("said {said} bytes")),
            Self::SourceUnreadable { why } => Some(crate::text::excerpt(why)),
            Self::MountHidden { mount } => Some(format!("`{mount}`")),
            Self::System { errno } => Some(format!("error number {errno}")),
            _ => None,
        }
    }
}

/// What is wrong and what to do; the path is the [`Refusal`](super::Refusal)'s.
impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, wrong, remedy) = self.told();
        f.write_str(wrong)?;
        if let Some(particulars) = self.particulars() {
            write!(f, " ({particulars})")?;
        }
        write!(f, "; {remedy}")
    }
}
