//! How many pages each host has given, for `HOST_PAGES_LIMIT`.
//!
//! A page counts when it goes out the first time; its retries and the hops on its own host do not. Nothing is kept while
//! there is no limit. The counts are saved with the job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frontier::Take;

/// The name the counts are saved under.
pub(crate) const HOST_PAGES: &str = "host_pages";

/// First byte of what is saved.
const VERSION: u8 = 1;

/// The counts; copies share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostPages {
    /// 0 for none.
    limit: u64,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    of: HashMap<Box<str>, u64>,
    changed: bool,
}

impl HostPages {
    /// At most so many pages of each host; 0 for no limit.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Whether there is a limit at all.
    pub(crate) const fn has_limit(&self) -> bool {
        self.limit > 0
    }

    /// Whether a host has given all it may.
    pub(crate) fn is_full(&self, host: &str) -> bool {
        self.has_limit() && self.counts().of.get(host).is_some_and(|count| *count >= self.limit)
    }

    /// Counts a page, unless the host has given all it may.
    pub(crate) fn take_one(&self, host: &str) -> bool {
        if !self.has_limit() {
            return true;
        }
        let mut counts = self.counts();
        let Some(count) = counts.of.get_mut(host) else {
            counts.of.insert(host.into(), 1);
            counts.changed = true;
            return true;
        };
        if *count >= self.limit {
            return false;
        }
        *count += 1;
        counts.changed = true;
        true
    }

    /// A page that was counted was not fetched after all.
    pub(crate) fn give_back(&self, host: &str) {
        if !self.has_limit() {
            return;
        }
        let mut counts = self.counts();
        if let Some(count) = counts.of.get_mut(host) {
            *count = count.saturating_sub(1);
            counts.changed = true;
        }
    }

    /// Gives the counts as bytes whenever they have changed.
    pub(crate) fn take(&self) -> Take {
        let counts = self.counts.clone();
        Box::new(move || {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut counts.changed).then(|| saved(&counts.of))
        })
    }

    /// Goes on from what an earlier run saved; what cannot be read is left out. Whether all of it could.
    pub(crate) fn restore(&self, saved: &[u8]) -> bool {
        let Some((VERSION, mut rest)) = saved.split_first().map(|(version, rest)| (*version, rest)) else { return false };
        let mut counts = self.counts();
        while let Some((count, host, after)) = entry(rest) {
            counts.of.insert(host.into(), count);
            rest = after;
        }
        rest.is_empty()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version, then for each host its count, the length of its name, and the name.
fn saved(counts: &HashMap<Box<str>, u64>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for (host, count) in counts {
        // A host of a URL may be longer only where no DNS knows it.
        let Ok(len) = u16::try_from(host.len()) else { continue };
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(host.as_bytes());
    }
    bytes
}

fn entry(bytes: &[u8]) -> Option<(u64, &str, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let (host, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    Some((u64::from_le_bytes(*count), std::str::from_utf8(host).ok()?, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_host_gives_as_many_pages_as_it_may_and_what_was_not_fetched_is_given_back() {
        let pages = HostPages::new(2);
        assert!(pages.take_one("a.test") && !pages.is_full("a.test") && pages.take_one("a.test"));
        assert!(pages.is_full("a.test") && !pages.take_one("a.test"));
        assert!(!pages.is_full("b.test") && pages.take_one("b.test"));
        pages.give_back("a.test");
        assert!(pages.take_one("a.test") && !pages.take_one("a.test"));
        pages.give_back("c.test");
        assert!(pages.take_one("c.test"));
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let pages = HostPages::new(0);
        assert!((0..1000).all(|n| pages.take_one(&n.to_string()) && !pages.is_full(&n.to_string())));
        assert!(pages.counts().of.is_empty() && pages.take()().is_none());
    }

    #[test]
    fn the_counts_go_on_in_the_next_run() {
        let pages = HostPages::new(2);
        let mut take = pages.take();
        assert!(take().is_none());
        pages.take_one("a.test");
        pages.take_one("a.test");
        pages.take_one("xn--bcher-kva.test");
        let bytes = take().unwrap();
        assert!(take().is_none(), "only what changed is written");
        let next = HostPages::new(2);
        assert!(next.restore(&bytes) && next.is_full("a.test") && !next.is_full("xn--bcher-kva.test"));
        assert!(next.take_one("xn--bcher-kva.test") && !next.take_one("xn--bcher-kva.test"));
    }

    #[test]
    fn the_form_of_saved_counts_does_not_change_and_a_torn_one_gives_what_it_has() {
        let bytes = b"\x01\x02\0\0\0\0\0\0\0\x01\0a\x03\0\0\0\0\0\0\0\x01\0b";
        let pages = HostPages::new(3);
        assert!(pages.restore(bytes) && pages.is_full("b") && !pages.is_full("a"));
        for cut in 1..bytes.len() {
            let pages = HostPages::new(3);
            assert_eq!(pages.restore(bytes.get(..cut).unwrap()), cut == 1 || cut == 12, "{cut}");
        }
        assert!(!HostPages::new(3).restore(b"") && !HostPages::new(3).restore(b"\x02"));
    }
}
