//! Our tree against html5ever's, on soup and on changed pages.
//!
//! Ours has no bounds here and errs where html5ever errs, so that "equal" means equal. A difference is shrunk before it is
//! shown. Cases are numbered: a number always gives the same page.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shrink::shrink;
use super::{oracle, order, soup};
use crate::html::from_scraper::from_scraper;
use crate::html::{Document, Limits, ParseOptions};

/// So many differences are shown; then the run ends.
const MOST_SHOWN: usize = 8;

fn ours(page: &str) -> String {
    let options = ParseOptions { as_html5ever: true, ..ParseOptions::default().limits(Limits::NONE) };
    let tree = catch_unwind(AssertUnwindSafe(|| {
        let document = Document::parse_with(page, &options);
        order::check(&document);
        document.dump()
    }));
    tree.map_or_else(|_| "(a panic)".to_owned(), |dump| without_empty_ids(&dump))
}

fn theirs(page: &str) -> String {
    without_empty_ids(&from_scraper(&oracle::document(page)).document.dump())
}

/// html5ever does not tell an empty identifier of a doctype from none.
fn without_empty_ids(dump: &str) -> String {
    let mut out = String::with_capacity(dump.len());
    for line in dump.split_inclusive('\n') {
        match line.strip_suffix(" \"\" \"\">\n") {
            Some(doctype) if line.starts_with("<!DOCTYPE ") => out.extend([doctype, ">\n"]),
            _ => out.push_str(line),
        }
    }
    out
}

/// Whether html5ever may keep a line feed that is to be left out: an error that it tells of between the start tag and the line
/// feed makes it forget. Ours tells of no errors, so it cannot err in the same way.
fn may_keep_newline(page: &str) -> bool {
    let page = page.to_ascii_lowercase();
    let has_reference = |start: &str| {
        page.match_indices(start).any(|(at, _)| {
            let behind = page[at + start.len()..].trim_start_matches('0');
            let digits = if start == "&#x" { "a" } else { "10" };
            behind.strip_prefix(digits).is_some_and(|behind| !behind.starts_with(';'))
        })
    };
    let has_error = page.contains("</>") || has_reference("&#x") || has_reference("&#");
    has_error && ["<pre", "<listing", "<textarea"].iter().any(|tag| page.contains(tag))
}

fn differs(page: &str) -> bool {
    ours(page) != theirs(page) && !may_keep_newline(page)
}

/// Compares the pages of the numbers `cases`, on all processors.
fn compare(cases: std::ops::Range<u64>) {
    let corpus = soup::corpus();
    let next = AtomicU64::new(cases.start);
    let shown = Mutex::new(Vec::new());
    let work = || {
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= cases.end || shown.lock().unwrap().len() >= MOST_SHOWN {
                return;
            }
            let pieces = soup::case(case, &corpus);
            if differs(&pieces.concat()) {
                let least = shrink(pieces, differs);
                let text = format!("case {case}: {least:?}\nours:\n{}html5ever:\n{}", ours(&least), theirs(&least));
                let mut shown = shown.lock().unwrap();
                if !shown.iter().any(|(known, _)| *known == least) {
                    shown.push((least, text));
                }
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(work);
        }
    });
    let shown: Vec<String> = shown.into_inner().unwrap().into_iter().map(|(_, text)| text).collect();
    assert!(shown.is_empty(), "{} pages differ:\n{}", shown.len(), shown.join("\n"));
}

#[test]
fn trees_are_those_of_html5ever() {
    compare(0..if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 3_000_000 } else { 200_000 });
}

#[test]
fn whole_pages_are_those_of_html5ever() {
    for kind in crate::testkit::pages::PageKind::ALL {
        for bytes in [3_000, 20_000] {
            let page = kind.page(bytes);
            assert_eq!(ours(&page), theirs(&page), "{}", kind.name());
        }
    }
}

/// Pages that long runs have found.
#[test]
fn pages_once_found_are_those_of_html5ever() {
    for page in [
        "<script><!--/script><s",
        "<script><!--/script <c",
        "<script><!--<script></script>-/SCRIPT><r",
        "<math><annotation-xml encoding='text/html'><svg><p>",
        "<ruby><isindex></ruby><",
    ] {
        assert!(!differs(page), "{page:?}\nours:\n{}html5ever:\n{}", ours(page), theirs(page));
    }
}

/// The comparison itself: pages whose trees differ without the switch.
#[test]
fn a_known_error_of_html5ever_shows_without_the_switch() {
    let options = ParseOptions::default().limits(Limits::NONE);
    let page = "<?x y>";
    assert_ne!(Document::parse_with(page, &options).dump(), theirs(page));
}
