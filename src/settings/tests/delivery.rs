//! Where records go: the backend's URL and keys, the id of the job, and what must be given together.

use std::path::Path;

use serde_json::{Value, json};

use super::super::*;
use super::errors;

fn file(text: &str) -> Layers {
    Layers::new().with_file(Path::new("s.toml"), text)
}

fn yaml(text: &str) -> Layers {
    Layers::new().with_file(Path::new("s.yaml"), text)
}

fn env(pairs: &[(&str, &str)]) -> Layers {
    Layers::new().env(Environment::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))))
}

/// The one error, as it is shown.
fn refused(layers: Layers) -> String {
    let found = errors(layers);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].to_string()
}

fn with_keys() -> Layers {
    env(&[("APCLOUDY_API_KEY", "key"), ("APCLOUDY_SECRET_KEY", "canary")])
}

const URL: &str = "an http or https URL, with a path if wanted, for example \"https://apcloudy.example/api\"; leave out user, \
                   password, query and fragment, keys go into APCLOUDY_API_KEY and APCLOUDY_SECRET_KEY (empty: not set)";
const API_KEY: &str = "text of visible ASCII characters, as a header carries it (empty: not set)";
const SECRET_KEY: &str = "text on one line (empty: not set)";
const JOB: &str = "a whole number other than 0, or text that is not empty (not set: leave it out)";
const ALL_THREE: &str = "give all of APCLOUDY_URL, APCLOUDY_API_KEY and APCLOUDY_SECRET_KEY, or none of them and no \
                         APCLOUDY_CA_FILE to deliver into the job store of DATA_DIR";

#[test]
fn a_base_url_is_taken_as_it_is_written() {
    for url in [
        "https://a.example",
        "http://127.0.0.1:8080/",
        "HTTPS://A.example/api/v1///",
        "http://[::1]:1/x",
        "https://b\u{e4}r.example/\u{fc}",
        "http://a.example/@team/x:y",
    ] {
        let settings = with_keys().set(&format!("APCLOUDY_URL={url}")).resolve().unwrap().settings;
        assert_eq!(settings.apcloudy_url.as_deref(), Some(url));
    }
}

#[test]
fn a_wrong_base_url_is_answered_without_a_word_of_it() {
    for (url, found) in [
        ("a.example", "text that does not begin with http:// or https:// (not shown)"),
        ("canary:canary@a.example", "text that does not begin with http:// or https:// (not shown)"),
        ("ftp://canary@a.example", "text that does not begin with http:// or https:// (not shown)"),
        ("https:/a.example", "text that does not begin with http:// or https:// (not shown)"),
        ("\u{e4}\u{e4}\u{e4}\u{e4}", "text that does not begin with http:// or https:// (not shown)"),
        ("https://me:canary@a.example", "a URL with a user or password (not shown)"),
        ("https://canary@a.example/x", "a URL with a user or password (not shown)"),
        ("https://@a.example", "a URL with a user or password (not shown)"),
        ("https://me:ca/canary@a.example", "a URL that cannot be used: invalid port number (not shown)"),
        ("https://", "a URL that cannot be used: empty host (not shown)"),
        ("https://a.example?key=canary", "a URL with a query (not shown)"),
        ("https://a.example/?", "a URL with a query (not shown)"),
        ("https://a.example/x#canary", "a URL with a fragment (not shown)"),
        (" https://a.example", "text with white space or a line break in it (not shown)"),
        ("https://a.example\n", "text with white space or a line break in it (not shown)"),
        (" ", "text with white space or a line break in it (not shown)"),
    ] {
        let shown = refused(with_keys().set(&format!("APCLOUDY_URL={url}")));
        assert_eq!(shown, format!("setting APCLOUDY_URL (-s): found {found}; allowed: {URL}"), "{url}");
    }
    assert_eq!(
        refused(file("APCLOUDY_URL = 1")),
        format!("setting APCLOUDY_URL (s.toml, line 1): found a number (not shown); put it in quotes; allowed: {URL}")
    );
}

#[test]
fn keys_are_text_that_can_be_used_and_are_never_shown() {
    for (key, value, found, allowed) in [
        ("APCLOUDY_API_KEY", json!("canary "), "text (not shown) with white space or a line break in it", API_KEY),
        ("APCLOUDY_API_KEY", json!("can\rary"), "text (not shown) with white space or a line break in it", API_KEY),
        ("APCLOUDY_API_KEY", json!("canary\u{7f}"), "text (not shown) with white space or a line break in it", API_KEY),
        ("APCLOUDY_API_KEY", json!("c\u{e4}nary"), "text (not shown) with a character outside ASCII in it", API_KEY),
        ("APCLOUDY_API_KEY", json!(777_333), "a number (not shown); put it in quotes", API_KEY),
        ("APCLOUDY_API_KEY", json!(["canary"]), "a list (not shown)", API_KEY),
        (
            "APCLOUDY_SECRET_KEY",
            json!("canary\n"),
            "text (not shown) with a line break or another control character in it",
            SECRET_KEY,
        ),
        ("APCLOUDY_SECRET_KEY", json!("  "), "text (not shown) with nothing but white space in it", SECRET_KEY),
        ("APCLOUDY_SECRET_KEY", json!(7.77333), "a number (not shown); put it in quotes", SECRET_KEY),
        ("APCLOUDY_SECRET_KEY", json!({"canary": 777_333}), "a table (not shown)", SECRET_KEY),
        ("APCLOUDY_SECRET_KEY", json!(true), "true or false", SECRET_KEY),
    ] {
        let shown = refused(Layers::new().spider([(key, value)]));
        assert_eq!(shown, format!("setting {key} (spider): found {found}; allowed: {allowed}"));
    }
    let all = with_keys().set("APCLOUDY_URL=https://a.example").set("APCLOUDY_SECRET_KEY= \u{e4} =x");
    assert_eq!(all.resolve().unwrap().settings.apcloudy_secret_key, Some(Secret::from(" \u{e4} =x")));
}

#[test]
fn no_print_of_settings_shows_a_key_in_any_layer() {
    let url = "APCLOUDY_URL=https://a.example/x";
    let keys = [("APCLOUDY_API_KEY", json!("canary-1")), ("APCLOUDY_SECRET_KEY", json!("canary-2"))];
    for layers in [
        file("APCLOUDY_API_KEY = 'canary-1'\nAPCLOUDY_SECRET_KEY = 'canary-2'").set(url),
        Layers::new().spider(keys.clone()).set(url),
        Layers::new().watched(keys).set(url),
        env(&[("APCLOUDY_API_KEY", "canary-1"), ("APCLOUDY_SECRET_KEY", "canary-2")]).set(url),
        Layers::new().set("APCLOUDY_API_KEY=canary-1").set("APCLOUDY_SECRET_KEY=canary-2").set(url),
    ] {
        let resolved = layers.resolve().unwrap();
        assert_eq!(resolved.settings.apcloudy_api_key.as_ref().unwrap().expose(), "canary-1");
        assert_eq!(resolved.settings.apcloudy_secret_key.as_ref().unwrap().expose(), "canary-2");
        let half = layers.clone().set("APCLOUDY_URL=").resolve().unwrap_err();
        let table = resolved.to_string();
        for shown in [
            format!("{layers:?} {layers:#?}"),
            format!("{resolved:?}"),
            format!("{:#?}", resolved.settings),
            table.clone(),
            resolved.to_json().to_string(),
            half.to_string(),
            format!("{half:?}"),
        ] {
            assert!(!shown.contains("canary"), "{shown}");
        }
        for key in ["APCLOUDY_API_KEY", "APCLOUDY_SECRET_KEY"] {
            let row = table.lines().find(|line| line.starts_with(key)).unwrap();
            assert!(row.contains("\"[redacted]\""), "{row}");
            assert_eq!(resolved.to_json()[key]["value"], "[redacted]");
        }
    }
    let unset = Layers::new().set("APCLOUDY_API_KEY=").resolve().unwrap();
    for key in ["APCLOUDY_API_KEY", "APCLOUDY_SECRET_KEY"] {
        assert_eq!(unset.origin(key).unwrap().value_text(), "\"\"");
    }
}

#[test]
fn half_of_the_settings_of_a_backend_is_one_error_that_names_both_halves() {
    for (layers, names) in [
        (
            Layers::new().set("APCLOUDY_API_KEY=canary"),
            "APCLOUDY_API_KEY (-s) without APCLOUDY_URL (not set) and APCLOUDY_SECRET_KEY (not set)",
        ),
        (
            env(&[("APCLOUDY_SECRET_KEY", "canary")]).set("APCLOUDY_URL="),
            "APCLOUDY_SECRET_KEY (environment variable APCLOUDY_SECRET_KEY) without APCLOUDY_URL (empty, -s) and APCLOUDY_API_KEY (not set)",
        ),
        (
            with_keys(),
            "APCLOUDY_API_KEY (environment variable APCLOUDY_API_KEY) and \
             APCLOUDY_SECRET_KEY (environment variable APCLOUDY_SECRET_KEY) without APCLOUDY_URL (not set)",
        ),
        (
            file("\nAPCLOUDY_CA_FILE = 'ca.pem'"),
            "APCLOUDY_CA_FILE (s.toml, line 2) without APCLOUDY_URL (not set), APCLOUDY_API_KEY (not set) and \
             APCLOUDY_SECRET_KEY (not set)",
        ),
        (
            file("APCLOUDY_URL = 'http://a.example'"),
            "APCLOUDY_URL (s.toml, line 1) without APCLOUDY_API_KEY (not set) and APCLOUDY_SECRET_KEY (not set)",
        ),
        (
            file("APCLOUDY_URL = 'http://a.example'\nAPCLOUDY_API_KEY = 'canary'\nAPCLOUDY_SECRET_KEY = ''"),
            "APCLOUDY_URL (s.toml, line 1) and APCLOUDY_API_KEY (s.toml, line 2) without APCLOUDY_SECRET_KEY (empty, s.toml, line 3)",
        ),
        (
            Layers::new().spider([("APCLOUDY_URL", json!("http://a.example")), ("APCLOUDY_SECRET_KEY", json!("canary"))]),
            "APCLOUDY_URL (spider) and APCLOUDY_SECRET_KEY (spider) without APCLOUDY_API_KEY (not set)",
        ),
    ] {
        assert_eq!(refused(layers), format!("APCloudy is set up by half: found {names}; {ALL_THREE}"));
    }
}

#[test]
fn a_user_for_every_host_is_half_an_authentication() {
    for (layers, names) in [
        (Layers::new().set("HTTPAUTH_USER=anna"), "HTTPAUTH_USER (-s) without HTTPAUTH_DOMAIN (not set)"),
        (
            Layers::new().set("HTTPAUTH_USER=anna").set("HTTPAUTH_PASS=canary"),
            "HTTPAUTH_USER (-s) and HTTPAUTH_PASS (-s) without HTTPAUTH_DOMAIN (not set)",
        ),
        (Layers::new().set("HTTPAUTH_DOMAIN=a.example"), "HTTPAUTH_DOMAIN (-s) without HTTPAUTH_USER (not set)"),
    ] {
        let advice = "give HTTPAUTH_DOMAIN with HTTPAUTH_USER or HTTPAUTH_PASS, or none of them";
        assert_eq!(refused(layers), format!("HTTP authentication is set up by half: found {names}; {advice}"));
    }
    let whole = Layers::new().set("HTTPAUTH_PASS=canary").set("HTTPAUTH_DOMAIN=A.example").resolve().unwrap();
    assert_eq!(whole.settings.httpauth_domain.as_deref(), Some("a.example"));
    assert!(!format!("{:?}", whole.settings).contains("canary"));
}

#[test]
fn what_the_job_store_takes_too_needs_no_backend() {
    for pair in ["APCLOUDY_ON_FATAL=stop", "APCLOUDY_REQUEST_RECORDS=all", "APCLOUDY_BATCH_SIZE=1", "APCLOUDY_URL="] {
        assert!(Layers::new().set(pair).resolve().is_ok(), "{pair}");
    }
    let empty = env(&[("APCLOUDY_URL", ""), ("APCLOUDY_API_KEY", ""), ("APCLOUDY_SECRET_KEY", ""), ("APCLOUDY_CA_FILE", "")]);
    assert_eq!(empty.resolve().unwrap().settings, Settings::default());
}

#[test]
fn halves_from_different_layers_make_a_whole() {
    let layers = file("APCLOUDY_URL = 'https://a.example'\nJOB_ID = 5").spider([("APCLOUDY_API_KEY", json!("key"))]);
    assert!(layers.resolve().is_err());
    let whole = layers.env(Environment::of([("APCLOUDY_SECRET_KEY", "s")])).resolve().unwrap().settings;
    assert_eq!((whole.apcloudy_url.as_deref(), whole.job_id), (Some("https://a.example"), Some(JobId::Number(5))));
}

#[test]
fn a_reload_with_half_a_backend_is_refused_and_a_whole_one_waits_for_a_restart() {
    let path = Path::new("s.toml");
    let running = file("RETRY_TIMES = 3");
    let half = running.with_file(path, "APCLOUDY_URL = 'http://a.example'");
    assert_eq!(
        refused(half),
        format!(
            "APCloudy is set up by half: found APCLOUDY_URL (s.toml, line 1) without APCLOUDY_API_KEY (not set) and APCLOUDY_SECRET_KEY (not set); {ALL_THREE}"
        )
    );
    let whole = "RETRY_TIMES = 3\nAPCLOUDY_URL = 'http://a.example'\nAPCLOUDY_API_KEY = 'a'\nAPCLOUDY_SECRET_KEY = 'b'";
    let newer = running.with_file(path, whole).resolve().unwrap().settings;
    let found = changes(&running.resolve().unwrap().settings, &newer);
    assert_eq!(found.live, Vec::<&str>::new());
    assert_eq!(found.restart, ["APCLOUDY_URL", "APCLOUDY_API_KEY", "APCLOUDY_SECRET_KEY"]);
    let other = running.with_file(path, &whole.replace("'b'", "'c'")).resolve().unwrap().settings;
    assert_eq!(changes(&newer, &other).restart, ["APCLOUDY_SECRET_KEY"]);
}

#[test]
fn a_job_id_keeps_the_type_it_was_written_with() {
    let text = |id: &str| Some(JobId::Text(id.to_owned()));
    for (layers, id) in [
        (file("JOB_ID = 123"), Some(JobId::Number(123))),
        (file("JOB_ID = -1"), Some(JobId::Number(-1))),
        (file("JOB_ID = '123'"), text("123")),
        (file("JOB_ID = '0'"), text("0")),
        (yaml("JOB_ID: 123"), Some(JobId::Number(123))),
        (yaml("JOB_ID: abc-1"), text("abc-1")),
        (Layers::new().with_file(Path::new("s.json"), r#"{"JOB_ID": 9}"#), Some(JobId::Number(9))),
        (Layers::new().spider([("JOB_ID", json!(123))]), Some(JobId::Number(123))),
        (Layers::new().spider([("JOB_ID", json!("123"))]), text("123")),
        (Layers::new().spider([("JOB_ID", Value::Null)]), None),
        (Layers::new().set("JOB_ID=123"), text("123")),
        (Layers::new().set("JOB_ID=0"), text("0")),
        (file("JOB_ID = 1").set("JOB_ID=abc-1"), text("abc-1")),
        (env(&[("JOB_ID", "7")]), text("7")),
        (file("JOB_ID = 1").env(Environment::of([("JOB_ID", "0")])), text("0")),
        (Layers::new(), None),
    ] {
        assert_eq!(layers.resolve().unwrap().settings.job_id, id, "{layers:?}");
    }
}

#[test]
fn a_job_id_that_is_zero_or_empty_is_an_error_wherever_it_stands() {
    for (layers, origin, found) in [
        (file("JOB_ID = 0"), "s.toml, line 1", "number 0"),
        (file("JOB_ID = ''"), "s.toml, line 1", "string \"\""),
        (file("JOB_ID = 1.0"), "s.toml, line 1", "number 1.0"),
        (file("JOB_ID = 18446744073709551616"), "s.toml, line 1", "number 1.8446744073709552e+19"),
        (file("JOB_ID = true"), "s.toml, line 1", "boolean true"),
        (yaml("JOB_ID: 0"), "s.yaml, line 1", "number 0"),
        (yaml("JOB_ID: 18446744073709551616"), "s.yaml, line 1", "number 1.8446744073709552e+19"),
        (Layers::new().spider([("JOB_ID", json!(0))]), "spider", "number 0"),
        (Layers::new().spider([("JOB_ID", json!(""))]), "spider", "string \"\""),
        (env(&[("JOB_ID", "")]), "environment variable JOB_ID", "string \"\""),
        (file("JOB_ID = 1").set("JOB_ID="), "-s", "string \"\""),
    ] {
        assert_eq!(refused(layers), format!("setting JOB_ID ({origin}): found {found}; allowed: {JOB}"));
    }
}
