//! Kept leases: what a callback makes goes under the lease of its response, and the last of it ends the lease.

use super::script::Do::{Error, Flush, Mark, Sleep};
use super::script::{Do, follow, item, make};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND};
use crate::api::failure::FailureKind;
use crate::testkit::transport::Answer;

fn a(path: &str) -> String {
    format!("http://a.test/{path}")
}

fn keep(url: &str) -> Do {
    make(url, |request| {
        request.keep_lease();
    })
}

/// The reports in the order they were made: path, lease by its number from 0, and whether it ends the lease.
fn told(done: &Outcome) -> Vec<(&str, usize, bool)> {
    let number = |report: &crate::plane::Report| done.granted.iter().position(|(_, id, _)| *id == report.lease).unwrap();
    done.reports.iter().map(|(_, r)| (r.path.as_str(), number(r), r.release)).collect()
}

fn counts(done: &Outcome) -> [i64; 3] {
    ["lease/kept", "lease/kept_used", "lease/kept_lost"].map(|name| done.count(name))
}

#[test]
fn pages_of_a_list_go_under_one_lease_and_the_last_report_ends_it() {
    let done = Stand::new()
        .start([follow(&a("1"))])
        .page(&a("1"), [keep(&a("2")), item("one")])
        .page(&a("2"), [keep(&a("3")), Mark("second")])
        .page(&a("3"), [item("three")])
        .run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 1);
    assert_eq!(told(&done), [("/1", 0, false), ("/2", 0, false), ("/3", 0, true)]);
    assert_eq!(counts(&done), [2, 2, 0]);
    assert_eq!((done.releases.len(), done.ended.leases.reported), (0, 1));
}

#[test]
fn several_requests_of_one_page_share_its_lease() {
    let done = Stand::new()
        .start([follow(&a("0"))])
        .page(&a("0"), [keep(&a("1")), keep(&a("2")), follow(&a("own")), keep(&a("3"))])
        .run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 2);
    let told = told(&done);
    assert_eq!(told.iter().filter(|(path, ..)| *path != "/own").map(|(_, lease, _)| lease).collect::<Vec<_>>(), [&0; 4]);
    assert_eq!(told.iter().filter(|(_, lease, ends)| *lease == 0 && *ends).count(), 1);
    assert_eq!(counts(&done), [3, 3, 0]);
}

#[test]
fn a_follow_up_that_is_dropped_gives_its_share_back() {
    let mut stand = Stand::new()
        .start([follow(&a("0"))])
        .page(&a("0"), [follow(&a("seen")), keep(&a("seen")), keep("http://evil.test/"), keep(&a("0"))])
        .with(|s| s.depth_limit = 1);
    stand.script.domains = vec!["a.test".to_owned()];
    let done = stand.page(&a("seen"), [keep(&a("too/deep"))]).run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 2);
    // Offsite is out of the lease's scope to begin with.
    assert_eq!((done.count("lease/kept"), done.count("lease/kept_dropped"), done.count("lease/kept_used")), (3, 3, 0));
    assert_eq!(done.releases.len(), 2, "no report was left to end the two leases");
    assert_eq!((done.ended.leases.released, done.ended.leases.reported), (2, 0));
}

#[test]
fn a_callback_that_fails_keeps_nothing() {
    let done = Stand::new().start([follow(&a("0"))]).page(&a("0"), [keep(&a("1")), Error("no")]).run();
    done.assert_whole();
    assert_eq!(told(&done), [("/0", 0, true)]);
    assert_eq!(counts(&done), [0, 0, 0]);
}

#[test]
fn failed_keeps_the_lease_of_the_attempt_that_failed() {
    let done = Stand::new()
        .start([follow(&a("0"))])
        .answers(&a("0"), [Answer::new(404, "")])
        .on_failed(&a("0"), [keep(&a("login"))])
        .run();
    done.assert_whole();
    assert_eq!(told(&done), [("/0", 0, false), ("/login", 0, true)]);
}

#[test]
fn a_part_that_is_flushed_keeps_the_lease_too() {
    let done = Stand::new().start([follow(&a("0"))]).page(&a("0"), [keep(&a("1")), Flush, Sleep(SECOND), keep(&a("2"))]).run();
    done.assert_whole();
    assert_eq!(told(&done), [("/1", 0, false), ("/0", 0, false), ("/2", 0, true)]);
    // Held for its callback for so long, the report of the page goes on its own, and the lease is still there.
    let done =
        Stand::new().start([follow(&a("0"))]).page(&a("0"), [keep(&a("1")), Flush, Sleep(5 * SECOND), keep(&a("2"))]).run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 1);
    assert_eq!(done.count("reporter/held_too_long"), 1);
    assert_eq!(done.reports.iter().filter(|(_, r)| r.release).count(), 1);
}

#[test]
fn a_follow_up_that_is_redirected_keeps_the_lease_within_its_scope() {
    let done = Stand::new()
        .start([follow(&a("0"))])
        .page(&a("0"), [keep(&a("1"))])
        .answers(&a("1"), [Answer::redirect(302, "/2")])
        .answers(&a("2"), [Answer::redirect(302, "http://b.test/3")])
        .page("http://b.test/3", [keep("http://b.test/4")])
        .run();
    done.assert_whole();
    assert_eq!(told(&done), [("/0", 0, false), ("/1", 0, false), ("/2", 0, true), ("/3", 1, false), ("/4", 1, true)]);
    assert_eq!(counts(&done), [2, 2, 0]);
}

#[test]
fn a_repeated_attempt_has_a_lease_of_its_own() {
    let done = Stand::new()
        .start([follow(&a("0"))])
        .page(&a("0"), [keep(&a("1"))])
        .answers(&a("1"), [Answer::fault(FailureKind::Timeout), Answer::html("ok")])
        .run();
    done.assert_whole();
    assert_eq!(told(&done), [("/0", 0, false), ("/1", 0, true), ("/1", 1, true)]);
    assert_eq!(counts(&done), [1, 1, 0]);
}

#[test]
fn out_of_scope_or_with_another_target_a_request_gets_its_own_lease_and_is_counted() {
    let other = make(&a("other"), |request| {
        request.lease("anonymous", "web").keep_lease();
    });
    let mut stand = Stand::new().start([follow(&a("0"))]).page(&a("0"), [keep("http://b.test/"), other]);
    stand.identities = Some(super::identities("anonymous", 4));
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 3);
    assert_eq!(counts(&done), [0, 0, 2]);
}

#[test]
fn a_kept_lease_is_renewed_until_it_ends() {
    let mut stand = Stand::new()
        .start([follow(&a("0"))])
        .page(&a("0"), [keep(&a("1"))])
        .answers(&a("1"), [Answer::html("ok").after(30 * SECOND)])
        .with(|s| s.download_delay = 20 * SECOND);
    stand.life = Some(10 * SECOND);
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 1);
    assert!(done.ended.leases.renewed > 0, "{:?}", done.ended.leases);
    assert_eq!(counts(&done), [1, 1, 0]);
}

#[test]
fn a_kept_lease_that_cannot_be_renewed_is_lost_for_what_waits() {
    let mut stand = Stand::new().start([follow(&a("0"))]).page(&a("0"), [keep(&a("1"))]).with(|s| s.download_delay = 20 * SECOND);
    stand.life = Some(10 * SECOND);
    stand.renew_fails = true;
    let done = stand.run();
    assert_eq!(done.ended.reason, "finished");
    assert_eq!(done.granted.len(), 2);
    assert_eq!(counts(&done), [1, 0, 1]);
    assert_eq!((done.ended.leases.lost, done.ended.imbalances.len()), (1, 0), "{:?}", done.ended.leases);
    assert!(done.ended.leases.balances());
}

#[test]
fn with_one_identity_the_follow_up_goes_before_everyone_who_waits_for_it() {
    let pages = (0..6).map(|n| follow(&a(&n.to_string())));
    let mut stand = Stand::new().start(pages).page(&a("0"), [keep(&a("0/next"))]).page(&a("0/next"), [keep(&a("0/last"))]);
    for n in 0..6 {
        stand = stand.answers(&a(&n.to_string()), [Answer::html("ok").after(100 * MILLI)]);
    }
    stand.identities = Some(super::identities("shop", 1));
    stand.leases = vec![super::rule("a.test", "shop")];
    let done = stand.run();
    done.assert_whole();
    let order: Vec<&str> = done.said("GET").iter().map(|line| line.rsplit('/').next().unwrap()).collect();
    assert_eq!(&order[..3], ["0", "next", "last"], "{order:?}");
    assert_eq!(done.most_at_once, 1);
    assert!(done.took < 10 * SECOND, "{:?}", done.took);
}

#[test]
fn a_stop_gives_the_shares_of_what_waits_back() {
    let stand = Stand::new()
        .start([follow(&a("0"))])
        .page(&a("0"), [keep(&a("1")), keep(&a("2"))])
        .with(|s| s.download_delay = 60 * SECOND);
    let done = stand.run_and(|desk| async move {
        tokio::time::sleep(5 * SECOND).await;
        desk.stop();
    });
    done.assert_sound();
    assert_eq!(done.ended.books.pending, 2);
    assert_eq!((done.ended.leases.acquired, done.ended.leases.released), (1, 1));
}
