//! What hostile pages cost, in steps, nodes and counted bytes: by the page, not by the machine.
//!
//! Time is measured by `cargo bench --bench html`.

use crate::html::arena::NodeId;
use crate::html::css::{self, Reach};
use crate::html::hit::Hit;
use crate::html::xpath::{self, Variables};
use crate::html::{Document, Exceeded, Limits, ParseOptions};
use crate::testkit::hostile::{ALL, EXPRESSIONS, SELECTORS};

const BYTES: usize = 60_000;

/// Pages that end where their memory does.
const ENDED_BY_MEMORY: &[&str] = &["<table><b>x"];

/// Pages whose steps grow with the square until the budget ends them: each `<b>` is compared with all before it.
const UNTIL_OVER: &[&str] = &["<b> with 200 attributes again"];

/// A token that began within the budget may end past it, and some tokens may come before that is noticed.
const PAST: u64 = 32 * 512;

fn parse(page: &str) -> Document {
    Document::parse_with(page, &ParseOptions::default())
}

/// Bytes of memory of the tree, of the stack of open elements and of the list of active formatting elements.
fn heap_bytes(document: &Document) -> usize {
    document.arena().heap_bytes() + document.parse_bytes
}

#[test]
fn hostile_pages_stay_within_their_bounds() {
    let limits = Limits::default();
    let mut problems = Vec::new();
    for hostile in ALL {
        let mut steps = Vec::new();
        for bytes in [BYTES, 2 * BYTES] {
            let page = hostile.page(bytes);
            let document = parse(&page);
            let name = hostile.name;
            if document.steps() > limits.steps_for(page.len()) + PAST {
                problems.push(format!("{name}: {} steps for {bytes} bytes", document.steps()));
            }
            if document.exceeded().steps != (document.steps() > limits.steps_for(page.len())) {
                problems.push(format!("{name}: {} steps, {:?}", document.steps(), document.exceeded()));
            }
            let heap = heap_bytes(&document);
            if heap > limits.memory_per_byte * page.len() {
                problems.push(format!("{name}: {:.2} bytes of memory a byte", heap as f64 / page.len() as f64));
            }
            let most_nodes = page.len() as u64 + limits.repeats_for(page.len()) + 8;
            if document.node_count() as u64 > most_nodes {
                problems.push(format!("{name}: {} nodes", document.node_count()));
            }
            super::order::check(&document);
            steps.push(document.steps());
        }
        if steps[1] > steps[0] * 22 / 10 + 2_000 && !UNTIL_OVER.contains(&hostile.name) {
            problems.push(format!("{}: steps grow from {} to {}", hostile.name, steps[0], steps[1]));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Of the hostile pages those that memory ends are few, and their beginning is kept.
#[test]
fn memory_ends_pages_of_hardly_more_than_tags() {
    for hostile in ALL {
        let page = hostile.page(BYTES);
        let document = parse(&page);
        let free = Limits { memory_per_byte: usize::MAX, ..Limits::default() };
        let all = Document::parse_with(&page, &ParseOptions::default().limits(free));
        let is_ended = document.node_count() < all.node_count();
        assert_eq!(is_ended, ENDED_BY_MEMORY.contains(&hostile.name), "{}", hostile.name);
        assert_eq!(document.exceeded(), Exceeded { memory: is_ended, ..all.exceeded() }, "{}", hostile.name);
        assert!(10 * document.node_count() > 6 * all.node_count(), "{}", hostile.name);
    }
    // As many nodes a byte as a page has that someone made: rows of ten digits without end tags.
    let digits = "<table>".to_owned() + &("<tr>".to_owned() + &"<td>7".repeat(10)).repeat(2_000);
    assert!(!parse(&digits).exceeded().any());
}

#[test]
fn a_page_says_which_bound_it_met() {
    let page = |name: &str| ALL.iter().find(|hostile| hostile.name == name).expect("a name of the table").page(200_000);
    let deep = parse(&page("<div> nested"));
    assert!(deep.exceeded().depth && !deep.exceeded().is_cut());
    let deepest = deep.root().descendants().last().map_or(0, |node| node.ancestors().count());
    assert!((510..=514).contains(&deepest), "{deepest}");
    let tight = ParseOptions::default().limits(Limits { steps_per_byte: 0, steps: 1_000, ..Limits::default() });
    let cut = Document::parse_with(&page("<svg>, <g> nested, stray ends"), &tight);
    assert!(cut.exceeded().steps && cut.exceeded().is_cut(), "{:?} after {}", cut.exceeded(), cut.steps());
    let many_b: String = (0..400).map(|n| format!("<b a={n}>")).collect();
    let repeated = parse(&format!("<p>{many_b}{}", "<p>x".repeat(4_000)));
    assert!(repeated.exceeded().nodes, "{:?}", repeated.exceeded());
    let nodes = ParseOptions::default().limits(Limits { nodes: 1_000, ..Limits::default() });
    let cut = Document::parse_with(&page("<br>"), &nodes);
    assert!(cut.exceeded().nodes && cut.exceeded().is_cut());
    assert!((900..=1_016).contains(&cut.node_count()), "{}", cut.node_count());
    let attributes = parse(&page("attributes of one tag"));
    assert!(attributes.exceeded().attributes && !attributes.exceeded().is_cut());
    assert_eq!(attributes.body().and_then(|body| body.first_child()).map(|p| p.attrs().count()), Some(4_096));
    let ordinary = parse(&crate::testkit::pages::PageKind::Shop.page(100_000));
    assert!(!ordinary.exceeded().any(), "{:?}", ordinary.exceeded());
}

/// What ordinary pages take of their budget: less than a tenth of it.
#[test]
fn ordinary_pages_are_far_from_the_bounds() {
    for kind in crate::testkit::pages::PageKind::ALL {
        let page = kind.page(100_000);
        let document = parse(&page);
        assert!(document.steps() < page.len() as u64, "{}: {} steps", kind.name(), document.steps());
        let heap = heap_bytes(&document);
        assert!(heap < 6 * page.len(), "{}: {:.2} bytes of memory a byte", kind.name(), heap as f64 / page.len() as f64);
    }
}

#[test]
fn hostile_selectors_stay_within_their_steps() {
    let compiled: Vec<css::Compiled> = SELECTORS.iter().map(|selector| css::Compiled::parse(selector).unwrap()).collect();
    for hostile in ALL {
        let document = parse(&hostile.page(6_000));
        let most = 150_000 + 20 * document.byte_count();
        for (selector, compiled) in SELECTORS.iter().zip(&compiled) {
            let found = compiled.select(&document, &[NodeId::DOCUMENT], Reach::Document);
            assert!(found.steps <= most + 50_000, "{selector} on {}: {} steps", hostile.name, found.steps);
        }
    }
}

#[test]
fn hostile_expressions_stay_within_their_steps() {
    let compiled: Vec<xpath::Compiled> =
        EXPRESSIONS.iter().map(|expression| xpath::Compiled::parse(expression).unwrap()).collect();
    let options = xpath::Options::default();
    for hostile in ALL {
        let document = parse(&hostile.page(3_000));
        let most = options.steps_for(&document);
        for (expression, compiled) in EXPRESSIONS.iter().zip(&compiled) {
            let root = Hit::Node(NodeId::DOCUMENT);
            let (result, steps) = compiled.evaluate_within(&document, root, &Variables::NONE, options);
            assert!(steps <= most, "{expression} on {}: {steps} steps", hostile.name);
            assert_eq!(result.is_err(), steps == most, "{expression} on {}: {result:?}", hostile.name);
        }
    }
}
