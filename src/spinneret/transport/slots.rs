//! Who may make a call now, when there are more calls than connections.
//!
//! Calls wait in their order, with one exception: a few places are kept for those that report, prolong and give back.
//! Behind all that a stalled server lets pile up, reports would be dropped for want of room, and leases would end by
//! themselves while identities are waited for.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::spinneret::procedure::Procedure;

/// One place in so many is kept.
const SHARE: usize = 8;
/// The most places that are kept: the background makes no more calls at a time.
const MOST_KEPT: usize = 32;

/// The places for calls.
#[derive(Debug)]
pub(super) struct Slots {
    open: Semaphore,
    kept: Semaphore,
}

impl Slots {
    /// So many places in all.
    pub(super) fn new(all: usize) -> Self {
        let kept = (all / SHARE).min(MOST_KEPT);
        Self { open: Semaphore::new(all - kept), kept: Semaphore::new(kept) }
    }

    /// A place, at once if there is one.
    pub(super) fn try_take(&self, procedure: Procedure) -> Option<SemaphorePermit<'_>> {
        let open = self.open.try_acquire().ok();
        open.or_else(|| if is_kept_for(procedure) { self.kept.try_acquire().ok() } else { None })
    }

    /// A place, once there is one.
    pub(super) async fn take(&self, procedure: Procedure) -> Option<SemaphorePermit<'_>> {
        // None of the two is ever closed.
        if is_kept_for(procedure) {
            tokio::select! {
                slot = self.open.acquire() => slot.ok(),
                slot = self.kept.acquire() => slot.ok(),
            }
        } else {
            self.open.acquire().await.ok()
        }
    }
}

const fn is_kept_for(procedure: Procedure) -> bool {
    matches!(procedure, Procedure::Report | Procedure::Renew | Procedure::Release)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn one_place_in_eight_is_kept_and_never_more_than_thirty_two() {
        for (all, open) in [(1, 1), (7, 7), (8, 7), (64, 56), (256, 224), (512, 480), (100_000, 99_968)] {
            let slots = Slots::new(all);
            assert_eq!((slots.open.available_permits(), slots.kept.available_permits()), (open, all - open));
        }
    }

    #[test]
    fn calls_that_give_back_do_not_wait_behind_those_that_acquire() {
        let slots = Slots::new(8);
        let acquiring: Vec<_> = (0..7).map(|_| slots.try_take(Procedure::Acquire).unwrap()).collect();
        let mut waiting = Box::pin(slots.take(Procedure::Acquire));
        assert!(waiting.as_mut().now_or_never().is_none());
        let reporting = slots.try_take(Procedure::Report).unwrap();
        assert!(slots.try_take(Procedure::Release).is_none());
        let mut renewing = Box::pin(slots.take(Procedure::Renew));
        assert!(renewing.as_mut().now_or_never().is_none());
        drop(reporting);
        assert!(waiting.as_mut().now_or_never().is_none(), "what is kept is no place for it");
        let renewing = renewing.now_or_never().unwrap();
        drop(acquiring);
        assert!(waiting.now_or_never().is_some() && renewing.is_some());
    }
}
