//! Reports of a lease, and the reporter closing in between.

use std::sync::Mutex;
use std::thread;

use super::*;

#[tokio::test(start_paused = true)]
async fn b072_a_closed_reporter_refuses_and_the_report_held_back_arrives() {
    let rig = Rig::new();
    rig.lease()
        .run(async |lease| {
            lease.report(200)?;
            rig.client.reporter().close(None).await;
            assert!(matches!(lease.report(201), Err(Error::ReporterClosed(_))));
            assert!(!lease.is_released());
            assert!(rig.script.reports().is_empty());
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    let reports = rig.script.reports();
    assert_eq!(reports.len(), 1);
    assert_eq!((&reports[0]["http_status"], is_releasing(&reports[0])), (&Value::from(200), true));
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b073_a_failed_delivery_is_a_warning() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let lease = rig.lease().raise_on_release_error().acquire().await.unwrap();
    lease.report(200).unwrap();
    rig.client.reporter().close(None).await;
    rig.script.always(Procedure::Report, refuse(403, "permission_denied", "scope_missing"));
    lease.release().await.unwrap();
    assert_eq!(logs.warnings().len(), 1);
    assert_eq!(rig.calls(Procedure::Report), 1);
}

#[tokio::test(start_paused = true)]
async fn b073_a_rejected_delivery_is_a_warning() {
    let (rig, logs) = (Rig::new(), Logs::of_target("spinneret.lease"));
    let lease = rig.acquire().await;
    let id = lease.report(200).unwrap().report_id;
    rig.client.reporter().close(None).await;
    let rejected = serde_json::json!({"rejected": [{"report_id": id, "reason": "lease_unknown", "message": "gone"}]});
    rig.script.always(Procedure::Report, Step::Answer(rejected));
    lease.release().await.unwrap();
    assert!(logs.warnings()[0].contains("lease_unknown"), "{:?}", logs.warnings());
}

#[tokio::test(start_paused = true)]
async fn b075_a_lease_without_a_uri_wants_one_in_every_report() {
    let rig = Rig::new();
    let lease = rig.client.lease(AcquireRequest::new("shop", "web").endpoint_group("search")).unwrap().acquire().await.unwrap();
    assert!(matches!(lease.report(200), Err(Error::InvalidArgument(_))));
    lease.release().await.unwrap();
    assert_eq!(rig.released(), ["lse_1"]);
    assert!(rig.reports().await.is_empty());

    let lease = rig.client.lease(AcquireRequest::new("shop", "web").endpoint_group("search")).unwrap().acquire().await.unwrap();
    lease.report(ReportDraft::status(200).uri("https://h/x/y?q=1#f")).unwrap();
    lease.release().await.unwrap();
    rig.reports().await;
    assert_eq!(rig.script.reports()[0]["uri"], "/x/y");
}

#[tokio::test(start_paused = true)]
async fn b076_a_report_is_about_the_path_the_lease_was_acquired_for() {
    let rig = Rig::new();
    assert_eq!(rig.acquire().await.report(200).unwrap().uri, "/feed");
}

#[tokio::test(start_paused = true)]
async fn b085_debug_shows_names_only() {
    let rig = Rig::new();
    let lease = rig.acquire().await;
    let text = format!("{lease:?} {:?} {:?}", rig.lease(), rig.client.ways().releaser);
    assert!(!text.contains("c4n4ry") && !text.contains("user") && !text.contains("10.0.0.1"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn b185_a_refused_report_changes_nothing() {
    let rig = Rig::new();
    let lease = rig.acquire().await;
    lease.report(200).unwrap();
    rig.client.reporter().close(None).await;
    assert!(matches!(lease.report(500), Err(Error::ReporterClosed(_))));
    lease.release().await.unwrap();
    rig.settle().await;
    let reports = rig.script.reports();
    assert_eq!(reports.len(), 1);
    assert_eq!((&reports[0]["http_status"], is_releasing(&reports[0])), (&Value::from(200), true));
    assert!(rig.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b186_a_lease_without_reports_is_released_after_the_reporter_closed() {
    let rig = Rig::new();
    rig.lease()
        .run(async |lease| {
            rig.client.reporter().close(None).await;
            assert!(matches!(lease.report(200), Err(Error::ReporterClosed(_))), "even one that would only be held back");
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    assert_eq!(rig.released(), ["lse_1"]);
    assert!(rig.script.reports().is_empty());
}

#[tokio::test]
async fn reports_of_several_threads_arrive_in_the_order_in_which_they_were_taken() {
    let rig = Rig::new();
    let lease = rig.acquire().await;
    let taken = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..4 {
            let (lease, taken) = (&lease, &taken);
            scope.spawn(move || {
                for n in 0..100 {
                    // The order of `taken` is that of the reports only inside one thread.
                    let report = lease.report(ReportDraft::status(200).report_id(format!("{thread}-{n}"))).unwrap();
                    taken.lock().unwrap().push(report.report_id);
                }
            });
        }
    });
    lease.release().await.unwrap();
    rig.reports().await;
    let arrived: Vec<String> =
        rig.script.reports().iter().map(|report| report["report_id"].as_str().unwrap().to_owned()).collect();
    for thread in 0..4 {
        let own: Vec<&String> = arrived.iter().filter(|id| id.starts_with(&format!("{thread}-"))).collect();
        assert_eq!(own, (0..100).map(|n| format!("{thread}-{n}")).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    }
    let releasing: Vec<usize> = (0..arrived.len()).filter(|at| is_releasing(&rig.script.reports()[*at])).collect();
    assert_eq!((arrived.len(), taken.lock().unwrap().len(), releasing), (400, 400, vec![399]));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_shared_between_tasks() {
    let rig = Rig::new();
    let lease = Arc::new(rig.acquire().await);
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let lease = Arc::clone(&lease);
            tokio::spawn(async move { lease.report(200).map(|report: Report| report.release) })
        })
        .collect();
    drop(lease);
    for task in tasks {
        assert!(!task.await.unwrap().unwrap());
    }
    rig.settle().await;
    assert_eq!(rig.reports().await, [(200, false), (200, false), (200, true)]);
}
