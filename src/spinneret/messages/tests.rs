#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use serde_json::json;

use super::*;
use crate::spinneret::procedure::Rpc;
use crate::spinneret::retry::Timeouts;
use crate::spinneret::{Error, ErrorKind, Result};

fn report() -> Report {
    Report {
        report_id: "r-1".to_owned(),
        lease_id: "lse_1".to_owned(),
        uri: "/feed".to_owned(),
        method: "GET".to_owned(),
        http_status: 200,
        business_code: "0".to_owned(),
        error_kind: String::new(),
        markers: vec!["empty_list".to_owned()],
        outcome_hint: "empty".to_owned(),
        latency_ms: 250,
        response_bytes: 9_007_199_254_740_993,
        started_at: "2026-09-16T10:30:10+02:00".parse().unwrap(),
        finished_at: "2026-09-16T08:30:10.2500009Z".parse().unwrap(),
        release: true,
    }
}

fn acquire() -> AcquireRequest {
    AcquireRequest::new("shop", "web")
}

/// The refusal of a request that breaks a bound.
fn refusal(request: &impl Rpc) -> String {
    match request.validate() {
        Ok(()) => "nothing".to_owned(),
        Err(error) => {
            assert!(matches!(error, Error::InvalidArgument(_)) && error.http_status() == 0 && !error.is_retry_later());
            error.message().to_owned()
        }
    }
}

fn is_accepted(request: &impl Rpc) -> bool {
    request.validate().is_ok()
}

/// What the request looks like on the wire; it is read back as it was.
fn body<R: Rpc + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(request: &R) -> String {
    let body = serde_json::to_string(request).unwrap();
    assert!(request.validate().is_ok());
    assert_eq!(&serde_json::from_str::<R>(&body).unwrap(), request);
    body
}

#[test]
fn b010_acquire_sends_every_field() {
    let request = acquire().uri("/feed?q=ü").endpoint_group("search").session_key("user 42").wait(Duration::from_millis(1500));
    let expected =
        r#"{"site":"shop","client":"web","uri":"/feed?q=ü","endpoint_group":"search","session_key":"user 42","wait_ms":1500}"#;
    assert_eq!(body(&request), expected);
    let expected = r#"{"site":"shop","client":"web","uri":"","endpoint_group":"","session_key":"","wait_ms":0}"#;
    assert_eq!(body(&acquire()), expected);
}

#[test]
fn b012_the_servers_wait_is_added_to_the_read_timeout() {
    let timeouts = Timeouts::default();
    let waiting = acquire().wait(Duration::from_millis(1500));
    assert_eq!(waiting.read_timeout(&timeouts), Duration::from_millis(11_500));
    assert_eq!(AcquireBatchRequest::new(waiting, 2).read_timeout(&timeouts), Duration::from_millis(11_500));
    assert_eq!(acquire().read_timeout(&timeouts), Duration::from_secs(10));
    assert_eq!(ReleaseRequest::new("l").read_timeout(&timeouts), Duration::from_secs(10));
}

#[test]
fn b013_a_watch_waits_for_its_own_time_and_a_grace() {
    for (timeout_ms, seconds) in [(0, 35), (1000, 6), (20_000, 25), (60_000, 65)] {
        let watch = WatchConfigRequest::new([ConfigKey::new("g", "k")]).timeout(Duration::from_millis(timeout_ms));
        assert_eq!(watch.read_timeout(&Timeouts::default()), Duration::from_secs(seconds));
        let expected = format!(r#"{{"namespace":"","items":[{{"group":"g","key":"k","version":0}}],"timeout_ms":{timeout_ms}}}"#);
        assert_eq!(body(&watch), expected);
    }
    assert_eq!(WatchConfigRequest::new([&ConfigKey::new("g", "k")]).timeout_ms, 30_000);
}

#[test]
fn parts_of_a_millisecond_never_become_the_zero_that_means_a_default() {
    for (duration, ms) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_micros(1000), 1),
        (Duration::from_micros(1001), 2),
        (Duration::MAX, i32::MAX),
    ] {
        assert_eq!(milliseconds(duration), ms, "{duration:?}");
    }
}

#[test]
fn b014_acquire_batch_sends_the_count() {
    let expected = r#"{"site":"shop","client":"web","uri":"","endpoint_group":"","session_key":"","wait_ms":0,"count":3}"#;
    assert_eq!(body(&AcquireBatchRequest::new(acquire(), 3)), expected);
}

#[test]
fn b015_renew_release_and_get_secret_send_their_fields() {
    let renew = RenewRequest::new("lse_1", Duration::from_mins(5));
    assert_eq!(body(&renew), r#"{"lease_id":"lse_1","extend_ms":300000}"#);
    assert_eq!(body(&ReleaseRequest::new("lse_1")), r#"{"lease_id":"lse_1"}"#);
    assert_eq!(body(&GetSecretRequest::new("signing/api-key.v2")), r#"{"path":"signing/api-key.v2","version":0}"#);
    assert_eq!(body(&GetSecretRequest::from(("a", 3))), r#"{"path":"a","version":3}"#);
    assert_eq!(GetSecretRequest::from("a".to_owned()), "a".into());
}

#[test]
fn b016_configuration_keys_are_texts_pairs_or_objects() {
    let batch = BatchGetConfigRequest::new(["crawler/search.json", "g/k/with/slash"]).unwrap();
    let items = r#"[{"group":"crawler","key":"search.json"},{"group":"g","key":"k/with/slash"}]"#;
    assert_eq!(body(&batch), format!(r#"{{"namespace":"","items":{items}}}"#));
    let pairs = BatchGetConfigRequest::new([("crawler", "search.json"), ("g", "k/with/slash")]).unwrap();
    let keys = [ConfigKey::new("crawler", "search.json"), ConfigKey::new("g", "k/with/slash")];
    assert_eq!((&pairs, &BatchGetConfigRequest::new(&keys).unwrap()), (&batch, &batch));
    assert_eq!(body(&batch.namespace("prod")), format!(r#"{{"namespace":"prod","items":{items}}}"#));

    fn get(request: impl TryInto<GetConfigRequest, Error: Into<Error>>) -> Result<GetConfigRequest> {
        request.try_into().map_err(Into::into)
    }
    let expected = GetConfigRequest::new(("g", "k/with/slash"));
    assert_eq!(body(&expected), r#"{"namespace":"","group":"g","key":"k/with/slash"}"#);
    assert_eq!(get("g/k/with/slash").unwrap(), expected);
    assert_eq!(get("g/k/with/slash".to_owned()).unwrap(), expected);
    assert_eq!(get(("g", "k/with/slash".to_owned())).unwrap(), expected);
    assert_eq!(get(&keys[1]).unwrap(), expected);
    assert_eq!(get(keys[1].clone()).unwrap(), expected);
    assert_eq!(get(expected.clone()).unwrap(), expected);
    assert_eq!(get(expected.clone().namespace("prod")).unwrap().namespace, "prod");
    assert!(get("no-slash").is_err());
}

#[test]
fn b022_reports_send_six_digits_and_every_field() {
    let expected = concat!(
        r#"{"reports":[{"report_id":"r-1","lease_id":"lse_1","uri":"/feed","method":"GET","http_status":200,"#,
        r#""business_code":"0","error_kind":"","markers":["empty_list"],"outcome_hint":"empty","latency_ms":250,"#,
        r#""response_bytes":9007199254740993,"started_at":"2026-09-16T08:30:10.000000Z","#,
        r#""finished_at":"2026-09-16T08:30:10.250000Z","release":true}]}"#
    );
    let request = ReportRequest { reports: vec![report()] };
    assert!(is_accepted(&request));
    let body = serde_json::to_string(&request).unwrap();
    assert_eq!(body, expected);
    let read = serde_json::from_str::<ReportRequest>(&body).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), body);
}

#[test]
fn requests_are_read_as_a_server_must() {
    let batch =
        json!({"site": "s", "client": null, "endpointGroup": "g", "sessionKey": "k", "waitMs": "7", "count": "2", "x": {}});
    let read: AcquireBatchRequest = serde_json::from_value(batch).unwrap();
    let each = AcquireRequest::new("s", "").endpoint_group("g").session_key("k").wait(Duration::from_millis(7));
    assert_eq!(read, AcquireBatchRequest::new(each, 2));
    let least =
        json!({"reports": [{"startedAt": "2026-09-16T08:30:10Z", "finished_at": "2026-09-16T08:30:11Z", "markers": null}]});
    let read: ReportRequest = serde_json::from_value(least).unwrap();
    assert_eq!((read.reports[0].release, read.reports[0].http_status), (false, 0));
    let untimed: Result<ReportRequest, _> = serde_json::from_value(json!({"reports": [{"report_id": "r"}]}));
    assert!(untimed.is_err());
    for bytes in [json!(48213), json!("48213")] {
        let read = json!({"responseBytes": bytes, "started_at": "2026-09-16T08:30:10Z", "finishedAt": "2026-09-16T08:30:11Z"});
        assert_eq!(serde_json::from_value::<Report>(read).unwrap().response_bytes, 48_213);
    }
}

#[test]
fn b052_bounds_of_leases_are_checked_before_anything_is_sent() {
    let long = |length: usize| "ü".repeat(length);
    let wait = |wait_ms| AcquireRequest { wait_ms, ..acquire() };
    assert_eq!(refusal(&AcquireRequest::new("", "web")), "site has 0 characters, allowed are 1 to 64");
    assert_eq!(refusal(&AcquireRequest::new(long(65), "web")), "site has 65 characters, allowed are 1 to 64");
    assert_eq!(refusal(&AcquireRequest::new("shop", "")), "client has 0 characters, allowed are 1 to 32");
    assert_eq!(refusal(&AcquireRequest::new("shop", long(33))), "client has 33 characters, allowed are 1 to 32");
    assert_eq!(refusal(&acquire().uri(long(2049))), "uri has 2049 characters, allowed are 0 to 2048");
    assert_eq!(refusal(&acquire().endpoint_group(long(65))), "endpoint_group has 65 characters, allowed are 0 to 64");
    assert_eq!(refusal(&acquire().session_key(long(257))), "session_key has 257 characters, allowed are 0 to 256");
    assert_eq!(refusal(&wait(-1)), "wait_ms is -1, allowed are 0 to 5000");
    assert_eq!(refusal(&wait(5001)), "wait_ms is 5001, allowed are 0 to 5000");
    assert!(!is_accepted(&acquire().wait(Duration::MAX)));
    let widest = AcquireRequest::new(long(64), long(32)).uri(long(2048)).endpoint_group(long(64)).session_key(long(256));
    assert!(is_accepted(&widest.wait(Duration::from_secs(5))) && is_accepted(&acquire()));

    assert_eq!(refusal(&AcquireBatchRequest::new(acquire(), 0)), "count is 0, allowed are 1 to 50");
    assert_eq!(refusal(&AcquireBatchRequest::new(acquire(), 51)), "count is 51, allowed are 1 to 50");
    assert_eq!(refusal(&AcquireBatchRequest::new(wait(-1), 1)), "wait_ms is -1, allowed are 0 to 5000");
    assert!(is_accepted(&AcquireBatchRequest::new(acquire(), 1)) && is_accepted(&AcquireBatchRequest::new(acquire(), 50)));

    let renew = |extend_ms| RenewRequest { lease_id: "l".to_owned(), extend_ms };
    assert_eq!(refusal(&renew(1_800_001)), "extend_ms is 1800001, allowed are 0 to 1800000");
    assert_eq!(refusal(&renew(-1)), "extend_ms is -1, allowed are 0 to 1800000");
    assert!(is_accepted(&renew(0)) && is_accepted(&renew(1_800_000)));
    assert_eq!(refusal(&RenewRequest::new("", Duration::ZERO)), "lease_id has 0 characters, allowed are 1 to 128");
    assert_eq!(refusal(&ReleaseRequest::new("")), "lease_id has 0 characters, allowed are 1 to 128");
    assert_eq!(refusal(&ReleaseRequest::new(long(129))), "lease_id has 129 characters, allowed are 1 to 128");
    assert!(is_accepted(&ReleaseRequest::new(long(128))));
}

#[test]
fn b053_bounds_of_lists_are_checked() {
    let reports = |count| ReportRequest { reports: vec![report(); count] };
    assert_eq!(refusal(&reports(0)), "reports has 0 elements, allowed are 1 to 500");
    assert_eq!(refusal(&reports(501)), "reports has 501 elements, allowed are 1 to 500");
    assert!(is_accepted(&reports(1)) && is_accepted(&reports(500)));

    let keys = |count: usize| (0..count).map(|n| ConfigKey::new("g", n.to_string())).collect::<Vec<_>>();
    let batch = |count| BatchGetConfigRequest::new(keys(count)).unwrap();
    assert_eq!(refusal(&batch(0)), "items has 0 elements, allowed are 1 to 200");
    assert_eq!(refusal(&batch(201)), "items has 201 elements, allowed are 1 to 200");
    assert!(is_accepted(&batch(1)) && is_accepted(&batch(200)));

    let watch = |count| WatchConfigRequest::new(keys(count));
    assert_eq!(refusal(&watch(0)), "items has 0 elements, allowed are 1 to 200");
    assert_eq!(refusal(&watch(201)), "items has 201 elements, allowed are 1 to 200");
    assert!(is_accepted(&watch(200)));
    let timeout = |timeout_ms| WatchConfigRequest { timeout_ms, ..watch(1) };
    assert_eq!(refusal(&timeout(60_001)), "timeout_ms is 60001, allowed are 0 to 60000");
    assert_eq!(refusal(&timeout(-1)), "timeout_ms is -1, allowed are 0 to 60000");
    assert!(is_accepted(&timeout(0)) && is_accepted(&timeout(60_000)));
    let version = |version| WatchConfigRequest::new([WatchItem::new(("g", "k"), 0), WatchItem::new(("g", "l"), version)]);
    assert_eq!(refusal(&version(-1)), "items[1].version is -1, allowed are 0 to 2147483647");
    assert!(is_accepted(&version(i32::MAX)));
    let twice = WatchConfigRequest::new([WatchItem::new(("g", "k"), 1), WatchItem::new(("g", "k"), 2)]);
    assert_eq!(refusal(&twice), "items[1] is there before, allowed are distinct ones");
}

#[test]
fn b054_configuration_keys_need_a_group_and_a_key() {
    for text in ["no-slash", "/k", "g/", "/", ""] {
        let error = ConfigKey::try_from(text).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)) && error.message().contains(&format!("{text:?}")), "{error}");
        assert!(BatchGetConfigRequest::new(["g/k", text]).is_err());
        assert!(GetConfigRequest::try_from(text).is_err());
    }
    assert_eq!(ConfigKey::from(("g", "k/with/slash")).to_string(), "g/k/with/slash");
    assert_eq!("g/k/with/slash".parse::<ConfigKey>().unwrap(), ConfigKey::new("g", "k/with/slash"));
    assert!(is_accepted(&GetConfigRequest::new(("g", "k/with/slash"))));

    let long = |length: usize| "ü".repeat(length);
    assert_eq!(refusal(&GetConfigRequest::new((long(129), "k"))), "group has 129 characters, allowed are 1 to 128");
    assert_eq!(refusal(&GetConfigRequest::new(("g", long(257)))), "key has 257 characters, allowed are 1 to 256");
    assert_eq!(refusal(&GetConfigRequest::new(("", "k"))), "group has 0 characters, allowed are 1 to 128");
    assert_eq!(refusal(&GetConfigRequest::new(("g", ""))), "key has 0 characters, allowed are 1 to 256");
    let namespace = GetConfigRequest::new(("g", "k")).namespace(long(65));
    assert_eq!(refusal(&namespace), "namespace has 65 characters, allowed are 0 to 64");
    assert!(is_accepted(&GetConfigRequest::new((long(128), long(256))).namespace(long(64))));
    let batch = BatchGetConfigRequest::new([("g".to_owned(), "k".to_owned()), (long(129), "k".to_owned())]).unwrap();
    assert_eq!(refusal(&batch), "items[1].group has 129 characters, allowed are 1 to 128");
    let watch = WatchConfigRequest::new([ConfigKey::new("g", "")]);
    assert_eq!(refusal(&watch), "items[0].key has 0 characters, allowed are 1 to 256");
    for (namespaced, is_legal) in [(long(64), true), (long(65), false)] {
        assert_eq!(is_accepted(&BatchGetConfigRequest::new(["g/k"]).unwrap().namespace(namespaced.clone())), is_legal);
        assert_eq!(is_accepted(&WatchConfigRequest::new([ConfigKey::new("g", "k")]).namespace(namespaced)), is_legal);
    }
    assert!(ConfigKey::new("g", "").validate().is_err() && ConfigKey::new("g", "k").validate().is_ok());
}

#[test]
fn b055_secret_paths_have_an_alphabet() {
    for path in ["signing/api-key.v2", "a", "0", "a_b", &"a".repeat(256)] {
        assert!(is_accepted(&GetSecretRequest::new(path)), "{path}");
    }
    for (path, found) in [
        ("Upper/Case", "path holds the character 'U', allowed are a-z 0-9 _ . / -"),
        ("a b", "path holds the character ' ', allowed are a-z 0-9 _ . / -"),
        ("schlüssel", "path holds the character 'ü', allowed are a-z 0-9 _ . / -"),
        ("a\n", "path holds the character '\\n', allowed are a-z 0-9 _ . / -"),
        ("/a", "path begins with '/', allowed are a-z 0-9 there"),
        (".a", "path begins with '.', allowed are a-z 0-9 there"),
        ("", "path has 0 characters, allowed are 1 to 256"),
    ] {
        assert_eq!(refusal(&GetSecretRequest::new(path)), found);
    }
    assert!(!is_accepted(&GetSecretRequest::new("a".repeat(257))));
    assert_eq!(refusal(&GetSecretRequest::new("a").version(-1)), "version is -1, allowed are 0 to 2147483647");
}

fn with(change: impl FnOnce(&mut Report)) -> ReportRequest {
    let mut changed = report();
    change(&mut changed);
    assert_eq!(changed.validate().is_ok(), ReportRequest { reports: vec![changed.clone()] }.validate().is_ok());
    ReportRequest { reports: vec![report(), changed] }
}

#[test]
fn b056_bounds_of_reports_are_checked() {
    let long = |length: usize| "ü".repeat(length);
    let markers = |count| vec!["m".to_owned(); count];
    let cases: [(ReportRequest, &str); 18] = [
        (with(|r| r.report_id = "bad id!".into()), "report_id holds the character ' ', allowed are A-Z a-z 0-9 _ . : -"),
        (with(|r| r.report_id = "a".repeat(65)), "report_id has 65 characters, allowed are 1 to 64"),
        (with(|r| r.report_id.clear()), "report_id has 0 characters, allowed are 1 to 64"),
        (with(|r| r.lease_id.clear()), "lease_id has 0 characters, allowed are 1 to 128"),
        (with(|r| r.lease_id = long(129)), "lease_id has 129 characters, allowed are 1 to 128"),
        (with(|r| r.uri.clear()), "uri has 0 characters, allowed are 1 to 2048"),
        (with(|r| r.uri = long(2049)), "uri has 2049 characters, allowed are 1 to 2048"),
        (with(|r| r.method = long(17)), "method has 17 characters, allowed are 0 to 16"),
        (with(|r| r.http_status = 1000), "http_status is 1000, allowed are 0 to 999"),
        (with(|r| r.http_status = -1), "http_status is -1, allowed are 0 to 999"),
        (with(|r| r.business_code = long(65)), "business_code has 65 characters, allowed are 0 to 64"),
        (with(|r| r.markers = markers(33)), "markers has 33 elements, allowed are 0 to 32"),
        (with(|r| r.markers = vec!["m".into(), String::new()]), "markers[1] has 0 characters, allowed are 1 to 64"),
        (with(|r| r.markers = vec![long(65)]), "markers[0] has 65 characters, allowed are 1 to 64"),
        (with(|r| r.outcome_hint = long(33)), "outcome_hint has 33 characters, allowed are 0 to 32"),
        (with(|r| r.latency_ms = -1), "latency_ms is -1, allowed are 0 to 2147483647"),
        (with(|r| r.response_bytes = -1), "response_bytes is -1, allowed are 0 to 9223372036854775807"),
        (
            with(|r| r.finished_at = "2026-09-16T08:30:09Z".parse().unwrap()),
            "finished_at is 2026-09-16T08:30:09Z, allowed are 2026-09-16T08:30:10Z (started_at) and later",
        ),
    ];
    for (request, found) in cases {
        assert_eq!(refusal(&request), format!("reports[1].{found}"));
    }
    for widest in [
        with(|r| r.report_id = "aZ0_.:-".into()),
        with(|r| r.report_id = "a".repeat(64)),
        with(|r| (r.lease_id, r.uri, r.method) = (long(128), long(2048), long(16))),
        with(|r| (r.http_status, r.latency_ms, r.response_bytes) = (999, i32::MAX, i64::MAX)),
        with(|r| (r.http_status, r.latency_ms, r.response_bytes) = (0, 0, 0)),
        with(|r| (r.business_code, r.outcome_hint) = (long(64), long(32))),
        with(|r| r.markers = vec![long(64); 32]),
        with(|r| r.finished_at = r.started_at),
    ] {
        assert_eq!(refusal(&widest), "nothing");
    }
}

#[test]
fn b057_error_kinds_are_the_eight_words() {
    for kind in ErrorKind::ALL.map(ErrorKind::as_str).into_iter().chain([""]) {
        assert!(is_accepted(&with(|report| report.error_kind = kind.to_owned())), "{kind}");
    }
    for kind in ["TIMEOUT", "reset", " timeout", "timeout ", "Tls"] {
        let found = refusal(&with(|report| report.error_kind = kind.to_owned()));
        let known = "the empty text, timeout, conn_reset, conn_refused, proxy_auth, tls, dns, other";
        assert_eq!(found, format!("reports[1].error_kind is {kind:?}, allowed are {known}"));
    }
}

#[test]
fn b085_debug_forms_show_names_and_counts_only() {
    let lease: AcquireResponse = serde_json::from_value(crate::spinneret::testing::lease("lse_1")).unwrap();
    let text = format!("{lease:?}");
    assert!(
        !format!("{text} {lease:#?}").contains("c4n4ry") && !text.contains("User-Agent") && !text.contains("user:"),
        "{text}"
    );
    let credential = "Credential { cookies: 1, has_cookie_header: true, headers: 1, query: 1, has_json: false, values: 0 }";
    assert_eq!(format!("{:?}", lease.credential), credential);
    let proxy = r#"ProxyAssignment { proxy_id: "pxy_1", kind: "datacenter", region: "de", .. }"#;
    assert_eq!(format!("{:?}", lease.proxy.as_ref().unwrap()), proxy);
    assert!(text.contains("lse_1") && text.contains("idt_1") && text.contains(credential) && text.contains(proxy));

    let request = acquire().uri("https://u:c4n4ry@h/feed?sig=c4n4ry").session_key("c4n4ry");
    let shown =
        r#"AcquireRequest { site: "shop", client: "web", uri: "/feed", endpoint_group: "", has_session_key: true, wait_ms: 0 }"#;
    assert_eq!(format!("{request:?}"), shown);
    assert!(!format!("{:?}", AcquireBatchRequest::new(request, 2)).contains("c4n4ry"));

    let item = ConfigItem { group: "g".into(), key: "k".into(), content: "c4n4ry".into(), version: 3, ..ConfigItem::default() };
    assert_eq!((item.config_key(), WatchItem::from(&item)), (ConfigKey::new("g", "k"), WatchItem::new(("g", "k"), 3)));
    let answers = (GetConfigResponse { item: item.clone() }, WatchConfigResponse { items: vec![item.clone()] });
    let batch = BatchGetConfigResponse { items: vec![item.clone()], missing: vec![] };
    assert!(!format!("{item:?} {answers:?} {batch:?}").contains("c4n4ry") && format!("{item:?}").contains("version: 3"));

    let secret = Secret { path: "a/b".into(), version: 2, value: "c4n4ry".into(), expires_at: None };
    assert_eq!(format!("{secret:?}"), r#"Secret { path: "a/b", version: 2, expires_at: None, .. }"#);

    let report = Report { uri: "/feed?sig=c4n4ry".into(), business_code: "c4n4ry".into(), ..report() };
    let text = format!("{report:?}");
    assert!(!text.contains("c4n4ry") && text.contains("/feed") && text.contains("lse_1") && text.contains("200"), "{text}");
}

#[test]
fn refusals_show_no_secret_content() {
    let canary = |times: usize| "c4n4ry".repeat(times);
    let refusals = [
        refusal(&acquire().session_key(canary(50))),
        refusal(&acquire().uri(canary(400))),
        refusal(&GetSecretRequest::new(format!("{} !", canary(1)))),
        refusal(&with(|report| report.business_code = canary(20))),
        refusal(&with(|report| report.markers = vec![canary(20)])),
        refusal(&with(|report| report.report_id = format!("{} !", canary(1)))),
    ];
    for text in refusals {
        assert!(text != "nothing" && !text.contains("c4n4ry"), "{text}");
    }
}
