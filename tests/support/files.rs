//! What tests of files share with the program that they run as another host.

use stockade::files::{FileWrite, ReadRequest};
use stockade::{GuestPath, SandboxKey, SpecBuilder, TransferLimits};
use stockade_docker::FilePlane;

use crate::engine::{PYTHON, spec};

/// A spec under which the most may be moved.
pub fn roomy() -> SpecBuilder {
    spec(PYTHON)
        .files_in(TransferLimits::CEILING)
        .files_out(TransferLimits::CEILING)
}

/// The key under which two hosts find the same sandbox.
pub fn shared_key(thread: &str) -> SandboxKey {
    SandboxKey::new("tests", thread, "agent").with_call("1")
}

/// A plane by its name.
///
/// # Panics
///
/// When there is none of that name.
pub fn plane(name: &str) -> FilePlane {
    match name {
        "tar" => FilePlane::Tar,
        "guest" => FilePlane::Guest,
        other => panic!("there is no plane {other}"),
    }
}

/// A path.
///
/// # Panics
///
/// When it is none.
pub fn path(text: &str) -> GuestPath {
    GuestPath::new(text).expect("the path is one")
}

/// A batch of this many files of some bytes each, below a directory. Each has
/// bytes of its own.
pub fn batch(directory: &str, count: usize, bytes: usize) -> Vec<FileWrite> {
    (0..count)
        .map(|number| {
            let content = vec![u8::try_from(number % 251).unwrap_or(0); bytes];
            FileWrite::new(path(&format!("{directory}/{number}")), content)
        })
        .collect()
}

/// A request for all of such a batch.
pub fn request(directory: &str, count: usize) -> ReadRequest {
    ReadRequest::of((0..count).map(|number| path(&format!("{directory}/{number}"))))
}
