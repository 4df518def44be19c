//! What a run led to, for people and for programs.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::event::Timeline;
use super::run::{Outcomes, SiteSummary};
use crate::plane::model::Ms;
use crate::plane::model::action::Scope;
use crate::plane::model::authority::{Change, Effect, Subject};
use crate::plane::model::breaker::Trigger;

/// A moment as RFC 3339 has it.
pub(super) fn moment(at: Ms) -> String {
    let moment = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(Timestamp::MAX);
    format!("{moment:.3}")
}

/// A table with a row for each effect, and below it what became of each site.
pub(crate) fn table(outcomes: &Outcomes, timeline: &Timeline) -> String {
    let mut text = String::new();
    if !outcomes.effects.is_empty() {
        let head = ["TIME", "SITE", "SUBJECT", "OUTCOME", "RULE", "ACTION", "UNTIL"].map(str::to_owned);
        let mut rows = vec![head];
        rows.extend(outcomes.effects.iter().map(|effect| row(effect, timeline)));
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..7).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push('\n');
    }
    for (name, site) in &outcomes.sites {
        summary(&mut text, name, site, timeline);
    }
    if timeline.unsent > 0 {
        let _ = writeln!(text, "{} records of requests that were never sent were passed over", timeline.unsent);
    }
    if timeline.elsewhere > 0 {
        let _ = writeln!(text, "{} events of other sites were left out", timeline.elsewhere);
    }
    if outcomes.sites.is_empty() {
        text.push_str("no report was read\n");
    }
    text
}

/// One JSON object on a line for each effect, and a last one with the summary.
pub(crate) fn json_lines(outcomes: &Outcomes, timeline: &Timeline) -> String {
    let mut text = String::new();
    for effect in &outcomes.effects {
        let _ = writeln!(text, "{}", effect_json(effect, timeline));
    }
    let sites: serde_json::Map<String, Value> =
        outcomes.sites.iter().map(|(name, site)| (name.to_string(), site_json(site, timeline))).collect();
    let summary = json!({ "summary": { "sites": sites, "unsent": timeline.unsent, "other_sites": timeline.elsewhere } });
    let _ = writeln!(text, "{summary}");
    text
}

fn row(effect: &Effect, timeline: &Timeline) -> [String; 7] {
    let subject = match &effect.subject {
        Subject::Identity(name) => format!("identity {name}"),
        Subject::Account(name) => format!("account {name}"),
        Subject::Proxy(name) => format!("proxy {name}"),
        Subject::Group { client, group } => format!("group {client}/{group}"),
    };
    let outcome = effect.cause.as_ref().map_or("", |cause| cause.outcome.name());
    let (rule, action) = match &effect.change {
        Change::Acted { scope, rule, is_shadow, .. } => {
            let place = place(*scope).map(|place| format!(" ({place})")).unwrap_or_default();
            let note = if *is_shadow { ", only noted" } else { "" };
            (rule.clone(), format!("{}{place}{note}", effect.change.name()))
        }
        Change::Moved { reason, taken_back, .. } => {
            let back = if *taken_back > 0 { format!(", {taken_back} cooldowns taken back") } else { String::new() };
            (reason.to_string(), format!("{} breaker{back}", effect.change.name()))
        }
    };
    let until = effect.until.map(|until| timeline.tell(until)).unwrap_or_default();
    let at = timeline.tell(effect.at);
    [at, effect.site.to_string(), subject, outcome.to_owned(), rule, action, until]
}

/// Where an action holds, unless its subject says so already.
const fn place(scope: Scope) -> Option<&'static str> {
    match scope {
        Scope::IdentityEndpoint => Some("endpoint group"),
        Scope::IdentitySite | Scope::ProxySite => Some("site"),
        Scope::Identity | Scope::Account | Scope::Proxy => None,
    }
}

fn summary(text: &mut String, name: &str, site: &SiteSummary, timeline: &Timeline) {
    let _ = writeln!(text, "{name}");
    let outcomes = counted(site.standings.outcomes.iter().map(|(outcome, count)| (outcome.name().to_owned(), *count)));
    let _ = writeln!(text, "  reports     {}{}", site.reports, in_brackets(&outcomes));
    if !site.withheld.is_empty() {
        let all: u64 = site.withheld.values().sum();
        let reasons = counted(site.withheld.iter().map(|(reason, count)| ((*reason).to_owned(), *count)));
        let _ = writeln!(text, "  withheld    {all}{}", in_brackets(&reasons));
    }
    let deeds = |counts: &std::collections::BTreeMap<(&'static str, &'static str), u64>| {
        counted(counts.iter().map(|((kind, done), count)| (format!("{kind} {done}"), *count)))
    };
    let acted = deeds(&site.actions);
    let _ = writeln!(text, "  actions     {}", if acted.is_empty() { "none" } else { &acted });
    if !site.noted.is_empty() {
        let _ = writeln!(text, "  only noted  {}", deeds(&site.noted));
    }
    for ((client, group), moves) in &site.breakers {
        let moves = moves.iter().map(|(at, what)| format!("{what} {}", timeline.tell(*at))).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "  breaker     {client}/{group}: {moves}");
    }
    let all: usize = site.standings.states.values().sum();
    let states = counted(site.standings.states.iter().map(|(state, count)| ((*state).to_owned(), *count as u64)));
    let _ = writeln!(text, "  identities  {} of {all} left to lease{}", site.standings.ready, in_brackets(&states));
}

fn counted(counts: impl Iterator<Item = (String, u64)>) -> String {
    counts.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

fn effect_json(effect: &Effect, timeline: &Timeline) -> Value {
    let mut value = json!({
        "at": at_json(effect.at, timeline),
        "site": *effect.site,
        "subject": effect.subject.kind(),
        "action": effect.change.name(),
        "until": effect.until.map(|until| at_json(until, timeline)),
        "outcome": effect.cause.as_ref().map(|cause| cause.outcome.name()),
        "signal_rule": effect.cause.as_ref().map(|cause| &*cause.rule).filter(|rule| !rule.is_empty()),
    });
    let Some(map) = value.as_object_mut() else { return value };
    let mut add = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    match &effect.subject {
        Subject::Identity(name) | Subject::Account(name) | Subject::Proxy(name) => add("name", json!(**name)),
        Subject::Group { client, group } => {
            add("client", json!(**client));
            add("endpoint_group", json!(**group));
        }
    }
    match &effect.change {
        Change::Acted { scope, rule, is_shadow, .. } => {
            add("scope", json!(scope_name(*scope)));
            add("rule", json!(rule));
            add("only_noted", json!(is_shadow));
        }
        Change::Moved { trigger, reason, taken_back, .. } => {
            add(
                "trigger",
                json!(match trigger {
                    Trigger::Auto => "auto",
                    Trigger::Manual => "manual",
                    Trigger::Probe => "probe",
                }),
            );
            add("reason", json!(**reason));
            add("cooldowns_taken_back", json!(taken_back));
        }
    }
    value
}

fn site_json(site: &SiteSummary, timeline: &Timeline) -> Value {
    let deeds = |counts: &std::collections::BTreeMap<(&'static str, &'static str), u64>| {
        counts.iter().map(|((kind, done), count)| (format!("{kind}_{done}"), json!(count))).collect::<serde_json::Map<_, _>>()
    };
    let outcomes = &site.standings.outcomes;
    let breakers: Vec<Value> = site
        .breakers
        .iter()
        .map(|((client, group), moves)| {
            let moves: Vec<Value> =
                moves.iter().map(|(at, what)| json!({ "at": at_json(*at, timeline), "phase": what })).collect();
            json!({ "client": **client, "endpoint_group": **group, "moves": moves })
        })
        .collect();
    json!({
        "reports": site.reports,
        "outcomes": outcomes.iter().map(|(outcome, count)| (outcome.name().to_owned(), json!(count))).collect::<serde_json::Map<_, _>>(),
        "withheld": site.withheld,
        "actions": deeds(&site.actions),
        "only_noted": deeds(&site.noted),
        "breakers": breakers,
        "identities": { "left": site.standings.ready, "states": site.standings.states },
    })
}

/// A time as the events tell it: a text, or seconds as a number.
fn at_json(at: Ms, timeline: &Timeline) -> Value {
    let text = timeline.tell(at);
    text.parse::<f64>().map_or_else(|_| json!(text), |seconds| json!(seconds))
}

const fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::IdentityEndpoint => "identity_endpoint",
        Scope::IdentitySite => "identity_site",
        Scope::Identity => "identity",
        Scope::Account => "account",
        Scope::ProxySite => "proxy_site",
        Scope::Proxy => "proxy",
    }
}
