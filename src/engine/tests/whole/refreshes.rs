//! Refreshes of pages: hops like redirects, after the time that the page names; and the page a request is from.

use super::script::{Do, follow, item, make};
use super::stand::{Outcome, Stand};
use super::{SECOND, identities, rule};
use crate::testkit::transport::Answer;
use crate::web::referrer_policy::ReferrerPolicy;

fn a(path: &str) -> String {
    format!("http://a.test/{path}")
}

fn leads(after: u32, to: &str) -> Answer {
    Answer::html(format!("<title>wait</title><meta http-equiv=refresh content='{after};url={to}'>"))
}

fn seconds(done: &Outcome) -> Vec<u64> {
    done.times("GET").iter().map(std::time::Duration::as_secs).collect()
}

#[test]
fn a_refresh_at_once_is_a_hop_under_the_same_lease() {
    let done = Stand::new().start([follow(&a("1"))]).answers(&a("1"), [leads(0, "/2")]).page(&a("2"), [item("x")]).run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 1);
    let told: Vec<_> = done.reports.iter().map(|(_, r)| (r.path.as_str(), r.status, r.release)).collect();
    assert_eq!(told, [("/1", Some(200), false), ("/2", Some(200), true)]);
    assert_eq!(done.ids(), ["x"]);
    assert_eq!((done.count("redirect/count"), done.count("redirect/refresh_count")), (1, 1));
    assert_eq!((done.count("response_received_count"), done.ended.books.enqueued), (1, 1));
}

#[test]
fn a_refresh_after_a_time_waits_for_it_and_keeps_its_lease() {
    let mut stand = Stand::new()
        .start([follow(&a("1")), follow(&a("other"))])
        .with(|s| s.concurrent_requests = 1)
        .answers(&a("1"), [leads(9, "/2")])
        .answers(&a("2"), [leads(0, "/3")])
        .page(&a("3"), [item("x")]);
    stand.identities = Some(identities("a", 2));
    stand.leases = vec![rule("a.test", "a")];
    let done = stand.run();
    done.assert_whole();
    assert_eq!(seconds(&done), [0, 0, 9, 9], "others go meanwhile");
    let lease = |path: &str| &done.reports.iter().find(|(_, r)| r.path == path).unwrap().1.lease;
    assert!(lease("/1") == lease("/2") && lease("/2") == lease("/3"));
    assert_eq!(done.granted.len(), 2);
    assert_eq!(["lease/kept", "lease/kept_used", "lease/kept_lost"].map(|key| done.count(key)), [1, 1, 0]);
    assert_eq!((done.ids(), done.ended.books.handled), (vec!["x".to_owned()], 2));
}

#[test]
fn a_refresh_that_waits_for_long_gives_its_lease_back_meanwhile() {
    let stand = Stand::new().start([follow(&a("1"))]).answers(&a("1"), [leads(40, "/2")]).page(&a("2"), [item("x")]);
    let done = stand.run();
    done.assert_whole();
    let granted: Vec<_> = done.granted.iter().map(|(at, ..)| at.as_secs()).collect();
    assert_eq!((granted, done.count("lease/kept")), (vec![0, 40], 0));
    assert_eq!(done.ids(), ["x"]);
}

#[test]
fn a_refresh_to_another_site_gets_a_lease_of_its_own_when_it_is_due() {
    let done = Stand::new().start([follow(&a("1"))]).answers(&a("1"), [leads(7, "http://b.test/")]).run();
    done.assert_whole();
    let granted: Vec<_> = done.granted.iter().map(|(at, _, ask)| (at.as_secs(), &*ask.site)).collect();
    assert_eq!(granted, [(0, "a.test"), (7, "b.test")]);
    assert!(done.reports.iter().all(|(_, report)| report.release));
}

#[test]
fn a_chain_of_refreshes_and_redirects_ends_at_redirect_max_times() {
    let done = Stand::new()
        .start([follow(&a("1"))])
        .with(|s| s.redirect_max_times = 3)
        .answers(&a("1"), (0..9).map(|_| leads(1, "/2")))
        .answers(&a("2"), (0..9).map(|_| Answer::redirect(302, "/1")))
        .run();
    done.assert_whole();
    assert_eq!(seconds(&done), [0, 1, 1, 2]);
    assert_eq!(done.said("failed redirect_limit").len(), 1, "{:?}", done.lines);
}

#[test]
fn case_r04_redirects_and_refreshes_stay_in_the_allowed_domains() {
    let mut stand = Stand::new()
        .start([follow(&a("out")), follow(&a("meta")), follow(&a("later"))])
        .answers(&a("out"), [Answer::redirect(302, "http://b.test/")])
        .answers(&a("meta"), [leads(0, "http://b.test/?u=a.test")])
        .answers(&a("later"), [leads(30, "http://a.test.b.test/")]);
    stand.script.domains = vec!["a.test".to_owned()];
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 3);
    assert!(done.took < 5 * SECOND, "nobody waits for a hop that is not made");
    assert_eq!((done.count("offsite/filtered"), done.count("offsite/domains")), (3, 2));
    assert_eq!(done.ended.books.dropped, 3);
}

#[test]
fn a_stop_ends_the_wait_and_keeps_the_request() {
    let stand = Stand::new().start([follow(&a("1"))]).answers(&a("1"), [leads(90, "/2")]);
    let done = stand.run_and(|desk| async move {
        tokio::time::sleep(10 * SECOND).await;
        desk.stop();
    });
    done.assert_sound();
    assert_eq!((done.asked.len(), done.ended.books.pending), (1, 1));
    assert!(done.took < 12 * SECOND, "{:?}", done.took);
    assert_eq!(done.releases.len(), 1, "its lease is given back");
}

#[test]
fn the_page_a_request_is_from_is_told_as_far_as_the_policies_let_it() {
    let own: Do = make("http://c.test/own", |request| {
        request.referrer_policy(ReferrerPolicy::UnsafeUrl);
    });
    let done = Stand::new()
        .start([follow(&a("list?page=1"))])
        .answers(&a("list?page=1"), [Answer::html("<p>").header("referrer-policy", "strict-origin-when-cross-origin")])
        .page(&a("list?page=1"), [follow(&a("moved")), follow("http://b.test/x"), own])
        .answers(&a("moved"), [Answer::redirect(302, "/quiet")])
        .answers(&a("quiet"), [Answer::redirect(302, "http://b.test/y").header("referrer-policy", "no-referrer")])
        .page("http://b.test/x", [follow("http://b.test/z")])
        .run();
    done.assert_whole();
    let sent = |url: &str| {
        let asked = done.asked.iter().find(|asked| asked.url.as_str() == url).unwrap_or_else(|| panic!("{url}"));
        asked.headers.get("referer").map(|value| value.to_str().unwrap())
    };
    assert_eq!(sent(&a("list?page=1")), None);
    assert_eq!(sent(&a("moved")), Some("http://a.test/list?page=1"));
    assert_eq!(sent(&a("quiet")), Some("http://a.test/list?page=1"), "a hop is from the same page");
    assert_eq!(sent("http://b.test/y"), None, "the redirect says so");
    assert_eq!(sent("http://b.test/x"), Some("http://a.test/"));
    assert_eq!(sent("http://b.test/z"), Some("http://b.test/x"));
    assert_eq!(sent("http://c.test/own"), Some("http://a.test/list?page=1"), "the spider's word goes first");
}

#[test]
fn a_page_may_say_in_its_body_what_its_links_tell() {
    let page = "<meta name=referrer content=origin><a href=/x>";
    let stand = |enabled| {
        let stand = Stand::new().start([follow(&a("1"))]).with(move |s| s.referer_enabled = enabled);
        stand.answers(&a("1"), [Answer::html(page)]).page(&a("1"), [follow(&a("x"))]).run()
    };
    let told = |done: &Outcome| done.asked[1].headers.get("referer").map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(told(&stand(true)).as_deref(), Some("http://a.test/"));
    assert_eq!(told(&stand(false)), None);
}
