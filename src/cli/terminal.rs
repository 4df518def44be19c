//! Standard error with one writer at a time: log lines and notices never tear the progress bar.
//!
//! What cannot be written (a closed pipe) is dropped: there is nobody left to tell.

use std::cell::Cell;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

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

fn lock() -> MutexGuard<'static, Option<ProgressBar>> {
    BAR.lock().unwrap_or_else(PoisonError::into_inner)
}
