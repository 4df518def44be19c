#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use serde_json::Value;

use super::*;
use crate::dice::Dice;

/// A file with what follows as the plane's.
fn seed(text: &str) -> Seed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plane.toml");
    std::fs::write(&path, text).unwrap();
    load(&path).unwrap()
}

const SHOP: &str = r#"
[[sites]]
name = "shop"
cooldown_429 = "10s"
cooldown_403 = "60s"

[[sites.identities]]
name = "a"
[[sites.identities]]
name = "b"
"#;

/// Runs these lines and answers the table and the JSON.
fn run_lines(plane: &str, reports: &str, defaults: &Defaults) -> Result<(String, Vec<Value>), SimulateError> {
    let seed = seed(plane);
    let timeline = read(&mut reports.as_bytes(), "reports.jsonl", &seed, defaults)?;
    let outcomes = run(seed, &timeline, "reports.jsonl", Dice::new(1))?;
    let lines = json_lines(&outcomes, &timeline);
    Ok((table(&outcomes, &timeline), lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()))
}

fn json_of(plane: &str, reports: &str) -> Vec<Value> {
    run_lines(plane, reports, &Defaults::default()).unwrap().1
}

fn error_of(plane: &str, reports: &str) -> String {
    run_lines(plane, reports, &Defaults::default()).unwrap_err().to_string()
}

#[test]
fn the_example_shows_a_cooldown_that_doubles_and_an_attempt_that_would_not_have_been_made() {
    let (plane, reports) = (include_str!("../../../config/identities.toml"), include_str!("../../../config/reports.jsonl"));
    let (table, json) = run_lines(plane, reports, &Defaults::default()).unwrap();
    let cooled: Vec<&Value> =
        json.iter().filter(|line| line["action"] == "cooldown" && line["outcome"] == "rate_limited").collect();
    assert_eq!(cooled.len(), 2, "{table}");
    assert!(cooled.iter().all(|line| line["name"] == "reader-1"));
    let length = |line: &Value| line["until"].as_f64().unwrap() - line["at"].as_f64().unwrap();
    assert!(length(cooled[1]) > 1.5 * length(cooled[0]), "{table}");
    let summary = &json.last().unwrap()["summary"]["sites"]["bookshop"];
    assert_eq!((&summary["reports"], &summary["withheld"]["cooling"]), (&Value::from(7), &Value::from(1)));
    assert_eq!(summary["outcomes"]["success"], 3, "{table}");
    for part in ["TIME", "identity reader-1", "rate_limited", "cooldown", "withheld    1 (cooling 1)", "left to lease"] {
        assert!(table.contains(part), "{part}:\n{table}");
    }
}

#[test]
fn an_attempt_that_was_under_way_when_its_identity_began_to_rest_is_reported_all_the_same() {
    let reports = "\
{\"at\": 1, \"uri\": \"/\", \"identity\": \"a\", \"status\": 429}
{\"at\": 1.5, \"uri\": \"/\", \"identity\": \"b\", \"status\": 200, \"latency_ms\": 900}
{\"at\": 2, \"uri\": \"/\", \"identity\": \"a\", \"status\": 200, \"latency_ms\": 999}";
    let plane = SHOP.replace("cooldown_403", "rotation = { max_concurrent_leases = 4 }\ncooldown_403");
    let json = json_of(&plane, &reports.replace("2, \"uri\"", "1.9, \"uri\""));
    let summary = &json.last().unwrap()["summary"]["sites"]["shop"];
    assert_eq!((&summary["reports"], summary["withheld"].as_object().unwrap().len()), (&Value::from(3), 0), "{summary}");
    // One that was sent afterwards is not.
    let json = json_of(&plane, &reports.replace("\"latency_ms\": 999", "\"latency_ms\": 100"));
    assert_eq!(json.last().unwrap()["summary"]["sites"]["shop"]["withheld"]["cooling"], 1);
}

#[test]
fn two_attempts_of_one_identity_at_once_are_one_too_many_where_the_policy_allows_one() {
    let reports = "\
{\"at\": 2, \"uri\": \"/\", \"identity\": \"a\", \"status\": 200, \"latency_ms\": 1000}
{\"at\": 2.5, \"uri\": \"/\", \"identity\": \"a\", \"status\": 200, \"latency_ms\": 1000}";
    let json = json_of(SHOP, reports);
    assert_eq!(json.last().unwrap()["summary"]["sites"]["shop"]["withheld"]["in_use"], 1);
}

const STRICT: &str = r#"
[[sites]]
name = "shop"

[sites.action]
rules = [
  { when = { outcome = "auth_invalid" }, action = "expire", scope = "identity", name = "logged out" },
  { when = { outcome = "banned" }, action = "ban", duration = "1h", scope = "account", name = "account lost" },
  { when = { outcome = "forbidden" }, action = "quarantine", duration = "10m", scope = "identity" },
]

[sites.breaker]
min_requests = 4
open_duration = "30s"
half_open = { probe_leases_per_10s = 2, close_min_samples = 2, close_success_ratio_gte = 0.5 }
trip = { risk_ratio_gte = 0.5, distinct_captcha_identities_gte = 0, success_ratio_lte = 0.0 }

[sites.signal]
extends = "default-signal"
rules = [{ when = { business_code = ["gone"] }, outcome = "banned", name = "code gone" }]

[[sites.identities]]
name = "a"
account = "anna"
[[sites.identities]]
name = "b"
account = "anna"
[[sites.identities]]
name = "c"
[[sites.identities]]
name = "d"
"#;

#[test]
fn bans_quarantines_and_ends_are_named_with_their_rules() {
    let reports = "\
{\"at\": \"2026-03-01T10:00:00Z\", \"uri\": \"/\", \"identity\": \"c\", \"status\": 401}
{\"at\": \"2026-03-01T10:00:01Z\", \"uri\": \"/\", \"identity\": \"a\", \"status\": 418, \"business_code\": \"gone\"}
{\"at\": \"2026-03-01T10:00:02Z\", \"uri\": \"/\", \"identity\": \"d\", \"status\": 403}
{\"at\": \"2026-03-01T10:00:03Z\", \"uri\": \"/\", \"identity\": \"b\", \"status\": 200}";
    let json = json_of(STRICT, reports);
    let acts: Vec<(&str, &str, &str)> = json
        .iter()
        .filter_map(|line| Some((line["name"].as_str()?, line["action"].as_str()?, line["rule"].as_str()?)))
        .filter(|(_, action, _)| *action != "cooldown")
        .collect();
    assert!(acts.contains(&("c", "expire", "logged out")), "{acts:?}");
    assert!(acts.contains(&("anna", "ban", "account lost")), "{acts:?}");
    assert!(acts.iter().any(|(name, action, _)| (*name, *action) == ("d", "quarantine")), "{acts:?}");
    let ban = json.iter().find(|line| line["name"] == "anna").unwrap();
    assert_eq!((&ban["until"], &ban["signal_rule"]), (&Value::from("2026-03-01T11:00:01.000Z"), &Value::from("code gone")));
    let summary = &json.last().unwrap()["summary"]["sites"]["shop"];
    assert_eq!(summary["withheld"]["banned"], 1, "the other identity of the account: {summary}");
    assert_eq!(summary["identities"]["left"], 0);
    assert_eq!(summary["actions"]["account_banned"], 1);
}

#[test]
fn a_breaker_opens_is_probed_and_closes() {
    let mut reports = String::new();
    for (at, who, status) in [(1.0, "a", 200), (2.0, "b", 429), (3.0, "c", 429), (4.0, "d", 429), (5.0, "a", 200)] {
        reports.push_str(&format!("{{\"at\": {at}, \"uri\": \"/\", \"identity\": \"{who}\", \"status\": {status}}}\n"));
    }
    for at in [40, 41, 42, 60] {
        reports.push_str(&format!("{{\"at\": {at}, \"uri\": \"/\", \"status\": 200}}\n"));
    }
    let (table, json) = run_lines(STRICT, &reports, &Defaults::default()).unwrap();
    let moves: Vec<&str> =
        json.iter().filter(|line| line["subject"] == "group").map(|line| line["action"].as_str().unwrap()).collect();
    assert_eq!(moves, ["open", "half-open", "close"], "{table}");
    let summary = &json.last().unwrap()["summary"]["sites"]["shop"];
    assert_eq!(
        summary["withheld"]["circuit_open"], 2,
        "the one while it is open, and the third within the ten seconds of two probes: {table}"
    );
    assert_eq!(summary["breakers"][0]["moves"].as_array().unwrap().len(), 3);
    assert!(table.contains("breaker     web/_default: opened"), "{table}");
}

#[test]
fn a_policy_that_only_notes_changes_nothing_and_is_told_of() {
    let plane = STRICT.replace("[sites.action]\n", "[sites.action]\nmode = \"shadow\"\n");
    let reports = "\
{\"at\": 1, \"uri\": \"/\", \"identity\": \"c\", \"status\": 401}
{\"at\": 2, \"uri\": \"/\", \"identity\": \"c\", \"status\": 200}";
    let (table, json) = run_lines(&plane, reports, &Defaults::default()).unwrap();
    assert_eq!((&json[0]["action"], &json[0]["only_noted"]), (&Value::from("expire"), &Value::from(true)), "{table}");
    let summary = &json.last().unwrap()["summary"]["sites"]["shop"];
    assert_eq!((&summary["reports"], &summary["only_noted"]["identity_expired"]), (&Value::from(2), &Value::from(1)));
    assert_eq!(summary["actions"].as_object().unwrap().len(), 0);
    assert!(table.contains("only noted  identity expired 1"), "{table}");
}

#[test]
fn request_records_follow_one_another_and_those_never_sent_are_passed_over() {
    let reports = r#"
{"url": "https://shop.example/a?q=1", "parent_url": null, "method": "GET", "status_code": 200, "response_time": 0.25, "fingerprint": "x", "error": null, "success": true}
{"url": "https://shop.example/b", "parent_url": null, "method": "GET", "status_code": 429, "response_time": 0.50, "fingerprint": "x", "error": null, "success": false}
{"url": "https://shop.example/c", "parent_url": null, "method": "GET", "status_code": 0, "response_time": 3.00, "fingerprint": "x", "error": "DownloadTimeoutError: slow", "success": false}
{"url": "https://shop.example/d", "parent_url": null, "method": "GET", "status_code": 0, "response_time": 0.00, "fingerprint": "x", "error": "IgnoreRequest: robots.txt", "success": false}
"#;
    let (table, json) = run_lines(SHOP, reports, &Defaults::default()).unwrap();
    assert_eq!((&json[0]["at"], &json[0]["action"]), (&Value::from(0.75), &Value::from("cooldown")), "{table}");
    let summary = &json.last().unwrap()["summary"];
    assert_eq!((&summary["sites"]["shop"]["reports"], &summary["unsent"]), (&Value::from(3), &Value::from(1)));
    assert!(table.contains("1 records of requests that were never sent"), "{table}");
}

#[test]
fn events_of_other_sites_are_left_out_when_one_is_asked_for() {
    let plane = format!("{SHOP}\n[[sites]]\nname = \"other\"\n");
    let reports = "\
{\"at\": 1, \"site\": \"shop\", \"uri\": \"/\", \"status\": 200}
{\"at\": 2, \"site\": \"other\", \"uri\": \"/\", \"status\": 200}
{\"at\": 3, \"uri\": \"/\", \"status\": 200}";
    let defaults = Defaults { site: Some("shop".to_owned()), client: None };
    let (table, json) = run_lines(&plane, reports, &defaults).unwrap();
    let summary = &json.last().unwrap()["summary"];
    assert_eq!((&summary["sites"]["shop"]["reports"], &summary["other_sites"]), (&Value::from(2), &Value::from(1)), "{table}");
    assert!(error_of(&plane, reports).contains("reports.jsonl:3: site: left out"));
}

#[test]
fn the_same_input_gives_the_same_output() {
    let reports: String = (0..300)
        .map(|at| format!("{{\"at\": {at}, \"uri\": \"/\", \"status\": {}}}\n", if at % 7 == 3 { 429 } else { 200 }))
        .collect();
    let run = || run_lines(STRICT, &reports, &Defaults::default()).unwrap().0;
    assert_eq!(run(), run());
}

#[test]
fn events_need_not_be_in_order() {
    let sorted = "{\"at\": 1, \"uri\": \"/\", \"identity\": \"a\", \"status\": 429}\n{\"at\": 2, \"uri\": \"/\", \"identity\": \"b\", \"status\": 429}\n";
    let lines: Vec<&str> = sorted.lines().rev().collect();
    assert_eq!(json_of(SHOP, sorted), json_of(SHOP, &lines.join("\n")));
}

#[test]
fn an_error_names_file_line_field_what_was_found_and_what_is_allowed() {
    for (line, parts) in [
        ("x", &["not valid JSON"][..]),
        ("[1]", &["found a list", "one JSON object"]),
        (r#"{"uri": "/", "status": 200}"#, &["at: left out"]),
        (r#"{"at": "noon", "uri": "/", "status": 200}"#, &["at: found \"noon\"", "2027-01-31T12:00:00Z"]),
        (r#"{"at": -1, "uri": "/", "status": 200}"#, &["at: found -1", "0 to"]),
        (r#"{"at": true, "uri": "/", "status": 200}"#, &["at: found true or false"]),
        (r#"{"at": 1, "status": 200}"#, &["neither uri nor endpoint_group"]),
        (r#"{"at": 1, "uri": "/"}"#, &["neither status nor error_kind"]),
        (r#"{"at": 1, "uri": "/", "status": "200"}"#, &["status: found a text", "whole number"]),
        (r#"{"at": 1, "uri": "/", "status": 1000}"#, &["status: found 1000", "0 to 999"]),
        (r#"{"at": 1, "uri": "/", "status": 200, "latency": 3}"#, &["unknown field \"latency\"", "latency_ms"]),
        (r#"{"at": 1, "uri": "/", "error_kind": "slow"}"#, &["error_kind: found \"slow\"", "timeout, conn_reset"]),
        (r#"{"at": 1, "uri": "/", "status": 200, "markers": "captcha"}"#, &["markers: found a text", "list"]),
        (
            r#"{"at": 1, "uri": "/", "status": 200, "site": "shpo"}"#,
            &["site: no site \"shpo\"", "did you mean \"shop\"", "known: shop"],
        ),
        (r#"{"at": 1, "uri": "/", "status": 200, "client": "app"}"#, &["client: the site shop has no client \"app\"", "web"]),
        (r#"{"at": 1, "uri": "/", "status": 200, "identity": "z"}"#, &["identity: the site shop has no identity \"z\"", "a, b"]),
        (r#"{"at": 1, "endpoint_group": "search", "status": 200}"#, &["endpoint_group:", "\"search\"", "_default"]),
        (r#"{"url": "x", "status_code": 200}"#, &["url: not a URL"]),
    ] {
        let error = error_of(SHOP, &format!("\n{line}\n"));
        assert!(error.starts_with("reports.jsonl:2: "), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let mixed =
        "{\"at\": 1, \"uri\": \"/\", \"status\": 200}\n{\"at\": \"2026-03-01T10:00:00Z\", \"uri\": \"/\", \"status\": 200}";
    assert!(error_of(SHOP, mixed).contains("reports.jsonl:2: at: moments and seconds in one file"));
}

#[test]
fn the_part_plane_of_another_file_is_found() {
    let nested = SHOP.replace("[[sites", "[[plane.sites").replace("[sites.", "[plane.sites.");
    let plane = format!("[[keys]]\napi_key = \"k\"\n{nested}");
    let seed = seed(&plane);
    assert_eq!((&*seed.sites[0].name, seed.sites[0].identities.len()), ("shop", 2));
}
