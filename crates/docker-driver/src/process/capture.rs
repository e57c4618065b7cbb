//! What is kept of a process's output, always within a bound.

use bytes::{Bytes, BytesMut};
use tokio_util::codec::{AnyDelimiterCodec, Decoder as _};
use tokio_util::sync::CancellationToken;

use super::Ended;
use crate::verb::LineSink;

/// Most bytes of standard error that are kept: the last 64 KiB.
const TAIL: usize = 64 * 1024;

/// Longest line that is told of.
const LONGEST_LINE: usize = 8 * 1024;

/// Where standard output goes, and what is objected to in it.
pub(crate) struct Sink {
    kept: Kept,
    objects: CancellationToken,
    objection: Option<Ended>,
}

enum Kept {
    /// All of it, up to a limit.
    Whole { bytes: BytesMut, limit: usize },
    /// The end: it is told line by line.
    Told(Box<Told>),
}

struct Told {
    sink: LineSink,
    lines: Lines,
    /// Of standard error, if those are told too.
    error_lines: Option<Lines>,
    /// A line that is objected to.
    prompt: Option<&'static str>,
    tail: Tail,
}

impl Sink {
    /// Keeps everything. More than `limit` bytes are objected to.
    pub(crate) fn whole(limit: usize) -> Self {
        let bytes = BytesMut::new();
        Self::new(Kept::Whole { bytes, limit })
    }

    /// Tells of each line, of standard error too if `both`. The line `prompt`
    /// is objected to.
    pub(crate) fn told(sink: LineSink, prompt: Option<&'static str>, both: bool) -> Self {
        Self::new(Kept::Told(Box::new(Told {
            sink,
            lines: Lines::new(),
            error_lines: both.then(Lines::new),
            prompt,
            tail: Tail::default(),
        })))
    }

    fn new(kept: Kept) -> Self {
        Self {
            kept,
            objects: CancellationToken::new(),
            objection: None,
        }
    }

    /// Cancelled at the first objection.
    pub(crate) fn objects(&self) -> CancellationToken {
        self.objects.clone()
    }

    /// What was objected to.
    pub(crate) fn objection(&self) -> Option<Ended> {
        self.objection
    }

    pub(crate) fn take(&mut self, new: &[u8]) {
        let objection = match &mut self.kept {
            Kept::Whole { bytes, limit } => {
                let room = limit.saturating_sub(bytes.len());
                bytes.extend_from_slice(&new[..new.len().min(room)]);
                (new.len() > room).then_some(Ended::OutputTooLarge)
            }
            Kept::Told(told) => {
                told.tail.take(new);
                let mut prompted = false;
                told.lines.take(new, |line| match told.prompt {
                    Some(prompt) if line == prompt => prompted = true,
                    _ => told.sink.tell(line),
                });
                prompted.then_some(Ended::Prompted)
            }
        };
        if let Some(objection) = objection {
            self.objection.get_or_insert(objection);
            self.objects.cancel();
        }
    }

    /// The same of standard error, which is kept elsewhere.
    pub(crate) fn take_error(&mut self, new: &[u8]) {
        if let Kept::Told(told) = &mut self.kept
            && let Some(lines) = &mut told.error_lines
        {
            lines.take(new, |line| told.sink.tell(line));
        }
    }

    /// What was kept.
    pub(crate) fn finish(self) -> Bytes {
        match self.kept {
            Kept::Whole { bytes, .. } => bytes.freeze(),
            Kept::Told(told) => {
                let all = [Some(told.lines), told.error_lines];
                for lines in all.into_iter().flatten() {
                    lines.finish(|line| told.sink.tell(line));
                }
                told.tail.finish()
            }
        }
    }
}

/// Cuts a stream into lines. A line that is too long is left out.
#[derive(Debug)]
pub(crate) struct Lines {
    codec: AnyDelimiterCodec,
    rest: BytesMut,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let end = b"\n".to_vec();
        let codec = AnyDelimiterCodec::new_with_max_length(end.clone(), end, LONGEST_LINE);
        Self {
            codec,
            rest: BytesMut::new(),
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(&str)) {
        self.rest.extend_from_slice(bytes);
        loop {
            match self.codec.decode(&mut self.rest) {
                Ok(Some(line)) => tell(&text(&line)),
                Ok(None) => return,
                // It skips to the end of the line that was too long.
                Err(_) => {}
            }
        }
    }

    fn finish(mut self, mut tell: impl FnMut(&str)) {
        if let Ok(Some(line)) = self.codec.decode_eof(&mut self.rest) {
            tell(&text(&line));
        }
    }
}

fn text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))
}

/// The end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Twice the bound at most, so that bytes are seldom moved.
    kept: BytesMut,
}

impl Tail {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(TAIL)..];
        if self.kept.len() + bytes.len() > 2 * TAIL {
            self.cut();
        }
        self.kept.extend_from_slice(bytes);
    }

    pub(crate) fn finish(mut self) -> Bytes {
        self.cut();
        self.kept.freeze()
    }

    fn cut(&mut self) {
        let surplus = self.kept.len().saturating_sub(TAIL);
        let _ = self.kept.split_to(surplus);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn sink(prompt: Option<&'static str>) -> (Sink, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let told_too = Arc::clone(&told);
        let tell = LineSink::new(move |line| told_too.lock().unwrap().push(line.to_owned()));
        (Sink::told(tell, prompt, false), told)
    }

    fn told(chunks: &[&[u8]]) -> Vec<String> {
        let (mut sink, told) = sink(None);
        for chunk in chunks {
            sink.take(chunk);
        }
        assert_eq!(sink.objection(), None);
        assert_eq!(sink.finish(), chunks.concat());
        let told = told.lock().unwrap();
        told.clone()
    }

    #[test]
    fn lines_are_told_wherever_the_chunks_end() {
        let whole = told(&[b"one\r\ntwo\n\nlast"]);
        let bytes: Vec<_> = b"one\r\ntwo\n\nlast".chunks(1).collect();
        assert_eq!(whole, ["one", "two", "", "last"]);
        assert_eq!(told(&bytes), whole);
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_told() {
        let long = vec![b'x'; 3 * LONGEST_LINE];
        assert_eq!(told(&[b"a\n", &long, &long, b"\nb\n"]), ["a", "b"]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(told(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_prompt_is_objected_to_and_not_told() {
        let (mut sink, told) = sink(Some("Password:"));
        sink.take(b"The Password:\nPass");
        assert!(!sink.objects().is_cancelled());
        sink.take(b"word:\n");
        assert!(sink.objects().is_cancelled());
        assert_eq!(sink.objection(), Some(Ended::Prompted));
        assert_eq!(*told.lock().unwrap(), ["The Password:"]);
    }

    #[test]
    fn output_up_to_the_limit_is_kept_whole() {
        let mut sink = Sink::whole(6);
        sink.take(b"abc");
        sink.take(b"def");
        assert!(!sink.objects().is_cancelled());
        assert_eq!(sink.finish(), "abcdef");
    }

    #[test]
    fn one_byte_more_than_the_limit_is_objected_to() {
        let mut sink = Sink::whole(6);
        sink.take(b"abcdefg");
        assert!(sink.objects().is_cancelled());
        assert_eq!(sink.objection(), Some(Ended::OutputTooLarge));
        assert_eq!(sink.finish(), "abcdef");
    }

    #[test]
    fn the_tail_is_the_last_64_kib_whatever_the_chunks() {
        let all: Vec<u8> = (0..5 * TAIL).map(|at| (at % 251) as u8).collect();
        for chunk in [1000, TAIL, 3 * TAIL] {
            let mut tail = Tail::default();
            for part in all.chunks(chunk) {
                tail.take(part);
            }
            assert!(tail.finish() == all[4 * TAIL..], "chunks of {chunk}");
        }
    }
}
