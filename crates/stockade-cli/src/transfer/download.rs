//! Out of a sandbox: everything is read before anything lands.

use stockade::files::ReadFile;
use stockade::{Call, Error, ReadRequest, Refusal, Sandbox};

use super::batches::batches;
use super::outputs::{Output, Selection, Wanted, reason_of, select};
use crate::failure::Failure;
use crate::host::{AtConflict, Landing, land};
use crate::meter::Meter;
use crate::unmet::Unmet;

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) files: Vec<Wanted>,
    pub(crate) bytes: u64,
    /// What was asked for and did not come, each with the reason.
    pub(crate) missing: Vec<Unmet>,
    /// What could not land on the host.
    pub(crate) in_the_way: Vec<Unmet>,
}

impl Brought {
    /// Whether all that was asked for is there.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.in_the_way.is_empty()
    }
}

/// What may be done on the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Replace files that are there.
    pub(crate) overwrite: bool,
    pub(crate) at_conflict: AtConflict,
    /// Show nothing to a person.
    pub(crate) quiet: bool,
}

/// Reads the outputs and lands them.
pub(crate) async fn bring(
    call: &Call,
    sandbox: &Sandbox,
    outputs: &[Output],
    manner: Manner,
) -> Result<Brought, Failure> {
    let mut selection = select(call, sandbox, outputs).await?;
    let mut files = std::mem::take(&mut selection.files);
    let mut in_the_way = Vec::new();
    // What cannot land is not read.
    files.retain(|file| match file.place.obstacle(manner.overwrite) {
        Some(unmet) => {
            in_the_way.push(unmet);
            false
        }
        None => true,
    });
    if !in_the_way.is_empty() && manner.at_conflict == AtConflict::LandNothing {
        return Ok(Brought {
            missing: selection.missing,
            in_the_way,
            ..Brought::default()
        });
    }
    let meter = Meter::start(
        "copying out",
        files.len() as u64,
        bytes(&files),
        manner.quiet,
    );
    let read = fetch(call, sandbox, files, &mut selection.missing, &meter).await?;
    drop(meter);
    let mut brought = put(read, selection, manner).await;
    brought.in_the_way.splice(0..0, in_the_way);
    Ok(brought)
}

/// Reads files, batch after batch. One that went away or changed meanwhile
/// does not keep the others.
pub(crate) async fn fetch(
    call: &Call,
    sandbox: &Sandbox,
    files: Vec<Wanted>,
    missing: &mut Vec<Unmet>,
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
    missing: &mut Vec<Unmet>,
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
    for wanted in &spoiled {
        let unmet = Unmet::guest(
            wanted.guest.as_bytes(),
            reason_of(refusal),
            refusal.to_string(),
        );
        missing.push(unmet);
    }
    Ok((Vec::new(), rest))
}

async fn put(read: Vec<(Wanted, ReadFile)>, selection: Selection, manner: Manner) -> Brought {
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
    let mut landed = land(&landings, manner.overwrite, manner.at_conflict).await;
    let mut files: Vec<Wanted> = read.into_iter().map(|(wanted, _)| wanted).collect();
    // Of two for one place, the first is there.
    files.retain(|wanted| landed.files.remove(&wanted.place.path()));
    Brought {
        files,
        bytes: landed.bytes,
        missing: selection.missing,
        in_the_way: landed.in_the_way,
    }
}

fn bytes(files: &[Wanted]) -> u64 {
    files.iter().map(|file| file.size).sum()
}
