//! Frames and messages between the host and the guest runtime.
//!
//! The stream is one `docker exec -i` whose standard input and output carry
//! [frames](frame) both ways. Every command in a sandbox shares it: a frame
//! names the *run* it belongs to, run 0 being the connection itself. Small
//! structured messages travel as JSON ([`message`]), program input and output
//! as raw bytes under [credit] per stream, so that one slow reader
//! stalls nobody else.
//!
//! This crate does no I/O, and nothing in it trusts the peer: the guest is
//! hostile, so each length is bounded before anything is stored.
//!
//! # A connection
//!
//! 1. Guest: [`Kind::Hello`] with what the sandbox really has.
//! 2. Host: [`Kind::Welcome`] with the protocol version it chose.
//! 3. Host: [`Kind::Start`] (preceded by [`Kind::StartMore`] for long
//!    requests); guest: [`Kind::Started`] when the command leaves the queue
//!    and its program runs, or [`Kind::Exit`] at once when it cannot start.
//! 4. [`Kind::Stdin`], [`Kind::Stdout`], [`Kind::Stderr`] and
//!    [`Kind::Credit`] both ways.
//! 5. Guest: [`Kind::Exit`] as soon as the outcome is known, which may be
//!    before the last output has been sent; then [`Kind::OutputEnd`] after the
//!    last byte. After that the run's number is free.
//! 6. Each side sends [`Kind::Ping`] every [`limits::HEARTBEAT`]; a side that
//!    hears nothing for [`limits::SILENCE`] treats the stream as ended.
//!
//! # Files
//!
//! A file operation is such a command, whose program is the guest runtime
//! itself; what its standard streams carry is in [`files`].
//!
//! # Beside the channel
//!
//! What PID 1 answers to a look from outside is in [`inquiry`], and what its
//! exit code says in [`ends`].

pub mod credit;
pub mod ends;
pub mod files;
pub mod frame;
pub mod inquiry;
pub mod limits;
pub mod message;
mod text;

pub use frame::{Decoder, Frame, FrameError, Kind, encode};
pub use text::Text;

/// The range of protocol versions that this build speaks.
///
/// The version rises when a message changes meaning; a sandbox whose range
/// does not overlap the host's is drift, never a hang. A frame that only ever
/// travels beside the channel (see [`inquiry`]) changes nothing for either.
pub const PROTOCOL: message::ProtocolRange = message::ProtocolRange { min: 1, max: 1 };

/// Name of the file that is written last into a runtime volume and holds the
/// digest of the runtime, as lower-case hex: without it the volume is not whole.
pub const MARKER: &str = "digest";
