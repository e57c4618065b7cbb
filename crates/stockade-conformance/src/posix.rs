//! A guest with a shell and the usual tools.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use stockade::exec::ExecBuilder;
use stockade::files::EntryKind;
use stockade::{Capabilities, Capability, ExecOutcome, ExecRequest, Stdin};

use crate::subject::{At, Doing, GuestAction, Seen, Subject, SubjectError};

/// A guest with `sh` and GNU coreutils (such as Debian's images), whose `/tmp`
/// can be written.
///
/// It makes sockets only with `python3`, and neither devices nor anything that
/// is not its own: the probes that need those are skipped.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct PosixSubject;

/// The code by which a script says that there is nothing, or no tool for it.
const NOTHING: i32 = 44;

/// Makes a socket; in its directory, since its own path may be at most 107
/// bytes. Linux: `sun_path`.
const SOCKET: &str = "command -v python3 >/dev/null || exit 44; exec python3 -c '
import os, socket, sys
directory, name = os.path.split(os.fsencode(sys.argv[1]))
os.chdir(directory)
socket.socket(socket.AF_UNIX).bind(name)
' \"$1\"";

impl PosixSubject {
    /// It.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Subject for PosixSubject {
    fn needs(&self) -> Capabilities {
        Capabilities::from([Capability::Exec])
    }

    fn outside(&self) -> Vec<u8> {
        b"/tmp".to_vec()
    }

    fn command(&self, action: &GuestAction) -> Result<ExecBuilder, SubjectError> {
        Ok(match action {
            GuestAction::PrintArguments(arguments) => {
                let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
                script("for a; do printf '[%s]\\n' \"$a\"; done", &arguments)
            }
            GuestAction::ExitSeven => script("exit 7", &[]),
            GuestAction::ShellExitSeven => ExecRequest::shell("exit 7"),
            GuestAction::PrintDirectory => script("pwd -P", &[]),
            GuestAction::PrintToBoth => {
                script("printf 'to-stdout\\n'; printf 'to-stderr\\n' >&2", &[])
            }
            GuestAction::PrintAllBytes => {
                let octal = |byte: u32| format!("\\0{byte:03o}");
                let all: String = (0..256).map(octal).collect();
                let line = format!("printf %b '{all}'; printf %b '{all}' >&2; exit 7");
                script(&line, &[])
            }
            GuestAction::PrintVariable => script("printf '%s' \"$CONFORMANCE\"", &[]),
            GuestAction::Copy => ExecRequest::argv(["cat"]),
            GuestAction::Sleep => script("printf 'begun\\n'; sleep 30", &[]),
            GuestAction::Flood => script("while :; do printf '%s\\n' flood; done", &[]),
            GuestAction::SwapDirectory { path, target } => {
                const SWAP: &str = "while :; do rm -rf -- \"$1\"; ln -s -- \"$2\" \"$1\"; \
                     rm -f -- \"$1\"; mkdir -- \"$1\"; done 2>/dev/null";
                script(SWAP, &[path, target])
            }
            GuestAction::Missing => ExecRequest::argv(["stockade-no-such-program"]),
        })
    }

    fn plant_directory<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        Box::pin(async move { done(at, script("mkdir -p -- \"$1\"", &[path])).await })
    }

    fn plant_file<'a>(&'a self, at: &'a At, path: &'a [u8], content: &'a [u8]) -> Doing<'a, ()> {
        let command = script("umask 022; cat > \"$1\" && chmod 644 -- \"$1\"", &[path]);
        let command = command.stdin(Stdin::bytes(content.to_vec()));
        Box::pin(async move { done(at, command).await })
    }

    fn plant_zeros<'a>(&'a self, at: &'a At, path: &'a [u8], size: u64) -> Doing<'a, ()> {
        let size = size.to_string();
        Box::pin(async move {
            let command = script("truncate -s \"$2\" -- \"$1\"", &[path, size.as_bytes()]);
            done(at, command).await
        })
    }

    fn plant_symlink<'a>(&'a self, at: &'a At, target: &'a [u8], path: &'a [u8]) -> Doing<'a, ()> {
        let command = script("ln -sn -- \"$1\" \"$2\"", &[target, path]);
        Box::pin(async move { done(at, command).await })
    }

    fn plant_special<'a>(&'a self, at: &'a At, kind: EntryKind, path: &'a [u8]) -> Doing<'a, ()> {
        Box::pin(async move {
            let line = match kind {
                EntryKind::Fifo => "mkfifo -- \"$1\"",
                EntryKind::Socket => SOCKET,
                _ => return Err(no_tool(kind)),
            };
            let outcome = at.exec(script(line, &[path])).await?;
            if outcome.code() == Some(NOTHING) {
                return Err(no_tool(kind));
            }
            succeeded(outcome).map(drop)
        })
    }

    fn plant_protected<'a>(&'a self, _at: &'a At, _path: &'a [u8]) -> Doing<'a, ()> {
        Box::pin(async {
            Err(SubjectError::unsupported(
                "it can make nothing that is not its own",
            ))
        })
    }

    fn set_mode<'a>(&'a self, at: &'a At, path: &'a [u8], mode: u32) -> Doing<'a, ()> {
        let mode = format!("{mode:04o}");
        Box::pin(async move {
            let command = script("chmod -- \"$2\" \"$1\"", &[path, mode.as_bytes()]);
            done(at, command).await
        })
    }

    fn set_modified<'a>(&'a self, at: &'a At, path: &'a [u8], seconds: u64) -> Doing<'a, ()> {
        let time = format!("@{seconds}");
        Box::pin(async move {
            let command = script("touch -h -d \"$2\" -- \"$1\"", &[path, time.as_bytes()]);
            done(at, command).await
        })
    }

    fn fill_bytes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        // The writer's failure is the point.
        const FILL: &str = "cat /dev/zero > \"$1\" 2>/dev/null; truncate -s \"-$2\" -- \"$1\"";
        let leave = leave.to_string();
        Box::pin(async move { done(at, script(FILL, &[path, leave.as_bytes()])).await })
    }

    fn fill_inodes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        // `true` and not `:`, whose failed redirection would end the shell.
        const FILL: &str = "cd -- \"$1\" || exit 1; i=0; \
             while true > \"$i\"; do i=$((i+1)); done 2>/dev/null; \
             n=0; while [ \"$n\" -lt \"$2\" ] && [ \"$i\" -gt 0 ]; do \
             i=$((i-1)); rm -f -- \"$i\"; n=$((n+1)); done";
        let leave = leave.to_string();
        Box::pin(async move { done(at, script(FILL, &[path, leave.as_bytes()])).await })
    }

    fn look<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Option<Seen>> {
        let look = format!(
            "[ -e \"$1\" ] || [ -L \"$1\" ] || exit {NOTHING}; LC_ALL=C stat -c '%f %s %Y' -- \"$1\""
        );
        Box::pin(async move {
            let outcome = at.exec(script(&look, &[path])).await?;
            if outcome.code() == Some(NOTHING) {
                return Ok(None);
            }
            let outcome = succeeded(outcome)?;
            seen(&outcome.stdout_text()).map(Some)
        })
    }

    fn read<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Bytes> {
        Box::pin(async move {
            let outcome = at.exec(script("cat -- \"$1\"", &[path])).await?;
            Ok(succeeded(outcome)?.stdout)
        })
    }

    fn the_guest_can_write<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        let write = "[ -f \"$1\" ] && printf written > \"$1\"";
        Box::pin(async move { Ok(at.exec(script(write, &[path])).await?.success()) })
    }

    fn the_guest_can_delete<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        let delete = "[ -f \"$1\" ] && rm -f -- \"$1\" && [ ! -e \"$1\" ]";
        Box::pin(async move { Ok(at.exec(script(delete, &[path])).await?.success()) })
    }

    fn clear<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        // What it cannot open for itself it cannot remove either, and says so.
        const CLEAR: &str = "if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then \
             chmod -R u+rwX -- \"$1\" 2>/dev/null; fi; rm -rf -- \"$1\"";
        Box::pin(async move { done(at, script(CLEAR, &[path])).await })
    }
}

/// A script with its arguments, which are never part of its text.
fn script(line: &str, arguments: &[&[u8]]) -> ExecBuilder {
    let fixed = [&b"sh"[..], b"-c", line.as_bytes(), b"sh"];
    ExecRequest::argv(fixed.into_iter().chain(arguments.iter().copied()))
}

async fn done(at: &At, command: ExecBuilder) -> Result<(), SubjectError> {
    succeeded(at.exec(command).await?).map(drop)
}

fn succeeded(outcome: ExecOutcome) -> Result<ExecOutcome, SubjectError> {
    if outcome.success() {
        return Ok(outcome);
    }
    Err(SubjectError::failed(format!(
        "{}; it wrote `{}`",
        outcome.status,
        outcome.stderr_text().trim()
    )))
}

fn no_tool(kind: EntryKind) -> SubjectError {
    let kind = kind.as_str().replace('_', " ");
    SubjectError::unsupported(format!("it has no tool that makes a {kind}"))
}

/// Reads what `stat -c '%f %s %Y'` printed: raw mode in hexadecimal, bytes,
/// and seconds since 1970.
fn seen(line: &str) -> Result<Seen, SubjectError> {
    let unreadable = || SubjectError::failed(format!("stat printed `{}`", line.trim()));
    let mut words = line.split_whitespace();
    let mut word = || words.next().ok_or_else(unreadable);
    let raw = u32::from_str_radix(word()?, 16).map_err(|_| unreadable())?;
    let size = word()?.parse().map_err(|_| unreadable())?;
    let modified: i64 = word()?.parse().map_err(|_| unreadable())?;
    let kind = match raw & 0o170_000 {
        0o100_000 => EntryKind::File,
        0o040_000 => EntryKind::Directory,
        0o120_000 => EntryKind::Link,
        0o010_000 => EntryKind::Fifo,
        0o140_000 => EntryKind::Socket,
        0o020_000 => EntryKind::CharDevice,
        0o060_000 => EntryKind::BlockDevice,
        _ => EntryKind::Other,
    };
    let modified = UNIX_EPOCH + Duration::from_secs(u64::try_from(modified).unwrap_or(0));
    Ok(Seen::new(kind, size, raw & 0o7777, modified))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stat_prints_is_read() {
        let link = seen("a1ff 9 1700000000\n").unwrap();
        assert_eq!(
            (link.kind, link.size, link.mode),
            (EntryKind::Link, 9, 0o777)
        );
        let file = seen("89ed 0 0").unwrap();
        assert_eq!((file.kind, file.mode), (EntryKind::File, 0o4755));
        assert!(seen("").is_err() && seen("x 1 1").is_err());
    }

    #[test]
    fn arguments_are_never_part_of_a_script() {
        let request = script("exit 0", &[b"$(reboot)"]).build().unwrap();
        let stockade::exec::Program::Argv(argv) = request.program() else {
            panic!("a script is a program with arguments");
        };
        assert_eq!(argv.last().map(Vec::as_slice), Some(&b"$(reboot)"[..]));
        assert_eq!(argv[2], b"exit 0");
    }
}
