#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const WEB: &str = r#"
name: web_cookie
site: bookshop
client: web
description: Sessions of readers
fields:
  cookies: { type: cookie_map, required: true, sensitive: true }
  user_agent: { type: string }
  signature: { type: string, sensitive: true }
unique_by: [cookies.sessionid]
deliver:
  cookies: "{{ cookies }}"
  cookie_header: "{{ cookies }}"
  headers:
    User-Agent: "{{ user_agent }}"
  values:
    signature: "{{ signature }}"
"#;

fn every_kind() -> IdentityType {
    IdentityType::read(&json!({
        "name": "all", "client": "web",
        "fields": {
            "s": {"type": "string"}, "n": {"type": "number", "sensitive": true}, "b": {"type": "bool"},
            "c": {"type": "cookie_map"}, "j": {"type": "json", "sensitive": true}, "r": {"type": "secret_ref"},
        },
        "unique_by": ["s", "n"],
    }))
    .unwrap()
}

fn payload(kind: &IdentityType, values: &Value) -> Result<Payload, PayloadError> {
    Payload::new(kind, values.as_object().cloned().unwrap(), Source::Json)
}

#[test]
fn a_type_is_read_from_yaml() {
    let kind = IdentityType::from_yaml(WEB).unwrap();
    assert_eq!((&*kind.name, &*kind.site, &*kind.client), ("web_cookie", "bookshop", "web"));
    assert_eq!(kind.activation, Activation::Probe);
    let fields: Vec<_> = kind.fields.iter().map(|f| (&*f.name, f.kind, f.required, f.sensitive)).collect();
    assert_eq!(
        fields,
        [
            ("cookies", FieldKind::CookieMap, true, true),
            ("user_agent", FieldKind::Text, false, false),
            ("signature", FieldKind::Text, false, true),
        ]
    );
    assert_eq!(kind.unique_by.iter().map(FieldPath::text).collect::<Vec<_>>(), ["cookies.sessionid"]);
    assert!(!kind.delivers_secrets());
}

#[test]
fn the_default_of_unique_by_is_the_required_fields_sorted() {
    let kind = IdentityType::read(&json!({
        "name": "a", "client": "web", "activation": "immediate",
        "fields": {"z": {"type": "string", "required": true}, "y": {"type": "string"}, "a": {"type": "number", "required": true}},
    }))
    .unwrap();
    assert_eq!(kind.unique_by.iter().map(FieldPath::text).collect::<Vec<_>>(), ["a", "z"]);
    assert_eq!(kind.activation, Activation::Immediate);
}

#[test]
fn what_is_wrong_with_a_type_names_the_key() {
    let base = json!({"name": "t", "client": "web", "fields": {"s": {"type": "string", "required": true}, "c": {"type": "cookie_map"}, "j": {"type": "json"}}});
    for (pointer, value, expected) in [
        ("/name", json!("T"), "identity type T: name: allowed: 1 to 64"),
        ("/client", json!("We b"), "t: client: client name"),
        ("/client", json!(null), "t: client: the key is required"),
        ("/site", json!("Shop"), "t: site: site name"),
        ("/activation", json!("later"), "t: activation: allowed are probe and immediate"),
        ("/activaton", json!("probe"), "t: activaton: the key is not known; did you mean activation?"),
        ("/description", json!("d".repeat(2049)), "t: description: found 2049 bytes"),
        ("/fields", json!({}), "t: fields: found 0 fields"),
        ("/fields", json!([]), "t: fields: expected a table"),
        ("/fields/s/type", json!("text"), "t: fields.s.type: allowed are string, number, bool, cookie_map, json, secret_ref"),
        ("/fields/s/required", json!("yes"), "t: fields.s.required: expected true or false"),
        ("/fields/s/requird", json!(true), "t: fields.s.requird: the key is not known; did you mean required?"),
        ("/fields/1a", json!({"type": "string"}), "t: fields.1a: allowed: 1 to 64 letters"),
        ("/fields/_tags", json!({"type": "string"}), "t: fields._tags: an import gives this name another meaning"),
        ("/fields/payload", json!({"type": "string"}), "t: fields.payload: an import"),
        ("/unique_by", json!("s"), "t: unique_by: expected a list"),
        ("/unique_by", json!(["x"]), "t: unique_by: the type has no field \"x\""),
        ("/unique_by", json!(["s.a"]), "t: unique_by: field s is a string and has no keys below it"),
        ("/unique_by", json!(["j.a..b"]), "t: unique_by: a key between two dots is empty"),
        ("/unique_by", json!(["s", "s"]), "t: unique_by: path \"s\" is there twice"),
        ("/unique_by", json!(vec!["s"; 17]), "t: unique_by: found 17 paths"),
        ("/deliver", json!([]), "t: deliver: expected a table"),
        ("/deliver", json!({"header": {}}), "t: deliver.header: there is no such segment; did you mean headers?"),
        ("/deliver", json!({"headers": {"A": "{{ x }}"}}), "t: deliver.headers.A: the type has no field \"x\""),
        ("/deliver", json!({"headers": {"A": 1}}), "t: deliver.headers.A: expected a text"),
        ("/deliver", json!({"headers": {"A b": "x"}}), "t: deliver.headers.A b: not a header name"),
        ("/deliver", json!({"headers": {"A": "x\ny"}}), "t: deliver.headers.A: a header has no control characters"),
        ("/deliver", json!({"headers": {"A": "x", "a": "y"}}), "t: deliver.headers.a: the header is there twice"),
        ("/deliver", json!({"cookie_header": "a\r"}), "t: deliver.cookie_header: a header has no control"),
        ("/deliver", json!({"cookies": "{{ s }}"}), "t: deliver.cookies: a text here is one placeholder of a whole cookie_map"),
        ("/deliver", json!({"cookies": "a={{ c }}"}), "t: deliver.cookies: a text here is one placeholder"),
        ("/deliver", json!({"cookies": {"a": "{{ c }}"}}), "t: deliver.cookies.a: a whole cookie map is no value"),
        ("/deliver", json!({"cookies": {"a;": "x"}}), "t: deliver.cookies.a;: the name of a cookie"),
        ("/deliver", json!({"cookies": {"a": "x;"}}), "t: deliver.cookies.a: the value of a cookie"),
        ("/deliver", json!({"query": {"": "x"}}), "t: deliver.query: found an empty name"),
        ("/deliver", json!({"values": {"a": {"b": "{{ s }}"}}}), "t: deliver.values.a: expected a text"),
        ("/deliver", json!({"json": {"a": [{"b": "{{ s"}]}}), "t: deliver.json.a.b: found {{ without }}"),
        ("/deliver", json!({"query": {"a": "s }}"}}), "t: deliver.query.a: found }} without {{"),
        ("/deliver", json!({"query": {"a": "{{ s | upper }}"}}), "t: deliver.query.a: a placeholder holds the name"),
        ("/deliver", json!({"query": {"a": "{{ }}"}}), "t: deliver.query.a: a placeholder holds the name"),
        ("/deliver", json!({"query": {"a": "x".repeat(8193)}}), "t: deliver.query.a: the template has 8193 bytes"),
        ("/deliver", json!({"json": vec![1; 257]}), "t: deliver.json: found more than 256 entries"),
    ] {
        let mut written = base.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        written.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
        let error = IdentityType::read(&written).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
    for (text, expected) in [
        ("", "line 1: the text is empty"),
        ("[a", "not valid YAML"),
        ("a: 1\na: 2", "line 2: key \"a\" is there twice"),
        ("a: &x 1\nb: *x", "line 2: found an alias"),
        ("a: 1\n---\nb: 2", "found a second document"),
        ("- 1", "expected a table"),
    ] {
        let error = IdentityType::from_yaml(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
    assert!(IdentityType::from_yaml(&"[".repeat(70)).unwrap_err().to_string().contains("levels of nesting"));
}

#[test]
fn a_payload_is_checked_and_brought_into_one_form() {
    let kind = every_kind();
    let given = json!({"s": "", "n": "1.5e3", "b": "T", "c": "b=2; a=1", "j": [1, null], "r": "shop/api.key"});
    let stored = payload(&kind, &given).unwrap();
    let expected = json!({"s": "", "n": 1500, "b": true, "c": {"a": "1", "b": "2"}, "j": [1, null], "r": "shop/api.key"});
    assert_eq!(Value::Object(stored.to_map(&kind)), expected);
    assert_eq!(payload(&kind, &expected).unwrap(), stored, "what is stored reads back");
    assert_eq!(stored.secrets().collect::<Vec<_>>(), [(5, "shop/api.key")]);
    let none = payload(&kind, &json!({"s": null})).unwrap();
    assert!((0..6).all(|field| none.get(field).is_none()), "null is absent");
    for (number, expected) in
        [(json!(12), "12"), (json!("12.0"), "12"), (json!(0.1), "0.1"), (json!(1e300), "1e300"), (json!(-0.0), "0")]
    {
        let stored = payload(&kind, &json!({"n": number})).unwrap();
        let Some(FieldValue::Number(number)) = stored.get(1) else { panic!("{number}") };
        assert_eq!(number_text(number).replace("e+", "e"), expected);
    }
}

#[test]
fn what_is_wrong_with_a_payload_is_said_at_once_and_without_values() {
    let kind = IdentityType::from_yaml(WEB).unwrap();
    let error = payload(&kind, &json!({"user_agent": 5, "signatur": "canary"})).unwrap_err().to_string();
    assert_eq!(
        error,
        "cookies: the field is required and missing; user_agent: expected a text; quote it; \
         signatur: identity type web_cookie has no such field; did you mean signature?"
    );
    let kind = every_kind();
    for (field, value) in [
        ("s", json!(["canary"])),
        ("n", json!("canary")),
        ("n", json!("inf")),
        ("n", json!(true)),
        ("b", json!("canary")),
        ("b", json!(1)),
        ("c", json!("canary")),
        ("r", json!("Canary")),
        ("r", json!("/canary")),
        ("r", json!("")),
        ("r", json!("c".repeat(257))),
    ] {
        let error = payload(&kind, &json!({ field: value })).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field}: ")) && !error.to_lowercase().contains("canary"), "{error}");
    }
    let many: Map<String, Value> = (0..20).map(|n| (format!("x{n:02}"), json!(1))).collect();
    let error = Payload::new(&kind, many, Source::Json).unwrap_err().to_string();
    assert!(error.ends_with("; and 12 more"), "{error}");
}

#[test]
fn equal_values_are_one_identity_and_the_key_needs_all_of_them() {
    let kind = every_kind();
    let key = |values: Value| UniqueKey::new(b"pepper", "ity_1", &kind, &payload(&kind, &values).unwrap());
    let one = key(json!({"s": "a", "n": 123})).unwrap();
    assert_eq!(key(json!({"s": "a", "n": "123", "b": true})).unwrap(), one);
    assert_ne!(key(json!({"s": "a", "n": 124})).unwrap(), one);
    let stored = payload(&kind, &json!({"s": "a", "n": 123})).unwrap();
    assert_ne!(UniqueKey::new(b"salt", "ity_1", &kind, &stored).unwrap(), one);
    assert_ne!(UniqueKey::new(b"pepper", "ity_2", &kind, &stored).unwrap(), one);
    assert_eq!(
        key(json!({"s": "", "n": 1})).unwrap_err().to_string(),
        "unique_by path \"s\" is missing or empty; every identity needs a value there"
    );
    // Computed apart: HMAC-SHA256("pepper", "ity_1" + `["a",123]`).
    let hex: String = one.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "33c7dfcee3a132d9c987ab0ff3370ff0721df63d3222c87dbfa1076510ac5523");
}

#[test]
fn canonical_json_has_sorted_keys_and_one_spelling_of_numbers() {
    let mut text = String::new();
    unique::write_canonical(&json!({"b": [1.0, 2.5, null, true], "a": {"y": "\"é\n", "x": {}}}), &mut text);
    assert_eq!(text, r#"{"a":{"x":{},"y":"\"é\n"},"b":[1,2.5,null,true]}"#);
}

#[test]
fn debug_texts_show_no_values() {
    let kind = every_kind();
    let stored = payload(&kind, &json!({"s": "canary", "n": 1, "c": "canary=canary", "j": "canary", "r": "canary"})).unwrap();
    assert!(!format!("{stored:?} {:?} {:?}", stored.get(0), stored.get(4)).contains("canary"));
}

#[test]
fn a_path_below_json_goes_through_tables_and_lists() {
    let kind = every_kind();
    let stored = payload(&kind, &json!({"j": {"a": [{"b": 7}, null]}, "c": {"x.y": "1"}})).unwrap();
    let find = |path: &str| FieldPath::parse(path, &kind.fields).unwrap().find(&stored).to_value();
    for (path, expected) in [
        ("j.a.0.b", json!(7)),
        ("j.a.1", json!(null)),
        ("j.a.2", json!(null)),
        ("j.a.x", json!(null)),
        ("j.a.-1", json!(null)),
        ("c.x.y", json!("1")),
        ("c.x", json!(null)),
        ("s", json!(null)),
    ] {
        assert_eq!(find(path), expected, "{path}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}|[a-z{}. ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z._]{0,8}|fields|name|deliver|json", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_type_is_read_or_refused(text in "\\PC{0,60}|[a-z:{}\\[\\]\n -]{0,60}", written in any_json(), deliver in any_json()) {
        let _ = IdentityType::from_yaml(&text);
        let _ = IdentityType::read(&written);
        let _ = IdentityType::read(&json!({"name": "t", "client": "web", "fields": {"a": {"type": "json", "required": true}}, "deliver": deliver}));
    }

    #[test]
    fn any_payload_is_refused_or_reads_itself_back(values in prop::collection::vec(("[snbcjr]", any_json()), 0..6)) {
        let kind = every_kind();
        let values: Map<String, Value> = values.into_iter().collect();
        if let Ok(stored) = Payload::new(&kind, values, Source::Json) {
            prop_assert_eq!(&Payload::new(&kind, stored.to_map(&kind), Source::Json).unwrap(), &stored);
            let _ = UniqueKey::new(b"", "", &kind, &stored);
        }
    }
}
