//! How fast a host is asked.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stand::{Case, Stand};
use crate::books_of_a_job::stat;
use crate::harness::Folder;
use crate::server::{Answer, Server};

/// Pages 0 to `last`, each with a link to the next one.
fn chain(last: u32) -> serde_json::Value {
    let page = |n: u32| {
        let body = if n < last { format!("<a href='/{}'>next</a>", n + 1) } else { "end".to_owned() };
        json!({"host": "a.test", "path": format!("/{n}"), "reply": [{"status": 200, "headers": [["Content-Type", "text/html"]], "body": body}]})
    };
    (0..=last).map(page).collect()
}

#[test]
fn case_p01_the_delay_holds_between_single_pages() {
    let case = Case::read("P01");
    let settings = case.input["settings"].as_object().unwrap();
    let stand =
        settings.iter().fold(Stand::new(&chain(5), &[].into()), |stand, (name, value)| stand.with(&format!("{name}={value}")));
    let stand = stand.with("ROBOTSTXT_OBEY=false");
    stand.crawl(&["http://a.test/0".to_owned()], &[]);
    assert_eq!(stand.site.pages().len(), 6);
    let least = Duration::from_millis(case.expect["min_gap_ms"].as_u64().unwrap());
    assert!(stand.site.least_gap() >= least, "{:?}", stand.site.least_gap());
}

#[test]
fn case_p01_jitter_keeps_every_gap_within_its_bounds() {
    let stand =
        Stand::new(&chain(7), &[].into()).with("ROBOTSTXT_OBEY=false").with("DOWNLOAD_DELAY=0.2").with("CONCURRENT_REQUESTS=1");
    stand.crawl(&["http://a.test/0".to_owned()], &[]);
    let pages = stand.site.pages();
    let gaps: Vec<Duration> = pages.windows(2).map(|two| two[1].at - two[0].at).collect();
    assert_eq!(gaps.len(), 7);
    // Half of it at least, less what the way to the site may differ by. Longer ones may be the machine's.
    assert!(gaps.iter().all(|gap| *gap >= Duration::from_millis(95)), "{gaps:?}");
    assert!(gaps.iter().max() != gaps.iter().min(), "{gaps:?}");
}

#[test]
fn case_p01_redirects_and_retries_are_requests_of_the_host() {
    let routes = json!([
        {"host": "a.test", "path": "/from", "reply": [{"status": 302, "headers": [["Location", "/to"]]}]},
        {"host": "a.test", "path": "/to", "reply": [{"status": 503, "headers": []}, {"status": 200, "headers": [], "body": "ok"}]},
    ]);
    let stand = Stand::new(&routes, &[].into()).with("ROBOTSTXT_OBEY=false").with("RETRY_BACKOFF=0");
    let stand = stand.with("DOWNLOAD_DELAY=0.3").with("RANDOMIZE_DOWNLOAD_DELAY=false");
    stand.check(&["http://a.test/from".to_owned()]);
    assert_eq!(stand.site.pages().len(), 3);
    assert!(stand.site.least_gap() >= Duration::from_millis(290), "{:?}", stand.site.least_gap());
}

#[test]
fn case_p02_a_host_that_says_429_is_asked_more_slowly() {
    let case = Case::read("P02");
    let last: Mutex<Option<Instant>> = Mutex::default();
    let answered: std::sync::Arc<Mutex<Vec<u16>>> = std::sync::Arc::default();
    let noted = answered.clone();
    let server = Server::start(move |asked| {
        if asked.path() == "/robots.txt" {
            return Answer::status(404);
        }
        let mut last = last.lock().unwrap();
        let too_soon = last.is_some_and(|last| asked.at - last < Duration::from_millis(600));
        *last = Some(asked.at);
        let status = if too_soon { 429 } else { 200 };
        noted.lock().unwrap().push(status);
        Answer::Whole(status, vec![("content-type", "text/html".to_owned())], b"ok".to_vec()).after(Duration::from_millis(5))
    });
    let folder = Folder::new();
    let urls = (0..20).map(|n| server.url(&format!("/{n}"))).collect::<Vec<_>>().join(",");
    let mut call = vec![
        "crawl".to_owned(),
        "links".to_owned(),
        "-a".to_owned(),
        format!("urls={urls}"),
        "-O".to_owned(),
        "i.jsonl".to_owned(),
    ];
    for (name, value) in case.input["settings"].as_object().unwrap() {
        call.extend(["-s".to_owned(), format!("{name}={value}")]);
    }
    let ended = folder.run(&call.iter().map(String::as_str).collect::<Vec<_>>()).with_code(0);
    let done = folder.items("i.jsonl").iter().filter(|item| item["status"] == 200).count();
    assert_eq!(done as u64, case.expect["all_pages_done"].as_u64().unwrap(), "{ended}");
    let answered = answered.lock().unwrap();
    let half = &answered[answered.len() / 2..];
    let refused = half.iter().filter(|status| **status == 429).count();
    let most = case.expect["429_share_in_the_last_half_max"].as_f64().unwrap();
    assert!(refused as f64 <= most * half.len() as f64, "{answered:?}");
    assert!(answered.contains(&429), "the site was asked too fast at first");
    assert_eq!(
        stat(&folder, "retry/reason_count/429 Too Many Requests"),
        Some(answered.iter().filter(|s| **s == 429).count() as u64)
    );
}
