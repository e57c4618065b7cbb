//! What a sandbox may use, and what a transfer may move.

use crate::spec::Storage;
use crate::vocabulary::TransferDirection;

/// One mebibyte, in bytes.
pub(crate) const MIB: u64 = 1024 * 1024;

/// Memory that stays for programs when every tmpfs is full, in bytes.
///
/// What is written to a tmpfs counts against the memory limit, and at the
/// limit every later command dies at birth.
pub const MEMORY_FLOOR: u64 = 64 * MIB;

/// What one sandbox may use. The defaults are the ones of `Strict`.
///
/// Swap is always off and core dumps are always empty, so neither is a field.
///
/// ```
/// let mut limits = stockade::ResourceLimits::default();
/// limits.milli_cpus = 500;
/// limits.work_bytes = 32 * 1024 * 1024;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Thousandths of one CPU; 1000.
    pub milli_cpus: u64,
    /// Bytes of memory, every tmpfs included; 1 GiB.
    pub memory: u64,
    /// Processes and threads, the guest runtime's own included; 256.
    pub pids: u64,
    /// Bytes in the work directory; 256 MiB. Enforced with
    /// [`Storage::Tmpfs`] only: a directory on disk has no limit of its own.
    pub work_bytes: u64,
    /// Files and directories in the work directory; 65,536. Enforced with
    /// [`Storage::Tmpfs`] only.
    pub work_inodes: u64,
    /// Bytes in `/tmp`; 64 MiB.
    pub tmp_bytes: u64,
    /// Bytes in `/dev/shm`; 64 MiB.
    pub shm_bytes: u64,
    /// Open files of one process, soft limit; 1024.
    pub open_files_soft: u64,
    /// Open files of one process, hard limit; 4096.
    pub open_files_hard: u64,
}

/// What one call may move in one direction.
///
/// Checked before anything is sent; a transfer over a limit is refused, never
/// cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferLimits {
    /// Bytes of one file; default 8 MiB, at most 64 MiB.
    pub max_bytes_per_file: u64,
    /// Bytes of all files; default 32 MiB, at most 256 MiB.
    pub max_total_bytes: u64,
    /// Files; default 64, at most 256.
    pub max_files: u64,
}

/// Transfer limits of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BothTransferLimits {
    /// Into the sandbox.
    pub files_in: TransferLimits,
    /// Out of it.
    pub files_out: TransferLimits,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            milli_cpus: 1000,
            memory: 1024 * MIB,
            pids: 256,
            work_bytes: 256 * MIB,
            work_inodes: 65_536,
            tmp_bytes: 64 * MIB,
            shm_bytes: 64 * MIB,
            open_files_soft: 1024,
            open_files_hard: 4096,
        }
    }
}

impl ResourceLimits {
    /// Bytes of memory that these limits need with a work directory of this
    /// storage: every tmpfs full, and [`MEMORY_FLOOR`] for programs.
    #[must_use]
    pub fn least_memory(&self, storage: Storage) -> u64 {
        let work = match storage {
            Storage::Tmpfs => self.work_bytes,
            Storage::Root | Storage::Disk => 0,
        };
        work.saturating_add(self.tmp_bytes)
            .saturating_add(self.shm_bytes)
            .saturating_add(MEMORY_FLOOR)
    }
}

impl TransferLimits {
    /// The most that any spec may ask for.
    pub const CEILING: Self = Self {
        max_bytes_per_file: 64 * MIB,
        max_total_bytes: 256 * MIB,
        max_files: 256,
    };

    /// Limits of these numbers.
    #[must_use]
    pub const fn new(max_bytes_per_file: u64, max_total_bytes: u64, max_files: u64) -> Self {
        Self {
            max_bytes_per_file,
            max_total_bytes,
            max_files,
        }
    }

    /// Whether no limit is above the other's.
    #[must_use]
    pub const fn within(&self, other: &Self) -> bool {
        self.max_bytes_per_file <= other.max_bytes_per_file
            && self.max_total_bytes <= other.max_total_bytes
            && self.max_files <= other.max_files
    }

    /// Name, value and the other's value of the first limit that is above it.
    pub(crate) fn first_above(&self, other: &Self) -> Option<(&'static str, u64, u64)> {
        let pairs = [
            (
                "max_bytes_per_file",
                self.max_bytes_per_file,
                other.max_bytes_per_file,
            ),
            (
                "max_total_bytes",
                self.max_total_bytes,
                other.max_total_bytes,
            ),
            ("max_files", self.max_files, other.max_files),
        ];
        pairs.into_iter().find(|(_, mine, theirs)| mine > theirs)
    }
}

impl Default for TransferLimits {
    fn default() -> Self {
        Self::new(8 * MIB, 32 * MIB, 64)
    }
}

impl BothTransferLimits {
    /// Limits of both directions.
    #[must_use]
    pub const fn new(files_in: TransferLimits, files_out: TransferLimits) -> Self {
        Self {
            files_in,
            files_out,
        }
    }

    pub(crate) fn of(&self, direction: TransferDirection) -> &TransferLimits {
        match direction {
            TransferDirection::In => &self.files_in,
            TransferDirection::Out => &self.files_out,
        }
    }
}
