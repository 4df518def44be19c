//! Limits that end a job or a request: time and pages without items, memory, pages of a host, addresses of the own network.

use super::SECOND;
use super::script::{follow, item};
use super::stand::Stand;
use crate::settings::{PrivateAddresses, Settings};
use crate::testkit::transport::Answer;

fn a(n: usize) -> String {
    format!("http://a.test/{n}")
}

/// Twenty pages of a second each, one after the other; every `n`-th of the first ten gives an item.
fn twenty(every: usize) -> Stand {
    let mut stand = Stand::new().start((0..20).map(|n| follow(&a(n)))).with(|s| s.concurrent_requests = 1);
    for n in 0..20 {
        stand = stand.answers(&a(n), [Answer::html("ok").after(SECOND)]);
        if n < 10 && (n + 1) % every == 0 {
            stand = stand.page(&a(n), [item(&n.to_string())]);
        }
    }
    stand
}

#[test]
fn a_job_without_items_is_closed_by_time_or_by_pages() {
    type Change = fn(&mut Settings);
    let table: [(usize, Change, &str, usize); 6] = [
        (99, |s| s.closespider_timeout_no_item = 5 * SECOND, "closespider_timeout_no_item", 5),
        (1, |s| s.closespider_timeout_no_item = 5 * SECOND, "closespider_timeout_no_item", 15),
        (3, |s| s.closespider_timeout_no_item = 5 * SECOND, "closespider_timeout_no_item", 14),
        (99, |s| s.closespider_pagecount_no_item = 4, "closespider_pagecount_no_item", 4),
        (1, |s| s.closespider_pagecount_no_item = 1, "closespider_pagecount_no_item", 11),
        (4, |s| s.closespider_pagecount_no_item = 4, "closespider_pagecount_no_item", 12),
    ];
    for (every, change, reason, pages) in table {
        let done = twenty(every).with(change).run();
        done.assert_sound();
        assert_eq!((done.ended.reason.as_str(), done.ended.code), (reason, 0), "{every}");
        let asked = done.asked.len();
        assert!((pages..=pages + 1).contains(&asked), "{reason}, every {every}: {asked} pages instead of {pages}");
        assert!(done.ended.books.pending > 0, "{reason}: the rest is kept");
    }
}

#[test]
fn a_job_with_too_much_memory_is_closed_and_one_with_much_is_warned_of() {
    let done = twenty(1).with(|s| (s.memusage_limit_mb, s.memusage_check_interval_seconds) = (1, SECOND)).run();
    done.assert_sound();
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("memusage_exceeded", 0));
    assert_eq!(done.count("memusage/limit_reached"), 1);
    assert!(done.asked.len() < 5, "{}", done.asked.len());

    let done = twenty(1).with(|s| s.memusage_warning_mb = 1).run();
    done.assert_whole();
    assert_eq!((done.count("memusage/warning_reached"), done.count("memusage/limit_reached")), (1, 0));
    let done = twenty(1).with(|s| (s.memusage_limit_mb, s.memusage_enabled) = (1, false)).run();
    done.assert_whole();
}

#[test]
fn a_host_that_has_given_its_pages_is_asked_no_more_and_the_books_say_so() {
    let done = twenty(1).with(|s| s.host_pages_limit = 7).run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 7);
    assert_eq!((done.ended.books.handled, done.ended.books.dropped), (7, 13));
    assert_eq!(done.count("engine/dropped/host_pages_limit"), 13);
    assert_eq!(done.count("host_pages/filtered"), 13);
}

#[test]
fn a_redirect_of_the_web_to_a_private_address_fails_before_it_is_asked() {
    let own = "http://127.0.0.1:9/secret";
    let stand = || Stand::new().start([follow(&a(1))]).answers(&a(1), [Answer::redirect(302, own)]);
    let done = stand().run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 1);
    assert_eq!(done.said("failed private_address").len(), 1, "{:?}", done.lines);
    assert_eq!((done.count("engine/failed/private_address"), done.count("private_address/filtered")), (1, 1));
    let (_, error) = done.records_of(own)[0];
    assert!(error.unwrap().contains("ALLOW_PRIVATE_ADDRESSES"), "{error:?}");

    let done = stand().with(|s| s.allow_private_addresses = PrivateAddresses::Allow).run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 2);
}

/// Judged on the text of the URL, or not at all for hops, this asks `b.test`. Its second way there, a meta refresh, is the
/// downloader's to find; such a hop is judged here like any other.
#[test]
fn case_r04_a_redirect_out_of_the_allowed_domains_is_not_followed() {
    let case: serde_json::Value =
        serde_json::from_str(include_str!("../../../../tests/data/cases/R04-redirect-leaves-allowed-domains.json")).unwrap();
    let domain = case["input"]["spider_attrs"]["allowed_domains"][0].as_str().unwrap();
    let to = case["input"]["server"][0]["reply"][0]["headers"][0][1].as_str().unwrap();
    let others = case["expect"]["not_a_match"].as_array().unwrap().iter().map(|url| url.as_str().unwrap());
    for to in others.chain([to]) {
        let start = "http://a.test/out";
        let mut stand = Stand::new().start([follow(start)]).answers(start, [Answer::redirect(302, to)]);
        stand.script.domains = vec![domain.to_owned()];
        let done = stand.run();
        done.assert_whole();
        assert_eq!(done.asked.iter().map(|sent| sent.url.as_str()).collect::<Vec<_>>(), [start], "{to}");
        assert_eq!((done.count("offsite/filtered"), done.count("offsite/domains")), (1, 1), "{to}");
    }
}
