//! The client against servers on the loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod faults;
mod proxies;
mod tls;

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::testkit::{ScriptedWebhook, Step};

const MS: Duration = Duration::from_millis(1);
const BODY: &str = r#"{"job_id": 1, "data": {"requests": [], "items": [{"n": 1, "_ts": 7}], "logs": []}}"#;
const KEY: &str = "pk_canary_1234";
const SECRET: &str = "sk_canary_5678";

fn config(url: &str) -> ClientConfig {
    ClientConfig { proxy: ProxyChoice::None, ..ClientConfig::new(url, KEY.into(), SECRET.into()) }
}

/// A client that takes a third of a second for silence.
fn impatient(url: &str) -> Client {
    Client::new(ClientConfig { idle_timeout: 300 * MS, ..config(url) }).unwrap()
}

fn client(url: &str) -> Client {
    Client::new(config(url)).unwrap()
}

async fn post(url: &str) -> Answer {
    checked(client(url).post(BODY.into(), "batch-1").await)
}

/// The answer, without a secret in it.
fn checked(answer: Answer) -> Answer {
    let shown = format!("{answer:?}");
    assert!(!shown.contains("canary"), "{shown}");
    answer
}

/// The reason of an answer that asks for another try without a wait.
fn retried(answer: Answer) -> String {
    match answer {
        Answer::Retry { after: None, why } => why,
        other => panic!("{other:?}"),
    }
}

/// Reads a request to the end of its body; its head.
async fn read_request<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut text = Vec::new();
    loop {
        if stream.read_buf(&mut text).await.unwrap() == 0 {
            return String::new();
        }
        let read = String::from_utf8_lossy(&text);
        if let Some((head, body)) = read.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase().split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse();
            if body.len() >= length.unwrap() {
                return head.to_owned();
            }
        }
    }
}

/// A server that reads a request, answers with these bytes, and then closes or does nothing more.
async fn raw(answer: impl Into<Vec<u8>>, closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = answer.into();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            read_request(&mut stream).await;
            let _ = stream.write_all(&answer).await;
            if !closes {
                kept.push(stream);
            }
        }
    });
    url
}

#[tokio::test]
async fn a_post_has_the_headers_of_the_contract_and_no_others() {
    let server = ScriptedWebhook::start(SECRET).unwrap();
    let client =
        client(&format!("{}/run/ok///", server.url())).with_clock(|| UNIX_EPOCH + Duration::from_millis(1_700_000_000_900));
    assert_eq!(client.post(BODY.into(), "batch-1").await, Answer::Delivered);
    let request = server.requests().remove(0);
    assert_eq!(
        (request.target.as_str(), request.text().as_str(), request.is_signed),
        ("/run/ok/api/webhook/consume", BODY, true)
    );
    let mut headers = request.headers.clone();
    headers.sort();
    let length = BODY.len().to_string();
    let signature = Signer::new(SECRET.into()).sign("1700000000", BODY.as_bytes());
    let host = server.url().replace("http://", "");
    let version = concat!("dragline/", env!("CARGO_PKG_VERSION"));
    let expected = [
        ("accept", "*/*"),
        ("content-length", length.as_str()),
        ("content-type", "application/json"),
        ("host", host.as_str()),
        ("idempotency-key", "batch-1"),
        ("user-agent", version),
        ("x-api-key", KEY),
        ("x-signature", signature.as_str()),
        ("x-timestamp", "1700000000"),
    ];
    let found: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn each_try_is_signed_at_the_time_it_is_sent() {
    let server = ScriptedWebhook::start(SECRET).unwrap();
    let seconds = Arc::new(std::sync::atomic::AtomicU64::new(1_700_000_000));
    let read = Arc::clone(&seconds);
    let client = client(&server.url())
        .with_clock(move || UNIX_EPOCH + Duration::from_secs(read.load(std::sync::atomic::Ordering::Relaxed)));
    let (first, second) = (client.post(BODY.into(), "a"), client.post(BODY.into(), "a"));
    assert_eq!(first.await, Answer::Delivered);
    seconds.store(1_700_000_060, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(second.await, Answer::Delivered);
    let requests = server.requests();
    let stamps: Vec<_> =
        requests.iter().map(|request| (request.header("x-timestamp"), request.is_signed, request.key())).collect();
    assert_eq!(stamps, [(Some("1700000000"), true, Some("a")), (Some("1700000060"), true, Some("a"))]);
}

#[tokio::test]
async fn one_connection_serves_all_posts() {
    let script = (0..20).map(|n| match n % 4 {
        0 => Step::Answer(200),
        1 => Step::Answer(500),
        2 => Step::AnswerWith { status: 200, headers: vec![], body: "x".repeat(60_000) },
        _ => Step::Answer(204),
    });
    let server = ScriptedWebhook::with_script(SECRET, script).unwrap();
    let client = client(&server.url());
    for n in 0..20 {
        let answer = client.clone().post(BODY.into(), &n.to_string()).await;
        assert_eq!(answer == Answer::Delivered, n % 4 != 1, "{answer:?}");
    }
    assert_eq!((server.calls(), server.connections()), (20, 1));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_meanwhile_costs_nothing() {
    let client = client(&raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true).await);
    for _ in 0..3 {
        assert_eq!(client.post(BODY.into(), "a").await, Answer::Delivered);
        tokio::time::sleep(100 * MS).await;
    }
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let server = ScriptedWebhook::start(SECRET).unwrap();
    let body = format!("[{}]", "1, ".repeat(1_000_000));
    assert_eq!(client(&server.url()).post(body.clone().into(), "a").await, Answer::Delivered);
    let request = server.requests().remove(0);
    assert_eq!((request.text() == body, request.is_signed), (true, true));
    assert_eq!(request.header("content-length"), Some(body.len().to_string().as_str()));
}

#[test]
fn a_client_runs_on_the_thread_that_polls_it() {
    let server = ScriptedWebhook::start(SECRET).unwrap();
    let client = client(&server.url());
    for _ in 0..2 {
        // The connection of a runtime that is gone is not used again.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(client.post(BODY.into(), "a")), Answer::Delivered);
    }
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_sent() {
    let refused = |config: ClientConfig| {
        let error = Client::new(config).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        error.to_string()
    };
    assert!(refused(config("https://h/?canary")).contains("APCLOUDY_URL"));
    for (api_key, secret_key, setting) in [("", SECRET, "APCLOUDY_API_KEY"), (KEY, "", "APCLOUDY_SECRET_KEY")] {
        let config = ClientConfig { api_key: api_key.into(), secret_key: secret_key.into(), ..config("https://h") };
        assert!(refused(config).starts_with(&format!("{setting} is empty")));
    }
    for key in ["canary\n", "canary-ж"] {
        assert!(refused(ClientConfig { api_key: key.into(), ..config("https://h") }).starts_with("APCLOUDY_API_KEY holds"));
    }
    for proxy in ["ftp://user:canary@h:1", "http://user:canary@[zz]:1"] {
        let config = ClientConfig { proxy: ProxyChoice::Url(proxy.into()), ..config("https://h") };
        assert!(refused(config).contains("the proxy's URL"));
    }
    let config = ClientConfig { extra_ca: Some("/nowhere/certs.pem".into()), ..config("https://h") };
    assert!(refused(config).contains("/nowhere/certs.pem"));
}

#[tokio::test]
async fn keys_show_nowhere() {
    for url in ["https://user:canary@h", "https://h/?key=canary", "canary"] {
        assert!(!format!("{:?}", config(url)).contains("canary"), "{url}");
    }
    let proxy = ProxyChoice::Url("http://user:canary@127.0.0.1:1".into());
    let config = ClientConfig { proxy, ..config("http://127.0.0.1:1") };
    let client = Client::new(config.clone()).unwrap();
    let answer = client.post(BODY.into(), "a").await;
    for shown in [format!("{config:?}"), format!("{client:?}"), format!("{answer:?}"), format!("{:?}", client.shared.api_key)] {
        assert!(!shown.contains("canary"), "{shown}");
    }
    // A server that repeats what it was sent, the key across the end of what is shown.
    for pad in [0, 150, 180, 195, 300] {
        let echo = format!("{}{KEY} {SECRET}", "x".repeat(pad));
        let server =
            ScriptedWebhook::with_script(SECRET, [Step::AnswerWith { status: 401, headers: vec![], body: echo }]).unwrap();
        let Answer::Fatal { why } = post(&server.url()).await else { panic!() };
        assert!(!why.contains("pk_c") && !why.contains("sk_c"), "{why}");
    }
}

#[tokio::test]
async fn an_id_that_no_header_can_carry_is_refused() {
    assert!(matches!(client("http://127.0.0.1:1").post(BODY.into(), "a\nb").await, Answer::Reject { .. }));
}
