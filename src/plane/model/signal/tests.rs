//! Classification: the numbered checks of the contract, every condition, and a slow reference to agree with.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::policy::Policy;
use super::*;

const PAGE: Seen<'static, &str> = Seen {
    uri: "/search?q=1",
    method: "GET",
    http_status: 200,
    business_code: "",
    error_kind: "",
    markers: &[],
    outcome_hint: "",
    latency_ms: 120,
    response_bytes: 4_096,
};

fn classifier(document: Value) -> Classifier {
    Classifier::of(&SignalPolicy::read(&document).unwrap(), |_| None).unwrap()
}

/// What the built-in policy makes of it.
fn built_in(seen: Seen<'_, &str>) -> (&'static str, Blame, String) {
    let classifier = Classifier::of(&SignalPolicy::default(), |_| None).unwrap();
    let verdict = classifier.classify(&seen);
    assert_eq!(verdict.rule.is_some(), !verdict.rule_name.is_empty());
    (verdict.outcome.name(), verdict.blame, verdict.rule_name.to_owned())
}

/// A policy of one rule with these conditions, applied.
fn holds(when: Value, seen: Seen<'_, &str>) -> bool {
    classifier(json!({"name": "p", "rules": [{"when": when, "outcome": "empty"}]})).classify(&seen).rule == Some(0)
}

fn answer(status: u16) -> Seen<'static, &'static str> {
    Seen { http_status: status, ..PAGE }
}

fn failure(kind: &'static str) -> Seen<'static, &'static str> {
    Seen { http_status: 0, error_kind: kind, ..PAGE }
}

fn marked(status: u16, markers: &'static [&'static str]) -> Seen<'static, &'static str> {
    Seen { markers, ..answer(status) }
}

#[test]
fn b154_a_429_is_rate_limited_and_blames_both() {
    assert_eq!(built_in(answer(429)), ("rate_limited", Blame::Both, "rate-limited".into()));
    assert_eq!(built_in(answer(200)), ("success", Blame::Nobody, "success".into()));
}

#[test]
fn b155_a_captcha_marker_is_a_captcha_whatever_the_status() {
    for status in [200, 403, 429, 503, 0] {
        assert_eq!(built_in(marked(status, &["x", "captcha_page"])), ("captcha", Blame::Identity, "captcha".into()));
    }
}

#[test]
fn b156_a_401_and_a_login_redirect_are_auth_invalid() {
    assert_eq!(built_in(answer(401)), ("auth_invalid", Blame::Identity, "auth-invalid".into()));
    assert_eq!(built_in(marked(200, &["login_redirect"])), ("auth_invalid", Blame::Identity, "login-redirect".into()));
    let banned = classifier(json!({"name": "p", "rules": [{"when": {"business_code": [2154]}, "outcome": "banned"}]}));
    let verdict = banned.classify(&Seen { business_code: "2154", ..PAGE });
    assert_eq!((verdict.outcome, verdict.blame), (Outcome::Banned, Blame::Identity));
}

#[test]
fn b157_proxy_and_network_failures_blame_the_proxy() {
    for kind in ["proxy_auth", "conn_refused"] {
        assert_eq!(built_in(failure(kind)), ("proxy_error", Blame::Proxy, "proxy-error".into()), "{kind}");
    }
    for kind in ["timeout", "conn_reset", "tls", "dns"] {
        assert_eq!(built_in(failure(kind)), ("network_error", Blame::Proxy, "network-error".into()), "{kind}");
    }
}

#[test]
fn b158_a_404_a_redirect_and_other_errors_are_unknown() {
    for seen in [answer(404), answer(301), answer(302), answer(304), answer(410), answer(199), failure("other"), failure("")] {
        assert_eq!(built_in(seen), ("unknown", Blame::Nobody, String::new()), "{seen:?}");
    }
}

#[test]
fn the_other_built_in_rules_hold() {
    for status in [500, 503, 599, 999] {
        assert_eq!(built_in(answer(status)), ("target_error", Blame::Nobody, "target-error".into()));
    }
    for status in [200, 204, 299] {
        assert_eq!(built_in(answer(status)).0, "success");
    }
    assert_eq!(built_in(marked(200, &["empty_list"])), ("empty", Blame::Identity, "empty-list".into()));
    assert_eq!(built_in(marked(201, &["empty_list"])).0, "success");
    assert_eq!(built_in(answer(400)), ("client_error", Blame::Nobody, "client-error".into()));
    assert_eq!(built_in(answer(403)), ("forbidden", Blame::Identity, "forbidden".into()));
}

#[test]
fn b172_a_hint_counts_only_if_trusted_and_only_without_a_rule() {
    let policy = |trust: bool| {
        let rules = json!([{"name": "seen", "when": {"http_status": 429}, "outcome": "rate_limited"}]);
        classifier(json!({"name": "p", "trust_outcome_hint": trust, "rules": rules}))
    };
    let outcome = |trust, status, hint| {
        let policy = policy(trust);
        let verdict = policy.classify(&Seen { outcome_hint: hint, ..answer(status) });
        (verdict.outcome, verdict.blame, verdict.rule)
    };
    assert_eq!(outcome(false, 200, "captcha"), (Outcome::Unknown, Blame::Nobody, None));
    assert_eq!(outcome(true, 200, "captcha"), (Outcome::Captcha, Blame::Identity, None));
    assert_eq!(outcome(true, 429, "captcha"), (Outcome::RateLimited, Blame::Both, Some(0)));
    for hint in ["", "Captcha", "captcha_page"] {
        assert_eq!(outcome(true, 200, hint), (Outcome::Unknown, Blame::Nobody, None), "{hint}");
    }
}

#[test]
fn a_status_condition_is_a_number_a_list_or_a_range() {
    for (when, status, expected) in [
        (json!(429), 429, true),
        (json!(429), 428, false),
        (json!(0), 0, true),
        (json!([0, 503]), 0, true),
        (json!([0, 503]), 503, true),
        (json!([503]), 0, false),
        (json!({"gte": 500}), 500, true),
        (json!({"gt": 500}), 500, false),
        (json!({"gt": 499, "lte": 503}), 503, true),
        (json!({"lt": 503}), 503, false),
        (json!({"gte": 0}), 0, false),
        (json!({"lt": 500}), 0, false),
        (json!({"lt": 500}), 1, true),
    ] {
        assert_eq!(holds(json!({"http_status": when}), answer(status)), expected, "{when} {status}");
    }
}

#[test]
fn every_other_condition_looks_at_its_field() {
    for (when, seen, expected) in [
        (json!({}), PAGE, true),
        (json!(null), PAGE, true),
        (json!({"business_code": ["8", 12]}), Seen { business_code: "12", ..PAGE }, true),
        (json!({"business_code": ["8", 12]}), Seen { business_code: "012", ..PAGE }, false),
        (json!({"business_code": ["", 12]}), PAGE, false),
        (json!({"error_kind": ["dns"]}), failure("dns"), true),
        (json!({"error_kind": ["dns"]}), failure("tls"), false),
        (json!({"error_kind": ["dns"]}), PAGE, false),
        (json!({"error_kind": [""]}), PAGE, true),
        (json!({"error_kind": ["", "other"]}), failure("no_such_kind"), false),
        (json!({"markers": ["a", "b"]}), marked(200, &["c", "b"]), true),
        (json!({"markers": ["a", "b"]}), marked(200, &["A", "ab"]), false),
        (json!({"markers": ["a"]}), PAGE, false),
        (json!({"uri": {"prefix": "/search"}}), PAGE, true),
        (json!({"uri": {"prefix": "search"}}), PAGE, false),
        (json!({"uri": {"regex": r"q=\d$"}}), PAGE, true),
        (json!({"uri": {"regex": r"^q="}}), PAGE, false),
        (json!({"method": ["post", "get"]}), PAGE, true),
        (json!({"method": ["Post"]}), Seen { method: "pOST", ..PAGE }, true),
        (json!({"method": ["post"]}), PAGE, false),
        (json!({"method": ["post"]}), Seen { method: "", ..PAGE }, false),
        (json!({"latency_ms": {"gte": 120, "lt": 121}}), PAGE, true),
        (json!({"latency_ms": {"gt": 120}}), PAGE, false),
        (json!({"response_bytes": {"lte": 4096}}), PAGE, true),
        (json!({"response_bytes": {"lt": 4096}}), PAGE, false),
        (json!({"http_status": 200, "markers": ["a"]}), PAGE, false),
        (json!({"http_status": 200, "markers": ["a"]}), marked(200, &["a"]), true),
    ] {
        assert_eq!(holds(when.clone(), seen), expected, "{when} {seen:?}");
    }
}

#[test]
fn the_rules_of_the_parents_come_first_and_only_the_leaf_trusts() {
    let read = |document: Value| SignalPolicy::read(&document).unwrap();
    let rule =
        |name: &str, status: u16, outcome: &str| json!({"name": name, "when": {"http_status": status}, "outcome": outcome});
    let policies = [
        read(json!({"name": "leaf", "extends": "mid", "rules": [rule("l", 1, "empty"), rule("own", 3, "captcha")]})),
        read(json!({"name": "mid", "extends": "root", "trust_outcome_hint": true, "rules": [rule("m", 2, "empty")]})),
        read(json!({"name": "root", "rules": [rule("r", 1, "banned")]})),
    ];
    let find = |name: &str| policies.iter().find(|policy| &*policy.head.name == name);
    let classifier = Classifier::of(&policies[0], find).unwrap();
    let named = |status| {
        let verdict = classifier.classify(&answer(status));
        (verdict.rule, verdict.rule_name, verdict.outcome)
    };
    assert_eq!(named(1), (Some(0), "r", Outcome::Banned));
    assert_eq!(named(2), (Some(1), "m", Outcome::Empty));
    assert_eq!(named(3), (Some(3), "own", Outcome::Captcha));
    assert_eq!(classifier.classify(&Seen { outcome_hint: "captcha", ..answer(9) }).outcome, Outcome::Unknown);
    let trusting = Classifier::of(&policies[1], find).unwrap();
    assert_eq!(trusting.classify(&Seen { outcome_hint: "captcha", ..answer(9) }).outcome, Outcome::Captcha);
    assert!(Classifier::of(&policies[0], |_| None).is_err());
}

#[test]
fn a_rule_can_put_the_blame_elsewhere() {
    for (blame, expected) in [
        (json!("none"), Blame::Nobody),
        (json!("identity"), Blame::Identity),
        (json!("proxy"), Blame::Proxy),
        (json!(null), Blame::Both),
    ] {
        let policy = classifier(json!({"name": "p", "rules": [{"outcome": "rate_limited", "blame": blame}]}));
        assert_eq!(policy.classify(&PAGE).blame, expected);
    }
}

/// Straight from the contract's text and the written document, without anything compiled.
fn reference(document: &Value, seen: &Seen<'_, String>) -> (String, Option<usize>) {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect()
    };
    let within = |range: &Value, number: u64| {
        range.as_object().unwrap().iter().all(|(key, bound)| {
            let bound = bound.as_u64().unwrap();
            match key.as_str() {
                "gte" => number >= bound,
                "gt" => number > bound,
                "lte" => number <= bound,
                _ => number < bound,
            }
        })
    };
    for (index, rule) in document["rules"].as_array().unwrap().iter().enumerate() {
        let all = rule["when"].as_object().unwrap().iter().all(|(key, value)| match key.as_str() {
            "http_status" if value.is_object() => seen.http_status > 0 && within(value, u64::from(seen.http_status)),
            "http_status" if value.is_array() => value.as_array().unwrap().contains(&json!(seen.http_status)),
            "http_status" => *value == json!(seen.http_status),
            "business_code" => !seen.business_code.is_empty() && texts(value).iter().any(|code| code == seen.business_code),
            "error_kind" => texts(value).iter().any(|kind| kind == seen.error_kind),
            "markers" => texts(value).iter().any(|marker| seen.markers.contains(marker)),
            "method" => texts(value).iter().any(|method| method.to_lowercase() == seen.method.to_lowercase()),
            "latency_ms" => within(value, seen.latency_ms),
            "response_bytes" => within(value, seen.response_bytes),
            _ => match (value["prefix"].as_str(), value["regex"].as_str()) {
                (Some(prefix), _) => seen.uri.find(prefix) == Some(0),
                (_, Some("^/b")) => seen.uri.starts_with("/b"),
                (_, Some("a$")) => seen.uri.ends_with('a'),
                other => panic!("{other:?}"),
            },
        });
        if all {
            return (rule["outcome"].as_str().unwrap().to_owned(), Some(index));
        }
    }
    let trusted = document["trust_outcome_hint"] == json!(true) && Outcome::of(seen.outcome_hint).is_some();
    (if trusted { seen.outcome_hint.to_owned() } else { "unknown".to_owned() }, None)
}

fn one_of<T: Clone + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(values)
}

fn any_range() -> impl Strategy<Value = Value> {
    (one_of(&["gte", "gt"]), one_of(&["lte", "lt"]), 0_u64..4, 2_u64..6, 0..3).prop_map(
        |(low, high, from, to, which)| match which {
            0 => json!({ low: from }),
            1 => json!({ high: to }),
            _ => json!({ low: from, high: from + to }),
        },
    )
}

fn list<T: Clone + std::fmt::Debug + Into<Value> + 'static>(values: &'static [T]) -> impl Strategy<Value = Value> {
    prop::collection::vec(one_of(values).prop_map(Into::into), 1..3).prop_map(Value::Array)
}

fn any_condition() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        prop_oneof![any_range(), list(&[0, 1, 2, 200]), one_of(&[0, 1, 2, 200]).prop_map(Value::from)]
            .prop_map(|v| ("http_status", v)),
        prop_oneof![list(&["1", "x", ""]), list(&[1, 2])].prop_map(|v| ("business_code", v)),
        list(&["", "dns", "tls", "other"]).prop_map(|v| ("error_kind", v)),
        list(&["a", "b", "c"]).prop_map(|v| ("markers", v)),
        list(&["get", "POST"]).prop_map(|v| ("method", v)),
        any_range().prop_map(|v| ("latency_ms", v)),
        any_range().prop_map(|v| ("response_bytes", v)),
        one_of(&["/", "/a", "/b/a"]).prop_map(|prefix| ("uri", json!({ "prefix": prefix }))),
        one_of(&["^/b", "a$"]).prop_map(|regex| ("uri", json!({ "regex": regex }))),
    ]
}

fn any_policy() -> impl Strategy<Value = Value> {
    let outcomes = Outcome::ALL.map(Outcome::name).to_vec();
    let rule = (prop::collection::vec(any_condition(), 0..3), prop::sample::select(outcomes)).prop_map(|(when, outcome)| {
        let when: serde_json::Map<_, _> = when.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        json!({"when": when, "outcome": outcome})
    });
    (any::<bool>(), prop::collection::vec(rule, 0..6))
        .prop_map(|(trust, rules)| json!({"name": "p", "trust_outcome_hint": trust, "rules": rules}))
}

proptest! {
    #[test]
    fn classification_agrees_with_the_slow_reference(
        document in any_policy(),
        (uri, method, http_status) in (one_of(&["/", "/a", "/b/a", "x/b"]), one_of(&["", "GET", "post"]), one_of(&[0_u16, 1, 2, 3, 200])),
        (code, kind, hint) in (one_of(&["", "1", "x"]), one_of(&["", "dns", "tls", "other"]), one_of(&["", "captcha", "none"])),
        markers in prop::collection::vec("[abd]", 0..3),
        (latency_ms, response_bytes) in (0_u64..6, 0_u64..6),
    ) {
        let seen = Seen {
            uri, method, http_status, business_code: code, error_kind: kind, markers: &markers, outcome_hint: hint, latency_ms,
            response_bytes,
        };
        let classifier = classifier(document.clone());
        let verdict = classifier.classify(&seen);
        prop_assert_eq!((verdict.outcome.name().to_owned(), verdict.rule), reference(&document, &seen));
        prop_assert_eq!(verdict.blame, verdict.outcome.blame());
    }
}
