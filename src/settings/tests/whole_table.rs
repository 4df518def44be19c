//! Each key, its default and its range; the shipped files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::*;
use super::errors;

fn shipped(name: &str) -> String {
    std::fs::read_to_string(name).unwrap()
}

/// A shipped file with every setting that is commented out switched on.
fn uncommented(name: &str) -> String {
    let is_setting = |line: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| key.chars().all(word))
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
        ("FRONTIER", _) => (json!("redis://:a@host/1"), "redis://:a@host/1".to_owned()),
        ("FEED_EXPORT_ENCODING", _) => (json!("utf-8"), "utf-8".to_owned()),
        ("APCLOUDY_REQUEST_RECORDS", _) => (json!("all"), "all".to_owned()),
        ("APCLOUDY_ON_FATAL", _) => (json!("stop"), "stop".to_owned()),
        ("LEASE_UNMATCHED", _) => (json!("anonymous"), "anonymous".to_owned()),
        ("REFERRER_POLICY", _) => (json!("origin"), "origin".to_owned()),
        ("HTML_ENGINE", _) => (json!("compare"), "compare".to_owned()),
        ("HTTPCACHE_POLICY", _) => (json!("rfc9111"), "rfc9111".to_owned()),
        (_, "boolean or auto") => (json!(false), "False".to_owned()),
        ("HOSTS", _) => typed(json!({"a.example": "127.0.0.1:80"})),
        (_, "boolean") => (json!(true), "True".to_owned()),
        (_, "integer") => (json!(11), " 11 ".to_owned()),
        (_, "number") => (json!(0.25), "0.25".to_owned()),
        (_, "seconds") => (json!(2.5), "2.5".to_owned()),
        (_, "milliseconds") => (json!(20), "20".to_owned()),
        (_, "bytes") => (json!("4MiB"), "4194304".to_owned()),
        (_, "text" | "path") => (json!("some/thing"), "some/thing".to_owned()),
        (_, "URL") => (json!("https://apcloudy.example/api/"), "https://apcloudy.example/api/".to_owned()),
        (_, "secret") => (json!("key"), "key".to_owned()),
        (_, "integer or text") => (json!("a-1"), "a-1".to_owned()),
        (_, "list of text") => (json!(["a", "b"]), "a, b".to_owned()),
        (_, "list of domains") => (json!(["a.example", "b.example"]), "a.example,B.example".to_owned()),
        (_, "list of codes") => (json!([404, 410]), "404,410".to_owned()),
        (_, "list of kinds") => (json!(["timeout", "decode"]), "timeout, decode".to_owned()),
        (_, "domain") => (json!("A.example"), "a.example".to_owned()),
        (_, "table of headers") => typed(json!({"Accept": "text/html"})),
        (_, "table of components") => (json!({"a": 300, "b": false}), r#"{"a": 300, "b": null}"#.to_owned()),
        (_, "table of feeds") => typed(json!({"a.csv": {"format": "csv", "overwrite": true}})),
        (_, "table of hosts") => typed(json!({"a.example": {"concurrency": 1, "delay": 0.5}})),
        (_, "list of lease rules") => typed(json!([{"domains": ["a.example"], "site": "a", "client": "web"}])),
        (_, "list of config items") => (json!(["a/b", "c/d"]), "a/b, c/d".to_owned()),
        (_, "list of markers") => typed(json!([{"marker": "captcha", "status": [403]}])),
        (name, kind) => panic!("no sample for {name} of type {kind}"),
    };
    let bad = match key.type_text() {
        "text" | "path" | "integer or text" | "secret" | "domain" => json!(["canary"]),
        _ => json!("canary"),
    };
    (good, text, bad)
}

/// Settings without which a value of this key is refused.
fn companions(name: &str) -> Vec<(&'static str, Value)> {
    let wholes: [&[(&'static str, &str)]; 3] = [
        &[("APCLOUDY_URL", "http://a.example"), ("APCLOUDY_API_KEY", "a"), ("APCLOUDY_SECRET_KEY", "a")],
        &[("SPINNERET_URL", "http://a.example"), ("SPINNERET_TOKEN", "a")],
        &[("HTTPAUTH_USER", "a"), ("HTTPAUTH_DOMAIN", "a.example")],
    ];
    if name == "HTTPAUTH_PASS" {
        return vec![("HTTPAUTH_DOMAIN", json!("a.example"))];
    }
    if name == "SPINNERET_BACKOFF" {
        return vec![("SPINNERET_BACKOFF_MAX", json!(5))];
    }
    let needs = |whole: &&[(&'static str, &str)]| {
        whole.iter().any(|(key, _)| *key == name) || (name == "APCLOUDY_CA_FILE" && whole.len() == 3)
    };
    let whole = wholes.into_iter().find(needs).unwrap_or_default();
    whole.iter().filter(|(key, _)| *key != name).map(|(key, value)| (*key, json!(value))).collect()
}

#[test]
fn every_default_is_allowed_by_its_own_rule() {
    for key in Settings::keys() {
        assert_eq!((key.check)(&key.default), Ok(()), "{}", key.name());
    }
    assert_eq!(Layers::new().resolve().unwrap().settings, Settings::default());
}

#[test]
fn each_key_takes_a_good_value_and_names_everything_about_a_bad_one() {
    for key in Settings::keys() {
        let (good, text, bad) = samples(key);
        let with = companions(key.name());
        let typed = Layers::new().spider([&with[..], &[(key.name(), good)]].concat()).resolve().unwrap();
        let given = Layers::new().spider(with).set(&format!("{}={text}", key.name())).resolve().unwrap();
        assert_eq!(typed.settings, given.settings, "{}", key.name());
        assert_eq!(given.origin(key.name()).unwrap().source(), &Source::CommandLine);
        let may_equal_default = ["boolean", "choice"].contains(&key.type_text());
        assert!(may_equal_default || typed.settings != Settings::default(), "{}", key.name());

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
    let shipped = shipped("config/dragline.toml");
    let differing = shipped.lines().zip(template().lines()).position(|(old, new)| old != new);
    if shipped != template() {
        let wanted = std::env::temp_dir().join("dragline.toml");
        std::fs::write(&wanted, template()).unwrap();
        panic!(
            "config/dragline.toml differs from line {:?} on; the text it must have is in {}",
            differing.map(|line| line + 1),
            wanted.display()
        );
    }
}

#[test]
fn the_reference_file_names_exactly_the_keys_and_changes_nothing() {
    let as_is = Layers::new().file(Path::new("config/dragline.toml")).resolve().unwrap();
    assert!(as_is.origins().iter().all(|origin| origin.source() == &Source::Default));

    let all = Layers::new().with_file(Path::new("all.toml"), &uncommented("config/dragline.toml")).resolve().unwrap();
    assert_eq!(all.settings, Settings::default());
    assert_eq!(all.origins().len(), Settings::keys().len());
    for origin in all.origins() {
        let name = origin.key().name();
        match origin.key().default_text().as_str() {
            "not set" => assert!(uncommented("config/dragline.toml").contains(&format!("To set it: {name} = VALUE\n"))),
            _ => assert!(matches!(origin.source(), Source::File { line: Some(_), .. }), "{origin:?}"),
        }
    }
    let without: Vec<&str> = all.origins().iter().filter(|o| o.source() == &Source::Default).map(|o| o.key().name()).collect();
    assert_eq!(without, ["JOB_ID"]);
}

#[test]
fn the_shipped_files_resolve() {
    for name in ["config/demo.toml", "config/production.toml"] {
        let resolved = Layers::new().file(Path::new(name)).resolve();
        assert!(resolved.is_ok(), "{name}: {}", resolved.unwrap_err());
    }
    let text = uncommented("config/production.toml");
    let all = Layers::new().with_file(Path::new("all.toml"), &text).resolve().unwrap().settings;
    assert_eq!((all.leases.len(), all.feeds.len(), all.concurrent_requests), (1, 1, 64));
    assert_eq!(all.apcloudy_url.as_deref(), Some("https://apcloudy.example/api"));
    assert!(all.apcloudy_api_key.is_some() && all.apcloudy_secret_key.is_some() && all.apcloudy_ca_file.is_some());
    assert_eq!(all.job_id, Some(JobId::Number(123)));
}

#[test]
fn keys_are_unique_and_named_like_settings() {
    let names: BTreeSet<&str> = Settings::keys().iter().map(Key::name).collect();
    assert_eq!(names.len(), Settings::keys().len());
    for key in Settings::keys() {
        assert!(key.name().chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{}", key.name());
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
    assert_eq!(settings.frontier_sync_ms, Duration::from_millis(100));
    assert_eq!(settings.retry_http_codes, [500, 502, 503, 504, 522, 524, 408, 429]);
    assert!(settings.retry_exceptions.iter().all(|kind| kind.is_retryable()) && settings.retry_exceptions.len() == 12);
    assert_eq!(settings.referrer_policy, crate::web::referrer_policy::ReferrerPolicy::NoReferrerWhenDowngrade);
    assert_eq!(
        (settings.metarefresh_maxdelay.as_secs(), &*settings.metarefresh_ignore_tags),
        (100, &["noscript".to_owned()][..])
    );
    assert_eq!(settings.user_agent, format!("dragline/{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(settings.default_request_headers.get("accept-language"), Some("en"));
    assert_eq!(settings.spool_max_bytes, 1 << 30);
    assert_eq!((settings.apcloudy_request_records, settings.apcloudy_on_fatal), (RequestRecords::Final, OnFatal::Spool));
    assert_eq!((settings.apcloudy_url, settings.apcloudy_secret_key, settings.job_id), (None, None, None));
    let limits = crate::html::Limits::default();
    assert_eq!((settings.html_engine, settings.html_max_depth), (crate::html::Engine::Dragline, limits.depth));
    assert_eq!((settings.html_max_nodes, settings.html_max_attributes), (limits.nodes, limits.attributes));
    assert_eq!((settings.html_steps_per_byte, limits.steps), (limits.steps_per_byte, 100_000));
    assert_eq!(settings.html_memory_per_byte, limits.memory_per_byte);
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
        ("DEFAULT_REQUEST_HEADERS={\"A\": \"c\", \"a\": \"d\"}", false),
        ("DEFAULT_REQUEST_HEADERS={ X-One = \"c\" }", true),
        ("ALLOWED_DOMAINS=a.example, 127.0.0.1, b\u{e4}r.example", true),
        ("ALLOWED_DOMAINS=https://a.example", false),
        ("ALLOWED_DOMAINS=a.example:80", false),
        ("ALLOWED_DOMAINS=a.example/x", false),
        ("ALLOWED_DOMAINS=*.a.example", false),
        ("ALLOWED_DOMAINS=.a.example", false),
        ("ALLOWED_DOMAINS=a.example,", false),
        ("WINDOW_BYTES=1TiB", true),
        ("FEEDS={\"a.csv\": {\"formt\": \"csv\"}}", false),
        ("LEASES=[{\"domains\": [], \"site\": \"a\", \"client\": \"b\"}]", false),
        ("LEASES=[{\"domains\": [\"a\"], \"site\": \"a\"}]", false),
        ("LEASES=[{\"domains\": [\"a\"], \"site\": \"a\", \"client\": \"b\", \"extra\": 1}]", false),
    ] {
        let resolved = Layers::new().set(pair).resolve();
        assert_eq!(resolved.is_ok(), ok, "{pair}: {resolved:?}");
    }
}

#[test]
fn sizes_with_units_count_bytes() {
    for (text, bytes) in [("1GB", 1_000_000_000), ("64MiB", 64 << 20), ("1.5 MiB", 3 << 19), ("70000", 70_000)] {
        let resolved = Layers::new().set(&format!("WINDOW_BYTES={text}")).resolve().unwrap();
        assert_eq!(resolved.settings.window_bytes, bytes, "{text}");
    }
}

#[test]
fn domains_get_the_form_they_have_in_urls() {
    let layers = Layers::new().set("ALLOWED_DOMAINS=Shop.Example, b\u{e4}r.example");
    let domains = layers.resolve().unwrap().settings.allowed_domains;
    assert_eq!(domains, ["shop.example", "xn--br-via.example"]);
}

#[test]
fn the_window_follows_the_concurrency_unless_it_is_given() {
    let window = |pair: &str| Layers::new().set(pair).resolve().unwrap().settings.window_limit();
    assert_eq!(window("CONCURRENT_REQUESTS=10"), 84);
    assert_eq!(window("WINDOW_REQUESTS=7"), 7);
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
fn a_component_is_switched_off_by_false_or_null() {
    let toml = Layers::new().with_file(Path::new("s.toml"), "ITEM_PIPELINES = { keep = 300, drop = false }");
    let json = Layers::new().with_file(Path::new("s.json"), r#"{"ITEM_PIPELINES": {"keep": 300, "drop": null}}"#);
    let expected = BTreeMap::from([("keep".to_owned(), Some(300)), ("drop".to_owned(), None)]);
    for layers in [toml, json] {
        assert_eq!(layers.resolve().unwrap().settings.item_pipelines, expected);
    }
}

#[test]
fn lease_rules_are_read_in_order() {
    let text = "[[LEASES]]\ndomains = ['shop.example']\nsite = 'shop'\nclient = 'web'\n\
                [[LEASES]]\ndomains = ['b.example', 'c.example']\nsite = 'b'\nclient = 'app'\nendpoint_group = 'g'\nsession_key = 's'\n";
    let leases = Layers::new().with_file(Path::new("s.toml"), text).resolve().unwrap().settings.leases;
    assert_eq!(leases.len(), 2);
    assert_eq!((leases[0].site.as_str(), leases[0].endpoint_group.as_str()), ("shop", ""));
    assert_eq!(leases[1].domains, ["b.example", "c.example"]);
    assert_eq!((leases[1].endpoint_group.as_str(), leases[1].session_key.as_str()), ("g", "s"));
}
