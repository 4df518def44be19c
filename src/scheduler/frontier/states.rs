//! Small states of other parts of the job that are kept with the frontier: counters, cookies.
//!
//! Four times a second those that changed are written with the next commit, large ones less often, and all of them at
//! the end. What happened between the last time and a crash is lost for them; it never is for requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::scheduler::store::{Store, StoreError};

/// Time between two looks: as much of them a crash may lose.
const EVERY: Duration = Duration::from_millis(250);

/// A state of this many bytes is written half as often, one of twice as many a third as often.
const LARGE: usize = 256 * 1024;

/// Time between two looks for gates that are over.
const GATES: Duration = Duration::from_secs(60);

/// Gives a state as bytes that carry their own version; `None` when it is as it was the last time.
pub(crate) type Take = Box<dyn FnMut() -> Option<Vec<u8>> + Send>;

/// The states that are kept.
#[derive(Default)]
pub(super) struct States {
    kept: Vec<Kept>,
    next: Option<Instant>,
    gates: Option<Instant>,
}

struct Kept {
    name: &'static str,
    take: Take,
    due: Instant,
}

impl States {
    /// Keeps a state from now on.
    pub(super) fn keep(&mut self, name: &'static str, take: Take, now: Instant) {
        self.kept.push(Kept { name, take, due: now + EVERY });
        self.next.get_or_insert(now + EVERY);
    }

    /// Whether a state of this name is kept.
    pub(super) fn keeps(&self, name: &str) -> bool {
        self.kept.iter().any(|kept| kept.name == name)
    }

    /// When to look again.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Puts what changed into the store, as far as its time has come. Whether gates that are over are to be forgotten.
    pub(super) fn save_due(&mut self, store: &mut dyn Store, now: Instant) -> Result<bool, StoreError> {
        if self.next.is_none_or(|next| next > now) {
            return Ok(false);
        }
        self.next = Some(now + EVERY);
        for kept in self.kept.iter_mut().filter(|kept| kept.due <= now) {
            let bytes = kept.save(store)?;
            kept.due = now + EVERY * u32::try_from(1 + bytes / LARGE).unwrap_or(u32::MAX);
        }
        let gates = self.gates.is_none_or(|at| at <= now);
        if gates {
            self.gates = Some(now + GATES);
        }
        Ok(gates)
    }

    /// Puts everything that changed into the store.
    pub(super) fn save_all(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        self.kept.iter_mut().try_for_each(|kept| kept.save(store).map(drop))
    }
}

impl Kept {
    /// Bytes written.
    fn save(&mut self, store: &mut dyn Store) -> Result<usize, StoreError> {
        let Some(bytes) = (self.take)() else { return Ok(0) };
        let count = bytes.len();
        store.save(self.name, bytes)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scheduler::MemoryStore;

    #[test]
    fn a_state_is_written_when_it_changed_a_large_one_less_often_and_all_at_the_end() {
        let mut now = Instant::now();
        let mut store = MemoryStore::new(usize::MAX);
        let mut states = States::default();
        let (mut small, mut large) = (0_u8, 0_u8);
        states.keep(
            "counters",
            Box::new(move || {
                small += 1;
                (small != 2).then(|| vec![small])
            }),
            now,
        );
        states.keep(
            "cookies",
            Box::new(move || {
                large += 1;
                Some(vec![large; 2 * LARGE])
            }),
            now,
        );
        let mut seen = Vec::new();
        for _ in 0..7 {
            now += EVERY / 2;
            states.save_due(&mut store, now).unwrap();
            let first = |name| store.saved(name).unwrap().and_then(|bytes| bytes.first().copied());
            seen.push((first("counters"), first("cookies")));
        }
        // Looked at after one, two and three such times; the second time the small one had not changed, and the large one waits.
        let (none, first, third) = ((None, None), (Some(1), Some(1)), (Some(3), Some(1)));
        assert_eq!(seen, [none, first, first, first, first, third, third]);
        states.save_all(&mut store).unwrap();
        assert_eq!(store.saved("cookies").unwrap().unwrap().first(), Some(&2));
    }
}
