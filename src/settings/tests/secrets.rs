//! References to secrets through all layers: which are read, what they become, and that nothing shows them.

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde_json::json;

use super::super::*;
use super::errors;

fn secrets(pairs: &[(&str, &str)]) -> BTreeMap<String, SecretString> {
    pairs.iter().map(|(path, value)| ((*path).to_owned(), SecretString::from(*value))).collect()
}

#[test]
fn only_the_values_that_win_are_read() {
    let layers = Layers::new()
        .with_file(Path::new("s.toml"), "USER_AGENT = '${secret:file}'\nBOT_NAME = 'a ${secret:one} ${secret:two} ${secret:one}'")
        .spider([("DEFAULT_REQUEST_HEADERS", json!({"X-Key": "${secret:deep/one}", "Accept": "text/html"}))])
        .env(Environment::of([("DRAGLINE_USER_AGENT", "${secret:env}")]))
        .set("LOG_FILE=plain");
    let found: Vec<(&str, String, String)> =
        layers.secret_references().into_iter().map(|r| (r.key, r.path, r.source.to_string())).collect();
    let file = |path: &str| ("BOT_NAME", path.to_owned(), "s.toml, line 2".to_owned());
    assert_eq!(
        found,
        [
            file("one"),
            file("two"),
            ("USER_AGENT", "env".to_owned(), "environment variable DRAGLINE_USER_AGENT".to_owned()),
            ("DEFAULT_REQUEST_HEADERS", "deep/one".to_owned(), "spider".to_owned()),
        ]
    );
}

#[test]
fn a_secret_becomes_what_its_setting_is() {
    let layers = Layers::new()
        .with_file(Path::new("s.toml"), "CONCURRENT_REQUESTS = '${secret:n}'\nALLOWED_DOMAINS = ['a.example', '${secret:host}']")
        .set("DEFAULT_REQUEST_HEADERS={\"Authorization\": \"Bearer ${secret:token}\"}")
        .set("RETRY_HTTP_CODES=${secret:codes}");
    let with = layers.with_secrets(&secrets(&[("n", "12"), ("host", "b.example"), ("token", "t\"1"), ("codes", "500, 503")]));
    let settings = with.resolve().unwrap().settings;
    assert_eq!(settings.concurrent_requests, 12);
    assert_eq!(settings.allowed_domains, ["a.example", "b.example"]);
    assert_eq!(settings.default_request_headers.get("authorization"), Some("Bearer t\"1"));
    assert_eq!(settings.retry_http_codes, [500, 503]);
    assert_eq!(settings.from_secrets, ["DEFAULT_REQUEST_HEADERS", "ALLOWED_DOMAINS", "CONCURRENT_REQUESTS", "RETRY_HTTP_CODES"]);
}

#[test]
fn a_secret_nobody_has_read_is_an_error_that_names_setting_and_path() {
    let layers = Layers::new().set("USER_AGENT=${secret:a/one}").set("BOT_NAME=${secret:b}");
    let shown: Vec<String> = errors(layers.with_secrets(&secrets(&[("b", "x")]))).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "setting USER_AGENT (-s): the secret a/one was not read; secrets are read once, when a crawl starts: start it again, or give \
          the value itself"
        ]
    );
}

#[test]
fn nothing_shows_a_secret_or_what_was_made_of_it() {
    let pairs = [("k", "canary-1"), ("n", "424242"), ("bad", "canary-2")];
    let layers = Layers::new()
        .set("APCLOUDY_URL=https://a.example")
        .set("APCLOUDY_API_KEY=${secret:k}")
        .set("APCLOUDY_SECRET_KEY=x${secret:k}")
        .set("USER_AGENT=bot ${secret:k}")
        .set("RETRY_TIMES=${secret:n}")
        .with_secrets(&secrets(&pairs));
    let wrong = errors(layers.clone());
    assert!(
        wrong[0].to_string().starts_with("setting RETRY_TIMES (-s): found another value once its secrets are in place"),
        "{wrong:?}"
    );
    let unfit = Layers::new().set("RETRY_BACKOFF=${secret:n}").with_secrets(&secrets(&[("n", "4242")])).resolve().unwrap_err();
    let layers = layers.set("RETRY_TIMES=${secret:m}").with_secrets(&secrets(&[("m", "424")]));
    let resolved = layers.resolve().unwrap();
    assert_eq!((resolved.settings.user_agent.as_str(), resolved.settings.retry_times), ("bot canary-1", 424));
    let shown =
        format!("{layers:?} {resolved:?} {:#?} {resolved} {} {wrong:?} {unfit} {unfit:?}", resolved.settings, resolved.to_json());
    assert!(!shown.contains("canary") && !shown.contains("424"), "{shown}");
    assert_eq!(resolved.origin("APCLOUDY_API_KEY").unwrap().value_text(), "\"${secret:k}\"");
    assert_eq!(resolved.origin("APCLOUDY_SECRET_KEY").unwrap().value_text(), "\"[redacted]\"");
    assert_eq!(resolved.origin("USER_AGENT").unwrap().value_text(), "\"bot ${secret:k}\"");
}

#[test]
fn what_is_needed_to_reach_the_plane_cannot_come_from_it() {
    for key in ["SPINNERET_URL", "SPINNERET_TOKEN", "SPINNERET_MAX_RETRIES", "IDENTITIES", "CONFIG_WATCH", "JOB_ID"] {
        let found = errors(Layers::new().set(&format!("{key}=${{secret:a}}")));
        assert_eq!(
            found[0].to_string(),
            format!(
                "setting {key} (-s): found a reference to a secret; allowed: none here, as the setting is needed to reach the control \
                 plane that keeps secrets; give the value itself, best in the environment"
            )
        );
    }
}

#[test]
fn a_reference_that_is_none_is_an_error_at_once_and_not_shown() {
    for pair in ["USER_AGENT=${secret:Canary}", "USER_AGENT=a ${secret:canary", "FEEDS={\"${secret:canary}\": {}}"] {
        let found = errors(Layers::new().set(pair));
        let shown = found[0].to_string();
        assert!(shown.contains("found a reference to a secret that is none (not shown); allowed: ${secret:path}"), "{shown}");
        assert!(!shown.to_lowercase().contains("canary"), "{shown}");
    }
}

#[test]
fn without_secrets_everything_else_is_known_and_checked() {
    let layers = Layers::new()
        .set("APCLOUDY_URL=https://a.example")
        .set("APCLOUDY_API_KEY=${secret:k}")
        .set("APCLOUDY_SECRET_KEY=${secret:s}")
        .set("RETRY_BACKOFF_MAX=${secret:m}")
        .set("RETRY_BACKOFF=500")
        .set("DOWNLOAD_DELAY=3");
    let resolved = layers.resolve_without_secrets().unwrap();
    assert_eq!(resolved.settings.download_delay.as_secs(), 3);
    assert_eq!(resolved.settings.apcloudy_api_key, None);
    assert_eq!(resolved.origin("APCLOUDY_API_KEY").unwrap().value_text(), "\"${secret:k}\"");
    assert!(layers.clone().set("APCLOUDY_SECRET_KEY=").resolve_without_secrets().is_err(), "half a backend is still half");
    assert!(layers.set("GRACE=25").resolve_without_secrets().is_err());
}

#[test]
fn watched_config_has_no_references() {
    let layers = Layers::new().watched([("USER_AGENT", json!("${secret:a}"))]);
    assert!(layers.secret_references().is_empty());
    assert_eq!(layers.resolve().unwrap().settings.user_agent, "${secret:a}");
}
