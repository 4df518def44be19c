//! Gates: who has to wait before the control plane is asked again.
//!
//! A temporary refusal holds what it speaks of: a path or an endpoint group, a site, or the whole plane
//! (wire contract, 5). When its time is over the gate lifts step by step: one ask as a probe, then twice as
//! many at once with every grant. Pure: the clock is an argument, the jitter comes from a seed.

mod scope;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub(super) use self::scope::Origin;
use self::scope::{Scope, level, scopes};
use crate::backoff::Backoff;
use crate::plane::{Ask, Refusal, RefusalKind};

/// A gate that lets this many asks be out at once is open.
const OPEN: u32 = 64;

/// What waits behind probes is told to come back after this.
const BEHIND_PROBE: Duration = Duration::from_millis(100);

/// A probe without an answer for so long does not hold the others any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gate nobody asked at for so long after its time is forgotten, its failures with it.
const FORGET: Duration = Duration::from_secs(600);

/// The same for the gate of one path: most paths are asked for once, and there may be very many.
const FORGET_PATH: Duration = Duration::from_secs(60);

/// The least time a refusal holds, whatever its hint: a plane that says "now" is not asked in a loop.
const LEAST: Duration = Duration::from_millis(1);

/// No refusal holds longer: a hint comes from outside and may be any number.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// So many different paths of one site and client, refused one after the other without a grant between them,
/// hold every path of that site and client: an exhausted site is not asked once for each of its pages.
const DRY_PATHS: usize = 8;

/// The gate of all paths holds no longer than this: the next probe may be of a group that has identities.
const PATHS_MOST: Duration = Duration::from_secs(5);

/// Gates in this number are looked through for forgotten ones.
const MANY: usize = 1024;

/// A hold until the plane's configuration says otherwise lasts as good as for ever.
const UNTIL_TOLD: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 10);

/// Whether an ask may go to the plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// Yes; its answer must be told by [`Gates::granted`], [`Gates::refused`] or [`Gates::withdrawn`].
    Go,
    /// No.
    Hold(Hold),
}

/// Why an ask may not go to the plane yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// How long it has to wait at least.
    pub wait: Duration,
    /// The reason of the refusal that holds it.
    pub why: RefusalKind,
    /// What a person reads.
    pub message: String,
    /// The plane's configuration holds it, and not a refusal.
    pub by_runtime: bool,
}

#[derive(Debug)]
struct Gate {
    until: Instant,
    failures: u32,
    why: RefusalKind,
    message: String,
    by_runtime: bool,
    /// How many asks may be out at once after `until`.
    allowed: u32,
    out: u32,
    last: Instant,
}

/// All gates of one plane.
#[derive(Debug)]
pub struct Gates {
    held: HashMap<Scope, Gate>,
    /// Paths refused one after the other, by site and client.
    dry: HashMap<(Arc<str>, Arc<str>), Vec<String>>,
    backoff: Backoff,
    /// The number of gates at which forgotten ones are looked for.
    full: usize,
}

impl Gates {
    /// Open gates, with back-off from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { held: HashMap::new(), dry: HashMap::new(), backoff: Backoff::new(seed), full: MANY }
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn are_open(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether `ask` may go to the plane at `now`.
    pub fn pass(&mut self, ask: &Ask, now: Instant) -> Pass {
        if self.held.is_empty() {
            return Pass::Go;
        }
        let scopes = scopes(ask);
        if let Some(hold) = self.longest(&scopes, |gate| gate.wait(now)) {
            return Pass::Hold(hold);
        }
        for scope in &scopes {
            if let Some(gate) = self.held.get_mut(scope) {
                gate.out = gate.out.saturating_add(1);
                gate.last = now;
            }
        }
        Pass::Go
    }

    /// What holds an ask that had passed and has not been sent: a gate that closed meanwhile.
    #[must_use]
    pub fn holds(&self, ask: &Ask, now: Instant) -> Option<Hold> {
        if self.held.is_empty() {
            return None;
        }
        self.longest(&scopes(ask), |gate| (now < gate.until).then(|| gate.until.duration_since(now)))
    }

    /// Tells that an ask that had passed is not made after all.
    pub fn withdrawn(&mut self, ask: &Ask) {
        if !self.held.is_empty() {
            for scope in &scopes(ask) {
                self.give_back(scope);
            }
        }
    }

    /// Tells that the plane granted an ask that had passed.
    pub fn granted(&mut self, ask: &Ask) {
        if !self.dry.is_empty() && scope::is_by_path(ask) {
            self.dry.remove(&(Arc::clone(&ask.site), Arc::clone(&ask.client)));
        }
        self.answered(ask);
    }

    /// Tells that the plane refused an ask that had passed; answers how long the same ask has to wait,
    /// nothing where waiting does not help.
    pub fn refused(&mut self, ask: &Ask, refusal: &Refusal, now: Instant) -> Duration {
        if !refusal.why.is_temporary() {
            self.answered(ask); // the plane is there and answers: nothing to wait for
            return Duration::ZERO;
        }
        let level = level(refusal.why);
        let mut longest = Duration::ZERO;
        for scope in scopes(ask) {
            let is_paths = matches!(scope, Scope::Paths { .. });
            if is_paths && scope.level() < level && self.paths_are_dry(ask, &scope) {
                longest = longest.max(self.hold(scope, refusal, now));
                continue;
            }
            match scope.level().cmp(&level) {
                std::cmp::Ordering::Less => self.lift(&scope),
                std::cmp::Ordering::Equal => longest = longest.max(self.hold(scope, refusal, now)),
                // It was refused for a wider reason: what it was to probe here is as unknown as before.
                std::cmp::Ordering::Greater => self.give_back(&scope),
            }
        }
        longest
    }

    /// Tells that a lease of `site` is over: what waits for one of its identities or proxies may probe.
    pub fn came_back(&mut self, site: &str, now: Instant) {
        for (scope, gate) in &mut self.held {
            if matches!(gate.why, RefusalKind::NoIdentity | RefusalKind::NoProxy) && scope.site() == Some(site) {
                gate.until = gate.until.min(now);
            }
        }
    }

    /// Holds what the plane's configuration says is off, until `until` or, without one, until it says otherwise.
    pub(super) fn hold_by_runtime(&mut self, origin: &Origin<'_>, message: String, until: Option<Instant>, now: Instant) {
        let until = until.or_else(|| now.checked_add(UNTIL_TOLD)).unwrap_or(now);
        if until <= now {
            return;
        }
        let why = origin.why();
        let Some(scope) = origin.scope() else { return };
        let gate = self.held.entry(scope).or_insert_with(|| Gate::new(why, now));
        // The word of the configuration is newer than that of a refusal, and names the same end.
        gate.until = if gate.by_runtime || gate.why == why { until } else { until.max(gate.until) };
        (gate.why, gate.message, gate.by_runtime) = (why, message, true);
        (gate.allowed, gate.out) = (1, 0);
    }

    /// Lets probe at once what was held by a paused site or an open circuit that `is_over` now says is none.
    /// The flag tells whether the configuration held it, and not a refusal alone.
    pub(super) fn resume(&mut self, now: Instant, is_over: impl Fn(&Origin<'_>, bool) -> bool) {
        for (scope, gate) in &mut self.held {
            if scope.origin(gate.why).is_some_and(|origin| is_over(&origin, gate.by_runtime)) {
                gate.until = gate.until.min(now);
                gate.by_runtime = false;
            }
        }
    }

    fn longest(&self, scopes: &[Scope], wait: impl Fn(&Gate) -> Option<Duration>) -> Option<Hold> {
        let held = scopes.iter().filter_map(|scope| self.held.get(scope)).filter_map(|gate| Some((wait(gate)?, gate)));
        let (wait, gate) = held.max_by_key(|(wait, _)| *wait)?;
        Some(Hold { wait, why: gate.why, message: gate.message.clone(), by_runtime: gate.by_runtime })
    }

    /// Takes any answer as a sign that nothing has to wait.
    fn answered(&mut self, ask: &Ask) {
        if !self.held.is_empty() {
            for scope in &scopes(ask) {
                self.lift(scope);
            }
        }
    }

    /// Counts a refused path; whether all paths of its site and client are held from now on.
    fn paths_are_dry(&mut self, ask: &Ask, paths: &Scope) -> bool {
        if self.held.contains_key(paths) {
            return true;
        }
        let dry = self.dry.entry((Arc::clone(&ask.site), Arc::clone(&ask.client))).or_default();
        if !dry.contains(&ask.path) {
            dry.push(ask.path.clone());
        }
        let all = dry.len() >= DRY_PATHS;
        if all {
            dry.clear();
        }
        all
    }

    fn hold(&mut self, scope: Scope, refusal: &Refusal, now: Instant) -> Duration {
        if self.held.len() >= self.full {
            self.held.retain(|scope, gate| now < gate.until + scope.forget_after());
            self.full = MANY.max(self.held.len().saturating_mul(2));
        }
        let (most, forget) = (scope.most(), scope.forget_after());
        let gate = self.held.entry(scope).or_insert_with(|| Gate::new(refusal.why, now));
        if now >= gate.until + forget {
            gate.failures = 0;
        }
        // An answer to an ask from before the gate closed says nothing new, unless it asks for more time.
        let news = now >= gate.until;
        if news {
            gate.failures = gate.failures.saturating_add(1);
            gate.allowed = 1;
            gate.out = 0;
        }
        let wait = match refusal.retry_after {
            Some(hint) => hint.max(LEAST),
            None if news => self.backoff.wait(gate.failures),
            None => Duration::ZERO,
        };
        let until = now.checked_add(wait.min(most)).unwrap_or(now);
        if news || until > gate.until {
            gate.until = until;
            gate.why = refusal.why;
            gate.message.clone_from(&refusal.message);
            gate.by_runtime = false;
        }
        gate.until.duration_since(now)
    }

    /// Takes one answer as good: lets twice as many through, and opens in the end.
    fn lift(&mut self, scope: &Scope) {
        let Some(gate) = self.held.get_mut(scope) else { return };
        if gate.out == 0 {
            return; // from before the gate closed
        }
        gate.out -= 1;
        // Where identities are merely busy, grants and refusals take turns: that is no reason to wait longer.
        gate.failures = 0;
        gate.allowed = gate.allowed.saturating_mul(2);
        if gate.allowed >= OPEN {
            self.held.remove(scope);
        }
    }

    fn give_back(&mut self, scope: &Scope) {
        if let Some(gate) = self.held.get_mut(scope) {
            gate.out = gate.out.saturating_sub(1);
        }
    }
}

impl Gate {
    fn new(why: RefusalKind, now: Instant) -> Self {
        Self { until: now, failures: 0, why, message: String::new(), by_runtime: false, allowed: 1, out: 0, last: now }
    }

    /// How long an ask has to wait here.
    fn wait(&self, now: Instant) -> Option<Duration> {
        if now < self.until {
            return Some(self.until.duration_since(now));
        }
        (self.out >= self.allowed && now.duration_since(self.last) < PATIENCE).then_some(BEHIND_PROBE)
    }
}
