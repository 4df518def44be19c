//! No text makes the reading panic.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::super::{Part, parse};
use super::read_beside;

const EXAMPLE: &str = include_str!("../../../../config/identities.toml");

const WORDS: [&str; 44] = [
    "namespace",
    "pepper",
    "tokens",
    "sites",
    "proxies",
    "proxy_files",
    "policies",
    "config",
    "secrets",
    "name",
    "token",
    "scopes",
    "clients",
    "groups",
    "identity_types",
    "identities",
    "import",
    "accounts",
    "paused",
    "rotation",
    "proxy",
    "signal",
    "action",
    "breaker",
    "cooldown_429",
    "rules",
    "kind",
    "pattern",
    "prefix",
    "regex",
    "fields",
    "type",
    "payload",
    "cookies",
    "headers",
    "query",
    "json",
    "url",
    "file",
    "content",
    "key",
    "group",
    "bind",
    "site",
];

/// Values that mean something somewhere.
const TEXTS: [&str; 16] = [
    "shop",
    "web",
    "a",
    "plain",
    "string",
    "http://u:p@h:1",
    "/x",
    "/{a}",
    "(",
    "1s",
    "permanent",
    "{{ a }}",
    "a=1; b",
    "${secret:a}",
    "x.jsonl",
    "",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        proptest::sample::select(&TEXTS[..]).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-3_i64..100).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::vec((proptest::sample::select(&WORDS[..]), inner), 0..6).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

fn read_all(text: &str, name: &str) {
    let read = |_: &Path| Ok(b"{\"a\":1}\nx\n".to_vec());
    for part in [Part::Whole, Part::Under("plane")] {
        if let Err(error) = parse(text, Path::new(name), part, &read) {
            assert!(error.to_string().len() < 20_000);
        }
    }
}

#[test]
fn depth_is_bounded() {
    for text in [
        format!("{}a = 1\n", "a.".repeat(50_000)),
        format!("[{}a]\n", "a.".repeat(50_000)),
        format!("a = {}{}\n", "[".repeat(50_000), "]".repeat(50_000)),
        format!("a = {}{}\n", "{ a = ".repeat(50_000), "}".repeat(50_000)),
    ] {
        assert!(read_beside(&text, &[]).is_err());
    }
    let error = parse(&"[".repeat(50_000), Path::new("x.json"), Part::Whole, &|_| Ok(Vec::new())).unwrap_err().to_string();
    assert!(error.starts_with("x.json:1: not valid JSON"), "{error}");
}

#[test]
fn many_users_of_one_gateway_are_read_in_no_time() {
    let lines: String = (0..20_000).map(|user| format!("http://u{user}:p@gateway.example:8080\n")).collect();
    let seed = read_beside("proxy_files = \"many.txt\"\n", &[("many.txt", &lines)]).unwrap();
    let last = seed.proxies.last().unwrap();
    assert_eq!((seed.proxies.len(), &*last.id), (20_000, "http://gateway.example:8080#20000"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        read_all(&text, "x.toml");
        read_all(&text, "x.json");
    }

    #[test]
    fn any_document_is_read_or_refused(value in value()) {
        let document = match value {
            Value::Object(map) => Value::Object(map),
            other => serde_json::json!({ "sites": [other] }),
        };
        read_all(&document.to_string(), "x.json");
        read_all(&toml::to_string(&document).unwrap_or_default(), "x.toml");
        let below = serde_json::json!({ "sites": [{ "name": "shop", "identities": [document] }] });
        read_all(&below.to_string(), "x.json");
    }

    #[test]
    fn a_broken_example_is_read_or_refused(at in 0..EXAMPLE.len(), length in 0_usize..40, put in "[\\[\\]{}=\"'\n a-z0-9.#]{0,6}") {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        bytes.splice(at..(at + length).min(EXAMPLE.len()), put.into_bytes());
        let _ = read_beside(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn an_error_is_within_the_file(at in 0..EXAMPLE.len()) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        bytes.insert(at, b'=');
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(error) = read_beside(&text, &[]) {
            let line = error.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
            prop_assert!(line.is_some_and(|line| (1..=text.lines().count() + 1).contains(&line)), "{error}");
        }
    }
}
