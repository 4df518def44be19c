//! Tests over the whole table and all layers together.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shipped(name: &str) -> String {
    std::fs::read_to_string(name).unwrap()
}

/// A shipped file with every setting that is commented out switched on.
fn uncommented(name: &str) -> String {
    let is_setting = |line: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        line.starts_with('[')
            || line
                .split_once(" = ")
                .is_some_and(|(key, _)| key.chars().all(word))
    };
    let lines: Vec<String> = shipped(name)
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if is_setting(setting) => setting.to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}

fn errors(layers: Layers) -> Vec<SettingsError> {
    layers.resolve().unwrap_err().iter().cloned().collect()
}

/// For each type: a typed good value, the same as text, a typed bad value.
fn samples(key: &Key) -> (Value, String, Value) {
    let typed = |value: Value| {
        let text = value.to_string();
        (value, text)
    };
    let (good, text) = match (key.name(), key.type_text()) {
        ("LOG_LEVEL", _) => (json!("ERROR"), "ERROR".to_owned()),
        ("LOG_FORMAT", _) => (json!("json"), "json".to_owned()),
        ("PROGRESS", _) => (json!("lines"), "lines".to_owned()),
        ("FRONTIER", _) => (json!("memory"), "memory".to_owned()),
        ("FEED_EXPORT_ENCODING", _) => (json!("utf-8"), "utf-8".to_owned()),
        ("LEASE_UNMATCHED", _) => (json!("anonymous"), "anonymous".to_owned()),
        (_, "boolean") => (json!(true), "True".to_owned()),
        (_, "integer") => (json!(11), " 11 ".to_owned()),
        (_, "number") => (json!(0.25), "0.25".to_owned()),
        (_, "seconds") => (json!(2.5), "2.5".to_owned()),
        (_, "milliseconds") => (json!(20), "20".to_owned()),
        (_, "bytes") => (json!("4MiB"), "4194304".to_owned()),
        (_, "text" | "path") => (json!("some/thing"), "some/thing".to_owned()),
        (_, "integer or text") => (json!("a-1"), "a-1".to_owned()),
        (_, "list of text") => (json!(["a", "b"]), "a, b".to_owned()),
        (_, "list of codes") => (json!([404, 410]), "404,410".to_owned()),
        (_, "table of headers") => typed(json!({"Accept": "text/html"})),
        (_, "table of components") => (
            json!({"a": 300, "b": false}),
            r#"{"a": 300, "b": null}"#.to_owned(),
        ),
        (_, "table of feeds") => typed(json!({"a.csv": {"format": "csv", "overwrite": true}})),
        (_, "list of lease rules") => {
            typed(json!([{"domains": ["a.example"], "site": "a", "client": "web"}]))
        }
        (name, kind) => panic!("no sample for {name} of type {kind}"),
    };
    let bad = match key.type_text() {
        "text" | "path" | "integer or text" => json!(["canary"]),
        _ => json!("canary"),
    };
    (good, text, bad)
}

#[test]
fn every_default_is_allowed_by_its_own_rule() {
    for key in Settings::keys() {
        assert_eq!((key.check)(&key.default), Ok(()), "{}", key.name());
    }
    assert_eq!(
        Layers::new().resolve().unwrap().settings,
        Settings::default()
    );
}

#[test]
fn each_key_takes_a_good_value_and_names_everything_about_a_bad_one() {
    for key in Settings::keys() {
        let (good, text, bad) = samples(key);
        let typed = Layers::new()
            .spider([(key.name(), good)])
            .resolve()
            .unwrap();
        let given = Layers::new()
            .set(&format!("{}={text}", key.name()))
            .resolve()
            .unwrap();
        assert_eq!(typed.settings, given.settings, "{}", key.name());
        assert_eq!(
            given.origin(key.name()).unwrap().source(),
            &Source::CommandLine
        );
        let may_equal_default = ["boolean", "choice"].contains(&key.type_text());
        assert!(
            may_equal_default || typed.settings != Settings::default(),
            "{}",
            key.name()
        );

        let found = errors(Layers::new().spider([(key.name(), bad)]));
        assert_eq!(found.len(), 1);
        let shown = found[0].to_string();
        for part in [key.name(), "(spider)", "found ", key.allowed()] {
            assert!(shown.contains(part), "{part:?} is missing in: {shown}");
        }
    }
}

#[test]
fn the_reference_file_is_the_template() {
    assert_eq!(
        shipped("config/dragline.toml"),
        template(),
        "config/dragline.toml must hold the text of settings::template()"
    );
}

#[test]
fn the_reference_file_names_exactly_the_keys_and_changes_nothing() {
    let as_is = Layers::new()
        .file(Path::new("config/dragline.toml"))
        .resolve()
        .unwrap();
    assert!(
        as_is
            .origins()
            .iter()
            .all(|origin| origin.source() == &Source::Default)
    );

    let all = Layers::new()
        .with_file(Path::new("all.toml"), &uncommented("config/dragline.toml"))
        .resolve()
        .unwrap();
    assert_eq!(all.settings, Settings::default());
    assert_eq!(all.origins().len(), Settings::keys().len());
    for origin in all.origins() {
        assert!(
            matches!(origin.source(), Source::File { line: Some(_), .. }),
            "{origin:?}"
        );
    }
}

#[test]
fn the_shipped_files_resolve() {
    for name in ["config/demo.toml", "config/production.toml"] {
        let resolved = Layers::new().file(Path::new(name)).resolve();
        assert!(resolved.is_ok(), "{name}: {}", resolved.unwrap_err());
    }
    let text = uncommented("config/production.toml");
    let all = Layers::new()
        .with_file(Path::new("all.toml"), &text)
        .resolve()
        .unwrap()
        .settings;
    assert_eq!(
        (all.leases.len(), all.feeds.len(), all.concurrent_requests),
        (1, 1, 64)
    );
}

#[test]
fn keys_are_unique_and_named_like_settings() {
    let names: BTreeSet<&str> = Settings::keys().iter().map(Key::name).collect();
    assert_eq!(names.len(), Settings::keys().len());
    for key in Settings::keys() {
        assert!(
            key.name()
                .chars()
                .all(|c| c.is_ascii_uppercase() || c == '_'),
            "{}",
            key.name()
        );
        assert!(key.doc().ends_with('.'), "{}: {}", key.name(), key.doc());
    }
}

#[test]
fn the_documented_defaults_hold() {
    let settings = Settings::default();
    assert_eq!(settings.concurrent_requests, 16);
    assert_eq!(settings.download_maxsize, 64 << 20);
    assert_eq!(settings.report_flush, Duration::from_millis(200));
    assert_eq!(settings.spool_sync_ms, Duration::from_millis(100));
    assert_eq!(
        settings.retry_http_codes,
        [500, 502, 503, 504, 522, 524, 408, 429]
    );
    assert_eq!(
        settings.user_agent,
        format!("dragline/{}", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(
        settings.default_request_headers.get("accept-language"),
        Some("en")
    );
    assert_eq!(settings.job_id, None);
    assert_eq!(settings.data_dir, PathBuf::from(".dragline"));
    assert!(settings.robotstxt_obey && settings.download_verify_certificates);
}

#[test]
fn ranges_hold_at_both_ends() {
    for (pair, ok) in [
        ("CONCURRENT_REQUESTS=0", false),
        ("CONCURRENT_REQUESTS=1", true),
        ("CONCURRENT_REQUESTS=-1", false),
        ("CONCURRENT_REQUESTS=1.5", false),
        ("DOWNLOAD_DELAY_JITTER=1", true),
        ("DOWNLOAD_DELAY_JITTER=1.01", false),
        ("DOWNLOAD_DELAY_JITTER=-0.1", false),
        ("DOWNLOAD_DELAY=-1", false),
        ("DOWNLOAD_DELAY=nan", false),
        ("DOWNLOAD_DELAY=inf", false),
        ("DOWNLOAD_MAXSIZE=0", false),
        ("DOWNLOAD_WARNSIZE=0", true),
        ("WINDOW_BYTES=1.5 GB", true),
        ("WINDOW_BYTES=99999999999999999999GB", false),
        ("WINDOW_BYTES=1PB", false),
        ("WINDOW_BYTES=GB", false),
        ("RETRY_HTTP_CODES=99", false),
        ("RETRY_HTTP_CODES=600", false),
        ("RETRY_HTTP_CODES=[500, 599]", true),
        ("RETRY_HTTP_CODES=", true),
        ("APCLOUDY_BATCH_SIZE=0", true),
        ("COOKIES_ENABLED=yes", false),
        ("COOKIES_ENABLED=0", true),
        ("LOG_LEVEL=info", false),
        ("USER_AGENT=", false),
        ("USER_AGENT=a\nb", false),
        ("GRACE=25", false),
        ("GRACE=13", true),
        ("RETRY_BACKOFF=61", false),
        ("DEFAULT_REQUEST_HEADERS={\"a b\": \"c\"}", false),
        (
            "DEFAULT_REQUEST_HEADERS={\"A\": \"c\", \"a\": \"d\"}",
            false,
        ),
        ("DEFAULT_REQUEST_HEADERS={ X-One = \"c\" }", true),
        ("FEEDS={\"a.csv\": {\"formt\": \"csv\"}}", false),
        (
            "LEASES=[{\"domains\": [], \"site\": \"a\", \"client\": \"b\"}]",
            false,
        ),
        ("LEASES=[{\"domains\": [\"a\"], \"site\": \"a\"}]", false),
        (
            "LEASES=[{\"domains\": [\"a\"], \"site\": \"a\", \"client\": \"b\", \"extra\": 1}]",
            false,
        ),
    ] {
        let resolved = Layers::new().set(pair).resolve();
        assert_eq!(resolved.is_ok(), ok, "{pair}: {resolved:?}");
    }
}

#[test]
fn sizes_with_units_count_bytes() {
    for (text, bytes) in [
        ("1GB", 1_000_000_000),
        ("64MiB", 64 << 20),
        ("1.5 MiB", 3 << 19),
        ("70000", 70_000),
    ] {
        let resolved = Layers::new()
            .set(&format!("WINDOW_BYTES={text}"))
            .resolve()
            .unwrap();
        assert_eq!(resolved.settings.window_bytes, bytes, "{text}");
    }
}

#[test]
fn a_file_does_not_take_text_for_a_number() {
    let found = errors(Layers::new().with_file(Path::new("s.toml"), "\nRETRY_TIMES = \"2\"\n"));
    assert_eq!(
        found[0].to_string(),
        "setting RETRY_TIMES (s.toml, line 2): found string \"2\"; allowed: a whole number from 0 to 1000"
    );
}

#[test]
fn a_job_id_keeps_the_type_it_was_written_with() {
    let id = |layers: Layers| layers.resolve().unwrap().settings.job_id;
    let file = |text: &str| Layers::new().with_file(Path::new("s.toml"), text);
    assert_eq!(id(file("JOB_ID = 123")), Some(JobIdValue::Int(123)));
    assert_eq!(
        id(file("JOB_ID = '123'")),
        Some(JobIdValue::Text("123".to_owned()))
    );
    assert_eq!(
        id(Layers::new().set("JOB_ID=123")),
        Some(JobIdValue::Text("123".to_owned()))
    );
    let env = Environment::of([("JOB_ID", "7")]);
    assert_eq!(
        id(Layers::new().env(env)),
        Some(JobIdValue::Text("7".to_owned()))
    );
    assert_eq!(id(file("JOB_ID = 1").set("JOB_ID=")), None);
}

#[test]
fn a_component_is_switched_off_by_false_or_null() {
    let toml = Layers::new().with_file(
        Path::new("s.toml"),
        "ITEM_PIPELINES = { keep = 300, drop = false }",
    );
    let json = Layers::new().with_file(
        Path::new("s.json"),
        r#"{"ITEM_PIPELINES": {"keep": 300, "drop": null}}"#,
    );
    let expected = BTreeMap::from([("keep".to_owned(), Some(300)), ("drop".to_owned(), None)]);
    for layers in [toml, json] {
        assert_eq!(layers.resolve().unwrap().settings.item_pipelines, expected);
    }
}

#[test]
fn lease_rules_are_read_in_order() {
    let text = "[[LEASES]]\ndomains = ['shop.example']\nsite = 'shop'\nclient = 'web'\n\
                [[LEASES]]\ndomains = ['b.example', 'c.example']\nsite = 'b'\nclient = 'app'\nendpoint_group = 'g'\nsession_key = 's'\n";
    let leases = Layers::new()
        .with_file(Path::new("s.toml"), text)
        .resolve()
        .unwrap()
        .settings
        .leases;
    assert_eq!(leases.len(), 2);
    assert_eq!(
        (leases[0].site.as_str(), leases[0].endpoint_group.as_str()),
        ("shop", "")
    );
    assert_eq!(leases[1].domains, ["b.example", "c.example"]);
    assert_eq!(
        (
            leases[1].endpoint_group.as_str(),
            leases[1].session_key.as_str()
        ),
        ("g", "s")
    );
}

#[test]
fn all_errors_of_all_layers_are_reported_together() {
    let found = errors(
        Layers::new()
            .with_file(
                Path::new("s.toml"),
                "RETRY_TIME = 3\nTELNETCONSOLE_PORT = [1, 2]\nLOG_LEVEL = 'LOUD'\n",
            )
            .spider([("DEPTH_LIMIT", json!(-1))])
            .env(Environment::of([
                ("PATH", "/bin"),
                ("DRAGLINE_NOPE_NOPE_NOPE", "1"),
                ("SPINNERET_TOKEN", "canary"),
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
        "setting SPINNERET_TOKEN (environment variable SPINNERET_TOKEN) is known but not supported",
        "environment variable DRAGLINE_JOB_ID: JOB_ID is written without prefix",
        "setting CONCURRENT_REQUESTS_PER_IP (-s) is known but not supported by this version: use CONCURRENT_REQUESTS_PER_DOMAIN",
        "option -s (not shown): found no `=`",
        "setting RETRY_TIMES (-s): found string \"many\"",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(
            shown.starts_with(expected),
            "{shown}\nshould start with\n{expected}"
        );
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn an_overruled_bad_value_is_still_an_error() {
    let found = errors(
        Layers::new()
            .with_file(Path::new("s.toml"), "RETRY_TIMES = -1")
            .set("RETRY_TIMES=1"),
    );
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
fn a_redis_frontier_is_refused_without_its_password() {
    let found = errors(Layers::new().set("FRONTIER=redis://:canary@host/0"));
    let shown = found[0].to_string();
    assert!(
        shown.contains("redis:// URL is not supported by this version"),
        "{shown}"
    );
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn no_print_of_settings_shows_a_secret() {
    let layers = Layers::new()
        .set(r#"DEFAULT_REQUEST_HEADERS={"Authorization": "canary", "Cookie": "canary"}"#)
        .set(r#"FEEDS={"ftp://me:canary@host/a?b=canary": {"format": "csv"}}"#);
    let resolved = layers.resolve().unwrap();
    assert_eq!(
        resolved.settings.default_request_headers.get("cookie"),
        Some("canary")
    );
    assert_eq!(
        resolved.settings.feeds[0].uri,
        "ftp://me:canary@host/a?b=canary"
    );
    for shown in [
        format!("{layers:?}"),
        format!("{resolved:?}"),
        format!("{:?}", resolved.settings),
        resolved.to_string(),
        resolved.to_json().to_string(),
    ] {
        assert!(!shown.contains("canary"), "{shown}");
        assert!(
            shown.contains("FEEDS") || shown.contains("feeds"),
            "{shown}"
        );
    }
}

#[test]
fn the_table_says_value_and_source_of_every_key() {
    let shown = Layers::new()
        .set("RETRY_TIMES=5")
        .resolve()
        .unwrap()
        .to_string();
    assert_eq!(shown.lines().count(), Settings::keys().len());
    let row = |name: &str| -> Vec<String> {
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")))
            .unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("RETRY_TIMES"), ["RETRY_TIMES", "5", "-s"]);
    assert_eq!(row("LOG_LEVEL"), ["LOG_LEVEL", "\"INFO\"", "default"]);
    let json = Layers::new()
        .set("RETRY_TIMES=5")
        .resolve()
        .unwrap()
        .to_json();
    assert_eq!(
        json["RETRY_TIMES"],
        json!({"value": 5, "source": "-s", "default": 2, "type": "integer", "live": false})
    );
}

#[test]
fn a_reload_replaces_the_file_and_nothing_else() {
    let path = Path::new("s.toml");
    let before = Layers::new()
        .with_file(path, "RETRY_TIMES = 3\nDOWNLOAD_DELAY = 1\n")
        .set("DOWNLOAD_DELAY=5");
    let after = before.with_file(path, "CONCURRENT_REQUESTS = 2\nDOWNLOAD_DELAY = 2\n");
    let (before, after) = (
        before.resolve().unwrap().settings,
        after.resolve().unwrap().settings,
    );
    assert_eq!(after.download_delay, Duration::from_secs(5));
    let found = changes(&before, &after);
    assert_eq!(found.live, ["CONCURRENT_REQUESTS"]);
    assert_eq!(found.restart, ["RETRY_TIMES"]);
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
    let found = |folder: &Path| {
        Layers::new()
            .default_file(folder)
            .settings_file()
            .map(Path::to_owned)
    };
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
    assert!(
        shown.contains("no/such.toml") && shown.contains("-c"),
        "{shown}"
    );
}

/// Keys that take any small whole number, so that layers can be told apart by value.
const NUMBERED: [&str; 5] = [
    "RETRY_TIMES",
    "DEPTH_LIMIT",
    "REDIRECT_MAX_TIMES",
    "CLOSESPIDER_ITEMCOUNT",
    "APCLOUDY_BATCH_SIZE",
];

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
                Source::Watched => Some(1),
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
    layers
        .iter()
        .rev()
        .find_map(|layer| layer.get(&key).copied())
}
