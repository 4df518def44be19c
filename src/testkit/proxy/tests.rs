//! The proxies by hand: what they say, byte for byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;

/// A target that answers everything with the same page, and says when it was asked.
async fn target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                while stream.read(&mut piece).await.is_ok_and(|read| read > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

async fn ask(proxy: &ScriptedProxy, steps: &[&[u8]], most: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let mut all = Vec::new();
    for step in steps {
        if stream.write_all(step).await.is_err() {
            break;
        }
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap_or(0);
        all.extend_from_slice(&piece[..read]);
    }
    let mut piece = [0; 4096];
    while all.len() < most {
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => all.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    all
}

#[tokio::test]
async fn a_whole_url_is_forwarded_without_what_is_the_proxys() {
    let proxy = ScriptedProxy::start(ProxyKind::Http).unwrap();
    proxy.map("shop.test", 80, target().await).allow("u", "p");
    let request = b"GET http://shop.test/a?b=1 HTTP/1.1\r\nHost: shop.test\r\nProxy-Authorization: Basic dTpw\r\nX: y\r\n\r\n";
    let answer = String::from_utf8(ask(&proxy, &[request], 59).await).unwrap();
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    let passed = &proxy.passed()[0];
    assert_eq!(passed.head.as_deref(), Some("GET /a?b=1 HTTP/1.1\r\nHost: shop.test\r\nX: y\r\nConnection: close\r\n\r\n"));
    assert_eq!((passed.target.as_str(), passed.user.as_deref(), passed.way), ("shop.test:80", Some("u"), Way::Absolute));
}

#[tokio::test]
async fn socks_answers_as_its_rules_say() {
    let proxy = ScriptedProxy::start(ProxyKind::Socks5).unwrap();
    proxy.map("shop.test", 80, target().await);
    let connect: &[u8] = b"\x05\x01\x00\x03\x09shop.test\x00\x50";
    let answer = ask(&proxy, &[b"\x05\x01\x00", connect, b"GET"], 14).await;
    assert_eq!(&answer[..12], b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00");
    assert!(answer[12..].starts_with(b"HTTP/1.1 200"));
    assert_eq!(ask(&proxy, &[b"\x05\x01\x00", b"\x05\x01\x00\x03\x08foo.test\x00\x50"], 4).await[2..4], [5, 4], "unknown names");
    assert_eq!(
        ask(&proxy, &[b"\x05\x01\x00", b"\x05\x01\x00\x01\x08\x08\x08\x08\x00\x50"], 4).await[2..4],
        [5, 4],
        "far addresses"
    );
    assert_eq!(ask(&proxy, &[b"\x05\x01\x00", b"\x05\x02\x00\x03\x09shop.test\x00\x50"], 4).await[2..4], [5, 7], "BIND");
    proxy.allow("u", "p");
    assert_eq!(ask(&proxy, &[b"\x05\x01\x00"], 2).await, b"\x05\xff");
    assert_eq!(ask(&proxy, &[b"\x05\x02\x00\x02", b"\x01\x01u\x01x"], 4).await, b"\x05\x02\x01\x01");
    assert_eq!(ask(&proxy, &[b"\x05\x02\x00\x02", b"\x01\x01u\x01p", connect], 14).await[..6], *b"\x05\x02\x01\x00\x05\x00");
    assert_eq!(proxy.denied(), 2);
}

#[tokio::test]
async fn a_fault_reaches_tunnels_that_are_open() {
    let proxy = ScriptedProxy::start(ProxyKind::Http).unwrap();
    proxy.map("shop.test", 443, target().await);
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let mut piece = [0; 4096];
    stream.write_all(b"CONNECT shop.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    let read = stream.read(&mut piece).await.unwrap();
    assert!(piece[..read].starts_with(b"HTTP/1.1 200 "));
    stream.write_all(b"x").await.unwrap();
    assert!(stream.read(&mut piece).await.unwrap() > 0);
    proxy.set_fault(Some(ProxyFault::Hang));
    stream.write_all(b"x").await.unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut piece)).await;
    assert!(silent.is_err(), "{silent:?}");
    proxy.set_fault(Some(ProxyFault::Slow(Duration::from_millis(50))));
    let begun = Instant::now();
    assert!(stream.read(&mut piece).await.unwrap() > 0);
    assert!(begun.elapsed() >= Duration::from_millis(45), "{:?}", begun.elapsed());
    proxy.set_fault(Some(ProxyFault::Refuse));
    assert!(matches!(stream.read(&mut piece).await, Ok(0) | Err(_)));
    let passed = &proxy.passed()[0];
    assert_eq!((passed.sent, passed.way), (2, Way::Connect));
    assert!(passed.head.is_none() && passed.received > 0);
}
