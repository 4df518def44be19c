//! Random CSS selectors over the names the soup is made of: what they find is what scraper finds in html5ever's tree.

use scraper::Selector;

use super::oracle;
use super::soup::{self, Rng};
use crate::html::arena::NodeId;
use crate::html::css::{Compiled, Reach};
use crate::html::from_scraper::from_scraper;
use crate::html::{Document, Limits, ParseOptions};
use crate::testkit::pages::PageKind;

const TYPES: &[&str] =
    &["*", "div", "p", "b", "a", "i", "td", "tr", "table", "span", "li", "body", "html", "svg", "option", "h1", "x", "title"];
const SIMPLE: &[&str] = &[
    ".x",
    "#x",
    ".a",
    "#a",
    "[a]",
    "[id]",
    "[class=x]",
    "[type=hidden i]",
    "[a='']",
    "[href^='http']",
    "[id$=x]",
    "[class*=x]",
    "[a~=a]",
    "[a|=x]",
    ":first-child",
    ":last-child",
    ":only-child",
    ":first-of-type",
    ":last-of-type",
    ":only-of-type",
    ":empty",
    ":root",
    ":nth-child(2n+1)",
    ":nth-child(3)",
    ":nth-last-child(2)",
    ":nth-of-type(2n)",
    ":nth-last-of-type(-n+2)",
    ":nth-child(odd)",
];

/// One to three complex selectors.
pub(super) fn list(rng: &mut Rng) -> String {
    let count = if rng.one_in(4) { 1 + rng.below(3) } else { 1 };
    (0..count).map(|_| complex(rng, 2, true)).collect::<Vec<_>>().join(", ")
}

/// No `:has()` stands in another one.
fn complex(rng: &mut Rng, depth: usize, may_have: bool) -> String {
    let mut selector = compound(rng, depth, may_have);
    for _ in 0..rng.below(3) {
        selector.push_str(rng.pick(&[" ", " ", " > ", " > ", " + ", " ~ "]));
        selector.push_str(&compound(rng, depth, may_have));
    }
    selector
}

fn compound(rng: &mut Rng, depth: usize, may_have: bool) -> String {
    let mut compound = if rng.one_in(4) { String::new() } else { rng.pick(TYPES).to_owned() };
    let count = rng.below(3);
    for _ in 0..count {
        if depth > 0 && rng.one_in(4) {
            let way = rng.below(if may_have { 5 } else { 4 });
            let may_have = may_have && way != 4;
            let inner = complex(rng, depth - 1, may_have);
            let other = complex(rng, depth - 1, may_have);
            compound.push_str(&match way {
                0 => format!(":not({inner})"),
                1 => format!(":is({inner}, {other})"),
                2 => format!(":where({inner})"),
                3 => format!(":not({inner}, {other})"),
                _ => format!(":has({}{inner})", rng.pick(&["", "> ", "+ ", "~ "])),
            });
        } else {
            compound.push_str(rng.pick(SIMPLE));
        }
    }
    if compound.is_empty() { "*".to_owned() } else { compound }
}

/// The elements of a page in document order.
fn elements(document: &Document) -> Vec<NodeId> {
    document.root().descendants().filter(|node| node.is_element()).map(|node| node.id).collect()
}

/// By their places among the elements of the page.
fn found(document: &Document, selector: &str) -> Vec<usize> {
    let elements = elements(document);
    let hits = Compiled::parse(selector).unwrap().select(document, &[NodeId::DOCUMENT], Reach::Document).hits;
    hits.iter().map(|hit| elements.iter().position(|id| *id == hit.node()).unwrap()).collect()
}

/// Compares what selectors find in a page; gives for how many that is nothing and for how many something.
fn compare(page: &str, selectors: &[String]) -> [usize; 2] {
    let options = ParseOptions { as_html5ever: true, ..ParseOptions::default().limits(Limits::NONE) };
    let html = oracle::document(page);
    let theirs = from_scraper(&html);
    let ours = Document::parse_with(page, &options);
    let known = elements(&theirs.document);
    let mut compared = [0; 2];
    if known.len() != elements(&ours).len() {
        // Trees that differ are another test's affair.
        return compared;
    }
    for selector in selectors {
        let Ok(compiled) = Selector::parse(selector) else { continue };
        // Scraper finds elements too that are not in the tree any more.
        let place = |id| known.iter().position(|node| theirs.nodes[node.index()] == id);
        let mut wanted: Vec<usize> = html.select(&compiled).filter_map(|element| place(element.id())).collect();
        wanted.sort_unstable();
        assert_eq!(found(&ours, selector), wanted, "{selector} on {page:?}");
        compared[usize::from(!wanted.is_empty())] += 1;
    }
    compared
}

#[test]
fn selectors_find_in_soup_what_scraper_finds() {
    let corpus = soup::corpus();
    let mut compared = [0; 2];
    for case in 0..if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 200_000 } else { 10_000 } {
        let page = soup::case(case, &corpus).concat();
        // For scraper the content of a template is not in it.
        if page.to_ascii_lowercase().contains("<template") {
            continue;
        }
        let mut rng = Rng::new(case);
        let [none, some] = compare(&page, &[list(&mut rng), list(&mut rng), list(&mut rng)]);
        compared = [compared[0] + none, compared[1] + some];
    }
    assert!(compared.iter().all(|count| *count > 2_000), "{compared:?}");
}

#[test]
fn selectors_find_in_whole_pages_what_scraper_finds() {
    let mut rng = Rng::new(7);
    for kind in PageKind::ALL {
        let names =
            ["h1", "a[href]", ".price", "div > p a", "ul li a", "img[loading=lazy]", "p:not(.price)", "td ~ td", "li:has(a)"];
        let random = (0..60).map(|_| list(&mut rng));
        let selectors: Vec<String> = names.into_iter().map(str::to_owned).chain(random).collect();
        let [none, some] = compare(&kind.page(4_000), &selectors);
        assert!(none + some > 60 && some > 10, "{}: {none} and {some}", kind.name());
    }
}
