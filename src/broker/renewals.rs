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
    /// An entry whose lease is gone, has another turn by now or another date is stale and skipped.
    due: BinaryHeap<Reverse<(Instant, u64, LeaseId)>>,
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    tag: Tag,
    turn: u64,
    failures: u32,
    /// When it is to be renewed; `None` while a call to renew it is under way.
    next: Option<Instant>,
    expires_at: Instant,
}

/// A lease to renew now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueLease {
    /// Which.
    pub(super) lease: LeaseId,
    /// Names this renewal: an answer to an earlier one is stale.
    pub(super) turn: u64,
}

/// What has come due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// A renewal.
    Renew(DueLease),
    /// The end of a lease that was not renewed in time; it is forgotten.
    Expired {
        /// Which.
        lease: LeaseId,
        /// For whom it was wanted.
        tag: Tag,
    },
}

impl Renewals {
    /// Wants `lease`, which ends at `expires_at`, renewed at `at`, for `tag`; replaces what was wanted for it before.
    pub(super) fn want(&mut self, lease: LeaseId, tag: Tag, at: Instant, expires_at: Instant) {
        self.turn += 1;
        let at = at.min(expires_at);
        self.wanted.insert(lease.clone(), Wanted { tag, turn: self.turn, failures: 0, next: Some(at), expires_at });
        self.watch(at, self.turn, lease);
    }

    /// Forgets a lease.
    pub(super) fn forget(&mut self, lease: &LeaseId) {
        self.wanted.remove(lease);
    }

    /// What is due next at `now`. A lease to renew is not due again before [`Renewals::renewed`] or
    /// [`Renewals::again`] says when, or it expires.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        loop {
            let at = self.next()?;
            if at > now {
                return None;
            }
            let Reverse((_, turn, lease)) = self.due.pop()?;
            let Some(wanted) = self.wanted.get_mut(&lease).filter(|wanted| wanted.is_due(at, turn)) else { continue };
            if wanted.expires_at <= now {
                let tag = wanted.tag;
                self.wanted.remove(&lease);
                return Some(Due::Expired { lease, tag });
            }
            wanted.next = None;
            let expires_at = wanted.expires_at;
            self.watch(expires_at, turn, lease.clone());
            return Some(Due::Renew(DueLease { lease, turn }));
        }
    }

    /// When the next one is due, or an entry that turns out to be stale.
    #[must_use]
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Tells that a renewal worked, when the next one is due and when the lease now ends; `false` when it is not wanted
    /// any more.
    pub(super) fn renewed(&mut self, due: DueLease, next: Instant, expires_at: Instant) -> bool {
        let DueLease { lease, turn } = due;
        let Some(wanted) = self.wanted.get_mut(&lease).filter(|wanted| wanted.turn == turn) else { return false };
        (wanted.failures, wanted.expires_at) = (0, expires_at);
        self.set_next(next, turn, lease);
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
        self.set_next(at, due.turn, due.lease);
    }

    /// Gives a renewal up; for whom it was wanted, `None` when it is not any more.
    pub(super) fn give_up(&mut self, due: &DueLease) -> Option<Tag> {
        self.is_current(&due.lease, due.turn).then(|| self.wanted.remove(&due.lease))?.map(|wanted| wanted.tag)
    }

    /// Makes what was under way due at `now`: whoever made the calls is gone and their answers with it.
    pub(super) fn recover(&mut self, now: Instant) {
        let lost = self.wanted.iter().filter(|(_, wanted)| wanted.next.is_none());
        let lost: Vec<(LeaseId, u64)> = lost.map(|(lease, wanted)| (lease.clone(), wanted.turn)).collect();
        for (lease, turn) in lost {
            self.again(DueLease { lease, turn }, now);
        }
    }

    fn is_current(&self, lease: &LeaseId, turn: u64) -> bool {
        self.wanted.get(lease).is_some_and(|wanted| wanted.turn == turn)
    }

    fn set_next(&mut self, at: Instant, turn: u64, lease: LeaseId) {
        let Some(wanted) = self.wanted.get_mut(&lease).filter(|wanted| wanted.turn == turn) else { return };
        let at = at.min(wanted.expires_at);
        wanted.next = Some(at);
        self.watch(at, turn, lease);
    }

    fn watch(&mut self, at: Instant, turn: u64, lease: LeaseId) {
        // Nearly every lease is handed back before it is due: stale entries must not pile up until then.
        if self.due.len() >= 4 * self.wanted.len() + 64 {
            let kept = std::mem::take(&mut self.due).into_vec();
            let is_due = |Reverse((at, turn, lease)): &Reverse<(Instant, u64, LeaseId)>| {
                self.wanted.get(lease).is_some_and(|wanted| wanted.is_due(*at, *turn))
            };
            self.due = kept.into_iter().filter(is_due).collect();
        }
        self.due.push(Reverse((at, turn, lease)));
    }
}

impl Wanted {
    /// Whether an entry of `at` and `turn` is still meant.
    fn is_due(&self, at: Instant, turn: u64) -> bool {
        self.turn == turn && (self.next == Some(at) || self.expires_at == at)
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

    fn far(start: Instant) -> Instant {
        start + seconds(9_999)
    }

    fn renew(due: Option<Due>) -> DueLease {
        match due {
            Some(Due::Renew(due)) => due,
            other => panic!("{other:?}"),
        }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn leases_come_due_in_order_and_once() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(2), tag(2), start + seconds(2), far(start));
        renewals.want(lease(1), tag(1), start + seconds(1), far(start));
        assert_eq!(renewals.next(), Some(start + seconds(1)));
        assert_eq!(renewals.due(start), None);
        let first = renew(renewals.due(start + seconds(2)));
        let second = renew(renewals.due(start + seconds(2)));
        assert_eq!((&first.lease, &second.lease), (&lease(1), &lease(2)));
        assert_eq!(renewals.due(start + seconds(9)), None);
        assert!(renewals.renewed(first, start + seconds(5), far(start)));
        assert_eq!(renew(renewals.due(start + seconds(5))).lease, lease(1));
    }

    #[test]
    fn an_answer_for_a_lease_that_was_handed_back_is_stale() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), start, far(start));
        let old = renew(renewals.due(start));
        renewals.want(lease(1), tag(7), start, far(start));
        assert_eq!((renewals.failed(&old), renewals.give_up(&old)), (None, None));
        assert!(!renewals.renewed(old, start, far(start)));
        let new = renew(renewals.due(start));
        assert_eq!((renewals.failed(&new), renewals.failed(&new)), (Some(1), Some(2)));
        assert_eq!(renewals.give_up(&new), Some(tag(7)));
        assert_eq!(renewals.due(start + seconds(99)), None);
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_is_due_again() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), start, far(start));
        renewals.want(lease(2), tag(2), start + seconds(9), far(start));
        let lost = renew(renewals.due(start));
        renewals.recover(start + seconds(1));
        renewals.recover(start + seconds(1));
        assert_eq!(renewals.due(start + seconds(1)), Some(Due::Renew(lost)));
        assert_eq!(renewals.due(start + seconds(1)), None);
    }

    #[test]
    fn a_lease_that_is_not_renewed_in_time_expires_once() {
        let start = Instant::now();
        let end = start + seconds(20);
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), start + seconds(15), end);
        let hanging = renew(renewals.due(start + seconds(15)));
        renewals.want(lease(2), tag(2), start + seconds(15), end);
        let failed = renew(renewals.due(start + seconds(15)));
        assert_eq!(renewals.failed(&failed), Some(1));
        renewals.again(failed, start + seconds(21));
        assert_eq!(renewals.next(), Some(end));
        assert_eq!(renewals.due(end - seconds(1)), None);
        let expired = |n| Some(Due::Expired { lease: lease(n), tag: tag(n) });
        assert_eq!((renewals.due(end), renewals.due(end), renewals.due(end)), (expired(1), expired(2), None));
        assert!(!renewals.renewed(hanging, end, end), "the answer comes too late");
        assert_eq!(renewals.due(far(start)), None);
    }

    #[test]
    fn a_renewed_lease_expires_at_its_new_end() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), start + seconds(15), start + seconds(20));
        let due = renew(renewals.due(start + seconds(15)));
        assert!(renewals.renewed(due, start + seconds(30), start + seconds(35)));
        assert_eq!(renewals.due(start + seconds(20)), None);
        let due = renew(renewals.due(start + seconds(30)));
        assert!(renewals.renewed(due, start + seconds(90), start + seconds(36)), "a next date past the end is the end");
        assert_eq!(renewals.due(start + seconds(36)), Some(Due::Expired { lease: lease(1), tag: tag(1) }));
    }

    #[test]
    fn a_lease_that_is_renewed_for_ever_leaves_little_behind() {
        let mut now = Instant::now();
        let mut renewals = Renewals::default();
        renewals.want(lease(1), tag(1), now, now + seconds(10));
        for _ in 0..10_000 {
            let due = renew(renewals.due(now));
            assert!(renewals.renewed(due, now + seconds(1), now + seconds(1_000)));
            now += seconds(1);
        }
        assert!(renewals.due.len() <= 70, "{}", renewals.due.len());
    }

    #[test]
    fn forgotten_leases_leave_little_behind() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        for n in 0..10_000 {
            renewals.want(lease(n), tag(n), start + seconds(225), start + seconds(300));
            renewals.forget(&lease(n));
        }
        assert!(renewals.due.len() <= 67, "{}", renewals.due.len());
        assert_eq!(renewals.due(start + seconds(300)), None);
    }
}
