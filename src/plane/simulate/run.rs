//! The run itself: leases, reports and the plane's own jobs in the order of simulated time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::error::SimulateError;
use super::event::{Event, Timeline};
use crate::dice::Dice;
use crate::plane::model::action::{Act, Length};
use crate::plane::model::authority::{Change, Effect, Standings, Subject, Withheld};
use crate::plane::model::breaker::Phase;
use crate::plane::model::refusal::{Reason, Refusal};
use crate::plane::model::scope::Scopes;
use crate::plane::model::token::Token;
use crate::plane::model::{Ms, Plane};
use crate::plane::seed::Seed;
use crate::spinneret::{AcquireRequest, Report};

/// The plane's jobs that are done between two events; a longer pause is jumped over.
const JOBS: usize = 20_000;

/// Why the report of an attempt that took too long counts for nothing.
const TOO_LATE: &str = "report_too_late";

/// What a run led to.
#[derive(Debug)]
pub(crate) struct Outcomes {
    /// In the order they happened.
    pub(crate) effects: Vec<Effect>,
    /// By name; sites without an event are not among them.
    pub(crate) sites: BTreeMap<Arc<str>, SiteSummary>,
}

/// When breakers moved and where to, by client and group.
pub(crate) type Breakers = BTreeMap<(Arc<str>, Arc<str>), Vec<(Ms, &'static str)>>;

/// What became of a site.
#[derive(Debug, Default)]
pub(crate) struct SiteSummary {
    pub(crate) reports: u64,
    /// Attempts that would not have been made, by why.
    pub(crate) withheld: BTreeMap<&'static str, u64>,
    /// Actions that took effect, by the kind of subject and what was done.
    pub(crate) actions: BTreeMap<(&'static str, &'static str), u64>,
    /// The same of policies that only note what they would do.
    pub(crate) noted: BTreeMap<(&'static str, &'static str), u64>,
    /// When breakers moved.
    pub(crate) breakers: Breakers,
    /// At the end.
    pub(crate) standings: Standings,
}

/// What happens to an event at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Lease,
    Report,
}

/// Runs the events through a plane made of `seed`; `dice` decides where the plane picks.
///
/// # Errors
/// Policies that contradict each other, and an event that the plane cannot take.
pub(crate) fn run(seed: Seed, timeline: &Timeline, name: &str, dice: Dice) -> Result<Outcomes, SimulateError> {
    let token = Token {
        name: "simulation".into(),
        namespace: Arc::clone(&seed.namespace),
        scopes: Scopes::everything(),
        networks: Vec::new(),
        expires_at: None,
        rate_limit: None,
    };
    let mut now = timeline.start();
    let mut plane = Plane::new(seed, now, dice)?;
    plane.keep_effects();
    let mut steps: Vec<(Ms, usize, Step)> = Vec::with_capacity(timeline.events.len() * 2);
    for (index, event) in timeline.events.iter().enumerate() {
        steps.push((event.begin(), index, Step::Lease));
        steps.push((event.at, index, Step::Report));
    }
    // At one moment in the order of the file, so that what took no time is over before the next begins.
    steps.sort();
    let mut leases: Vec<Option<String>> = vec![None; timeline.events.len()];
    let mut sites: BTreeMap<Arc<str>, SiteSummary> = BTreeMap::new();
    let mut effects = Vec::new();
    for (at, index, step) in steps {
        let Some(event) = timeline.events.get(index) else { continue };
        now = advance(&mut plane, now.max(at));
        let summary = sites.entry(Arc::clone(&event.site)).or_default();
        let wrong = |text: String| SimulateError::at(name, event.line, text);
        match step {
            Step::Lease => match lease(&mut plane, &token, event, now) {
                Ok(lease) => {
                    if let Some(place) = leases.get_mut(index) {
                        *place = Some(lease);
                    }
                }
                Err(withheld) => {
                    if let Withheld::Refused(refusal) = &withheld
                        && is_wrong(refusal)
                    {
                        return Err(wrong(refusal.message.to_string()));
                    }
                    *summary.withheld.entry(withheld.name()).or_default() += 1;
                }
            },
            Step::Report => {
                let Some(lease) = leases.get_mut(index).and_then(Option::take) else { continue };
                let answer = plane.report(&token, vec![Ok(report(event, lease, index))], now);
                let answer = answer.map_err(|refusal| wrong(refusal.message.to_string()))?;
                match answer.rejected.first() {
                    // It took longer than leases are remembered.
                    Some(rejected) if rejected.reason == Reason::LeaseUnknown.name() => {
                        *summary.withheld.entry(TOO_LATE).or_default() += 1;
                    }
                    Some(rejected) => return Err(wrong(rejected.message.clone())),
                    None => summary.reports += 1,
                }
            }
        }
        effects.extend(plane.take_effects());
    }
    for effect in &effects {
        if let Some(summary) = sites.get_mut(&effect.site) {
            summary.note(effect);
        }
    }
    for (site, summary) in &mut sites {
        summary.standings = plane.standings(site, now).unwrap_or_default();
    }
    Ok(Outcomes { effects, sites })
}

/// Does the jobs of the plane that are due until then, each at its moment.
fn advance(plane: &mut Plane, to: Ms) -> Ms {
    for _ in 0..JOBS {
        match plane.next_due().filter(|due| *due <= to) {
            Some(due) => plane.tick(due),
            None => break,
        }
    }
    plane.tick(to);
    to
}

fn lease(plane: &mut Plane, token: &Token, event: &Event, now: Ms) -> Result<String, Withheld> {
    let request = AcquireRequest::new(&*event.site, &*event.client)
        .uri(&*event.uri)
        .endpoint_group(&*event.group)
        .session_key(&*event.session_key);
    match &event.identity {
        Some(identity) => plane.lease_to(identity, &request, now),
        None => plane.acquire(token, &request, now).map(|answer| answer.lease.lease_id).map_err(Withheld::Refused),
    }
}

/// Whether a refusal says that the event itself is wrong.
fn is_wrong(refusal: &Refusal) -> bool {
    let reasons =
        [Reason::SiteUnknown, Reason::ClientUnknown, Reason::EndpointGroupUnknown, Reason::UriInvalid, Reason::InvalidArgument];
    refusal.reason.is_some_and(|reason| reasons.contains(&reason))
}

fn report(event: &Event, lease_id: String, index: usize) -> Report {
    let moment = |at: Ms| i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(Timestamp::MAX);
    Report {
        report_id: format!("event-{index}"),
        lease_id,
        uri: event.uri.clone(),
        method: event.method.clone(),
        http_status: event.status,
        business_code: event.business_code.clone(),
        error_kind: event.error_kind.clone(),
        markers: event.markers.clone(),
        outcome_hint: event.outcome_hint.clone(),
        latency_ms: event.latency_ms,
        response_bytes: event.response_bytes,
        started_at: moment(event.begin()),
        finished_at: moment(event.at),
        release: true,
    }
}

impl SiteSummary {
    fn note(&mut self, effect: &Effect) {
        match &effect.change {
            Change::Acted { act, is_shadow, .. } => {
                let counts = if *is_shadow { &mut self.noted } else { &mut self.actions };
                *counts.entry((effect.subject.kind(), done(*act))).or_default() += 1;
            }
            Change::Moved { to, .. } => {
                if let Subject::Group { client, group } = &effect.subject {
                    let moves = self.breakers.entry((Arc::clone(client), Arc::clone(group))).or_default();
                    moves.push((
                        effect.at,
                        match to {
                            Phase::Open(_) => "opened",
                            Phase::HalfOpen => "half-open",
                            Phase::Closed => "closed",
                        },
                    ));
                }
            }
        }
    }
}

impl Subject {
    /// What it is.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Identity(_) => "identity",
            Self::Account(_) => "account",
            Self::Proxy(_) => "proxy",
            Self::Group { .. } => "group",
        }
    }
}

/// What an action does, in the past.
const fn done(act: Act) -> &'static str {
    match act {
        Act::Activate => "activated",
        Act::Cooldown(_) => "cooled",
        Act::Quarantine(_) => "quarantined",
        Act::Expire => "expired",
        Act::Ban(Length::For(_) | Length::Forever) => "banned",
    }
}
