//! Into a sandbox.

use stockade::{Call, Content, FileWrite, Sandbox};

use super::batches::batches;
use crate::failure::Failure;
use crate::host::{Entry, Tree};
use crate::meter::Meter;

/// Most files of one batch, whatever more a sandbox allows: they are open at
/// the same time, and some systems give a process 256 descriptors.
const OPEN_AT_ONCE: u64 = 128;

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Files, without directories.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Sends everything, batch after batch. What a failure leaves is told.
pub(crate) async fn send(
    call: &Call,
    sandbox: &Sandbox,
    tree: &Tree,
    meter: &Meter,
) -> Result<Sent, Failure> {
    let mut limits = *sandbox.spec().files_in();
    limits.max_files = limits.max_files.min(OPEN_AT_ONCE);
    let sizes = tree.entries.iter().map(|entry| entry.size.unwrap_or(0));
    let mut sent = Sent::default();
    for batch in batches(sizes, &limits) {
        let entries = &tree.entries[batch];
        let result = match write_requests(entries) {
            Ok(files) => sandbox
                .write_files(call, files)
                .await
                .map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = result {
            return Err(match sent.files {
                0 => failure,
                files => failure.note(format!(
                    "{files} of {} files had arrived whole in earlier batches",
                    tree.files()
                )),
            });
        }
        let files = entries.iter().filter(|entry| entry.size.is_some()).count() as u64;
        let bytes: u64 = entries.iter().filter_map(|entry| entry.size).sum();
        sent.files += files;
        sent.bytes += bytes;
        meter.add(files, bytes);
    }
    Ok(sent)
}

fn write_requests(entries: &[Entry]) -> Result<Vec<FileWrite>, Failure> {
    entries.iter().map(write_request).collect()
}

fn write_request(entry: &Entry) -> Result<FileWrite, Failure> {
    let write = match entry.size {
        None => FileWrite::directory(entry.guest.clone()),
        Some(_) => {
            let file = entry.open().map_err(|error| {
                Failure::Host(format!(
                    "`{}` cannot be read: {error}",
                    entry.host.display()
                ))
            })?;
            FileWrite::new(entry.guest.clone(), Content::File(file))
        }
    };
    Ok(write.mode(entry.mode).modified(entry.modified))
}
