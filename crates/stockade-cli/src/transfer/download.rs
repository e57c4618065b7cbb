//! Out of a sandbox: everything is read before anything lands.

use stockade::files::ReadFile;
use stockade::{Call, Error, ReadRequest, Refusal, Sandbox};

use super::batches::batches;
use super::outputs::{Output, Selection, Wanted, select};
use crate::failure::Failure;
use crate::host::{Landing, land};
use crate::meter::Meter;

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) files: Vec<Wanted>,
    pub(crate) bytes: u64,
    /// What was asked for and did not come, each with the reason.
    pub(crate) missing: Vec<String>,
    /// What is in the way on the host; nothing has landed then.
    pub(crate) in_the_way: Vec<String>,
}

impl Brought {
    /// Whether all that was asked for is there.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.in_the_way.is_empty()
    }
}

/// Reads the outputs and lands them.
pub(crate) async fn bring(
    call: &Call,
    sandbox: &Sandbox,
    outputs: &[Output],
    overwrite: bool,
    quiet: bool,
) -> Result<Brought, Failure> {
    let mut selection = select(call, sandbox, outputs).await?;
    let files = std::mem::take(&mut selection.files);
    let in_the_way: Vec<String> = files
        .iter()
        .filter_map(|file| file.place.obstacle(overwrite))
        .collect();
    if !in_the_way.is_empty() {
        return Ok(Brought {
            missing: selection.missing,
            in_the_way,
            ..Brought::default()
        });
    }
    let meter = Meter::start("copying out", files.len() as u64, bytes(&files), quiet);
    let read = fetch(call, sandbox, files, &mut selection.missing, &meter).await?;
    drop(meter);
    Ok(put(read, selection, overwrite).await)
}

/// Reads files, batch after batch. One that went away or changed meanwhile
/// does not keep the others.
pub(crate) async fn fetch(
    call: &Call,
    sandbox: &Sandbox,
    files: Vec<Wanted>,
    missing: &mut Vec<String>,
    meter: &Meter,
) -> Result<Vec<(Wanted, ReadFile)>, Error> {
    let limits = *sandbox.spec().files_out();
    let mut fetched = Vec::with_capacity(files.len());
    for batch in batches(files.iter().map(|file| file.size), &limits) {
        let mut batch = files[batch].to_vec();
        // The same file may be wanted in two places; it is read once for each.
        while !batch.is_empty() {
            let (now, later) = once_each(batch);
            let (read, again) = read(call, sandbox, now, missing).await?;
            for (wanted, file) in read {
                meter.add(1, file.content.len());
                fetched.push((wanted, file));
            }
            batch = again;
            batch.extend(later);
        }
    }
    Ok(fetched)
}

/// Splits off what asks for a file again.
fn once_each(batch: Vec<Wanted>) -> (Vec<Wanted>, Vec<Wanted>) {
    let mut seen = std::collections::BTreeSet::new();
    batch
        .into_iter()
        .partition(|wanted| seen.insert(wanted.guest.clone()))
}

type ReadOrAgain = (Vec<(Wanted, ReadFile)>, Vec<Wanted>);

/// Reads a batch, or names the file that spoils it and answers with the rest.
async fn read(
    call: &Call,
    sandbox: &Sandbox,
    batch: Vec<Wanted>,
    missing: &mut Vec<String>,
) -> Result<ReadOrAgain, Error> {
    let request = ReadRequest::of(batch.iter().map(|wanted| wanted.guest.clone()));
    let error = match sandbox.read_files(call, request).await {
        Ok(files) => return Ok((batch.into_iter().zip(files).collect(), Vec::new())),
        Err(error) => error,
    };
    let Some(refusal @ Refusal::File { path, .. }) = error.refusal() else {
        return Err(error);
    };
    let spoils = |wanted: &Wanted| {
        let shown = wanted.guest.to_string();
        shown == *path || path.ends_with(&format!("/{shown}"))
    };
    let (spoiled, rest): (Vec<_>, Vec<_>) = batch.into_iter().partition(spoils);
    if spoiled.is_empty() {
        return Err(error);
    }
    missing.push(refusal.to_string());
    Ok((Vec::new(), rest))
}

async fn put(read: Vec<(Wanted, ReadFile)>, selection: Selection, overwrite: bool) -> Brought {
    let directories = selection.directories.into_iter().map(|place| Landing {
        place,
        content: None,
        mode: 0o755,
        modified: std::time::SystemTime::UNIX_EPOCH,
    });
    let landings = read.iter().map(|(wanted, file)| Landing {
        place: wanted.place.clone(),
        content: Some(file.content.clone()),
        mode: file.stat.mode,
        modified: file.stat.modified,
    });
    let landings: Vec<Landing> = directories.chain(landings).collect();
    match land(&landings, overwrite).await {
        Ok(landed) => Brought {
            files: read.into_iter().map(|(wanted, _)| wanted).collect(),
            bytes: landed.bytes,
            missing: selection.missing,
            in_the_way: Vec::new(),
        },
        Err(in_the_way) => Brought {
            missing: selection.missing,
            in_the_way,
            ..Brought::default()
        },
    }
}

fn bytes(files: &[Wanted]) -> u64 {
    files.iter().map(|file| file.size).sum()
}
