//! The served plane, asked by the client of this crate: every call, leases, reports, watches.

use serde_json::json;

use super::stage::{Stage, until};
use crate::serve::file::SAMPLE;
use crate::spinneret::{
    AcquireBatchRequest, AcquireRequest, BatchGetConfigRequest, Error, ReportDraft, WatchConfigRequest, WatchItem, WatcherOptions,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn bookshop() -> AcquireRequest {
    AcquireRequest::new("bookshop", "web")
}

/// The shipped file with an item and a secret.
fn with_items() -> String {
    format!(
        "{SAMPLE}\n[[plane.config]]\ngroup = \"crawl\"\nkey = \"pace\"\ncontent = \"fast\"\n\
         [plane.secrets]\n\"shop/key\" = \"s3cret\"\n"
    )
}

#[tokio::test]
async fn all_nine_calls_are_answered() {
    let stage = Stage::of(&with_items()).await;
    let client = stage.client();
    let granted = client.acquire(bookshop().uri("/books?page=1").session_key("k")).await.unwrap();
    let reader = granted.lease.identity_id.strip_prefix("reader-").unwrap().to_owned();
    assert_eq!(granted.credential.cookies["session"], format!("demo-session-{reader}"));
    assert_eq!(granted.credential.headers["X-Reader"], format!("demo-reader-{reader}"));
    assert!(granted.proxy.is_none());
    let batch = client.acquire_batch(AcquireBatchRequest::new(bookshop(), 3)).await.unwrap();
    assert_eq!((batch.leases.len(), batch.requested), (3, 3));
    let renewed = client.renew(&granted.lease.lease_id, 300 * SECOND).await.unwrap();
    assert!(renewed.expires_at > granted.lease.expires_at);
    let report = ReportDraft::new().uri("/books").build(&granted.lease.lease_id, "").unwrap();
    let reported = client.report(vec![report.clone(), report]).await.unwrap();
    assert_eq!((reported.accepted, reported.duplicated, reported.rejected.len()), (1, 1, 0));
    for lease in batch.leases.iter().chain([&granted]) {
        assert!(client.release(&lease.lease.lease_id).await.unwrap().released);
    }
    assert_eq!(client.get_config("crawl/pace").await.unwrap().content, "fast");
    let items = client.batch_get_config(BatchGetConfigRequest::new(["crawl/pace", "crawl/none"]).unwrap()).await.unwrap();
    assert_eq!((items.items.len(), items.missing.len()), (1, 1));
    let watched = client.watch_config(WatchConfigRequest::new([WatchItem::new(("crawl", "pace"), 0)])).await.unwrap();
    assert_eq!(watched[0].content, "fast");
    assert_eq!(client.get_secret("shop/key").await.unwrap().value, "s3cret");
    let refused = stage.client_with("spn_wrong").acquire(bookshop()).await.unwrap_err();
    assert!(matches!(&refused, Error::Unauthenticated(_)) && refused.reason() == "token_invalid", "{refused}");

    let ledger = stage.ledger().await;
    let books = &ledger["sites"]["bookshop"];
    let names = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ledger), ["sites"]);
    assert_eq!(
        names(books),
        ["acquired", "released", "expired", "open", "reports_accepted", "reports_duplicated", "reports_rejected", "identities"]
    );
    for (name, count) in [
        ("acquired", 4),
        ("released", 4),
        ("expired", 0),
        ("open", 0),
        ("reports_accepted", 1),
        ("reports_duplicated", 1),
        ("reports_rejected", 0),
    ] {
        assert_eq!(books[name], count, "{name}: {ledger}");
    }
    let identities = books["identities"].as_object().unwrap();
    assert_eq!(names(&books["identities"]), ["reader-1", "reader-2", "reader-3"]);
    assert_eq!(identities.values().map(|identity| identity["acquired"].as_u64().unwrap()).sum::<u64>(), 4);
    stage.end().await;
}

#[tokio::test]
async fn leases_reports_and_watches_of_the_client_end_in_even_books() {
    let stage = Stage::of(&with_items()).await;
    let client = stage.client();
    let snapshots = tempfile::tempdir().unwrap();
    let options = || WatcherOptions::new([("crawl", "pace")]).cache_dir(snapshots.path());
    let watcher = client.config_watcher(options()).unwrap();
    watcher.start().await.unwrap();
    assert_eq!(watcher.get(("crawl", "pace")).unwrap().content, "fast");

    for page in 0..20 {
        let lease = client.lease(bookshop().uri("/books").wait(SECOND)).unwrap().acquire().await.unwrap();
        lease.report(ReportDraft::new().uri(format!("/books?page={page}"))).unwrap();
        if page % 2 == 0 {
            lease.report(ReportDraft::new().uri("/redirected")).unwrap();
        }
        // The last report releases.
        drop(lease);
    }
    assert!(client.reporter().flush(Some(5 * SECOND)).await);

    let body = json!({"group": "crawl", "key": "pace", "format": "text", "content": "slow"}).to_string();
    let published = stage.ask("POST /plane/config/publish HTTP/1.1\r\ncontent-type: application/json", body.as_bytes()).await;
    assert_eq!(published.status, 200, "{published:?}");
    until("the watcher hears of it", || async { watcher.get(("crawl", "pace")).unwrap().content == "slow" }).await;
    client.close().await;

    let ledger = stage.ledger().await;
    let books = &ledger["sites"]["bookshop"];
    for (name, count) in [("acquired", 20), ("released", 20), ("open", 0), ("reports_accepted", 30), ("reports_rejected", 0)] {
        assert_eq!(books[name], count, "{name}: {books}");
    }
    let address = stage.address;
    stage.end().await;

    // Nobody is there: what was saved counts.
    let builder =
        crate::spinneret::Client::builder().url(format!("http://{address}")).token(super::super::SAMPLE_TOKEN.to_owned());
    let builder = builder.node("test").proxy(crate::spinneret::ProxyChoice::None).environment(|_| None);
    let late = builder.build().unwrap();
    let watcher = late.config_watcher(options()).unwrap();
    watcher.start().await.unwrap();
    assert!(watcher.is_from_snapshot());
    assert_eq!(watcher.get(("crawl", "pace")).unwrap().content, "slow");
    late.close().await;
}
