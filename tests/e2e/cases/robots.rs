//! robots.txt that cannot be read, is another origin's, or has no end.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::stand::{Case, Stand};

fn routes(robots: &[Value]) -> Value {
    let page = json!({"host": "a.test", "path": "*", "reply": [{"status": 200, "headers": [["Content-Type", "text/html"]], "body": "ok"}]});
    let mut routes = vec![page];
    routes.extend(robots.iter().cloned());
    Value::Array(routes)
}

fn robots(status: u16, content_type: &str, body: &str) -> Value {
    json!({"host": "a.test", "path": "/robots.txt", "reply": [{"status": status, "headers": [["Content-Type", content_type]], "body": body}]})
}

fn moved(from: &str, to: &str) -> Value {
    json!({"host": "a.test", "path": from, "reply": [{"status": 301, "headers": [["Location", to]]}]})
}

/// Whether the page came, with how many requests for robots.txt.
fn fetched(routes: &[Value], more: &[&str]) -> (bool, Stand) {
    let stand = Stand::new(&self::routes(routes), &[].into());
    let stand = more.iter().fold(stand.with("RETRY_TIMES=1").with("RETRY_BACKOFF=0"), |stand, setting| stand.with(setting));
    let crawled = stand.check(&["http://a.test/page".to_owned()]);
    let (answers, failures) = crawled.answers_and_failures();
    assert_eq!(answers + failures, 1, "{}", crawled.ended);
    assert_eq!(answers, stand.site.pages().iter().filter(|hit| hit.target == "/page").count());
    (answers == 1, stand)
}

#[test]
fn case_b01_what_the_answer_for_robots_txt_means_for_the_page() {
    let table: &[(u16, bool)] = &[(404, true), (410, true), (403, true), (429, false), (500, false), (503, false)];
    for (status, allowed) in table {
        let (came, stand) = fetched(&[robots(*status, "text/plain", "")], &[]);
        assert_eq!(came, *allowed, "{status}");
        assert_eq!(stand.stat(&format!("robotstxt/response_status_count/{status}")), 1, "{status}");
        let asked = stand.site.hits().iter().filter(|hit| hit.target == "/robots.txt").count();
        assert_eq!(asked, if *allowed { 1 } else { 2 }, "{status}: what is no answer is tried again");
    }
    for (content_type, body) in [("text/html", "<title>not found</title>"), ("text/plain", "")] {
        assert!(fetched(&[robots(200, content_type, body)], &[]).0, "{content_type} {body:?}");
    }
    let mut hops: Vec<Value> = (1..5).map(|n| moved(&format!("/r{n}"), &format!("/r{}", n + 1))).collect();
    hops.push(moved("/robots.txt", "/r1"));
    hops.push(json!({"host": "a.test", "path": "/r5", "reply": [{"status": 200, "headers": [], "body": "User-agent: *\nDisallow: /page\n"}]}));
    let (came, stand) = fetched(&hops, &[]);
    assert!(!came, "the rules of the last hop hold");
    assert_eq!(stand.stat("robotstxt/forbidden"), 1);
}

#[test]
fn case_b01_a_robots_txt_that_does_not_come_denies_for_now() {
    let slow = json!({"host": "a.test", "path": "/robots.txt", "reply": [{"status": 200, "headers": [], "body": "", "delay_ms": 20_000}]});
    assert!(!fetched(&[slow], &["ROBOTSTXT_TIMEOUT=0.2"]).0);

    // Nobody listens there; the port is free, as it was just given back.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let stand = Stand::new(&json!([]), &["a.test".to_owned()].into()).with("RETRY_TIMES=0");
    let ended = stand.begin(&[format!("http://a.test:{port}/page")], &[]).end().with_code(3);
    let crawled = stand.crawled(ended);
    assert_eq!(crawled.items[0]["error"], "robots_unavailable", "{}", crawled.ended);
}

#[test]
fn case_b01_one_fetch_serves_pages_that_wait_together() {
    let slow =
        json!({"host": "a.test", "path": "/robots.txt", "reply": [{"status": 200, "headers": [], "body": "", "delay_ms": 300}]});
    let stand = Stand::new(&routes(&[slow]), &[].into());
    let urls: Vec<String> = (0..12).map(|n| format!("http://a.test/{n}")).collect();
    let crawled = stand.check(&urls);
    assert_eq!(crawled.answers_and_failures(), (12, 0), "{}", crawled.ended);
    let hits = stand.site.hits();
    assert_eq!(hits.iter().filter(|hit| hit.target == "/robots.txt").count(), 1);
    assert_eq!(hits[0].target, "/robots.txt");
    assert!(hits[1].at - hits[0].at >= Duration::from_millis(300), "pages wait for the rules");
    assert_eq!(stand.stat("robotstxt/request_count"), 1);
}

#[test]
fn case_b04_rules_are_of_one_origin_and_half_a_mebibyte_is_read() {
    let case = Case::read("B04");
    let input = case.input["settings"].as_object().unwrap();
    assert_eq!(input["ROBOTSTXT_MAXSIZE"], 512 * 1024, "what is always read, and no setting here");
    let hosts = ["a.test", "sub.a.test", "big.test"].map(str::to_owned).into();
    let stand = Stand::new(&case.input["server"], &hosts).with("ROBOTSTXT_OBEY=true");
    let crawled = stand.check(&case.start());
    let mut pages: Vec<String> = stand.site.pages().iter().map(|hit| format!("http://{}{}", hit.host, hit.target)).collect();
    pages.sort();
    let mut expected: Vec<String> =
        case.expect["pages_fetched"].as_array().unwrap().iter().map(|url| url.as_str().unwrap().to_owned()).collect();
    expected.sort();
    assert_eq!(pages, expected, "{}", crawled.ended);
    assert_eq!(crawled.item("http://a.test/x")["error"], "robots_forbidden");
    assert!(stand.stat("downloader/response_bytes") < 700_000, "{}", stand.stat("downloader/response_bytes"));
}
