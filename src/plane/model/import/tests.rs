#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::plane::model::identity_type::{IdentityType, Payload, UniqueKey};
use crate::plane::model::proxy_url::ProxyUrl;

fn kind() -> IdentityType {
    IdentityType::read(&json!({
        "name": "web_cookie", "client": "web", "unique_by": ["cookies.sid"],
        "fields": {"cookies": {"type": "cookie_map", "required": true}, "ua": {"type": "string"}, "n": {"type": "number"}, "j": {"type": "json"}},
    }))
    .unwrap()
}

type Known = BTreeMap<UniqueKey, Payload>;

fn run(known: &Known, format: Format, mode: Mode, run: Run, data: &[u8]) -> Result<Imported<IdentityChange>, ImportError> {
    let kind = kind();
    let import = IdentityImport { kind: &kind, type_id: "ity_1", pepper: b"pepper", format, mode, run };
    import_identities(import, data, |key| known.get(key))
}

fn apply(known: &mut Known, imported: Imported<IdentityChange>) {
    for change in imported.changes {
        match change {
            IdentityChange::Create { key, payload, .. } | IdentityChange::Update { key, payload, .. } => {
                known.insert(key, payload);
            }
            IdentityChange::Annotate { .. } => {}
        }
    }
}

fn jsonl(text: &str) -> Imported<IdentityChange> {
    run(&Known::new(), Format::Jsonl, Mode::Upsert, Run::Real, text.as_bytes()).unwrap()
}

fn created(imported: &Imported<IdentityChange>) -> Vec<(Value, &Attributes)> {
    let kind = kind();
    let mut rows = Vec::new();
    for change in &imported.changes {
        let IdentityChange::Create { payload, attributes, .. } = change else { panic!("{change:?}") };
        rows.push((Value::Object(payload.to_map(&kind)), attributes));
    }
    rows
}

fn full() -> Attributes {
    Attributes {
        account: Some("user-1".to_owned()),
        region: Some("US".to_owned()),
        tags: Some(vec!["a".to_owned(), "b".to_owned()]),
        labels: Some([("k".to_owned(), "v".to_owned())].into()),
    }
}

#[test]
fn a_json_line_is_a_payload_with_attributes_or_an_envelope() {
    let flat =
        r#"{"cookies": "sid=1", "ua": "x", "_account": "user-1", "_region": "US", "_tags": "a, b,,a", "_labels": {"k": "v"}}"#;
    let envelope = r#"{"payload": {"cookies": {"sid": "1"}, "ua": "x"}, "account": "user-1", "region": "US", "tags": ["a", "b"], "labels": {"k": "v"}}"#;
    for line in [flat, envelope, &format!("\u{feff}\n\n  {flat}\r\n\n")] {
        let imported = jsonl(line);
        assert_eq!(created(&imported), [(json!({"cookies": {"sid": "1"}, "ua": "x"}), &full())], "{line}");
        assert_eq!(imported.counts, Counts { created: 1, ..Counts::default() });
    }
    let empty = jsonl(r#"{"cookies": "sid=1", "_account": "", "_region": null}"#);
    assert_eq!(created(&empty)[0].1, &Attributes::default());
}

#[test]
fn a_bad_row_is_told_with_its_line_and_stops_nothing() {
    let text = [
        r#"{"cookies": "sid=1"}"#,
        "",
        r#"{"cookies": "sid=canary""#,
        "[1]",
        r#"{"cookies": canary}"#,
        r#"{"payload": {"cookies": "sid=2"}, "tag": []}"#,
        r#"{"payload": {}}"#,
        r#"{"_account": "a"}"#,
        r#"{"payload": "canary"}"#,
        r#"{"ua": "canary"}"#,
        r#"{"cookies": "x=canary"}"#,
        r#"{"cookies": "sid=1", "ua": "canary"}"#,
        r#"{"cookies": "sid=3", "_tags": 5}"#,
        r#"{"cookies": "sid=3", "_labels": {"a": 1}}"#,
        r#"{"cookies": "sid=3", "_account": 5}"#,
        r#"{"cookies": "sid=4"}"#,
    ]
    .join("\n");
    let imported = jsonl(&text);
    assert_eq!(imported.counts.created, 2);
    let failed: Vec<(u64, &str)> = imported.counts.failed.iter().map(|f| (f.line, f.message.as_str())).collect();
    assert_eq!(
        failed,
        [
            (3, "not JSON: the line ends too early; an object has to be on one line"),
            (4, "expected a JSON object"),
            (5, "not JSON: wrong at column 13"),
            (6, "tag: not known beside payload; allowed are payload, account, region, tags, labels"),
            (7, "the payload is empty"),
            (8, "the payload is empty"),
            (9, "payload: expected an object"),
            (10, "cookies: the field is required and missing"),
            (11, "unique_by path \"cookies.sid\" is missing or empty; every identity needs a value there"),
            (12, "the same identity as in line 1; take one out"),
            (13, "tags: expected a list of texts, or a text with commas"),
            (14, "labels: expected texts"),
            (15, "account: expected a text"),
        ]
    );
}

#[test]
fn csv_rows_are_the_same_identities() {
    let text = "cookies,ua,n,j,_account,_region,_tags,_labels\n\
                \"sid=1; b=2\",x,1.50,\"[1,2]\",user-1,US,a;b;a,k=v\n\
                \"{\"\"sid\"\":\"\"2\"\"}\",,,{odd,,,,\n\
                \"sid=3\",\"two\nlines\",,,,,,\n\
                sid=4\n\
                sid=5,,x,,,,,\n";
    for text in [text.to_owned(), format!("\u{feff}{}", text.replace('\n', "\r\n"))] {
        let imported = run(&Known::new(), Format::Csv, Mode::Upsert, Run::Real, text.as_bytes()).unwrap();
        let rows = created(&imported);
        assert_eq!(rows[0], (json!({"cookies": {"sid": "1", "b": "2"}, "ua": "x", "n": 1.5, "j": [1, 2]}), &full()));
        assert_eq!(rows[1], (json!({"cookies": {"sid": "2"}, "j": "{odd"}), &Attributes::default()));
        assert_eq!(rows.len(), 3);
        let failed: Vec<(u64, &str)> = imported.counts.failed.iter().map(|f| (f.line, f.message.as_str())).collect();
        assert_eq!(failed, [(6, "the row has 1 cells; the header has 8"), (7, "n: expected a number")]);
    }
}

#[test]
fn a_csv_header_that_cannot_be_used_is_fatal() {
    for (text, column) in [("", 1), ("a,,b\n", 2), ("a,b,a\n", 3), ("a,_x\n", 2)] {
        match run(&Known::new(), Format::Csv, Mode::Upsert, Run::Real, text.as_bytes()) {
            Err(ImportError::Header { column: found, .. }) => assert_eq!(found, column, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(run(&Known::new(), Format::Lines, Mode::Upsert, Run::Real, b""), Err(ImportError::Format));
}

#[test]
fn modes_decide_what_happens_to_known_identities() {
    let mut known = Known::new();
    let first = b"{\"cookies\": \"sid=1\"}\n{\"cookies\": \"sid=2\"}";
    let dry = run(&known, Format::Jsonl, Mode::Upsert, Run::Dry, first).unwrap();
    assert_eq!((dry.counts.created, dry.changes.len()), (2, 0));
    let real = run(&known, Format::Jsonl, Mode::Upsert, Run::Real, first).unwrap();
    assert_eq!(real.counts, dry.counts);
    apply(&mut known, real);

    let second = b"{\"cookies\": \"sid=1; b=2\"}\n{\"cookies\": \"sid=2\", \"_region\": \"DE\"}\n{\"cookies\": \"sid=3\"}";
    let careful = run(&known, Format::Jsonl, Mode::CreateOnly, Run::Real, second).unwrap();
    assert_eq!((careful.counts.created, careful.counts.updated, careful.counts.unchanged), (1, 0, 2));
    assert_eq!(careful.changes.len(), 1, "nothing known is touched");
    let full = run(&known, Format::Jsonl, Mode::Upsert, Run::Real, second).unwrap();
    assert_eq!((full.counts.created, full.counts.updated, full.counts.unchanged), (1, 1, 1));
    assert!(
        matches!(&full.changes[1], IdentityChange::Annotate { line: 2, attributes, .. } if attributes.region.as_deref() == Some("DE"))
    );
    apply(&mut known, full);
    let again = run(&known, Format::Jsonl, Mode::Upsert, Run::Real, second).unwrap();
    assert_eq!((again.counts.created, again.counts.updated, again.counts.unchanged), (0, 0, 3));
}

#[test]
fn an_import_is_bounded() {
    let rows = |count: usize| "{}\n".repeat(count);
    let imported = jsonl(&rows(50_000));
    assert_eq!(imported.counts.failed.len(), 1001);
    assert_eq!(imported.counts.failed[1000], Failure { line: 0, message: "49000 more rows failed".to_owned() });
    let many = rows(50_001);
    assert_eq!(run(&Known::new(), Format::Jsonl, Mode::Upsert, Run::Real, many.as_bytes()), Err(ImportError::TooManyRows));
    let many = format!("a\n{}", "1\n".repeat(50_001));
    assert_eq!(run(&Known::new(), Format::Csv, Mode::Upsert, Run::Real, many.as_bytes()), Err(ImportError::TooManyRows));
    let large = vec![b'\n'; MAX_BYTES + 1];
    assert_eq!(run(&Known::new(), Format::Jsonl, Mode::Upsert, Run::Real, &large), Err(ImportError::TooLarge(MAX_BYTES + 1)));
    let tags: Vec<String> = (0..65).map(|n| n.to_string()).collect();
    let imported = jsonl(&json!({"cookies": "sid=1", "_tags": tags}).to_string());
    assert!(imported.counts.failed[0].message.starts_with("tags: found more than 64"));
    let labels: BTreeMap<&String, &str> = tags.iter().map(|tag| (tag, "v")).collect();
    let imported = jsonl(&json!({"cookies": "sid=1", "_labels": labels}).to_string());
    assert!(imported.counts.failed[0].message.starts_with("labels: found 65"));
}

#[test]
fn the_result_is_the_contracts() {
    let imported = jsonl("{\"cookies\": \"sid=1\"}\nx");
    assert_eq!(
        serde_json::to_value(imported.counts).unwrap(),
        json!({"created": 1, "updated": 0, "unchanged": 0, "failed": [{"line": 2, "message": "not JSON: wrong at column 1"}]})
    );
}

fn proxies(format: Format, text: &str) -> Imported<ProxyChange> {
    import_proxies(format, Mode::Upsert, Run::Real, text.as_bytes(), |_| None).unwrap()
}

#[test]
fn proxies_come_in_three_forms() {
    let lines = "# office\n\nhttp://u:p@h:1 kind=mobile region=US city=x provider=y tags=a,b max_concurrency=3\nsocks5://h:2\n";
    let json = concat!(
        r#"{"url": "http://u:p@h:1", "kind": "mobile", "region": "US", "city": "x", "provider": "y", "tags": ["a", "b"], "max_concurrency": 3}"#,
        "\n",
        r#"{"url": "socks5://h:2", "session_template": ""}"#
    );
    let csv = "url,kind,region,city,provider,tags,max_concurrency\nhttp://u:p@h:1,mobile,US,x,y,a;b,3\nsocks5://h:2,,,,,,\n";
    let mut first = Proxy::new(ProxyUrl::parse("http://u:p@h:1").unwrap());
    first.kind = "mobile".to_owned();
    first.region = "US".to_owned();
    first.city = "x".to_owned();
    first.provider = "y".to_owned();
    first.tags = vec!["a".to_owned(), "b".to_owned()];
    first.max_concurrency = 3;
    let second = Proxy::new(ProxyUrl::parse("socks5://h:2").unwrap());
    assert_eq!((second.kind.as_str(), second.max_concurrency), ("datacenter", 1));
    for (format, text) in [(Format::Lines, lines), (Format::Jsonl, json), (Format::Csv, csv)] {
        let imported = proxies(format, text);
        assert_eq!(imported.counts, Counts { created: 2, ..Counts::default() }, "{format:?}");
        let found: Vec<&Proxy> = imported
            .changes
            .iter()
            .map(|change| match change {
                ProxyChange::Create { proxy, .. } | ProxyChange::Update { proxy, .. } => proxy,
            })
            .collect();
        assert_eq!(found, [&first, &second], "{format:?}");
    }
}

#[test]
fn a_proxy_row_changes_what_it_names_and_nothing_else() {
    let url = ProxyUrl::parse("http://h:1").unwrap();
    let mut known = Proxy::new(url.clone());
    known.region = "US".to_owned();
    let import = |mode, text: &str| {
        import_proxies(Format::Jsonl, mode, Run::Real, text.as_bytes(), |asked| (*asked == url).then_some(&known)).unwrap()
    };
    let same = import(Mode::Upsert, r#"{"url": "HTTP://H:1"}"#);
    assert_eq!((same.counts.unchanged, same.changes.len()), (1, 0));
    let text = r#"{"url": "http://h:1", "session_template": "{username}-{random}"}"#;
    let changed = import(Mode::Upsert, text);
    let ProxyChange::Update { proxy, .. } = &changed.changes[0] else { panic!("{changed:?}") };
    assert_eq!((proxy.region.as_str(), proxy.session_template.as_ref().unwrap().text()), ("US", "{username}-{random}"));
    assert_eq!(import(Mode::CreateOnly, text).counts.unchanged, 1);
}

#[test]
fn a_bad_proxy_is_told_without_its_url() {
    for (format, text, expected) in [
        (Format::Lines, "http://u:canary@h", "url: the proxy URL needs a port from 1 to 65535 behind the host"),
        (Format::Lines, "http://h:1 canary", "word 2 is no key=value"),
        (Format::Lines, "http://h:1 knd=x", "knd: not known; did you mean kind?"),
        (Format::Lines, "http://h:1 session_template=canary", "session_template: not in this format; use jsonl or csv"),
        (Format::Lines, "http://h:1 kind=a kind=b", "word 3: its key is there twice; take one out"),
        (
            Format::Lines,
            "http://h:1 kind=Canary",
            "kind: allowed are datacenter, residential, mobile, tunnel or another name of a-z, 0-9, _ and -",
        ),
        (Format::Lines, "http://h:1 max_concurrency=0", "max_concurrency: expected a whole number from 1 to 100000"),
        (
            Format::Jsonl,
            r#"{"url": "http://h:1", "max_concurrency": 100001}"#,
            "max_concurrency: expected a whole number from 1 to 100000",
        ),
        (
            Format::Jsonl,
            r#"{"url": "http://h:1", "max_concurrency": 1.5}"#,
            "max_concurrency: expected a whole number from 1 to 100000",
        ),
        (Format::Jsonl, r#"{"kind": "mobile"}"#, "url: it is required and missing"),
        (Format::Jsonl, r#"{"url": 5}"#, "url: expected a text"),
        (Format::Jsonl, r#"{"url": "http://h:1", "region": 5}"#, "region: expected a text"),
        (
            Format::Jsonl,
            r#"{"url": "http://h:1", "session_template": "{x}"}"#,
            "session_template: the session template has an unknown placeholder; allowed are username, password, identity_id, identity_hash, lease_id and random",
        ),
    ] {
        let imported = proxies(format, text);
        assert_eq!(imported.counts.failed.first().map(|failure| failure.message.as_str()), Some(expected), "{text}");
        assert_eq!(imported.counts.created, 0);
    }
    let twice = proxies(Format::Lines, "http://h:1\nhttp://H:1 kind=mobile");
    assert_eq!(twice.counts.failed, [Failure { line: 2, message: "the same proxy as in line 1; take one out".to_owned() }]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_and_every_row_is_counted(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "(\\{\"cookies\": ?\"sid=[a-c]\"(, ?\"_tags\": ?\"[a,]*\")?\\}|http://[a-c]:[1-9]( kind=[a-c])?|[a-z,\"{}:]{0,9}|cookies,ua|url)(\n(\\{\"url\": ?\"http://[a-c]:1\"\\}|\\{\"cookies\": ?\"sid=[a-c]\"\\}|[a-z,\"]{0,9}|http://[a-c]:[1-9]))*".prop_map(String::into_bytes),
        ],
        format in prop::sample::select(vec![Format::Lines, Format::Jsonl, Format::Csv]),
    ) {
        // What is not UTF-8 is a row with an error; blank is what Unicode calls so.
        let is_blank = |line: &&[u8]| std::str::from_utf8(line).is_ok_and(|line| line.trim().is_empty());
        let rows = bytes.split(|byte| *byte == b'\n').filter(|line| !is_blank(line)).count();
        if let Ok(imported) = run(&Known::new(), format, Mode::Upsert, Run::Real, &bytes) {
            let counts = &imported.counts;
            prop_assert_eq!(imported.changes.len(), counts.created as usize);
            if format == Format::Jsonl && !bytes.starts_with(b"\xef\xbb\xbf") {
                prop_assert_eq!(counts.created as usize + counts.failed.len(), rows);
            }
        }
        if let Ok(imported) = import_proxies(format, Mode::Upsert, Run::Real, &bytes, |_| None) {
            prop_assert_eq!(imported.changes.len(), imported.counts.created as usize);
        }
    }
}
