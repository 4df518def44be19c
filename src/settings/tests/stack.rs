//! Layers on top of each other, errors of all of them, prints without secrets.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::super::*;
use super::errors;

#[test]
fn a_table_that_does_not_parse_is_not_shown() {
    for pair in [
        "DEFAULT_REQUEST_HEADERS=Authorization: canary",
        "DEFAULT_REQUEST_HEADERS={\"Authorization\": [\"canary\"]}",
        "DEFAULT_REQUEST_HEADERS={\"X\": \"canary\\n\"}",
        "FEEDS={\"ftp://me:canary@host/a\"",
        "FEEDS={\"ftp://me:canary@host/a\": 1}",
    ] {
        let shown = errors(Layers::new().set(pair))[0].to_string();
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn all_errors_of_all_layers_are_reported_together() {
    let found = errors(
        Layers::new()
            .with_file(Path::new("s.toml"), "RETRY_TIME = 3\nTELNETCONSOLE_PORT = [1, 2]\nLOG_LEVEL = 'LOUD'\n")
            .spider([("DEPTH_LIMIT", json!(-1))])
            .env(Environment::of([
                ("PATH", "/bin"),
                ("DRAGLINE_NOPE_NOPE_NOPE", "1"),
                ("SPINNERET_TOKN", "canary"),
                ("DRAGLINE_JOB_ID", "1"),
            ]))
            .set("CONCURRENT_REQUESTS_PER_IP=3")
            .set("canary")
            .set("RETRY_TIMES=many"),
    );
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let expected = [
        "unknown setting RETRY_TIME (s.toml, line 1); did you mean RETRY_TIMES?",
        "setting TELNETCONSOLE_PORT (s.toml, line 2) is known but not supported",
        "setting LOG_LEVEL (s.toml, line 3): found string \"LOUD\"; allowed: \"DEBUG\", \"INFO\"",
        "setting DEPTH_LIMIT (spider): found number -1",
        "unknown setting NOPE_NOPE_NOPE (environment variable DRAGLINE_NOPE_NOPE_NOPE)",
        "unknown setting SPINNERET_TOKN (environment variable SPINNERET_TOKN); did you mean SPINNERET_TOKEN?",
        "environment variable DRAGLINE_JOB_ID: JOB_ID is written without prefix",
        "setting CONCURRENT_REQUESTS_PER_IP (-s) is known but not supported by this version: use CONCURRENT_REQUESTS_PER_DOMAIN",
        "option -s (not shown): found no `=`",
        "setting RETRY_TIMES (-s): found string \"many\"",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.starts_with(expected), "{shown}\nshould start with\n{expected}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn an_overruled_bad_value_is_still_an_error() {
    let found = errors(Layers::new().with_file(Path::new("s.toml"), "RETRY_TIMES = -1").set("RETRY_TIMES=1"));
    assert_eq!(found.len(), 1);
}

#[test]
fn grace_and_close_timeout_share_25_seconds_and_name_both_sources() {
    let found = errors(Layers::new().set("GRACE=13.5"));
    assert_eq!(
        found[0].to_string(),
        "settings GRACE (-s) and CLOSE_TIMEOUT (default) do not fit: found 25.5 s together; allowed: up to 25 s, so lower one of them"
    );
}

#[test]
fn a_frontier_over_tls_is_refused_without_its_password() {
    let found = errors(Layers::new().set("FRONTIER=rediss://:canary@host/0"));
    let shown = found[0].to_string();
    assert!(shown.contains("over TLS, which is not supported"), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn no_print_of_settings_shows_a_secret() {
    let layers = Layers::new()
        .set(r#"DEFAULT_REQUEST_HEADERS={"Authorization": "canary", "X-Own": "canary", "Cookie": "canary"}"#)
        .set("FRONTIER=redis://:canary@host/0")
        .set(r#"FEEDS={"ftp://me:canary@host/a?b=canary": {"format": "csv"}}"#);
    let resolved = layers.resolve().unwrap();
    assert_eq!(resolved.settings.default_request_headers.get("cookie"), Some("canary"));
    assert_eq!(resolved.settings.feeds[0].uri, "ftp://me:canary@host/a?b=canary");
    for shown in [
        format!("{layers:?}"),
        format!("{resolved:?}"),
        format!("{:?}", resolved.settings),
        resolved.to_string(),
        resolved.to_json().to_string(),
    ] {
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("FEEDS") || shown.contains("feeds"), "{shown}");
    }
}

#[test]
fn the_table_says_value_and_source_of_every_key() {
    let shown = Layers::new().set("RETRY_TIMES=5").resolve().unwrap().to_string();
    assert_eq!(shown.lines().count(), Settings::keys().len());
    let row = |name: &str| -> Vec<String> {
        let line = shown.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("RETRY_TIMES"), ["RETRY_TIMES", "5", "-s"]);
    assert_eq!(row("LOG_LEVEL"), ["LOG_LEVEL", "\"INFO\"", "default"]);
    let json = Layers::new().set("RETRY_TIMES=5").resolve().unwrap().to_json();
    assert_eq!(json["RETRY_TIMES"], json!({"value": 5, "source": "-s", "default": 2, "type": "integer", "live": true}));
}

#[test]
fn a_reload_replaces_the_file_and_nothing_else() {
    let path = Path::new("s.toml");
    let before = Layers::new().with_file(path, "DEPTH_LIMIT = 3\nDOWNLOAD_DELAY = 1\n").set("DOWNLOAD_DELAY=5");
    let after = before.with_file(path, "CONCURRENT_REQUESTS = 2\nDOWNLOAD_DELAY = 2\n");
    let (before, after) = (before.resolve().unwrap().settings, after.resolve().unwrap().settings);
    assert_eq!(after.download_delay, Duration::from_secs(5));
    let found = changes(&before, &after);
    assert_eq!(found.live, ["CONCURRENT_REQUESTS"]);
    assert_eq!(found.restart, ["DEPTH_LIMIT"]);
}

#[test]
fn a_broken_reload_is_an_error_and_a_mended_one_is_not() {
    let path = Path::new("s.toml");
    let broken = Layers::new().with_file(path, "RETRY_TIMES = ");
    assert!(broken.resolve().is_err());
    assert!(broken.with_file(path, "RETRY_TIMES = 1").resolve().is_ok());
}

#[test]
fn the_settings_file_is_looked_for_in_two_places() {
    let folder = tempfile::tempdir().unwrap();
    let found = |folder: &Path| Layers::new().default_file(folder).settings_file().map(Path::to_owned);
    assert_eq!(found(folder.path()), None);
    let plain = folder.path().join("dragline.toml");
    std::fs::write(&plain, "RETRY_TIMES = 4\n").unwrap();
    assert_eq!(found(folder.path()), Some(plain));
    std::fs::create_dir(folder.path().join("config")).unwrap();
    let first = folder.path().join("config/dragline.toml");
    std::fs::write(&first, "RETRY_TIMES = 5\n").unwrap();
    assert_eq!(found(folder.path()), Some(first));
    let resolved = Layers::new().default_file(folder.path()).resolve().unwrap();
    assert_eq!(resolved.settings.retry_times, 5);
}

#[test]
fn a_missing_file_is_named() {
    let shown = errors(Layers::new().file(Path::new("no/such.toml")))[0].to_string();
    assert!(shown.contains("no/such.toml") && shown.contains("-c"), "{shown}");
}

/// Keys that take any small whole number, so that layers can be told apart by value.
const NUMBERED: [&str; 5] = ["RETRY_TIMES", "DEPTH_LIMIT", "REDIRECT_MAX_TIMES", "CLOSESPIDER_ITEMCOUNT", "APCLOUDY_BATCH_SIZE"];

proptest! {
    /// Layers 0 to 4 are file, watched, spider, environment, command line; each names some keys.
    #[test]
    fn the_highest_layer_that_has_a_key_wins_and_its_origin_says_so(
        layers in proptest::collection::vec(
            proptest::collection::btree_map(0..NUMBERED.len(), 0_i64..1000, 0..NUMBERED.len()), 5)
    ) {
        let named = |layer: usize| layers[layer].iter().map(|(key, value)| (NUMBERED[*key], *value));
        let file: String = named(0).map(|(key, value)| format!("{key} = {value}\n")).collect();
        let env = named(3).map(|(key, value)| {
            let prefix = if key.starts_with("APCLOUDY_") { "" } else { "DRAGLINE_" };
            (format!("{prefix}{key}"), value.to_string())
        });
        // The order of the calls must not matter.
        let mut stack = Layers::new()
            .env(Environment::of(env))
            .spider(named(2).map(|(key, value)| (key, json!(value))));
        for (key, value) in named(4) {
            stack = stack.set(&format!("{key}={value}"));
        }
        let stack = stack
            .watched(named(1).map(|(key, value)| (key, json!(value))))
            .with_file(Path::new("s.toml"), &file);
        let resolved = stack.resolve().unwrap();
        for (index, name) in NUMBERED.iter().enumerate() {
            let origin = resolved.origin(name).unwrap();
            let winner = (0..5).rev().find_map(|layer| layers[layer].get(&index).map(|value| (layer, *value)));
            let place = match origin.source() {
                Source::Default => None,
                Source::File { .. } => Some(0),
                Source::Watched | Source::Item { .. } => Some(1),
                Source::Spider => Some(2),
                Source::Environment { .. } => Some(3),
                Source::CommandLine => Some(4),
            };
            prop_assert_eq!(place, winner.map(|(layer, _)| layer));
            let value = winner.map_or_else(|| origin.key().default_text(), |(_, value)| value.to_string());
            prop_assert_eq!(origin.value_text(), value);
        }
        let batch = winner_of(&layers, 4).unwrap_or(50);
        prop_assert_eq!(resolved.settings.apcloudy_batch_size, batch);
    }

    #[test]
    fn no_text_from_outside_makes_a_key_panic(index in 0_usize..200, text in ".{0,40}") {
        let keys = Settings::keys();
        let key = &keys[index % keys.len()];
        let resolved = Layers::new().set(&format!("{}={text}", key.name())).resolve();
        if let Err(errors) = resolved {
            prop_assert!(errors.to_string().contains(key.name()));
        }
    }

    #[test]
    fn no_text_makes_a_file_parser_panic(text in "[A-Z_a-z0-9={}\\[\\]:,.'\"# \n-]{0,80}") {
        for name in ["s.toml", "s.yaml", "s.json"] {
            if let Err(errors) = Layers::new().with_file(Path::new(name), &text).resolve() {
                prop_assert!(errors.to_string().contains(name));
            }
        }
    }
}

fn winner_of(layers: &[BTreeMap<usize, i64>], key: usize) -> Option<i64> {
    layers.iter().rev().find_map(|layer| layer.get(&key).copied())
}
