//! The proxies of a site: which one goes with a lease (wire contract, section 23).
//!
//! What is known of a proxy everywhere stands in the caller's catalogue, by key; here stand the site's leases and cool-downs.
//! Scores, URLs and session users are elsewhere.

mod binding;
mod due;
mod filter;

use self::due::Due;
use super::Ms;
use super::lease::busy_until;
use super::strategy::{draw, score_weight};
use crate::dice::Dice;

pub(crate) use binding::{BindPolicy, BindStep, Binding};
pub(crate) use filter::{ProxyFilter, ProxyTraits, Symbol};

/// Proxies looked at together.
const WINDOW: usize = 16;
/// Windows looked at for one lease, at most.
const WINDOWS: usize = 3;

/// The proxies of one site.
#[derive(Debug, Default)]
pub(crate) struct ProxyPool {
    due: Due,
    states: Vec<ProxyState>,
}

/// A proxy as the site sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProxyState {
    leases: u32,
    cooldown: Ms,
}

/// For whom a proxy is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxyWish<'a> {
    pub(crate) filter: &'a ProxyFilter,
    /// The identity's region.
    pub(crate) region: Symbol,
    /// Not this one: it is being replaced.
    pub(crate) except: Option<u32>,
    /// The policy's lease time.
    pub(crate) ttl: Ms,
}

/// Whether a proxy can take a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fitness {
    Free,
    /// As many leases as it takes.
    Full,
    /// Until this moment.
    Cooling(Ms),
    Inactive,
}

impl ProxyPool {
    /// Lets `key` take part (again): a new proxy, or one that became active, or whose cool-down was lifted.
    pub(crate) fn admit(&mut self, key: u32, now: Ms) {
        self.state_mut(key);
        self.due.set(key, now, now);
    }

    /// Takes `key` out until it is admitted again; its leases and its cool-down stay.
    pub(crate) fn dismiss(&mut self, key: u32) {
        self.due.remove(key);
    }

    /// Cools `key` down on this site until `until`, or lifts that with a moment that is over.
    pub(crate) fn cool(&mut self, key: u32, until: Ms, now: Ms) {
        if let Some(state) = self.state_mut(key) {
            state.cooldown = until;
        }
        if self.due.contains(key) {
            self.due.set(key, until, now);
        }
    }

    /// Until when `key` cools down on this site.
    pub(crate) fn cooldown(&self, key: u32) -> Ms {
        self.state(key).cooldown
    }

    /// How many leases of this site go through `key`.
    #[cfg(test)]
    pub(crate) fn leases(&self, key: u32) -> u32 {
        self.state(key).leases
    }

    /// A lease through `key` begins.
    pub(crate) fn begin(&mut self, key: u32) {
        if let Some(state) = self.state_mut(key) {
            state.leases = state.leases.saturating_add(1);
        }
    }

    /// A lease through `key` has ended: whoever was full is due again as soon as it does not cool down.
    pub(crate) fn end(&mut self, key: u32, now: Ms) {
        let Some(state) = self.state_mut(key) else { return };
        state.leases = state.leases.saturating_sub(1);
        let until = state.cooldown;
        if self.due.waits(key) {
            self.due.set(key, until, now);
        }
    }

    /// Chooses a proxy at `now`: from the first window of due ones that has a candidate, by weight. Inactive ones leave until
    /// they are admitted again, full and cooling ones are looked at later. `score` is a proxy's score on this site, decayed.
    pub(crate) fn choose(
        &mut self,
        catalogue: &[ProxyTraits],
        wish: ProxyWish<'_>,
        score: impl Fn(u32) -> f64,
        now: Ms,
        dice: &mut Dice,
    ) -> Option<u32> {
        self.due.advance(now);
        let ready = self.due.ready();
        // Beyond what the windows hold, each lease begins somewhere else.
        let first = if ready.len() > WINDOW * WINDOWS { dice.roll() as usize % ready.len() } else { 0 };
        let (before, from) = ready.split_at_checked(first)?;
        // Copied, because what is seen may leave the list.
        let mut seen = [0_u32; WINDOW * WINDOWS];
        let mut many = 0;
        for (place, key) in seen.iter_mut().zip(from.iter().chain(before)) {
            *place = *key;
            many += 1;
        }
        let seen = seen.get(..many).unwrap_or_default();
        seen.chunks(WINDOW).find_map(|window| self.choose_of(window, catalogue, wish, &score, now, dice))
    }

    fn choose_of(
        &mut self,
        window: &[u32],
        catalogue: &[ProxyTraits],
        wish: ProxyWish<'_>,
        score: impl Fn(u32) -> f64,
        now: Ms,
        dice: &mut Dice,
    ) -> Option<u32> {
        let mut candidates = [(0_u32, 0.0_f64); WINDOW];
        let mut many = 0;
        for key in window {
            match self.fitness(*key, catalogue, now) {
                Fitness::Inactive => self.due.remove(*key),
                Fitness::Cooling(until) => self.due.set(*key, until, now),
                Fitness::Full => self.due.set(*key, busy_until(now, wish.ttl), now),
                Fitness::Free => {
                    let fits = catalogue.get(*key as usize).is_some_and(|traits| wish.filter.admits(traits, wish.region));
                    if fits
                        && wish.except != Some(*key)
                        && let Some(place) = candidates.get_mut(many)
                    {
                        *place = (*key, score_weight(score(*key)));
                        many += 1;
                    }
                }
            }
        }
        let candidates = candidates.get(..many)?;
        let place = draw(candidates.iter().map(|(_, weight)| *weight), dice)?;
        candidates.get(place).map(|(key, _)| *key)
    }

    fn fitness(&self, key: u32, catalogue: &[ProxyTraits], now: Ms) -> Fitness {
        let Some(traits) = catalogue.get(key as usize).filter(|traits| traits.active) else { return Fitness::Inactive };
        let state = self.state(key);
        let cooldown = state.cooldown.max(traits.cooldown);
        if cooldown > now {
            Fitness::Cooling(cooldown)
        } else if state.leases >= traits.max_concurrency {
            Fitness::Full
        } else {
            Fitness::Free
        }
    }

    fn state(&self, key: u32) -> ProxyState {
        self.states.get(key as usize).copied().unwrap_or_default()
    }

    fn state_mut(&mut self, key: u32) -> Option<&mut ProxyState> {
        if self.states.len() <= key as usize {
            self.states.resize(key as usize + 1, ProxyState::default());
        }
        self.states.get_mut(key as usize)
    }
}

#[cfg(test)]
mod tests;
