//! The HTTP cache in a whole job: a stored answer is no attempt.

use tempfile::TempDir;

use super::script::{follow, make};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND};
use crate::settings::CachePolicy;
use crate::testkit::transport::Answer;

const PAGES: [&str; 3] = ["http://a.test/1", "http://a.test/2", "http://a.test/3"];

fn cached(dir: &TempDir, policy: CachePolicy) -> Stand {
    let path = dir.path().to_owned();
    Stand::new().start(PAGES.map(follow)).with(move |s| {
        s.data_dir = path;
        s.httpcache_enabled = true;
        s.httpcache_policy = policy;
    })
}

fn run(dir: &TempDir) -> Outcome {
    let done = cached(dir, CachePolicy::Dummy).with(|s| s.download_delay = SECOND).run();
    done.assert_whole();
    done
}

#[test]
fn an_answer_from_the_cache_is_not_reported_and_its_lease_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let first = run(&dir);
    assert_eq!((first.asked.len(), first.reports.len(), first.count("httpcache/store")), (3, 3, 3));
    assert!(first.took >= 2 * SECOND);
    let second = run(&dir);
    assert_eq!((second.asked.len(), second.reports.len(), second.count("httpcache/hit")), (0, 0, 3));
    assert_eq!((second.granted.len(), second.releases.len()), (3, 3), "each was looked for under a lease of its own");
    assert!(second.took < 500 * MILLI, "the delay is between requests that are sent: {:?}", second.took);
    for url in PAGES {
        assert_eq!(second.records_of(url), [(200, None)], "the record says what the request got");
    }
    assert_eq!(second.count("response_received_count"), 3);
    assert_eq!(second.count("downloader/request_count"), 0);
}

#[test]
fn a_request_that_passes_the_cache_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    run(&dir);
    let done = cached(&dir, CachePolicy::Dummy).start([follow(PAGES[0]), make(PAGES[1], |r| _ = r.dont_cache())]).run();
    done.assert_whole();
    assert_eq!(done.asked.iter().map(|sent| sent.url.as_str()).collect::<Vec<_>>(), [PAGES[1]]);
    assert_eq!(done.reports.len(), 1);
}

#[test]
fn a_confirmation_is_reported_as_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let answers = [Answer::html("x").header("etag", "\"1\""), Answer::new(304, "")];
    let start = || cached(&dir, CachePolicy::Rfc9111).start([follow(PAGES[0])]);
    let first = start().answers(PAGES[0], answers.clone()).run();
    first.assert_whole();
    let second = start().answers(PAGES[0], answers.into_iter().skip(1)).run();
    second.assert_whole();
    assert_eq!(second.reports.iter().map(|(_, report)| report.status).collect::<Vec<_>>(), [Some(304)]);
    assert_eq!(second.records_of(PAGES[0]), [(200, None)]);
    assert_eq!(second.count("httpcache/revalidate"), 1);
}

#[test]
fn a_crawl_without_a_network_drops_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    run(&dir);
    let other = "http://a.test/other";
    let done = cached(&dir, CachePolicy::Dummy)
        .start(PAGES.map(follow).into_iter().chain([follow(other)]))
        .with(|s| s.httpcache_ignore_missing = true)
        .run();
    done.assert_whole();
    assert!(done.asked.is_empty() && done.reports.is_empty());
    assert_eq!(done.ended.books.dropped, 1);
    assert_eq!(done.said("failed"), [format!("failed not_cached - {other} x0")]);
    assert_eq!(done.ended.code, 0);
}
