//! Leases dropped where no runtime is, and runtimes that end.

use std::thread;

use futures_util::FutureExt as _;
use tokio::runtime::{Builder, Runtime};

use super::*;

impl Rig {
    /// Waits for a release without using the client.
    async fn until_released(&self) {
        for _ in 0..1_000 {
            if !self.released().is_empty() {
                break;
            }
            tokio::time::sleep(ms(5)).await;
        }
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

#[test]
fn a_lease_dropped_on_a_plain_thread_is_given_back() {
    let (rig, runtime, logs) = (Rig::new(), runtime(), Logs::of_target("spinneret.lease"));
    let (quiet, reported) = runtime.block_on(async { (rig.acquire().await, rig.acquire().await) });
    reported.report(200).unwrap();
    thread::spawn(move || drop((quiet, reported))).join().unwrap();
    runtime.block_on(rig.until_released());
    assert_eq!(rig.released(), ["lse_1"]);
    assert_eq!(runtime.block_on(rig.reports()), [(200, true)]);
    assert!(logs.warnings().is_empty());
}

#[test]
fn what_is_dropped_after_its_runtime_waits_for_the_next_one() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
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
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let first = runtime();
    let lease = first.block_on(rig.acquire());
    drop(first);
    let second = runtime();
    second.block_on(async {
        drop(lease);
        rig.until_released().await;
    });
    assert_eq!(rig.released(), ["lse_1"]);
    assert!(logs.warnings().is_empty());
}

#[test]
fn a_release_that_was_under_way_when_its_runtime_ended_is_made_again() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
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
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let releaser = rig.client.ways().releaser.clone();
    for n in 0..5 {
        releaser.release(format!("lse_{n}"));
    }
    assert_eq!(logs.warnings().len(), 1);
    runtime().block_on(rig.settle());
    assert_eq!(rig.released().len(), 5);
}

#[test]
fn threads_that_add_while_the_task_comes_and_goes_have_every_lease_given_back_once() {
    let rig = Rig::new();
    for n in 0..8_000 {
        // Some calls take a while, so that some are under way whenever the task looks for more.
        let answer = super::Step::Answer(serde_json::json!({"released": true}));
        rig.script.next(Procedure::Release, if n % 50 == 0 { super::Step::After(ms(1), Box::new(answer)) } else { answer });
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async { rig.client.ways().releaser.settle_in() });
    thread::scope(|scope| {
        for thread in 0..4 {
            let releaser = rig.client.ways().releaser.clone();
            scope.spawn(move || {
                for n in 0..2_000 {
                    releaser.release(format!("{thread}-{n}"));
                    // Now and then the task is left alone for long enough to end.
                    if n % 50 == 0 {
                        thread::sleep(ms(2));
                    }
                }
            });
        }
    });
    runtime.block_on(rig.settle());
    let mut released = rig.released();
    assert_eq!(released.len(), 8_000);
    released.sort_unstable();
    released.dedup();
    assert_eq!(released.len(), 8_000);
}

#[test]
fn a_call_that_is_cut_off_with_its_runtime_is_said() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.next(Procedure::Acquire, Step::Hang);
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { assert!(tokio::time::timeout(ms(10), rig.lease().acquire()).await.is_err()) });
    assert!(logs.warnings().is_empty());
    drop(runtime);
    assert_eq!(logs.warnings().len(), 1);
    assert!(logs.warnings()[0].contains("cut off"));
}

#[test]
fn closing_outside_a_runtime_waits_for_nothing_and_leaves_no_promise_in_the_log() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.always(Procedure::Release, Step::Hang);
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        drop(rig.acquire().await);
        while rig.released().is_empty() {
            tokio::task::yield_now().await;
        }
    });
    let watcher = rig.client.config_watcher(crate::spinneret::WatcherOptions::new(["g/a"]).without_snapshots()).unwrap();
    let waiting = watcher.wait_for_change(crate::spinneret::ChangeFilter::any(), Some(ms(1)));
    assert_eq!(waiting.now_or_never(), Some(None), "nobody keeps the time");
    assert_eq!(watcher.stop(None).now_or_never(), Some(()));
    assert_eq!(rig.client.close().now_or_never(), Some(()));
    drop(runtime);
    let warnings = logs.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("the client is closed before"), "{warnings:?}");
}
