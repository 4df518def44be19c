//! Redirects over a crash: the target counts as seen, and so the request must come back as one that goes there.

use std::collections::HashMap;
use std::path::Path;

use super::*;
use crate::scheduler::disk::{DiskOptions, DiskStore};
use crate::web::key::seen_key;

fn open(dir: &Path) -> Played {
    let (store, _) = DiskStore::open(dir, DiskOptions::default(), &HashMap::new()).unwrap();
    Played::over(config(), store)
}

/// The job as the engine sends it on.
fn sent_on(job: &Job, to: &str) -> Job {
    let mut next = job.clone();
    next.chain.push(next.key);
    next.first_url.get_or_insert_with(|| job.url().as_str().into());
    next.hops += 1;
    next.request.set_url(to.parse().unwrap());
    next.key = seen_key(next.request.method(), next.url(), next.request.body_bytes());
    next
}

#[test]
fn a_request_that_was_redirected_comes_back_after_a_crash_at_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = open(dir.path());
    before.pages(&["http://a.test/old", "http://a.test/other"]);
    let due = before.pull(1).jobs.pop().unwrap();
    let paced = before.hop(sent_on(&due.job, "http://b.test/new"));
    // Its host has no delay: it goes at once, and the process ends.
    assert_eq!(paced.map(|paced| paced.verdict), Some(Verdict::Go));
    drop(before);

    let mut after = open(dir.path());
    let mut jobs: Vec<Job> = after.pull(5).jobs.into_iter().map(|due| *due.job).collect();
    jobs.sort_by_key(|job| job.url().to_string());
    let urls: Vec<&str> = jobs.iter().map(|job| job.url().as_str()).collect();
    assert_eq!(urls, ["http://a.test/other", "http://b.test/new"]);
    assert_eq!((jobs[1].hops, jobs[1].first_url.as_deref()), (1, Some("http://a.test/old")));
    // Redirected to where it stands, it is no duplicate of itself; another request to its target is.
    let onward = after.hop(sent_on(&jobs[1], "http://a.test/old"));
    assert_eq!(onward.map(|paced| paced.verdict), Some(Verdict::Go));
    let again = after.hop(sent_on(&jobs[0], "http://b.test/new"));
    assert_eq!(again.map(|paced| paced.verdict), Some(Verdict::Duplicate));
    assert_eq!(after.frontier.books().pending, 2);
}
