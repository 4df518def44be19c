//! What is wrong around calls, at the one address of webhook and plane.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::super::SAMPLE_TOKEN;
use super::stage::{Stage, read};
use crate::serve::file::SAMPLE;
use crate::spinneret::{AcquireRequest, WatchConfigRequest, WatchItem};

const ACQUIRE: &str = "POST /spinneret.v1.LeaseService/Acquire HTTP/1.1";
const TENTH: Duration = Duration::from_millis(100);

/// A file without anything that everybody knows.
pub(super) fn own() -> String {
    format!(
        "[[keys]]\napi_key = \"own\"\nsecret_key = \"own\"\n[[plane.tokens]]\nname = \"own\"\ntoken = \"spn_{}\"\n\
         scopes = [\"lease:acquire\", \"report:write\", \"config:read\"]\n[[plane.sites]]\nname = \"shop\"\n\
         [[plane.sites.identities]]\nname = \"anna\"\ncookies = {{ sid = \"a\" }}\n",
        "o".repeat(43)
    )
}

#[tokio::test]
async fn each_half_refuses_in_its_own_words() {
    let stage = Stage::with(SAMPLE, |options| options.max_body = 10_000).await;
    let json_type = "\r\ncontent-type: application/json";
    let large = vec![b' '; 8 << 20 | 1];
    for (head, body, status, part) in [
        ("GET / HTTP/1.1".to_owned(), &b""[..], 404, "not_found"),
        ("POST /spinneret.v1.LeaseService/Borrow HTTP/1.1".to_owned(), b"{}", 404, "nothing here"),
        ("GET /api/webhook/consume HTTP/1.1".to_owned(), b"", 405, "method_not_allowed"),
        ("GET /spinneret.v1.LeaseService/Acquire HTTP/1.1".to_owned(), b"", 405, ""),
        ("POST /plane/ledger HTTP/1.1".to_owned(), b"", 405, "GET"),
        ("POST /api/webhook/consume HTTP/1.1\r\ncontent-type: text/plain".to_owned(), b"x", 415, "unsupported_media_type"),
        (format!("{ACQUIRE}\r\ncontent-type: application/grpc"), b"{}", 415, ""),
        (format!("POST /api/webhook/consume HTTP/1.1{json_type}"), &large[..10_001], 413, "--max-body"),
        (format!("{ACQUIRE}{json_type}"), &large, 429, "resource_exhausted"),
        (format!("{ACQUIRE}{json_type}"), b"{}", 401, "unauthenticated"),
        (format!("POST /api/webhook/consume HTTP/1.1{json_type}"), b"{}", 401, "missing_api_key"),
        (format!("GET /{} HTTP/1.1", "x".repeat(9_000)), b"", 414, "address_too_long"),
    ] {
        let raw = stage.ask(&head, body).await;
        assert_eq!(raw.status, status, "{head}: {raw:?}");
        assert!(raw.body.contains(part) && raw.body.is_empty() == part.is_empty(), "{head}: {raw:?}");
    }
    stage.end().await;
}

#[tokio::test]
async fn the_ledger_is_for_this_machine_whatever_it_listens_on() {
    let stage = Stage::with(&own(), |options| options.listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).await;
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, stage.address.port()));
    let ledger = "GET /plane/ledger HTTP/1.1";
    assert_eq!(stage.ask_at(here, ledger, b"").await.status, 200);
    for header in ["host: rebound.example", "origin: http://rebound.example", "x-forwarded-for: 10.0.0.1"] {
        assert_eq!(stage.ask_at(here, &format!("{ledger}\r\n{header}"), b"").await.status, 403, "{header}");
        let pause = format!("POST /plane/pause HTTP/1.1\r\ncontent-type: application/json\r\n{header}");
        assert_eq!(stage.ask_at(here, &pause, br#"{"site": "shop"}"#).await.status, 403, "{header}");
    }
    // From an address of this machine that others could have too, if it has one.
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()));
    if let Ok(own) = own
        && !own.ip().is_loopback()
        && !own.ip().is_unspecified()
    {
        let outside = SocketAddr::new(own.ip(), here.port());
        assert_eq!(stage.ask_at(outside, &format!("{ledger}\r\nhost: 127.0.0.1"), b"").await.status, 403);
        assert_eq!(stage.ask_at(outside, "GET /healthz HTTP/1.1", b"").await.status, 200);
    }
    stage.end().await;
}

#[tokio::test]
async fn a_flood_of_slow_connections_does_not_keep_others_from_their_leases() {
    let stage = Stage::with(SAMPLE, |options| options.connections = 32).await;
    let client = stage.client();
    let held = client.acquire(AcquireRequest::new("bookshop", "web")).await.unwrap();
    let mut flood = Vec::new();
    for number in 0..100 {
        let mut stream = TcpStream::connect(stage.address).await.unwrap();
        let half = if number % 2 == 0 { "POST /spinneret.v1.LeaseServ" } else { "" };
        let _ = stream.write_all(half.as_bytes()).await;
        flood.push(stream);
    }
    sleep(11 * TENTH).await;
    let begin = Instant::now();
    for _ in 0..20 {
        let granted = client.acquire(AcquireRequest::new("bookshop", "web")).await.unwrap();
        assert!(client.release(&granted.lease.lease_id).await.unwrap().released);
    }
    assert!(begin.elapsed() < 10 * TENTH, "{:?}", begin.elapsed());
    assert!(client.release(&held.lease.lease_id).await.unwrap().released);
    drop(flood);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_calls_wait_and_others_are_answered_at_once() {
    const WAITING: usize = 2_000;
    let stage = Stage::with(SAMPLE, |options| options.connections = WAITING + 50).await;
    let body = json!({"items": [{"group": "crawl", "key": "none", "version": 0}], "timeout_ms": 30_000}).to_string();
    let head = format!(
        "POST /spinneret.v1.ConfigService/WatchConfig HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         authorization: Bearer {SAMPLE_TOKEN}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut waiting = Vec::new();
    for _ in 0..WAITING {
        let mut stream = TcpStream::connect(stage.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    let client = stage.client();
    let begin = Instant::now();
    for _ in 0..10 {
        let granted = client.acquire(AcquireRequest::new("bookshop", "web")).await.unwrap();
        assert!(client.release(&granted.lease.lease_id).await.unwrap().released);
    }
    assert!(begin.elapsed() < 20 * TENTH, "{:?}", begin.elapsed());
    // One change ends them all.
    let item = json!({"group": "crawl", "key": "none", "format": "text", "content": "now"}).to_string();
    let published = stage.ask("POST /plane/config/publish HTTP/1.1\r\ncontent-type: application/json", item.as_bytes()).await;
    assert_eq!(published.status, 200, "{published:?}");
    for mut stream in waiting {
        let raw = read(&mut stream).await;
        assert_eq!((raw.status, &raw.json()["items"][0]["content"]), (200, &json!("now")), "{raw:?}");
    }
    stage.end().await;
}

#[tokio::test]
async fn a_stop_ends_what_waits_and_lets_short_calls_end() {
    let stage = Stage::of(&own()).await;
    let token = format!("spn_{}", "o".repeat(43));
    let (client, other) = (stage.client_with(&token), stage.client_with(&token));
    let held = client.acquire(AcquireRequest::new("shop", "web")).await.unwrap();
    let watch =
        tokio::spawn(async move { client.watch_config(WatchConfigRequest::new([WatchItem::new(("crawl", "none"), 0)])).await });
    let acquire =
        tokio::spawn(async move { other.acquire(AcquireRequest::new("shop", "web").wait(Duration::from_secs(5))).await });
    let length = br#"{"lease_id": ""}"#.len() + held.lease.lease_id.len();
    let mut slow = TcpStream::connect(stage.address).await.unwrap();
    let head = format!(
        "POST /spinneret.v1.LeaseService/Release HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         authorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n{{\"lease_id\""
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    sleep(2 * TENTH).await;
    let rest = format!(": \"{}\"}}", held.lease.lease_id);
    let (took, raw) = tokio::join!(stage.end(), async {
        sleep(3 * TENTH).await;
        slow.write_all(rest.as_bytes()).await.unwrap();
        read(&mut slow).await
    });
    assert_eq!((raw.status, raw.json()), (200, json!({"released": true})), "{raw:?}");
    assert!(raw.head.contains("connection: close"), "{raw:?}");
    assert!(took < 15 * TENTH, "{took:?}");
    let watched = watch.await.unwrap().unwrap_err();
    assert_eq!((watched.http_status(), watched.code().as_str()), (499, "canceled"));
    let acquired = acquire.await.unwrap().unwrap_err();
    assert_eq!((acquired.http_status(), acquired.reason()), (429, "no_identity_available"));
}
