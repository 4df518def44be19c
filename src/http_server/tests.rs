#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// Answers with the length of the body; knows one path that needs none, and one that answers four at once.
struct Length(tokio::sync::Barrier);

impl Answer for Length {
    async fn answer(&self, asked: Asked) -> Reply {
        if asked.path == "/four" {
            self.0.wait().await;
        }
        assert!(asked.peer.is_loopback());
        Reply::new(StatusCode::OK, "text/plain", asked.body.len().to_string())
    }

    fn refuse(&self, head: &Head) -> Option<Reply> {
        (head.path == "/no").then(|| Reply::new(StatusCode::NOT_FOUND, "text/plain", "no"))
    }
}

const BOUNDS: Bounds =
    Bounds { connections: 8, target: 100, body: 100_000, bodies: 200_000, body_time: Duration::from_millis(300) };

async fn server() -> RunningServer {
    start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), BOUNDS, Arc::new(Length(tokio::sync::Barrier::new(4)))).await.unwrap()
}

/// Sends all of it, then reads the answer to its end.
async fn ask(server: &RunningServer, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    stream.write_all(format!("{head}\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_body_within_the_bounds_is_answered_whichever_way_it_is_framed() {
    let server = server().await;
    let body = vec![b'x'; 100_000];
    let answer = ask(&server, "POST / HTTP/1.1\r\ncontent-length: 100000", &body).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n100000"), "{answer}");
    let chunks = [b"186a0\r\n".as_slice(), &body, b"\r\n0\r\n\r\n"].concat();
    let answer = ask(&server, "POST / HTTP/1.1\r\ntransfer-encoding: chunked", &chunks).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n100000"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn what_is_refused_is_read_so_that_the_answer_arrives() {
    let server = server().await;
    // Far more than the sockets hold.
    let body = vec![b'x'; 20 << 20];
    for (head, status) in [
        (format!("POST / HTTP/1.1\r\ncontent-length: {}", body.len()), "413"),
        (format!("POST /no HTTP/1.1\r\ncontent-length: {}", body.len()), "404"),
        (format!("POST /{} HTTP/1.1\r\ncontent-length: {}", "x".repeat(100), body.len()), "414"),
    ] {
        let answer = ask(&server, &head, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let chunks = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let answer = ask(&server, "POST / HTTP/1.1\r\ntransfer-encoding: chunked", &chunks).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("larger than 100000 bytes"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn who_waits_to_be_told_is_told_not_to_send() {
    let server = server().await;
    let head = "POST / HTTP/1.1\r\ncontent-length: 200000\r\nexpect: 100-continue";
    let answer = ask(&server, head, b"").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_slow_body_is_given_up_and_a_torn_one_too() {
    let server = server().await;
    let answer = ask(&server, "POST / HTTP/1.1\r\ncontent-length: 10", b"half").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    let answer = ask(&server, "POST / HTTP/1.1\r\ntransfer-encoding: chunked", b"5\r\nhalf\r\nzz").await;
    assert!(answer.starts_with("HTTP/1.1 400") || answer.is_empty(), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn bodies_wait_for_their_memory_within_their_time() {
    let server = server().await;
    // Two bodies that never end hold all of it.
    let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n";
    let mut holders = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        holders.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answer = ask(&server, "POST / HTTP/1.1\r\ncontent-length: 100000", &vec![b'x'; 100_000]).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "the first two are given up before this one is: {answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_read_holds_no_more_memory_than_it_needs() {
    let server = server().await;
    let head = "POST /four HTTP/1.1\r\ntransfer-encoding: chunked";
    let one = || ask(&server, head, b"2\r\nok\r\n0\r\n\r\n");
    // Of unknown length, two of them would hold all of it until they are answered.
    let answers = tokio::join!(one(), one(), one(), one());
    for answer in [answers.0, answers.1, answers.2, answers.3] {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    server.stop().await;
}
