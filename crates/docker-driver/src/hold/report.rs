//! What a guard reports: docker's words, and marks between them.

use bytes::Bytes;

use crate::process::Tail;

/// Starts a mark: the record separator, which is in no text of docker's.
const MARK: u8 = 0x1e;

/// Longest mark.
const LONGEST_MARK: usize = 32;

/// One thing that a guard says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It starts docker to pause.
    Pauses,
    /// It starts docker to thaw.
    Unpauses,
    /// Docker has ended.
    Ended {
        code: i32,
        /// Whether the guard killed it, because it took too long.
        overdue: bool,
        /// Its words, 64 KiB of them at most.
        words: Bytes,
    },
    /// The hold is over.
    Thaws,
}

/// Reads a report as it comes.
#[derive(Default)]
pub(crate) struct Report {
    words: Tail,
    overdue: bool,
    /// The start of the current line, if it is a mark.
    mark: Option<Vec<u8>>,
    in_line: bool,
}

impl Report {
    /// Takes more of it.
    pub(crate) fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(Said)) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match line.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (line, false),
            };
            match (&mut self.mark, self.in_line, text.strip_prefix(&[MARK])) {
                (Some(mark), _, _) => {
                    let room = LONGEST_MARK.saturating_sub(mark.len());
                    mark.extend_from_slice(&text[..text.len().min(room)]);
                }
                (None, false, Some(mark)) => self.mark = Some(mark.to_vec()),
                _ => self.words.take(line),
            }
            self.in_line = !ends;
            if ends && let Some(said) = self.mark.take().and_then(|mark| self.read(&mark)) {
                tell(said);
            }
        }
    }

    fn read(&mut self, mark: &[u8]) -> Option<Said> {
        if mark == b"overdue" {
            self.overdue = true;
            return None;
        }
        let words = std::mem::take(&mut self.words);
        let overdue = std::mem::take(&mut self.overdue);
        Some(match mark {
            b"pause" => Said::Pauses,
            b"unpause" => Said::Unpauses,
            b"thaws" => Said::Thaws,
            _ => Said::Ended {
                code: std::str::from_utf8(mark.strip_prefix(b"ended ")?)
                    .ok()?
                    .parse()
                    .ok()?,
                overdue,
                words: words.finish(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(report: &[u8], piece: usize) -> Vec<Said> {
        let mut all = Vec::new();
        let mut reader = Report::default();
        for piece in report.chunks(piece) {
            reader.take(piece, |said| all.push(said));
        }
        all
    }

    #[test]
    fn marks_are_told_from_words_wherever_the_pieces_end() {
        let report = b"\x1epause\n\n\x1eended 0\n\x1ethaws\nKilled\n\x1eunpause\nno, \x1e\nsaid it\n\x1eended 1\n\x1eunpause\nwait\n\x1eoverdue\n\x1eended 137\n";
        for piece in 1..report.len() {
            assert_eq!(
                said(report, piece),
                [
                    Said::Pauses,
                    Said::Ended {
                        code: 0,
                        overdue: false,
                        words: Bytes::from_static(b"\n")
                    },
                    Said::Thaws,
                    Said::Unpauses,
                    Said::Ended {
                        code: 1,
                        overdue: false,
                        words: Bytes::from_static(b"no, \x1e\nsaid it\n")
                    },
                    Said::Unpauses,
                    Said::Ended {
                        code: 137,
                        overdue: true,
                        words: Bytes::from_static(b"wait\n")
                    },
                ]
            );
        }
    }

    #[test]
    fn a_mark_that_nobody_makes_is_none() {
        assert_eq!(said(b"\x1eended x\n\x1eended\n\x1e\nwords\n", 3), []);
        assert_eq!(said(&[MARK; 100_000], 1000), []);
    }
}
