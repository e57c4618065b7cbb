//! What a program in memory is given.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, DuplexStream, Take};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Flaw, GuestFiles};
use crate::exec::{OutputChunk, StreamName};

/// Most bytes of one piece of output.
const PIECE: usize = 64 * 1024;

/// A program's view of its command: arguments, variables, streams and files.
pub struct Guest {
    pub(super) args: Vec<Vec<u8>>,
    pub(super) env: BTreeMap<String, Vec<u8>>,
    pub(super) cwd: Option<Vec<u8>>,
    pub(super) stdin: Option<Take<DuplexStream>>,
    pub(super) output: mpsc::Sender<OutputChunk>,
    pub(super) limit: OutputLimit,
    pub(super) children: Children,
    pub(super) files: GuestFiles,
    pub(super) flaw: Option<Flaw>,
}

/// The bytes that may still be written, and what happens when they are spent.
pub(super) struct OutputLimit {
    pub(super) left: u64,
    pub(super) spent: CancellationToken,
}

/// Work that a program leaves running.
pub(super) type Children = Arc<Mutex<JoinSet<()>>>;

impl Guest {
    /// Arguments, without the program's name.
    #[must_use]
    pub fn args(&self) -> &[Vec<u8>] {
        &self.args
    }

    /// An argument as text; empty when there is none, and what is not UTF-8
    /// is replaced.
    #[must_use]
    pub fn arg(&self, at: usize) -> String {
        let argument = self.args.get(at).map_or(&[][..], Vec::as_slice);
        String::from_utf8_lossy(argument).into_owned()
    }

    /// A variable: the command's own, or the sandbox's.
    #[must_use]
    pub fn env(&self, name: &str) -> Option<&[u8]> {
        self.env.get(name).map(Vec::as_slice)
    }

    /// Where it started, when the request says so.
    #[must_use]
    pub fn cwd(&self) -> Option<&[u8]> {
        self.cwd.as_deref()
    }

    /// The files of the sandbox, as the program has them.
    #[must_use]
    pub fn files(&self) -> &GuestFiles {
        &self.files
    }

    /// The next bytes of standard input, at most 64 KiB; empty at its end.
    ///
    /// Cancel safety: safe; no byte is lost.
    pub async fn read(&mut self) -> Vec<u8> {
        let mut piece = vec![0; PIECE];
        let read = match &mut self.stdin {
            // A pipe in memory fails in no way but by ending.
            Some(stdin) => stdin.read(&mut piece).await.unwrap_or(0),
            None => 0,
        };
        piece.truncate(read);
        piece
    }

    /// Standard input up to its end.
    ///
    /// Cancel safety: not safe; what was read is lost.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        let mut whole = Vec::new();
        loop {
            let piece = self.read().await;
            if piece.is_empty() {
                return whole;
            }
            whole.extend(piece);
        }
    }

    /// Stops reading standard input: who writes to it sees a broken pipe.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Writes to standard output; waits while the way out is full.
    ///
    /// Cancel safety: not safe; a part may have been written.
    pub async fn print(&mut self, bytes: impl AsRef<[u8]>) {
        self.write(StreamName::Stdout, bytes.as_ref()).await;
    }

    /// Writes to standard error; waits while the way out is full.
    ///
    /// Cancel safety: not safe; a part may have been written.
    pub async fn eprint(&mut self, bytes: impl AsRef<[u8]>) {
        self.write(StreamName::Stderr, bytes.as_ref()).await;
    }

    /// Starts work that may outlive the program, as a daemon would.
    pub fn leave_running(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.spawn(work);
    }

    async fn write(&mut self, mut stream: StreamName, bytes: &[u8]) {
        if self.flaw == Some(Flaw::ExecMergesStreams) {
            stream = StreamName::Stdout;
        }
        let text;
        let bytes = if self.flaw == Some(Flaw::ExecMakesText) {
            text = String::from_utf8_lossy(bytes).into_owned();
            text.as_bytes()
        } else {
            bytes
        };
        for piece in bytes.chunks(PIECE) {
            let fits = piece
                .len()
                .min(usize::try_from(self.limit.left).unwrap_or(usize::MAX));
            self.limit.left -= fits as u64;
            if fits > 0 {
                let bytes = Bytes::copy_from_slice(&piece[..fits]);
                // Nobody reads: the output is discarded.
                let _ = self.output.send(OutputChunk { stream, bytes }).await;
            }
            if fits < piece.len() {
                self.limit.spent.cancel();
                // The command is being ended.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Variables by name only.
impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest")
            .field("args", &self.args.len())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
