//! Renewals: which leases are to be renewed, and when. Pure; renews nothing itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tokio::time::Instant;

use crate::engine::ticket::Tag;
use crate::plane::LeaseId;

/// Every lease the engine wants kept alive.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    wanted: HashMap<LeaseId, Wanted>,
    /// An entry whose lease is gone or has another turn by now is stale and skipped.
    due: BinaryHeap<Reverse<(Instant, u64, LeaseId)>>,
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    tag: Tag,
    turn: u64,
    failures: u32,
    /// A call to renew it is under way.
    calling: bool,
}

/// A lease to renew now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueLease {
    /// Which.
    pub(super) lease: LeaseId,
    /// Names this renewal: an answer to an earlier one is stale.
    pub(super) turn: u64,
}

impl Renewals {
    /// Wants `lease` renewed at `at`, for `tag`; replaces what was wanted for it before.
    pub(super) fn want(&mut self, lease: LeaseId, tag: Tag, at: Instant) {
        self.turn += 1;
        self.wanted.insert(lease.clone(), Wanted { tag, turn: self.turn, failures: 0, calling: false });
        self.watch(at, self.turn, lease);
    }

    /// Forgets a lease.
    pub(super) fn forget(&mut self, lease: &LeaseId) {
        self.wanted.remove(lease);
    }

    /// The next lease that is due at `now`; it is not due again before [`Renewals::renewed`] or
    /// [`Renewals::failed`] says when.
    pub(super) fn due(&mut self, now: Instant) -> Option<DueLease> {
        loop {
            let at = self.next()?;
            if at > now {
                return None;
            }
            let Reverse((_, turn, lease)) = self.due.pop()?;
            if let Some(wanted) = self.wanted.get_mut(&lease).filter(|wanted| wanted.turn == turn) {
                wanted.calling = true;
                return Some(DueLease { lease, turn });
            }
        }
    }

    /// When the next one is due, or an entry that turns out to be stale.
    #[must_use]
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Tells that a renewal worked and when the next one is due; `false` when it is not wanted any more.
    pub(super) fn renewed(&mut self, due: DueLease, next: Instant) -> bool {
        let DueLease { lease, turn } = due;
        match self.wanted.get_mut(&lease).filter(|wanted| wanted.turn == turn) {
            Some(wanted) => (wanted.failures, wanted.calling) = (0, false),
            None => return false,
        }
        self.watch(next, turn, lease);
        true
    }

    /// Tells that a renewal failed; the number of failures in a row, `None` when it is not wanted any more.
    pub(super) fn failed(&mut self, due: &DueLease) -> Option<u32> {
        let wanted = self.wanted.get_mut(&due.lease).filter(|wanted| wanted.turn == due.turn)?;
        wanted.failures += 1;
        Some(wanted.failures)
    }

    /// Tries a failed renewal again at `at`.
    pub(super) fn again(&mut self, due: DueLease, at: Instant) {
        if let Some(wanted) = self.wanted.get_mut(&due.lease) {
            wanted.calling = false;
        }
        self.watch(at, due.turn, due.lease);
    }

    /// Gives a renewal up; for whom it was wanted, `None` when it is not any more.
    pub(super) fn give_up(&mut self, due: &DueLease) -> Option<Tag> {
        self.is_current(&due.lease, due.turn).then(|| self.wanted.remove(&due.lease))?.map(|wanted| wanted.tag)
    }

    /// Makes what was under way due at `now`: whoever made the calls is gone and their answers with it.
    pub(super) fn recover(&mut self, now: Instant) {
        let lost = self.wanted.iter().filter(|(_, wanted)| wanted.calling);
        let lost: Vec<(LeaseId, u64)> = lost.map(|(lease, wanted)| (lease.clone(), wanted.turn)).collect();
        for (lease, turn) in lost {
            self.again(DueLease { lease, turn }, now);
        }
    }

    fn is_current(&self, lease: &LeaseId, turn: u64) -> bool {
        self.wanted.get(lease).is_some_and(|wanted| wanted.turn == turn)
    }

    fn watch(&mut self, at: Instant, turn: u64, lease: LeaseId) {
        // Nearly every lease is handed back before it is due: stale entries must not pile up until then.
        if self.due.len() >= 2 * self.wanted.len() + 64 {
            let kept = std::mem::take(&mut self.due).into_vec();
            self.due = kept.into_iter().filter(|Reverse((_, turn, lease))| self.is_current(lease, *turn)).collect();
        }
        self.due.push(Reverse((at, turn, lease)));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::time::Duration;

    use super::*;

    fn lease(n: u64) -> LeaseId {
        LeaseId(format!("lse_{n}").into())
    }

    fn tag(ticket: u64) -> Tag {
        Tag { ticket, epoch: 1 }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn leases_come_due_in_order_and_once() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(2), tag(2), start + seconds(2));
        renewals.want(lease(1), tag(1), start + seconds(1));
        assert_eq!(renewals.next(), Some(start + seconds(1)));
        assert_eq!(renewals.due(start), None);
        let first = renewals.due(start + seconds(2)).unwrap();
        let second = renewals.due(start + seconds(2)).unwrap();
        assert_eq!((&first.lease, &second.lease), (&lease(1), &lease(2)));
        assert_eq!(renewals.due(start + seconds(9)), None);
        assert!(renewals.renewed(first, start + seconds(5)));
        assert_eq!(renewals.due(start + seconds(5)).unwrap().lease, lease(1));
    }

    #[test]
    fn an_answer_for_a_lease_that_was_handed_back_is_stale() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), start);
        let old = renewals.due(start).unwrap();
        renewals.want(lease(1), tag(7), start);
        assert_eq!((renewals.failed(&old), renewals.give_up(&old)), (None, None));
        assert!(!renewals.renewed(old, start));
        let new = renewals.due(start).unwrap();
        assert_eq!((renewals.failed(&new), renewals.failed(&new)), (Some(1), Some(2)));
        assert_eq!(renewals.give_up(&new), Some(tag(7)));
        assert_eq!(renewals.due(start + seconds(99)), None);
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_is_due_again() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), start);
        renewals.want(lease(2), tag(2), start + seconds(9));
        let lost = renewals.due(start).unwrap();
        renewals.recover(start + seconds(1));
        renewals.recover(start + seconds(1));
        assert_eq!(renewals.due(start + seconds(1)), Some(lost));
        assert_eq!(renewals.due(start + seconds(1)), None);
    }

    #[test]
    fn forgotten_leases_leave_little_behind() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        for n in 0..10_000 {
            renewals.want(lease(n), tag(n), start + seconds(225));
            renewals.forget(&lease(n));
        }
        assert!(renewals.due.len() <= 67, "{}", renewals.due.len());
        assert_eq!(renewals.due(start + seconds(300)), None);
    }
}
