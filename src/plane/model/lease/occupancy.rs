//! What its active leases take from an identity: places under a limit, or all of it (wire contract, sections 21.2 and 22).

use crate::plane::model::Ms;
use crate::plane::model::strategy::Standing;

/// Somebody at a limit is asked again after this at the latest.
const BUSY: Ms = 5_000;

/// The active leases of one identity, in all groups of its site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Occupancy {
    active: u32,
    exclusive_until: Ms,
}

impl Occupancy {
    /// How many leases are active.
    pub(crate) const fn active(&self) -> u32 {
        self.active
    }

    /// Until when a lease has the identity for itself; 0 when none has.
    pub(crate) const fn exclusive_until(&self) -> Ms {
        if self.active > 0 { self.exclusive_until } else { 0 }
    }

    /// A lease begins; `concurrent` is the group's `max_concurrent_leases`: with 1 the lease is exclusive.
    pub(crate) const fn begin(&mut self, concurrent: u32, expires: Ms) {
        self.active = self.active.saturating_add(1);
        self.prolong(concurrent, expires);
    }

    /// A lease lasts longer.
    pub(crate) const fn prolong(&mut self, concurrent: u32, expires: Ms) {
        if concurrent <= 1 && expires > self.exclusive_until {
            self.exclusive_until = expires;
        }
    }

    /// A lease has ended.
    pub(crate) const fn end(&mut self) {
        self.active = self.active.saturating_sub(1);
        if self.active == 0 {
            self.exclusive_until = 0;
        }
    }
}

/// How many leases an identity of this standing may have: `concurrent` is the group's `max_concurrent_leases`, `probe` the
/// policy's `probe.max_leases`.
pub(crate) const fn lease_limit(standing: Standing, concurrent: u32, probe: u32) -> u32 {
    match standing {
        Standing::Pending if probe < concurrent => probe,
        Standing::Pending | Standing::Active => concurrent,
    }
}

/// When somebody who is at a limit now is asked again; `ttl` is the policy's lease time.
pub(crate) const fn busy_until(now: Ms, ttl: Ms) -> Ms {
    now.saturating_add(if ttl < BUSY { ttl } else { BUSY })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b136_an_exclusive_lease_keeps_the_identity_to_itself_until_it_ends() {
        let mut identity = Occupancy::default();
        identity.begin(1, 120_000);
        assert_eq!((identity.active(), identity.exclusive_until()), (1, 120_000));
        identity.prolong(1, 220_000);
        identity.prolong(1, 150_000);
        assert_eq!(identity.exclusive_until(), 220_000);
        identity.end();
        assert_eq!(identity, Occupancy::default());
        identity.end();
        assert_eq!(identity.active(), 0);
    }

    #[test]
    fn b136_three_leases_fit_under_a_limit_of_three_and_two_on_a_pending_identity() {
        let fit = |standing, concurrent, probe| {
            let mut identity = Occupancy::default();
            while identity.active() < lease_limit(standing, concurrent, probe) {
                identity.begin(concurrent, 120_000);
            }
            assert_eq!(identity.exclusive_until(), if concurrent == 1 { 120_000 } else { 0 });
            identity.active()
        };
        assert_eq!(fit(Standing::Active, 3, 2), 3);
        assert_eq!(fit(Standing::Pending, 3, 2), 2);
        assert_eq!(fit(Standing::Pending, 1, 2), 1);
        assert_eq!(fit(Standing::Active, 1, 2), 1);
    }

    #[test]
    fn whoever_is_full_is_asked_again_after_five_seconds_at_most() {
        assert_eq!(busy_until(1_000, 120_000), 6_000);
        assert_eq!(busy_until(1_000, 5_000), 6_000);
        assert_eq!(busy_until(1_000, 2_000), 3_000);
    }
}
