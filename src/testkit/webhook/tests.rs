#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// Posts a signed body on a connection of its own; the status line, or nothing if there is none.
fn post(webhook: &ScriptedWebhook, key: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(webhook.addr).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    send(&mut stream, "/run/api/webhook/consume", key, body);
    answer(&mut stream)
}

fn send(stream: &mut TcpStream, path: &str, key: &str, body: &str) {
    let signature = Signer::new("sk".into()).sign("1700000000", body.as_bytes());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: h\r\nX-Timestamp: 1700000000\r\nX-Signature: {signature}\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let n = stream.read(&mut piece).ok().filter(|n| *n > 0)?;
        text.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&text);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = head.split("content-length: ").nth(1)?.lines().next()?.parse().unwrap();
            if body.len() >= length {
                return Some(head.lines().next().unwrap().to_owned());
            }
        }
    }
}

fn body(item: u32) -> String {
    format!(
        r#"{{"job_id": 1, "data": {{"requests": [], "items": [{{"n": {item}}}], "logs": [{{"x": NaN}}], "stats": {{"a": 1}}}}}}"#
    )
}

#[test]
fn a_script_is_followed_and_then_everything_passes() {
    let headers = vec![("retry-after".to_owned(), "3".to_owned())];
    let script = [
        Step::Answer(500),
        Step::AnswerWith { status: 429, headers, body: "slow".to_owned() },
        Step::TakeThenReset,
        Step::Reset,
        Step::Hang(Duration::from_millis(30)),
    ];
    let webhook = ScriptedWebhook::with_script("sk", script).unwrap();
    let answers: Vec<_> = (0..6).map(|n| post(&webhook, &format!("key-{}", n.min(5)), &body(n))).collect();
    let lines: Vec<_> = answers.iter().map(|line| line.as_deref().unwrap_or("none")).collect();
    assert_eq!(
        lines,
        [
            "HTTP/1.1 500 Internal Server Error",
            "HTTP/1.1 429 Too Many Requests",
            "none",
            "none",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK"
        ]
    );
    assert_eq!((webhook.calls(), webhook.connections(), webhook.requests().len()), (6, 6, 5));
    let requests = webhook.requests();
    assert!(requests.iter().all(|request| request.is_signed && request.target == "/run/api/webhook/consume"));
    let statuses: Vec<_> = requests.iter().map(|request| (request.status, request.is_taken)).collect();
    assert_eq!(statuses, [(Some(500), false), (Some(429), false), (None, true), (Some(200), true), (Some(200), true)]);
    let items: Vec<_> = webhook.records().items.iter().map(|item| item["n"].as_u64().unwrap()).collect();
    assert_eq!(items, [2, 4, 5]);
    assert_eq!(webhook.bodies()[2], body(2));
}

#[test]
fn each_batch_counts_once_however_often_it_is_taken() {
    let webhook = ScriptedWebhook::start("sk").unwrap();
    for (key, n) in [("a", 1), ("b", 2), ("a", 1)] {
        post(&webhook, key, &body(n)).unwrap();
    }
    let records = webhook.records();
    assert_eq!((records.items.len(), records.logs.len(), records.stats.len(), records.total()), (2, 2, 2, 6));
    assert_eq!(records.logs[0], serde_json::json!({"x": null}));
}

#[test]
fn a_client_that_leaves_while_nothing_comes_is_not_taken() {
    let webhook = ScriptedWebhook::with_script("sk", [Step::Hang(Duration::from_secs(600))]).unwrap();
    let mut stream = TcpStream::connect(webhook.addr).unwrap();
    send(&mut stream, "/api/webhook/consume", "a", &body(1));
    assert!(webhook.wait_for_calls(1, LIMIT));
    drop(stream);
    assert!(post(&webhook, "b", &body(2)).is_some());
    assert_eq!(webhook.records().items, [serde_json::json!({"n": 2})]);
    let begun = Instant::now();
    drop(webhook);
    assert!(begun.elapsed() < LIMIT, "a hang does not hold up the end");
}

#[test]
fn bodies_are_refused_by_what_they_hold() {
    let webhook = ScriptedWebhook::with_script("sk", [Step::Answer(503)]).unwrap();
    webhook.refuse_if(|body| body.contains("\"n\": 7").then_some(422));
    let lines: Vec<_> = [7, 7, 8].map(|n| post(&webhook, &n.to_string(), &body(n)).unwrap()).into();
    assert_eq!(lines, ["HTTP/1.1 503 Service Unavailable", "HTTP/1.1 422 Unprocessable Entity", "HTTP/1.1 200 OK"]);
    webhook.set_default(Step::Answer(302));
    assert!(post(&webhook, "9", &body(9)).unwrap().contains("302"));
    assert_eq!(webhook.records().items.len(), 1);
}

#[test]
fn one_connection_serves_many_requests_and_other_addresses_cost_no_step() {
    let webhook = ScriptedWebhook::with_script("sk", [Step::Answer(201)]).unwrap();
    let mut stream = TcpStream::connect(webhook.addr).unwrap();
    for (path, status) in [("/api/webhook", "404"), ("/api/webhook/consume", "201"), ("/api/webhook/consume", "200")] {
        send(&mut stream, path, "a", &body(1));
        assert!(answer(&mut stream).unwrap().contains(status));
    }
    assert_eq!((webhook.connections(), webhook.calls()), (1, 2));
    stream.write_all(b"GET /api/webhook/consume HTTP/1.1\r\n\r\n").unwrap();
    assert!(answer(&mut stream).unwrap().contains("405"));
    stream.write_all(b"hello\r\n\r\n").unwrap();
    assert!(answer(&mut stream).unwrap().contains("400"));
}

#[test]
fn a_wrong_signature_is_noted() {
    let webhook = ScriptedWebhook::start("another").unwrap();
    assert!(post(&webhook, "a", &body(1)).unwrap().contains("200"));
    assert!(!webhook.requests()[0].is_signed);
    assert!(!webhook.wait_for_calls(2, Duration::from_millis(20)));
}
