//! How many pages each host has given, for `HOST_PAGES_LIMIT`.
//!
//! A page counts when it goes out the first time; its retries and the hops on its own host do not. Nothing is kept while
//! there is no limit. The counts are saved with the job, without the pages that are still out: after a crash those go out,
//! and count, again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frontier::Take;
use super::job::RequestId;

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
    /// Pages that are out; as many as the window has room for.
    out: HashMap<RequestId, Out>,
    changed: bool,
}

/// A page that is out.
#[derive(Debug)]
struct Out {
    /// The host it counts for.
    host: Box<str>,
    /// Whether it would count again after a crash: then what is saved does not have it. A retry would not.
    counts_again: bool,
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

    /// Counts a page that goes out, unless the host has given all it may.
    pub(crate) fn take_one(&self, host: &str, id: RequestId) -> bool {
        if !self.has_limit() {
            return true;
        }
        let mut counts = self.counts();
        match counts.of.get_mut(host) {
            Some(count) if *count >= self.limit => return false,
            Some(count) => *count += 1,
            None => _ = counts.of.insert(host.into(), 1),
        }
        counts.is_out(host, id, true);
        true
    }

    /// A page that was counted goes out again.
    pub(crate) fn again(&self, host: &str, id: RequestId) {
        if self.has_limit() {
            self.counts().is_out(host, id, false);
        }
    }

    /// A page that is out goes on to another URL of `host`, which counts if it is none that the page has counted for: the one
    /// it comes from, or `was_first`, the one it began at. False when the host has given all it may.
    pub(crate) fn hop(&self, host: &str, was_first: bool, id: RequestId) -> bool {
        if !self.has_limit() {
            return true;
        }
        let mut counts = self.counts();
        if was_first || counts.out.get(&id).is_some_and(|out| *out.host == *host) {
            counts.is_out(host, id, true);
            return true;
        }
        drop(counts);
        self.take_one(host, id)
    }

    /// A page comes back from `host` that was not fetched there: it will be counted again.
    pub(crate) fn give_back(&self, host: &str, id: RequestId) {
        if !self.has_limit() {
            return;
        }
        let mut counts = self.counts();
        let Some(out) = counts.out.remove(&id) else { return };
        counts.changed = true;
        // One that only was to go on to this host was fetched from the other.
        if *out.host == *host
            && let Some(count) = counts.of.get_mut(host)
        {
            *count = count.saturating_sub(1);
        }
    }

    /// A page is not out any more, and was fetched.
    pub(crate) fn ended(&self, id: RequestId) {
        if self.has_limit() {
            let mut counts = self.counts();
            counts.changed |= counts.out.remove(&id).is_some();
        }
    }

    /// Gives the counts as bytes whenever they have changed.
    pub(crate) fn take(&self) -> Take {
        let counts = self.counts.clone();
        Box::new(move || {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut counts.changed).then(|| saved(&counts))
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

impl Counts {
    fn is_out(&mut self, host: &str, id: RequestId, counts_again: bool) {
        self.changed = true;
        match self.out.get_mut(&id) {
            Some(out) if *out.host == *host => out.counts_again = counts_again,
            _ => _ = self.out.insert(id, Out { host: host.into(), counts_again }),
        }
    }
}

/// The version, then for each host its count, the length of its name, and the name.
fn saved(counts: &Counts) -> Vec<u8> {
    let mut out: HashMap<&str, u64> = HashMap::new();
    for page in counts.out.values().filter(|page| page.counts_again) {
        *out.entry(&page.host).or_default() += 1;
    }
    let mut bytes = vec![VERSION];
    for (host, count) in &counts.of {
        let count = count.saturating_sub(out.get(&**host).copied().unwrap_or_default());
        if count == 0 {
            continue;
        }
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

    fn id(n: u128) -> RequestId {
        RequestId(n)
    }

    /// What another run would know.
    fn next_run(pages: &HostPages) -> HostPages {
        let next = HostPages::new(pages.limit);
        assert!(next.restore(&saved(&pages.counts())));
        next
    }

    #[test]
    fn a_host_gives_as_many_pages_as_it_may_and_what_was_not_fetched_is_given_back() {
        let pages = HostPages::new(2);
        assert!(pages.take_one("a.test", id(1)) && !pages.is_full("a.test") && pages.take_one("a.test", id(2)));
        assert!(pages.is_full("a.test") && !pages.take_one("a.test", id(3)));
        assert!(!pages.is_full("b.test") && pages.take_one("b.test", id(4)));
        pages.give_back("a.test", id(1));
        assert!(pages.take_one("a.test", id(1)) && !pages.take_one("a.test", id(3)));
    }

    #[test]
    fn what_never_counted_gives_nothing_back() {
        let pages = HostPages::new(1);
        assert!(pages.take_one("a.test", id(1)) && !pages.take_one("a.test", id(2)));
        pages.give_back("a.test", id(2));
        pages.give_back("c.test", id(3));
        assert!(pages.is_full("a.test"));
        pages.ended(id(1));
        pages.give_back("a.test", id(1));
        assert!(pages.is_full("a.test"));
    }

    #[test]
    fn a_redirect_counts_once_for_each_host_it_comes_to() {
        let pages = HostPages::new(1);
        assert!(pages.take_one("a.test", id(1)) && pages.hop("www.a.test", false, id(1)));
        assert!(pages.hop("www.a.test", false, id(1)), "from there on it stays");
        assert!(pages.hop("a.test", true, id(1)), "it began there");
        assert!(!pages.hop("a.test", false, id(2)) && !pages.hop("www.a.test", false, id(2)));
    }

    #[test]
    fn a_redirect_that_was_not_followed_gives_back_what_its_target_counted_only() {
        let pages = HostPages::new(1);
        assert!(pages.take_one("a.test", id(1)) && pages.hop("b.test", false, id(1)));
        pages.give_back("b.test", id(1));
        assert!(pages.is_full("a.test") && !pages.is_full("b.test"));
        // It never got as far as counting for its target.
        assert!(pages.take_one("c.test", id(2)));
        pages.give_back("b.test", id(2));
        assert!(pages.is_full("c.test") && !pages.is_full("b.test"));
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let pages = HostPages::new(0);
        assert!((0..1000).all(|n| pages.take_one(&n.to_string(), id(n)) && !pages.is_full(&n.to_string())));
        assert!(pages.hop("a.test", false, id(1)));
        pages.again("a.test", id(2));
        assert!(pages.counts().of.is_empty() && pages.counts().out.is_empty() && pages.take()().is_none());
    }

    #[test]
    fn the_counts_go_on_in_the_next_run() {
        let pages = HostPages::new(2);
        let mut take = pages.take();
        assert!(take().is_none());
        for (n, host) in [(1, "a.test"), (2, "a.test"), (3, "xn--bcher-kva.test")] {
            pages.take_one(host, id(n));
            pages.ended(id(n));
        }
        let bytes = take().unwrap();
        assert!(take().is_none(), "only what changed is written");
        let next = HostPages::new(2);
        assert!(next.restore(&bytes) && next.is_full("a.test") && !next.is_full("xn--bcher-kva.test"));
        assert!(next.take_one("xn--bcher-kva.test", id(4)) && !next.take_one("xn--bcher-kva.test", id(5)));
    }

    #[test]
    fn a_page_that_was_out_when_the_process_was_killed_goes_out_again() {
        let pages = HostPages::new(1);
        assert!(pages.take_one("a.test", id(1)));
        let next = next_run(&pages);
        assert!(next.take_one("a.test", id(1)) && !next.take_one("a.test", id(2)));
        // A retry is known as one, and does not count again: so it is among what is saved.
        pages.ended(id(1));
        pages.again("a.test", id(1));
        assert!(next_run(&pages).is_full("a.test"));
        // On its way to another page of the host it is a new attempt.
        assert!(pages.hop("a.test", false, id(1)));
        assert!(!next_run(&pages).is_full("a.test"));
        pages.ended(id(1));
        assert!(next_run(&pages).is_full("a.test"));
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
