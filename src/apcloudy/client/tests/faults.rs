//! What goes wrong on the way, and what it is said to be.

use super::*;

#[tokio::test]
async fn every_status_of_the_script_has_its_answer() {
    let wait = vec![("retry-after".to_owned(), "7".to_owned())];
    let server = ScriptedWebhook::with_script(
        SECRET,
        [
            Step::AnswerWith { status: 429, headers: wait.clone(), body: "slow\ndown".to_owned() },
            Step::AnswerWith { status: 503, headers: wait, body: String::new() },
            Step::Answer(422),
            Step::Answer(413),
            Step::Answer(401),
            Step::Answer(409),
            Step::Answer(202),
        ],
    )
    .unwrap();
    let client = client(&server.url());
    let mut answers = Vec::new();
    for _ in 0..7 {
        answers.push(checked(client.post(BODY.into(), "a").await));
    }
    let after = Some(Duration::from_secs(7));
    let expected = [
        Answer::Retry { after, why: "HTTP 429 Too Many Requests: slow down".to_owned() },
        Answer::Retry { after, why: "HTTP 503 Service Unavailable".to_owned() },
        Answer::Split { why: "HTTP 422 Unprocessable Entity: {\"error\": \"scripted 422\"}".to_owned() },
        Answer::Split { why: "HTTP 413 Payload Too Large: {\"error\": \"scripted 413\"}".to_owned() },
        Answer::of(401, None, "{\"error\": \"scripted 401\"}"),
        Answer::Retry { after: None, why: "HTTP 409 Conflict: {\"error\": \"scripted 409\"}".to_owned() },
        Answer::Delivered,
    ];
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn a_date_in_retry_after_counts_from_the_clients_clock() {
    let headers = vec![("retry-after".to_owned(), "Tue, 14 Nov 2023 22:14:05 GMT".to_owned())];
    let server = ScriptedWebhook::with_script(SECRET, [Step::AnswerWith { status: 503, headers, body: String::new() }]).unwrap();
    let client = client(&server.url()).with_clock(|| UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let Answer::Retry { after, .. } = client.post(BODY.into(), "a").await else { panic!() };
    assert_eq!(after, Some(Duration::from_secs(45)));
}

#[tokio::test]
async fn redirects_are_failures_and_nothing_goes_to_their_target() {
    let target = ScriptedWebhook::start(SECRET).unwrap();
    for status in [301, 302, 303, 304, 307, 308] {
        let headers = vec![("location".to_owned(), format!("{}/api/webhook/consume?canary", target.url()))];
        let server = ScriptedWebhook::with_script(SECRET, [Step::AnswerWith { status, headers, body: String::new() }]).unwrap();
        let why = retried(post(&server.url()).await);
        assert!(why.starts_with(&format!("HTTP {status}")), "{why}");
        assert!(why.contains(&target.url().replace("http://", "")), "{why}");
    }
    assert_eq!((target.calls(), target.connections()), (0, 0));
}

#[tokio::test]
async fn a_connection_that_ends_before_the_answer_is_tried_again() {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert_eq!(retried(post(&format!("http://{refused}")).await), format!("connection refused ({refused})"));
    let server = ScriptedWebhook::with_script(SECRET, [Step::Reset, Step::TakeThenReset]).unwrap();
    assert_eq!(retried(post(&server.url()).await), "connection was reset");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(retried(post(&server.url()).await), "connection was reset");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(post(&server.url()).await, Answer::Delivered);
    for head in ["", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"] {
        assert_eq!(retried(post(&raw(head, true).await).await), "connection was closed before the answer was complete", "{head}");
    }
    let why = retried(post(&raw("SSH-2.0-canary\r\n\r\n", true).await).await);
    assert!(why.starts_with("the answer is not HTTP (127.0.0.1:"), "{why}");
    let why = retried(post("http://no-such-host.invalid").await);
    assert_eq!(why, "the name of no-such-host.invalid cannot be resolved");
}

#[tokio::test]
async fn a_silent_server_costs_the_idle_limit_and_no_more() {
    let server = ScriptedWebhook::with_script(SECRET, [Step::Hang(Duration::from_secs(60))]).unwrap();
    let client = impatient(&server.url());
    let begun = tokio::time::Instant::now();
    assert_eq!(retried(client.post(BODY.into(), "a").await), "no answer within 0.3 s");
    assert!((300 * MS..5000 * MS).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    // The connection with the answer that may still come is not used again.
    assert_eq!(client.post(BODY.into(), "a").await, Answer::Delivered);
    assert_eq!((server.connections(), server.records().items.len()), (2, 1));
}

#[tokio::test]
async fn a_head_without_an_end_is_silence() {
    let client = impatient(&raw("HTTP/1.1 200 OK\r\n", false).await);
    let why = retried(client.post(BODY.into(), "a").await);
    assert_eq!(why, "no answer within 0.3 s");
}

#[tokio::test]
async fn the_status_decides_however_the_body_ends() {
    let begun = tokio::time::Instant::now();
    for closes in [true, false] {
        let url = raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nonly a part", closes).await;
        assert_eq!(impatient(&url).post(BODY.into(), "a").await, Answer::Delivered);
        let url = raw("HTTP/1.1 403 Forbidden\r\nContent-Length: 500\r\n\r\nonly a part", closes).await;
        assert_eq!(impatient(&url).post(BODY.into(), "a").await, Answer::of(403, None, "only a part"));
    }
    let endless = format!(
        "HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "10000\r\n".to_owned() + &"x".repeat(0x10000) + "\r\n"
    );
    let why = retried(impatient(&raw(endless, false).await).post(BODY.into(), "a").await);
    assert_eq!(why, format!("HTTP 500 Internal Server Error: {}", "x".repeat(200)));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_batch_that_was_taken_does_not_wait_for_the_rest_of_its_answer() {
    for head in ["Content-Length: 500\r\n\r\nonly a part", "Transfer-Encoding: chunked\r\n\r\n"] {
        let url = raw(format!("HTTP/1.1 200 OK\r\n{head}"), false).await;
        let begun = tokio::time::Instant::now();
        assert_eq!(client(&url).post(BODY.into(), "a").await, Answer::Delivered);
        assert!(begun.elapsed() < 2000 * MS, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_slow_reader_is_not_silent() {
    // More than is read slowly and than lies in the system's buffers, which looks as if it had been read.
    const BYTES: usize = 32_000_000;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let begun = tokio::time::Instant::now();
        let (mut read, mut piece) = (0, vec![0; 256 * 1024]);
        while read < BYTES {
            if begun.elapsed() < 2500 * MS {
                tokio::time::sleep(40 * MS).await;
            }
            read += stream.read(&mut piece).await.unwrap();
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let _ = stream.read(&mut piece).await;
    });
    let client = Client::new(ClientConfig { idle_timeout: 1500 * MS, ..config(&url) }).unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(client.post(vec![b' '; BYTES].into(), "a").await, Answer::Delivered);
    assert!(begun.elapsed() > 2500 * MS, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_reader_that_stops_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stuck = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    });
    assert_eq!(retried(impatient(&url).post(vec![b' '; 20_000_000].into(), "a").await), "no answer within 0.3 s");
    stuck.abort();
}
