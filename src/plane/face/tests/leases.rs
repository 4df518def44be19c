//! The life of leases, breakers and pauses as a caller sees them: codes, reasons, hints.

use std::sync::atomic::{AtomicU64, Ordering};

use super::golden::is_lease_id;
use super::*;

/// A clock that is set by hand.
fn by_hand() -> (Arc<AtomicU64>, FaceOptions) {
    let now = Arc::new(AtomicU64::new(1_800_000_000_000));
    let read = Arc::clone(&now);
    (now, FaceOptions { clock: Clock::new(move || read.load(Ordering::Relaxed)), ..FaceOptions::default() })
}

const ACQUIRE: &str = "LeaseService/Acquire";
const RENEW: &str = "LeaseService/Renew";
const RELEASE: &str = "LeaseService/Release";

fn web() -> Value {
    json!({"site": "shop", "client": "web"})
}

impl Stage {
    async fn lease(&self) -> String {
        let answer = self.ask(ACQUIRE, ALL, &web()).await.json();
        answer["lease"]["lease_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

fn hint(raw: &Raw) -> Option<u64> {
    raw.header("spinneret-retry-after-ms").map(|hint| hint.parse().unwrap())
}

/// The moment of an answer, in ms.
fn expiry(raw: &Raw) -> i64 {
    raw.json()["expires_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[tokio::test]
async fn b134_an_id_has_its_form_and_a_quarter_of_the_time_to_live_is_the_hint() {
    let text = seed_text(2).replace("clients = [\"web\"]", "clients = [\"web\"]\nrotation = { lease_ttl = \"40s\" }");
    let stage = Stage::of(plane_of(&text, "plane.toml"), FaceOptions::default()).await;
    let answer = stage.ask(ACQUIRE, ALL, &web()).await.json();
    assert!(is_lease_id(answer["lease"]["lease_id"].as_str().unwrap()), "{answer}");
    assert_eq!(answer["hints"], json!({"renew_before_ms": 10_000}));
    stage.end().await;
}

#[tokio::test]
async fn b135_a_batch_has_distinct_identities_as_many_as_are_free() {
    let stage = Stage::new(3).await;
    let mut body = web();
    body["count"] = json!(3);
    let answer = stage.ask("LeaseService/AcquireBatch", ALL, &body).await.json();
    let ids = |answer: &Value| {
        let leases = answer["leases"].as_array().unwrap();
        leases
            .iter()
            .map(|lease| lease["lease"]["identity_id"].as_str().unwrap().to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((ids(&answer).len(), &answer["requested"]), (3, &json!(3)));
    let none = stage.ask("LeaseService/AcquireBatch", ALL, &body).await;
    assert_eq!(none.refused(), refused(429, "resource_exhausted", "no_identity_available"));
    for lease in &answer["leases"].as_array().unwrap()[..2] {
        let id = &lease["lease"]["lease_id"];
        assert_eq!(stage.ask(RELEASE, ALL, &json!({"lease_id": id})).await.json(), json!({"released": true}));
    }
    let answer = stage.ask("LeaseService/AcquireBatch", ALL, &body).await.json();
    assert_eq!((ids(&answer).len(), &answer["requested"]), (2, &json!(3)));
    stage.end().await;
}

#[tokio::test]
async fn b137_a_renewal_moves_the_end_never_back_and_not_past_the_cap() {
    let (clock, options) = by_hand();
    let stage = Stage::with(1, options).await;
    let start = i64::try_from(clock.load(Ordering::Relaxed)).unwrap();
    let lease = stage.lease().await;
    let renew = |extend: i64| {
        let body = json!({"lease_id": lease, "extend_ms": extend});
        async { stage.ask(RENEW, ALL, &{ body }).await }
    };
    assert_eq!(expiry(&renew(300_000).await), start + 300_000);
    assert_eq!(expiry(&renew(1).await), start + 300_000);
    assert_eq!(expiry(&renew(1_800_000).await), start + 1_800_000);
    let capped = renew(0).await;
    assert_eq!(capped.refused(), refused(400, "failed_precondition", "lease_lifetime_exceeded"));
    clock.fetch_add(1_800_000, Ordering::Relaxed);
    assert_eq!(renew(0).await.refused(), refused(400, "failed_precondition", "lease_expired"));
    clock.fetch_add(5_000, Ordering::Relaxed);
    stage.face.with_plane(|plane, now| plane.tick(now));
    let next = stage.lease().await;
    assert_eq!(stage.ask(RELEASE, ALL, &json!({"lease_id": next})).await.json(), json!({"released": true}));
    let late = stage.ask(RENEW, ALL, &json!({"lease_id": next})).await;
    assert_eq!(late.refused(), refused(400, "failed_precondition", "lease_released"));
    stage.end().await;
}

#[tokio::test]
async fn b138_a_lease_is_released_once_and_unknown_to_everybody_else() {
    let stage = Stage::new(1).await;
    let lease = stage.lease().await;
    let release = |lease: &str, number| {
        let body = json!({"lease_id": lease});
        let stage = &stage;
        async move { stage.ask(RELEASE, number, &body).await }
    };
    for (lease, number) in [(&*lease, OTHER), ("lse_018f0000000070008000000000000000_1_00", ALL), ("nonsense", ALL)] {
        assert_eq!(release(lease, number).await.refused(), refused(404, "not_found", "lease_unknown"), "{lease}");
    }
    assert_eq!(release(&lease, ALL).await.json(), json!({"released": true}));
    assert_eq!(release(&lease, ALL).await.json(), json!({"released": false}));
    stage.end().await;
}

#[tokio::test]
async fn b144_an_empty_pool_has_a_hint_of_a_minute() {
    let stage = Stage::new(0).await;
    let answer = stage.ask(ACQUIRE, ALL, &web()).await;
    assert_eq!((answer.refused(), hint(&answer)), (refused(429, "resource_exhausted", "no_identity_available"), Some(60_000)));
    stage.end().await;
}

#[tokio::test]
async fn b146_a_pause_keeps_leases_from_being_given_and_nothing_else() {
    let stage = Stage::new(2).await;
    let lease = stage.lease().await;
    assert_eq!(stage.act("pause", &json!({"site": "shop"})).await.json(), json!({"changed": true}));
    assert_eq!(stage.act("pause", &json!({"site": "shop"})).await.json(), json!({"changed": false}));
    let paused = stage.ask(ACQUIRE, ALL, &web()).await;
    assert_eq!((paused.refused(), hint(&paused)), (refused(503, "unavailable", "site_paused"), Some(30_000)));
    assert_eq!(stage.ask(RENEW, ALL, &json!({"lease_id": lease})).await.status, 200);
    let moment = "2026-01-01T00:00:00Z";
    let report =
        json!({"report_id": "r", "lease_id": lease, "uri": "/", "http_status": 200, "started_at": moment, "finished_at": moment});
    assert_eq!(stage.ask("ReportService/Report", ALL, &json!({"reports": [report]})).await.json()["accepted"], 1);
    assert_eq!(stage.ask(RELEASE, ALL, &json!({"lease_id": lease})).await.json(), json!({"released": true}));
    stage.end().await;
}

#[tokio::test]
async fn b147_a_lease_that_cannot_be_rendered_is_taken_back_and_told_as_internal() {
    let text = seed_text(0)
        + "[[sites.identity_types]]\nname = \"keyed\"\nactivation = \"immediate\"\n\
           fields.key = { type = \"secret_ref\", required = true }\ndeliver.headers = { X-Key = \"{{ key }}\" }\n\
           [[sites.identities]]\nname = \"anna\"\ntype = \"keyed\"\npayload = { key = \"signing/key\" }\n";
    let stage = Stage::of(plane_of(&text, "plane.toml"), FaceOptions::default()).await;
    assert!(stage.face.with_plane(|plane, _| plane.config_center().secrets_mut().delete("signing/key")));
    for _ in 0..2 {
        let refusal = stage.ask(ACQUIRE, ALL, &web()).await;
        assert_eq!((refusal.status, refusal.json()["code"].as_str()), (500, Some("internal")), "{refusal:?}");
        assert!(!String::from_utf8_lossy(&refusal.body).contains("s3cret"), "{refusal:?}");
    }
    stage.face.with_plane(|plane, _| plane.config_center().secrets_mut().put("signing/key", "s3cret".into(), None)).unwrap();
    let answer = stage.ask(ACQUIRE, ALL, &web()).await.json();
    assert_eq!(answer["credential"]["headers"], json!({"X-Key": "s3cret"}), "{answer}");
    let ledger = stage.ledger().await;
    assert_eq!((&ledger["acquired"], &ledger["released"], &ledger["open"]), (&json!(3), &json!(2), &json!(1)), "{ledger}");
    stage.end().await;
}

#[tokio::test]
async fn b148_a_lease_without_a_free_proxy_is_refused_with_its_own_reason() {
    let text = seed_text(2) + "[[sites.proxies]]\nname = \"only\"\nurl = \"http://user:pass@10.0.0.1:3128\"\n";
    let stage = Stage::of(plane_of(&text, "plane.toml"), FaceOptions::default()).await;
    let answer = stage.ask(ACQUIRE, ALL, &web()).await.json();
    assert_eq!(
        answer["proxy"],
        json!({"proxy_id": "only", "url": "http://user:pass@10.0.0.1:3128", "kind": "datacenter", "region": ""})
    );
    let none = stage.ask(ACQUIRE, ALL, &web()).await;
    assert_eq!(none.refused(), refused(429, "resource_exhausted", "no_proxy_available"));
    assert!(hint(&none).is_some_and(|hint| hint > 0), "{none:?}");
    stage.end().await;
}

#[tokio::test]
async fn b164_a_report_may_end_its_lease() {
    let stage = Stage::new(1).await;
    let lease = stage.lease().await;
    let moment = "2026-01-01T00:00:00Z";
    let report = json!({"report_id": "r", "lease_id": lease, "uri": "/", "http_status": 200, "started_at": moment, "finished_at": moment, "release": true});
    assert_eq!(stage.ask("ReportService/Report", ALL, &json!({"reports": [report]})).await.json()["accepted"], 1);
    assert_eq!(stage.ask(RELEASE, ALL, &json!({"lease_id": lease})).await.json(), json!({"released": false}));
    let ledger = stage.ledger().await;
    assert_eq!((&ledger["released"], &ledger["open"], &ledger["reports_accepted"]), (&json!(1), &json!(0), &json!(1)));
    stage.lease().await;
    stage.end().await;
}

#[tokio::test]
async fn b165_an_open_breaker_is_refused_with_the_time_that_is_left() {
    let (clock, options) = by_hand();
    let stage = Stage::with(1, options).await;
    let open = json!({"site": "shop", "client": "web", "endpoint_group": "_default", "duration_ms": 60_000});
    assert_eq!(stage.act("breaker/open", &open).await.status, 200);
    clock.fetch_add(15_000, Ordering::Relaxed);
    let refusal = stage.ask(ACQUIRE, ALL, &web()).await;
    assert_eq!((refusal.refused(), hint(&refusal)), (refused(503, "unavailable", "circuit_open"), Some(45_000)));
    clock.fetch_add(45_000, Ordering::Relaxed);
    let answer = stage.ask(ACQUIRE, ALL, &web()).await.json();
    assert_eq!(answer["lease"]["probe"], true, "{answer}");
    stage.end().await;
}

#[tokio::test]
async fn b169_a_breaker_opened_for_good_asks_for_a_minute_until_it_is_closed() {
    let (clock, options) = by_hand();
    let stage = Stage::with(1, options).await;
    let mut place = json!({"site": "shop", "client": "web", "endpoint_group": "_default"});
    assert_eq!(stage.act("breaker/open", &place).await.status, 200);
    for _ in 0..3 {
        let refusal = stage.ask(ACQUIRE, ALL, &web()).await;
        assert_eq!((refusal.refused(), hint(&refusal)), (refused(503, "unavailable", "circuit_open"), Some(60_000)));
        clock.fetch_add(3_600_000, Ordering::Relaxed);
    }
    assert_eq!(stage.act("breaker/close", &place).await.json(), json!({"changed": true}));
    stage.lease().await;
    place["endpoint_group"] = json!("none");
    assert_eq!(stage.act("breaker/close", &place).await.status, 400);
    stage.end().await;
}

#[tokio::test]
async fn b170_the_breakers_list_what_is_not_closed_to_who_may_read_them() {
    let stage = Stage::new(1).await;
    let body = json!({"group": "_runtime", "key": "breakers"});
    let read = || async {
        let item = stage.ask("ConfigService/GetConfig", ALL, &body).await.json()["item"].clone();
        let content: Value = serde_json::from_str(item["content"].as_str().unwrap()).unwrap();
        assert_eq!(item["version"].as_i64().unwrap(), content["version"].as_i64().unwrap() + 1);
        assert_eq!((&item["format"], &item["updated_at"], &content["namespace"]), (&json!("json"), &json!(null), &json!("prod")));
        content
    };
    let before = read().await;
    assert_eq!(before["sites"], json!({"shop": {"paused": false, "groups": {}}}));
    let place = json!({"site": "shop", "client": "web", "endpoint_group": "_default", "duration_ms": 60_000, "reason": "test"});
    assert_eq!(stage.act("breaker/open", &place).await.status, 200);
    let opened = read().await;
    let group = &opened["sites"]["shop"]["groups"]["web/_default"];
    assert_eq!((&group["state"], &group["manual"], &group["reason"]), (&json!("open"), &json!(true), &json!("test")));
    let until = group["open_until"].as_str().unwrap();
    assert!(until.len() == "2026-09-17T10:02:00.000Z".len() && until.ends_with('Z'), "{until}");
    assert!(opened["version"].as_i64() > before["version"].as_i64());
    let stranger = stage.ask("ConfigService/GetConfig", OTHER, &body).await;
    assert_eq!(stranger.refused(), refused(403, "permission_denied", "scope_missing"));
    let none = stage.ask("ConfigService/GetConfig", ALL, &json!({"group": "_runtime", "key": "other"})).await;
    assert_eq!((none.status, none.json()["code"].as_str()), (404, Some("not_found")));
    stage.end().await;
}

#[tokio::test]
async fn a_lease_of_a_caller_who_went_away_is_free_as_soon_as_its_time_is_over() {
    let (clock, options) = by_hand();
    let stage = Stage::with(1, options).await;
    let _lost = stage.lease().await;
    clock.fetch_add(121_000, Ordering::Relaxed);
    stage.face.with_plane(|plane, now| plane.tick(now));
    stage.lease().await;
    let ledger = stage.ledger().await;
    assert_eq!((&ledger["acquired"], &ledger["expired"], &ledger["open"]), (&json!(2), &json!(1), &json!(1)));
    stage.end().await;
}
