//! `stockade cp`: files into a sandbox that stays, or out of it.

mod end;
mod standard;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::json;
use stockade::files::EntryKind;
use stockade::{GuestPath, Sandbox};

use self::end::{Direction, direction};
use crate::failure::Failure;
use crate::host::{AtConflict, Source};
use crate::meter::Meter;
use crate::named;
use crate::session::Session;
use crate::transfer::{Destination, Manner, Output, Sent, bring, send};
use crate::{args, exit, host, report, say};

/// Copies; the answer is our own exit code.
pub(crate) async fn cp(args: &args::Cp) -> u8 {
    let common = &args.common;
    match Session::start(common.deadline, common.json, "ending the copy") {
        Ok(session) => session.code(copied(args, &session).await),
        Err(failure) => failure.tell(common.json, None, None),
    }
}

async fn copied(args: &args::Cp, session: &Session) -> Result<u8, Failure> {
    let direction = direction(&args.paths).map_err(|fault| Failure::Usage(vec![fault]))?;
    let engine = &args.common.engine;
    let (_backend, sandbox) = named::find(session, engine, direction.name()).await?;
    let work = Work {
        args,
        session,
        sandbox,
    };
    match direction {
        Direction::In { sources, to, .. } => work.copy_in(&sources, &to).await,
        Direction::Out { sources, to, .. } => work.copy_out(&sources, &to).await,
        Direction::FromInput { to, .. } => work.copy_input(&to).await,
        Direction::ToOutput { from, .. } => work.copy_to_output(&from).await,
    }
}

struct Work<'a> {
    args: &'a args::Cp,
    session: &'a Session,
    sandbox: Sandbox,
}

impl Work<'_> {
    async fn copy_in(&self, sources: &[PathBuf], to: &[u8]) -> Result<u8, Failure> {
        let place = self.guest(to)?;
        let inside = to.ends_with(b"/") || sources.len() > 1 || self.is_directory(&place).await?;
        let placed: Result<Vec<Source>, String> = sources
            .iter()
            .map(|host| {
                if inside || host.file_name().is_none() || ends_with_dot(host) {
                    Source::within(host, &place)
                } else {
                    Ok(Source::exactly(host, place.clone()))
                }
            })
            .collect();
        let sources = placed.map_err(|fault| Failure::Usage(vec![fault]))?;
        let tree = host::tree(sources, self.args.follow, self.sandbox.spec()).await;
        let tree = tree.map_err(Failure::Refused)?;
        let meter = Meter::start(
            "copying in",
            tree.files(),
            tree.bytes(),
            self.args.common.json,
        );
        let sent = send(&self.session.call, &self.sandbox, &tree, &meter).await?;
        drop(meter);
        Ok(self.sent(sent))
    }

    async fn copy_input(&self, to: &[u8]) -> Result<u8, Failure> {
        let place = self.guest(to)?;
        if to.ends_with(b"/") || self.is_directory(&place).await? {
            let fault = "standard input has no name; name a file in the sandbox";
            return Err(Failure::Usage(vec![fault.to_owned()]));
        }
        let sent = standard::send(&self.session.call, &self.sandbox, place).await?;
        Ok(self.sent(sent))
    }

    async fn copy_out(&self, sources: &[Vec<u8>], to: &Path) -> Result<u8, Failure> {
        let destination = if sources.len() > 1 {
            Destination::Into(to.to_owned())
        } else {
            Destination::of(to.to_owned())
        };
        let work_dir = self.sandbox.spec().work_dir();
        let outputs: Result<Vec<Output>, String> = sources
            .iter()
            .map(|path| Output::of(or_work_dir(path), work_dir, destination.clone()))
            .collect();
        let outputs = outputs.map_err(|fault| Failure::Usage(vec![fault]))?;
        let json = self.args.common.json;
        let manner = Manner {
            overwrite: self.args.overwrite,
            // The sandbox stays, so that all can be copied again.
            at_conflict: AtConflict::LandNothing,
            quiet: json,
        };
        let brought = bring(&self.session.call, &self.sandbox, &outputs, manner).await?;
        if json && say::object(&report::versioned(report::brought(&brought))).is_err() {
            return Ok(exit::FAILED);
        }
        if !json {
            say::lines(&brought.missing);
            say::lines(&brought.in_the_way);
        }
        Ok(exit::of_copy(brought.is_whole(), !brought.files.is_empty()))
    }

    async fn copy_to_output(&self, from: &[u8]) -> Result<u8, Failure> {
        if self.args.common.json {
            let fault = "--json: standard output is the file itself; leave one of them out";
            return Err(Failure::Usage(vec![fault.to_owned()]));
        }
        let path = self.guest(from)?;
        standard::receive(&self.session.call, &self.sandbox, path).await
    }

    fn guest(&self, path: &[u8]) -> Result<GuestPath, Failure> {
        let work_dir = self.sandbox.spec().work_dir();
        let path = GuestPath::resolve(work_dir, or_work_dir(path));
        path.map_err(|refusal| Failure::Usage(vec![refusal.to_string()]))
    }

    async fn is_directory(&self, path: &GuestPath) -> Result<bool, Failure> {
        if path.is_work_dir() {
            return Ok(true);
        }
        let stat = self
            .sandbox
            .stat(&self.session.call, path.as_bytes())
            .await?;
        Ok(stat.is_some_and(|stat| stat.kind == EntryKind::Directory))
    }

    fn sent(&self, sent: Sent) -> u8 {
        let object = json!({ "files": sent.files, "bytes": sent.bytes });
        let failed = self.args.common.json && say::object(&report::versioned(object)).is_err();
        if failed { exit::FAILED } else { 0 }
    }
}

/// `NAME:` is the work directory.
fn or_work_dir(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

fn ends_with_dot(host: &Path) -> bool {
    let text: &OsStr = host.as_os_str();
    let bytes = text.as_encoded_bytes();
    bytes == b"." || bytes.ends_with(b"/.")
}
