//! The client as a whole: its construction, its calls, its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{
    AcquireBatchRequest, AcquireRequest, BatchGetConfigRequest, ConfigKey, GetSecretRequest, Report, WatchConfigRequest,
    WatchItem,
};
use crate::spinneret::procedure::Procedure;
use crate::spinneret::testing::{Script, Step, lease};
use crate::spinneret::transport::Phase;
use crate::spinneret::transport::loopback::{Act, Loopback, answer, nobody};
use crate::spinneret::{ChangeFilter, ErrorKind, ProxyChoice, ReportDraft, ReporterOptions, RetryPolicy, Timeouts};

const MS: Duration = Duration::from_millis(1);

fn client(script: &Arc<Script>) -> Client {
    Client::builder().build_over(script.clone()).unwrap()
}

fn builder(url: &str) -> ClientBuilder {
    Client::builder().url(url).token("spn_c4n4ry").node("node 1").environment(|_| None)
}

#[test]
fn b008_no_debug_text_shows_the_token_or_a_password() {
    let builder = builder("https://h:8443/sp/").proxy(ProxyChoice::Url("http://user:c4n4ry@proxy:3128".into()));
    let client = builder.clone().build().unwrap();
    assert_eq!(format!("{client:?}"), r#"Client { url: "https://h:8443/sp", node: "node-1" }"#);
    let shown = format!("{builder:#?} {client:#?} {:#?} {:#?} {:#?}", client.inner.settings, client.ways(), client.wire());
    assert!(!shown.contains("c4n4ry"), "{shown}");
    let wrong = super::ClientBuilder::default().url("http://user:c4n4ry@h").token("c4n4ry c4n4ry");
    assert!(!format!("{wrong:?}").contains("c4n4ry"));
}

#[tokio::test]
async fn b009_building_a_client_opens_no_connection() {
    let server = Loopback::start(vec![]).await;
    let client = builder(&server.url()).build().unwrap();
    tokio::time::sleep(50 * MS).await;
    assert_eq!(server.connections(), 0);
    client.release("lse_1").await.unwrap();
    assert_eq!(server.connections(), 1);
    let script = Script::new();
    Client::builder().build_over(script.clone()).unwrap();
    assert!(script.seen().is_empty());
}

#[test]
fn b009_building_a_client_needs_no_runtime() {
    assert_eq!(builder("http://h").build().unwrap().url(), "http://h");
}

#[tokio::test]
async fn b010_an_acquire_sends_its_fields() {
    let granted = answer(200, "", lease("lse_1").to_string().as_bytes());
    let server = Loopback::start(vec![Act::Answer(granted)]).await;
    let client = builder(&server.url()).user_agent("crawl/7").build().unwrap();
    let request = AcquireRequest::new("shop", "web").uri("/search").endpoint_group("g").session_key("s").wait(1_500 * MS);
    client.acquire(request).await.unwrap();
    let got = &server.got()[0];
    let body: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
    let expected = json!({
        "site": "shop", "client": "web", "uri": "/search", "endpoint_group": "g", "session_key": "s", "wait_ms": 1500
    });
    assert_eq!(body, expected);
    assert!(got.head.starts_with("POST /spinneret.v1.LeaseService/Acquire HTTP/1.1\r\n"), "{}", got.head);
    let agent = format!("crawl/7 dragline-spinneret/{}", env!("CARGO_PKG_VERSION"));
    for (name, value) in [("authorization", "Bearer spn_c4n4ry"), ("x-spinneret-node", "node-1"), ("user-agent", agent.as_str())]
    {
        assert_eq!(got.header(name), Some(value));
    }
}

#[tokio::test(start_paused = true)]
async fn b015_renew_release_and_get_secret_send_their_fields() {
    let script = Script::new();
    script.next(Procedure::GetSecret, Step::Answer(json!({"path": "signing/api-key.v2", "version": 3, "value": "c4n4ry"})));
    let client = client(&script);
    client.renew("lse_1", 90_000 * MS).await.unwrap();
    client.renew("lse_1", Duration::from_nanos(1)).await.unwrap();
    client.release("lse_1").await.unwrap();
    let secret = client.get_secret(GetSecretRequest { path: "signing/api-key.v2".to_owned(), version: 3 }).await.unwrap();
    assert_eq!(secret.version, 3);
    let bodies: Vec<_> = script.seen().into_iter().map(|seen| seen.body).collect();
    let expected = [
        json!({"lease_id": "lse_1", "extend_ms": 90_000}),
        json!({"lease_id": "lse_1", "extend_ms": 1}), // zero means something else
        json!({"lease_id": "lse_1"}),
        json!({"path": "signing/api-key.v2", "version": 3}),
    ];
    assert_eq!(bodies, expected);
}

/// Zero has a meaning of its own, so a part of a millisecond must not become it.
#[tokio::test(start_paused = true)]
async fn b015_a_part_of_a_millisecond_is_renewed_for_a_whole_one() {
    let script = Script::new();
    let client = client(&script);
    for extend in [Duration::ZERO, MS / 2, MS, MS + Duration::from_nanos(1), 1_800_000 * MS] {
        client.renew("lse_1", extend).await.unwrap();
    }
    let sent: Vec<_> = script.bodies(Procedure::Renew).iter().map(|body| body["extend_ms"].clone()).collect();
    assert_eq!(sent, [0, 1, 1, 2, 1_800_000]);
}

fn key() -> ConfigKey {
    ConfigKey { group: "g".to_owned(), key: "k".to_owned() }
}

fn report() -> Report {
    ReportDraft::status(200).build("lse_1", "/search").unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_call_reaches_its_procedure_and_reads_its_answer() {
    let script = Script::new();
    let item = json!({"group": "g", "key": "k", "version": 4, "content": "{}"});
    script
        .next(Procedure::GetConfig, Step::Answer(json!({"item": item})))
        .next(Procedure::BatchGetConfig, Step::Answer(json!({"items": [item], "missing": [{"group": "g", "key": "x"}]})))
        .next(Procedure::WatchConfig, Step::Answer(json!({"items": [item]})))
        .next(Procedure::GetSecret, Step::Answer(json!({"path": "p", "version": 1, "value": "v"})));
    let client = client(&script);
    assert_eq!(client.acquire(AcquireRequest::new("shop", "web")).await.unwrap().lease.lease_id, "lse_1");
    let batch = AcquireBatchRequest { each: AcquireRequest::new("shop", "web"), count: 2 };
    assert_eq!(client.acquire_batch(batch).await.unwrap().leases.len(), 2);
    assert!(client.renew("lse_1", Duration::ZERO).await.unwrap().expires_at.is_some());
    assert!(client.release("lse_1").await.unwrap().released);
    assert_eq!(client.report(vec![report()]).await.unwrap().accepted, 1);
    assert_eq!(client.get_config("g/k").await.unwrap().version, 4);
    let request = BatchGetConfigRequest { namespace: String::new(), items: vec![key()] };
    assert_eq!(client.batch_get_config(request).await.unwrap().missing.len(), 1);
    let items = vec![WatchItem { group: "g".to_owned(), key: "k".to_owned(), version: 3 }];
    let request = WatchConfigRequest { namespace: String::new(), items, timeout_ms: 1_000 };
    assert_eq!(client.watch_config(request).await.unwrap()[0].version, 4);
    assert_eq!(client.get_secret("p").await.unwrap().version, 1);
    let called: Vec<Procedure> = script.seen().iter().map(|seen| seen.procedure).collect();
    assert_eq!(called, Procedure::ALL);
}

/// A request that breaks a bound ends before there is any I/O, whichever call it is of.
#[tokio::test(start_paused = true)]
async fn b053_a_request_that_breaks_a_bound_is_not_sent() {
    let script = Script::new();
    let client = client(&script);
    let keys = |count| BatchGetConfigRequest { namespace: String::new(), items: vec![key(); count] };
    let watch = |version, timeout_ms| WatchConfigRequest {
        namespace: String::new(),
        items: vec![WatchItem { group: "g".to_owned(), key: "k".to_owned(), version }],
        timeout_ms,
    };
    let errors = [
        client.report(vec![]).await.err(),
        client.report(vec![report(); 501]).await.err(),
        client.batch_get_config(keys(0)).await.err(),
        client.batch_get_config(keys(201)).await.err(),
        client.watch_config(watch(0, 60_001)).await.err(),
        client.watch_config(watch(-1, 0)).await.err(),
        client.renew("", Duration::ZERO).await.err(),
        client.renew("lse_1", 1_800_001 * MS).await.err(),
        client.release("").await.err(),
        client.get_config("no-slash").await.err(),
        client.get_secret("Upper/Case").await.err(),
        client.acquire(AcquireRequest::new("", "web")).await.err(),
    ];
    for (n, error) in errors.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("{n} was sent"));
        assert!(matches!(error, Error::InvalidArgument(_)), "{n}: {error:?}");
        assert_eq!(error.http_status(), 0);
    }
    assert!(script.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b051_after_close_every_call_ends_with_client_closed() {
    let script = Script::new();
    let client = client(&script);
    let other = client.clone();
    client.close().await;
    other.close().await;
    let keys = BatchGetConfigRequest { namespace: String::new(), items: vec![key()] };
    let items = vec![WatchItem { group: "g".to_owned(), key: "k".to_owned(), version: 3 }];
    let watch = WatchConfigRequest { namespace: String::new(), items, timeout_ms: 1_000 };
    let batch = AcquireBatchRequest { each: AcquireRequest::new("shop", "web"), count: 2 };
    let errors = [
        other.acquire(AcquireRequest::new("shop", "web")).await.err(),
        other.acquire_batch(batch).await.err(),
        other.renew("lse_1", Duration::ZERO).await.err(),
        other.release("lse_1").await.err(),
        other.report(vec![report()]).await.err(),
        other.get_config(("g", "k")).await.err(),
        other.batch_get_config(keys).await.err(),
        other.watch_config(watch).await.err(),
        other.get_secret("p").await.err(),
    ];
    for error in errors {
        assert_eq!(error.unwrap().reason(), "client_closed");
    }
    assert!(script.seen().is_empty() && script.is_closed());
    assert!(other.reporter().is_closed());
    assert!(matches!(other.reporter().submit(report()), Err(Error::ReporterClosed(_))));
}

#[tokio::test(start_paused = true)]
async fn b120_closing_the_client_stops_its_watchers() {
    let script = Script::new();
    let client = client(&script);
    let watchers = [(); 2].map(|()| client.config_watcher(WatcherOptions::new([key()]).without_snapshots()).unwrap());
    for watcher in &watchers {
        watcher.start().await.unwrap();
    }
    let waiting = tokio::spawn(watchers[0].wait_for_change(ChangeFilter::any(), None));
    tokio::time::sleep(MS).await;
    client.close().await;
    assert!(watchers.iter().all(|watcher| !watcher.is_running()));
    assert_eq!(waiting.await.unwrap(), None);
    let polls = script.bodies(Procedure::WatchConfig).len();
    tokio::time::sleep(120_000 * MS).await;
    assert_eq!(script.bodies(Procedure::WatchConfig).len(), polls, "nobody asks any more");
    assert_eq!(watchers[1].start().await.unwrap_err().reason(), "watcher_stopped");
}

#[tokio::test(start_paused = true)]
async fn b187_closing_the_client_does_not_wait_for_a_poll_that_hangs() {
    let script = Script::new();
    script.always(Procedure::WatchConfig, Step::Hang);
    let client = client(&script);
    let watcher = client.config_watcher(WatcherOptions::new([key()]).without_snapshots()).unwrap();
    watcher.start().await.unwrap();
    tokio::time::sleep(MS).await;
    assert_eq!(script.bodies(Procedure::WatchConfig).len(), 1);
    let begin = Instant::now();
    client.close().await;
    assert!(begin.elapsed() < 3_000 * MS, "{:?}", begin.elapsed());
    assert!(!watcher.is_running());
}

/// Limits that no clock can reach mean as long as it takes.
#[tokio::test(start_paused = true)]
async fn the_longest_limits_of_time_are_borne() {
    let script = Script::new();
    let reporting = ReporterOptions {
        flush_interval: Duration::MAX,
        backoff_max: Duration::MAX,
        close_timeout: Duration::MAX,
        ..ReporterOptions::default()
    };
    let retry = RetryPolicy { backoff_initial: Duration::MAX, backoff_max: Duration::MAX, ..RetryPolicy::default() };
    let client = Client::builder().reporter(reporting).retry(retry).deadline(Duration::MAX).build_over(script.clone()).unwrap();
    let watcher = client.config_watcher(WatcherOptions::new([key()]).without_snapshots()).unwrap();
    watcher.start().await.unwrap();
    watcher.stop(Some(Duration::MAX)).await;
    assert!(!watcher.is_running());
    let lease = client.lease(AcquireRequest::new("shop", "web").uri("/")).unwrap().flush_on_exit().acquire().await.unwrap();
    lease.report(200).unwrap();
    lease.release().await.unwrap();
    client.reporter().submit(report()).unwrap();
    assert!(client.reporter().flush(Some(Duration::MAX)).await);
    script.next(Procedure::Renew, Step::Fault(ErrorKind::ConnReset, Phase::Ambiguous));
    let hour = 3_600_000 * MS;
    assert!(tokio::time::timeout(hour, client.renew("lse_1", Duration::ZERO)).await.is_err(), "it waits for its turn");
    client.close_within(Duration::MAX).await;
    assert_eq!(script.reports().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn closing_sends_what_is_left_to_be_reported_and_a_second_closing_waits_for_it() {
    let script = Script::new();
    script.next(Procedure::Report, Step::After(700 * MS, Box::new(Step::Answer(json!({"accepted": 1})))));
    let client = client(&script);
    client.reporter().submit(report()).unwrap();
    let begin = Instant::now();
    let (first, second) = tokio::join!(
        async {
            client.close().await;
            begin.elapsed()
        },
        async {
            client.clone().close_within(Duration::ZERO).await;
            begin.elapsed()
        }
    );
    assert_eq!(script.reports().len(), 1);
    assert!(first >= 700 * MS && first == second, "{first:?} {second:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_gives_dropped_leases_back_and_sends_their_reports() {
    let script = Script::new();
    let client = client(&script);
    let lease = async || client.lease(AcquireRequest::new("shop", "web").uri("/search")).unwrap().acquire().await.unwrap();
    drop(lease().await);
    let second = lease().await;
    second.report(ReportDraft::status(200)).unwrap();
    drop(second);
    client.close().await;
    assert_eq!(script.bodies(Procedure::Release), [json!({"lease_id": "lse_1"})]);
    let reports = script.reports();
    assert_eq!((reports.len(), &reports[0]["lease_id"], &reports[0]["release"]), (1, &json!("lse_2"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn closing_takes_no_longer_than_it_may_when_the_server_says_nothing() {
    for (limit, longest) in [(Duration::ZERO, 1_600), (2_000 * MS, 3_600), (5_000 * MS, 6_600)] {
        let script = Script::new();
        script.always(Procedure::Report, Step::Hang).always(Procedure::Release, Step::Hang);
        let client = client(&script);
        drop(client.lease(AcquireRequest::new("shop", "web")).unwrap().acquire().await.unwrap());
        client.reporter().submit(report()).unwrap();
        let begin = Instant::now();
        client.close_within(limit).await;
        assert!(begin.elapsed() <= MS * longest, "{limit:?}: {:?}", begin.elapsed());
        assert!(script.is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_let_go_when_the_last_clone_is_dropped() {
    let script = Script::new();
    let client = client(&script);
    client.reporter().submit(report()).unwrap();
    let watcher = client.config_watcher(WatcherOptions::new([key()]).without_snapshots()).unwrap();
    watcher.start().await.unwrap();
    drop(client.lease(AcquireRequest::new("shop", "web")).unwrap().acquire().await.unwrap());
    drop((watcher, client));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(Arc::strong_count(&script), 1, "no task of the client is left");
}

#[tokio::test(start_paused = true)]
async fn calls_under_way_end_when_the_client_is_closed() {
    let script = Script::new();
    script.always(Procedure::Acquire, Step::Hang);
    let client = client(&script);
    let (call, ()) = tokio::join!(client.acquire(AcquireRequest::new("shop", "web")), async {
        tokio::time::sleep(MS).await;
        client.close().await;
    });
    assert!(matches!(call, Err(Error::ClientClosed(_))));
}

#[tokio::test]
async fn b051_a_client_over_a_given_http_client_ends_all_the_same() {
    let server = Loopback::start(vec![]).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let own = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = builder(&server.url()).http_client(own.clone()).build().unwrap();
    client.release("lse_1").await.unwrap();
    client.close().await;
    assert_eq!(client.release("lse_1").await.unwrap_err().reason(), "client_closed");
    assert_eq!(server.got().len(), 1);
    assert!(own.get(server.url()).send().await.is_ok(), "it is not closed");
}

#[tokio::test]
async fn a_watcher_is_made_for_a_client_that_is_open() {
    let script = Script::new();
    let client = client(&script);
    let keys = || WatcherOptions::new([key()]);
    client.config_watcher(keys()).unwrap();
    assert!(matches!(client.config_watcher(WatcherOptions::new(Vec::<ConfigKey>::new())), Err(Error::InvalidArgument(_))));
    assert!(script.seen().is_empty(), "it is not started");
    client.close().await;
    assert!(matches!(client.config_watcher(keys()), Err(Error::ClientClosed(_))));
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let zero = Timeouts { read: Duration::ZERO, ..Timeouts::default() };
    let own = || {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().unwrap()
    };
    for (builder, words) in [
        (builder("http://h").timeouts(zero), "timeouts: read is 0 s; it must be more than 0, and at most 86400 s"),
        (
            builder("http://h").timeouts(Timeouts { watch_grace: Duration::MAX, ..Timeouts::default() }),
            "timeouts: watch_grace is ",
        ),
        (builder("http://h").deadline(Duration::ZERO), "deadline is 0"),
        (builder("http://h").max_connections(0), "max_connections is 0"),
        (builder("http://h").reporter(ReporterOptions { batch_size: 0, ..ReporterOptions::default() }), "batch_size"),
        (builder("http://h").ca_file("/nowhere.pem"), "/nowhere.pem cannot be read"),
        (builder("http://h").http_client(own()).ca_file("/nowhere.pem"), "ClientBuilder::ca_file has no effect"),
        (
            builder("http://h").http_client(own()).proxy(ProxyChoice::Url("http://p:1".into())),
            "ClientBuilder::proxy has no effect",
        ),
        (builder("http://h").proxy(ProxyChoice::Url("gopher://c4n4ry".into())), "ClientBuilder::proxy"),
        (builder("http://h").environment(|name| (name == "HTTP_PROXY").then(|| "gopher://c4n4ry".into())), "variable HTTP_PROXY"),
    ] {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, Error::Configuration(_)) && error.message().contains(words), "{error}");
        assert!(!error.message().contains("c4n4ry"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_asked_again_after_short_waits() {
    let addr = nobody().await;
    let client = builder(&format!("http://{addr}")).build().unwrap();
    let begin = Instant::now();
    let error = client.acquire(AcquireRequest::new("shop", "web")).await.unwrap_err();
    assert!(error.message().ends_with(&format!("connection refused ({addr})")), "{error}");
    let elapsed = begin.elapsed();
    assert!(elapsed >= 150 * MS && elapsed < 3_000 * MS, "{elapsed:?}");
}
