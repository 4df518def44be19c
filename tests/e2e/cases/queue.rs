//! What is queued, in which order, and what a stop or a kill leaves of it. `LONG_TESTS_OF_DRAGLINE=1`: the full counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::stand::{Case, Stand};
use crate::books_of_a_job::items;
use crate::harness::{Folder, long};
use crate::server::{Answer, Server};

#[test]
fn case_q01_a_crawl_killed_twice_has_every_page_and_few_of_them_twice() {
    let case = Case::read("Q01");
    let pages: usize = 1000;
    let server = Server::start(move |asked| match asked.path()[1..].parse::<usize>() {
        Ok(n) if n < pages => {
            let links = [2 * n + 1, 2 * n + 2].into_iter().filter(|child| *child < pages);
            let body: String = links.map(|child| format!("<a href='/{child}'>{child}</a>")).collect();
            Answer::html(body).after(Duration::from_millis(20))
        }
        _ => Answer::status(404),
    });
    let folder = Folder::new();
    let urls = format!("urls={}", server.url("/0"));
    let call = ["crawl", "links", "-a", &urls, "--jobdir", "job", "-s", "CONCURRENT_REQUESTS=8", "-s", "ROBOTSTXT_OBEY=false"];
    // What is fetched and not yet kept is in flight too: the window bounds both, so that it is what the case calls in flight.
    let call = [&call[..], &["-s", "WINDOW_REQUESTS=8"]].concat();
    for kill_at in [300, 600] {
        let running = folder.start(&call);
        running.until("so many pages", || server.asked().len() >= kill_at);
        running.signal(Signal::KILL);
        assert_eq!(running.end().code, None);
    }
    folder.run(&call).with_code(0);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for asked in server.asked() {
        *times.entry(asked.target).or_default() += 1;
    }
    assert_eq!(times.len(), pages);
    let urls: std::collections::BTreeSet<String> =
        items(&folder).iter().map(|item| item["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls.len() as u64, case.expect["distinct_pages_with_items"].as_u64().unwrap());
    let twice = times.values().filter(|times| **times > 1).count() as u64;
    assert!(twice <= case.expect["fetched_more_than_once_max"].as_u64().unwrap(), "{twice}");
}

#[test]
fn case_q01_after_a_clean_stop_nothing_is_fetched_again() {
    let pages: usize = 300;
    let server = Server::start(move |asked| match asked.path()[1..].parse::<usize>() {
        Ok(n) if n < pages => {
            let links = [2 * n + 1, 2 * n + 2].into_iter().filter(|child| *child < pages);
            Answer::html(links.map(|child| format!("<a href='/{child}'>{child}</a>")).collect::<String>())
                .after(Duration::from_millis(20))
        }
        _ => Answer::status(404),
    });
    let folder = Folder::new();
    let urls = format!("urls={}", server.url("/0"));
    let call = ["crawl", "links", "-a", &urls, "--jobdir", "job", "-s", "CONCURRENT_REQUESTS=8", "-s", "ROBOTSTXT_OBEY=false"];
    let running = folder.start(&call);
    running.until("so many pages", || server.asked().len() >= 100);
    running.signal(Signal::TERM);
    running.end().with_code(2);
    folder.run(&call).with_code(0);
    assert_eq!(server.asked().len(), pages, "each page once");
}

#[test]
fn case_q02_a_link_to_a_page_in_progress_is_a_duplicate() {
    let case = Case::read("Q02");
    let stand = case.stand();
    let crawled = stand.crawl(&case.start(), &[]);
    assert_eq!(stand.site.pages().len(), 40, "{}", crawled.ended);
    assert_eq!(crawled.answers_and_failures(), (40, 0));
    assert_eq!(stand.stat("dupefilter/filtered"), case.expect["stats"]["dupefilter/filtered"].as_u64().unwrap());
}

#[test]
fn case_q03_a_slow_host_does_not_hold_up_a_fast_one() {
    let case = Case::read("Q03");
    let stand = case.stand();
    let mut list = String::new();
    for host in ["slow", "fast"] {
        (0..100).for_each(|n| writeln!(list, "http://{host}.test/{n}").unwrap());
    }
    stand.folder.write("urls.txt", &list);
    let running = stand.start(&["crawl", "links", "-a", "file=urls.txt", "-a", "follow=none"]);
    running.until("the fast host is through", || stand.site.pages().iter().filter(|hit| hit.host == "fast.test").count() == 100);
    running.signal(Signal::TERM);
    running.end().with_code(2);
    let pages = stand.site.pages();
    let last = pages.iter().filter(|hit| hit.host == "fast.test").map(|hit| hit.at).max().unwrap();
    let slow = pages.iter().filter(|hit| hit.host == "slow.test" && hit.at <= last).count() as u64;
    assert!(slow <= case.expect["slow_responses_when_fast_is_done_max"].as_u64().unwrap(), "{slow}");
    assert!(last - pages[0].at < Duration::from_secs(15), "3 s on a quiet machine: {:?}", last - pages[0].at);
}

#[test]
fn case_q04_a_million_start_requests_are_taken_as_they_are_needed() {
    let case = Case::read("Q04");
    let routes = json!([{"host": "a.test", "path": "*", "reply": [{"status": 200, "headers": [], "body": "ok", "delay_ms": 5}]}]);
    let stand = Stand::new(&routes, &[].into())
        .with("ROBOTSTXT_OBEY=false")
        .with("CONCURRENT_REQUESTS=16")
        .with("CLOSESPIDER_PAGECOUNT=2000");
    let few = stand.folder.path().join("few.txt");
    std::fs::write(&few, (0..2000).map(|n| format!("http://a.test/{n}\n")).collect::<String>()).unwrap();
    let measured = |file: &str| {
        let ended = stand.start(&["crawl", "links", "-a", &format!("file={file}"), "-a", "follow=none"]).end().with_code(0);
        (ended.high_water, ended.number("requests", "taken"))
    };
    let (base, _) = measured("few.txt");
    let many: String = (0..long(300_000, 1_000_000)).map(|n| format!("http://a.test/m/{n}\n")).collect();
    stand.folder.write("many.txt", &many);
    let (high_water, taken) = measured("many.txt");
    let most = case.expect["rss_growth_max_mib"].as_u64().unwrap() * 1024;
    assert!(high_water < base + most, "{base} KiB, then {high_water} KiB");
    assert!(taken < 100_000, "{taken} were taken for 2,000 pages");
}

#[test]
fn case_x01_one_signal_ends_a_crawl_in_bounded_time_with_everything_whole() {
    let case = Case::read("X01");
    let server = Server::start(|_| Answer::html("ok"));
    let folder = Folder::new();
    let urls = (0..16).map(|n| server.url(&format!("/{n}"))).collect::<Vec<_>>().join(",");
    let urls = format!("urls={urls}");
    let call = [
        "crawl",
        "links",
        "-a",
        &urls,
        "--jobdir",
        "job",
        "-O",
        "out.json",
        "-s",
        "DOWNLOAD_DELAY=30",
        "-s",
        "GRACE=5",
        "-s",
        "ROBOTSTXT_OBEY=false",
    ];
    let running = folder.start(&call);
    running.until("the first page", || !server.asked().is_empty());
    std::thread::sleep(Duration::from_secs(1));
    running.signal(Signal::TERM);
    let ended = running.end().with_code(2);
    assert!(ended.took < Duration::from_secs(case.expect["exit_within_seconds"].as_u64().unwrap()), "{ended}");
    assert_eq!(ended.number("requests", "left"), case.expect["unsent_requests_in_jobdir"].as_u64().unwrap(), "{ended}");
    let feed: serde_json::Value = serde_json::from_str(&folder.read("out.json")).unwrap();
    assert_eq!(feed.as_array().unwrap().len(), 1);
    ended.says(&["shutdown"]);
}
