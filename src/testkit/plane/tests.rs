#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::Duration;

use super::*;
use crate::spinneret::{AcquireRequest, Client, Code, Error, ProxyChoice, RetryPolicy};

const SHOP: &str = r#"
[[sites]]
name = "shop"
[sites.rotation]
max_concurrent_leases = 4

[[sites.identities]]
name = "anna"
cookies = { sid = "secret-of-anna" }
[[sites.identities]]
name = "bert"
headers = { X-Key = "secret-of-bert" }

[[proxies]]
name = "office"
url = "http://u:p@127.0.0.1:9"
max_concurrency = 100
"#;

fn client(plane: &ScriptedPlane) -> Client {
    let builder = Client::builder().url(plane.url()).token(plane.token()).node("test").proxy(ProxyChoice::None);
    builder.retry(RetryPolicy::NO_RETRY).environment(|_| None).build().unwrap()
}

/// Gives the client's own connections the time to see that they were cut.
async fn noticed() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn ask() -> AcquireRequest {
    AcquireRequest::new("shop", "web").uri("/books")
}

#[tokio::test]
async fn every_grant_is_known_and_the_books_balance() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    let lease = client.acquire(ask()).await.unwrap();
    let batch = client.acquire_batch(crate::spinneret::AcquireBatchRequest::new(ask(), 2)).await.unwrap();
    let grants = plane.grants();
    assert_eq!(grants.len(), 1 + batch.leases.len());
    assert_eq!((&*grants[0].lease, &*grants[0].identity), (&*lease.lease.lease_id, &*lease.lease.identity_id));
    assert!(grants.iter().all(|grant| grant.proxy.as_deref() == Some("office") && grant.site == "shop" && grant.is_delivered));
    assert_eq!(plane.ledger().total().open, 3);
    client.release(&lease.lease.lease_id).await.unwrap();
    let ledger = plane.ledger();
    assert_eq!((ledger.total().released, ledger.total().open), (1, 2));
    assert!(ledger.balances());
    assert_eq!(plane.calls(Call::Acquire), Calls { received: 1, refused: 0, served: 1 });
}

#[tokio::test]
async fn one_acquire_in_ten_is_overloaded_with_a_hint_and_the_others_are_granted() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    plane.overload(0.1);
    let mut refused = 0;
    for _ in 0..40 {
        match client.acquire(ask()).await {
            Ok(lease) => drop(client.release(&lease.lease.lease_id).await.unwrap()),
            Err(error) => {
                assert_eq!((error.reason(), error.details().retry_after), ("overloaded", Some(Duration::from_millis(150))));
                refused += 1;
            }
        }
    }
    assert_eq!((refused, plane.calls(Call::Acquire)), (4, Calls { received: 40, refused: 4, served: 36 }));
    let total = plane.ledger().total();
    assert_eq!((total.acquired, total.released, total.open), (36, 36, 0));
}

#[tokio::test]
async fn the_next_acquires_are_refused_with_what_is_asked_for() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    plane.refuse_acquires(1, Refused::new(Code::ResourceExhausted, "no_identity_available").after(Duration::from_secs(3)));
    let error = client.acquire(ask()).await.unwrap_err();
    assert!(matches!(error, Error::NoIdentityAvailable(_)), "{error:?}");
    assert_eq!(error.details().retry_after, Some(Duration::from_secs(3)));
    client.acquire(ask()).await.unwrap();
    plane.reject_tokens();
    assert!(matches!(client.acquire(ask()).await.unwrap_err(), Error::Unauthenticated(_)));
    plane.heal();
    client.acquire(ask()).await.unwrap();
}

#[tokio::test]
async fn calls_that_hang_are_carried_out_when_the_plane_is_healed() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    plane.hang(&[Call::Acquire]);
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.acquire(ask()).await }
    });
    while plane.calls(Call::Acquire).received == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished() && plane.ledger().total().acquired == 0);
    plane.heal();
    waiting.await.unwrap().unwrap();
    assert_eq!(plane.ledger().total().open, 1);
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_a_lease_and_a_call_that_is_lost_does_not() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    plane.lose_answers(&[Call::Acquire], 1);
    let error = client.acquire(ask()).await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(plane.ledger().total().open, 1);
    assert!(!plane.grants()[0].is_delivered);
    plane.trouble(&[Call::Acquire], When::Next(1), Mishap::LoseCall);
    assert!(matches!(client.acquire(ask()).await.unwrap_err(), Error::Transport(_)));
    assert_eq!(plane.ledger().total().open, 1);
    client.acquire(ask()).await.unwrap();
    assert_eq!(plane.ledger().total().open, 2);
}

#[tokio::test]
async fn renewals_fail_and_all_else_goes_on() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    let lease = client.acquire(ask()).await.unwrap().lease.lease_id;
    client.renew(&lease, Duration::from_secs(60)).await.unwrap();
    plane.fail_renewals(Refused::new(Code::FailedPrecondition, "lease_expired"));
    assert_eq!(client.renew(&lease, Duration::from_secs(60)).await.unwrap_err().reason(), "lease_expired");
    client.release(&lease).await.unwrap();
}

#[tokio::test]
async fn a_slow_wire_costs_its_time_there_and_back() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    client.acquire(ask()).await.unwrap();
    plane.set_delay(Duration::from_millis(40));
    let begun = Instant::now();
    client.acquire(ask()).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(80), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_plane_that_restarts_knows_nothing_of_before() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    let lease = client.acquire(ask()).await.unwrap().lease.lease_id;
    plane.pause("shop", "for the test").unwrap();
    plane.restart().unwrap();
    noticed().await;
    assert_eq!(client.release(&lease).await.unwrap_err().reason(), "lease_unknown");
    let after = client.acquire(ask()).await.unwrap().lease.lease_id;
    assert_ne!(lease, after);
    assert_eq!((plane.ledger().total().open, plane.earlier_ledgers()[0].total().open), (1, 1));
    assert_eq!(plane.grants().iter().map(|grant| grant.plane).collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test]
async fn a_plane_that_is_away_refuses_connections_and_keeps_its_leases() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    let lease = client.acquire(ask()).await.unwrap().lease.lease_id;
    plane.go_away();
    noticed().await;
    let Error::Transport(details) = client.acquire(ask()).await.unwrap_err() else { panic!("somebody answers") };
    assert_eq!(details.error_kind, Some(crate::spinneret::ErrorKind::ConnRefused));
    plane.come_back().unwrap();
    client.release(&lease).await.unwrap();
}

#[tokio::test]
async fn sites_breakers_and_items_are_moved_by_hand() {
    let plane = ScriptedPlane::start(SHOP).unwrap();
    let client = client(&plane);
    plane.pause("shop", "moving").unwrap();
    assert!(matches!(client.acquire(ask()).await.unwrap_err(), Error::SitePaused(_)));
    plane.resume("shop").unwrap();
    plane.open_breaker("shop", "web", "_default", None).unwrap();
    assert!(matches!(client.acquire(ask()).await.unwrap_err(), Error::CircuitOpen(_)));
    plane.close_breaker("shop", "web", "_default").unwrap();
    client.acquire(ask()).await.unwrap();
    plane.publish("crawl", "limits", "json", "{\"a\": 1}").unwrap();
    let item = client.get_config("crawl/limits").await.unwrap();
    assert_eq!(item.content, "{\"a\": 1}");
    for error in [
        plane.pause("nobody", ""),
        plane.open_breaker("shop", "web", "nothing", None),
        plane.publish("g", "k", "xml", "").map(drop),
    ] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn a_text_that_is_not_allowed_is_named() {
    let error = ScriptedPlane::start("[[sites]]\nnam = \"shop\"\n").unwrap_err();
    assert!(error.to_string().contains("plane.toml:2"), "{error}");
}

#[tokio::test]
async fn a_token_of_the_file_is_the_one_that_is_taken() {
    let token = format!("spn_{}", "b".repeat(43));
    let text = format!("{SHOP}\n[[tokens]]\nname = \"own\"\ntoken = \"{token}\"\nscopes = [\"lease:acquire\"]\n");
    let plane = ScriptedPlane::start(&text).unwrap();
    assert_eq!(plane.token(), token);
    client(&plane).acquire(ask()).await.unwrap();
}
