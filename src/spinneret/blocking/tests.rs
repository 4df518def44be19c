#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod sockets;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::spinneret::procedure::Procedure;
use crate::spinneret::testing::{Script, Step};
use crate::spinneret::{
    AcquireBatchRequest, AcquireRequest, ChangeFilter, ConfigKey, Error, ReportDraft, ReporterOptions, RetryPolicy,
    WatcherOptions,
};

const S: Duration = Duration::from_secs(1);

fn patient() -> ReporterOptions {
    ReporterOptions { flush_interval: 600 * S, ..ReporterOptions::default() }
}

fn client_with(script: &Arc<Script>, options: ReporterOptions) -> Client {
    let builder = crate::spinneret::Client::builder().reporter(options).retry(RetryPolicy::NO_RETRY);
    Client::with(|| builder.build_over(Arc::clone(script) as _)).unwrap()
}

fn client(script: &Arc<Script>) -> Client {
    client_with(script, ReporterOptions::default())
}

fn search() -> AcquireRequest {
    AcquireRequest::new("shop", "web").uri("/search")
}

#[track_caller]
fn soon(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < 10 * S, "it never happens");
        thread::sleep(S / 200);
    }
}

fn releases(script: &Script) -> Vec<Value> {
    script.bodies(Procedure::Release)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn many_threads_acquire_report_and_release() {
    let script = Script::new();
    let client = client(&script);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let lease = client.lease(search()).unwrap().acquire().unwrap();
                    assert!(lease.lease_id().starts_with("lse_") && lease.proxy().is_some() && !lease.is_released());
                    lease.report(ReportDraft::status(200)).unwrap();
                    lease.report(ReportDraft::status(404)).unwrap();
                }
            });
        }
    });
    assert!(client.reporter().flush(Some(5 * S)).unwrap());
    let reports = script.reports();
    let count = |release: bool| reports.iter().filter(|report| report["release"] == release).count();
    assert_eq!((count(false), count(true), releases(&script).len()), (20, 20, 0));
    assert_eq!(client.reporter().stats().accepted, 40);
    client.close().unwrap();
    assert!(matches!(client.acquire(search()), Err(Error::ClientClosed(_))));
    assert!(script.is_closed());
}

#[test]
fn a_lease_of_a_thread_that_panics_is_given_back() {
    let script = Script::new();
    let client = client(&script);
    let panics = |is_reported: bool| {
        let lease = client.lease(search()).unwrap().acquire().unwrap();
        let id = lease.lease_id().to_owned();
        let thread = thread::spawn(move || {
            if is_reported {
                lease.report(ReportDraft::status(500)).unwrap();
            }
            std::panic::resume_unwind(Box::new("the spider"));
        });
        assert!(thread.join().is_err());
        id
    };
    let (silent, reported) = (panics(false), panics(true));
    soon(|| releases(&script) == [json!({"lease_id": silent})]);
    soon(|| script.reports().iter().any(|report| report["lease_id"] == *reported && report["release"] == true));
}

#[test]
fn a_block_gives_its_lease_back_however_it_ends() {
    let script = Script::new();
    let client = client(&script);
    let fine = client.lease(search()).unwrap().run(|lease| Ok::<_, Error>(lease.lease_id().to_owned())).unwrap();
    assert_eq!(releases(&script), [json!({"lease_id": fine})]);
    let failed: Result<(), Error> = client.lease(search()).unwrap().run(|_| Err(Error::client_closed()));
    assert!(matches!(failed, Err(Error::ClientClosed(_))));
    assert_eq!(releases(&script).len(), 2);

    let refusal = Step::Refuse { status: 503, code: "unavailable", reason: "rebuilding", hint: None };
    script.always(Procedure::Release, refusal);
    let run = |new: NewLease, result: Result<(), Error>| new.run(|_| result);
    assert!(run(client.lease(search()).unwrap(), Ok(())).is_ok());
    let raising = || client.lease(search()).unwrap().raise_on_release_error();
    assert!(matches!(run(raising(), Ok(())), Err(Error::Unavailable(_))));
    assert!(matches!(run(raising(), Err(Error::client_closed())), Err(Error::ClientClosed(_))));
    script
        .always(Procedure::Acquire, Step::Refuse { status: 429, code: "resource_exhausted", reason: "rate_limited", hint: None });
    let refused = client.lease(search()).unwrap().run(|_| -> Result<(), Error> { panic!("the block runs") });
    assert!(matches!(refused, Err(Error::ResourceExhausted(_))));
}

#[test]
fn a_lease_is_renewed_and_released_once() {
    let script = Script::new();
    let client = client(&script);
    let request = AcquireBatchRequest { each: search(), count: 3 };
    let leases = client.leases(request).unwrap();
    assert_eq!(leases.len(), 3);
    let expiry = leases[0].renew(60 * S).unwrap();
    assert_eq!(script.bodies(Procedure::Renew)[0]["extend_ms"], 60_000);
    assert_eq!((expiry, leases[0].expires_at()), ("2026-09-16T08:40:00Z".parse().ok(), expiry));
    leases[0].release().unwrap();
    leases[0].release().unwrap();
    assert!(leases[0].is_released());
    assert_eq!(releases(&script).len(), 1);
    assert!(matches!(leases[0].report(ReportDraft::status(200)), Err(Error::LeaseReleased(_))));
    drop(leases);
    soon(|| releases(&script).len() == 3);
}

#[test]
fn closing_delivers_what_waits() {
    let script = Script::new();
    let client = client_with(&script, patient());
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    lease.report(ReportDraft::status(200)).unwrap();
    lease.report(ReportDraft::status(201)).unwrap();
    thread::sleep(S / 20);
    assert!(script.reports().is_empty());
    client.close().unwrap();
    assert_eq!(script.reports()[0]["http_status"], 200);
    assert!(client.reporter().is_closed());
    client.close_within(S).unwrap();
}

#[test]
fn the_last_handle_closes_the_client() {
    let script = Script::new();
    let client = client_with(&script, patient());
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    let other = client.lease(search()).unwrap().acquire().unwrap();
    lease.report(ReportDraft::status(200)).unwrap();
    lease.report(ReportDraft::status(201)).unwrap();
    drop(client);
    assert!(!script.is_closed());
    drop(other);
    let id = lease.lease_id().to_owned();
    drop(lease);
    assert!(script.is_closed());
    let statuses: Vec<_> =
        script.reports().iter().map(|report| (report["http_status"].clone(), report["lease_id"] == *id)).collect();
    assert_eq!(statuses, [(json!(200), true), (json!(201), true)]);
    assert_eq!(releases(&script).len(), 1);
}

#[test]
fn the_last_handle_waits_2_s_at_most_for_a_server_that_is_silent() {
    let script = Script::new();
    script.always(Procedure::Report, Step::Hang);
    let client = client_with(&script, ReporterOptions { close_timeout: S / 5, ..patient() });
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    lease.report(ReportDraft::status(200).release()).unwrap();
    let begin = Instant::now();
    drop((client, lease));
    assert!(begin.elapsed() < 5 * S, "{:?}", begin.elapsed());
    assert!(script.is_closed());
}

#[test]
fn a_call_inside_a_runtime_says_what_to_use() {
    let script = Script::new();
    let client = client_with(&script, patient());
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    let calls = script.seen().len();
    let watcher = client.config_watcher(WatcherOptions::new([key("a")]).without_snapshots()).unwrap();
    let runtime = runtime();
    runtime.block_on(async {
        let refusals = [
            client.acquire(search()).map(drop),
            client.lease(search()).unwrap().acquire().map(drop),
            client.get_config("crawler/a").map(drop),
            client.close(),
            lease.renew(S).map(drop),
            lease.release(),
            client.reporter().flush(None).map(drop),
            watcher.start(),
            watcher.wait_for_change(ChangeFilter::any(), None).map(drop),
        ];
        for refusal in refusals {
            let error = refusal.unwrap_err();
            assert!(matches!(error, Error::Configuration(_)), "{error}");
            assert!(error.message().contains("dragline::spinneret::Client"), "{error}");
        }
    });
    assert_eq!(script.seen().len(), calls);
    assert!(!lease.is_released() && !client.reporter().is_closed());
    let inside = runtime.enter();
    assert!(client.acquire(search()).is_err());
    drop(inside);
    client.acquire(search()).unwrap();
}

#[test]
fn what_does_not_wait_is_done_inside_a_runtime_and_outlives_it() {
    let script = Script::new();
    let client = client(&script);
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    let other = client.lease(search()).unwrap().acquire().unwrap();
    let id = other.lease_id().to_owned();
    runtime().block_on(async {
        let report = lease.report(ReportDraft::status(200).release()).unwrap();
        client.reporter().submit(crate::spinneret::Report { report_id: "another".to_owned(), ..report }).unwrap();
        drop((lease, other));
    });
    soon(|| script.reports().len() == 2);
    soon(|| releases(&script) == [json!({"lease_id": id})]);
    assert!(client.reporter().flush(Some(5 * S)).unwrap());
}

#[test]
fn the_last_report_of_a_lease_outlives_the_runtime_in_which_the_lease_was_dropped() {
    let script = Script::new();
    let client = client_with(&script, patient());
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    lease.report(ReportDraft::status(200)).unwrap();
    runtime().block_on(async { drop(lease) });
    soon(|| script.reports().iter().any(|report| report["release"] == true));
}

#[test]
fn the_last_handle_may_go_inside_a_runtime() {
    let script = Script::new();
    let client = client_with(&script, patient());
    let lease = client.lease(search()).unwrap().acquire().unwrap();
    lease.report(ReportDraft::status(200).release()).unwrap();
    runtime().block_on(async { drop((client, lease)) });
    soon(|| script.is_closed());
    assert_eq!(script.reports().len(), 1);
    // A client that cannot be made is no panic either.
    let made = runtime().block_on(async { Client::new(crate::spinneret::Client::builder().url("ftp://h").token("spn_a")) });
    assert!(matches!(made, Err(Error::Configuration(_))));
}

#[test]
fn in_a_child_of_the_process_a_client_answers_with_an_error() {
    let script = Script::new();
    let made = crate::spinneret::Client::builder().build_over(Arc::clone(&script) as _).unwrap();
    let client = Client::in_child(made);
    for refusal in [client.acquire(search()).map(drop), client.close(), client.reporter().flush(None).map(drop)] {
        let error = refusal.unwrap_err();
        assert!(matches!(error, Error::Configuration(_)) && error.message().contains("fork"), "{error}");
    }
    drop(client);
    assert!(script.seen().is_empty() && !script.is_closed());
}

thread_local! {
    static HELD: std::cell::RefCell<Option<(Client, Lease)>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn what_is_local_to_a_thread_is_given_back_when_the_thread_ends() {
    // From now on even a look at the clock asks for the context of the thread.
    drop(tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap());
    let script = Script::new();
    for is_first in [true, false] {
        let client = client_with(&script, patient());
        let acquire = move || {
            // What a thread uses first goes last: what is held goes after the context of the runtime, or before it.
            if is_first {
                HELD.with_borrow(|held| assert!(held.is_none()));
            }
            let lease = client.lease(search()).unwrap().acquire().unwrap();
            lease.report(ReportDraft::status(200)).unwrap();
            HELD.set(Some((client, lease)));
        };
        thread::spawn(acquire).join().unwrap();
    }
    soon(|| script.reports().len() == 2);
    soon(|| script.is_closed());
}

fn key(key: &str) -> ConfigKey {
    ConfigKey { group: "crawler".to_owned(), key: key.to_owned() }
}

fn items(versions: &[(&str, i32)]) -> Step {
    let items: Vec<Value> = versions
        .iter()
        .map(|(key, version)| json!({"group": "crawler", "key": key, "format": "text", "version": version, "content": version.to_string()}))
        .collect();
    Step::Answer(json!({"items": items, "missing": []}))
}

fn watcher_of(client: &Client) -> ConfigWatcher {
    client.config_watcher(WatcherOptions::new([key("a"), key("b")]).without_snapshots()).unwrap()
}

#[test]
fn a_plain_thread_waits_for_a_change() {
    let script = Script::new();
    script.next(Procedure::BatchGetConfig, items(&[("a", 1), ("b", 1)]));
    script.next(Procedure::WatchConfig, Step::After(S / 5, Box::new(items(&[("b", 2)]))));
    script.next(Procedure::WatchConfig, Step::After(S / 5, Box::new(items(&[("a", 2)]))));
    let client = client(&script);
    let watcher = watcher_of(&client);
    watcher.start().unwrap();
    assert!(watcher.is_running() && watcher.is_loaded() && !watcher.is_from_snapshot());
    assert_eq!(watcher.get(key("a")).unwrap().version, 1);
    let mut changes = watcher.changes(ChangeFilter::any());
    let waiting = {
        let watcher = watcher.clone();
        thread::spawn(move || watcher.wait_for_change(ChangeFilter::any().key("a"), Some(10 * S)))
    };
    assert_eq!(waiting.join().unwrap().unwrap().unwrap().version, 2);
    let next = |changes: &mut Changes| changes.next(Some(S / 10)).unwrap().map(|item| item.key);
    assert_eq!([next(&mut changes), next(&mut changes), next(&mut changes)], [Some("b".to_owned()), Some("a".to_owned()), None]);
    assert_eq!(watcher.items().iter().map(|item| item.version).collect::<Vec<_>>(), [2, 2]);
    watcher.stop(None).unwrap();
    assert_eq!(watcher.wait_for_change(ChangeFilter::any(), None).unwrap(), None);
    assert!(matches!(watcher.start(), Err(Error::FailedPrecondition(_))));
}

#[test]
fn closing_the_client_wakes_a_thread_that_waits_for_a_change() {
    let script = Script::new();
    let client = client(&script);
    let watcher = watcher_of(&client);
    watcher.start_in_background().unwrap();
    let waiting = thread::spawn(move || watcher.wait_for_change(ChangeFilter::any(), None));
    soon(|| !script.bodies(Procedure::WatchConfig).is_empty());
    let begin = Instant::now();
    client.close().unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), None);
    assert!(begin.elapsed() < 3 * S);
}

#[test]
fn a_listener_may_make_calls_and_stop_its_watcher() {
    let script = Script::new();
    script.next(Procedure::BatchGetConfig, items(&[("a", 1), ("b", 1)]));
    script.next(Procedure::WatchConfig, items(&[("a", 2)]));
    let client = client(&script);
    let watcher = watcher_of(&client);
    let (told, heard) = mpsc::channel();
    let told = Mutex::new(told);
    watcher.on_change(|_| std::panic::resume_unwind(Box::new("a listener")));
    let (calling, stopping) = (client.clone(), watcher.clone());
    watcher.on_change(move |item| {
        calling.acquire(search()).unwrap();
        let begin = Instant::now();
        if item.version == 2 {
            stopping.stop(None).unwrap();
        }
        told.lock().unwrap().send((item.key.clone(), item.version, begin.elapsed() < S / 2)).unwrap();
    });
    let removed = watcher.on_change(|_| panic!("it was removed"));
    assert!(watcher.remove(removed) && !watcher.remove(removed));
    watcher.start().unwrap();
    let three: Vec<_> = heard.iter().take(3).collect();
    assert_eq!(three, [("a".to_owned(), 1, true), ("b".to_owned(), 1, true), ("a".to_owned(), 2, true)]);
    soon(|| !watcher.is_running());
    soon(|| script.bodies(Procedure::Acquire).len() == 3);
}

#[test]
fn debug_forms_show_no_secret() {
    let script = Script::new();
    let client = client(&script);
    let lease = client.lease(search()).unwrap();
    let before = format!("{lease:?}");
    let lease = lease.acquire().unwrap();
    let all = format!("{before} {lease:?} {client:?} {:?} {:?}", client.reporter(), watcher_of(&client));
    assert!(all.contains("lse_1") && !all.contains("c4n4ry") && !all.contains("spn_"), "{all}");
}
