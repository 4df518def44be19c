#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::spinneret::messages::{
    AcquireBatchRequest, AcquireRequest, BatchGetConfigRequest, ConfigKey, GetConfigRequest, GetSecretRequest, ReleaseRequest,
    RenewRequest, ReportRequest,
};
use crate::spinneret::testing;

fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    Reply { status, headers: headers.iter().map(header).collect::<HeaderMap>(), body: body.into() }
}

fn answered<R: Rpc>(body: impl Into<Bytes>) -> Result<R::Answer> {
    read::<R>(&reply(200, &[], body), &Redactor::default())
}

fn given<R: Rpc>(body: &Value) -> R::Answer {
    answered::<R>(body.to_string()).unwrap()
}

fn refused(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Error {
    read::<ReleaseRequest>(&reply(status, headers, body), &Redactor::default()).unwrap_err()
}

fn is_unreadable<R: Rpc>(body: impl Into<Bytes>) -> bool {
    let Err(error) = answered::<R>(body) else { return false };
    assert!(matches!(error, Error::Internal(_)) && error.reason() == "invalid_response" && error.http_status() == 200);
    assert!(error.message().contains(R::PROCEDURE.path()) && error.is_retry_later() && !error.is_bare());
    true
}

#[test]
fn b014_fewer_leases_than_asked_for_are_an_answer() {
    let body = json!({"leases": [testing::lease("lse_1"), testing::lease("lse_2")], "requested": 3});
    let answer = given::<AcquireBatchRequest>(&body);
    assert_eq!(answer.leases.iter().map(|lease| lease.lease.lease_id.as_str()).collect::<Vec<_>>(), ["lse_1", "lse_2"]);
    assert_eq!(answer.requested, 3);
}

#[test]
fn a_lease_is_read_whole() {
    let answer = given::<AcquireRequest>(&testing::lease("lse_1"));
    assert_eq!(answer.lease.identity_id, "idt_1");
    assert_eq!(answer.lease.expires_at, Some("2026-09-16T08:30:00Z".parse().unwrap()));
    assert_eq!(answer.credential.cookies["sid"], "c4n4ry-cookie");
    assert_eq!(answer.proxy.unwrap().url, "http://user:c4n4ry-password@10.0.0.1:3128");
    assert_eq!(answer.hints.renew_before_ms, 30_000);
    let with_json = json!({"lease": {"lease_id": "l"}, "credential": {"json": [1, {"a": null}], "values": {"n": 1.5}}});
    let credential = given::<AcquireRequest>(&with_json).credential;
    assert_eq!((credential.json, credential.values["n"].as_f64()), (Some(json!([1, {"a": null}])), Some(1.5)));
}

#[test]
fn b017_an_empty_body_is_the_default_answer() {
    for body in ["", " \r\n\t", "{}"] {
        assert!(!answered::<ReleaseRequest>(body).unwrap().released, "{body:?}");
    }
    let no_content = read::<ReleaseRequest>(&reply(204, &[], ""), &Redactor::default());
    assert!(!no_content.unwrap().released);
    assert!(given::<ReleaseRequest>(&json!({"released": true})).released);
}

#[test]
fn b018_what_cannot_be_read_is_an_invalid_response() {
    assert!(is_unreadable::<ReleaseRequest>("not json"));
    assert!(is_unreadable::<ReleaseRequest>("{\"released\": true"));
    assert!(is_unreadable::<ReleaseRequest>("{} {}"));
    assert!(is_unreadable::<AcquireBatchRequest>(r#"{"leases":"nope"}"#));
    assert!(is_unreadable::<ReleaseRequest>(b"{\"released\": true, \"a\": \"\xff\"}".as_slice()));
    assert!(is_unreadable::<ReleaseRequest>(b"\xff\xfe".as_slice()));
    for body in ["[]", "null", "true", "\"text\"", "7", "[true]"] {
        assert!(is_unreadable::<ReleaseRequest>(body), "{body}");
    }
}

#[test]
fn strict_fields_make_an_answer_invalid() {
    let credential = |credential: Value| json!({"lease": {"lease_id": "l"}, "credential": credential}).to_string();
    for map in ["cookies", "headers", "query"] {
        assert!(answered::<AcquireRequest>(credential(json!({map: {"a": "b"}}))).is_ok());
        for value in [json!({"a": 1}), json!({"a": null}), json!({"a": ["b"]}), json!(["a"]), json!("a=b")] {
            assert!(is_unreadable::<AcquireRequest>(credential(json!({map: value}))), "{map}: {value}");
        }
    }
    assert!(is_unreadable::<AcquireRequest>(credential(json!({"cookie_header": 1}))));
    assert!(is_unreadable::<AcquireRequest>(credential(json!({"values": [1]}))));
    assert!(is_unreadable::<AcquireRequest>(json!({"lease": {"lease_id": 7}}).to_string()));
    assert!(is_unreadable::<AcquireRequest>(json!({"lease": ["lse_1"]}).to_string()), "a message is no array");
    assert!(is_unreadable::<AcquireRequest>(json!({"lease": {"lease_id": "l", "sticky": "yes"}}).to_string()));
    assert!(is_unreadable::<AcquireBatchRequest>(json!({"leases": [null]}).to_string()));
    assert!(is_unreadable::<GetSecretRequest>(json!({"value": 5}).to_string()));
    assert!(is_unreadable::<GetSecretRequest>(json!({"version": 1.5}).to_string()));
    assert!(is_unreadable::<GetSecretRequest>(json!({"version": 2_147_483_648_i64}).to_string()));
    assert!(is_unreadable::<RenewRequest>(json!({"expires_at": "soon"}).to_string()));
    assert!(is_unreadable::<RenewRequest>(json!({"expires_at": 1_789_000_000}).to_string()));
}

#[test]
fn an_unreadable_answer_names_the_kind_of_failure_and_shows_nothing_of_it() {
    let error = answered::<GetSecretRequest>(r#"{"value": {"c4n4ry": "c4n4ry"}}"#).unwrap_err();
    let expected = "internal (invalid_response): the answer of spinneret.v1.SecretService/GetSecret cannot be read: it does not \
                    fit the message (line 1, column 10)";
    assert_eq!(error.to_string(), expected);
    for body in [r#"{"value": 1, "c4n4ry"}"#, r#"{"version": "c4n4ry"}"#, r#"{"expires_at": "c4n4ry"}"#, "c4n4ry"] {
        let error = answered::<GetSecretRequest>(body).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("c4n4ry"), "{error}");
    }
}

#[test]
fn an_acquired_lease_has_an_id() {
    for body in [json!({}), json!({"lease": null}), json!({"lease": {"lease_id": ""}}), json!({"lease": {"identity_id": "i"}})] {
        let error = answered::<AcquireRequest>(body.to_string()).unwrap_err();
        assert_eq!(error.reason(), "invalid_response");
        assert!(error.message().ends_with("it has no lease id"), "{error}");
    }
    // The others of a batch would be lost with it.
    assert_eq!(given::<AcquireBatchRequest>(&json!({"leases": [testing::lease("lse_1"), {}]})).leases.len(), 2);
    assert!(given::<AcquireBatchRequest>(&json!({"leases": []})).leases.is_empty());
}

#[test]
fn b019_nulls_missing_and_unknown_members_are_defaults() {
    let minimal = given::<AcquireRequest>(&json!({"lease": {"lease_id": "l"}}));
    let nulls = json!({
        "lease": {
            "lease_id": "l", "identity_id": null, "identity_type": null, "endpoint_group": null, "expires_at": null,
            "sticky": null, "probe": null, "mood": {"any": [1]}
        },
        "credential": {"cookies": null, "cookie_header": null, "headers": null, "query": null, "json": null, "values": null},
        "proxy": null, "hints": {"renew_before_ms": null}, "more": 7
    });
    assert_eq!(given::<AcquireRequest>(&nulls), minimal);
    let outer = json!({"lease": {"lease_id": "l"}, "credential": null, "proxy": null, "hints": null});
    assert_eq!(given::<AcquireRequest>(&outer), minimal);
    assert!(minimal.credential.values.is_empty() && minimal.proxy.is_none());
    assert_eq!(given::<GetSecretRequest>(&json!({"value": null, "version": null, "path": null})).value, "");
    assert!(given::<AcquireBatchRequest>(&json!({"leases": null, "requested": null})).leases.is_empty());
    assert!(given::<BatchGetConfigRequest>(&json!({"items": null, "missing": null})).missing.is_empty());
    assert_eq!(given::<GetConfigRequest>(&json!({"item": null})).item.version, 0);
    assert!(given::<ReportRequest>(&json!({"rejected": null})).rejected.is_empty());
}

#[test]
fn b020_integers_may_be_texts() {
    let answer = given::<ReportRequest>(&json!({"accepted": "1", "duplicated": 2, "rejected": []}));
    assert_eq!((answer.accepted, answer.duplicated), (1, 2));
    assert_eq!(given::<GetSecretRequest>(&json!({"version": "3"})).version, 3);
    let report = r#"{"reports": [{"response_bytes": 9007199254740993,
        "started_at": "2026-09-16T08:30:10Z", "finished_at": "2026-09-16T08:30:10Z"}, {"response_bytes": "9007199254740993",
        "started_at": "2026-09-16T08:30:10Z", "finished_at": "2026-09-16T08:30:10Z"}]}"#;
    let reports = serde_json::from_str::<ReportRequest>(report).unwrap().reports;
    assert!(reports.iter().all(|report| report.response_bytes == 9_007_199_254_740_993));
    let exact = r#"{"lease": {"lease_id": "l"}, "credential": {"json": {"n": 9007199254740993}}}"#;
    assert_eq!(answered::<AcquireRequest>(exact).unwrap().credential.json, Some(json!({"n": 9_007_199_254_740_993_i64})));
}

#[test]
fn b021_expiries_are_read_to_the_nanosecond_and_at_any_offset() {
    let expiry = |text: &str| given::<RenewRequest>(&json!({"expires_at": text})).expires_at.unwrap();
    let whole = expiry("2026-09-16T08:30:10Z");
    assert_eq!(expiry("2026-09-16T08:30:10.123456789Z").duration_since(whole).as_nanos(), 123_456_789);
    assert_eq!(expiry("2026-09-16T10:30:10+02:00"), whole);
}

#[test]
fn b027_a_bare_404_is_unimplemented() {
    let error = refused(404, &[], "404 page not found");
    assert!(matches!(error, Error::Unimplemented(_)) && error.is_bare() && !error.is_retry_later());
    assert_eq!(error.to_string(), "unimplemented: HTTP 404: 404 page not found");
}

#[test]
fn b030_code_reason_message_and_hint_come_from_the_answer() {
    let headers = [("spinneret-reason", "rate_limited"), ("spinneret-retry-after-ms", "1200")];
    let error = refused(429, &headers, r#"{"code": "resource_exhausted", "message": "too fast", "details": [{"a": [1]}]}"#);
    assert!(matches!(error, Error::ResourceExhausted(_)) && !error.is_bare());
    assert_eq!((error.reason(), error.message(), error.http_status()), ("rate_limited", "too fast", 429));
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1200)));
    let any_status = refused(418, &[("spinneret-reason", "lease_unknown")], r#"{"code": "not_found"}"#);
    assert!(matches!(any_status, Error::LeaseUnknown(_)), "the code of the body counts, not the status");
    assert!(matches!(refused(307, &[], ""), Error::Internal(details) if details.code == Code::Unknown), "no redirect");
}

#[test]
fn b033_header_names_are_compared_without_case() {
    for name in ["Spinneret-Reason", "SPINNERET-REASON", "spinneret-reason"] {
        let error = refused(503, &[(name, " circuit_open\t"), ("SPINNERET-Retry-After-MS", " 7 ")], r#"{"code":"unavailable"}"#);
        assert!(matches!(error, Error::CircuitOpen(_)));
        assert_eq!(error.retry_after(), Some(Duration::from_millis(7)));
    }
}

#[test]
fn b034_hints_that_are_no_count_are_ignored() {
    let hinted = |hint| refused(503, &[("spinneret-retry-after-ms", hint)], r#"{"code":"unavailable"}"#).retry_after();
    for hint in ["abc", "-5", "", " ", "1.5", "1e3", "0x10", "5 s", "+", "\u{664}"] {
        assert_eq!(hinted(hint), None, "{hint:?}");
    }
    assert_eq!(hinted("0"), Some(Duration::ZERO));
    assert_eq!(hinted(" 250 "), Some(Duration::from_millis(250)));
    let longest = Duration::from_millis(2_147_483_647);
    assert_eq!((hinted("2147483648"), hinted("99999999999999999999999")), (Some(longest), Some(longest)));
    assert_eq!(refused(503, &[("retry-after", "5")], "").retry_after(), None, "not a header of ours");
}

#[test]
fn header_values_of_any_bytes_are_borne() {
    let mut strange = reply(503, &[], r#"{"code":"unavailable"}"#);
    for name in ["spinneret-reason", "spinneret-retry-after-ms"] {
        strange.headers.insert(name, HeaderValue::from_bytes(b"caf\xe9\xff").unwrap());
    }
    let error = read::<ReleaseRequest>(&strange, &Redactor::default()).unwrap_err();
    assert_eq!((error.reason(), error.retry_after()), ("", None));
}

#[test]
fn b035_a_code_alone_is_a_whole_error() {
    for body in [r#"{"code":"not_found"}"#, r#"{"code":"not_found","message":5}"#, r#"{"code":"not_found","message":null}"#] {
        let error = refused(404, &[], body);
        assert_eq!((error.to_string().as_str(), error.message()), ("not_found", ""));
        assert!(!error.is_bare());
    }
}

#[test]
fn b036_bodies_without_a_code_are_bare() {
    let bodies: [&[u8]; 10] = [
        b"",
        b"not json",
        b"[1,2]",
        br#"{"code":""}"#,
        br#"{"code":5}"#,
        b"\xff\xfe",
        b"null",
        br#"{"message":"x"}"#,
        br#"{"code":null}"#,
        b"{\"code\":\"unknown\",\"message\":\"\xff\"}",
    ];
    for body in bodies {
        let error = refused(502, &[("spinneret-reason", "why"), ("spinneret-retry-after-ms", "9")], body);
        assert!(matches!(error, Error::Unavailable(_)) && error.is_bare(), "{body:?}");
        assert_eq!((error.reason(), error.retry_after()), ("why", Some(Duration::from_millis(9))));
    }
}

#[test]
fn b037_a_bare_answer_is_judged_by_its_status_and_shows_its_page() {
    for (status, code) in [
        (400, "internal"),
        (401, "unauthenticated"),
        (403, "permission_denied"),
        (404, "unimplemented"),
        (429, "unavailable"),
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "unavailable"),
        (418, "unknown"),
        (500, "unknown"),
        (302, "unknown"),
    ] {
        let error = refused(status, &[], "  the gateway is busy \n");
        assert_eq!(error.to_string(), format!("{code}: HTTP {status}: the gateway is busy"));
        assert!(error.is_bare() && error.http_status() == status);
    }
    assert_eq!(refused(502, &[], " \n").message(), "HTTP 502");
    let page = "busy ".repeat(200);
    assert_eq!(refused(502, &[], page.clone()).message(), format!("HTTP 502: {}", page[..512].trim()));
}

#[test]
fn an_echo_of_the_request_is_not_kept() {
    let redactor = Redactor::new(SecretString::from("spn_c4n4ry"));
    let refused = |headers: &[(&str, &str)], body: &'static str| {
        let error = read::<ReleaseRequest>(&reply(502, headers, body), &redactor).unwrap_err();
        format!("{error}\n{error:?}")
    };
    for page in [
        "upstream connect error\nAuthorization: Bearer spn_c4n4ry",
        "upstream connect error: Cookie: sid=c4n4ry",
        "upstream connect error http://u:c4n4ry@10.0.0.1/",
        "upstream connect error ?token=c4n4ry",
        "upstream connect error spn_c4n4ry",
        r#"{"code": "unavailable", "message": "upstream connect error for spn_c4n4ry"}"#,
    ] {
        let text = refused(&[], page);
        assert!(!text.contains("c4n4ry") && text.contains("upstream connect error"), "{text}");
    }
    assert!(!refused(&[("spinneret-reason", "spn_c4n4ry")], r#"{"code": "spn_c4n4ry"}"#).contains("c4n4ry"));
}

#[test]
fn the_servers_own_message_is_kept() {
    let error = refused(400, &[], r#"{"code": "invalid_argument", "message": "uri=\"search\" is no path; see key a=b"}"#);
    assert_eq!(error.message(), "uri=\"search\" is no path; see key a=b");
}

#[test]
fn an_error_keeps_no_text_without_end() {
    let long = "é".repeat(100_000);
    let body = json!({"code": long, "message": long}).to_string();
    let error = refused(500, &[("spinneret-reason", &"r".repeat(50_000))], body);
    assert_eq!(error.code().as_str(), format!("{}…", "é".repeat(128)));
    assert_eq!(error.reason(), format!("{}…", "r".repeat(128)));
    assert_eq!(error.message(), format!("{}…", "é".repeat(2048)));
    let whole = refused(500, &[], json!({"code": "internal", "message": "é".repeat(2048)}).to_string());
    assert_eq!(whole.message(), "é".repeat(2048));
}

#[test]
fn a_body_larger_than_any_error_is_not_read_as_one() {
    let zeros = |count: usize| format!(r#"{{"code":"aborted","x":[{}0]}}"#, "0,".repeat(count));
    assert!(matches!(refused(503, &[], zeros(1000)), Error::Aborted(_)));
    let error = refused(503, &[], zeros(600_000));
    assert!(matches!(&error, Error::Unavailable(details) if details.is_bare), "{error}");
}

#[test]
fn b189_missing_items_may_be_texts() {
    let objects = given::<BatchGetConfigRequest>(&json!({"missing": [{"group": "crawler", "key": "search.json"}]}));
    let texts = given::<BatchGetConfigRequest>(&json!({"missing": ["crawler/search.json"]}));
    assert_eq!(texts, objects);
    assert_eq!(texts.missing, [ConfigKey::new("crawler", "search.json")]);
    let mixed = given::<BatchGetConfigRequest>(&json!({"missing": ["g/a/b", {"group": "g", "key": null, "more": 1}]}));
    assert_eq!(mixed.missing, [ConfigKey::new("g", "a/b"), ConfigKey::new("g", "")]);
    for entry in [json!("no-slash"), json!("/k"), json!("g/"), json!(5), json!(["g", "k"]), json!({"group": 5})] {
        assert!(is_unreadable::<BatchGetConfigRequest>(json!({"missing": [entry]}).to_string()), "{entry}");
    }
}
