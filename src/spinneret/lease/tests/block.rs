//! A lease around a block.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout};

use super::*;

#[derive(Debug)]
enum Trouble {
    OfTheBlock,
    OfTheClient,
}

impl From<Error> for Trouble {
    fn from(_: Error) -> Self {
        Self::OfTheClient
    }
}

#[tokio::test(start_paused = true)]
async fn b059_before_acquisition_only_the_site_shows() {
    let rig = Rig::new();
    let lease = rig.lease();
    assert_eq!(format!("{lease:?}"), r#"NewLease { site: "shop", acquired: false }"#);
    let lease = lease.acquire().await.unwrap();
    assert_eq!(format!("{lease:?}"), r#"Lease { lease_id: "lse_1", identity_id: "idt_1", released: false }"#);
    assert_eq!((lease.identity_type(), lease.endpoint_group()), ("account", "search"));
    assert_eq!((lease.is_probe(), lease.is_sticky(), lease.renew_before()), (false, false, secs(30)));
    assert_eq!(lease.proxy().unwrap().proxy_id, "pxy_1");
    assert_eq!(lease.credential().cookies["sid"], "c4n4ry-cookie");
}

#[tokio::test(start_paused = true)]
async fn preparing_a_lease_asks_for_nothing() {
    let rig = Rig::new();
    drop(rig.lease());
    drop(rig.lease().acquire());
    rig.settle().await;
    assert!(rig.script.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b060_a_block_without_a_report_releases_by_a_call() {
    let rig = Rig::new();
    let seven = rig.lease().run(async |_| Ok::<_, Error>(7)).await.unwrap();
    assert_eq!(seven, 7);
    assert_eq!(rig.released(), ["lse_1"]);
    assert!(rig.reports().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b061_the_only_report_releases() {
    let rig = Rig::new();
    rig.lease().run(async |lease| lease.report(200)).await.unwrap();
    assert_eq!(rig.reports().await, [(200, true)]);
    rig.settle().await;
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b062_the_last_of_several_reports_releases() {
    let rig = Rig::new();
    let first = rig
        .lease()
        .run(async |lease| {
            let first = lease.report(200)?;
            lease.report(404)?;
            Ok::<_, Error>(first)
        })
        .await
        .unwrap();
    assert!(!first.release);
    assert_eq!(rig.reports().await, [(200, false), (404, true)]);
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b063_a_releasing_report_ends_the_lease_at_once() {
    let rig = Rig::new();
    rig.lease()
        .run(async |lease| {
            lease.report(200)?;
            assert!(lease.report(ReportDraft::status(429).release())?.release);
            assert!(lease.is_released());
            let again = lease.report(200).unwrap_err();
            assert!(matches!(again, Error::LeaseReleased(_)) && again.reason() == "lease_released", "{again}");
            assert!(matches!(lease.renew(Duration::ZERO).await, Err(Error::LeaseReleased(_))));
            assert_eq!(rig.reports().await, [(200, false), (429, true)]);
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    rig.settle().await;
    assert_eq!(rig.reports().await.len(), 2);
    assert_eq!((rig.calls(Procedure::Release), rig.calls(Procedure::Renew)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn b064_an_error_of_the_block_releases_and_propagates() {
    let rig = Rig::new();
    let error = rig.lease().run(async |_| Err::<(), _>(Trouble::OfTheBlock)).await.unwrap_err();
    assert!(matches!(error, Trouble::OfTheBlock));
    assert_eq!(rig.released(), ["lse_1"]);

    let reported = rig.lease().run(async |lease| {
        lease.report(500)?;
        Err::<(), _>(Trouble::OfTheBlock)
    });
    assert!(matches!(reported.await, Err(Trouble::OfTheBlock)));
    assert_eq!(rig.reports().await, [(500, true)]);
    assert_eq!(rig.released(), ["lse_1"]);
}

#[tokio::test(start_paused = true)]
async fn b066_a_lease_that_is_gone_already_is_no_error() {
    let gone = [
        (400, "failed_precondition", "lease_released"),
        (400, "failed_precondition", "lease_expired"),
        (400, "failed_precondition", "lease_lifetime_exceeded"),
        (404, "not_found", "lease_unknown"),
    ];
    for (status, code, reason) in gone {
        let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
        rig.script.always(Procedure::Release, refuse(status, code, reason));
        rig.lease().raise_on_release_error().run(async |_| Ok::<_, Error>(())).await.unwrap();
        rig.acquire().await.release().await.unwrap();
        assert_eq!(rig.calls(Procedure::Release), 2);
        assert_eq!(logs.at("DEBUG").iter().filter(|line| line.contains(reason)).count(), 2);
        assert!(logs.warnings().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn b067_a_failed_release_is_raised_by_the_option_alone() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.always(Procedure::Release, unavailable());
    rig.lease().run(async |_| Ok::<_, Error>(())).await.unwrap();
    assert_eq!(logs.warnings().len(), 1);
    let before = rig.calls(Procedure::Release);

    let raised = rig.lease().raise_on_release_error().run(async |_| Ok::<_, Error>(())).await;
    assert!(matches!(raised, Err(Error::Unavailable(_))), "{raised:?}");
    assert_eq!(logs.warnings().len(), 2);
    rig.settle().await;
    assert_eq!(rig.calls(Procedure::Release), 2 * before, "the background does not try again what was answered");
}

#[tokio::test(start_paused = true)]
async fn b068_a_failed_release_never_replaces_the_error_of_the_block() {
    let rig = Rig::new();
    rig.script.always(Procedure::Release, unavailable());
    let block = rig.lease().raise_on_release_error().run(async |_| Err::<(), _>(Trouble::OfTheBlock));
    assert!(matches!(block.await, Err(Trouble::OfTheBlock)));
    assert!(!rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b069_a_client_closed_inside_the_block_is_raised_by_the_option() {
    for is_raised in [false, true] {
        let rig = Rig::new();
        let lease = if is_raised { rig.lease().raise_on_release_error() } else { rig.lease() };
        let result = lease
            .run(async |_| {
                rig.close_wire();
                Ok::<_, Error>(())
            })
            .await;
        assert_eq!(result.err().map(|error| error.reason().to_owned()), is_raised.then(|| "client_closed".to_owned()));
        assert!(rig.released().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn b070_a_failed_acquisition_runs_no_block_and_releases_nothing() {
    let rig = Rig::new();
    rig.script.next(Procedure::Acquire, refuse(400, "invalid_argument", "site_unknown"));
    let result = rig.lease().run(async |_| -> Result<()> { panic!("not to be run") }).await;
    assert!(matches!(result, Err(Error::InvalidArgument(_))));
    rig.settle().await;
    assert!(rig.reports().await.is_empty());
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b184_a_failed_acquisition_keeps_the_hint() {
    let rig = Rig::new();
    let (code, reason) = ("resource_exhausted", "no_identity_available");
    rig.script.next(Procedure::Acquire, Step::Refuse { status: 429, code, reason, hint: Some(50) });
    let error = rig.lease().acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoIdentityAvailable(_)));
    assert_eq!(error.retry_after(), Some(ms(50)));
    rig.settle().await;
    assert_eq!(rig.script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_without_an_id_is_an_error() {
    let rig = Rig::new();
    rig.script.next(Procedure::Acquire, Step::Answer(serde_json::json!({})));
    assert_eq!(rig.lease().acquire().await.unwrap_err().reason(), "invalid_response");
}

#[tokio::test(start_paused = true)]
async fn b074_waiting_for_reports_ends_with_a_warning_when_the_server_is_dead() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.script.always(Procedure::Report, Step::Hang);
    let started = Instant::now();
    rig.lease().flush_on_exit().run(async |lease| lease.report(200)).await.unwrap();
    assert!((secs(5)..ms(5_100)).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert!(logs.warnings().iter().any(|line| line.contains("limit=5s")), "{:?}", logs.warnings());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_reports_ends_when_they_have_arrived() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    rig.lease().flush_on_exit().run(async |lease| lease.report(200)).await.unwrap();
    assert_eq!(rig.script.reports().len(), 1, "without any flush of the test");
    assert!(logs.warnings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_block_releases_in_the_background() {
    let rig = Rig::new();
    let block = rig.lease().run(async |_| -> Result<()> { panic!("a bug of the spider") });
    assert!(AssertUnwindSafe(block).catch_unwind().await.is_err());
    rig.settle().await;
    assert_eq!(rig.released(), ["lse_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_block_that_is_dropped_releases_in_the_background() {
    let rig = Rig::new();
    let block = rig.lease().run(async |lease| {
        lease.report(200)?;
        std::future::pending::<Result<()>>().await
    });
    assert!(timeout(secs(1), block).await.is_err());
    assert_eq!(rig.reports().await, [(200, true)]);
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_block_may_run_in_a_task_of_its_own() {
    let rig = Rig::new();
    let lease = rig.lease();
    let task = tokio::spawn(async move {
        lease
            .run(async |lease: &Lease| {
                tokio::time::sleep(ms(5)).await;
                lease.report(200)
            })
            .await
    });
    assert!(!task.await.unwrap().unwrap().release);
    assert_eq!(rig.reports().await, [(200, true)]);
}
