//! What the releaser does.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::spinneret::error_kind::ErrorKind;
use crate::spinneret::messages::ReleaseRequest;
use crate::spinneret::testing::lease as grant;
use crate::spinneret::transport::{Attempt, Fault, Phase, Reply, Transport};

#[tokio::test(start_paused = true)]
async fn a_dropped_lease_is_given_back_by_a_call_or_by_its_last_report() {
    let rig = Rig::new();
    drop(rig.acquire().await);
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_1"]);

    let lease = rig.acquire().await;
    lease.report(200).unwrap();
    lease.report(201).unwrap();
    drop(lease);
    rig.settle().await;
    assert_eq!(rig.reports().await, [(200, false), (201, true)]);
    assert_eq!(rig.released(), ["lse_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_is_tried_again_until_it_succeeds() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    for _ in 0..3 {
        rig.script.next(Procedure::Release, internal());
    }
    let started = Instant::now();
    drop(rig.acquire().await);
    rig.settle().await;
    assert_eq!(rig.calls(Procedure::Release), 4);
    // Three rests: the upper half of 500 ms, of 1 s, of 2 s.
    assert!((ms(1_750)..ms(3_510)).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert!(logs.warnings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_waits_for_the_hint() {
    let rig = Rig::new();
    let (code, reason) = ("resource_exhausted", "rate_limited");
    rig.script.next(Procedure::Release, Step::Refuse { status: 429, code, reason, hint: Some(20_000) });
    drop(rig.acquire().await);
    sleep(ms(19_990)).await;
    assert_eq!(rig.calls(Procedure::Release), 1);
    sleep(ms(20)).await;
    assert_eq!(rig.calls(Procedure::Release), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_is_given_up_at_the_end_of_its_lease() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.always(Procedure::Release, internal());
    let started = Instant::now();
    drop(rig.acquire().await);
    rig.settle().await;
    assert!((secs(85)..secs(120)).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert!(rig.calls(Procedure::Release) > 6);
    assert_eq!(logs.warnings().len(), 1, "{:?}", logs.warnings());

    let started = Instant::now();
    rig.client.ways().releaser.release("lse_of_unknown_end".to_owned());
    rig.settle().await;
    assert!((secs(265)..secs(300)).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert_eq!(logs.warnings().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_succeed_is_made_once() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.next(Procedure::Release, refuse(403, "permission_denied", "scope_missing"));
    drop(rig.acquire().await);
    rig.settle().await;
    assert_eq!(rig.calls(Procedure::Release), 1);
    assert!(logs.warnings()[0].contains("scope_missing") && logs.warnings()[0].contains("lse_1"));

    let lease = rig.acquire().await;
    rig.close_wire();
    drop(lease);
    rig.settle().await;
    assert_eq!(rig.calls(Procedure::Release), 1);
    assert!(logs.warnings()[1].contains("client_closed"));
}

#[tokio::test(start_paused = true)]
async fn leases_are_given_back_a_few_at_once_and_each_once() {
    let rig = Rig::new();
    let slow = Step::After(secs(1), Box::new(Step::Answer(json!({"released": true}))));
    rig.script.always(Procedure::Release, slow);
    let releaser = rig.client.ways().releaser.clone();
    for n in 0..1_000 {
        releaser.release(format!("lse_{}", n % 100));
    }
    sleep(ms(500)).await;
    assert_eq!(rig.calls(Procedure::Release), 16);
    assert_eq!(releaser.drain(Duration::ZERO).await, 100);
    assert_eq!(releaser.drain(secs(2)).await, 100 - 2 * 16);
    rig.settle().await;
    let mut released = rig.released();
    released.sort_unstable();
    released.dedup();
    assert_eq!((released.len(), rig.calls(Procedure::Release)), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn one_lease_that_fails_does_not_keep_others_waiting() {
    let rig = Rig::new();
    for _ in 0..16 {
        rig.script.next(Procedure::Release, internal());
    }
    let releaser = rig.client.ways().releaser.clone();
    for n in 0..40 {
        releaser.release(n.to_string());
    }
    sleep(ms(100)).await;
    assert_eq!(rig.calls(Procedure::Release), 40);
    rig.settle().await;
    assert_eq!(rig.calls(Procedure::Release), 56);
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_when_there_is_nothing_to_do() {
    let rig = Rig::new();
    let wire = Arc::downgrade(&rig.client.ways().wire);
    drop(rig.acquire().await);
    rig.settle().await;
    let script = Arc::clone(&rig.script);
    drop(rig);
    sleep(ms(1)).await;
    assert_eq!(wire.strong_count(), 0, "the client and all that is its own are gone");
    assert_eq!(script.bodies(Procedure::Release).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_may_outlive_its_client() {
    let Rig { script, client } = Rig::new();
    let lease = client.lease(AcquireRequest::new("shop", "web")).unwrap().acquire().await.unwrap();
    drop(client);
    drop(lease);
    sleep(ms(1)).await;
    assert_eq!(script.bodies(Procedure::Release).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_report_is_delivered_when_the_reporter_is_closed() {
    let rig = Rig::new();
    let lease = rig.acquire().await;
    let id = lease.report(200).unwrap().report_id;
    rig.client.reporter().close(None).await;
    rig.script.next(Procedure::Report, internal());
    drop(lease);
    rig.settle().await;
    let ids: Vec<Value> = rig.script.reports().iter().map(|report| report["report_id"].clone()).collect();
    assert_eq!(ids, [id.as_str(), id.as_str()], "the same report again, so the server counts it once");
    assert!(is_releasing(&rig.script.reports()[1]));
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_last_report_is_refused_is_released_by_a_call() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let lease = rig.acquire().await;
    lease.report(200).unwrap();
    rig.client.reporter().close(None).await;
    rig.script.next(Procedure::Report, refuse(403, "permission_denied", "scope_missing"));
    drop(lease);
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_1"]);
    assert_eq!(logs.warnings().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_granted_to_nobody_is_given_back() {
    let rig = Rig::new();
    rig.script.next(Procedure::Acquire, Step::After(secs(3), Box::new(Step::Answer(grant("lse_late")))));
    assert!(timeout(secs(1), rig.lease().acquire()).await.is_err());
    assert!(rig.released().is_empty());
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_late"]);

    let late = json!({"leases": [grant("lse_a"), grant("lse_b")], "requested": 2});
    rig.script.next(Procedure::AcquireBatch, Step::After(secs(3), Box::new(Step::Answer(late))));
    let request = AcquireBatchRequest { each: AcquireRequest::new("shop", "web"), count: 2 };
    assert!(timeout(secs(1), rig.client.leases(request)).await.is_err());
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_late", "lse_a", "lse_b"]);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_nobody_waits_for_may_fail() {
    let rig = Rig::new();
    let fault = Step::Fault(ErrorKind::ConnReset, Phase::Ambiguous);
    rig.script.next(Procedure::Acquire, Step::After(secs(3), Box::new(fault)));
    assert!(timeout(secs(1), rig.lease().acquire()).await.is_err());
    rig.settle().await;
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_batch_are_guards_of_their_own() {
    let rig = Rig::new();
    let granted = json!({"leases": [grant("lse_a"), grant("lse_b")], "requested": 4});
    rig.script.next(Procedure::AcquireBatch, Step::Answer(granted));
    let each = AcquireRequest::new("shop", "web").uri("/feed?x=1");
    let leases = rig.client.leases(AcquireBatchRequest { each: each.clone(), count: 4 }).await.unwrap();
    assert_eq!(leases.iter().map(Lease::lease_id).collect::<Vec<_>>(), ["lse_a", "lse_b"]);
    assert_eq!(leases[0].report(200).unwrap().uri, "/feed");
    drop(leases);
    rig.settle().await;
    assert_eq!(rig.reports().await, [(200, true)]);
    assert_eq!(rig.released(), ["lse_b"]);

    rig.script.next(Procedure::AcquireBatch, Step::Answer(json!({"leases": [], "requested": 4})));
    let none = rig.client.leases(AcquireBatchRequest { each, count: 4 }).await;
    assert_eq!(none.unwrap_err().reason(), "invalid_response");
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_batch_without_an_id_does_not_cost_the_others() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let granted = serde_json::from_value(json!([grant("lse_a"), {}, grant("lse_b")])).unwrap();
    drop(guards(rig.client.ways(), granted, "/").unwrap());
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_a", "lse_b"]);
    assert_eq!(logs.warnings().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_last_report_that_a_closed_client_cannot_send_is_lost_with_one_warning() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let lease = rig.acquire().await;
    lease.report(200).unwrap();
    rig.client.reporter().close(None).await;
    rig.close_wire();
    drop(lease);
    rig.settle().await;
    assert!(logs.warnings().len() == 1 && logs.warnings()[0].contains("client_closed"), "{:?}", logs.warnings());
}

/// Grants, and panics for everything else.
#[derive(Debug)]
struct Fragile(Arc<Script>);

impl Transport for Fragile {
    fn send(&self, attempt: Attempt) -> BoxFuture<'_, Result<Reply, Fault>> {
        if attempt.procedure == Procedure::Acquire {
            return self.0.send(attempt);
        }
        async move { panic!("a bug of the transport") }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn b073_an_unexpected_failure_is_logged_and_swallowed() {
    let logs = Logs::of_target("spinneret.lease");
    let client = Client::builder().build_over(Arc::new(Fragile(Script::new()))).unwrap();
    let lease = async || client.lease(AcquireRequest::new("shop", "web").uri("/")).unwrap().acquire().await.unwrap();
    lease().await.release().await.unwrap();
    drop(lease().await);
    let reported = lease().await;
    reported.report(200).unwrap();
    client.reporter().close(Some(Duration::ZERO)).await;
    reported.release().await.unwrap();
    assert_eq!(client.ways().releaser.drain(secs(1)).await, 0);
    assert_eq!(logs.at("ERROR").len(), 3);
    assert!(logs.warnings().is_empty());
}

#[tokio::test]
#[ignore = "a measurement"]
async fn to_be_finished_in_the_background_costs_less_than_50_microseconds() {
    let rig = Rig::new();
    let wire = Arc::clone(&rig.client.ways().wire);
    let releaser = rig.client.ways().releaser.clone();
    let rounds = 20_000;
    let call = |wire: Arc<Wire>| async move { wire.call(&ReleaseRequest { lease_id: "lse_1".to_owned() }).await };
    for _ in 0..3 {
        let started = std::time::Instant::now();
        for _ in 0..rounds {
            call(Arc::clone(&wire)).await.unwrap();
        }
        let bare = started.elapsed() / rounds;
        let started = std::time::Instant::now();
        for _ in 0..rounds {
            Completing::new(releaser.clone(), call(Arc::clone(&wire))).await.unwrap();
        }
        let completing = started.elapsed() / rounds;
        println!("a call {bare:?}, one that is completed {completing:?}");
        assert!(completing.saturating_sub(bare) < Duration::from_micros(50));
    }
    for _ in 0..3 {
        let started = std::time::Instant::now();
        for _ in 0..rounds / 4 {
            rig.acquire().await.report(200).unwrap();
        }
        println!("acquire, report, drop without a socket: {:?}", started.elapsed() / (rounds / 4));
    }
}
