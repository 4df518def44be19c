//! A look at what the record log keeps, for tests that end the process at any instant.
//!
//! The hook hears of a record before anybody else is told that it is kept: whatever it noted must be there after a
//! kill. One hook for the whole process; without one it costs a look at one pointer a turn.

use std::sync::OnceLock;

type Hook = Box<dyn Fn(u64, &str) + Send + Sync>;

static HOOK: OnceLock<Hook> = OnceLock::new();

/// Calls `hook` with the number and the wire text of every record that is kept from now on: items, request records, log
/// records and stats, in the order of their numbers within a run. It runs on the collector's thread.
///
/// Answers `false`, and changes nothing, when there is a hook already.
pub fn on_kept(hook: impl Fn(u64, &str) + Send + Sync + 'static) -> bool {
    HOOK.set(Box::new(hook)).is_ok()
}

/// What was appended and is not yet known to be kept.
#[derive(Debug, Default)]
pub(crate) struct Watched(Vec<(u64, String)>);

impl Watched {
    /// Notes a record that was appended, if anybody listens.
    pub(crate) fn note(&mut self, number: u64, text: &str) {
        if HOOK.get().is_some() {
            self.0.push((number, text.to_owned()));
        }
    }

    /// Everything noted is kept.
    pub(crate) fn tell(&mut self) {
        if let Some(hook) = HOOK.get() {
            for (number, text) in self.0.drain(..) {
                hook(number, &text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_hook_nothing_is_remembered() {
        let mut watched = Watched::default();
        if HOOK.get().is_none() {
            watched.note(1, "x");
            assert!(watched.0.is_empty());
        }
        watched.tell();
    }
}
