//! Where redirects lead, and where not.

use super::stand::Case;

fn pairs(asked: &[(String, String)]) -> Vec<(&str, &str)> {
    asked.iter().map(|(host, target)| (host.as_str(), target.as_str())).collect()
}

#[test]
fn case_r01_raw_bytes_of_a_location_are_encoded_as_they_came() {
    let case = Case::read("R01");
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.answers_and_failures(), (2, 0), "{}", crawled.ended);
    let mut targets: Vec<String> = stand.site.asked().into_iter().map(|(_, target)| target).collect();
    targets.sort();
    assert_eq!(targets, ["/caf%C3%A9", "/caf%E9", "/l", "/u"]);
}

#[test]
fn case_r02_a_location_with_three_slashes_names_a_host() {
    let case = Case::read("R02");
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.item("http://a.test/p")["url"], "http://b.test/new/1/");
    assert_eq!(pairs(&stand.site.asked()), [("a.test", "/p"), ("b.test", "/new/1/")]);
}

#[test]
fn case_r03_a_page_that_redirects_to_itself_with_a_cookie_is_no_duplicate() {
    let case = Case::read("R03");
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.answers_and_failures(), (1, 0), "{}", crawled.ended);
    assert_eq!(crawled.item("http://a.test/")["text"], "in");
    assert_eq!(stand.site.pages().len(), 2);

    let stand = case.stand().with("COOKIES_ENABLED=false").with("REDIRECT_MAX_TIMES=5");
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.answers_and_failures(), (0, 1), "{}", crawled.ended);
    assert!(crawled.item("http://a.test/")["reason"].as_str().unwrap().contains("max redirections"));
    assert!(crawled.ended.err.contains("max redirections"), "{}", crawled.ended);
    assert_eq!(stand.site.pages().len(), 6);
}

#[test]
fn case_r04_no_redirect_of_any_kind_leaves_the_allowed_domains() {
    let case = Case::read("R04");
    let stand = case.stand().with("ALLOWED_DOMAINS=a.test");
    let mut start = case.start();
    start.extend(case.expect["not_a_match"].as_array().unwrap().iter().map(|url| url.as_str().unwrap().to_owned()));
    let crawled = stand.check(&start);
    assert_eq!(pairs(&stand.site.asked()).iter().filter(|(host, _)| *host != "a.test").count(), 0, "{}", crawled.ended);
    assert_eq!(stand.site.pages().len(), 2);
    // Two redirects to b.test, and the three start URLs that only look as if they were of a.test; one of them is of b.test.
    assert_eq!((stand.stat("offsite/filtered"), stand.stat("offsite/domains")), (5, 3), "{}", crawled.ended);
}

#[test]
fn case_r05_links_of_a_redirected_page_are_relative_to_where_it_is() {
    let case = Case::read("R05");
    let stand = case.stand();
    let crawled = stand.crawl(&case.start(), &[]);
    let mut asked = stand.site.asked();
    asked[2..].sort();
    let expected = [("a.test", "/start"), ("b.test", "/dir/home.html"), ("b.test", "/dir/next.html"), ("b.test", "/top")];
    assert_eq!(pairs(&asked), expected);
    let home = crawled.item("http://b.test/dir/home.html");
    assert_eq!(home["redirected_from"], "http://a.test/start");
}
