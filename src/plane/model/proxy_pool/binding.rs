//! Mode `bind_identity`: an identity keeps its proxy, and changes it only so often (wire contract, section 23).

use super::{Fitness, ProxyPool, ProxyTraits, busy_until};
use crate::plane::model::Ms;

const DAY: Ms = 86_400_000;
/// How long an identity waits that may not change its proxy any more today.
const SPENT: Ms = 600_000;

/// The policy's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BindPolicy {
    /// A cool-down of this length or less is waited for.
    pub(crate) rebind_tolerance: Ms,
    /// Changes per UTC day; 0: never.
    pub(crate) max_rebinds_per_day: u32,
}

/// Which proxy an identity is bound to on a site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Binding {
    proxy: Option<u32>,
    /// Days since the epoch, and the changes of that day.
    day: u32,
    rebinds: u32,
}

/// What a binding means for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindStep {
    /// The bound proxy is free.
    Use(u32),
    /// The identity is available again at this moment.
    Wait(Ms),
    /// A proxy is to be chosen, not this one, and then bound.
    Choose { except: Option<u32> },
}

impl Default for BindPolicy {
    fn default() -> Self {
        Self { rebind_tolerance: 300_000, max_rebinds_per_day: 3 }
    }
}

impl Binding {
    /// The bound proxy.
    pub(crate) const fn proxy(&self) -> Option<u32> {
        self.proxy
    }

    /// What to do at `now`; `ttl` is the policy's lease time.
    pub(crate) fn step(&self, pool: &ProxyPool, catalogue: &[ProxyTraits], policy: BindPolicy, ttl: Ms, now: Ms) -> BindStep {
        let Some(proxy) = self.proxy else { return BindStep::Choose { except: None } };
        match pool.fitness(proxy, catalogue, now) {
            Fitness::Free => BindStep::Use(proxy),
            Fitness::Full => BindStep::Wait(busy_until(now, ttl)),
            Fitness::Cooling(until) if until - now <= policy.rebind_tolerance => BindStep::Wait(until),
            Fitness::Cooling(_) | Fitness::Inactive if self.rebinds_on(day(now)) >= policy.max_rebinds_per_day => {
                BindStep::Wait(now.saturating_add(SPENT))
            }
            Fitness::Cooling(_) | Fitness::Inactive => BindStep::Choose { except: Some(proxy) },
        }
    }

    /// Binds to `proxy` at `now`. Only a change of proxy counts as one, the first binding does not.
    pub(crate) fn bind(&mut self, proxy: u32, now: Ms) {
        if self.proxy.is_some_and(|old| old != proxy) {
            let today = day(now);
            self.rebinds = self.rebinds_on(today).saturating_add(1);
            self.day = today;
        }
        self.proxy = Some(proxy);
    }

    /// Forgets the proxy, which is another identity's now. The next one is no change of this identity's own.
    pub(crate) fn loosen(&mut self) {
        self.proxy = None;
    }

    const fn rebinds_on(&self, day: u32) -> u32 {
        if self.day == day { self.rebinds } else { 0 }
    }
}

fn day(now: Ms) -> u32 {
    u32::try_from(now / DAY).unwrap_or(u32::MAX)
}
