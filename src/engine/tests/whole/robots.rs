//! robots.txt: fetched once for an origin, before its pages, as a request of its own.

use super::SECOND;
use super::script::{Do, follow};
use super::stand::{Outcome, Stand};
use crate::api::failure::FailureKind;
use crate::testkit::transport::Answer;

const ROBOTS: &str = "http://a.test/robots.txt";

fn crawl(answers: impl IntoIterator<Item = Answer>) -> Outcome {
    let pages: Vec<Do> =
        (0..20).map(|n| follow(&format!("http://a.test/{}/{n}", if n < 5 { "private" } else { "open" }))).collect();
    Stand::new().start(pages).answers(ROBOTS, answers).with(|s| s.robotstxt_obey = true).run()
}

fn pages(done: &Outcome) -> usize {
    done.said("GET").len() - done.said(&format!("GET {ROBOTS}")).len()
}

#[test]
fn rules_are_fetched_once_before_the_first_page_and_obeyed() {
    let rules = Answer::new(200, "User-agent: *\nDisallow: /private\n").after(2 * SECOND);
    let done = crawl([rules]);
    done.assert_whole();
    assert_eq!(done.times(&format!("GET {ROBOTS}")).len(), 1);
    assert_eq!(pages(&done), 15);
    assert!(done.times("GET http://a.test/open").iter().all(|at| *at >= 2 * SECOND));
    assert_eq!(done.said("failed robots_forbidden").len(), 5);
    assert_eq!(done.ended.books.dropped, 5);
    assert_eq!(done.count("robotstxt/forbidden"), 5);
    assert_eq!((done.count("robotstxt/request_count"), done.count("robotstxt/response_count")), (1, 1));
}

#[test]
fn robots_txt_has_its_own_lease_report_and_record() {
    let done = crawl([Answer::new(200, "")]);
    done.assert_whole();
    let leases: Vec<_> =
        done.reports.iter().filter(|(_, r)| r.path == "/robots.txt").map(|(_, r)| (&r.lease, r.release)).collect();
    assert_eq!(leases.len(), 1);
    assert!(leases[0].1 && done.reports.iter().filter(|(_, r)| r.lease == *leases[0].0).count() == 1);
    assert_eq!(done.records_of(ROBOTS), [(200, None)]);
    assert_eq!(done.granted.len(), 21);
    assert_eq!(done.ended.books.enqueued, 21);
    assert_eq!(done.count("response_received_count"), 21, "Scrapy counts it as well");
}

#[test]
fn a_robots_txt_that_is_not_there_allows_everything() {
    let done = crawl([Answer::new(404, "no")]);
    done.assert_whole();
    assert_eq!((pages(&done), done.ended.books.handled), (20, 21));
    assert_eq!(done.records_of(ROBOTS), [(404, None)]);
}

#[test]
fn a_robots_txt_the_server_cannot_give_forbids_everything_for_now() {
    let done = crawl([Answer::new(503, "later")]);
    done.assert_whole();
    assert_eq!(done.times(&format!("GET {ROBOTS}")).len(), 3, "it is retried as any request");
    assert_eq!(pages(&done), 0);
    assert_eq!(done.said("failed robots_unavailable").len(), 20);
    assert_eq!(done.ended.code, 3, "no page could be reached");
}

#[test]
fn a_robots_txt_out_of_reach_forbids_everything_for_now() {
    let done = crawl([Answer::fault(FailureKind::Refused)]);
    done.assert_whole();
    assert_eq!((pages(&done), done.said("failed robots_unavailable").len()), (0, 20));
    assert_eq!(done.records_of(ROBOTS).len(), 3);
    assert_eq!(done.ended.code, 3);
}

#[test]
fn a_robots_txt_behind_a_redirect_counts_for_the_origin_that_was_asked() {
    let done = Stand::new()
        .start([follow("http://a.test/private/1"), follow("http://a.test/open")])
        .answers(ROBOTS, [Answer::redirect(301, "http://b.test/rules")])
        .answers("http://b.test/rules", [Answer::new(200, "User-agent: *\nDisallow: /private\n")])
        .with(|s| s.robotstxt_obey = true)
        .run();
    done.assert_whole();
    assert_eq!(done.said("GET"), ["GET http://a.test/robots.txt", "GET http://b.test/rules", "GET http://a.test/open"]);
    assert_eq!(done.said("failed robots_forbidden").len(), 1);
}

#[test]
fn case_b01_what_the_answer_to_robots_txt_means_for_the_page() {
    const RULES: &str = "User-agent: *\nDisallow: /private\n";
    let hops = |count: usize| -> Vec<(String, Answer)> {
        (1..=count)
            .map(|n| (format!("http://a.test/hop{n}"), Answer::redirect(301, &format!("http://a.test/hop{}", n + 1))))
            .collect()
    };
    let html = Answer::new(200, "<!DOCTYPE html><html><body>Disallow: /private</body></html>");
    let table: Vec<(&str, Answer, usize, &str)> = vec![
        ("404", Answer::new(404, RULES), 0, "GET"),
        ("410", Answer::new(410, RULES), 0, "GET"),
        ("403", Answer::new(403, RULES), 0, "GET"),
        ("429", Answer::new(429, RULES), 0, "failed robots_unavailable"),
        ("500", Answer::new(500, RULES), 0, "failed robots_unavailable"),
        ("503", Answer::new(503, RULES), 0, "failed robots_unavailable"),
        ("timeout", Answer::fault(FailureKind::Timeout), 0, "failed robots_unavailable"),
        ("refused", Answer::fault(FailureKind::Refused), 0, "failed robots_unavailable"),
        ("an HTML page", html, 0, "GET"),
        ("empty", Answer::new(200, ""), 0, "GET"),
        ("five redirects, then rules", Answer::redirect(301, "http://a.test/hop1"), 4, "failed robots_forbidden"),
        ("six redirects, then rules", Answer::redirect(301, "http://a.test/hop1"), 5, "GET"),
    ];
    for (name, robots, more_hops, expected) in table {
        let mut stand = Stand::new().start([follow("http://a.test/private/1")]).answers(ROBOTS, [robots]);
        for (url, answer) in hops(more_hops) {
            stand = stand.answers(&url, [answer]);
        }
        let last = format!("http://a.test/hop{}", more_hops + 1);
        let done = stand.answers(&last, [Answer::new(200, RULES)]).with(|s| s.robotstxt_obey = true).run();
        done.assert_whole();
        let page = done.said("GET http://a.test/private/1").len();
        assert_eq!(page, usize::from(expected == "GET"), "{name}");
        assert!(!done.said(expected).is_empty(), "{name}: {expected}");
        assert_eq!(done.times(&format!("GET {last}")).len(), usize::from(more_hops == 4), "{name}");
    }
}

#[test]
fn case_b04_each_origin_has_its_own_rules() {
    let forbids = Answer::new(200, "User-agent: *\nDisallow: /x\n");
    let done = Stand::new()
        .start(["http://a.test/x", "http://sub.a.test/x", "http://a.test:8081/x", "https://a.test/x"].map(follow))
        .answers(ROBOTS, [forbids])
        .answers("http://sub.a.test/robots.txt", [Answer::new(404, "")])
        .answers("http://a.test:8081/robots.txt", [Answer::new(404, "")])
        .answers("https://a.test/robots.txt", [Answer::new(404, "")])
        .with(|s| s.robotstxt_obey = true)
        .run();
    done.assert_whole();
    assert_eq!(done.said("failed robots_forbidden").len(), 1);
    for url in ["http://sub.a.test/x", "http://a.test:8081/x", "https://a.test/x"] {
        assert_eq!(done.said(&format!("GET {url}")).len(), 1, "{url}");
    }
    assert_eq!(done.count("robotstxt/request_count"), 4);
}
