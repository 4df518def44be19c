//! Whatever comes is an answer or an error, and shows no secret.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{Redactor, read};
use crate::spinneret::messages::{
    AcquireBatchRequest, AcquireRequest, BatchGetConfigRequest, GetConfigRequest, GetSecretRequest, ReleaseRequest, RenewRequest,
    ReportRequest, WatchConfigRequest,
};
use crate::spinneret::procedure::Rpc;
use crate::spinneret::testing;
use crate::spinneret::transport::Reply;

const CANARY: &str = "c4n4ry";

/// Reads the reply as the answer of every call: what a person could see of the results.
fn shown(reply: &Reply) -> Vec<String> {
    fn of<R: Rpc<Answer: std::fmt::Debug>>(reply: &Reply) -> String {
        match read::<R>(reply, &Redactor::new(SecretString::from("spn_c4n4ry"))) {
            Ok(answer) => format!("{answer:?} {answer:#?}"),
            Err(error) => format!("{error} {error:?} {error:#?} {}", error.advice()),
        }
    }
    vec![
        of::<AcquireRequest>(reply),
        of::<AcquireBatchRequest>(reply),
        of::<RenewRequest>(reply),
        of::<ReleaseRequest>(reply),
        of::<ReportRequest>(reply),
        of::<GetConfigRequest>(reply),
        of::<BatchGetConfigRequest>(reply),
        of::<WatchConfigRequest>(reply),
        of::<GetSecretRequest>(reply),
    ]
}

fn reply(status: u16, body: impl Into<Bytes>) -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert("spinneret-reason", HeaderValue::from_static("overloaded"));
    Reply { status, headers, body: body.into() }
}

/// An answer of every call at once, with a canary wherever a secret is.
fn planted() -> Value {
    let item = json!({
        "namespace": "prod", "group": "g", "key": "k", "format": "json", "version": 3, "content": "c4n4ry",
        "updated_at": "2026-09-16T08:30:00Z", "has_secret_refs": true
    });
    let mut all = testing::lease("lse_1");
    all["credential"]["json"] = json!({"c4n4ry": ["c4n4ry"]});
    all["credential"]["values"] = json!({"c4n4ry": "c4n4ry"});
    all["leases"] = json!([all.clone()]);
    for (name, value) in [
        ("requested", json!(1)),
        ("expires_at", json!("2026-09-16T08:40:00.5Z")),
        ("released", json!(true)),
        ("accepted", json!(1)),
        ("rejected", json!([{"report_id": "r", "reason": "lease_unknown", "message": "gone"}])),
        ("item", item.clone()),
        ("items", json!([item])),
        ("missing", json!(["g/k", {"group": "g", "key": "k"}])),
        ("value", json!("c4n4ry")),
        ("path", json!("a/b")),
        ("version", json!("2")),
    ] {
        all[name] = value;
    }
    all
}

/// The places of a value, as JSON pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), all)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), all));
        }
        _ => {}
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "-?[0-9]{1,20}".prop_map(Value::from),
        "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,10})?(Z|[+-][0-2][0-9]:[0-5][0-9])"
            .prop_map(Value::from),
    ];
    let name = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "lease",
            "leases",
            "lease_id",
            "credential",
            "cookies",
            "headers",
            "query",
            "json",
            "values",
            "proxy",
            "url",
            "hints",
            "requested",
            "expires_at",
            "released",
            "accepted",
            "rejected",
            "item",
            "items",
            "missing",
            "group",
            "key",
            "version",
            "content",
            "updated_at",
            "value",
            "code",
            "message",
            "sticky",
            "renew_before_ms",
            "report_id",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..8).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn the_planted_answer_is_read_by_every_call_and_shows_no_canary() {
    let body = planted();
    assert!(body.to_string().matches(CANARY).count() > 15, "the canaries are there");
    for text in shown(&reply(200, body.to_string())) {
        assert!(!text.contains("invalid_response") && !text.contains(CANARY), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_an_answer_or_an_error(body in prop::collection::vec(any::<u8>(), 0..600), status in 100_u16..=999) {
        prop_assert_eq!(shown(&reply(200, body.clone())).len(), 9);
        prop_assert_eq!(shown(&reply(status, body)).len(), 9);
    }

    #[test]
    fn any_json_is_an_answer_or_an_error(body in any_json(), status in 100_u16..=999) {
        prop_assert_eq!(shown(&reply(200, body.to_string())).len(), 9);
        prop_assert_eq!(shown(&reply(status, body.to_string())).len(), 9);
    }

    #[test]
    fn a_damaged_answer_shows_no_canary(place in any::<prop::sample::Index>(), by in any_json(), cut in any::<prop::sample::Index>()) {
        let mut body = planted();
        let mut all = Vec::new();
        places(&body, "", &mut all);
        *body.pointer_mut(&all[place.index(all.len())]).unwrap() = by;
        let text = body.to_string();
        let mut end = cut.index(text.len() + 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for body in [text.as_str(), &text[..end]] {
            for text in shown(&reply(200, body.to_owned())) {
                prop_assert!(!text.contains(CANARY), "{}", text);
            }
        }
    }

    #[test]
    fn a_refusal_shows_nothing_of_an_echoed_answer(cut in 0_usize..2_000, status in 300_u16..=599) {
        let text = planted().to_string();
        let page = text.get(cut.min(text.len())..).unwrap_or_default();
        for text in shown(&reply(status, page.to_owned())) {
            prop_assert!(!text.contains(CANARY), "{}", text);
        }
    }
}
