//! Leases that are renewed by themselves.

use jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;
use crate::spinneret::testing::lease as grant;

impl Rig {
    /// The next lease ends so long from now, by a server whose clock is ahead of ours by `ahead` seconds.
    fn next_lives(&self, seconds: i64, ahead: i64) -> Timestamp {
        let ends = Timestamp::from_second(Timestamp::now().as_second() + 1 + seconds + ahead).unwrap();
        let mut granted = grant("lse_1");
        granted["lease"]["expires_at"] = json!(ends);
        granted["hints"]["renew_before_ms"] = json!(seconds * 250);
        self.script.next(Procedure::Acquire, Step::Answer(granted));
        ends
    }

    /// When renewals were asked for, in seconds after the start.
    fn renewals(&self, started: Instant) -> Vec<u64> {
        let seen = self.script.seen();
        seen.iter().filter(|call| call.procedure == Procedure::Renew).map(|call| (call.at - started).as_secs()).collect()
    }
}

fn until(at: Timestamp, seconds: i64) -> Step {
    Step::Answer(json!({"expires_at": Timestamp::from_second(at.as_second() + seconds).unwrap()}))
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_before_its_end_whatever_the_clocks_say() {
    for ahead in [0, 3_600, -3_600, -110, 100] {
        let (rig, started) = (Rig::new(), Instant::now());
        let at = rig.next_lives(120, ahead);
        rig.script
            .next(Procedure::Renew, until(at, 90))
            .next(Procedure::Renew, until(at, 180))
            .next(Procedure::Renew, until(at, 270));
        let lease = rig.lease().auto_renew().acquire().await.unwrap();
        sleep(secs(300)).await;
        assert_eq!(rig.renewals(started), [90, 180, 270], "{ahead}");
        assert_eq!(rig.script.bodies(Procedure::Renew)[0], json!({"lease_id": "lse_1", "extend_ms": 0}));
        assert_eq!(lease.expires_at().unwrap().as_second(), at.as_second() + 270);
        lease.release().await.unwrap();
        sleep(secs(300)).await;
        assert_eq!(rig.calls(Procedure::Renew), 3, "no renewal after the release");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_only_when_that_is_asked_for() {
    let rig = Rig::new();
    rig.next_lives(120, 0);
    let lease = rig.acquire().await;
    sleep(secs(600)).await;
    assert_eq!(rig.calls(Procedure::Renew), 0);
    assert!(!lease.is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_by_what_was_asked_for() {
    let rig = Rig::new();
    rig.next_lives(120, 0);
    let lease = rig.lease().auto_renew_by(secs(600)).acquire().await.unwrap();
    sleep(secs(95)).await;
    assert_eq!(rig.script.bodies(Procedure::Renew)[0]["extend_ms"], 600_000);
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_lease_or_a_releasing_report_ends_its_renewal() {
    let rig = Rig::new();
    rig.next_lives(120, 0);
    drop(rig.lease().auto_renew().acquire().await.unwrap());
    rig.next_lives(120, 0);
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    lease.report(ReportDraft::status(200).release()).unwrap();
    sleep(secs(600)).await;
    assert_eq!(rig.calls(Procedure::Renew), 0);
    assert!(!lease.is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_keeps_no_client_alive() {
    let rig = Rig::new();
    rig.next_lives(120, 0);
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    let wire = Arc::downgrade(&rig.client.ways().wire);
    drop((lease, rig));
    sleep(ms(1)).await;
    assert_eq!(wire.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_moves_the_end_is_not_asked_more_than_once_a_second() {
    let (rig, started) = (Rig::new(), Instant::now());
    let at = rig.next_lives(120, 0);
    rig.script.always(Procedure::Renew, until(at, 0));
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    sleep(secs(101)).await;
    let times = rig.renewals(started);
    assert!((10..=12).contains(&times.len()) && times[0] == 90, "{times:?}");
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_gone_is_lost() {
    let (rig, logs, started) = (Rig::new(), Logs::of_target("spinneret.lease"), Instant::now());
    rig.next_lives(120, 0);
    rig.script.always(Procedure::Renew, refuse(404, "not_found", "lease_unknown"));
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    assert!(!lease.is_lost());
    lease.lost().await;
    assert_eq!(started.elapsed().as_secs(), 90);
    sleep(secs(600)).await;
    assert_eq!(rig.calls(Procedure::Renew), 1);
    assert!(logs.warnings()[0].contains("lease is lost") && logs.warnings().len() == 1);
    lease.report(200).unwrap();
    drop(lease);
    rig.settle().await;
    assert_eq!(rig.reports().await, [(200, true)], "what was done under it is still reported");
}

#[tokio::test(start_paused = true)]
async fn a_lease_at_the_end_of_its_lifetime_is_lost_at_its_expiry() {
    let (rig, logs, started) = (Rig::new(), Logs::of_target("spinneret.lease"), Instant::now());
    rig.next_lives(120, 0);
    rig.script.always(Procedure::Renew, refuse(400, "failed_precondition", "lease_lifetime_exceeded"));
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    sleep(secs(100)).await;
    assert!(!lease.is_lost() && logs.warnings().is_empty());
    lease.lost().await;
    assert!((120..=121).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    assert_eq!(rig.calls(Procedure::Renew), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_tried_again_until_the_end() {
    let (rig, started) = (Rig::new(), Instant::now());
    let at = rig.next_lives(120, 0);
    rig.script.next(Procedure::Renew, internal()).next(Procedure::Renew, internal()).next(Procedure::Renew, until(at, 600));
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    sleep(secs(110)).await;
    assert_eq!(rig.calls(Procedure::Renew), 3);
    assert!(!lease.is_lost());
    rig.script.always(Procedure::Renew, internal());
    lease.lost().await;
    let times = rig.renewals(started);
    assert!(times[3] == 690 && times.windows(2).all(|pair| pair[1] > pair[0]), "{times:?}");
    assert!((720..=722).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_prolonged_by_hand_is_not_lost() {
    let (rig, started) = (Rig::new(), Instant::now());
    let at = rig.next_lives(120, 0);
    rig.script.next(Procedure::Renew, refuse(403, "permission_denied", "scope_missing")).next(Procedure::Renew, until(at, 60));
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    sleep(secs(100)).await;
    lease.renew(secs(80)).await.unwrap();
    sleep(secs(30)).await;
    assert!(!lease.is_lost());
    rig.script.always(Procedure::Renew, refuse(403, "permission_denied", "scope_missing"));
    lease.lost().await;
    assert!((180..=181).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_ends_renewals_quietly() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.next_lives(120, 0);
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    rig.close_wire();
    sleep(secs(600)).await;
    assert!(!lease.is_lost() && logs.warnings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_an_expiry_is_not_renewed_and_that_is_said() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let mut granted = grant("lse_1");
    granted["lease"]["expires_at"] = Value::Null;
    rig.script.next(Procedure::Acquire, Step::Answer(granted));
    let lease = rig.lease().auto_renew().acquire().await.unwrap();
    sleep(secs(600)).await;
    assert_eq!((rig.calls(Procedure::Renew), logs.warnings().len()), (0, 1));
    drop(lease);
}
