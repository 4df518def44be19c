//! Gates: who has to wait before the control plane is asked again.
//!
//! A temporary refusal holds what it speaks of: an endpoint group, a site, or the whole plane. When its time
//! is over the gate lifts step by step: one ask as a probe, then twice as many at once with every grant.
//! Pure: the clock is an argument, the jitter comes from a seed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

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

/// The least time a refusal holds, whatever its hint: a plane that says "now" is not asked in a loop.
const LEAST: Duration = Duration::from_millis(1);

/// No refusal holds longer: a hint comes from outside and may be any number.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// Gates in this number are looked through for forgotten ones.
const MANY: usize = 1024;

/// What a refusal holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Scope {
    Plane,
    Site(Arc<str>),
    Group { site: Arc<str>, client: Arc<str>, group: Arc<str> },
}

/// Whether an ask may go to the plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// Yes; its answer must be told by [`Gates::granted`] or [`Gates::refused`].
    Go,
    /// Not before [`Refusal::retry_after`]; the reason is that of the refusal that holds it.
    Hold(Refusal),
}

#[derive(Debug)]
struct Gate {
    until: Instant,
    failures: u32,
    why: RefusalKind,
    message: String,
    /// How many asks may be out at once after `until`.
    allowed: u32,
    out: u32,
    last: Instant,
}

/// All gates of one plane.
#[derive(Debug)]
pub struct Gates {
    held: HashMap<Scope, Gate>,
    backoff: Backoff,
}

impl Gates {
    /// Open gates, with back-off from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { held: HashMap::new(), backoff: Backoff::new(seed) }
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
        let mut longest: Option<(Duration, &Gate)> = None;
        for scope in &scopes {
            if let Some(gate) = self.held.get(scope)
                && let Some(wait) = gate.wait(now)
                && longest.is_none_or(|(so_far, _)| so_far < wait)
            {
                longest = Some((wait, gate));
            }
        }
        if let Some((wait, gate)) = longest {
            return Pass::Hold(Refusal { why: gate.why, retry_after: Some(wait), message: gate.message.clone() });
        }
        for scope in &scopes {
            if let Some(gate) = self.held.get_mut(scope) {
                gate.out = gate.out.saturating_add(1);
                gate.last = now;
            }
        }
        Pass::Go
    }

    /// Tells that the plane granted an ask that had passed.
    pub fn granted(&mut self, ask: &Ask) {
        if !self.held.is_empty() {
            for scope in scopes(ask) {
                self.lift(&scope);
            }
        }
    }

    /// Tells that the plane refused an ask that had passed; answers how long the same ask has to wait,
    /// nothing where waiting does not help.
    pub fn refused(&mut self, ask: &Ask, refusal: &Refusal, now: Instant) -> Duration {
        if !refusal.why.is_temporary() {
            self.granted(ask); // the plane is there and answers: nothing to wait for
            return Duration::ZERO;
        }
        let level = level(refusal.why);
        for (at, scope) in scopes(ask).into_iter().enumerate() {
            if at < level {
                self.lift(&scope);
            } else if at == level {
                return self.hold(scope, refusal, now);
            }
        }
        Duration::ZERO
    }

    /// Tells that a lease of `site` is over: what waits for one of its identities or proxies may probe.
    pub fn came_back(&mut self, site: &str, now: Instant) {
        for (scope, gate) in &mut self.held {
            if matches!(scope, Scope::Group { site: own, .. } if **own == *site)
                && matches!(gate.why, RefusalKind::NoIdentity | RefusalKind::NoProxy)
            {
                gate.until = gate.until.min(now);
            }
        }
    }

    fn hold(&mut self, scope: Scope, refusal: &Refusal, now: Instant) -> Duration {
        if self.held.len() >= MANY {
            self.held.retain(|_, gate| now < gate.until + FORGET);
        }
        let fresh = Gate { until: now, failures: 0, why: refusal.why, message: String::new(), allowed: 1, out: 0, last: now };
        let gate = self.held.entry(scope).or_insert(fresh);
        if now >= gate.until + FORGET {
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
        let until = now.checked_add(wait.min(MOST)).unwrap_or(now);
        if news || until > gate.until {
            gate.until = until;
            gate.why = refusal.why;
            gate.message.clone_from(&refusal.message);
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
}

impl Gate {
    /// How long an ask has to wait here.
    fn wait(&self, now: Instant) -> Option<Duration> {
        if now < self.until {
            return Some(self.until.duration_since(now));
        }
        (self.out >= self.allowed && now.duration_since(self.last) < PATIENCE).then_some(BEHIND_PROBE)
    }
}

/// The scopes an ask is under, the widest first.
fn scopes(ask: &Ask) -> [Scope; 3] {
    [
        Scope::Plane,
        Scope::Site(Arc::clone(&ask.site)),
        Scope::Group { site: Arc::clone(&ask.site), client: Arc::clone(&ask.client), group: Arc::clone(&ask.group) },
    ]
}

/// Which of [`scopes`] a refusal speaks of.
fn level(why: RefusalKind) -> usize {
    match why {
        RefusalKind::RateLimited | RefusalKind::Overloaded | RefusalKind::Unreachable => 0,
        RefusalKind::SitePaused => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    fn ask(site: &str, group: &str) -> Ask {
        Ask {
            site: site.into(),
            client: "web".into(),
            group: group.into(),
            path: "/".to_owned(),
            session_key: None,
            anonymous: false,
            rule: None,
        }
    }

    fn refusal(why: RefusalKind, millis: Option<u64>) -> Refusal {
        Refusal { why, retry_after: millis.map(Duration::from_millis), message: "m".to_owned() }
    }

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn held_for(gates: &mut Gates, ask: &Ask, now: Instant) -> Option<Duration> {
        match gates.pass(ask, now) {
            Pass::Go => None,
            Pass::Hold(refusal) => refusal.retry_after,
        }
    }

    #[test]
    fn a_refusal_holds_what_it_speaks_of_and_nothing_else() {
        use RefusalKind::{CircuitOpen, NoIdentity, NoProxy, Overloaded, RateLimited, SitePaused, Unreachable};
        // (kind, same group, other group of the site, other site)
        for (why, held) in [
            (NoIdentity, [true, false, false]),
            (NoProxy, [true, false, false]),
            (CircuitOpen, [true, false, false]),
            (SitePaused, [true, true, false]),
            (RateLimited, [true, true, true]),
            (Overloaded, [true, true, true]),
            (Unreachable, [true, true, true]),
        ] {
            let now = Instant::now();
            let mut gates = Gates::new(1);
            assert_eq!(gates.pass(&ask("a", "g"), now), Pass::Go);
            assert_eq!(gates.refused(&ask("a", "g"), &refusal(why, Some(700)), now), millis(700));
            let asks = [ask("a", "g"), ask("a", "h"), ask("b", "g")];
            let later = now + millis(200);
            assert_eq!(asks.map(|ask| held_for(&mut gates, &ask, later) == Some(millis(500))), held, "{why:?}");
        }
    }

    #[test]
    fn a_lease_that_came_back_lets_one_probe_through_and_lifts_no_other_refusal() {
        use RefusalKind::{CircuitOpen, NoIdentity, NoProxy};
        for (why, lifted) in [(NoIdentity, true), (NoProxy, true), (CircuitOpen, false)] {
            let now = Instant::now();
            let mut gates = Gates::new(1);
            gates.refused(&ask("a", "g"), &refusal(why, Some(700)), now);
            gates.came_back("b", now);
            assert_eq!(held_for(&mut gates, &ask("a", "g"), now), Some(millis(700)));
            gates.came_back("a", now);
            let held = held_for(&mut gates, &ask("a", "g"), now);
            assert_eq!(held, (!lifted).then_some(millis(700)), "{why:?}");
            if lifted {
                assert_eq!(held_for(&mut gates, &ask("a", "g"), now), Some(BEHIND_PROBE));
            }
        }
    }

    #[test]
    fn a_refusal_for_good_holds_nothing() {
        let mut gates = Gates::new(1);
        let wait = gates.refused(&ask("a", "g"), &refusal(RefusalKind::SiteUnknown, Some(10)), Instant::now());
        assert_eq!((wait, gates.are_open()), (Duration::ZERO, true));
    }

    #[test]
    fn a_gate_lifts_by_one_probe_and_then_doubles() {
        let mut now = Instant::now();
        let mut gates = Gates::new(1);
        let it = ask("a", "g");
        gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(100)), now);
        now += millis(100);
        let mut rounds = Vec::new();
        while !gates.are_open() {
            let passed = (0..100).take_while(|_| gates.pass(&it, now) == Pass::Go).count();
            assert!(gates.are_open() || held_for(&mut gates, &it, now) == Some(BEHIND_PROBE));
            rounds.push(passed);
            gates.granted(&it);
            // The others of the round stay out: one grant doubles what may be out at once.
        }
        assert_eq!(rounds[..4], [1, 2, 3, 5]);
        assert_eq!(rounds.len(), 6);
    }

    #[test]
    fn a_refused_probe_holds_again_and_longer() {
        let mut now = Instant::now();
        let mut gates = Gates::new(3);
        let it = ask("a", "g");
        let mut longest = Duration::ZERO;
        for round in 1..40 {
            assert_eq!(gates.pass(&it, now), Pass::Go, "round {round}");
            let wait = gates.refused(&it, &refusal(RefusalKind::NoIdentity, None), now);
            assert!(wait >= millis(50) && wait <= Duration::from_secs(30));
            longest = longest.max(wait);
            assert_eq!(held_for(&mut gates, &it, now + wait - millis(1)), Some(millis(1)));
            now += wait;
        }
        assert!(longest > Duration::from_secs(20), "{longest:?}");
    }

    #[test]
    fn a_busy_group_is_asked_again_soon_however_long_it_stays_busy() {
        let mut now = Instant::now();
        let mut gates = Gates::new(3);
        let it = ask("a", "g");
        for round in 0..40 {
            assert_eq!(gates.pass(&it, now), Pass::Go, "round {round}");
            gates.granted(&it);
            assert_eq!(gates.pass(&it, now), Pass::Go, "round {round}");
            let wait = gates.refused(&it, &refusal(RefusalKind::NoIdentity, None), now);
            assert!(wait <= millis(500), "round {round}: {wait:?}");
            now += wait;
        }
    }

    #[test]
    fn late_answers_from_before_the_gate_closed_change_nothing() {
        let now = Instant::now();
        let mut gates = Gates::new(1);
        let it = ask("a", "g");
        for _ in 0..5 {
            assert_eq!(gates.pass(&it, now), Pass::Go);
        }
        let no = |hint| refusal(RefusalKind::NoIdentity, hint);
        assert_eq!(gates.refused(&it, &no(Some(900)), now), millis(900));
        gates.granted(&it);
        assert_eq!(gates.refused(&it, &no(None), now + millis(100)), millis(800));
        assert_eq!(gates.refused(&it, &no(Some(100)), now + millis(200)), millis(700));
        assert_eq!(gates.refused(&it, &no(Some(1_000)), now + millis(300)), millis(1_000), "a longer hint holds longer");
        assert_eq!(held_for(&mut gates, &it, now + millis(400)), Some(millis(900)));
    }

    #[test]
    fn a_lost_probe_does_not_hold_for_ever() {
        let now = Instant::now();
        let mut gates = Gates::new(1);
        let it = ask("a", "g");
        gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(10)), now);
        let probed = now + millis(10);
        assert_eq!(gates.pass(&it, probed), Pass::Go);
        assert_eq!(held_for(&mut gates, &it, probed + PATIENCE - millis(1)), Some(BEHIND_PROBE));
        assert_eq!(gates.pass(&it, probed + PATIENCE), Pass::Go);
    }

    proptest! {
        #[test]
        fn nothing_passes_before_the_hint_is_over(
            steps in proptest::collection::vec((0usize..3, 0u64..400, 0usize..4, proptest::option::of(0u64..2_000)), 1..200)
        ) {
            let asks = [ask("a", "g"), ask("a", "h"), ask("b", "g")];
            let kinds = [None, Some(RefusalKind::NoIdentity), Some(RefusalKind::SitePaused), Some(RefusalKind::Overloaded)];
            let mut gates = Gates::new(9);
            let mut now = Instant::now();
            // What was refused with a hint, and the end of the hint.
            let mut hints: Vec<(usize, RefusalKind, Instant)> = Vec::new();
            for (which, pause, answer, hint) in steps {
                now += millis(pause);
                if gates.pass(&asks[which], now) != Pass::Go {
                    continue;
                }
                for (refused, why, until) in &hints {
                    let covered = match level(*why) {
                        0 => true,
                        1 => asks[*refused].site == asks[which].site,
                        _ => *refused == which,
                    };
                    prop_assert!(!covered || now >= *until);
                }
                match kinds[answer] {
                    None => gates.granted(&asks[which]),
                    Some(why) => {
                        let wait = gates.refused(&asks[which], &refusal(why, hint), now);
                        prop_assert!(wait >= LEAST);
                        if let Some(hint) = hint {
                            hints.push((which, why, now + millis(hint)));
                        }
                    }
                }
            }
        }
    }
}
