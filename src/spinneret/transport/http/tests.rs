//! The transport against sockets of the loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::net::TcpListener;

use super::*;
use crate::spinneret::error::Error;
use crate::spinneret::error_kind::ErrorKind;
use crate::spinneret::transport::Phase;
use crate::spinneret::transport::loopback::{Act, Identity, LEAF, Loopback, SELF_SIGNED, answer, nobody};
use crate::via::ProxyChoice;

const MS: Duration = Duration::from_millis(1);
const READ: Duration = Duration::from_millis(300);
const TOKEN: &str = "spn_c4n4ry";
const CA: &str = include_str!("../../../../tests/data/tls/private_ca.pem");

fn line() -> Line {
    let timeouts = Timeouts { connect: 400 * MS, read: READ, write: 500 * MS, ..Timeouts::default() };
    Line { timeouts, ca_files: Vec::new(), via: None, connections: 100 }
}

fn salutation() -> Salutation {
    Salutation {
        authorization: bearer(&TOKEN.into()).unwrap(),
        node: HeaderValue::from_static("node-1"),
        user_agent: HeaderValue::from_static("crawl/7 dragline-spinneret/0"),
    }
}

fn transport(url: &str) -> HttpTransport {
    HttpTransport::new(&url.parse().unwrap(), salutation(), line()).unwrap()
}

fn trusting(url: &str, pem: &str) -> HttpTransport {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, pem).unwrap();
    HttpTransport::new(&url.parse().unwrap(), salutation(), Line { ca_files: vec![file], ..line() }).unwrap()
}

fn through(proxy: &str, url: &str) -> HttpTransport {
    let url: Url = url.parse().unwrap();
    let via = Via::of(&ProxyChoice::Url(proxy.into()), |_| None, &url).unwrap();
    HttpTransport::new(&url, salutation(), Line { via, ..line() }).unwrap()
}

fn attempt(procedure: Procedure) -> Attempt {
    Attempt { procedure, body: Bytes::from_static(br#"{"lease_id":"lse_1"}"#), read_timeout: READ }
}

async fn fault_of(transport: &HttpTransport) -> (ErrorKind, Phase, String) {
    let fault = transport.send(attempt(Procedure::Release)).await.err().expect("an answer");
    let shown = format!("{fault:?} {:?} {transport:?}", fault.source.as_ref().map(ToString::to_string));
    assert!(!shown.contains("c4n4ry"), "{shown}");
    (fault.kind, fault.phase, fault.message)
}

#[tokio::test]
async fn b010_a_call_is_a_post_with_the_headers_of_the_contract() {
    let server = Loopback::start(vec![]).await;
    let reply = transport(&server.url()).send(attempt(Procedure::Acquire)).await.ok().unwrap();
    assert_eq!((reply.status, &*reply.body), (200, b"{}".as_slice()));
    let got = &server.got()[0];
    assert!(got.head.starts_with("POST /spinneret.v1.LeaseService/Acquire HTTP/1.1\r\n"), "{}", got.head);
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("accept-encoding", "gzip"),
        ("connect-protocol-version", "1"),
        ("authorization", "Bearer spn_c4n4ry"),
        ("x-spinneret-node", "node-1"),
        ("user-agent", "crawl/7 dragline-spinneret/0"),
        ("content-length", "20"),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
    for never in ["x-spinneret-tenant", "x-spinneret-csrf", "cookie", "referer"] {
        assert_eq!(got.header(never), None, "{never}");
    }
    assert_eq!(got.body, br#"{"lease_id":"lse_1"}"#);
}

#[tokio::test]
async fn b011_the_prefix_of_the_base_stays_for_every_call() {
    let server = Loopback::start(vec![]).await;
    for prefix in ["/sp", "/sp/", "/a/b"] {
        let transport = transport(&format!("{}{prefix}", server.url()));
        for procedure in Procedure::ALL {
            transport.send(attempt(procedure)).await.ok().unwrap();
            let path = format!("POST {}/{} HTTP", prefix.trim_end_matches('/'), procedure.path());
            assert!(server.got().last().unwrap().head.starts_with(&path), "{path}");
        }
    }
}

#[tokio::test]
async fn connections_are_kept_and_cookies_are_not() {
    let cookie = answer(200, "Set-Cookie: session=1; Path=/\r\n", b"{}");
    let server = Loopback::start(vec![Act::Answer(cookie)]).await;
    let transport = transport(&server.url());
    for _ in 0..3 {
        transport.send(attempt(Procedure::Renew)).await.ok().unwrap();
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(server.got()[2].header("cookie"), None);
}

#[tokio::test]
async fn a_call_waits_for_a_free_connection_and_then_gives_up_with_nothing_sent() {
    let server = Loopback::start(vec![Act::Hang(vec![])]).await;
    let timeouts = Timeouts { pool: 100 * MS, ..line().timeouts };
    let line = Line { timeouts, connections: 1, ..line() };
    let transport = HttpTransport::new(&server.url().parse().unwrap(), salutation(), line).unwrap();
    let (first, second) = tokio::join!(transport.send(attempt(Procedure::Renew)), fault_of(&transport));
    assert_eq!(first.err().unwrap().phase, Phase::Ambiguous);
    assert_eq!((second.0, second.1), (ErrorKind::Timeout, Phase::Unsent));
    assert!(second.2.contains("became free within 0.1 s") && second.2.contains("max_connections"), "{}", second.2);
    assert!(transport.send(attempt(Procedure::Renew)).await.is_ok(), "the place of the first is free again");
    assert_eq!(server.got().len(), 2);
}

#[tokio::test]
async fn of_a_page_without_end_the_status_and_the_beginning_are_kept() {
    let page = answer(503, "", &vec![b'x'; 3 * LARGEST_PAGE]);
    let whole = answer(200, "", &vec![b' '; 3 * LARGEST_PAGE]);
    let server = Loopback::start(vec![Act::Answer(page), Act::Answer(whole)]).await;
    let transport = transport(&server.url());
    let reply = transport.send(attempt(Procedure::Acquire)).await.ok().unwrap();
    assert_eq!(reply.status, 503);
    assert!((1..=LARGEST_PAGE).contains(&reply.body.len()), "{}", reply.body.len());
    let reply = transport.send(attempt(Procedure::Acquire)).await.ok().unwrap();
    assert_eq!((reply.status, reply.body.len()), (200, 3 * LARGEST_PAGE));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let server = Loopback::start(vec![Act::Answer(answer(307, "Location: /elsewhere\r\n", b""))]).await;
    let reply = transport(&server.url()).send(attempt(Procedure::Renew)).await.ok().unwrap();
    assert_eq!((reply.status, server.got().len()), (307, 1));
}

fn zip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn b029_an_answer_packed_with_gzip_is_unpacked() {
    let plain = format!(r#"{{"items":[],"filler":"{}"}}"#, "0123456789".repeat(5_000));
    let packed = answer(200, "Content-Encoding: gzip\r\n", &zip(plain.as_bytes()));
    let server = Loopback::start(vec![
        Act::Answer(packed.clone()),
        Act::Drip(packed, MS / 10),
        Act::Answer(answer(200, "", plain.repeat(8).as_bytes())),
    ])
    .await;
    let transport = transport(&server.url());
    let patient = || Attempt { read_timeout: Duration::from_secs(20), ..attempt(Procedure::WatchConfig) };
    for _ in 0..2 {
        let reply = transport.send(patient()).await.ok().unwrap();
        assert!(reply.body == plain.as_bytes());
    }
    let reply = transport.send(patient()).await.ok().unwrap();
    assert!(reply.body == plain.repeat(8).as_bytes(), "in many pieces, not packed");
}

#[tokio::test]
async fn a_packed_answer_that_cannot_be_unpacked_is_permanent_and_a_packed_error_keeps_its_status() {
    let server = Loopback::start(vec![
        Act::Answer(answer(200, "Content-Encoding: gzip\r\n", b"no gzip")),
        Act::Answer(answer(200, "Content-Encoding: br\r\n", b"x")),
        Act::Answer(answer(200, "Content-Encoding: gzip\r\n", &zip(&vec![b' '; LARGEST + 1]))),
        Act::Answer(answer(502, "Content-Encoding: br\r\n", b"x")),
    ])
    .await;
    let transport = transport(&server.url());
    for words in ["damaged", "coded as \"br\"", "larger than 64 MiB"] {
        let (kind, phase, message) = fault_of(&transport).await;
        assert_eq!((kind, phase), (ErrorKind::Other, Phase::Permanent), "{message}");
        assert!(message.contains(words), "{message}");
    }
    let reply = transport.send(attempt(Procedure::Renew)).await.ok().unwrap();
    assert_eq!((reply.status, reply.body.len()), (502, 0));
}

#[tokio::test]
async fn a_refused_connection_sent_nothing() {
    let addr = nobody().await;
    let (kind, phase, message) = fault_of(&transport(&format!("http://{addr}"))).await;
    assert_eq!((kind, phase), (ErrorKind::ConnRefused, Phase::Unsent));
    assert_eq!(message, format!("connection refused ({addr})"));
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_sent_nothing() {
    let (kind, phase, message) = fault_of(&transport("http://nowhere.invalid:81")).await;
    assert_eq!((kind, phase), (ErrorKind::Dns, Phase::Unsent));
    assert_eq!(message, "the name of nowhere.invalid:81 cannot be resolved");
}

/// A socket whose queue is full takes no further connection, and says nothing.
#[tokio::test]
async fn a_connection_that_does_not_come_about_in_time_sent_nothing() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = tokio::time::timeout(100 * MS, tokio::net::TcpStream::connect(addr)).await {
        waiting.push(stream.unwrap());
    }
    let begin = Instant::now();
    let (kind, phase, message) = fault_of(&transport(&format!("http://{addr}"))).await;
    assert_eq!((kind, phase), (ErrorKind::Timeout, Phase::Unsent));
    assert_eq!(message, format!("no connection to {addr} within 0.4 s"));
    assert!(begin.elapsed() < 3_000 * MS, "{:?}", begin.elapsed());
}

/// What the server does with a request that it has read, how that fails, and what is said of it.
#[tokio::test]
async fn an_end_after_the_request_leaves_it_open_whether_it_was_served() {
    let (half_head, half_body) = (b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(), answer(200, "", b"{\"a\":1}")[..80].to_vec());
    for (name, act, kind, words) in [
        ("hangs", Act::Hang(vec![]), ErrorKind::Timeout, "no answer from 127.0.0.1:"),
        ("hangs in the head", Act::Hang(half_head.clone()), ErrorKind::Timeout, "no answer from 127.0.0.1:"),
        ("hangs in the body", Act::Hang(half_body.clone()), ErrorKind::Timeout, "did not come to its end within 0.3 s"),
        ("resets", Act::Reset(vec![]), ErrorKind::ConnReset, "connection was reset (127.0.0.1:"),
        ("resets in the head", Act::Reset(half_head.clone()), ErrorKind::ConnReset, "connection was reset (127.0.0.1:"),
        ("resets in the body", Act::Reset(half_body.clone()), ErrorKind::ConnReset, "connection was reset (127.0.0.1:"),
        ("closes", Act::Close(vec![]), ErrorKind::ConnReset, "closed before the answer was complete"),
        ("closes in the head", Act::Close(half_head), ErrorKind::ConnReset, "closed before the answer was complete"),
        ("closes in the body", Act::Close(half_body), ErrorKind::ConnReset, "closed before the answer was complete"),
        ("speaks no HTTP", Act::Close(b"SSH-2.0-x\r\n".to_vec()), ErrorKind::ConnReset, "the answer is not HTTP"),
    ] {
        let server = Loopback::start(vec![act]).await;
        let begin = Instant::now();
        let (found, phase, message) = fault_of(&transport(&server.url())).await;
        assert_eq!((found, phase), (kind, Phase::Ambiguous), "{name}: {message}");
        assert!(message.contains(words), "{name}: {message}");
        assert!(begin.elapsed() < 3_000 * MS, "{name}: {:?}", begin.elapsed());
        assert_eq!(server.got().len(), 1, "{name}: nothing is sent twice");
    }
}

/// What the system said is among the causes of the error that the caller gets.
#[tokio::test]
async fn b040_the_cause_behind_a_broken_connection_is_kept() {
    use std::io::ErrorKind::{ConnectionRefused, ConnectionReset};
    let server = Loopback::start(vec![Act::Reset(vec![])]).await;
    let gone = nobody().await;
    for (url, cause) in [(server.url(), ConnectionReset), (format!("http://{gone}"), ConnectionRefused)] {
        let fault = transport(&url).send(attempt(Procedure::Acquire)).await.err().unwrap();
        let error = Error::transport(Procedure::Acquire, fault);
        let chain = std::iter::successors(std::error::Error::source(&error), |link| link.source());
        let said: Vec<std::io::ErrorKind> =
            chain.filter_map(|link| Some(link.downcast_ref::<std::io::Error>()?.kind())).collect();
        assert_eq!(said.last(), Some(&cause), "{said:?}");
    }
}

/// Whatever the error says: a body that no connection asked for was not sent.
#[tokio::test]
async fn a_body_that_was_never_asked_for_was_not_sent() {
    let about = transport("http://h").about;
    for (has_begun, phase) in [(false, Phase::Unsent), (true, Phase::Ambiguous)] {
        let server = Loopback::start(vec![Act::Reset(vec![])]).await;
        let http = http(&line()).unwrap();
        let error = http.post(server.url()).body("{}").send().await.unwrap_err();
        let fault = about.fault(error, has_begun);
        assert_eq!((fault.kind, fault.phase), (ErrorKind::ConnReset, phase));
    }
}

/// The connection is kept after the first answer, and the server closes it when the next request begins to come.
#[tokio::test]
async fn a_kept_connection_that_is_closed_while_a_request_is_on_its_way_leaves_it_open() {
    let server = Loopback::start(vec![Act::AnswerThenClose(answer(200, "", b"{}"))]).await;
    let transport = transport(&server.url());
    transport.send(attempt(Procedure::Release)).await.ok().unwrap();
    let (kind, phase, message) = fault_of(&transport).await;
    assert_eq!((kind, phase), (ErrorKind::ConnReset, Phase::Ambiguous), "{message}");
    assert_eq!((server.got().len(), server.connections()), (1, 1));
}

/// Closed while it was not used: the request goes out on another connection, and once only.
#[tokio::test]
async fn a_kept_connection_that_was_closed_meanwhile_is_replaced() {
    let server = Loopback::start(vec![Act::Close(answer(200, "", b"{}")), Act::Close(answer(200, "", b"{}"))]).await;
    let transport = transport(&server.url());
    for round in 1..=3 {
        transport.send(attempt(Procedure::Acquire)).await.ok().unwrap();
        assert_eq!((server.got().len(), server.connections()), (round, round));
        tokio::time::sleep(20 * MS).await;
    }
}

/// Closed at the very moment at which it is used: each request is answered, or fails in a way that says what is known.
#[tokio::test]
async fn the_race_with_a_closing_connection_never_sends_a_request_twice() {
    let acts = (0..200).map(|_| Act::Close(answer(200, "", b"{}"))).collect();
    let server = Loopback::start(acts).await;
    let transport = transport(&server.url());
    let (mut answered, mut lost) = (0, 0);
    for _ in 0..100 {
        match transport.send(attempt(Procedure::Acquire)).await {
            Ok(_) => answered += 1,
            Err(fault) => {
                assert_eq!(fault.phase, Phase::Ambiguous, "{}", fault.message);
                lost += 1;
            }
        }
    }
    assert_eq!(answered + lost, 100);
    assert!(server.got().len() <= 100 && server.got().len() >= answered, "{answered} {lost}");
}

#[tokio::test]
async fn a_slow_answer_is_taken_as_long_as_it_moves() {
    let server = Loopback::start(vec![Act::Drip(answer(200, "", b"{}"), 10 * MS)]).await;
    let mut attempt = attempt(Procedure::Release);
    attempt.read_timeout = Duration::from_secs(2);
    assert_eq!(transport(&server.url()).send(attempt).await.ok().unwrap().body, "{}");
}

/// The bound for all of a body, on the paused clock: the socket is real, and each piece comes in time.
#[tokio::test(start_paused = true)]
async fn a_dripping_answer_ends_after_a_minute() {
    let mut drip = answer(200, "", &[b' '; 5_000]);
    let head = drip.len() - 5_000;
    drip.truncate(head + 2_000);
    let server = Loopback::start(vec![Act::Drip(drip, 250 * MS)]).await;
    let mut transport = transport(&server.url());
    transport.about.timeouts.read = Duration::from_secs(600);
    let mut attempt = attempt(Procedure::Release);
    attempt.read_timeout = Duration::from_secs(600);
    let fault = transport.send(attempt).await.err().unwrap();
    assert_eq!((fault.kind, fault.phase), (ErrorKind::Timeout, Phase::Ambiguous));
    assert!(fault.message.ends_with("did not come to its end within 60 s"), "{}", fault.message);
}

#[tokio::test]
async fn a_server_that_takes_no_byte_of_a_large_request_ends_the_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let held = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(stream);
    });
    let mut attempt = attempt(Procedure::Report);
    attempt.body = Bytes::from(vec![b' '; 64 << 20]);
    let fault = transport(&format!("http://{addr}")).send(attempt).await.err().unwrap();
    assert_eq!((fault.kind, fault.phase), (ErrorKind::Timeout, Phase::Ambiguous));
    assert_eq!(fault.message, format!("{addr} took no byte of the request for 0.5 s"));
    held.abort();
}

#[tokio::test]
async fn after_the_end_nothing_is_sent() {
    let server = Loopback::start(vec![]).await;
    let transport = transport(&server.url());
    transport.send(attempt(Procedure::Release)).await.ok().unwrap();
    transport.close();
    assert_eq!(fault_of(&transport).await.1, Phase::Permanent);
    assert_eq!(server.got().len(), 1);
}

#[tokio::test]
async fn b051_a_client_that_was_given_is_used_as_it_is_and_not_closed() {
    let server = Loopback::start(vec![]).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let own = reqwest::Client::builder().no_proxy().build().unwrap();
    let base: Url = server.url().parse().unwrap();
    let transport = HttpTransport::over(own.clone(), &base, salutation(), line().timeouts, None, 100);
    transport.send(attempt(Procedure::Release)).await.ok().unwrap();
    transport.close();
    assert_eq!(fault_of(&transport).await.1, Phase::Permanent);
    assert!(own.get(base).send().await.is_ok());
    assert_eq!(server.got().len(), 2);
    assert_eq!(server.connections(), 1, "even its connection is still there");
}

#[tokio::test]
async fn a_private_ca_is_trusted_when_it_is_named() {
    let server = Loopback::start_tls(vec![], LEAF).await;
    for url in [server.tls_url(), format!("https://127.0.0.1:{}", server.addr.port())] {
        let reply = trusting(&url, CA).send(attempt(Procedure::Release)).await.ok().unwrap();
        assert_eq!(reply.status, 200, "{url}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_permanent() {
    async fn of(identity: Identity, pem: Option<&str>) -> (ErrorKind, Phase, String) {
        let server = Loopback::start_tls(vec![], identity).await;
        let url = server.tls_url();
        let found = fault_of(&pem.map_or_else(|| transport(&url), |pem| trusting(&url, pem))).await;
        assert!(server.got().is_empty());
        found
    }
    const OTHER: &str = include_str!("../../../../tests/data/tls/other_ca.pem");
    for (identity, pem) in [(LEAF, None), (LEAF, Some(OTHER)), (SELF_SIGNED, None)] {
        let (kind, phase, message) = of(identity, pem).await;
        assert_eq!((kind, phase), (ErrorKind::Tls, Phase::Permanent), "{message}");
        assert!(message.starts_with("certificate not trusted: "), "{message}");
        assert!(identity == SELF_SIGNED || message.contains("SPINNERET_CA_FILE"), "{message}");
    }
}

#[tokio::test]
async fn tls_to_a_plain_port_and_an_end_in_the_handshake_sent_nothing() {
    let plain = Loopback::start(vec![]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closing = listener.local_addr().unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    // A plain server waits for the end of a head that never comes: the limit for connecting holds for TLS too.
    let (kind, phase, _) = fault_of(&transport(&plain.tls_url())).await;
    assert_eq!((kind, phase), (ErrorKind::Timeout, Phase::Unsent));
    let (_, phase, message) = fault_of(&transport(&format!("https://{closing}"))).await;
    assert_eq!(phase, Phase::Unsent, "{message}");
}

#[tokio::test]
async fn a_proxy_carries_calls_and_its_refusal_is_permanent() {
    let proxy = Loopback::start(vec![]).await;
    let via = format!("http://user:c4n4ry@{}", proxy.addr);
    through(&via, "http://spinneret.invalid/sp").send(attempt(Procedure::Release)).await.ok().unwrap();
    let head = proxy.got()[0].head.clone();
    assert!(head.starts_with("POST http://spinneret.invalid/sp/spinneret.v1.LeaseService/Release "), "{head}");
    assert!(proxy.got()[0].header("proxy-authorization").is_some());

    for (status, kind, words) in
        [(407, ErrorKind::ProxyAuth, "proxy authorization required"), (502, ErrorKind::Other, "unsuccessful")]
    {
        let proxy = Loopback::start(vec![Act::Close(answer(status, "", b""))]).await;
        let via = format!("http://user:c4n4ry@{}", proxy.addr);
        let (found, phase, message) = fault_of(&through(&via, "https://spinneret.invalid")).await;
        assert_eq!((found, phase), (kind, Phase::Permanent), "{message}");
        assert_eq!(message, format!("the proxy {} opened no connection to spinneret.invalid: {words}", proxy.addr));
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_sent_nothing() {
    // What is behind an error of SOCKS is not to be seen.
    for (scheme, words) in [("http", "connection refused"), ("socks5h", "no connection")] {
        for url in ["http://spinneret.invalid", "https://spinneret.invalid"] {
            let addr = nobody().await;
            let (kind, phase, message) = fault_of(&through(&format!("{scheme}://u:c4n4ry@{addr}"), url)).await;
            assert_eq!((kind, phase), (ErrorKind::ConnRefused, Phase::Unsent), "{scheme} {url}: {message}");
            assert_eq!(message, format!("{words} (the proxy {addr})"));
        }
    }
}

#[test]
fn a_certificate_file_that_cannot_be_used_names_the_settings() {
    let url: Url = "https://h".parse().unwrap();
    let line = Line { ca_files: vec!["/nowhere/ca.pem".into()], ..line() };
    let error = HttpTransport::new(&url, salutation(), line).err().unwrap().to_string();
    assert!(error.contains("/nowhere/ca.pem cannot be read") && error.contains("SPINNERET_CA_FILE"), "{error}");
}

/// The connection lives in the runtime that opened it; when that has ended, another one is opened.
#[test]
fn a_runtime_that_has_ended_takes_its_connections_along() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let servers = runtime();
    let server = servers.block_on(Loopback::start(vec![]));
    let stop = std::sync::Arc::new(tokio::sync::Notify::new());
    let serving = std::thread::spawn({
        let stop = stop.clone();
        move || servers.block_on(stop.notified())
    });
    let transport = transport(&server.url());
    for _ in 0..2 {
        let reply = runtime().block_on(transport.send(attempt(Procedure::Acquire)));
        assert_eq!(reply.ok().unwrap().status, 200);
    }
    assert_eq!((server.got().len(), server.connections()), (2, 2));
    stop.notify_one();
    serving.join().unwrap();
}
