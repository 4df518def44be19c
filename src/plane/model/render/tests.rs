#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::plane::model::identity_type::Source;

fn kind(deliver: &Value) -> IdentityType {
    IdentityType::read(&json!({
        "name": "device", "client": "app",
        "fields": {
            "id": {"type": "string", "required": true}, "n": {"type": "number"}, "b": {"type": "bool"},
            "c": {"type": "cookie_map"}, "j": {"type": "json"}, "key": {"type": "secret_ref"},
        },
        "deliver": deliver,
    }))
    .unwrap()
}

fn payload(kind: &IdentityType, values: &Value) -> Payload {
    Payload::new(kind, values.as_object().cloned().unwrap(), Source::Json).unwrap()
}

fn rendered(deliver: &Value, values: &Value) -> Result<Value, RenderError> {
    let kind = kind(deliver);
    let credential = render(&kind, &payload(&kind, values), &mut |path| match path {
        "shop/key" => Ok("plain".to_owned()),
        "shop/line" => Ok("canary\r\nX: y".to_owned()),
        _ => Err("there is no such secret"),
    })?;
    Ok(serde_json::to_value(credential).unwrap())
}

/// A credential with these segments, all others empty.
fn credential(segments: &Value) -> Value {
    let mut whole = json!({"cookies": {}, "cookie_header": "", "headers": {}, "query": {}, "json": null, "values": {}});
    for (segment, value) in segments.as_object().unwrap() {
        whole[segment] = value.clone();
    }
    whole
}

#[test]
fn every_segment_is_rendered() {
    let values = json!({"id": "d1", "n": 12, "b": true, "c": "b=2; a=1", "j": {"x": [1, "two"]}, "key": "shop/key"});
    for (deliver, expected) in [
        (json!({}), json!({})),
        (json!({"cookies": "{{ c }}"}), json!({"cookies": {"a": "1", "b": "2"}})),
        (
            json!({"cookies": {"sid": "{{ c.a }}", "v": "n{{ n }}", "k": "{{ key }}"}}),
            json!({"cookies": {"sid": "1", "v": "n12", "k": "plain"}}),
        ),
        (json!({"cookie_header": "{{ c }}"}), json!({"cookie_header": "a=1; b=2"})),
        (json!({"cookie_header": "x={{id}};{{\tc.b }}"}), json!({"cookie_header": "x=d1;2"})),
        (
            json!({"headers": {"Authorization": "Bearer {{ key }}", "X-Fixed": "1"}}),
            json!({"headers": {"Authorization": "Bearer plain", "X-Fixed": "1"}}),
        ),
        (
            json!({"query": {"n": "{{ n }}", "b": "{{ b }}", "j": "{{ j.x }}"}}),
            json!({"query": {"n": "12", "b": "true", "j": "[1,\"two\"]"}}),
        ),
        (json!({"json": "{{ j }}"}), json!({"json": {"x": [1, "two"]}})),
        (
            json!({"json": {"n": "{{ n }}", "t": "n={{ n }}", "c": "{{ c }}", "l": ["{{ b }}", 5, null, "{{ key }}"]}}),
            json!({"json": {"n": 12, "t": "n=12", "c": {"a": "1", "b": "2"}, "l": [true, 5, null, "plain"]}}),
        ),
        (
            json!({"values": {"n": "{{ n }}", "t": "{{ n }}!", "x": "{{ j.x.1 }}", "c": "{{ c }}"}}),
            json!({"values": {"n": 12, "t": "12!", "x": "two", "c": {"a": "1", "b": "2"}}}),
        ),
    ] {
        assert_eq!(rendered(&deliver, &values).unwrap(), credential(&expected), "{deliver}");
    }
}

#[test]
fn what_is_missing_is_left_out_empty_or_null() {
    let values = json!({"id": "d1", "j": {"e": "", "z": null}});
    for (deliver, expected) in [
        (json!({"cookies": "{{ c }}", "cookie_header": "{{ c }}"}), json!({})),
        (json!({"cookies": {"a": "{{ c.a }}"}, "headers": {"A": "{{ n }}"}, "query": {"a": "{{ b }}"}}), json!({})),
        (json!({"cookie_header": "a={{ c.a }}"}), json!({"cookie_header": "a="})),
        (json!({"headers": {"A": "{{ id }}{{ n }}"}}), json!({"headers": {"A": "d1"}})),
        (json!({"json": "{{ n }}"}), json!({})),
        (
            json!({"json": {"n": "{{ n }}", "t": "-{{ n }}-", "z": "{{ j.z }}"}}),
            json!({"json": {"n": null, "t": "--", "z": null}}),
        ),
        (json!({"values": {"n": "{{ n }}", "e": "{{ j.e }}", "z": "{{ j.z }}", "k": "{{ key }}"}}), json!({})),
    ] {
        assert_eq!(rendered(&deliver, &values).unwrap(), credential(&expected), "{deliver}");
    }
}

#[test]
fn b147_a_rendering_failure_names_type_and_field_and_no_value() {
    for (deliver, values, expected) in [
        (
            json!({"headers": {"A": "{{ key }}"}}),
            json!({"id": "canary", "key": "shop/canary"}),
            "identity type device, field key: its secret cannot be read: there is no such secret",
        ),
        (
            json!({"headers": {"A": "{{ key }}"}}),
            json!({"id": "canary", "key": "shop/line"}),
            "identity type device, field key: headers.A cannot take its value: a header has no control characters",
        ),
        (
            json!({"cookies": {"a": "{{ id }}"}}),
            json!({"id": "canary;"}),
            "identity type device, field id: cookies.a cannot take its value: the value of a cookie has no semicolon, no control character and at most 16 KiB",
        ),
        (
            json!({"cookie_header": "a={{ id }}"}),
            json!({"id": "canary\n"}),
            "identity type device, field id: cookie_header cannot take its value: a header has no control characters",
        ),
    ] {
        assert_eq!(rendered(&deliver, &values).unwrap_err().to_string(), expected);
    }
    // A payload that was stored before the type required the field.
    let old =
        IdentityType::read(&json!({"name": "device", "client": "app", "fields": {"a": {"type": "string"}}, "unique_by": ["a"]}));
    let old = payload(&old.unwrap(), &json!({}));
    let error = render(&kind(&json!({})), &old, &mut |_| Err("none")).unwrap_err();
    assert_eq!(error.to_string(), "identity type device, field id: it is required and missing; import the identity again");
}

#[test]
fn a_secret_is_asked_for_once_and_only_if_it_is_delivered() {
    let ask = |deliver: Value| {
        let kind = kind(&deliver);
        let stored = payload(&kind, &json!({"id": "a", "key": "shop/key"}));
        let mut asked = 0;
        render(&kind, &stored, &mut |_| {
            asked += 1;
            Ok("plain".to_owned())
        })
        .unwrap();
        (kind.delivers_secrets(), asked)
    };
    assert_eq!(ask(json!({"headers": {"A": "{{ key }}", "B": "x{{ key }}"}, "json": ["{{ key }}"]})), (true, 1));
    assert_eq!(ask(json!({"headers": {"A": "{{ id }}"}})), (false, 0));
}

#[test]
fn the_debug_text_of_a_credential_counts_and_shows_nothing() {
    let kind = kind(
        &json!({"headers": {"A": "{{ id }}"}, "values": {"v": "{{ id }}"}, "cookie_header": "{{ id }}", "json": "{{ id }}"}),
    );
    let credential = render(&kind, &payload(&kind, &json!({"id": "canary"})), &mut |_| Err("none")).unwrap();
    let text = format!("{credential:?}");
    assert!(text.contains("headers: 1") && !text.contains("canary"), "{text}");
}

proptest! {
    #[test]
    fn any_template_is_refused_or_rendered(
        text in "\\PC{0,40}|([{]{2} ?(id|n|b|c|c[.]a|j|j[.]x[.]0|key|zz) ?[}]{2}|[a-z{} .]{0,6}){0,6}",
        id in "\\PC{0,12}",
        number in any::<f64>(),
        cookies in "[a-c=; ]{0,12}",
    ) {
        let deliver = json!({"headers": {"A": text}, "cookie_header": text, "cookies": {"a": text}, "query": {"q": text}, "json": [text], "values": {"v": text}});
        let written = json!({"name": "t", "client": "web", "deliver": deliver, "unique_by": ["id"], "fields": {
            "id": {"type": "string"}, "n": {"type": "number"}, "b": {"type": "bool"}, "c": {"type": "cookie_map"}, "j": {"type": "json"}, "key": {"type": "secret_ref"}}});
        if let Ok(kind) = IdentityType::read(&written) {
            let values = json!({"id": id, "n": number, "c": cookies, "j": {"x": [id]}, "key": "a"});
            if let Ok(stored) = Payload::new(&kind, values.as_object().cloned().unwrap(), Source::Json) {
                let _ = render(&kind, &stored, &mut |path| Ok(path.to_owned()));
            }
        }
    }
}
