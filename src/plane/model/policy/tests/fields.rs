//! Every field of a document arrives where it belongs.

use std::time::Duration;

use serde_json::json;

use super::super::breaker::{HalfOpen, Trip};
use super::super::health::CrossAttribution;
use super::super::pattern::Pattern;
use super::super::rotation::{Probe, Quota, Sticky, Warmup};
use super::super::rule::Count;
use super::super::signal::Range;
use super::super::*;
use crate::plane::model::{Blame, Outcome};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_rotation_policy_with_nothing_left_out() {
    let document = json!({
        "name": "busy-2.x_y",
        "description": "for the search",
        "bind": [{}, {"site": "shop"}, {"site": "shop", "client": "web", "endpoint_group": "_default"}],
        "identity_types": ["cookie", "token"],
        "rotation": {
            "strategy": "round_robin", "candidate_sample": 8, "lease_ttl": "10s", "max_lease_lifetime": "1m",
            "max_concurrent_leases": 4, "reuse_interval": "1.5s", "reuse_anchor": "acquired", "reuse_scope": "site",
            "quota": [{"limit": 10, "window": "1m"}, {"limit": 100, "window": "1d"}],
            "sticky": {"enabled": true, "ttl": "5m"}, "warmup": {"duration": "2d", "quota_factor": 0.2},
            "probe": {"weight_factor": 0.5, "max_leases": 3},
        },
        "proxy": {
            "mode": "bind_identity", "kinds": ["mobile"], "tags": ["a", "b"], "providers": ["x"], "regions": ["HK"],
            "region_match": true, "rebind_tolerance": 0, "max_rebinds_per_day": 0,
        },
    });
    let place = |site: Option<&str>, client: Option<&str>, group: Option<&str>| Binding {
        site: site.map(Into::into),
        client: client.map(Into::into),
        group: group.map(Into::into),
    };
    let policy = RotationPolicy {
        head: Head {
            name: "busy-2.x_y".into(),
            description: "for the search".into(),
            bind: vec![
                place(None, None, None),
                place(Some("shop"), None, None),
                place(Some("shop"), Some("web"), Some("_default")),
            ],
        },
        identity_types: ["cookie".into(), "token".into()].into(),
        strategy: Strategy::RoundRobin,
        candidate_sample: 8,
        lease_ttl: 10 * SECOND,
        max_lease_lifetime: 60 * SECOND,
        max_concurrent_leases: 4,
        reuse_interval: Duration::from_millis(1_500),
        reuse_anchor: ReuseAnchor::Acquired,
        reuse_scope: ReuseScope::Site,
        quota: [Quota { limit: 10, window: 60 * SECOND }, Quota { limit: 100, window: 86_400 * SECOND }].into(),
        sticky: Sticky { enabled: true, ttl: 300 * SECOND },
        warmup: Warmup { duration: 172_800 * SECOND, quota_factor: 0.2 },
        probe: Probe { weight_factor: 0.5, max_leases: 3 },
        proxy: ProxyPolicy {
            mode: ProxyMode::BindIdentity,
            kinds: ["mobile".into()].into(),
            tags: ["a".into(), "b".into()].into(),
            providers: ["x".into()].into(),
            regions: ["HK".into()].into(),
            region_match: true,
            rebind_tolerance: Duration::ZERO,
            max_rebinds_per_day: 0,
        },
    };
    assert_eq!(RotationPolicy::read(&document).unwrap(), policy);
    assert_eq!(serde_json::from_value::<RotationPolicy>(document).unwrap(), policy);
    assert!(policy.proxy.matches_region());
    assert!(ProxyPolicy { mode: ProxyMode::RegionMatch, ..ProxyPolicy::default() }.matches_region());
    assert!(!ProxyPolicy::default().matches_region());
}

#[test]
fn a_signal_policy_with_every_condition() {
    let document = json!({
        "name": "p", "extends": "default-signal", "trust_outcome_hint": true,
        "rules": [
            {"name": "all", "outcome": "banned", "blame": "both", "when": {
                "http_status": [0, 200, 429], "business_code": ["A1", 12, -3], "error_kind": ["", "dns"], "markers": ["m", "n"],
                "uri": {"prefix": "/a"}, "method": ["get"], "latency_ms": {"gt": 10, "lt": 20},
                "response_bytes": {"gte": 5, "lte": 5},
            }},
            {"outcome": "empty", "blame": "none", "when": {"uri": {"regex": "b+$"}, "http_status": {"lt": 1000}}},
            {"outcome": "unknown"},
        ],
    });
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).into()).collect());
    let policy = SignalPolicy::read(&document).unwrap();
    assert_eq!(format!("{:?}", policy.rules[0].when.error_kind), r#"Some({"", "dns"})"#);
    let rules = vec![
        SignalRule {
            name: "all".into(),
            outcome: Outcome::Banned,
            blame: Some(Blame::Both),
            when: When {
                http_status: Some(Status::Among([0, 200, 429].into())),
                business_code: texts(&["A1", "12", "-3"]),
                error_kind: policy.rules[0].when.error_kind,
                markers: texts(&["m", "n"]),
                uri: Some(UriCondition::Prefix("/a".into())),
                method: texts(&["get"]),
                latency_ms: Some(Range { low: 11, high: 19 }),
                response_bytes: Some(Range { low: 5, high: 5 }),
            },
        },
        SignalRule {
            name: "".into(),
            outcome: Outcome::Empty,
            blame: Some(Blame::Nobody),
            when: When {
                http_status: Some(Status::Within(Range { low: 0, high: 999 })),
                uri: Some(UriCondition::Regex(Pattern::new("b+$").unwrap())),
                ..When::default()
            },
        },
        SignalRule { name: "".into(), outcome: Outcome::Unknown, blame: None, when: When::default() },
    ];
    assert_eq!(policy.rules, rules);
    assert_eq!((policy.extends.as_deref(), policy.trust_outcome_hint), (Some("default-signal"), true));
}

#[test]
fn an_action_policy_with_nothing_left_out() {
    let document = json!({
        "name": "p", "mode": "shadow", "ban_expiry_state": "active",
        "rules": [
            {"name": "c", "when": {"outcome": ["captcha", "forbidden"], "count": {"gte": 4, "within": "30d"}}, "action": "cooldown",
             "scope": "identity", "base": "2s", "multiplier": 1.5, "max": "5s", "max_exponent": 64, "failure_reset_after": "3s"},
            {"when": {"outcomes": ["proxy_error"]}, "action": "quarantine", "scope": "proxy"},
            {"when": {"outcomes": "empty"}, "action": "quarantine", "scope": "identity", "duration": "1h"},
            {"when": {"outcome": "banned"}, "action": "ban", "scope": "proxy", "duration": "permanent"},
            {"when": {"outcome": "auth_invalid"}, "action": "expire"},
        ],
        "escalation": [{"when": {"bans": {"gte": 1, "within": "1d"}}, "duration": "2d"}],
        "health": {
            "alpha": 1, "baseline": 50, "tau": "1h", "observations": {"banned": 1, "success": 99.5}, "endpoint_low_score": 0,
            "endpoint_low_min_samples": 1, "endpoint_low_cooldown": "2h", "quarantine_score": 100, "quarantine_min_samples": 2,
            "quarantine_duration": "3h",
        },
        "cross_attribution": {"enabled": false, "window": "1m", "proxy_distinct_identities": 4, "identity_distinct_proxies": 5},
    });
    let policy = ActionPolicy::read(&document).unwrap();
    assert_eq!((policy.mode, policy.ban_expiry_state), (Mode::Shadow, BanExpiry::Active));
    let [cooldown, proxy, identity, ban, expire] = &policy.rules[..] else { panic!("five rules") };
    assert_eq!(&*cooldown.name, "c");
    assert_eq!(format!("{:?}", cooldown.outcomes), "{Captcha, Forbidden}");
    assert_eq!(cooldown.count, Some(Count { gte: 4, within: 2_592_000 * SECOND }));
    assert_eq!(cooldown.scope, Scope::IdentitySite, "a cool-down of the identity is one on the site");
    assert_eq!(
        cooldown.action,
        Action::Cooldown(Cooldown {
            base: 2 * SECOND,
            multiplier: 1.5,
            max: 5 * SECOND,
            max_exponent: 64,
            failure_reset_after: 3 * SECOND
        })
    );
    assert_eq!(
        (proxy.outcomes, proxy.action, proxy.scope),
        (Outcomes::of(Outcome::ProxyError), Action::Quarantine(None), Scope::Proxy)
    );
    assert_eq!((identity.action, identity.scope), (Action::Quarantine(Some(3_600 * SECOND)), Scope::Identity));
    assert_eq!((ban.action, ban.scope), (Action::Ban(Term::Permanent), Scope::Proxy));
    assert_eq!((expire.action, expire.scope), (Action::Expire, Scope::Identity));
    let bans = Count { gte: 1, within: 86_400 * SECOND };
    assert_eq!(policy.escalation, [Escalation { bans, duration: Term::For(172_800 * SECOND) }]);
    let health = &policy.health;
    assert_eq!((health.alpha, health.baseline, health.tau), (1.0, 50.0, 3_600 * SECOND));
    assert_eq!((health.endpoint_low_score, health.endpoint_low_min_samples), (0.0, 1));
    assert_eq!((health.quarantine_score, health.quarantine_min_samples), (100.0, 2));
    assert_eq!((health.endpoint_low_cooldown, health.quarantine_duration), (7_200 * SECOND, 10_800 * SECOND));
    let observed =
        [Outcome::Banned, Outcome::Success, Outcome::Empty, Outcome::AuthInvalid].map(|o| health.observations.identity(o));
    assert_eq!(observed, [Some(1.0), Some(99.5), Some(60.0), None]);
    assert_eq!(
        policy.cross_attribution,
        CrossAttribution { enabled: false, window: 60 * SECOND, proxy_distinct_identities: 4, identity_distinct_proxies: 5 }
    );
}

#[test]
fn a_breaker_policy_with_nothing_left_out() {
    let document = json!({
        "name": "p", "enabled": false, "window": "10s", "buckets": 3, "min_requests": 1, "open_duration": "5s",
        "max_open_duration": "5s", "reset_open_count_after": 0, "revert_recent_cooldowns": "all",
        "trip": {"risk_ratio_gte": 0, "distinct_captcha_identities_gte": 0, "success_ratio_lte": 1},
        "half_open": {"probe_leases_per_10s": 1, "close_min_samples": 2, "close_success_ratio_gte": 1},
    });
    let policy = BreakerPolicy {
        head: Head { name: "p".into(), description: "".into(), bind: Vec::new() },
        enabled: false,
        window: 10 * SECOND,
        buckets: 3,
        min_requests: 1,
        trip: Trip { risk_ratio_gte: 0.0, distinct_captcha_identities_gte: 0, success_ratio_lte: 1.0 },
        open_duration: 5 * SECOND,
        max_open_duration: 5 * SECOND,
        reset_open_count_after: Duration::ZERO,
        half_open: HalfOpen { probe_leases_per_10s: 1, close_min_samples: 2, close_success_ratio_gte: 1.0 },
        revert_recent_cooldowns: Revert::All,
    };
    assert_eq!(BreakerPolicy::read(&document).unwrap(), policy);
    assert_eq!(millis(policy.bucket()), 3_333);
    for (written, revert) in [(json!(true), Revert::Endpoint), (json!(false), Revert::None), (json!("none"), Revert::None)] {
        let policy = BreakerPolicy::read(&json!({"name": "p", "revert_recent_cooldowns": written})).unwrap();
        assert_eq!(policy.revert_recent_cooldowns, revert);
    }
}
