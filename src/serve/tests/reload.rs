//! The file that changes while it is served.

use serde_json::json;

use super::faults::own;
use super::stage::{Stage, until};
use crate::serve::file::SAMPLE;
use crate::spinneret::testing::Logs;
use crate::spinneret::{AcquireRequest, Error, WatchConfigRequest, WatchItem};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

const TARGET: &str = "dragline::serve";

/// As editors do: beside it first, then in its place.
fn write(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

#[tokio::test]
async fn keys_tokens_sites_and_identities_follow_the_file_and_books_stay() {
    let logs = Logs::of_target(TARGET);
    let stage = Stage::of(SAMPLE).await;
    let client = stage.client();
    let held = client.acquire(AcquireRequest::new("bookshop", "web")).await.unwrap();
    let changed = SAMPLE.replace("\"reader-3\"", "\"canary-4\"").replace("api_key = \"sample-key\"", "api_key = \"canary-key\"")
        + "[[plane.sites]]\nname = \"wiki\"\n[[plane.sites.identities]]\nname = \"bob\"\ncookies = { sid = \"canary-cookie\" }\n";
    write(&stage.file(), &changed);
    until("the file is read again", || async { logs.count("INFO", "again") == 1 }).await;
    let told = logs.at("INFO").into_iter().find(|line| line.contains("again")).unwrap();
    for part in ["sites added: wiki", "identities added: bookshop/canary-4, wiki/bob", "identities removed: bookshop/reader-3"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!logs.all().iter().any(|line| line.contains("canary-cookie") || line.contains("canary-key")), "names, no values");
    let granted = client.acquire(AcquireRequest::new("wiki", "web")).await.unwrap();
    assert_eq!(granted.credential.cookies["sid"], "canary-cookie");
    assert!(client.release(&held.lease.lease_id).await.unwrap().released, "leases of before go on");
    let ledger = stage.ledger().await;
    assert_eq!((&ledger["sites"]["bookshop"]["acquired"], &ledger["sites"]["bookshop"]["open"]), (&json!(1), &json!(0)));
    for (key, code) in [("sample-key", "unknown_api_key"), ("canary-key", "missing_timestamp")] {
        let head = format!("POST /api/webhook/consume HTTP/1.1\r\ncontent-type: application/json\r\nx-api-key: {key}");
        assert_eq!(stage.ask(&head, b"{}").await.json()["error"]["code"], code);
    }

    // A token that is not there any more is nobody's.
    write(&stage.file(), &changed.replace("samplesample0", "samplesample1"));
    until("the token is gone", || async {
        matches!(client.acquire(AcquireRequest::new("wiki", "web")).await, Err(Error::Unauthenticated(_)))
    })
    .await;
    stage.end().await;
}

#[tokio::test]
async fn an_item_that_changes_in_the_file_wakes_who_watches_it() {
    let with = |content: &str| format!("{SAMPLE}[[plane.config]]\ngroup = \"crawl\"\nkey = \"pace\"\ncontent = \"{content}\"\n");
    let stage = Stage::of(&with("fast")).await;
    let client = stage.client();
    let version = client.get_config("crawl/pace").await.unwrap().version;
    let (items, ()) =
        tokio::join!(client.watch_config(WatchConfigRequest::new([WatchItem::new(("crawl", "pace"), version)])), async {
            sleep(Duration::from_millis(200)).await;
            write(&stage.file(), &with("slow"));
        });
    let items = items.unwrap();
    assert_eq!((&*items[0].content, items[0].version > version), ("slow", true));
    stage.end().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing_and_is_told_of_once() {
    let logs = Logs::of_target(TARGET);
    let stage = Stage::of(SAMPLE).await;
    let client = stage.client();
    let works = || async {
        let granted = client.acquire(AcquireRequest::new("bookshop", "web")).await.unwrap();
        client.release(&granted.lease.lease_id).await.unwrap().released
    };
    let broken = [
        (SAMPLE.replace("clients = [\"web\"]", "clients = \"canary"), "serve.toml:"),
        (SAMPLE.replace("[[plane.sites]]", "[[plane.sights]]"), "sights"),
        (format!("{SAMPLE}[plane.secrets]\n\"a/b\" = {{ file = \"secret.txt\" }}\n"), "secret.txt"),
        (format!("[plane]\nnamespace = \"other\"\n{SAMPLE}"), "namespace"),
    ];
    for (number, (text, part)) in broken.iter().enumerate() {
        write(&stage.file(), text);
        until(part, || async { logs.at("ERROR").len() == number + 1 }).await;
        let told = logs.at("ERROR").pop().unwrap();
        assert!(told.contains(part) && told.contains("before") && !told.contains("canary"), "{told}");
        assert!(works().await);
        if *part == "secret.txt" {
            sleep(Duration::from_millis(2_500)).await;
            assert_eq!(logs.at("ERROR").len(), number + 1, "once");
            // The missing one comes.
            std::fs::write(stage.folder.path().join("secret.txt"), "s3cret\n").unwrap();
            until("it is read", || async { client.get_secret("a/b").await.is_ok() }).await;
            std::fs::write(stage.folder.path().join("secret.txt"), "s3cret-2\n").unwrap();
            until("it is read again", || async { client.get_secret("a/b").await.unwrap().value == "s3cret-2" }).await;
        }
    }
    std::fs::remove_file(stage.file()).unwrap();
    until("it is missed", || async { logs.count("ERROR", "cannot be read") == 2 }).await;
    assert!(works().await);
    stage.end().await;
}

#[tokio::test]
async fn what_everybody_knows_never_comes_to_an_address_for_all() {
    let logs = Logs::of_target(TARGET);
    let stage = Stage::with(&own(), |options| options.listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).await;
    write(&stage.file(), SAMPLE);
    until("it is refused", || async { logs.count("ERROR", "the sample keys and the sample token of") == 1 }).await;
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, stage.address.port()));
    let ledger = stage.ask_at(here, "GET /plane/ledger HTTP/1.1", b"").await.json();
    assert_eq!(ledger["sites"].as_object().unwrap().keys().collect::<Vec<_>>(), ["shop"]);
    stage.end().await;
}

#[tokio::test]
async fn what_is_served_is_told_after_the_address() {
    let logs = Logs::of_target(TARGET);
    let stage = Stage::of(SAMPLE).await;
    let told = logs.at("INFO").join("\n");
    for part in ["jobs.db", "bookshop with 3 identities (reader-1, reader-2, reader-3)", "the token sample of", "/plane/ledger"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains(&format!("SPINNERET_URL=http://{}", stage.address)), "{told}");
    assert!(!logs.all().iter().any(|line| line.contains("spn_") || line.contains("demo-session")), "{told}");
    stage.end().await;
}
