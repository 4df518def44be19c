//! What is still to be done for leases that are over: the queue of the releaser, without a clock or a call of its own.
//!
//! Its bound: one errand per lease, and none outlives its lease by more than one attempt, so there are never more than
//! the server has granted and not yet taken back. Beyond [`MOST`] the oldest is given up, and that is said aloud.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::spinneret::messages::Report;

/// The most errands. A node has that many leases at once only when something else is wrong.
pub(super) const MOST: usize = 100_000;

/// How long an errand is tried when the end of its lease is unknown.
const UNKNOWN: Duration = Duration::from_secs(5 * 60);

/// One thing to do.
#[derive(Debug, Clone)]
pub(super) struct Errand {
    /// What makes it one: the id of the lease, or of the report.
    key: Arc<str>,
    pub(super) lease_id: Arc<str>,
    pub(super) what: What,
    /// The end of the lease: nobody needs it afterwards.
    until: Instant,
    pub(super) failures: u32,
}

/// What it is.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// Give the lease back by a call.
    Release,
    /// Deliver its last report, which gives it back.
    Deliver(Arc<Report>),
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// Do this.
    Do(Errand),
    /// Nothing before this moment.
    Rest(Instant),
    /// Nothing until something is added or settled.
    Nothing,
}

/// The errands of a client.
#[derive(Debug, Default)]
pub(super) struct Errands {
    /// All of them: ready, resting or under way.
    known: HashSet<Arc<str>>,
    ready: VecDeque<Errand>,
    /// Those that failed, by the moment of their next attempt.
    resting: BTreeMap<(Instant, u64), Errand>,
    under_way: Vec<Errand>,
    rests: u64,
}

impl Errand {
    pub(super) fn release(lease_id: &str, ends: Option<Instant>, now: Instant) -> Self {
        let key: Arc<str> = lease_id.into();
        Self { lease_id: Arc::clone(&key), key, what: What::Release, until: ends.unwrap_or(now + UNKNOWN), failures: 0 }
    }

    pub(super) fn deliver(report: Report, ends: Option<Instant>, now: Instant) -> Self {
        let (key, lease_id) = (report.report_id.as_str().into(), report.lease_id.as_str().into());
        let what = What::Deliver(Arc::new(report));
        Self { key, lease_id, what, until: ends.unwrap_or(now + UNKNOWN), failures: 0 }
    }

    /// The call that does what a report could not.
    pub(super) fn instead(&self) -> Self {
        let key = Arc::clone(&self.lease_id);
        Self { key: Arc::clone(&key), lease_id: key, what: What::Release, until: self.until, failures: 0 }
    }

    /// Whether another attempt after this wait comes before the end of the lease.
    pub(super) fn has_time(&self, wait: Duration, now: Instant) -> bool {
        now + wait < self.until
    }
}

impl Errands {
    /// Takes an errand that is not known yet; answers one that had to be given up for it.
    pub(super) fn add(&mut self, errand: Errand) -> Option<Errand> {
        if !self.known.insert(Arc::clone(&errand.key)) {
            return None;
        }
        self.ready.push_back(errand);
        if self.known.len() <= MOST {
            return None;
        }
        let oldest = self.resting.pop_first().map(|(_, errand)| errand).or_else(|| self.ready.pop_front())?;
        self.known.remove(&oldest.key);
        Some(oldest)
    }

    /// What to do now; what is handed out is under way until it is settled.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        while let Some(entry) = self.resting.first_entry().filter(|entry| entry.key().0 <= now) {
            self.ready.push_back(entry.remove());
        }
        if let Some(errand) = self.ready.pop_front() {
            self.under_way.push(errand.clone());
            return Next::Do(errand);
        }
        self.resting.first_key_value().map_or(Next::Nothing, |((at, _), _)| Next::Rest(*at))
    }

    /// It is done, or given up.
    pub(super) fn settle(&mut self, errand: &Errand) {
        self.under_way.retain(|other| other.key != errand.key);
        self.known.remove(&errand.key);
    }

    /// It failed and is tried again at this moment.
    pub(super) fn rest(&mut self, mut errand: Errand, until: Instant) {
        self.under_way.retain(|other| other.key != errand.key);
        errand.failures = errand.failures.saturating_add(1);
        self.rests += 1;
        self.resting.insert((until, self.rests), errand);
    }

    /// Nobody is at work any more: what was under way is to be done again, first of all.
    pub(super) fn recall(&mut self) {
        for errand in self.under_way.drain(..).rev() {
            self.ready.push_front(errand);
        }
    }

    /// Ends every rest.
    pub(super) fn wake(&mut self) {
        self.ready.extend(std::mem::take(&mut self.resting).into_values());
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn taken(errands: &mut Errands, now: Instant) -> Errand {
        match errands.next(now) {
            Next::Do(errand) => errand,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lease_has_one_errand_however_often_it_is_asked_for() {
        let now = Instant::now();
        let mut errands = Errands::default();
        for n in 0..3_000 {
            assert!(errands.add(Errand::release(&format!("lse_{}", n % 7), None, now)).is_none());
        }
        assert_eq!(errands.len(), 7);
        let errand = taken(&mut errands, now);
        assert!(errands.add(errand.clone()).is_none());
        assert_eq!(errands.len(), 7, "one that is under way counts");
        errands.rest(errand.clone(), now);
        assert!(errands.add(errand.clone()).is_none());
        assert_eq!(errands.len(), 7, "one that rests counts");
        errands.settle(&errand);
        assert_eq!(errands.len(), 6);
    }

    #[test]
    fn beyond_the_bound_the_oldest_is_given_up_and_handed_back() {
        let now = Instant::now();
        let mut errands = Errands::default();
        for n in 0..MOST {
            assert!(errands.add(Errand::release(&n.to_string(), None, now)).is_none());
        }
        assert_eq!(&*errands.add(Errand::release("more", None, now)).unwrap().lease_id, "0");
        assert_eq!(errands.len(), MOST);
        let failed = taken(&mut errands, now);
        errands.rest(failed, now + UNKNOWN);
        assert_eq!(&*errands.add(Errand::release("still more", None, now)).unwrap().lease_id, "1");
        assert_eq!(errands.len(), MOST);
    }

    #[test]
    fn rests_are_kept_and_can_be_ended() {
        let now = Instant::now();
        let mut errands = Errands::default();
        errands.add(Errand::release("a", None, now));
        let errand = taken(&mut errands, now);
        let later = now + Duration::from_secs(3);
        errands.rest(errand, later);
        assert!(matches!(errands.next(now), Next::Rest(at) if at == later));
        assert_eq!(taken(&mut errands, later).failures, 1);
        errands.recall();
        let errand = taken(&mut errands, now);
        errands.rest(errand, later);
        errands.wake();
        assert_eq!(taken(&mut errands, now).failures, 2);
    }

    #[test]
    fn what_was_under_way_is_done_again_in_its_order() {
        let now = Instant::now();
        let mut errands = Errands::default();
        for id in ["a", "b", "c"] {
            errands.add(Errand::release(id, None, now));
        }
        taken(&mut errands, now);
        taken(&mut errands, now);
        errands.recall();
        let order: Vec<Arc<str>> = (0..3).map(|_| taken(&mut errands, now).lease_id).collect();
        assert_eq!(order, ["a".into(), "b".into(), Arc::from("c")]);
    }
}
