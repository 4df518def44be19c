//! Spellings of URLs and hosts.

use std::time::Duration;

use super::stand::Case;

#[test]
fn case_u02_spellings_of_one_host_share_its_delay_and_its_robots_txt() {
    let case = Case::read("U02");
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.answers_and_failures(), (4, 0), "{}", crawled.ended);
    let robots = stand.site.hits().into_iter().filter(|hit| hit.target == "/robots.txt").count();
    assert_eq!(robots, 1);
    assert_eq!(stand.site.pages().len(), 4);
    assert!(stand.site.pages().iter().all(|hit| hit.host == "example.test"), "one slot: {:?}", stand.site.asked());
    // What is measured at the site may be a little less than between the sends.
    assert!(stand.site.least_gap() >= Duration::from_millis(190), "{:?}", stand.site.least_gap());
}

#[test]
fn case_u03_white_space_around_a_url_is_no_part_of_it() {
    let case = Case::read("U03");
    let stand = case.stand();
    let crawled = stand.crawl(&case.start(), &["--jobdir", "job"]);
    assert_eq!(stand.site.asked(), [("a.test".to_owned(), "/x".to_owned())]);
    assert_eq!(crawled.ended.number("requests", "left"), 0, "{}", crawled.ended);
    stand.begin(&case.start(), &["--jobdir", "job"]).end();
    assert!(stand.site.asked().len() <= 2, "{:?}", stand.site.asked());
}

#[test]
fn case_u04_characters_outside_the_grammar_are_encoded_and_nothing_is_lost() {
    let case = Case::read("U04");
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.answers_and_failures(), (3, 0), "{}", crawled.ended);
    let targets: Vec<String> = stand.site.asked().into_iter().map(|(_, target)| target).collect();
    for wanted in case.expect["request_targets_any_of"].as_array().unwrap() {
        let any = wanted.as_array().unwrap().iter().any(|target| targets.contains(&target.as_str().unwrap().to_owned()));
        assert!(any, "{wanted} is not among {targets:?}");
    }
}

#[test]
fn case_u05_hosts_that_browsers_take_are_taken() {
    let case = Case::read("U05");
    for allowed in ["", "a_b.test,hg--69.test,bücher.test", "a_b.test,hg--69.test,xn--bcher-kva.test"] {
        let stand = case.stand().with(&format!("ALLOWED_DOMAINS={allowed}"));
        let crawled = stand.check(&case.start());
        assert_eq!(crawled.answers_and_failures(), (3, 0), "{}", crawled.ended);
        let mut hosts: Vec<String> = stand.site.asked().into_iter().map(|(host, _)| host).collect();
        hosts.sort();
        assert_eq!(hosts, ["a_b.test", "hg--69.test", "xn--bcher-kva.test"]);
    }
}
