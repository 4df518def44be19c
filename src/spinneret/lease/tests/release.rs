//! Ending and prolonging a lease by hand.

use tokio::time::{sleep, timeout};

use super::*;

#[tokio::test(start_paused = true)]
async fn b065_a_lease_is_released_once() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.always(Procedure::Release, Step::Answer(serde_json::json!({"released": false})));
    let lease = rig.acquire().await;
    lease.release().await.unwrap();
    assert!(lease.is_released());
    lease.release().await.unwrap();
    drop(lease);
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_1"]);
    assert_eq!(logs.at("DEBUG").len(), 1);
    assert!(logs.warnings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b183_a_failed_release_is_told_once() {
    let rig = Rig::new();
    rig.script.always(Procedure::Release, unavailable());
    let lease = rig.lease().raise_on_release_error().acquire().await.unwrap();
    assert!(matches!(lease.release().await, Err(Error::Unavailable(_))));
    let calls = rig.calls(Procedure::Release);
    lease.release().await.unwrap();
    drop(lease);
    rig.settle().await;
    assert_eq!(rig.calls(Procedure::Release), calls);
}

#[tokio::test(start_paused = true)]
async fn b071_a_renewal_moves_the_expiry_if_the_server_tells_one() {
    let rig = Rig::new();
    let lease = rig.acquire().await;
    let at = |text: &str| Some(text.parse().unwrap());
    assert_eq!(lease.expires_at(), at("2026-09-16T08:30:00Z"));
    assert_eq!(lease.renew(Duration::from_micros(1_500)).await.unwrap(), at("2026-09-16T08:40:00Z"));
    assert_eq!(lease.expires_at(), at("2026-09-16T08:40:00Z"));
    rig.script.next(Procedure::Renew, Step::Answer(serde_json::json!({})));
    assert_eq!(lease.renew(Duration::ZERO).await.unwrap(), at("2026-09-16T08:40:00Z"));
    let extends: Vec<Value> = rig.script.bodies(Procedure::Renew).iter().map(|body| body["extend_ms"].clone()).collect();
    assert_eq!(extends, [2, 0], "rounded up, for zero means something else");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_finds_the_lease_gone_loses_it() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let lease = Arc::new(rig.acquire().await);
    let waiting = tokio::spawn({
        let lease = Arc::clone(&lease);
        async move { lease.lost().await }
    });
    rig.script.next(Procedure::Renew, refuse(400, "failed_precondition", "lease_lifetime_exceeded"));
    assert!(matches!(lease.renew(Duration::ZERO).await, Err(Error::LeaseExpired(_))));
    assert!(!lease.is_lost(), "it lives until its expiry");
    rig.script.next(Procedure::Renew, refuse(404, "not_found", "lease_unknown"));
    assert!(matches!(lease.renew(Duration::ZERO).await, Err(Error::LeaseUnknown(_))));
    assert!(lease.is_lost());
    waiting.await.unwrap();
    lease.lost().await;
    assert_eq!(logs.warnings().len(), 1);
    assert!(!lease.is_released());
    lease.report(200).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_release_that_nobody_waits_for_is_finished_once() {
    let rig = Rig::new();
    let slow = Step::After(secs(2), Box::new(Step::Answer(serde_json::json!({"released": true}))));
    rig.script.always(Procedure::Release, slow);
    let lease = rig.acquire().await;
    assert!(timeout(secs(1), lease.release()).await.is_err());
    lease.release().await.unwrap();
    drop(lease);
    assert_eq!(rig.client.ways().releaser.drain(ms(500)).await, 1, "the call is still on its way");
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_was_never_polled_leaves_the_lease_open() {
    let rig = Rig::new();
    let lease = rig.acquire().await;
    drop(lease.release());
    sleep(secs(1)).await;
    assert!(!lease.is_released());
    lease.report(200).unwrap();
}
