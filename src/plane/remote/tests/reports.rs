//! Reports to the server's model, over a socket.

use super::*;
use crate::plane::Rejected;
use crate::spinneret::ErrorKind;

#[tokio::test]
async fn a_report_ends_its_lease_and_counts_once_however_often_it_is_sent() {
    let stage = Stage::new(3).await;
    let remote = stage.remote(ALL);
    let grants = remote.acquire_batch(ask("/"), 3).await.unwrap();
    let mut reports: Vec<Report> = (10..).zip(&grants).map(|(id, grant)| report(id, &grant.lease)).collect();
    reports[1].status = None;
    reports[1].error = Some(ErrorKind::ConnReset);
    reports[2].status = Some(407);
    assert_eq!(remote.report(reports.clone()).await, Ok(Taken::default()));
    assert_eq!(remote.report(reports).await, Ok(Taken { duplicated: 3, rejected: Vec::new() }));
    tokio::time::sleep(SECOND / 10).await;
    let counts = ["acquired", "released", "open", "reports_accepted", "reports_duplicated"].map(|name| stage.count(name));
    assert_eq!(counts, [3, 3, 0, 3, 3]);

    // Another run's reports of the same numbers are others.
    let next = stage.remote(ALL);
    let grant = next.acquire(ask("/")).await.unwrap();
    assert_eq!(next.report(vec![report(10, &grant.lease)]).await, Ok(Taken::default()));
    assert_eq!(next.report(Vec::new()).await, Ok(Taken::default()));
    stage.end().await;
}

#[tokio::test]
async fn a_report_on_a_lease_nobody_knows_comes_back_alone() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    let grant = remote.acquire(ask("/")).await.unwrap();
    let gone = LeaseId("lse_00000000000000000000000000000000_1_00".into());
    let taken = remote.report(vec![report(1, &gone), report(2, &grant.lease)]).await.unwrap();
    assert_eq!(taken.duplicated, 0);
    assert!(
        matches!(&taken.rejected[..], [Rejected { id: 1, is_unknown_lease: true, reason }] if reason.contains("lease_unknown"))
    );
    assert_eq!((stage.count("reports_accepted"), stage.count("open")), (1, 0));
    stage.end().await;
}

#[tokio::test]
async fn a_report_that_breaks_a_bound_keeps_no_other_back_and_its_lease_is_given_back() {
    let stage = Stage::new(2).await;
    let remote = stage.remote(ALL);
    let grants = remote.acquire_batch(ask("/"), 2).await.unwrap();
    let wrong = Report { markers: vec!["m".repeat(65)], ..report(1, &grants[0].lease) };
    let taken = remote.report(vec![wrong, report(2, &grants[1].lease)]).await.unwrap();
    assert!(
        matches!(&taken.rejected[..], [Rejected { id: 1, is_unknown_lease: false, reason }] if reason.contains("markers[0]"))
    );
    assert_eq!(["reports_accepted", "released", "open"].map(|name| stage.count(name)), [1, 2, 0]);

    let only_wrong =
        Report { method: "A-METHOD-OF-MANY-LETTERS".parse().unwrap(), release: false, ..report(3, &grants[0].lease) };
    assert_eq!(remote.report(vec![only_wrong]).await.unwrap().rejected.len(), 1);
    stage.end().await;
}

#[tokio::test]
async fn more_reports_than_a_call_takes_go_in_several() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    let grant = remote.acquire(ask("/")).await.unwrap();
    let reports = (0..1_200).map(|id| Report { release: id == 1_199, ..report(id, &grant.lease) }).collect();
    assert_eq!(remote.report(reports).await, Ok(Taken::default()));
    assert_eq!(["reports_accepted", "open"].map(|name| stage.count(name)), [1_200, 0]);
    stage.end().await;
}

#[tokio::test]
async fn a_token_without_the_scope_is_told_apart_from_a_server_that_is_gone() {
    let stage = Stage::new(1).await;
    let grant = stage.remote(ALL).acquire(ask("/")).await.unwrap();
    let wrong = stage.remote(UNKNOWN).report(vec![report(1, &grant.lease)]).await;
    assert!(matches!(&wrong, Err(PlaneError::Unauthorized(text)) if text.contains("alert a person")), "{wrong:?}");
    let remote = stage.remote(ALL);
    stage.end().await;
    let gone = remote.report(vec![report(1, &grant.lease)]).await;
    assert!(matches!(&gone, Err(PlaneError::Unavailable(_))), "{gone:?}");
}
