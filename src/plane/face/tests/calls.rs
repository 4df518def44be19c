//! Leases, reports, secrets and tokens, asked by the client of this crate.

use std::collections::BTreeSet;

use super::*;
use crate::spinneret::{AcquireBatchRequest, Error, Report, ReportDraft};

fn draft(lease: &str, id: &str) -> Report {
    let moment = "2026-01-01T00:00:00Z";
    Report {
        report_id: id.to_owned(),
        lease_id: lease.to_owned(),
        uri: "/a".to_owned(),
        http_status: 200,
        ..serde_json::from_value(json!({"started_at": moment, "finished_at": moment})).unwrap()
    }
}

#[tokio::test]
async fn b058_bounds_are_kept_report_by_report() {
    let stage = Stage::new(1).await;
    let lease = stage.client(ALL).acquire(shop()).await.unwrap().lease.lease_id;
    let good = json!({"report_id": "good", "lease_id": lease, "uri": "/", "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:01Z"});
    let bad = |id: &str, field: &str, value: Value| {
        let mut report = good.clone();
        report["report_id"] = id.into();
        report[field] = value;
        report
    };
    let reports = [
        bad("status", "http_status", json!(1000)),
        bad("kind", "error_kind", json!("TIMEOUT")),
        bad("uri", "uri", json!("")),
        bad("time", "finished_at", json!("2025-01-01T00:00:00Z")),
        bad("moment", "started_at", json!(null)),
        bad("latency", "latency_ms", json!(-1)),
        bad("markers", "markers", json!(vec!["m"; 33])),
        good.clone(),
        bad("?", "report_id", json!("no spaces")),
    ];
    let answer = stage.ask("ReportService/Report", ALL, &json!({"reports": reports})).await.json();
    assert_eq!((&answer["accepted"], &answer["duplicated"]), (&json!(1), &json!(0)), "{answer}");
    let rejected = answer["rejected"].as_array().unwrap();
    let ids: Vec<_> = rejected.iter().map(|rejected| rejected["report_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["status", "kind", "uri", "time", "moment", "latency", "markers", "no spaces"]);
    assert!(rejected.iter().all(|rejected| rejected["reason"] == "invalid_argument"), "{answer}");
    for reports in [json!([]), json!(vec![&good; 501])] {
        let answer = stage.ask("ReportService/Report", ALL, &json!({"reports": reports})).await;
        assert_eq!(answer.refused(), refused(400, "invalid_argument", "invalid_argument"));
    }
    stage.end().await;
}

#[tokio::test]
async fn b131_unknown_names_and_uris_have_their_reasons() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    for (request, reason) in [
        (AcquireRequest::new("nowhere", "web"), "site_unknown"),
        (AcquireRequest::new("shop", "fridge"), "client_unknown"),
        (shop().endpoint_group("none"), "endpoint_group_unknown"),
        (shop().uri("search"), "uri_invalid"),
        (shop().uri("/a b"), "uri_invalid"),
    ] {
        let error = client.acquire(request).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        assert_eq!((error.http_status(), error.reason()), (400, reason));
    }
    assert_eq!(stage.ledger().await["acquired"], 0);
    stage.end().await;
}

#[tokio::test]
async fn b149_tokens_are_told_apart_and_their_scopes_kept() {
    let stage = Stage::new(1).await;
    for (number, status, code, reason) in [
        (OTHER, 403, "permission_denied", "scope_missing"),
        (REVOKED, 401, "unauthenticated", "token_revoked"),
        (UNKNOWN, 401, "unauthenticated", "token_invalid"),
    ] {
        let error = stage.client(number).acquire(shop()).await.unwrap_err();
        assert_eq!((error.http_status(), error.code().as_str(), error.reason()), (status, code, reason));
    }
    let body = json!({"site": "shop", "client": "web"}).to_string();
    let none = stage.call("LeaseService/Acquire", "", body.as_bytes()).await;
    assert_eq!(none.refused(), refused(401, "unauthenticated", "session_invalid"));
    let odd = stage.call("LeaseService/Acquire", "\r\nauthorization: Basic YTpi", body.as_bytes()).await;
    assert_eq!(odd.refused(), refused(401, "unauthenticated", "token_invalid"));
    stage.end().await;
}

#[tokio::test]
async fn b150_the_second_call_within_a_second_is_told_when_to_come_again() {
    let stage = Stage::with(2, FaceOptions { clock: Clock::new(|| 1_000_000), ..FaceOptions::default() }).await;
    let client = stage.client(SLOW);
    client.acquire(shop()).await.unwrap();
    let error = client.acquire(shop()).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (429, "rate_limited"));
    assert!(error.retry_after().unwrap() <= Duration::from_secs(1));
    // What cannot be read never comes to the limit, and what is limited is not checked any further.
    assert_eq!(stage.ask("LeaseService/Acquire", SLOW, &json!([])).await.refused(), refused(400, "invalid_argument", ""));
    assert_eq!(
        stage.ask("LeaseService/Acquire", SLOW, &json!({})).await.refused(),
        refused(429, "resource_exhausted", "rate_limited")
    );
    stage.end().await;
}

#[tokio::test]
async fn b151_a_full_gate_sheds_and_nothing_is_consumed() {
    let stage = Stage::with(3, FaceOptions { gate: 4, ..FaceOptions::default() }).await;
    let client = stage.client(ALL);
    let held = stage.face.turnstile.enter(3, Duration::ZERO).await.unwrap();
    let error = client.acquire_batch(AcquireBatchRequest::new(shop(), 2)).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (503, "overloaded"));
    let hint = error.retry_after().unwrap();
    assert!((100..200).contains(&hint.as_millis()), "{hint:?}");
    assert_eq!(stage.ledger().await["acquired"], 0);
    client.acquire(shop()).await.unwrap();
    drop(held);
    assert_eq!(client.acquire_batch(AcquireBatchRequest::new(shop(), 2)).await.unwrap().leases.len(), 2);
    stage.end().await;
}

#[tokio::test]
async fn b152_a_report_counts_once_in_two_calls_and_in_one() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let lease = client.acquire(shop()).await.unwrap().lease.lease_id;
    let answer = client.report(vec![draft(&lease, "r1"), draft(&lease, "r1"), draft(&lease, "r2")]).await.unwrap();
    assert_eq!((answer.accepted, answer.duplicated), (2, 1));
    let answer = client.report(vec![draft(&lease, "r2")]).await.unwrap();
    assert_eq!((answer.accepted, answer.duplicated, answer.rejected.len()), (0, 1, 0));
    stage.end().await;
}

#[tokio::test]
async fn b153_a_report_of_an_unknown_lease_is_rejected_and_the_others_are_kept() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let lease = client.acquire(shop()).await.unwrap().lease.lease_id;
    let foreign = "lse_018f0000000070008000000000000000_1_00";
    let answer = client.report(vec![draft(foreign, "r1"), draft("nonsense", "r2"), draft(&lease, "r3")]).await.unwrap();
    assert_eq!((answer.accepted, answer.rejected.len()), (1, 2));
    for rejected in &answer.rejected {
        assert_eq!((&*rejected.reason, &*rejected.message), ("lease_unknown", "lease is unknown or expired"));
    }
    let ids: BTreeSet<_> = answer.rejected.iter().map(|rejected| &*rejected.report_id).collect();
    assert_eq!(ids, BTreeSet::from(["r1", "r2"]));
    stage.end().await;
}

#[tokio::test]
async fn b179_secrets_have_versions_and_an_expired_one_is_still_told() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let current = client.get_secret("signing/key").await.unwrap();
    assert_eq!((current.version, &*current.value), (2, "s3cret-2"));
    assert_eq!(current.expires_at.unwrap().as_millisecond(), 1000);
    let first = client.get_secret(("signing/key", 1)).await.unwrap();
    assert_eq!((first.version, &*first.value, first.expires_at), (1, "s3cret-1", None));
    assert!(matches!(client.get_secret("signing/other").await, Err(Error::NotFound(_))));
    assert!(matches!(client.get_secret(("signing/key", 3)).await, Err(Error::NotFound(_))));
    assert!(matches!(stage.client(OTHER).get_secret("signing/key").await, Err(Error::PermissionDenied(_))));
    stage.end().await;
}

#[tokio::test]
async fn a_lease_of_the_client_is_acquired_reported_and_released() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let lease = client.lease(shop().uri("/a")).unwrap().acquire().await.unwrap();
    lease.report(ReportDraft::new().uri("/a")).unwrap();
    drop(lease);
    client.close().await;
    let ledger = stage.ledger().await;
    assert_eq!((&ledger["acquired"], &ledger["open"]), (&json!(1), &json!(0)), "{ledger}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once_leave_the_books_even() {
    const CLIENTS: usize = 16;
    const LEASES: usize = 20;
    let stage = Stage::with(12, FaceOptions { gate: 4, ..FaceOptions::default() }).await;
    let work = (0..CLIENTS).map(|number| {
        let client = stage.client(ALL);
        tokio::spawn(async move {
            for lease in 0..LEASES {
                let granted = client.acquire(shop().wait(Duration::from_secs(5))).await.unwrap();
                let report = Report { release: true, ..draft(&granted.lease.lease_id, &format!("{number}-{lease}")) };
                assert_eq!(client.report(vec![report]).await.unwrap().accepted, 1);
            }
        })
    });
    for done in work.collect::<Vec<_>>() {
        done.await.unwrap();
    }
    let ledger = stage.ledger().await;
    let all = json!(CLIENTS * LEASES);
    for (name, count) in
        [("acquired", &all), ("released", &all), ("reports_accepted", &all), ("open", &json!(0)), ("expired", &json!(0))]
    {
        assert_eq!(&ledger[name], count, "{name}: {ledger}");
    }
    stage.end().await;
}
