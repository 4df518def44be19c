//! Whatever the document: a policy or an error, never a panic; and what was read can be used.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::super::{Action, ActionPolicy, BreakerPolicy, Kind, Policy, RotationPolicy, Scope, SignalPolicy};
use super::check;
use crate::plane::model::signal::{Classifier, Seen};

const KEYS: [&str; 40] = [
    "name",
    "bind",
    "site",
    "client",
    "extends",
    "rules",
    "when",
    "outcome",
    "outcomes",
    "blame",
    "http_status",
    "gte",
    "gt",
    "lte",
    "lt",
    "uri",
    "prefix",
    "regex",
    "markers",
    "method",
    "error_kind",
    "business_code",
    "latency_ms",
    "action",
    "scope",
    "base",
    "max",
    "duration",
    "count",
    "within",
    "escalation",
    "bans",
    "rotation",
    "quota",
    "limit",
    "window",
    "lease_ttl",
    "sticky",
    "ttl",
    "trip",
];

const TEXTS: [&str; 18] = [
    "p",
    "captcha",
    "empty",
    "cooldown",
    "ban",
    "quarantine",
    "expire",
    "identity",
    "proxy",
    "account",
    "1h",
    "30d",
    "permanent",
    "0",
    "timeout",
    "a+",
    "/a",
    "(",
];

/// Values in the shape of YAML, of the words policies are made of and of others.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..1_100).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(&TEXTS[..]).prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let key = prop_oneof![8 => prop::sample::select(&KEYS[..]).prop_map(str::to_owned), 1 => ".{0,20}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A good document with one of its values replaced, somewhere.
fn bent() -> impl Strategy<Value = (usize, Value)> {
    let golden = [
        include_str!("../golden/rotation.toml"),
        include_str!("../golden/signal.toml"),
        include_str!("../golden/action.toml"),
        include_str!("../golden/breaker.toml"),
    ];
    (0..golden.len(), any::<prop::sample::Index>(), any_value()).prop_map(move |(kind, at, value)| {
        let mut document = toml::from_str::<Value>(golden[kind]).unwrap();
        let mut count = 0;
        walk(&mut document, &mut |_| count += 1);
        let (target, mut index) = (at.index(count), 0);
        walk(&mut document, &mut |node| {
            if index == target {
                *node = value.clone();
            }
            index += 1;
        });
        (kind, document)
    })
}

fn walk(node: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    match node {
        Value::Array(list) => list.iter_mut().for_each(|item| walk(item, visit)),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, item)| walk(item, visit)),
        _ => {}
    }
    visit(node);
}

proptest! {
    #[test]
    fn no_document_panics(document in any_value()) {
        for kind in [Kind::Rotation, Kind::Signal, Kind::Action, Kind::Breaker] {
            if let Err(error) = check(kind, &document) {
                prop_assert!(error.to_string().starts_with(&format!("{} policy", kind.name())), "{}", error);
            }
        }
    }

    #[test]
    fn a_bent_document_is_refused_or_within_the_limits((kind, document) in bent()) {
        match kind {
            0 => if let Ok(policy) = RotationPolicy::read(&document) {
                prop_assert!(policy.lease_ttl <= policy.max_lease_lifetime && policy.max_lease_lifetime <= 86_400 * SECOND);
                prop_assert!((1..=256).contains(&policy.candidate_sample) && policy.probe.weight_factor > 0.0);
                prop_assert!(policy.quota.iter().all(|quota| quota.limit > 0 && quota.window >= SECOND));
            },
            1 => if let Ok(policy) = SignalPolicy::read(&document) {
                let classifier = Classifier::of(&policy, |_| None);
                prop_assert_eq!(classifier.is_ok(), policy.extends.is_none());
                let seen = Seen::<&str> {
                    uri: "/a", method: "GET", http_status: 200, business_code: "", error_kind: "", markers: &[], outcome_hint: "",
                    latency_ms: 1, response_bytes: 1,
                };
                if let Ok(classifier) = classifier {
                    prop_assert!(classifier.classify(&seen).rule.is_none_or(|rule| rule < policy.rules.len()));
                }
            },
            2 => if let Ok(policy) = ActionPolicy::read(&document) {
                for rule in &policy.rules {
                    prop_assert!(rule.count.is_none_or(|count| count.gte > 0 && count.within >= SECOND));
                    if let Action::Cooldown(cooldown) = rule.action {
                        prop_assert!(cooldown.base <= cooldown.max && cooldown.base > std::time::Duration::ZERO);
                        prop_assert!(cooldown.multiplier >= 1.0 && cooldown.max_exponent <= 64 && rule.scope != Scope::Identity);
                    }
                }
            },
            _ => if let Ok(policy) = BreakerPolicy::read(&document) {
                prop_assert!(policy.bucket() >= SECOND && policy.open_duration <= policy.max_open_duration);
            },
        }
    }
}

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
