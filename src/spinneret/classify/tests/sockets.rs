//! Real failures, made on the loopback.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;
use ErrorKind::{ConnRefused, ConnReset, Dns, Other, ProxyAuth, Timeout, Tls};
use Phase::{Ambiguous, Permanent, Unsent};

const MS: Duration = Duration::from_millis(1);
const LEAF: &[u8] = include_bytes!("../../../../tests/data/tls/private_leaf_cert.der");
const LEAF_KEY: &[u8] = include_bytes!("../../../../tests/data/tls/private_leaf_key.der");
const CA: &[u8] = include_bytes!("../../../../tests/data/tls/private_ca.pem");

/// A clock that stands still, in seconds since 1970.
#[derive(Debug)]
struct At(u64);

impl rustls::time_provider::TimeProvider for At {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

/// Middle of 2027: the certificates are good.
const GOOD: u64 = 1_813_000_000;

fn tls(pem: Option<&[u8]>, now: u64) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    if let Some(pem) = pem {
        roots.add(CertificateDer::from_pem_slice(pem).unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_details(provider, Arc::new(At(now)))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(2_000 * MS)
        .read_timeout(5_000 * MS)
        .tls_backend_preconfigured(tls(Some(CA), GOOD))
}

fn through(proxy: &str) -> reqwest::ClientBuilder {
    client().proxy(reqwest::Proxy::all(proxy).unwrap())
}

async fn failure(client: reqwest::ClientBuilder, url: &str) -> reqwest::Error {
    let sent = client.build().unwrap().post(url).body("{}").send().await;
    match sent {
        Ok(response) => response.bytes().await.expect_err("a body"),
        Err(error) => error,
    }
}

#[track_caller]
fn is(error: &reqwest::Error, kind: ErrorKind, phase: Phase) {
    assert_eq!(look(error), Found { kind, phase }, "{error:?}");
}

/// A server that does the same to every connection.
async fn server<F: Future<Output = ()> + Send + 'static>(each: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(each(stream));
        }
    });
    addr
}

/// Reads what comes first and answers it.
async fn answering(answer: &'static [u8]) -> SocketAddr {
    server(async move |mut stream| {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(answer).await;
    })
    .await
}

/// The same, but the connection is reset after the answer.
async fn resetting(answer: &'static [u8]) -> SocketAddr {
    server(async move |mut stream| {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(answer).await;
        tokio::time::sleep(50 * MS).await;
        stream.set_zero_linger().unwrap();
    })
    .await
}

async fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

fn http(addr: SocketAddr) -> String {
    format!("http://{addr}/tls/407")
}

#[tokio::test]
async fn b105_a_closed_port_refuses_and_nothing_was_sent() {
    let addr = refusing().await;
    is(&failure(client(), &http(addr)).await, ConnRefused, Unsent);
}

#[tokio::test]
async fn b106_a_reset_before_or_in_the_head_is_conn_reset() {
    for answer in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-"] {
        is(&failure(client(), &http(resetting(answer).await)).await, ConnReset, Ambiguous);
        is(&failure(client(), &http(answering(answer).await)).await, ConnReset, Ambiguous);
    }
}

#[tokio::test]
async fn b106_a_body_that_is_cut_off_is_conn_reset() {
    let bodies = [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ];
    for body in bodies {
        is(&failure(client(), &http(resetting(body).await)).await, ConnReset, Ambiguous);
        is(&failure(client(), &http(answering(body).await)).await, ConnReset, Ambiguous);
    }
}

#[tokio::test]
async fn b106_an_answer_that_is_not_http_is_a_failed_read() {
    is(&failure(client(), &http(answering(b"SSH-2.0-x handshake\r\n\r\n").await)).await, ConnReset, Ambiguous);
    let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    is(&failure(client(), &http(answering(chunks).await)).await, ConnReset, Ambiguous);
}

#[tokio::test]
async fn b103_a_full_backlog_is_a_connect_timeout() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut held = Vec::new();
    // As many as the system takes without anyone who accepts them.
    while let Ok(Ok(stream)) = tokio::time::timeout(200 * MS, TcpStream::connect(addr)).await {
        held.push(stream);
        assert!(held.len() < 64, "the backlog is never full");
    }
    is(&failure(client().connect_timeout(200 * MS), &http(addr)).await, Timeout, Unsent);
}

#[tokio::test]
async fn b103_a_silent_server_is_a_read_timeout() {
    let silent = server(async |mut stream: TcpStream| {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        std::future::pending().await
    })
    .await;
    is(&failure(client().read_timeout(100 * MS), &http(silent)).await, Timeout, Ambiguous);
    is(&failure(client().timeout(100 * MS), &http(silent)).await, Timeout, Ambiguous);
    let stuck = server(async |mut stream: TcpStream| {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel").await;
        std::future::pending().await
    })
    .await;
    is(&failure(client().read_timeout(100 * MS), &http(stuck)).await, Timeout, Ambiguous);
}

#[tokio::test]
async fn b103_a_name_that_is_nobodys_is_dns() {
    let error = failure(client(), "http://nobody.invalid/").await;
    is(&error, Dns, Unsent);
    assert_eq!(classify(&caused("the fetch failed", io::Error::other(error))), Dns);
}

/// A server whose certificate a private CA signed for `localhost`.
async fn secure() -> SocketAddr {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(LEAF_KEY.to_vec()));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(LEAF.to_vec())], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    server(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
                let _ = stream.shutdown().await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn b104_a_certificate_that_is_not_trusted_is_permanent() {
    let port = secure().await.port();
    let url = format!("https://localhost:{port}/");
    let fine = client().build().unwrap().get(&url).send().await.unwrap();
    assert_eq!(fine.text().await.unwrap(), "ok");
    let cases = [
        ("unknown issuer", client().tls_backend_preconfigured(tls(None, GOOD)), "localhost"),
        ("expired", client().tls_backend_preconfigured(tls(Some(CA), 6_000_000_000)), "localhost"),
        ("not valid yet", client().tls_backend_preconfigured(tls(Some(CA), 1_000_000_000)), "localhost"),
        ("another name", client().resolve("wrong.test", ([127, 0, 0, 1], port).into()), "wrong.test"),
    ];
    for (why, client, host) in cases {
        let error = failure(client, &format!("https://{host}:{port}/")).await;
        is(&error, Tls, Permanent);
        assert!(is_bad_certificate(&error), "{why}: {error:?}");
    }
}

#[tokio::test]
async fn b104_tls_to_a_plain_port_is_tls_but_no_bad_certificate() {
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b""] {
        let error = failure(client(), &format!("https://{}/", answering(answer).await)).await;
        is(&error, Tls, Unsent);
        assert!(!is_bad_certificate(&error));
    }
}

#[tokio::test]
async fn b107_a_proxy_that_opens_no_tunnel_is_proxy_auth_or_other() {
    for (answer, kind) in [
        (&b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"[..], ProxyAuth),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\ntls", Other),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", Other),
    ] {
        let proxy = through(&format!("http://user:password@{}", answering(answer).await));
        is(&failure(proxy, "https://shop.test/").await, kind, Permanent);
    }
}

#[tokio::test]
async fn b107_a_407_to_a_plain_request_is_a_response() {
    let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let proxy = through(&format!("http://{}", answering(answer).await)).build().unwrap();
    let status = proxy.get("http://shop.test/").send().await.unwrap().status().as_u16();
    assert_eq!(classify_response(status), Some(ProxyAuth));
}

#[tokio::test]
async fn b105_a_proxy_that_is_not_there_is_conn_refused() {
    for scheme in ["http", "socks5", "socks5h"] {
        for url in ["https://127.0.0.1:1/", "http://127.0.0.1:1/"] {
            let proxy = through(&format!("{scheme}://{}", refusing().await));
            is(&failure(proxy, url).await, ConnRefused, Unsent);
        }
    }
}

#[tokio::test]
async fn b106_a_proxy_that_hangs_up_is_conn_reset() {
    for scheme in ["http", "socks5h"] {
        let proxy = through(&format!("{scheme}://{}", answering(b"").await));
        is(&failure(proxy, "https://shop.test/").await, ConnReset, Unsent);
    }
}

#[tokio::test]
async fn b107_a_socks_proxy_that_takes_no_password_is_proxy_auth() {
    let refusing_password = server(async |mut stream: TcpStream| {
        let mut hello = [0; 256];
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(&[5, 2]).await;
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(&[1, 1]).await;
    })
    .await;
    let proxy = through(&format!("socks5h://user:password@{refusing_password}"));
    is(&failure(proxy, "http://shop.test/").await, ProxyAuth, Permanent);
    let proxy = through(&format!("socks5h://{}", answering(&[5, 255]).await));
    is(&failure(proxy, "http://shop.test/").await, ProxyAuth, Permanent);
}

#[tokio::test]
async fn b107_a_socks_proxy_that_reaches_nobody_is_other() {
    let refusing_target = server(async |mut stream: TcpStream| {
        let mut hello = [0; 256];
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(&[5, 0]).await;
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    })
    .await;
    is(&failure(through(&format!("socks5h://{refusing_target}")), "http://shop.test/").await, Other, Permanent);
}

/// A server that speaks HTTP/2 in plain and ends every stream with this.
async fn ending(reason: h2::Reason) -> SocketAddr {
    server(move |stream| async move {
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            respond.send_reset(reason);
        }
    })
    .await
}

#[tokio::test]
async fn a_stream_that_the_server_did_not_begin_with_was_not_sent() {
    let client = || client().http2_prior_knowledge().retry(reqwest::retry::never());
    is(&failure(client(), &http(ending(h2::Reason::REFUSED_STREAM).await)).await, ConnReset, Unsent);
    is(&failure(client(), &http(ending(h2::Reason::INTERNAL_ERROR).await)).await, ConnReset, Ambiguous);
}

/// A server that speaks first: the request is handed back when that is read before it is written.
#[tokio::test]
async fn a_request_that_was_handed_back_was_not_sent() {
    let speaking_first = server(async |mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel").await;
        std::future::pending().await
    })
    .await;
    for _ in 0..20 {
        let error = failure(client().read_timeout(100 * MS), &http(speaking_first)).await;
        if format!("{error:?}").contains("hyper::Error(Canceled") {
            return is(&error, ConnReset, Unsent);
        }
        assert_ne!(look(&error).phase, Unsent, "{error:?}");
    }
    panic!("no request was ever handed back");
}

/// A kept connection that is closed while it is idle is no failure; a new one is opened.
#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced() {
    let addr = server(async |mut stream: TcpStream| {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let client = client().build().unwrap();
    for _ in 0..5 {
        assert_eq!(client.post(http(addr)).body("{}").send().await.unwrap().status().as_u16(), 200);
        tokio::time::sleep(20 * MS).await;
    }
}
