//! Into a sandbox.

use stockade::{Call, Content, FileWrite, Sandbox};

use super::batches::batches;
use crate::failure::Failure;
use crate::host::{Entry, Tree};
use crate::meter::Meter;

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
    let limits = sandbox.spec().files_in();
    let sizes = tree.entries.iter().map(|entry| entry.size.unwrap_or(0));
    let mut sent = Sent::default();
    for batch in batches(sizes, limits) {
        let entries = &tree.entries[batch];
        let result = match write_requests(entries) {
            Ok(files) => sandbox
                .write_files(call, files)
                .await
                .map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = result {
            return Err(failure.note(progress(sent, tree)));
        }
        let files = entries.iter().filter(|entry| entry.size.is_some()).count() as u64;
        let bytes: u64 = entries.iter().filter_map(|entry| entry.size).sum();
        sent.files += files;
        sent.bytes += bytes;
        meter.add(files, bytes);
    }
    Ok(sent)
}

/// What earlier batches have brought, for whoever hears of a failure.
fn progress(sent: Sent, tree: &Tree) -> String {
    match (sent.files, tree.files()) {
        (0, _) => "no earlier batch had been sent".to_owned(),
        (files, all) => format!("{files} of {all} files had arrived whole in earlier batches"),
    }
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
