//! What the tree of a page tells the job: bounds it has met, and answers in which two engines differ.
//!
//! Counts every one and logs a bounded number of them; decides nothing.

use std::ops::Deref;

use crate::api::response::Response;
use crate::api::stats::Stats;
use crate::html::{Compared, Exceeded};

/// The most differences of a job that are logged.
const SHOWN: i64 = 20;

/// A response whose page is accounted for when its callback is over, however it ended.
pub(super) struct Noting {
    response: Response,
    stats: Stats,
}

impl Noting {
    pub(super) fn new(response: Response, stats: Stats) -> Self {
        Self { response, stats }
    }
}

impl Deref for Noting {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        // A page whose callback asked for no tree has none.
        let Some(page) = self.response.built_page() else { return };
        let url = self.response.url().as_str();
        let exceeded = page.exceeded();
        if exceeded.any() {
            note_exceeded(exceeded, url, &self.stats);
        }
        note_compared(&page.take_compared(), url, &self.stats);
    }
}

fn note_exceeded(exceeded: Exceeded, url: &str, stats: &Stats) {
    for (is_met, key, bound) in [
        (exceeded.depth, "html/exceeded/depth", "HTML_MAX_DEPTH"),
        (exceeded.steps, "html/exceeded/steps", "HTML_STEPS_PER_BYTE"),
        (exceeded.nodes, "html/exceeded/nodes", "HTML_MAX_NODES, or elements that HTML repeats"),
        (exceeded.memory, "html/exceeded/memory", "HTML_MEMORY_PER_BYTE"),
        (exceeded.attributes, "html/exceeded/attributes", "HTML_MAX_ATTRIBUTES, or 4096 of one element"),
        (exceeded.length, "html/exceeded/length", "2 GiB"),
    ] {
        if is_met && stats.raise(key, 1) == 0 {
            let cut = if exceeded.is_cut() { "ends early" } else { "is not quite what the standard says" };
            tracing::warn!(url, bound, "the tree of a page has met a bound and {cut}; further pages are only counted in {key}");
        }
    }
}

fn note_compared(compared: &Compared, url: &str, stats: &Stats) {
    if compared.answers == 0 {
        return;
    }
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    stats.add("html/compared", number(compared.answers));
    if compared.differing == 0 {
        return;
    }
    let before = stats.raise("html/differences", number(compared.differing));
    for (difference, at) in compared.first.iter().zip(before..SHOWN) {
        let selector = difference.selector.as_deref();
        let (dragline, scraper) = (&*difference.ours, &*difference.theirs);
        let last = if at + 1 == SHOWN { "; further ones are only counted in html/differences" } else { "" };
        match selector {
            Some(selector) => tracing::warn!(url, selector, dragline, scraper, "the engines answer a selector differently{last}"),
            None => tracing::warn!(url, dragline, scraper, "the engines build different trees{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::api::response::tests::response;
    use crate::html::{Engine, Limits, PageOptions};

    #[test]
    fn a_page_is_accounted_for_once_its_callback_is_over() {
        let stats = Stats::new();
        let limits = Limits { depth: 10, ..Limits::default() };
        let options = PageOptions::default().limits(limits).engine(Engine::Compare);
        let read = |body: String| Noting::new(response("text/html", body, options), stats.clone());
        drop(read("<div>".repeat(20)));
        assert!(stats.snapshot().is_empty(), "nobody asked for the tree");
        let deep = read("<div>".repeat(20));
        assert_eq!(deep.css("div").len(), 20);
        assert!(stats.snapshot().is_empty());
        drop(deep);
        let plain = read("<p>x".to_owned());
        assert_eq!(plain.css("p::text").getall(), ["x"]);
        drop(plain);
        let counts = ["html/exceeded/depth", "html/compared", "html/differences"].map(|key| stats.count(key));
        // The trees of both pages and one selector; where the trees differ no selector in them can be compared.
        assert_eq!(counts, [1, 3, 1]);
    }

    #[test]
    fn each_bound_a_page_meets_is_counted() {
        let stats = Stats::new();
        let deep = Exceeded { depth: true, ..Exceeded::default() };
        note_exceeded(deep, "http://a.example/", &stats);
        note_exceeded(Exceeded { nodes: true, ..deep }, "http://a.example/", &stats);
        let snapshot = serde_json::to_string(&stats.snapshot()).unwrap();
        assert_eq!(snapshot, r#"{"html/exceeded/depth":2,"html/exceeded/nodes":1}"#);
    }

    #[test]
    fn answers_and_differences_are_counted() {
        let stats = Stats::new();
        note_compared(&Compared::default(), "http://a.example/", &stats);
        assert!(stats.snapshot().is_empty());
        note_compared(&Compared { answers: 3, ..Compared::default() }, "http://a.example/", &stats);
        note_compared(&Compared { answers: 2, differing: 1, ..Compared::default() }, "http://a.example/", &stats);
        assert_eq!((stats.count("html/compared"), stats.count("html/differences")), (5, 1));
    }
}
