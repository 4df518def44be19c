//! Trees of whole pages: the cases of the public suite, and html5ever's trees of the same pages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use serde_json::Value;

use crate::html::from_scraper::from_scraper;
use crate::html::{Document, Exceeded, Limits, NodeKind, ParseOptions};

const CASES: &str = include_str!("../../../tests/data/html_tree.json");

/// Cases whose tree the change of June 2026 (whatwg/html 12118) alters: `<?target data>` is a processing instruction now. The
/// public suite at that revision makes a comment of it; here the trees of today.
const PROCESSING_INSTRUCTIONS: [(&str, &str); 4] = [
    ("html5test-com-012", "<?import namespace=\"foo\" implementation=\"#bar\">\n<html>\n  <head>\n  <body>\n"),
    // One that the page ends in is dropped.
    ("tests1-040", "<html>\n  <head>\n  <body>\n"),
    ("tests1-044", "<?COMMENT >\n<html>\n  <head>\n  <body>\n"),
    ("tests1-047", "<?COM--MENT >\n<html>\n  <head>\n  <body>\n"),
];

struct Case {
    id: String,
    data: String,
    tree: String,
}

fn cases() -> Vec<Case> {
    let all: Value = serde_json::from_str(CASES).unwrap();
    let cases = all["cases"].as_array().unwrap();
    assert_eq!(cases.len() as u64, all["count"].as_u64().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    cases
        .iter()
        .map(|case| Case {
            id: text(&case["id"]),
            data: text(&case["data"]),
            tree: case["tree"].as_array().unwrap().iter().map(|line| text(line) + "\n").collect(),
        })
        .collect()
}

fn options() -> ParseOptions {
    ParseOptions::default().limits(Limits::NONE)
}

/// The tree of html5ever, without scripting.
fn tree_of_html5ever(page: &str) -> String {
    from_scraper(&super::oracle::document(page)).document.dump()
}

#[test]
fn the_cases_of_the_public_suite_give_their_trees() {
    let mut failures = Vec::new();
    for case in cases() {
        let altered = PROCESSING_INSTRUCTIONS.iter().find(|(id, _)| *id == case.id);
        let expected = altered.map_or(case.tree.as_str(), |(_, tree)| tree);
        let page = Document::parse_with(&case.data, &options());
        let found = page.dump();
        assert!(!page.exceeded().any(), "{}", case.id);
        if found != expected {
            failures.push(format!("{}: {:?}\n{found}expected\n{expected}", case.id, case.data));
        }
    }
    assert!(failures.is_empty(), "{} fail\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn html5ever_gives_the_same_trees_where_its_errors_are_ours() {
    let mut failures = Vec::new();
    for case in cases() {
        let mut options = options();
        options.as_html5ever = true;
        let found = Document::parse_with(&case.data, &options).dump();
        let expected = tree_of_html5ever(&case.data);
        if found != expected {
            failures.push(format!("{}: {:?}\n{found}html5ever\n{expected}", case.id, case.data));
        }
    }
    assert!(failures.is_empty(), "{} fail\n{}", failures.len(), failures.join("\n"));
}

/// A page, and the nodes and steps that it may take at most.
fn check_bounds(page: &str, expected: Exceeded) {
    let document = Document::parse(page);
    let limits = Limits::default();
    assert_eq!(document.exceeded(), expected, "{:.40}", page);
    // A token may go on for a while once a bound is met, but not for long.
    assert!(document.steps() < limits.steps_for(page.len()) + 100_000, "{:.40}: {} steps", page, document.steps());
    assert!(document.node_count() < page.len() + 5_000, "{:.40}: {} nodes", page, document.node_count());
    let deepest =
        document.root().descendants().filter(|node| node.kind() == NodeKind::Element).map(|node| node.ancestors().count());
    assert!(deepest.max().unwrap() <= 2 * limits.depth, "{:.40}", page);
}

#[test]
fn hostile_pages_meet_a_bound_and_keep_what_was_parsed() {
    let many = |part: &str, times: usize| part.repeat(times);
    let none = Exceeded::default();
    let depth = Exceeded { depth: true, ..none };
    let nodes = Exceeded { nodes: true, ..none };
    let deep_steps = Exceeded { steps: true, ..depth };
    let different = |range: std::ops::Range<usize>| range.map(|n| format!("<b a={n}>")).collect::<String>();
    for (page, expected) in [
        (many("<div>", 100_000), depth),
        (many("<div><p>text</p>", 20_000), depth),
        (different(0..10_000) + "<p>", deep_steps),
        (format!("<p>{}{}", different(0..10_000), many("<p>x", 100)), deep_steps),
        (format!("<p>{}{}", different(0..400), many("<p>x", 4_000)), nodes),
        (many("<a><div>", 30_000), depth),
        (format!("<p><button>{}{}", many("<div>", 10_000), many("<hr>", 20_000)), deep_steps),
        (format!("<form><button>{}{}", many("<div>", 10_000), many("</form></button></span>", 10_000)), depth),
        (format!("<svg>{}{}", many("<g>", 10_000), many("</x>", 10_000)), deep_steps),
        (many("<li>", 100_000), none),
        (many("<b><div></b>", 20_000), depth),
        (many("<table><b><div></b>", 5_000), nodes),
        (format!("{}{}", many("<div>", 508), many("<b><div></b>", 10_000)), depth),
        (many("<form><div></form>", 5_000), depth),
        (many("<table><tr><td>", 5_000), depth),
        (many("<template>", 5_000), depth),
        (format!("<table>{}", many("x&amp;<tr><td>&amp;", 5_000)), none),
    ] {
        check_bounds(&page, expected);
    }
}

#[test]
fn text_is_joined_with_text_that_was_moved() {
    let page = Document::parse("<a><div><div><div><div><div><div><div><div>1</a>2");
    let texts: Vec<_> = page.root().descendants().filter_map(|node| node.data()).collect();
    assert_eq!(texts, ["12"]);
}
