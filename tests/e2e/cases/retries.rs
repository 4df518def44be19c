//! Repeated attempts.

use std::time::Duration;

use super::stand::{Case, Site};

/// The time from the first to the second request of a target.
fn gap(site: &Site, target: &str) -> Duration {
    let at: Vec<_> = site.pages().into_iter().filter(|hit| hit.target == target).map(|hit| hit.at).collect();
    assert_eq!(at.len(), 2, "{target}");
    at[1] - at[0]
}

#[test]
fn case_t01_retry_after_in_both_forms_is_waited_for_and_others_are_not() {
    let case = Case::read("T01");
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.answers_and_failures(), (5, 0), "{}", crawled.ended);
    assert!(gap(&stand.site, "/sec") >= Duration::from_secs(2));
    // The date has whole seconds.
    assert!(gap(&stand.site, "/date") >= Duration::from_secs(1));
    // A day is cut to RETRY_AFTER_MAX, 5 s.
    assert!(gap(&stand.site, "/huge") >= Duration::from_secs(5));
    assert_eq!(stand.stat("retry/count"), 5);

    // Of a header that means nothing only the back-off is left, half a second on average and never more than one.
    for path in ["/junk", "/neg"] {
        let stand = case.stand();
        stand.check(&[format!("http://a.test{path}")]);
        assert!(gap(&stand.site, path) < Duration::from_secs(4), "{path}");
    }
}

#[test]
fn case_t01_the_whole_host_waits() {
    let case = Case::read("T01");
    let stand = case.stand().with("CONCURRENT_REQUESTS_PER_DOMAIN=1");
    let others: Vec<String> = (0..3).map(|n| format!("http://a.test/{n}")).collect();
    stand.check(&[vec!["http://a.test/sec".to_owned()], others].concat());
    let pages = stand.site.pages();
    assert_eq!(pages[0].target, "/sec");
    assert!(pages[1].at - pages[0].at >= Duration::from_secs(2), "{pages:?}");
}

#[test]
fn case_t02_retry_times_counts_the_attempts_after_the_first() {
    let case = Case::read("T02");
    let stand = case.stand().with("RETRY_BACKOFF=0");
    let crawled = stand.check(&case.start());
    assert_eq!(stand.site.pages().len(), 3);
    assert_eq!(crawled.answers_and_failures(), (0, 1), "{}", crawled.ended);
    assert_eq!(crawled.item("http://a.test/")["status"], 500);
    assert_eq!(stand.stat("httperror/response_ignored_count"), 1);
    for (name, value) in case.expect["stats"].as_object().unwrap() {
        assert_eq!(stand.stat(name), value.as_u64().unwrap(), "{name}");
    }
}
