#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

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

/// Answers `/slow` when it may, everything else at once.
#[derive(Default)]
struct Slow(tokio::sync::Notify);

impl Answer for Slow {
    async fn answer(&self, asked: Asked) -> Reply {
        if asked.path == "/slow" {
            self.0.notified().await;
        }
        Reply::new(StatusCode::OK, "text/plain", "done")
    }
}

const TENTH: Duration = Duration::from_millis(100);

async fn crowded(connections: usize, patience: Patience) -> (RunningServer, Arc<Slow>) {
    let site = Arc::new(Slow::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = start_with(address, Bounds { connections, ..BOUNDS }, patience, Arc::clone(&site)).await.unwrap();
    (server, site)
}

fn sparing() -> Patience {
    Patience { when_full: WhenFull::MakeRoom, ..Patience::default() }
}

/// Connections on which this much of a request was sent.
async fn started(server: &RunningServer, number: usize, text: &str) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..number {
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// How long it takes until the other side closes; what it says before does not count.
async fn closed_after(stream: &mut TcpStream) -> Duration {
    let begin = Instant::now();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.expect("it is closed").ok();
    begin.elapsed()
}

#[tokio::test]
async fn a_head_and_the_time_between_two_requests_are_limited_and_an_answer_is_not() {
    let patience = Patience { head_time: 2 * TENTH, idle_time: 6 * TENTH, ..Patience::default() };
    let (server, site) = crowded(8, patience).await;
    let whole = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let silent = async { closed_after(&mut started(&server, 1, "").await[0]).await };
    let partial = async { closed_after(&mut started(&server, 1, "GET / HT").await[0]).await };
    let idle = async { closed_after(&mut started(&server, 1, whole).await[0]).await };
    let again = async {
        let mut stream = started(&server, 1, whole).await.remove(0);
        sleep(3 * TENTH).await;
        stream.write_all(b"GET / HTTP/1.1").await.unwrap();
        closed_after(&mut stream).await
    };
    let answered = async {
        let mut stream = started(&server, 1, "GET /slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.remove(0);
        sleep(9 * TENTH).await;
        site.0.notify_one();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (silent, partial, idle, again, answered) = tokio::join!(silent, partial, idle, again, answered);
    for short in [silent, partial, again] {
        assert!(short >= TENTH && short < 5 * TENTH, "{short:?}");
    }
    assert!(idle >= 5 * TENTH && idle < 15 * TENTH, "{idle:?}");
    assert!(answered.starts_with("HTTP/1.1 200"), "longer than all limits: {answered}");
    server.stop().await;
}

#[tokio::test]
async fn a_server_all_of_whose_connections_are_answered_tells_others_to_come_again() {
    let (server, site) = crowded(2, sparing()).await;
    let held = started(&server, 2, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    sleep(TENTH).await;
    let answer = ask(&server, "POST / HTTP/1.1\r\ncontent-length: 2", b"xx").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    site.0.notify_one();
    sleep(TENTH).await;
    // One of them is idle now: its place is free for who asks.
    let answer = ask(&server, "POST / HTTP/1.1\r\ncontent-length: 2", b"xx").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(held);
    server.stop().await;
}

#[tokio::test]
async fn a_flood_of_slow_connections_makes_room_for_who_asks() {
    let (server, site) = crowded(16, sparing()).await;
    let held = started(&server, 4, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let flood = started(&server, 60, "POST / HTTP/1.1\r\nhost: x\r\ncontent-le").await;
    sleep(12 * TENTH).await;
    for _ in 0..10 {
        let begin = Instant::now();
        let answer = ask(&server, "GET / HTTP/1.1", b"").await;
        assert!(answer.starts_with("HTTP/1.1 200") && begin.elapsed() < 5 * TENTH, "{:?}: {answer}", begin.elapsed());
    }
    // Those that are answered were not touched.
    for mut stream in held {
        site.0.notify_one();
        let mut status = [0; 12];
        timeout(Duration::from_secs(2), stream.read_exact(&mut status)).await.unwrap().unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
    drop(flood);
    server.stop().await;
}

#[tokio::test]
async fn large_bodies_that_trickle_keep_no_small_one_waiting() {
    let server = server().await;
    let holders = started(&server, 2, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nx").await;
    sleep(TENTH / 2).await;
    let begin = Instant::now();
    let answer = ask(&server, "POST / HTTP/1.1\r\ncontent-length: 1000", &[b'x'; 1_000]).await;
    assert!(answer.starts_with("HTTP/1.1 200") && begin.elapsed() < TENTH, "{answer}");
    drop(holders);
    server.stop().await;
}

#[tokio::test]
async fn a_head_may_have_a_mebibyte_and_no_more() {
    let server = server().await;
    for (bytes, status) in [(1 << 19, "200"), (2 << 20, "431")] {
        let long = "x".repeat(bytes);
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-long: {long}\r\n\r\n");
        // The server may close before it has read everything.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty() && status == "431" || answer.starts_with(format!("HTTP/1.1 {status}").as_bytes()), "{status}");
    }
    server.stop().await;
}
