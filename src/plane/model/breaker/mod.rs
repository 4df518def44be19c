//! The circuit breaker of an endpoint group: closes the way when a site turns everybody away, and probes it again later
//! (wire contract, section 28).
//!
//! Knows neither leases nor identities, only their numbers. What an opening takes back it names; it does not do it.

mod cooldowns;
mod numbers;
#[cfg(test)]
mod tests;
mod window;

use super::{Ms, Outcome};
use cooldowns::Cooldowns;
pub(crate) use cooldowns::{Applied, Reach, Revert};
pub(crate) use numbers::{BreakerNumbers, RevertCooldowns};
use std::sync::Arc;
pub(crate) use window::Sums;
use window::Window;

/// The span within which a half-open breaker hands out its probes.
const PROBE_WINDOW: Ms = 10_000;

/// What an acquire is told to wait when nobody knows when the breaker closes.
const INDEFINITE_HINT: Ms = 60_000;

/// After a risk report the breaker is evaluated at most this often.
const BETWEEN_EVALUATIONS: Ms = 1_000;

/// A closed group without activity for so long is not evaluated.
const QUIET: Ms = 120_000;

/// The longest manual opening with an end: 365 days.
pub(crate) const LONGEST_MANUAL: Ms = 365 * 24 * 3_600_000;

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Closed,
    /// Until then; `None`: until somebody closes it, which only a manual opening asks for.
    Open(Option<Ms>),
    HalfOpen,
}

/// What moved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    Auto,
    Manual,
    Probe,
}

/// A change of phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: Phase,
    pub(crate) to: Phase,
    pub(crate) trigger: Trigger,
    pub(crate) reason: Arc<str>,
    /// The cooldowns to take back, in the order of identities; only an automatic opening has any.
    pub(crate) reverts: Vec<Revert>,
}

/// What the breaker says to an acquire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Free,
    /// One lease, as a probe. [`Breaker::issue_probe`] counts it once it is written; the moment identifies the span it
    /// belongs to.
    Probe {
        span: Ms,
    },
    /// `circuit_open`, with a hint in milliseconds.
    Refused {
        hint: Ms,
    },
}

/// Counts of a half-open breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Probes {
    pub(crate) samples: u32,
    pub(crate) successes: u32,
    /// Leases handed out within the current ten seconds.
    pub(crate) issued: u32,
}

/// One breaker. Begins closed.
#[derive(Debug, Clone)]
pub(crate) struct Breaker {
    phase: Phase,
    manual: bool,
    reason: Arc<str>,
    /// Openings in a row.
    opens: u32,
    opened_at: Option<Ms>,
    closed_at: Option<Ms>,
    probes: Probes,
    span: Ms,
    window: Window,
    cooldowns: Cooldowns,
    active_at: Ms,
    evaluated_at: Option<Ms>,
    version: u64,
}

impl Breaker {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Closed,
            manual: false,
            reason: Arc::from(""),
            opens: 0,
            opened_at: None,
            closed_at: None,
            probes: Probes::default(),
            span: 0,
            window: Window::default(),
            cooldowns: Cooldowns::default(),
            active_at: 0,
            evaluated_at: None,
            version: 0,
        }
    }

    /// Whether an acquire may go on. The first one after the end of an opening makes the breaker half-open.
    pub(crate) fn admit(&mut self, now: Ms, numbers: &BreakerNumbers) -> (Admission, Option<Transition>) {
        let transition = match self.phase {
            Phase::Closed => return (Admission::Free, None),
            Phase::Open(None) => return (Admission::Refused { hint: INDEFINITE_HINT }, None),
            Phase::Open(Some(until)) if now < until => return (Admission::Refused { hint: until - now }, None),
            Phase::Open(Some(_)) => Some(self.end_opening(now, numbers)),
            Phase::HalfOpen => None,
        };
        let admission = if self.phase == Phase::Closed { Admission::Free } else { self.admit_probe(now, numbers) };
        (admission, transition)
    }

    /// Counts a probe lease that was written.
    pub(crate) const fn issue_probe(&mut self) {
        self.probes.issued = self.probes.issued.saturating_add(1);
    }

    /// Takes back a probe lease that came to nothing; a no-op once its span is over.
    pub(crate) fn return_probe(&mut self, span: Ms) {
        if self.phase == Phase::HalfOpen && self.span == span {
            self.probes.issued = self.probes.issued.saturating_sub(1);
        }
    }

    /// Whether reports of leases that are no probes are to leave health and actions alone.
    pub(crate) fn suppresses(&self, now: Ms) -> bool {
        matches!(self.phase, Phase::Open(until) if until.is_none_or(|until| now < until))
    }

    /// Counts a report, late ones and suppressed ones too.
    pub(crate) fn record(&mut self, outcome: Outcome, identity: u32, now: Ms, numbers: &BreakerNumbers) {
        self.window.record(outcome, identity, now, numbers);
        self.active_at = self.active_at.max(now);
    }

    /// Counts the report of a lease this breaker gave as a probe; only while half-open.
    pub(crate) fn record_probe(&mut self, outcome: Outcome) {
        if self.phase == Phase::HalfOpen {
            self.probes.samples = self.probes.samples.saturating_add(1);
            self.probes.successes = self.probes.successes.saturating_add(u32::from(outcome == Outcome::Success));
        }
    }

    /// Remembers a cooldown that a rule applied because of a report in this group, in case it has to be taken back.
    pub(crate) fn note_cooldown(&mut self, applied: Applied, numbers: &BreakerNumbers) {
        self.cooldowns.note(applied, numbers);
    }

    /// Whether the job that runs every five seconds has to evaluate it.
    pub(crate) fn wants_evaluation(&self, now: Ms) -> bool {
        self.phase != Phase::Closed || now.saturating_sub(self.active_at) <= QUIET
    }

    /// Evaluates after a risk report, unless that was done within the last second.
    pub(crate) fn evaluate_after_risk(&mut self, now: Ms, numbers: &BreakerNumbers) -> Option<Transition> {
        if self.evaluated_at.is_some_and(|at| now.saturating_sub(at) < BETWEEN_EVALUATIONS) {
            return None;
        }
        self.evaluate(now, numbers)
    }

    /// Moves the breaker if it is time to.
    pub(crate) fn evaluate(&mut self, now: Ms, numbers: &BreakerNumbers) -> Option<Transition> {
        self.evaluated_at = Some(now);
        match self.phase {
            Phase::Closed if numbers.enabled => {
                let reason = self.trips(now, numbers)?;
                let in_a_row = self.closed_at.is_some_and(|at| now.saturating_sub(at) < numbers.reset_opens_after);
                self.opens = if in_a_row { self.opens.saturating_add(1) } else { 1 };
                Some(self.open(reason, Trigger::Auto, now, numbers))
            }
            Phase::Closed => None,
            Phase::Open(_) if !numbers.enabled && !self.manual => Some(self.disable(now)),
            Phase::Open(Some(until)) if now >= until => Some(self.end_opening(now, numbers)),
            Phase::Open(_) => None,
            Phase::HalfOpen if !numbers.enabled => Some(self.disable(now)),
            Phase::HalfOpen => self.judge_probes(now, numbers),
        }
    }

    /// Opens it by hand, for at most [`LONGEST_MANUAL`], or without an end. Takes no cooldowns back and counts as no opening
    /// in a row.
    pub(crate) fn open_manually(&mut self, duration: Option<Ms>, reason: &str, now: Ms) -> Transition {
        self.manual = true;
        self.opened_at = Some(now);
        self.cooldowns.clear();
        let until = duration.map(|duration| now.saturating_add(duration.min(LONGEST_MANUAL)));
        self.go(Phase::Open(until), Trigger::Manual, reason.into())
    }

    /// Closes it by hand, at once and without probing. Nothing happens if it is closed.
    pub(crate) fn close_manually(&mut self, reason: &str, now: Ms) -> Option<Transition> {
        (self.phase != Phase::Closed).then(|| self.close(Trigger::Manual, reason.into(), now))
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it was opened by hand and has not been closed since.
    pub(crate) const fn is_manual(&self) -> bool {
        self.manual
    }

    /// Why it last moved; half-open, why it was opened.
    pub(crate) const fn reason(&self) -> &Arc<str> {
        &self.reason
    }

    /// Openings in a row.
    #[cfg(test)]
    pub(crate) const fn opens(&self) -> u32 {
        self.opens
    }

    #[cfg(test)]
    pub(crate) const fn closed_at(&self) -> Option<Ms> {
        self.closed_at
    }

    #[cfg(test)]
    pub(crate) const fn probes(&self) -> Probes {
        self.probes
    }

    /// The reports it would judge by now.
    pub(crate) fn sums(&self, now: Ms, numbers: &BreakerNumbers) -> Sums {
        self.window.sums(now, self.closed_at.unwrap_or(0), numbers)
    }

    /// How often it moved.
    #[cfg(test)]
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    fn admit_probe(&mut self, now: Ms, numbers: &BreakerNumbers) -> Admission {
        if now.saturating_sub(self.span) >= PROBE_WINDOW {
            self.span = now;
            self.probes.issued = 0;
        }
        if self.probes.issued < numbers.probes {
            return Admission::Probe { span: self.span };
        }
        let rest = self.span.saturating_add(PROBE_WINDOW).saturating_sub(now);
        Admission::Refused { hint: rest.clamp(1, PROBE_WINDOW) }
    }

    /// Names every condition that holds, or nothing.
    fn trips(&self, now: Ms, numbers: &BreakerNumbers) -> Option<String> {
        let sums = self.sums(now, numbers);
        if sums.total == 0 || sums.total < u64::from(numbers.min_requests) {
            return None;
        }
        let mut reasons = Vec::new();
        let (risk, success) = (sums.risk_ratio(), sums.success_ratio());
        if numbers.risk_ratio > 0.0 && risk >= numbers.risk_ratio {
            reasons.push(format!("risk_ratio {risk:.2} >= {:.2}", numbers.risk_ratio));
        }
        if numbers.captcha_identities > 0 && sums.captcha_identities >= numbers.captcha_identities {
            reasons.push(format!("captcha_identities {} >= {}", sums.captcha_identities, numbers.captcha_identities));
        }
        if numbers.success_ratio > 0.0 && success <= numbers.success_ratio {
            reasons.push(format!("success_ratio {success:.2} <= {:.2}", numbers.success_ratio));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    fn judge_probes(&mut self, now: Ms, numbers: &BreakerNumbers) -> Option<Transition> {
        let Probes { samples, successes, .. } = self.probes;
        if samples < numbers.close_min_samples.max(1) {
            return None;
        }
        let (ratio, asked) = (f64::from(successes) / f64::from(samples), numbers.close_success_ratio);
        if ratio >= asked {
            return Some(self.close(Trigger::Probe, format!("probe_success_ratio {ratio:.2} >= {asked:.2}").into(), now));
        }
        self.opens = self.opens.saturating_add(1);
        Some(self.open(format!("probe_success_ratio {ratio:.2} < {asked:.2}"), Trigger::Probe, now, numbers))
    }

    fn open(&mut self, reason: String, trigger: Trigger, now: Ms, numbers: &BreakerNumbers) -> Transition {
        self.opened_at = Some(now);
        let until = now.saturating_add(numbers.open_for(self.opens));
        let reverts = self.cooldowns.take(now, numbers);
        Transition { reverts, ..self.go(Phase::Open(Some(until)), trigger, reason.into()) }
    }

    /// What follows an opening: probes, or with a disabled policy nothing.
    fn end_opening(&mut self, now: Ms, numbers: &BreakerNumbers) -> Transition {
        if !numbers.enabled {
            return self.disable(now);
        }
        self.probes = Probes::default();
        self.span = now;
        let reason = Arc::clone(&self.reason);
        self.go(Phase::HalfOpen, Trigger::Auto, reason)
    }

    fn disable(&mut self, now: Ms) -> Transition {
        self.close(Trigger::Auto, "breaker disabled by policy".into(), now)
    }

    fn close(&mut self, trigger: Trigger, reason: Arc<str>, now: Ms) -> Transition {
        self.manual = false;
        self.closed_at = Some(now);
        self.go(Phase::Closed, trigger, reason)
    }

    fn go(&mut self, to: Phase, trigger: Trigger, reason: Arc<str>) -> Transition {
        let from = std::mem::replace(&mut self.phase, to);
        self.reason = Arc::clone(&reason);
        self.version += 1;
        Transition { from, to, trigger, reason, reverts: Vec::new() }
    }
}
