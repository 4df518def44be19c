//! Acquires that wait: for an identity, at the gate, for nobody any more.

use super::*;

const TENTH: Duration = Duration::from_millis(100);

#[tokio::test]
async fn b145_a_wait_ends_with_the_identity_that_is_freed_and_an_open_breaker_is_not_waited_for() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let held = client.acquire(shop()).await.unwrap();
    let begin = Instant::now();
    let error = client.acquire(shop()).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (429, "no_identity_available"));
    assert!(begin.elapsed() < TENTH && error.retry_after().is_some());

    let begin = Instant::now();
    let error = client.acquire(shop().wait(3 * TENTH)).await.unwrap_err();
    assert_eq!(error.reason(), "no_identity_available");
    assert!((3 * TENTH..6 * TENTH).contains(&begin.elapsed()), "{:?}", begin.elapsed());

    let begin = Instant::now();
    let (next, _) = tokio::join!(client.acquire(shop().wait(5 * TENTH)), async {
        tokio::time::sleep(2 * TENTH).await;
        client.release(&held.lease.lease_id).await.unwrap()
    });
    let next = next.unwrap();
    assert_eq!(next.lease.identity_id, held.lease.identity_id);
    assert!((2 * TENTH..6 * TENTH).contains(&begin.elapsed()), "{:?}", begin.elapsed());

    let open = json!({"site": "shop", "client": "web", "endpoint_group": "_default", "duration_ms": 60_000, "reason": "test"});
    assert_eq!(stage.act("breaker/open", &open).await.status, 200);
    let begin = Instant::now();
    let error = client.acquire(shop().wait(20 * TENTH)).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (503, "circuit_open"));
    assert!(begin.elapsed() < 5 * TENTH && error.retry_after().unwrap() <= 600 * TENTH);
    let close = json!({"site": "shop", "client": "web", "endpoint_group": "_default"});
    assert_eq!(stage.act("breaker/close", &close).await.status, 200);
    client.release(&next.lease.lease_id).await.unwrap();
    client.acquire(shop()).await.unwrap();
    stage.end().await;
}

/// The face without a socket, on a clock that stands still.
async fn ask(face: &Face, wait_ms: u64) -> Reply {
    let body = json!({"site": "shop", "client": "web", "wait_ms": wait_ms}).to_string();
    let headers = [("authorization", format!("Bearer {}", token(ALL))), ("content-type", "application/json".to_owned())];
    let headers = headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let path = "/spinneret.v1.LeaseService/Acquire".to_owned();
    let peer = Ipv4Addr::LOCALHOST.into();
    face.answer(Asked { peer, method: http::Method::POST, path, query: String::new(), headers, body: body.into() }).await
}

fn reason(reply: &Reply) -> &str {
    reply.headers.get("spinneret-reason").map_or("", |reason| reason.to_str().unwrap())
}

#[tokio::test(start_paused = true)]
async fn attempts_are_made_after_50_100_150_and_then_every_200_ms_and_at_the_end() {
    // Freed at these moments, an identity is had at those.
    for (freed, had) in [(1, 50), (51, 150), (151, 300), (301, 500), (501, 700), (701, 800)] {
        let face = Face::new(plane(1), FaceOptions::default());
        let held = lease(ask(&face, 0).await);
        let begin = Instant::now();
        let (reply, ()) = tokio::join!(ask(&face, 800), async {
            sleep(Duration::from_millis(freed)).await;
            free(&face, &held);
        });
        assert_eq!((reply.status.as_u16(), begin.elapsed()), (200, Duration::from_millis(had)), "freed at {freed}");
    }
    let face = Face::new(plane(0), FaceOptions::default());
    for wait in [0, 30, 700, 5_000] {
        let begin = Instant::now();
        let reply = ask(&face, wait).await;
        assert_eq!((reason(&reply), begin.elapsed()), ("no_identity_available", Duration::from_millis(wait)));
    }
    assert_eq!(reason(&ask(&face, 5_001).await), "invalid_argument");
}

#[tokio::test(start_paused = true)]
async fn overloaded_is_told_only_by_a_call_that_never_reached_the_pool() {
    let face = Face::new(plane(0), FaceOptions { gate: 4, ..FaceOptions::default() });
    let full = face.turnstile.enter(4, Duration::ZERO).await.unwrap();
    let begin = Instant::now();
    assert_eq!(reason(&ask(&face, 400).await), "overloaded");
    assert_eq!(begin.elapsed(), Duration::from_millis(400));
    let (reply, ()) = tokio::join!(ask(&face, 400), async {
        sleep(Duration::from_millis(20)).await;
        drop(full);
        sleep(Duration::from_millis(20)).await;
        // It was let in at 20 ms, and is not at its later attempts.
        std::mem::forget(face.turnstile.enter(4, Duration::ZERO).await.unwrap());
    });
    assert_eq!(reason(&reply), "no_identity_available");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_longer_than_its_caller_waits_is_given_up() {
    let face = Face::new(plane(0), FaceOptions::default());
    let body = json!({"site": "shop", "client": "web", "wait_ms": 5000}).to_string();
    let authorization = format!("Bearer {}", token(ALL));
    let headers = HeaderMap::from_iter([
        (AUTHORIZATION, authorization.parse().unwrap()),
        ("connect-timeout-ms".parse().unwrap(), "320".parse().unwrap()),
    ]);
    let path = "/spinneret.v1.LeaseService/Acquire".to_owned();
    let asked = Asked {
        peer: Ipv4Addr::LOCALHOST.into(),
        method: http::Method::POST,
        path,
        query: String::new(),
        headers,
        body: body.into(),
    };
    let begin = Instant::now();
    let reply = face.answer(asked).await;
    assert_eq!((reply.status.as_u16(), begin.elapsed()), (504, Duration::from_millis(320)));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_an_acquire_with_what_it_found_last() {
    let face = Face::new(plane(0), FaceOptions::default());
    let begin = Instant::now();
    let (reply, ()) = tokio::join!(ask(&face, 5_000), async {
        sleep(TENTH).await;
        face.shut_down();
    });
    assert_eq!((reason(&reply), begin.elapsed() < 2 * TENTH), ("no_identity_available", true));
}

#[tokio::test(start_paused = true)]
async fn b139_what_is_not_given_back_ends_by_itself_and_is_free_again() {
    let begin = Instant::now();
    let clock = Clock::new(move || (Clock::default().0)() + Ms::try_from(begin.elapsed().as_millis()).unwrap());
    let face = Arc::new(Face::new(plane(1), FaceOptions { clock, ..FaceOptions::default() }));
    let time = tokio::spawn(Arc::clone(&face).keep_time());
    assert_eq!(ask(&face, 0).await.status, 200);
    sleep(Duration::from_secs(118)).await;
    assert_eq!(reason(&ask(&face, 0).await), "no_identity_available");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(face.ledger().sites["shop"].expired, 1);
    assert_eq!(ask(&face, 0).await.status, 200);
    face.shut_down();
    time.await.unwrap();
}

#[tokio::test]
async fn who_goes_away_while_it_waits_is_granted_nothing() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let held = client.acquire(shop()).await.unwrap();
    let body = json!({"site": "shop", "client": "web", "wait_ms": 5000}).to_string();
    let mut stream = TcpStream::connect(stage.server.addr()).await.unwrap();
    let head = format!(
        "POST /sp/spinneret.v1.LeaseService/Acquire HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        token(ALL),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    sleep(2 * TENTH).await;
    drop(stream);
    sleep(TENTH).await;
    client.release(&held.lease.lease_id).await.unwrap();
    sleep(5 * TENTH).await;
    let ledger = stage.ledger().await;
    assert_eq!((&ledger["acquired"], &ledger["open"]), (&json!(1), &json!(0)), "{ledger}");
    stage.end().await;
}

/// The lease that was granted.
fn lease(reply: Reply) -> String {
    let http_server::ReplyBody::Whole(Some(body)) = reply.body else { panic!("{reply:?}") };
    let answer: crate::spinneret::AcquireResponse = serde_json::from_slice(&body).unwrap();
    answer.lease.lease_id
}

fn free(face: &Face, lease: &str) {
    let request = crate::spinneret::messages::ReleaseRequest::new(lease);
    face.with_plane(|plane, now| {
        let token = plane.enter(Some(&format!("Bearer {}", token(ALL))), None, now).unwrap();
        assert!(plane.release(&token, &request, now).unwrap().released);
    });
}

#[tokio::test]
async fn b151_a_call_that_finds_no_connection_free_is_shed_with_a_hint() {
    let face = Face::new(plane(1), FaceOptions::default());
    let full = |path: &str| {
        let peer = Ipv4Addr::LOCALHOST.into();
        face.refuse_full(&Head {
            peer,
            method: http::Method::POST,
            path: path.to_owned(),
            query: String::new(),
            headers: HeaderMap::new(),
        })
    };
    for _ in 0..20 {
        let reply = full("/spinneret.v1.LeaseService/Acquire");
        assert_eq!((reply.status.as_u16(), reason(&reply)), (503, "overloaded"));
        let hint: u64 = reply.headers["spinneret-retry-after-ms"].to_str().unwrap().parse().unwrap();
        assert!((100..200).contains(&hint), "{hint}");
    }
    let reply = full("/healthz");
    assert_eq!((reply.status.as_u16(), reason(&reply)), (503, ""));
}
