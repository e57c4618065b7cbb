//! `guest status` and `guest retire`: carry one inquiry to PID 1, and its
//! answer out.
//!
//! Both come from the same binary as PID 1 itself, in the sandbox's own
//! runtime volume, so that they always understand each other.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};
use stockade_wire::inquiry::{ANSWER, Inquiry};
use stockade_wire::{Decoder, Kind, encode, message};

use crate::clock::now;
use crate::reach;
use crate::server::Door;

/// How long PID 1 is tried to be reached, when it is just starting.
const WAIT: Duration = Duration::from_secs(5);

/// How long an answer may take, others that ask at the same time included.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that are read at a time.
const CHUNK: usize = 16 * 1024;

/// Shortest wait that a socket can be given; none would mean for ever.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// A conversation with PID 1. It is ended by the end of this process and by
/// nothing before it: PID 1, when it retires, waits for that, and takes this
/// process along if it comes first.
pub(crate) struct Asked(OwnedFd);

/// Asks, and answers the answer as one line of JSON.
///
/// # Errors
///
/// A sentence on why there is none.
pub(crate) fn ask(inquiry: Inquiry) -> Result<(Vec<u8>, Asked), String> {
    let socket = reach::connect(Door::Inquiries, WAIT)?;
    let cannot = |error: Errno| format!("the guest runtime cannot be asked: {error}");
    let payload =
        message::to_payload(Kind::Inquiry, &inquiry).map_err(|error| error.to_string())?;
    let mut frame = Vec::new();
    encode(Kind::Inquiry, 0, &payload, &mut frame);
    // As small as it is, the kernel takes it whole.
    rustix::net::send(&socket, &frame, SendFlags::NOSIGNAL).map_err(cannot)?;
    let mut answer = receive(&socket, now() + PATIENCE)?;
    answer.push(b'\n');
    Ok((answer, Asked(socket)))
}

impl Asked {
    /// Keeps it until the kernel closes it with the process, whose exit code
    /// is then settled.
    pub(crate) fn until_the_end(self) {
        std::mem::forget(self.0);
    }
}

fn receive(socket: &OwnedFd, deadline: Instant) -> Result<Vec<u8>, String> {
    let mut decoder = Decoder::new();
    let mut answer = Vec::new();
    let mut space = vec![0; CHUNK];
    loop {
        while let Some(frame) = decoder.next_frame().map_err(|error| error.to_string())? {
            answer.extend_from_slice(&frame.payload);
            match frame.kind {
                Kind::Answer => return Ok(answer),
                Kind::AnswerMore if answer.len() <= ANSWER => {}
                kind => return Err(format!("the guest runtime answers with {kind:?}")),
            }
        }
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return Err(format!("the guest runtime is silent for {PATIENCE:?}"));
        }
        let wait = set_socket_timeout(socket, Timeout::Recv, Some(left.max(SHORTEST_WAIT)));
        wait.map_err(|error| error.to_string())?;
        match rustix::net::recv(socket, &mut space, RecvFlags::empty()) {
            Ok((0, _)) => {
                return Err(
                    "the guest runtime does not answer: it lets only the engine's own \
                            processes ask, and nobody when it is about to end"
                        .into(),
                );
            }
            Ok((length, _)) => {
                let bytes = space.get(..length).unwrap_or_default();
                decoder.buffer().extend_from_slice(bytes);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(format!("the guest runtime does not answer: {error}")),
        }
    }
}
