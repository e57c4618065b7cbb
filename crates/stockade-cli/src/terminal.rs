//! The local terminal: raw while a program in the sandbox has its own.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use stockade::exec::TtySize;

/// How the terminal was before, for whoever ends the program.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Makes the terminal as it was, when dropped.
pub(crate) struct Raw(());

/// Whether standard input is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// The size of the terminal; what a terminal without one is taken for is the
/// traditional 24 by 80.
pub(crate) fn size() -> TtySize {
    match tcgetwinsize(std::io::stdin()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => TtySize {
            rows: size.ws_row,
            columns: size.ws_col,
        },
        _ => TtySize {
            rows: 24,
            columns: 80,
        },
    }
}

/// Passes every key through, Ctrl-C included.
pub(crate) fn raw() -> std::io::Result<Raw> {
    let before = tcgetattr(std::io::stdin())?;
    let mut raw = before.clone();
    raw.make_raw();
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
    Ok(Raw(()))
}

/// Makes the terminal as it was. Harmless when it was never changed.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // The terminal may be gone, and then there is nothing to restore.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}
