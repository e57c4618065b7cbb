//! `stockade ls`: what a directory of a sandbox holds.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};
use stockade::files::{EntryKind, FileStat, ListEntry, Listing};
use stockade::{FileRefusal, GuestPath, ListRequest, Refusal, Sandbox};

use crate::failure::Failure;
use crate::named::{self, Target};
use crate::session::Session;
use crate::{args, exit, report, say};

/// Lists it; the answer is our own exit code.
pub(crate) async fn ls(args: &args::Ls) -> u8 {
    let common = &args.common;
    match Session::start(common.deadline, common.json, "ending the listing") {
        Ok(session) => session.code(listed(args, &session).await),
        Err(failure) => failure.tell(common.json, None, None),
    }
}

async fn listed(args: &args::Ls, session: &Session) -> Result<u8, Failure> {
    let target =
        Target::parse(args.target.as_bytes()).map_err(|fault| Failure::Usage(vec![fault]))?;
    let (_backend, sandbox) = named::find(session, &args.common.engine, &target.name).await?;
    let path = match target.path.as_deref() {
        None | Some(b"") => GuestPath::work_dir(),
        Some(path) => GuestPath::resolve(sandbox.spec().work_dir(), path)
            .map_err(|refusal| Failure::Usage(vec![refusal.to_string()]))?,
    };
    let listing = listing(args, session, &sandbox, &path).await?;
    let said = if args.common.json {
        let entries: Vec<Value> = listing.entries.iter().map(object).collect();
        let object = json!({
            "sandbox": sandbox.id().as_str(),
            "path": report::text(path.as_bytes()),
            "entries": entries,
            "truncated": listing.truncated,
            "closed": listing.closed.iter().map(|name| report::text(name)).collect::<Vec<_>>(),
        });
        say::object(&report::versioned(object))
    } else {
        say::text(&table(&listing))
    };
    if listing.truncated && !args.common.json {
        say::line(&format!(
            "not everything is listed: there are more than {} entries, or directories deeper than 64; raise --max-entries, or name a directory below",
            args.max_entries
        ));
    }
    if !args.common.json {
        let closed: Vec<String> = listing
            .closed
            .iter()
            .map(|name| {
                let name = printable(name);
                format!("`{name}` may not be looked into by the sandbox's user")
            })
            .collect();
        say::lines(&closed);
    }
    Ok(if said.is_ok() { 0 } else { exit::FAILED })
}

/// The listing of a directory; a file is a listing of itself.
async fn listing(
    args: &args::Ls,
    session: &Session,
    sandbox: &Sandbox,
    path: &GuestPath,
) -> Result<Listing, Failure> {
    let request = ListRequest::new(path.clone()).max_entries(args.max_entries);
    let request = if args.recursive {
        request.recursive()
    } else {
        request
    };
    let error = match sandbox.list_dir(&session.call, request).await {
        Ok(listing) => return Ok(listing),
        Err(error) => error,
    };
    let is_file = |why: &FileRefusal| {
        matches!(
            why,
            FileRefusal::NotDirectory | FileRefusal::Link | FileRefusal::NotRegular { .. }
        )
    };
    match error.refusal() {
        Some(Refusal::File { why, .. }) if is_file(why) => {}
        _ => return Err(error.into()),
    }
    match sandbox.stat(&session.call, path.as_bytes()).await? {
        Some(stat) => Ok(Listing::new(
            vec![ListEntry::new(path.as_bytes().to_vec(), stat)],
            false,
        )),
        None => Err(error.into()),
    }
}

fn object(entry: &ListEntry) -> Value {
    let modified = entry.stat.modified.duration_since(std::time::UNIX_EPOCH);
    json!({
        "name": report::text(&entry.name),
        "kind": entry.stat.kind.as_str(),
        "size": entry.stat.size,
        "mode": format!("{:04o}", entry.stat.mode),
        "modified": modified.map(|time| time.as_secs_f64()).unwrap_or_default(),
    })
}

fn table(listing: &Listing) -> String {
    let mut text = String::new();
    let sizes = listing.entries.iter().map(|entry| size(&entry.stat));
    let width = sizes.map(|size| size.len()).max().unwrap_or(0);
    for entry in &listing.entries {
        let stat = &entry.stat;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}{} {:>width$} {} {}",
            letter(stat.kind),
            permissions(stat.mode),
            size(stat),
            humantime::format_rfc3339_seconds(stat.modified),
            printable(&entry.name)
        );
    }
    text
}

fn size(stat: &FileStat) -> String {
    stat.size
        .map_or_else(|| "-".to_owned(), |size| size.to_string())
}

const fn letter(kind: EntryKind) -> char {
    match kind {
        EntryKind::File => '-',
        EntryKind::Directory => 'd',
        EntryKind::Link => 'l',
        EntryKind::Fifo => 'p',
        EntryKind::Socket => 's',
        EntryKind::CharDevice => 'c',
        EntryKind::BlockDevice => 'b',
        _ => '?',
    }
}

/// As `ls` shows it: `rwxr-x---`, with setuid, setgid and sticky bits.
fn permissions(mode: u32) -> String {
    let mut text = String::with_capacity(9);
    for (shift, special, set, unset) in [
        (6, 0o4000, 's', 'S'),
        (3, 0o2000, 's', 'S'),
        (0, 0o1000, 't', 'T'),
    ] {
        let bits = mode >> shift;
        text.push(if bits & 4 == 0 { '-' } else { 'r' });
        text.push(if bits & 2 == 0 { '-' } else { 'w' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => set,
            (true, false) => unset,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// The guest chose the name: nothing in it may move a terminal's cursor.
fn printable(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if say::is_unseen(character) || character == '\\' {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_written_as_ls_does() {
        assert_eq!(permissions(0o644), "rw-r--r--");
        assert_eq!(permissions(0o4755), "rwsr-xr-x");
        assert_eq!(permissions(0o3644), "rw-r-Sr-T");
    }

    #[test]
    fn a_name_cannot_write_to_the_terminal() {
        assert_eq!(
            printable(b"a\x1b[2J\n\xff\\\xc3\xa9"),
            "a\\u{1b}[2J\\n\\xff\\\\é"
        );
    }
}
