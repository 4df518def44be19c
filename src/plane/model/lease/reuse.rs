//! The rest between two leases of an identity: the reuse interval (wire contract, sections 21 and 22).

use crate::plane::model::Ms;

/// From which moment an identity rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReuseAnchor {
    #[default]
    Released,
    Acquired,
}

/// Where it rests; the caller has a moment for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReuseScope {
    #[default]
    EndpointGroup,
    Site,
}

/// The rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reuse {
    /// 0: no rest.
    pub(crate) interval: Ms,
    pub(crate) anchor: ReuseAnchor,
    pub(crate) scope: ReuseScope,
}

/// What an acquire did to a moment of rest, to be undone if the lease is aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReuseMark {
    before: Ms,
    after: Ms,
}

impl Reuse {
    /// A lease begins at `now`; moves `until` when the rest counts from here.
    pub(crate) fn begin(&self, until: &mut Ms, now: Ms) -> ReuseMark {
        let before = *until;
        if self.anchor == ReuseAnchor::Acquired {
            self.rest(until, now);
        }
        ReuseMark { before, after: *until }
    }

    /// A lease ended at `end`; moves `until` when the rest counts from here.
    pub(crate) fn end(&self, until: &mut Ms, end: Ms) {
        if self.anchor == ReuseAnchor::Released {
            self.rest(until, end);
        }
    }

    fn rest(&self, until: &mut Ms, from: Ms) {
        if self.interval > 0 {
            *until = (*until).max(from.saturating_add(self.interval));
        }
    }
}

impl ReuseMark {
    /// Takes back what the acquire did, unless somebody has moved `until` since.
    pub(crate) fn undo(self, until: &mut Ms) {
        if *until == self.after {
            *until = self.before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(interval: Ms, anchor: ReuseAnchor) -> Reuse {
        Reuse { interval, anchor, scope: ReuseScope::EndpointGroup }
    }

    #[test]
    fn b140_the_rest_counts_from_its_anchor_only() {
        for (anchor, begun, ended) in [(ReuseAnchor::Acquired, 31_000, 31_000), (ReuseAnchor::Released, 0, 50_000)] {
            let (reuse, mut until) = (every(30_000, anchor), 0);
            reuse.begin(&mut until, 1_000);
            assert_eq!(until, begun);
            reuse.end(&mut until, 20_000);
            assert_eq!(until, ended);
        }
        let mut until = 90_000;
        every(30_000, ReuseAnchor::Acquired).begin(&mut until, 1_000);
        every(0, ReuseAnchor::Released).end(&mut until, 100_000);
        assert_eq!(until, 90_000, "never earlier, and no interval is no rest");
    }

    #[test]
    fn b200_an_aborted_lease_takes_its_anchor_back() {
        let (reuse, mut until) = (every(30_000, ReuseAnchor::Acquired), 500);
        let mark = reuse.begin(&mut until, 1_000);
        assert_eq!(until, 31_000);
        mark.undo(&mut until);
        assert_eq!(until, 500);
        let mark = reuse.begin(&mut until, 1_000);
        reuse.begin(&mut until, 2_000);
        mark.undo(&mut until);
        assert_eq!(until, 32_000, "a later lease's rest stays");
    }
}
