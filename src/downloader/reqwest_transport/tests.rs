//! Exchanges with real servers on the loopback, most of them broken on purpose.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::FutureExt;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::*;
use crate::plane::{IdentityKey, ProxyUrl};

mod proxies;
mod record_texts;
mod tls;

const MS: Duration = Duration::from_millis(1);

/// What a server does after its answer.
#[derive(Clone, Copy)]
enum Then {
    Close,
    Reset,
    Hang,
    /// Sends one byte every 20 ms.
    Drip,
}

/// A server that gives the same answer to every connection, and the heads it was sent.
struct Server {
    addr: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

async fn head_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(n) if n > 0 => head.extend_from_slice(&byte[..n]),
            _ => return None,
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

impl Server {
    async fn start(answer: impl Into<Vec<u8>>, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { addr: listener.local_addr().unwrap(), heads: Arc::default(), connections: Arc::default() };
        let (heads, connections, answer) = (Arc::clone(&server.heads), Arc::clone(&server.connections), answer.into());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (heads, answer) = (Arc::clone(&heads), answer.clone());
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    while let Some(head) = head_of(&mut stream).await {
                        heads.lock().unwrap().push(head);
                        let _ = stream.write_all(&answer).await;
                        match then {
                            Then::Close => return,
                            Then::Reset => {
                                // Let the client read what was sent: a reset throws the rest away.
                                sleep(50 * MS).await;
                                let _ = stream.set_zero_linger();
                                return;
                            }
                            Then::Hang => {}
                            Then::Drip => loop {
                                if stream.write_all(b"x").await.is_err() {
                                    return;
                                }
                                sleep(20 * MS).await;
                            },
                        }
                    }
                });
            }
        });
        server
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/p?key=canary-query", self.addr)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// A meter that counts; with `room` false it makes every charge wait.
#[derive(Debug)]
struct Count {
    charged: AtomicUsize,
    head: Mutex<Option<(u16, Option<u64>)>>,
    room: bool,
}

impl Count {
    fn new(room: bool) -> Self {
        Self { charged: AtomicUsize::new(0), head: Mutex::default(), room }
    }
}

impl Meter for Count {
    fn charge(&self, bytes: usize) -> BoxFuture<'_, ()> {
        async move {
            sleep(300 * MS).await;
            self.charged.fetch_add(bytes, Ordering::SeqCst);
        }
        .boxed()
    }

    fn try_charge(&self, bytes: usize) -> bool {
        if self.room {
            self.charged.fetch_add(bytes, Ordering::SeqCst);
        }
        self.room
    }

    fn answered(&self, status: StatusCode, announced: Option<u64>) {
        *self.head.lock().unwrap() = Some((status.as_u16(), announced));
    }
}

fn limits() -> Limits {
    Limits { total: 2000 * MS, idle: 1000 * MS, max_bytes: 100_000, excess: Excess::Fails, fail_on_data_loss: true, decode: true }
}

fn transport() -> ReqwestTransport {
    let config =
        ClientConfig { connect_timeout: 500 * MS, verify_certificates: true, max_clients: 16, idle: Duration::from_secs(60) };
    ReqwestTransport::new(config, Names::of_system()).unwrap()
}

fn outgoing(url: &str) -> Outgoing {
    Outgoing {
        method: Method::GET,
        url: Url::parse(url).unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        proxy: None,
        identity: IdentityKey { site: "shop".into(), name: "a".into() },
        limits: limits(),
    }
}

async fn exchange(outgoing: Outgoing) -> Result<Reply, Fault> {
    transport().exchange(outgoing, &Count::new(true)).await
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn gzip_answer(body: &[u8]) -> Vec<u8> {
    let body = gzip(body);
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend(body);
    answer
}

#[tokio::test]
async fn each_way_to_fail_has_its_kind_and_text() {
    let large = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(200_000));
    type Row = (&'static str, &'static str, Vec<u8>, Then, FailureKind, &'static str);
    let table: Vec<Row> = vec![
        ("silence", "http", vec![], Then::Hang, FailureKind::IdleTimeout, "brought no byte for 1.0 seconds."),
        ("a dripping head", "http", b"HTTP/1.1 200 OK\r\nX: ".to_vec(), Then::Hang, FailureKind::IdleTimeout, "/p brought"),
        ("a body that stops", "http", b"HTTP/1.1 200 OK\r\n\r\nabc".to_vec(), Then::Hang, FailureKind::IdleTimeout, "no byte"),
        (
            "a body without end",
            "http",
            b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
            Then::Drip,
            FailureKind::Timeout,
            "/p took longer than 2.0 seconds.",
        ),
        ("a close instead of a head", "http", vec![], Then::Close, FailureKind::Lost, "was lost in a non-clean fashion."),
        ("a reset instead of a head", "http", vec![], Then::Reset, FailureKind::Lost, "was lost in a non-clean fashion."),
        ("half a head", "http", b"HTTP/1.1 200 OK\r\nContent-".to_vec(), Then::Close, FailureKind::Lost, "was lost"),
        (
            "a reset in the body",
            "http",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec(),
            Then::Reset,
            FailureKind::Lost,
            "was lost",
        ),
        (
            "a body shorter than announced",
            "http",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec(),
            Then::Close,
            FailureKind::DataLoss,
            "3 of 9 bytes",
        ),
        (
            "chunks without the last one",
            "http",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec(),
            Then::Close,
            FailureKind::DataLoss,
            "5 bytes",
        ),
        (
            "chunks of a wrong size",
            "http",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n".to_vec(),
            Then::Close,
            FailureKind::BadReply,
            "not HTTP",
        ),
        ("garbage", "http", b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec(), Then::Close, FailureKind::BadReply, "not HTTP"),
        ("a status of letters", "http", b"HTTP/1.1 abc\r\n\r\n".to_vec(), Then::Close, FailureKind::BadReply, "not HTTP"),
        ("TLS on a plain port", "https", b"HTTP/1.1 400 Bad\r\n\r\n".to_vec(), Then::Close, FailureKind::Tls, "TLS failed"),
        (
            "a size over the limit",
            "http",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n".to_vec(),
            Then::Hang,
            FailureKind::TooLarge,
            "Expected to receive 100001 bytes which is larger than download max size (100000) in request <GET http://",
        ),
        (
            "a body over the limit",
            "http",
            large.into_bytes(),
            Then::Close,
            FailureKind::TooLarge,
            "larger than download max size",
        ),
        ("a bomb", "http", gzip_answer(&vec![0; 10_000_000]), Then::Hang, FailureKind::TooLarge, "max size (100000)"),
        (
            "a broken coding",
            "http",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff"
                .to_vec(),
            Then::Close,
            FailureKind::Decode,
            "gzip",
        ),
    ];
    let cases = table.into_iter().map(|(name, scheme, answer, then, kind, text)| async move {
        let mut server = Server::start(answer, then).await;
        if scheme == "https" {
            // The greeting of TLS has no blank line: answer at once.
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            server.addr = listener.local_addr().unwrap();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut hello = [0; 4096];
                    let _ = stream.read(&mut hello).await;
                    let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                }
            });
        }
        let fault = exchange(outgoing(&server.url(scheme))).await.expect_err(name);
        assert_eq!(fault.kind, kind, "{name}: {fault}");
        assert!(fault.message.contains(text), "{name}: {fault}");
        assert!(!fault.message.contains("canary"), "{name}: {fault}");
    });
    futures_util::future::join_all(cases).await;
}

#[tokio::test]
async fn what_cannot_be_reached_is_told_apart() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let table = [
        (
            format!("http://{free}/"),
            FailureKind::Refused,
            "Connection was refused by other side: 111: Connection refused.".to_owned(),
        ),
        (
            "http://no-such-host.invalid/".to_owned(),
            FailureKind::Resolve,
            "DNS lookup failed: no results for hostname lookup: no-such-host.invalid.".to_owned(),
        ),
        (
            "foo://a.example/".to_owned(),
            FailureKind::UnsupportedScheme,
            "Unsupported URL scheme 'foo': no handler available for that scheme".to_owned(),
        ),
    ];
    for (url, kind, message) in table {
        let mut outgoing = outgoing(&url);
        outgoing.limits.total = Duration::from_secs(30);
        outgoing.limits.idle = Duration::from_secs(30);
        // A sandbox without a resolver may take longer than the connect limit of the tests.
        let config =
            ClientConfig { connect_timeout: Duration::from_secs(20), verify_certificates: true, max_clients: 1, idle: 1000 * MS };
        let result = ReqwestTransport::new(config, Names::of_system()).unwrap().exchange(outgoing, &Count::new(true)).await;
        assert_eq!(result.unwrap_err(), Fault::new(kind, message));
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_is_the_proxys_fault() {
    let no = Server::start("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", Then::Close).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let bad = Server::start("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", Then::Close).await;
    let table = [
        ("http", format!("http://user:canary@{}", no.addr), "(407)"),
        ("https", format!("http://user:canary@{}", no.addr), "(407)"),
        ("https", format!("http://user:canary@{}", bad.addr), "no tunnel to shop.example"),
        ("http", format!("http://user:canary@{gone}"), "the connection to the proxy was refused"),
        ("https", format!("http://user:canary@{gone}"), "the proxy opened no tunnel"),
        ("http", format!("socks5://user:canary@{gone}"), "proxy"),
        ("http", "gopher://user:canary@127.0.0.1:1".to_owned(), "proxy URL cannot be used"),
    ];
    for (scheme, proxy, text) in table {
        let mut outgoing = outgoing(&format!("{scheme}://shop.example/"));
        outgoing.proxy = Some(ProxyUrl(proxy.as_str().into()));
        let fault = exchange(outgoing).await.unwrap_err();
        let kind = if text == "(407)" { FailureKind::ProxyAuth } else { FailureKind::Proxy };
        assert_eq!(fault.kind, kind, "{scheme} {fault}");
        assert!(fault.message.contains(text), "{scheme} {fault}");
        assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
    }
    let good = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Then::Close).await;
    let mut through = outgoing("http://no-such-host.invalid/");
    through.proxy = Some(ProxyUrl(format!("http://{}", good.addr).into()));
    assert_eq!(exchange(through).await.unwrap().body, "ok", "the name is the proxy's to resolve");
    assert!(no.heads()[0].starts_with("GET http://shop.example/"), "{:?}", no.heads());
    assert!(no.heads().iter().all(|head| head.to_lowercase().contains("proxy-authorization: basic")));
}

#[tokio::test]
async fn a_body_is_read_decoded_counted_and_charged() {
    let page = b"<p>".repeat(20_000);
    let packed = gzip_answer(&page);
    let server = Server::start(packed.clone(), Then::Hang).await;
    let meter = Count::new(true);
    let reply = transport().exchange(outgoing(&server.url("http")), &meter).await.unwrap();
    assert_eq!(reply.body, page);
    assert_eq!(meter.charged.load(Ordering::SeqCst), page.len());
    assert_eq!(reply.wire_bytes, gzip(&page).len() as u64);
    assert_eq!(reply.flags, BodyFlags { decoded: true, ..BodyFlags::default() });
    assert_eq!(reply.headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn a_lost_end_is_kept_and_flagged_when_asked_for() {
    let mut cut = gzip(&(0..4000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<_>>());
    cut.truncate(9000);
    let cut = [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".to_vec(), cut].concat();
    for (answer, body) in [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec(), Some("hello")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec(), Some("abc")),
        (cut, None),
    ] {
        let server = Server::start(answer, Then::Close).await;
        let mut kept = outgoing(&server.url("http"));
        kept.limits.fail_on_data_loss = false;
        let reply = exchange(kept).await.unwrap();
        assert!(reply.flags.data_loss);
        match body {
            Some(body) => assert_eq!(reply.body, body),
            None => assert!(reply.body.len() > 4000, "{}", reply.body.len()),
        }
        let fault = exchange(outgoing(&server.url("http"))).await.unwrap_err();
        assert_eq!(fault.kind, FailureKind::DataLoss);
    }
}

#[tokio::test]
async fn the_head_of_an_answer_is_told_before_its_body_is_read() {
    for (answer, head) in [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 5000000\r\n\r\n", Some((403, Some(5_000_000)))),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Some((200, None))),
        ("", None),
    ] {
        let server = Server::start(answer, Then::Close).await;
        let meter = Count::new(true);
        transport().exchange(outgoing(&server.url("http")), &meter).await.unwrap_err();
        assert_eq!(*meter.head.lock().unwrap(), head, "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_is_whole() {
    let server = Server::start("HTTP/1.0 200 OK\r\n\r\nhello", Then::Close).await;
    let reply = exchange(outgoing(&server.url("http"))).await.unwrap();
    assert_eq!((reply.body.as_ref(), reply.flags), (&b"hello"[..], BodyFlags::default()));
}

#[tokio::test]
async fn a_head_request_may_announce_any_size() {
    let server = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", Then::Hang).await;
    let mut head = outgoing(&server.url("http"));
    head.method = Method::HEAD;
    assert!(exchange(head).await.unwrap().body.is_empty());
}

#[tokio::test]
async fn waiting_for_room_in_the_window_is_not_the_servers_fault() {
    let server = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Then::Hang).await;
    let mut slow = outgoing(&server.url("http"));
    slow.limits.total = 200 * MS;
    slow.limits.idle = 200 * MS;
    let meter = Count::new(false);
    let reply = transport().exchange(slow, &meter).await.unwrap();
    assert_eq!(reply.body, "hello");
    assert_eq!(meter.charged.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn connections_are_reused_by_one_identity_and_never_shared_with_another() {
    let server = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Then::Hang).await;
    let transport = transport();
    for (name, connections) in [("a", 1), ("a", 1), ("b", 2), ("a", 2), ("b", 2), ("c", 3)] {
        let mut outgoing = outgoing(&server.url("http"));
        outgoing.identity = IdentityKey { site: "shop".into(), name: name.into() };
        transport.exchange(outgoing, &Count::new(true)).await.unwrap();
        // The connection goes back to its pool when its task runs.
        sleep(10 * MS).await;
        assert_eq!(server.connections.load(Ordering::SeqCst), connections, "{name}");
    }
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_merged() {
    let server = Server::start("HTTP/1.1 204 No Content\r\n\r\n", Then::Hang).await;
    let mut post = outgoing(&format!("http://us%2Ber:p%20w@{}/form?a=1#part", server.addr));
    post.method = Method::POST;
    post.headers.insert("user-agent", HeaderValue::from_static("dragline/test"));
    post.body = Bytes::from_static(b"x=1");
    exchange(post).await.unwrap();
    let head = server.heads().remove(0).to_lowercase();
    assert!(head.starts_with("post /form?a=1 http/1.1\r\n"), "{head}");
    for line in ["content-length: 3", "user-agent: dragline/test", &format!("host: {}", server.addr)] {
        assert!(head.contains(line), "{line} in {head}");
    }
    assert!(head.contains(&format!("authorization: basic {}", STANDARD.encode("us+er:p w")).to_lowercase()), "{head}");
    assert!(!head.contains("part"));
}

#[tokio::test]
async fn a_body_that_may_be_cut_is_read_up_to_its_limit_and_no_further() {
    let body = "0123456789".repeat(1_000_000);
    let plain = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}", body.len()).into_bytes();
    for answer in [plain, chunked, gzip_answer(body.as_bytes())] {
        let server = Server::start(answer, Then::Hang).await;
        let mut outgoing = outgoing(&server.url("http"));
        outgoing.limits = Limits { max_bytes: 1001, excess: Excess::IsCut, ..limits() };
        let reply = exchange(outgoing).await.unwrap();
        assert_eq!(reply.body, &body.as_bytes()[..1001]);
        assert!(reply.wire_bytes < 2_000_000, "{}", reply.wire_bytes);
    }
}
