//! Every limit: the last value allowed is read, the first beyond it is refused with its path, what was found and what is allowed.

use serde_json::{Value, json};

use super::{Kind, check, put, with};

/// A value at a path of an otherwise good document: `good` all pass, `bad` are all refused naming the path.
fn limit(kind: Kind, base: &Value, path: &str, good: &[Value], bad: &[Value], allowed: &str) {
    for value in good {
        let mut document = base.clone();
        put(&mut document, path, value.clone());
        assert_eq!(check(kind, &document), Ok(()), "{path} = {value}");
    }
    for value in bad {
        let mut document = base.clone();
        put(&mut document, path, value.clone());
        let error = check(kind, &document).expect_err(path).to_string();
        let begin = format!("{} policy \"p\": {path}", kind.name());
        assert!(error.starts_with(&begin) && error.contains(allowed), "{path} = {value}: {error}\nwant {begin} … {allowed}");
    }
}

macro_rules! limits {
    ($kind:expr, $base:expr, $($path:literal: [$($good:tt),*] not [$($bad:tt),*] $allowed:literal;)+) => { $(
        limit($kind, &$base, $path, &[$(json!($good)),*], &[$(json!($bad)),*], $allowed);
    )+ };
}

fn long(characters: usize) -> Value {
    Value::from("x".repeat(characters))
}

#[test]
fn rotation_limits() {
    limits! { Kind::Rotation, json!({"name": "p"}),
        "rotation.strategy": ["best_health", null] not ["Best_health", 1, []]
            "allowed: \"weighted_random\", \"least_recently_used\", \"round_robin\", \"best_health\"";
        "rotation.candidate_sample": [1, 256] not [0, 257, 1.5, "1", (-1)] "allowed: a whole number from 1 to 256";
        "rotation.lease_ttl": ["5s", "30m"] not ["4999ms", "1801s", "permanent"] "allowed: a duration from 5s to 30m";
        "rotation.max_lease_lifetime": ["120s", "24h"] not ["4s", "24h1ms"] "allowed: a duration from 5s to 1d";
        "rotation.max_concurrent_leases": [1, 10000] not [0, 10001] "from 1 to 10000";
        "rotation.reuse_interval": [0, "0", "36500d"] not ["permanent"] "a duration from 0 to 36500d";
        "rotation.reuse_anchor": ["released", "acquired"] not ["release"] "allowed: \"released\", \"acquired\"";
        "rotation.reuse_scope": ["endpoint_group", "site"] not ["group"] "allowed: \"endpoint_group\", \"site\"";
        "rotation.quota": [[], [{"limit": 1, "window": "1s"}]] not [{}, 3] "a list of at most 16";
        "rotation.quota[0]": [{"limit": 1, "window": "1s"}] not [{"limit": 1}, {"window": "1s"}] "is missing";
        "rotation.quota[0].limit": [] not [0, 1.5, 1000000001] "from 1 to 1000000000";
        "rotation.sticky.enabled": [true] not ["yes", 1] "allowed: true or false";
        "rotation.sticky.ttl": ["1s"] not ["999ms", 0] "a duration from 1s to 36500d";
        "rotation.warmup.duration": ["0", "36500d"] not ["permanent"] "a duration from 0 to 36500d";
        "rotation.warmup.quota_factor": [0.01, 1, 1.0] not [0, 1.01, (-1), "1"] "allowed: a number above 0, at most 1";
        "rotation.probe.weight_factor": [0.01, 1] not [0, 2] "allowed: a number above 0, at most 1";
        "rotation.probe.max_leases": [1] not [0] "from 1 to 10000";
        "identity_types": [[], ["a"]] not ["a", 1] "a list of at most 64";
        "identity_types[0]": ["a"] not ["", 1, null] "a text of 1 to 64 characters";
        "proxy.mode": ["none", "pool", "bind_identity", "region_match"] not ["pools"] "(did you mean \"pool\"?); allowed: \"none\"";
        "proxy.kinds[0]": ["tunnel"] not [""] "a text of 1 to 64 characters";
        "proxy.region_match": [false] not [0] "true or false";
        "proxy.rebind_tolerance": [0] not ["-1s"] "a number is expected at character 1";
        "proxy.max_rebinds_per_day": [0, 1000000] not [(-1)] "from 0 to 1000000";
        "description": ["", "x"] not [1] "a text of at most 1024 characters";
    }
    limit(Kind::Rotation, &json!({"name": "p"}), "identity_types[0]", &[long(64)], &[long(65)], "64 characters");
    limit(Kind::Rotation, &json!({"name": "p"}), "description", &[long(1024)], &[long(1025)], "a text of 1025 characters");
    let document = json!({"name": "p", "rotation": {"quota": [{"limit": 1, "window": "60s"}, {"limit": 2, "window": "1m"}]}});
    assert_eq!(
        check(Kind::Rotation, &document).unwrap_err().to_string(),
        "rotation policy \"p\": rotation.quota[1].window is 1m; allowed: a window that no other quota of the policy has"
    );
    let document = json!({"name": "p", "rotation": {"lease_ttl": "10m", "max_lease_lifetime": "599s"}});
    assert_eq!(
        check(Kind::Rotation, &document).unwrap_err().to_string(),
        "rotation policy \"p\": rotation.max_lease_lifetime is 9m59s; allowed: lease_ttl, which is 10m, to 1d"
    );
}

#[test]
fn signal_limits() {
    let rule = json!({"name": "p", "rules": [{"outcome": "empty"}]});
    limits! { Kind::Signal, rule,
        "extends": ["other", null] not ["", "-a", "A", 1] "beginning with a letter or digit";
        "trust_outcome_hint": [true] not ["true"] "true or false";
        "rules": [[]] not [{}, "x"] "a list of at most 500";
        "rules[0].outcome": ["unknown"] not ["captcha_page", 1] "allowed: \"success\", \"empty\"";
        "rules[0].blame": ["none", "identity", "proxy", "both", null] not ["nobody"] "allowed: \"none\", \"identity\", \"proxy\", \"both\"";
        "rules[0].when.http_status": [0, 999, [0], [429, 503], {"gte": 500}, {"gt": 0, "lt": 1000}]
            not [1000, (-1), "429", [], [1000], ["x"], [[1]], true] "rules[0].when.http_status";
        "rules[0].when.http_status.gte": [0, 1000] not [1001, 1.5] "a whole number from 0 to 1000";
        "rules[0].when.latency_ms": [{"lte": 5}, {"gt": 1, "lt": 3}]
            not [{}, {"gt": 5, "lte": 5}, {"lt": 0}, {"gt": 1, "gte": 1}, {"lt": 1, "lte": 1}, 5] "rules[0].when.latency_ms";
        "rules[0].when.latency_ms.gte": [2147483647] not [2147483649_u64] "from 0 to 2147483648";
        "rules[0].when.response_bytes.lt": [9223372036854775807_u64] not [(-1)] "from 0 to 9223372036854775808";
        "rules[0].when.business_code": [["8"], 8, [0, "x"], [""]] not [[], [1.5], [null], {}] "rules[0].when.business_code";
        "rules[0].when.error_kind": [["timeout", "other"], "dns", ""] not [[], "timeouts", 1, [null]] "rules[0].when.error_kind";
        "rules[0].when.markers": [["a"], "a"] not [[], [""], [1]] "rules[0].when.markers";
        "rules[0].when.method": [["GET"], "post"] not [[], "ABCDEFGHIJKLMNOPQ"] "1 to";
        "rules[0].when.uri": [{"prefix": "/"}, {"regex": "^/a+$"}] not [{}, {"prefix": "/", "regex": "/"}, {"prefix": ""}, "x"] "rules[0].when.uri";
        "rules[0].when.uri.regex": ["(?i)a"] not ["(", "a{999}{999}", "(?=a)"] "a regular expression (";
    }
    let bare = json!({"name": "p"});
    limit(
        Kind::Signal,
        &bare,
        "rules[0]",
        &[],
        &[json!({}), json!({"when": {}}), json!({"outcome": null})],
        "outcome is missing",
    );
    limit(Kind::Signal, &rule, "rules[0].name", &[long(64)], &[long(65)], "at most 64 characters");
    limit(Kind::Signal, &rule, "rules[0].when.markers[0]", &[long(64)], &[long(65)], "1 to 64 characters");
    limit(Kind::Signal, &rule, "rules[0].when.business_code[0]", &[long(64)], &[long(65)], "at most 64 characters");
    limit(Kind::Signal, &rule, "rules[0].when.uri.prefix", &[long(2048)], &[long(2049)], "at most 2048 characters");
    limit(Kind::Signal, &rule, "rules[0].when.uri.regex", &[long(1024)], &[long(1025)], "at most 1024 characters");
    let many = |rules: usize| Value::from(vec![json!({"outcome": "empty"}); rules]);
    limit(Kind::Signal, &bare, "rules", &[many(500)], &[many(501)], "is a list of 501; allowed: a list of at most 500");
    assert_eq!(
        check(Kind::Signal, &with("rules[0]", json!({"outcome": "empty", "when": {"uri": {"regex": "a["}}})))
            .unwrap_err()
            .to_string(),
        "signal policy \"p\": rules[0].when.uri.regex is \"a[\"; allowed: a regular expression (unclosed character class)"
    );
}

#[test]
fn action_limits() {
    let rule = |rest: Value| {
        let mut rule = json!({"when": {"outcome": "captcha"}});
        rule.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"name": "p", "rules": [rule]})
    };
    let cooldown = rule(json!({"action": "cooldown", "scope": "account", "base": "1s"}));
    limits! { Kind::Action, cooldown,
        "mode": ["enforce", "shadow"] not ["dry"] "allowed: \"enforce\", \"shadow\"";
        "ban_expiry_state": ["pending", "active"] not ["banned"] "allowed: \"pending\", \"active\"";
        "rules[0].when": [] not [null, {}] "outcome is missing";
        "rules[0].when.outcome": ["empty", ["empty", "banned"]] not ["emty", [], 1, [null]] "rules[0].when.outcome";
        "rules[0].when.outcomes": [null] not ["empty"] "allowed: one of outcome and outcomes";
        "rules[0].when.count": [{"gte": 1, "within": "30d"}, {"gte": 1000000, "within": "1s"}]
            not [{}, {"gte": 1}, {"within": "1s"}, {"gte": 0, "within": "1s"}, {"gte": 1, "within": "999ms"}, {"gte": 1, "within": "30d1ms"}]
            "rules[0].when.count";
        "rules[0].action": [] not ["cool", null, 1] "rules[0].action";
        "rules[0].scope": ["identity_endpoint", "identity_site", "identity", "account", "proxy_site", "proxy"] not ["site", null] "rules[0].scope";
        "rules[0].base": ["1ms", "24h"] not ["0", 0, "permanent", null, "25h"] "rules[0].base";
        "rules[0].multiplier": [1, 2.5, 1000] not [0.99, 0, "2"] "a number from 1 to 1000";
        "rules[0].max": ["1s"] not ["permanent"] "a duration from 1ms to 36500d";
        "rules[0].max_exponent": [0, 64] not [65] "from 0 to 64";
        "rules[0].failure_reset_after": ["1ms"] not ["0"] "a duration from 1ms to 36500d";
        "rules[0].duration": [null] not ["1h"] "allowed: base in its place: a cooldown has no duration";
        "escalation": [[], [{"when": {"bans": {"gte": 1, "within": "30d"}}, "duration": "permanent"}]]
            not [[{"when": {"bans": {"gte": 1, "within": "31d"}}, "duration": "1h"}], [{"duration": "1h"}], [{}], 1,
                 [{"when": {"bans": {"gte": 1, "within": "30d"}}}], [{"when": {"bans": {"gte": 0, "within": "1d"}}, "duration": "1h"}],
                 [{"when": {"bans": {"gte": 1, "within": "1d"}}, "duration": "0"}]] "escalation";
        "health.alpha": [0.001, 1] not [0, 1.1] "above 0, at most 1";
        "health.baseline": [0, 100] not [(-1), 100.5] "a number from 0 to 100";
        "health.tau": ["1ms"] not ["0", "permanent"] "a duration from 1ms";
        "health.observations.captcha": [0, 100, null] not [101, (-1), "0"] "a number from 0 to 100";
        "health.endpoint_low_score": [0, 100] not [101] "from 0 to 100";
        "health.endpoint_low_min_samples": [1] not [0] "from 1 to 1000000";
        "health.endpoint_low_cooldown": ["1ms"] not ["0"] "from 1ms";
        "health.quarantine_score": [0, 100] not [101] "from 0 to 100";
        "health.quarantine_min_samples": [1] not [0] "from 1 to";
        "health.quarantine_duration": ["1ms"] not ["permanent"] "from 1ms";
        "cross_attribution.enabled": [false] not ["no"] "true or false";
        "cross_attribution.window": ["1ms"] not ["0"] "from 1ms";
        "cross_attribution.proxy_distinct_identities": [1] not [0] "from 1";
        "cross_attribution.identity_distinct_proxies": [1] not [0] "from 1";
    }
    limits! { Kind::Action, rule(json!({"action": "ban", "scope": "identity", "duration": "1h"})),
        "rules[0].scope": ["identity", "account", "proxy"] not ["identity_site", "identity_endpoint", "proxy_site", null] "rules[0].scope";
        "rules[0].duration": ["1ms", "permanent", "36500d"] not ["0", null, 5] "rules[0].duration";
        "rules[0].base": [null] not ["1s"] "allowed: duration only: this key belongs to a cooldown";
    }
    limits! { Kind::Action, rule(json!({"action": "quarantine", "scope": "identity"})),
        "rules[0].scope": ["identity", "proxy"] not ["account", "identity_site"] "allowed: \"identity\", \"proxy\"";
        "rules[0].duration": ["1ms", null] not ["0", "permanent"] "a duration from 1ms to 36500d";
        "rules[0].max": [] not ["1s"] "duration only";
    }
    limits! { Kind::Action, rule(json!({"action": "expire"})),
        "rules[0].scope": ["identity", null] not ["account", "proxy"] "allowed: \"identity\"";
        "rules[0].duration": [null] not ["1h"] "expire has no end";
        "rules[0].multiplier": [null] not [2] "expire has no end";
    }
    let mut document = cooldown;
    put(&mut document, "rules[0].max", json!("500ms"));
    assert_eq!(
        check(Kind::Action, &document).unwrap_err().to_string(),
        "action policy \"p\": rules[0].base is 1s; allowed: at most max, which is 500ms"
    );
    let step = json!({"when": {"bans": {"gte": 2, "within": "7d"}}, "duration": "1h"});
    assert_eq!(
        check(Kind::Action, &with("escalation", json!([step, step]))).unwrap_err().to_string(),
        "action policy \"p\": escalation[1].when.bans is the same as in a step before; \
         allowed: one step for a number of bans within a time"
    );
}

#[test]
fn breaker_limits() {
    limits! { Kind::Breaker, json!({"name": "p"}),
        "enabled": [true, false] not ["on"] "true or false";
        "window": ["12s", "1d"] not ["11999ms"] "at least a second for each of the 12 buckets";
        "buckets": [1, 60] not [0, 61] "from 1 to 60";
        "min_requests": [1] not [0] "from 1 to";
        "trip.risk_ratio_gte": [0, 1, 0.5] not [1.1, (-0.1)] "a number from 0 to 1";
        "trip.distinct_captcha_identities_gte": [0, 1000000] not [(-1), 0.5] "from 0 to 1000000";
        "trip.success_ratio_lte": [0, 1] not [1.1] "a number from 0 to 1";
        "open_duration": ["1s", "1h"] not ["999ms", "366d"] "a duration from 1s to 365d";
        "max_open_duration": ["2m", "365d"] not ["366d"] "a duration from 1s to 365d";
        "reset_open_count_after": [0] not ["permanent"] "a duration from 0";
        "half_open.probe_leases_per_10s": [1, 10000] not [0] "from 1 to 10000";
        "half_open.close_min_samples": [1, 10000] not [0] "from 1 to 10000";
        "half_open.close_success_ratio_gte": [0.1, 1] not [0, 1.1] "above 0, at most 1";
        "revert_recent_cooldowns": ["none", "endpoint", "all", true, false] not ["some", 1, ["none"]] "allowed: \"none\", \"endpoint\", \"all\"";
        "window": [] not ["999ms", "25h"] "allowed: a duration from 1s to 1d";
    }
    let text = |document: Value| check(Kind::Breaker, &document).unwrap_err().to_string();
    assert_eq!(
        text(json!({"name": "p", "window": "59s", "buckets": 60})),
        "breaker policy \"p\": window is 59s; allowed: at least a second for each of the 60 buckets; \
         write a longer window or fewer buckets"
    );
    assert_eq!(
        text(json!({"name": "p", "open_duration": "2h"})),
        "breaker policy \"p\": max_open_duration is 1h; allowed: open_duration, which is 2h, to 365d"
    );
}

#[test]
fn names_and_places_follow_their_grammar() {
    let bare = json!({"name": "p"});
    limits! { Kind::Breaker, bare,
        "bind": [{}, [], [{}], {"site": "_s.x-1"}, {"site": "s", "client": "w"}] not [1, "s"] "bind";
        "bind.site": [] not ["", "S", "-s", ".s", 1] "1 to 64 of a-z";
        "bind[0]": [] not [{"site": "s", "client": ""}, {"site": "s", "client": "a.b"}, {"client": "w"}, {"site": "s", "endpoint_group": "g"}, null] "bind[0]";
        "bind[1].endpoint_group": [] not ["A", "a b"] "1 to 64 of a-z";
    }
    let fits = |text: &str| check(Kind::Breaker, &json!({"name": text})).is_ok();
    assert!(["a", "0", "a.b_c-d", &"a".repeat(64)].into_iter().all(fits));
    assert!(!["", "-a", "_a", ".a", "A", "a b", "ä", &"a".repeat(65)].into_iter().any(fits));
    let text = |document: Value| check(Kind::Signal, &document).unwrap_err().to_string();
    assert_eq!(text(json!({})), "signal policy: name is missing; write a name for the policy");
    assert_eq!(
        text(json!({"name": "A b"})),
        "signal policy \"A b\": name is \"A b\"; \
         allowed: 1 to 64 of a-z, 0-9, \".\", \"_\" and \"-\", beginning with a letter or digit"
    );
    assert_eq!(
        text(json!([1])),
        "signal policy: the document is a list of 1; allowed: a table with the keys \
         name, description, bind, extends, trust_outcome_hint, rules"
    );
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_nearest() {
    let text = |kind, document: Value| check(kind, &document).unwrap_err().to_string();
    assert_eq!(
        text(Kind::Rotation, json!({"name": "p", "rotation": {"leese_ttl": "1m"}})),
        "rotation policy \"p\": rotation.leese_ttl is no key of a policy (did you mean \"lease_ttl\"?); allowed here: strategy, \
         candidate_sample, lease_ttl, max_lease_lifetime, max_concurrent_leases, reuse_interval, reuse_anchor, reuse_scope, \
         quota, sticky, warmup, probe"
    );
    for (kind, path) in [
        (Kind::Rotation, "x"),
        (Kind::Rotation, "rotation.sticky.x"),
        (Kind::Rotation, "rotation.warmup.x"),
        (Kind::Rotation, "rotation.probe.x"),
        (Kind::Rotation, "rotation.quota[0].x"),
        (Kind::Rotation, "proxy.x"),
        (Kind::Rotation, "bind.x"),
        (Kind::Signal, "x"),
        (Kind::Signal, "rules[0].x"),
        (Kind::Signal, "mode"),
        (Kind::Action, "x"),
        (Kind::Action, "rules[0].x"),
        (Kind::Action, "escalation[0].x"),
        (Kind::Action, "escalation[0].when.x"),
        (Kind::Action, "escalation[0].when.bans.x"),
        (Kind::Action, "health.x"),
        (Kind::Action, "health.observations.x"),
        (Kind::Action, "cross_attribution.x"),
        (Kind::Breaker, "x"),
        (Kind::Breaker, "trip.x"),
        (Kind::Breaker, "half_open.x"),
    ] {
        let error = text(kind, with(path, json!(1)));
        assert!(error.contains(&format!("{path} is no key of a policy")), "{path}: {error}");
    }
    let rule = json!({"outcome": "empty", "when": {"status": 1, "uri": {"x": 1}}});
    assert!(text(Kind::Signal, with("rules[0]", rule)).contains("rules[0].when.status is no key"));
    let rule = json!({"outcome": "empty", "when": {"uri": {"x": 1}}});
    assert!(text(Kind::Signal, with("rules[0]", rule)).contains("rules[0].when.uri.x is no key"));
    let rule = json!({"outcome": "empty", "when": {"latency_ms": {"min": 1}}});
    assert!(text(Kind::Signal, with("rules[0]", rule)).contains("rules[0].when.latency_ms.min is no key"));
}

#[test]
fn a_wrong_duration_says_why() {
    let text = |value: Value| check(Kind::Rotation, &with("rotation.lease_ttl", value)).unwrap_err().to_string();
    assert_eq!(
        text(json!("30")),
        "rotation policy \"p\": rotation.lease_ttl is \"30\": the number before character 3 has no unit; \
         allowed are ms, s, m, h and d, and only \"0\" stands alone"
    );
    assert_eq!(
        text(json!(30)),
        "rotation policy \"p\": rotation.lease_ttl is 30; allowed: a text such as \"30s\", \"1h30m\" or \"0\""
    );
    assert_eq!(
        text(json!("1".repeat(40) + "s")),
        "rotation policy \"p\": rotation.lease_ttl is \"1111111111111111111111111111111111111111s\": \
         it has 41 characters, allowed are 32"
    );
}

#[test]
fn a_long_value_is_shown_in_part_only() {
    let error = check(Kind::Rotation, &with("rotation.strategy", long(5_000))).unwrap_err().to_string();
    assert!(error.len() < 300, "{error}");
    let mut document = json!({"name": "p"});
    document.as_object_mut().unwrap().insert("é".repeat(5_000), json!(1));
    assert!(check(Kind::Rotation, &document).unwrap_err().to_string().len() < 400);
}
