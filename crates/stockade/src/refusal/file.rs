//! Why a file cannot be moved, looked at or removed.

use std::fmt;

use crate::error::{ErrorKind, Retry};
use crate::files::EntryKind;

/// Writes the enumeration and what is told of each reason from one list.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?
        = $code:literal, $wrong:literal, $remedy:literal;)*) => {
        /// Why a file operation was refused. Each is of one path.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum FileRefusal {
            $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: $type,)* })?,)*
        }

        impl FileRefusal {
            /// Its code, what is wrong, and what to do.
            const fn told(&self) -> (&'static str, &'static str, &'static str) {
                match self {
                    $(Self::$name { .. } => ($code, $wrong, $remedy),)*
                }
            }
        }
    };
}

reasons! {
    /// The path is empty.
    Empty = "file_path_empty",
        "the path is empty",
        "name a file";
    /// The path holds a NUL byte.
    Nul = "file_path_nul",
        "the path holds a NUL byte",
        "leave it out";
    /// The path holds a backslash.
    Backslash = "file_path_backslash",
        "the path holds a backslash",
        "separate names with `/`";
    /// The path is longer than a path may be.
    TooLong {
        /// Its bytes.
        bytes: usize,
    } = "file_path_too_long",
        "the path is too long",
        "use at most 4095 bytes";
    /// The path is absolute, where one relative to the work directory is needed.
    Absolute = "file_path_absolute",
        "the path is absolute",
        "give it relative to the work directory";
    /// The path is not below the work directory.
    Outside = "file_path_outside",
        "the path is not below the work directory",
        "name a file below it";
    /// The path has a `..`.
    Parent = "file_path_parent",
        "the path has a `..`, and what that means depends on links",
        "name the file without it";
    /// A name is longer than a name may be.
    NameTooLong {
        /// Its bytes.
        bytes: usize,
    } = "file_name_too_long",
        "a name in the path is too long",
        "use at most 255 bytes for a name";
    /// The path has too many names.
    TooDeep {
        /// The most.
        most: usize,
    } = "file_path_too_deep",
        "the path has too many names",
        "keep the file in fewer directories";
    /// The operation may not be done to the work directory itself.
    WorkDir = "file_work_dir",
        "this is the work directory itself",
        "name something in it";
    /// The work directory, or a directory above it, is a link.
    WorkDirLinked = "file_work_dir_linked",
        "the work directory, or a directory above it, has become a link",
        "acquire a fresh sandbox";
    /// A directory on the way is a link.
    LinkedParent {
        /// Which.
        at: String,
    } = "file_linked_parent",
        "a directory on the way is a link, and links are not followed",
        "name the file by the directory that it is in";
    /// Something on the way is no directory.
    ParentNotDirectory {
        /// Which.
        at: String,
    } = "file_parent_not_directory",
        "something on the way is no directory",
        "choose another place";
    /// A link is in its place; links are not followed.
    Link = "file_link",
        "this is a link, and links are not followed",
        "name the file itself, or remove the link";
    /// A directory is in its place.
    IsDirectory = "file_is_directory",
        "this is a directory",
        "name a file, or list the directory";
    /// Something else than a directory is in its place.
    NotDirectory = "file_not_directory",
        "this is no directory",
        "name a directory";
    /// Neither a file nor a directory is in its place.
    NotRegular {
        /// What is.
        kind: EntryKind,
    } = "file_not_regular",
        "this is no regular file",
        "move regular files only";
    /// Nothing is there.
    Missing = "file_missing",
        "there is no such file",
        "check the name";
    /// The file is larger than a file may be.
    TooLarge {
        /// Its bytes.
        size: u64,
        /// The most.
        most: u64,
    } = "file_too_large",
        "the file is over its limit",
        "move less, or raise `max_bytes_per_file` of `files_in` or `files_out` in the spec, which ends at 64 MiB";
    /// With this file the batch is larger than a batch may be.
    BatchTooLarge {
        /// Bytes of the batch up to here.
        size: u64,
        /// The most.
        most: u64,
    } = "file_batch_too_large",
        "the batch is over its limit",
        "move the files in several batches, or raise `max_total_bytes` of `files_in` or `files_out` in the spec";
    /// There are more files than a batch may have.
    TooManyFiles {
        /// How many.
        count: u64,
        /// The most.
        most: u64,
    } = "file_too_many",
        "the batch has too many files",
        "move the files in several batches, or raise `max_files` of `files_in` or `files_out` in the spec";
    /// The batch names it twice.
    Duplicate = "file_duplicate",
        "the batch names it twice",
        "name each file once";
    /// The batch has it as a file, and has files below it.
    AlsoDirectory = "file_also_directory",
        "the batch has it as a file, and has files below it",
        "rename one of them";
    /// The source ended too early.
    SourceShort {
        /// Bytes that it said.
        said: u64,
        /// Bytes that it gave.
        was: u64,
    } = "file_source_short",
        "the source ended before the size that it said",
        "say the right size, and do not change a file while it is sent";
    /// The source gave more than it said.
    SourceLong {
        /// Bytes that it said.
        said: u64,
    } = "file_source_long",
        "the source gave more than the size that it said",
        "say the right size, and do not change a file while it is sent";
    /// The source is no regular file.
    SourceNotRegular = "file_source_not_regular",
        "the source is no regular file",
        "send regular files only, or give a reader with a size";
    /// The source cannot be read.
    SourceUnreadable {
        /// Why.
        why: String,
    } = "file_source_unreadable",
        "the source cannot be read",
        "check that it can be read";
    /// It is on a mount that a copy does not see.
    MountHidden {
        /// Where that is mounted.
        mount: String,
    } = "file_mount_hidden",
        "it is on a mount of the sandbox that a copy does not see",
        "use the guest plane, or keep the file elsewhere";
    /// A directory is removed only with everything in it.
    NeedsRecursive = "file_needs_recursive",
        "this is a directory",
        "ask for a recursive removal";
    /// The work directory is full.
    NoSpace = "file_no_space",
        "the work directory is full, in bytes or in files",
        "remove something, or raise `work_bytes` or `work_inodes` in the spec";
    /// The guest's user may not.
    Denied = "file_denied",
        "the sandbox's user may not do that",
        "check owner and permission bits";
    /// The file system cannot be written.
    ReadOnly = "file_read_only",
        "the file system cannot be written",
        "choose another place";
    /// The file system refuses the name.
    NameRefused = "file_name_refused",
        "the sandbox's file system refuses the name",
        "choose another name";
    /// The guest changed it while it was read.
    Changed = "file_changed",
        "the guest changed it meanwhile",
        "try again when nothing writes to it";
    /// The guest put something there while it was removed.
    StillThere = "file_still_there",
        "the guest put something there while it was removed",
        "end what runs in the sandbox, and try again";
    /// Something is mounted there.
    MountPoint = "file_mount_point",
        "something is mounted there",
        "name something else";
    /// The sandbox's system refused for a reason of its own.
    System {
        /// Its error number.
        errno: i32,
    } = "file_system",
        "the sandbox's system refused it",
        "look the error number up";
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
