//! Reports: what stands in them, and what happens when nobody takes them.

use super::script::Do::{Mark, Sleep};
use super::script::{follow, make};
use super::stand::Stand;
use super::{MILLI, SECOND};
use crate::api::failure::FailureKind;
use crate::plane::{ErrorKind, PlaneError};
use crate::testkit::transport::Answer;

fn a(path: &str) -> String {
    format!("http://a.test/{path}")
}

#[test]
fn a_report_is_cut_to_what_the_plane_takes() {
    const LONG: &str = "a_marker_that_is_much_longer_than_the_sixty_four_characters_that_a_plane_takes";
    let path = "x".repeat(3000);
    let marks: Vec<_> = ["captcha", LONG, "captcha", ""].map(Mark).into_iter().collect();
    let done = Stand::new().start([follow(&a(&path))]).page(&a(&path), marks).with(|s| s.urllength_limit = 0).run();
    done.assert_whole();
    let (_, report) = &done.reports[0];
    assert_eq!(report.markers, ["captcha", &LONG[..64]]);
    assert_eq!(report.path.len(), 2048);
    assert_eq!(done.count("reporter/cut"), 3);
}

#[test]
fn each_attempt_says_when_it_was_sent_and_how_it_failed() {
    let done = Stand::new()
        .start([follow(&a("1"))])
        .answers(
            &a("1"),
            [
                Answer::fault(FailureKind::ProxyAuth),
                Answer::fault(FailureKind::Proxy).after(SECOND),
                Answer::fault(FailureKind::Resolve),
                Answer::fault(FailureKind::Tls),
                Answer::html("ok"),
            ],
        )
        .with(|s| {
            s.retry_times = 9;
            s.retry_backoff = 10 * SECOND;
        })
        .run();
    done.assert_whole();
    let errors: Vec<_> = done.reports.iter().map(|(_, r)| r.error).collect();
    use ErrorKind as E;
    assert_eq!(errors, [Some(E::ProxyAuth), Some(E::ConnRefused), Some(E::Dns), Some(E::Tls), None]);
    let sent = done.times("GET");
    let first = done.reports[0].1.sent_at;
    for (at, (_, report)) in sent.iter().zip(&done.reports) {
        assert_eq!(report.sent_at - first, *at - sent[0]);
    }
    assert_eq!(done.granted.len(), 5, "each attempt has a lease of its own");
}

#[test]
fn a_plane_that_takes_no_report_of_this_node_stops_the_job_with_exit_3() {
    let mut stand = Stand::new().start((0..200).map(|n| follow(&a(&n.to_string()))));
    for n in 0..200 {
        stand = stand.answers(&a(&n.to_string()), [Answer::html("ok").after(100 * MILLI)]);
    }
    stand.reports_fail = Some((SECOND, PlaneError::Unauthorized("scope_missing".to_owned())));
    let done = stand.run();
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("control_plane_unauthorized", 3), "{:?}", done.ended.imbalances);
    let note = done.ended.note.clone().unwrap();
    assert!(note.contains("scope_missing") && note.contains("SPINNERET_TOKEN"), "{note}");
    assert!(done.took < 5 * SECOND, "{:?}", done.took);
    let leases = done.ended.leases;
    let undelivered = done.count("reporter/undelivered");
    assert!(undelivered > 0 && leases.lost == u64::try_from(undelivered).unwrap(), "{undelivered} {leases:?}");
    assert!(leases.balances() && done.ended.books.balances());
    assert!(done.ended.books.pending > 100);
}

#[test]
fn reports_wait_for_a_plane_that_is_away_and_a_stop_says_what_was_lost() {
    let mut stand = Stand::new().start([follow(&a("1")), follow(&a("2"))]);
    stand.reports_fail = Some((Default::default(), PlaneError::Unavailable("away".to_owned())));
    let done = stand.run();
    assert_eq!(done.count("reporter/undelivered"), 2);
    assert_eq!((done.ended.code, done.ended.leases.lost), (5, 2));
    assert!(done.ended.imbalances[0].contains("2 reports"), "{:?}", done.ended.imbalances);
}

#[test]
fn a_job_that_waits_for_nothing_but_its_reports_gives_a_lost_plane_up() {
    let mut stand = Stand::new().start((0..200).map(|n| follow(&a(&n.to_string())))).with(|s| {
        s.report_queue = 5;
        s.spinneret_unavailable_timeout = 60 * SECOND;
    });
    stand.is_remote = true;
    stand.reports_fail = Some((Default::default(), PlaneError::Unavailable("no route".to_owned())));
    let done = stand.run();
    assert_eq!(done.ended.code, 3, "{:?}", done.ended);
    let note = done.ended.note.clone().unwrap();
    assert!(note.contains("no route") && note.contains("SPINNERET_UNAVAILABLE_TIMEOUT"), "{note}");
    assert!(done.took >= 60 * SECOND && done.took < 75 * SECOND, "{:?}", done.took);
    assert!(done.ended.books.balances() && done.ended.leases.balances());
}

#[test]
fn a_batch_the_plane_never_takes_is_given_up_and_its_leases_are_given_back() {
    let mut stand = Stand::new().start([follow(&a("1")), follow(&a("2"))]);
    stand.reports_fail = Some((Default::default(), PlaneError::Invalid("too many".to_owned())));
    let done = stand.run();
    assert_eq!(done.count("reporter/rejected"), 2);
    assert_eq!((done.ended.code, done.ended.leases.released, done.ledger.open), (0, 2, 0), "{:?}", done.ended);
}

#[test]
fn a_response_tells_under_which_lease_it_came() {
    let done = Stand::new().start([make(&a("1"), |_| {})]).page(&a("1"), [Sleep(MILLI)]).run();
    done.assert_whole();
    let lease = &done.granted[0].1.0;
    assert_eq!(done.said("under"), [format!("under {lease} http://a.test/1")]);
}
