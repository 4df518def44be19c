//! Redirects: whose lease, how many reports, what goes along, and where they end.

use super::SECOND;
use super::script::{follow, item, make};
use super::stand::Stand;
use crate::testkit::transport::Answer;

fn a(path: &str) -> String {
    format!("http://a.test/{path}")
}

#[test]
fn a_redirect_within_its_origin_stays_under_its_lease_and_only_the_last_report_releases() {
    let done = Stand::new()
        .start([follow(&a("1"))])
        .answers(&a("1"), [Answer::redirect(302, "/2")])
        .answers(&a("2"), [Answer::redirect(301, "/3")])
        .page(&a("3"), [item("x")])
        .run();
    done.assert_whole();
    assert_eq!(done.granted.len(), 1);
    let told: Vec<_> = done.reports.iter().map(|(_, r)| (r.path.as_str(), r.status, r.release)).collect();
    assert_eq!(told, [("/1", Some(302), false), ("/2", Some(301), false), ("/3", Some(200), true)]);
    assert_eq!(done.ids(), ["x"]);
    assert_eq!(done.records_of(&a("3")), [(200, None)]);
    assert_eq!(done.count("redirect/count"), 2);
    assert_eq!(done.ended.books.enqueued, 1, "a hop is no new request");
}

#[test]
fn a_redirect_to_another_origin_gets_a_lease_of_its_own_and_no_credential() {
    let start = make(&a("login"), |request| {
        request.header("authorization", "Bearer canary").unwrap().cookie("session", "canary");
        request.header("x-own", "stays").unwrap();
    });
    let done = Stand::new()
        .start([start])
        .answers(&a("login"), [Answer::redirect(302, "/again")])
        .answers(&a("again"), [Answer::redirect(307, "http://b.test/there")])
        .run();
    done.assert_whole();
    let sites: Vec<_> = done.granted.iter().map(|(_, _, ask)| &*ask.site).collect();
    assert_eq!(sites, ["a.test", "b.test"]);
    let told: Vec<_> = done.reports.iter().map(|(_, r)| (r.path.as_str(), r.release)).collect();
    assert_eq!(told, [("/login", false), ("/again", true), ("/there", true)]);
    let sent = |n: usize, name: &str| done.asked[n].headers.get(name).map(|v| v.to_str().unwrap().to_owned());
    assert!(sent(0, "authorization").is_some() && sent(1, "authorization").is_some());
    assert!(sent(0, "cookie").is_some());
    assert_eq!((sent(2, "authorization"), sent(2, "cookie")), (None, None));
    assert_eq!(sent(2, "x-own").as_deref(), Some("stays"));
}

#[test]
fn what_a_request_says_of_its_lease_is_about_its_own_host() {
    let start = make(&a("go"), |request| {
        request.lease("shop", "web").session_key("mine");
    });
    let done = Stand::new()
        .start([start])
        .answers(&a("go"), [Answer::redirect(302, "/on")])
        .answers(&a("on"), [Answer::redirect(302, "http://b.test/there")])
        .run();
    done.assert_whole();
    let sites: Vec<_> = done.granted.iter().map(|(_, _, ask)| (&*ask.site, ask.session_key.is_some())).collect();
    assert_eq!(sites.last(), Some(&("b.test", false)), "{sites:?}");
    assert!(sites[..sites.len() - 1].iter().all(|(site, _)| *site == "shop"), "{sites:?}");
}

#[test]
fn a_chain_ends_at_redirect_max_times() {
    let mut stand = Stand::new().start([follow(&a("0"))]).with(|s| s.redirect_max_times = 3);
    for n in 0..9 {
        stand = stand.answers(&a(&n.to_string()), [Answer::redirect(302, &format!("/{}", n + 1))]);
    }
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 4);
    assert!(done.said("failed redirect_limit 302 http://a.test/3").len() == 1, "{:?}", done.lines);
    assert_eq!(done.ended.books.failed, 1);
    assert_eq!(done.granted.len(), 1);
}

#[test]
fn a_redirect_to_a_page_that_was_seen_is_dropped_and_reported_once() {
    let done = Stand::new()
        .start([follow(&a("seen")), follow(&a("moved"))])
        .answers(&a("moved"), [Answer::redirect(302, "/seen").after(SECOND)])
        .page(&a("seen"), [item("once")])
        .run();
    done.assert_whole();
    assert_eq!(done.ids(), ["once"]);
    assert_eq!((done.ended.books.handled, done.ended.books.dropped), (1, 1));
    assert_eq!(done.count("engine/dropped/redirect_duplicate"), 1);
    assert_eq!(done.reports.len(), 2);
    let (status, error) = done.records_of(&a("moved"))[0];
    assert_eq!(status, 302);
    assert!(error.unwrap().starts_with("IgnoreRequest: "), "{error:?}");
}

#[test]
fn a_redirect_out_of_the_allowed_domains_is_dropped() {
    let mut stand = Stand::new().start([follow(&a("out"))]).answers(&a("out"), [Answer::redirect(302, "http://evil.test/")]);
    stand.script.domains = vec!["a.test".to_owned()];
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 1);
    assert_eq!(done.count("engine/dropped/offsite"), 1);
    assert_eq!(done.count("offsite/filtered"), 1);
}

#[test]
fn a_redirect_target_obeys_the_robots_txt_of_its_origin() {
    let done = Stand::new()
        .start([follow(&a("in")), follow(&a("out"))])
        .with(|s| s.robotstxt_obey = true)
        .answers(&a("robots.txt"), [Answer::new(200, "User-agent: *\nDisallow: /private\n")])
        .answers("http://b.test/robots.txt", [Answer::new(200, "User-agent: *\nDisallow: /private\n")])
        .answers(&a("in"), [Answer::redirect(302, "/private/1")])
        .answers(&a("out"), [Answer::redirect(302, "http://b.test/private/2")])
        .run();
    done.assert_whole();
    assert!(done.said("GET").iter().all(|line| !line.contains("private")), "{:?}", done.said("GET"));
    assert_eq!(done.said("failed robots_forbidden").len(), 2, "{:?}", done.lines);
    assert_eq!(done.ended.books.dropped, 2);
    assert_eq!(done.said("GET http://b.test/robots.txt").len(), 1);
}

#[test]
fn a_hop_waits_for_its_hosts_delay() {
    let done = Stand::new()
        .start([follow(&a("1"))])
        .answers(&a("1"), [Answer::redirect(302, "/2")])
        .with(|s| s.download_delay = 5 * SECOND)
        .run();
    done.assert_whole();
    let times: Vec<_> = done.times("GET").iter().map(std::time::Duration::as_secs).collect();
    assert_eq!(times, [0, 5]);
    assert_eq!(done.granted.len(), 1);
}
