//! Policies: the written ones, and those that the short keys of a site stand for (wire contract, section 32).
//!
//! A site may have the tables `rotation` and `proxy` of a rotation policy, and a whole signal, action or breaker policy, all
//! without name: each is bound to the site. `cooldown_429`, `cooldown_403` and `cooldown_proxy` change the built-in action
//! policy. Without any rotation policy for it, a site that has proxies uses them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::table::{Field, Place, Table, guess};
use super::{SeedError, SeedPolicies, SeedSite};
use crate::plane::model::Outcome;
use crate::plane::model::policy::{
    Action, ActionPolicy, ActionRule, Binding, Bindings, BreakerPolicy, Cooldown, Head, Kind, LONGEST, Outcomes, Policy,
    PolicyError, ProxyMode, RotationPolicy, Scope, SignalPolicy, Term, lineage,
};

/// The keys of a site that policies are read from.
pub(super) const SITE_KEYS: [&str; 8] =
    ["rotation", "proxy", "signal", "action", "breaker", "cooldown_429", "cooldown_403", "cooldown_proxy"];

/// Policies of one kind, each with the place it is written at.
type Placed<'f, P> = Vec<(P, Place<'f>)>;

/// All policies while they are read.
#[derive(Default)]
pub(super) struct Reader<'f> {
    rotation: Placed<'f, RotationPolicy>,
    signal: Placed<'f, SignalPolicy>,
    action: Placed<'f, ActionPolicy>,
    breaker: Placed<'f, BreakerPolicy>,
}

impl<'f> Reader<'f> {
    /// Reads the table `policies`.
    pub(super) fn read(top: &Table<'f, '_>) -> Result<Self, SeedError> {
        let Some(field) = top.get("policies") else { return Ok(Self::default()) };
        let table = field.table(&["rotation", "signal", "action", "breaker"])?;
        Ok(Self { rotation: list(&table)?, signal: list(&table)?, action: list(&table)?, breaker: list(&table)? })
    }

    /// Adds what a site says itself. `proxies`: how it would use the proxies it has, were nothing written.
    pub(super) fn site(&mut self, table: &Table<'f, '_>, site: &Arc<str>, proxies: ProxyMode) -> Result<(), SeedError> {
        self.rotation_of(table, site, proxies)?;
        if let Some(policy) = own::<SignalPolicy>(table, site)? {
            self.signal.push(policy);
        }
        if let Some(policy) = own::<BreakerPolicy>(table, site)? {
            self.breaker.push(policy);
        }
        let written = own::<ActionPolicy>(table, site)?;
        let cooled = cooldowns(table, site)?;
        match (written, cooled) {
            (Some(_), Some((_, place))) => {
                return Err(place.wrong("the site has an action policy of its own; write a rule of it instead"));
            }
            (written, cooled) => self.action.extend(written.or(cooled)),
        }
        Ok(())
    }

    fn rotation_of(&mut self, table: &Table<'f, '_>, site: &Arc<str>, proxies: ProxyMode) -> Result<(), SeedError> {
        let mut document = Map::new();
        let parts = ["rotation", "proxy"].map(|key| table.get(key));
        for (key, part) in ["rotation", "proxy"].into_iter().zip(&parts) {
            document.extend(part.as_ref().map(|part| (key.to_owned(), part.node.to_value())));
        }
        let reaches =
            |policy: &RotationPolicy| policy.head.bind.iter().any(|place| place.site.as_ref().is_none_or(|named| named == site));
        let implied = proxies != ProxyMode::None && !self.rotation.iter().any(|(policy, _)| reaches(policy));
        if document.is_empty() && !implied {
            return Ok(());
        }
        document.insert("name".to_owned(), Value::from("site"));
        let mut policy = RotationPolicy::read(&Value::Object(document)).map_err(|error| {
            let (path, reason) = told(&error);
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let part = parts.iter().flatten().find(|part| part.place.path().ends_with(first));
            part.map_or_else(|| table.place.wrong(&reason), |part| part.place.wrong_at(part.node.locate(rest), &reason))
        })?;
        if parts.iter().flatten().all(|part| !part.place.path().ends_with(".proxy")) {
            policy.proxy.mode = proxies;
        }
        policy.head = head(site, Kind::Rotation);
        self.rotation.push((policy, table.place.clone()));
        Ok(())
    }

    /// Checks them all against each other and against the sites.
    pub(super) fn finish(mut self, sites: &[SeedSite]) -> Result<SeedPolicies, SeedError> {
        for (policy, place) in &self.rotation {
            known_places(&policy.head, place, sites)?;
            known_types(policy, place, sites)?;
        }
        for (policy, place) in &self.signal {
            known_places(&policy.head, place, sites)?;
        }
        for (policy, place) in &self.action {
            known_places(&policy.head, place, sites)?;
        }
        for (policy, place) in &self.breaker {
            known_places(&policy.head, place, sites)?;
        }
        self.heirs()?;
        for (policy, _) in &mut self.rotation {
            to_namespace(&mut policy.head, Kind::Rotation);
        }
        for (policy, _) in &mut self.signal {
            to_namespace(&mut policy.head, Kind::Signal);
        }
        for (policy, _) in &mut self.action {
            to_namespace(&mut policy.head, Kind::Action);
        }
        for (policy, _) in &mut self.breaker {
            to_namespace(&mut policy.head, Kind::Breaker);
        }
        Ok(SeedPolicies {
            rotation: distinct(self.rotation)?,
            signal: distinct(self.signal)?,
            action: distinct(self.action)?,
            breaker: distinct(self.breaker)?,
        })
    }

    /// Every `extends` leads somewhere, and not too far.
    fn heirs(&self) -> Result<(), SeedError> {
        let built_in = SignalPolicy::default();
        let by_name: std::collections::HashMap<&str, &SignalPolicy> =
            self.signal.iter().map(|(policy, _)| (&*policy.head.name, policy)).collect();
        for (policy, place) in &self.signal {
            let find = |name: &str| by_name.get(name).copied().or((*built_in.head.name == *name).then_some(&built_in));
            lineage(policy, find).map_err(|error| place.wrong(error))?;
        }
        Ok(())
    }
}

/// Reads the policies of one kind.
fn list<'f, P: Policy>(table: &Table<'f, '_>) -> Result<Placed<'f, P>, SeedError> {
    table
        .list(P::KIND.name())?
        .into_iter()
        .map(|field| {
            let policy = P::read(&field.node.to_value()).map_err(|error| {
                let (path, reason) = told(&error);
                field.place.wrong_at(field.node.locate(path), &reason)
            })?;
            Ok((policy, field.place))
        })
        .collect()
}

/// Reads the policy that a site has under the name of its kind.
fn own<'f, P: Policy + Headed>(table: &Table<'f, '_>, site: &Arc<str>) -> Result<Option<(P, Place<'f>)>, SeedError> {
    let Some(field) = table.get(P::KIND.name()) else { return Ok(None) };
    let written = field.open_table("a table, the policy without name and bind")?;
    for key in ["name", "bind"] {
        if let Some(key) = written.get(key) {
            return Err(key.place.wrong("a policy inside a site has none; write it under policies to name and bind it"));
        }
    }
    let mut document = field.node.to_value();
    if let Value::Object(map) = &mut document {
        map.insert("name".to_owned(), Value::from("site"));
    }
    let mut policy = P::read(&document).map_err(|error| {
        let (path, reason) = told(&error);
        field.place.wrong_at(field.node.locate(path), &reason)
    })?;
    policy.set_head(head(site, P::KIND));
    Ok(Some((policy, field.place)))
}

/// A policy whose head is given from outside.
trait Headed {
    fn set_head(&mut self, head: Head);
}

impl Headed for SignalPolicy {
    fn set_head(&mut self, head: Head) {
        self.head = head;
    }
}

impl Headed for ActionPolicy {
    fn set_head(&mut self, head: Head) {
        self.head = head;
    }
}

impl Headed for BreakerPolicy {
    fn set_head(&mut self, head: Head) {
        self.head = head;
    }
}

fn head(site: &Arc<str>, kind: Kind) -> Head {
    Head {
        // A slash is in no written name, so it is nobody else's.
        name: format!("site/{site}/{}", kind.name()).into(),
        description: "".into(),
        bind: vec![Binding { site: Some(Arc::clone(site)), ..Binding::default() }],
    }
}

/// The built-in action policy with the cool-downs a site asks for.
fn cooldowns<'f>(table: &Table<'f, '_>, site: &Arc<str>) -> Result<Option<(ActionPolicy, Place<'f>)>, SeedError> {
    let mut policy = ActionPolicy::default();
    let mut place = None;
    for (key, outcome, scope) in [
        ("cooldown_429", Outcome::RateLimited, Scope::IdentityEndpoint),
        ("cooldown_403", Outcome::Forbidden, Scope::IdentityEndpoint),
        ("cooldown_proxy", Outcome::ProxyError, Scope::ProxySite),
    ] {
        let Some(field) = table.get(key) else { continue };
        let base = duration(&field)?;
        set_cooldown(&mut policy.rules, outcome, scope, base);
        place = Some(field.place);
    }
    policy.head = head(site, Kind::Action);
    Ok(place.map(|place| (policy, place)))
}

/// Gives the rule of the outcome another length, or adds one; zero takes it out.
fn set_cooldown(rules: &mut Vec<ActionRule>, outcome: Outcome, scope: Scope, base: Duration) {
    let found = rules
        .iter()
        .position(|rule| rule.count.is_none() && rule.outcomes.contains(outcome) && matches!(rule.action, Action::Cooldown(_)));
    if base.is_zero() {
        if let Some(index) = found {
            rules.remove(index);
        }
        return;
    }
    let longest = |cooldown: Cooldown| Cooldown { base, max: cooldown.max.max(base), ..cooldown };
    match found.and_then(|index| rules.get_mut(index)) {
        Some(rule) => {
            if let Action::Cooldown(cooldown) = rule.action {
                rule.action = Action::Cooldown(longest(cooldown));
            }
        }
        None => rules.push(ActionRule {
            name: format!("{}-cooldown", outcome.name().replace('_', "-")).into(),
            outcomes: Outcomes::of(outcome),
            count: None,
            action: Action::Cooldown(longest(Cooldown {
                multiplier: 2.0,
                max: Duration::from_secs(1_800),
                ..Cooldown::constant(base)
            })),
            scope,
        }),
    }
}

fn duration(field: &Field<'_, '_>) -> Result<Duration, SeedError> {
    match Term::parse(field.text().map_err(|_| field.expected("a text such as \"1s\", \"5m\" or \"0\""))?) {
        Ok(Term::For(duration)) if duration <= LONGEST => Ok(duration),
        Ok(_) => Err(field.place.wrong("expected a duration such as \"1s\", \"5m\" or \"0\", with an end")),
        Err(error) => Err(field.place.wrong(error)),
    }
}

/// The path of an error, and what it says beside the name of the policy.
fn told(error: &PolicyError) -> (&str, String) {
    let path = match error {
        PolicyError::UnknownKey { path, .. }
        | PolicyError::NotAllowed { path, .. }
        | PolicyError::Missing { path, .. }
        | PolicyError::Duration { path, .. } => path.as_str(),
        _ => "",
    };
    let text = error.to_string();
    let policy = text.split_once(": ").filter(|(policy, _)| policy.ends_with("\"site\"") || policy.ends_with("policy"));
    (path, policy.map_or_else(|| text.clone(), |(_, rest)| rest.to_owned()))
}

fn known_places(head: &Head, place: &Place<'_>, sites: &[SeedSite]) -> Result<(), SeedError> {
    for binding in &head.bind {
        let Some(site) = &binding.site else { continue };
        let names: Vec<&str> = sites.iter().map(|site| &*site.name).collect();
        let found = sites.iter().find(|known| known.name == *site).ok_or_else(|| unknown(place, "site", site, &names))?;
        let Some(client) = &binding.client else { continue };
        let names: Vec<&str> = found.clients.iter().map(|client| &*client.name).collect();
        let found = found.clients.iter().find(|known| known.name == *client);
        let found = found.ok_or_else(|| unknown(place, "client", client, &names))?;
        let Some(group) = &binding.group else { continue };
        if found.groups.index_of(group).is_none() {
            let names: Vec<&str> = found.groups.names().iter().map(|name| &**name).collect();
            return Err(unknown(place, "endpoint_group", group, &names));
        }
    }
    Ok(())
}

fn known_types(policy: &RotationPolicy, place: &Place<'_>, sites: &[SeedSite]) -> Result<(), SeedError> {
    let mut names: Vec<&str> = sites.iter().flat_map(|site| &site.types).map(|kind| &*kind.name).collect();
    names.push(super::PLAIN);
    match policy.identity_types.iter().find(|kind| !names.contains(&&***kind)) {
        None => Ok(()),
        Some(kind) => Err(place.wrong_key(
            "identity_types",
            format_args!("no site has the identity type {kind:?}{}; there are {}", guess(kind, &names), names.join(", ")),
        )),
    }
}

fn unknown(place: &Place<'_>, what: &str, given: &str, names: &[&str]) -> SeedError {
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let guess = guess(given, names);
    place.wrong_key("bind", format_args!("{what} {given:?} is not in the file{guess}; there are {known}"))
}

/// A policy with the built-in one's name takes its place, unless it is bound elsewhere.
fn to_namespace(head: &mut Head, kind: Kind) {
    if *head.name == *kind.built_in() && head.bind.is_empty() {
        head.bind.push(Binding::default());
    }
}

/// The policies of one kind, if no two have one name or one place.
fn distinct<P: Policy>(placed: Placed<'_, P>) -> Result<Vec<Arc<P>>, SeedError> {
    let (policies, places): (Vec<Arc<P>>, Vec<Place<'_>>) =
        placed.into_iter().map(|(policy, place)| (Arc::new(policy), place)).unzip();
    if let Err(error) = Bindings::of(&policies) {
        // The shortest beginning that is wrong ends with the one to tell.
        let ends: Vec<usize> = (1..=policies.len()).collect();
        let good = ends.partition_point(|end| policies.get(..*end).is_some_and(|some| Bindings::of(some).is_ok()));
        return Err(places.get(good).map_or_else(
            || SeedError::Wrong { path: "".into(), line: None, key: "policies".to_owned(), reason: error.to_string() },
            |place| place.wrong(&error),
        ));
    }
    Ok(policies)
}
