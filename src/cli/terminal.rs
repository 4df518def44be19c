//! Standard error with one writer at a time: log lines and notices never tear the progress bar.
//!
//! What cannot be written (a closed pipe) is dropped: there is nobody left to tell.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, TermLike};

static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

thread_local! {
    /// Whether this thread is writing: a panic in the middle of it is reported past the lock it holds.
    static WRITING: Cell<bool> = const { Cell::new(false) };
}

/// Writes whole lines, above the bar if there is one.
pub(crate) fn print(text: &str) {
    let write = || {
        let mut error = std::io::stderr().lock();
        let _ = error.write_all(text.as_bytes());
        if !text.ends_with('\n') {
            let _ = error.write_all(b"\n");
        }
        let _ = error.flush();
    };
    if WRITING.replace(true) {
        write();
        return;
    }
    match &*lock() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
    WRITING.set(false);
}

/// Makes way for this bar from now on.
pub(crate) fn show(bar: ProgressBar) {
    *lock() = Some(bar);
}

/// Forgets the bar.
pub(crate) fn hide() {
    *lock() = None;
}

/// Columns of a terminal that does not tell.
const COLUMNS: u16 = 80;
/// Columns left free at the right. A bar as wide as the terminal would send the `^C` that it echoes to the next
/// line, and that line would be cleared in place of the bar's.
const MARGIN: u16 = 8;

/// Standard error as the bar sees it: a little narrower than it is. Written in one piece at each flush.
#[derive(Debug, Default)]
pub(crate) struct Narrow {
    pending: Mutex<String>,
}

impl Narrow {
    fn pending(&self) -> MutexGuard<'_, String> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cursor movement; `by` 0 would move by one.
    fn go(&self, by: usize, direction: char) -> io::Result<()> {
        if by > 0 {
            write!(self.pending(), "\x1b[{by}{direction}").map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        let told = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok().map(|size| size.ws_col);
        told.filter(|columns| *columns > 0).unwrap_or(COLUMNS).saturating_sub(MARGIN).max(1)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.go(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.go(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.go(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.go(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        let mut pending = self.pending();
        pending.push_str(text);
        pending.push('\n');
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.pending().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let text = std::mem::take(&mut *self.pending());
        let mut error = io::stderr().lock();
        error.write_all(text.as_bytes())?;
        error.flush()
    }
}

fn lock() -> MutexGuard<'static, Option<ProgressBar>> {
    BAR.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_bar_is_drawn_in_one_piece_and_leaves_room_for_an_echo() {
        let narrow = Narrow::default();
        assert!((1..=u16::MAX - MARGIN).contains(&narrow.width()));
        narrow.clear_line().unwrap();
        narrow.move_cursor_up(0).unwrap();
        narrow.move_cursor_up(2).unwrap();
        narrow.write_line("a").unwrap();
        narrow.write_str("b").unwrap();
        assert_eq!(*narrow.pending(), "\r\x1b[2K\x1b[2Aa\nb");
    }
}
