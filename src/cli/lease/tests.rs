#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use clap::Parser as _;

use super::*;
use crate::cli::{Cli, Verb};
use crate::settings::Layers;
use crate::testkit::plane::{Refused, ScriptedPlane};

const SHOP: &str = r#"
[[sites]]
name = "shop"
clients = ["web"]

[[sites.identities]]
name = "anna"
cookies = { sid = "secret-of-anna" }
headers = { X-Key = "secret-key" }
query = { token = "secret-token" }
"#;

const RULES: &str = r#"LEASES=[{"domains": ["other.example"], "site": "other", "client": "web"}, {"domains": ["shop.example"], "site": "shop", "client": "web"}]"#;

/// The exit code and what was printed.
fn run(line: &str, pairs: &[String]) -> Result<(u8, String), CliError> {
    let Verb::Lease(args) = Cli::try_parse_from(format!("dragline lease {line}").split_whitespace()).unwrap().verb else {
        panic!()
    };
    let layers = pairs.iter().fold(Layers::new().env(Environment::default()), |layers, pair| layers.set(pair));
    let settings = layers.resolve().unwrap().settings;
    let mut to = Vec::new();
    let code = crate::actor::run_system(show(&args, &settings, std::future::pending(), &mut to))?;
    Ok((code, String::from_utf8(to).unwrap()))
}

fn embedded(line: &str) -> (u8, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("who.toml");
    std::fs::write(&file, SHOP).unwrap();
    let mut permissions = std::fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    std::fs::set_permissions(&file, permissions).unwrap();
    run(line, &[RULES.to_owned(), format!("IDENTITIES={}", file.display())]).unwrap()
}

fn remote(plane: &ScriptedPlane, more: &[&str]) -> Vec<String> {
    let mut pairs = vec![
        RULES.to_owned(),
        format!("SPINNERET_URL={}", plane.url()),
        format!("SPINNERET_TOKEN={}", plane.token()),
        "SPINNERET_MAX_RETRIES=0".to_owned(),
    ];
    pairs.extend(more.iter().map(|pair| (*pair).to_owned()));
    pairs
}

#[test]
fn the_lease_of_the_embedded_plane_is_shown_without_a_secret_and_given_back() {
    let (code, text) = embedded("https://www.shop.example/books?q=secret-query");
    assert_eq!(code, 0, "{text}");
    for part in [
        "embedded (identities of",
        "LEASES rule 2: shop.example → site shop, client web, the group of the path",
        "anna",
        "proxy     none",
        "headers x-key; cookies sid; query token",
        "expires",
        "released  yes",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("secret"), "{text}");
    let (code, json) = embedded("https://shop.example/books?q=secret-query --json");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &value["lease"]["identity_id"], &value["released"]), (0, &json!("anna"), &json!(true)));
    assert_eq!((&value["asked"]["site"], &value["url"]), (&json!("shop"), &json!("https://shop.example/books")));
    assert!(!json.contains("secret"), "{json}");
}

#[test]
fn what_no_rule_covers_is_told_with_what_becomes_of_it() {
    let (code, text) = embedded("https://elsewhere.example/");
    assert_eq!(code, 0);
    assert!(text.contains("no rule of LEASES covers elsewhere.example; with the embedded control plane"), "{text}");
    let server = ["SPINNERET_URL=http://127.0.0.1:9", "SPINNERET_TOKEN=spn_x"].map(str::to_owned);
    let (code, text) = run("https://elsewhere.example/", &server).unwrap();
    assert_eq!(code, 3);
    assert!(
        text.contains("LEASES has no rule (those that a spider brings are not looked at); LEASE_UNMATCHED is refuse")
            && text.contains("\"elsewhere.example\""),
        "{text}"
    );
    let anonymous = [server.as_slice(), &["LEASE_UNMATCHED=anonymous".to_owned()]].concat();
    let (code, text) = run("https://elsewhere.example/", &anonymous).unwrap();
    assert!(code == 0 && text.contains("without identity and proxy"), "{text}");
}

#[test]
fn a_url_that_is_none_is_bad_usage() {
    assert_eq!(run("nowhere", &[]).unwrap_err().code(), 64);
    assert!(Cli::try_parse_from(["dragline", "lease", "https://shop.example/", "--site", "shop"]).is_err());
}

#[test]
fn site_client_group_and_key_of_the_call_win() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let line = "https://elsewhere.example/x --site shop --client web --group _default --session-key k --json";
    let (code, json) = run(line, &remote(&plane, &[])).unwrap();
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, 0, "{json}");
    let asked = json!({ "site": "shop", "client": "web", "endpoint_group": "_default", "path": "/x", "session_key": "k" });
    assert_eq!(value["asked"], asked);
    assert_eq!(value["lease"]["endpoint_group"], "_default");
    assert_eq!((plane.ledger().total().acquired, plane.ledger().total().open), (1, 0));
}

#[test]
fn each_refusal_of_a_server_says_what_to_do() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let refusal = |url: &str, more: &[&str]| {
        let (code, json) = run(&format!("{url} --json"), &remote(&plane, more)).unwrap();
        assert_eq!(code, 3, "{json}");
        let value: Value = serde_json::from_str(&json).unwrap();
        let refused = &value["refused"];
        (refused["reason"].as_str().unwrap().to_owned(), refused["advice"].as_str().unwrap().to_owned())
    };
    let url = "https://shop.example/";
    plane.pause("shop", "moving").unwrap();
    let (reason, advice) = refusal(url, &[]);
    assert!(reason == "site_paused" && advice.starts_with("resume shop"), "{reason}: {advice}");
    plane.resume("shop").unwrap();
    plane.open_breaker("shop", "web", "_default", Some(Duration::from_secs(60))).unwrap();
    let (reason, advice) = refusal(url, &[]);
    assert!(reason == "circuit_open" && advice.contains("come again in"), "{reason}: {advice}");
    plane.close_breaker("shop", "web", "_default").unwrap();
    let (reason, advice) = refusal("https://other.example/", &[]);
    assert!(reason == "site_unknown" && advice.contains("LEASES rule 1"), "{reason}: {advice}");
    let wait = Duration::from_millis(3_200);
    plane.refuse_acquires(1, Refused::new(crate::spinneret::Code::ResourceExhausted, "no_identity_available").after(wait));
    let (reason, advice) = refusal(url, &[]);
    assert!(reason == "no_identity_available" && advice.contains("come again in 3.2 s"), "{reason}: {advice}");
    plane.reject_tokens();
    let (reason, advice) = refusal(url, &[]);
    assert!(reason == "unauthenticated" && advice.contains("SPINNERET_TOKEN"), "{reason}: {advice}");
    plane.heal();
    plane.go_away();
    let (reason, advice) = refusal(url, &[]);
    assert!(reason == "unavailable" && advice.contains("SPINNERET_URL"), "{reason}: {advice}");
}

#[test]
fn times_are_told_in_tenths_at_most_and_never_too_short() {
    for (ms, text) in [(0, "0 s"), (1, "0.1 s"), (1_000, "1 s"), (3_200, "3.2 s"), (119_950, "120 s")] {
        assert_eq!(seconds(Duration::from_millis(ms)), text);
    }
}
