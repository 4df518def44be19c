//! Leases dropped where no runtime is, and runtimes that end.

use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::*;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

#[test]
fn a_lease_dropped_on_a_plain_thread_is_given_back() {
    let (rig, runtime, logs) = (Rig::new(), runtime(), Logs::capture());
    let (quiet, reported) = runtime.block_on(async { (rig.acquire().await, rig.acquire().await) });
    reported.report(200).unwrap();
    thread::spawn(move || drop((quiet, reported))).join().unwrap();
    runtime.block_on(rig.settle());
    assert_eq!(rig.released(), ["lse_1"]);
    assert_eq!(runtime.block_on(rig.reports()), [(200, true)]);
    assert!(logs.warnings().is_empty());
}

#[test]
fn what_is_dropped_after_its_runtime_waits_for_the_next_one() {
    let (rig, logs) = (Rig::new(), Logs::capture());
    let first = runtime();
    let leases: Vec<Lease> = first.block_on(async { vec![rig.acquire().await, rig.acquire().await] });
    drop(first);
    drop(leases);
    assert!(rig.released().is_empty());
    assert_eq!(logs.warnings().len(), 1, "said once: {:?}", logs.warnings());

    let second = runtime();
    second.block_on(async {
        rig.acquire().await.release().await.unwrap();
        rig.settle().await;
    });
    let mut released = rig.released();
    released.sort_unstable();
    assert_eq!(released, ["lse_1", "lse_2", "lse_3"]);
}

#[test]
fn a_lease_is_given_back_from_where_it_is_dropped_when_its_own_runtime_is_gone() {
    let (rig, logs) = (Rig::new(), Logs::capture());
    let first = runtime();
    let lease = first.block_on(rig.acquire());
    drop(first);
    let second = runtime();
    second.block_on(async {
        drop(lease);
        // Nothing of the client is awaited here.
        for _ in 0..1_000 {
            if !rig.released().is_empty() {
                break;
            }
            tokio::time::sleep(ms(5)).await;
        }
    });
    assert_eq!(rig.released(), ["lse_1"]);
    assert!(logs.warnings().is_empty());
}

#[test]
fn a_release_that_was_under_way_when_its_runtime_ended_is_made_again() {
    let (rig, logs) = (Rig::new(), Logs::capture());
    rig.script.next(Procedure::Release, Step::Hang);
    let first = Builder::new_current_thread().enable_time().build().unwrap();
    first.block_on(async {
        drop(rig.acquire().await);
        while rig.released().is_empty() {
            tokio::task::yield_now().await;
        }
    });
    drop(first);
    assert_eq!(logs.warnings().len(), 1);
    runtime().block_on(rig.settle());
    assert_eq!(rig.released(), ["lse_1", "lse_1"]);
}

#[test]
fn without_any_runtime_a_release_is_kept_and_that_is_said_once() {
    let (rig, logs) = (Rig::new(), Logs::capture());
    let releaser = rig.client.ways().releaser.clone();
    for n in 0..5 {
        releaser.release(format!("lse_{n}"));
    }
    assert_eq!(logs.warnings().len(), 1);
    runtime().block_on(rig.settle());
    assert_eq!(rig.released().len(), 5);
}
