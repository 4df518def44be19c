//! Pages and selectors that would take for ever without bounds: counted in steps, which do not depend on the machine.

use super::*;
use crate::html::arena::{Arena, AttrList, Namespace};
use crate::html::names::{NameId, known};

/// Runs a closure on a thread with little stack.
fn with_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

/// A tree that no parser with a depth bound makes: `depth` elements, one in the other.
fn chain(depth: usize, name: NameId) -> Document {
    let mut page = page("<!DOCTYPE html>");
    let arena: &mut Arena = &mut page.arena;
    let mut parent = NodeId::at(arena.len() - 1);
    for _ in 0..depth {
        let element = arena.new_element(name, Namespace::Html, AttrList::EMPTY);
        arena.append(parent, element);
        parent = element;
    }
    page
}

#[test]
fn nested_brackets_are_an_error_and_need_little_stack() {
    with_small_stack(|| {
        for open in
            [":not(", ":is(", ":has(", ":where(", ":nth-child(1 of ", "[", "(", "{", "a[b=c]:not(:is(", ":lang(", "::attr("]
        {
            for count in [17, 100, 3_000] {
                let text = open.repeat(count);
                for text in [text.clone(), format!("{text}a{}", ")".repeat(count)), format!("a {text}a{}", ")".repeat(count))] {
                    assert!(Compiled::parse(&text).is_err(), "{open} {count}");
                }
            }
        }
        let deepest = format!("{}a{}", ":not(".repeat(16), ")".repeat(16));
        let compiled = Compiled::parse(&deepest).unwrap();
        let page = page(SHOP);
        assert!(!compiled.select(&page, &[NodeId::DOCUMENT], Reach::Document).hits.is_empty());
        assert!(Compiled::parse(&format!(":is({deepest})")).unwrap_err().reason().contains("too deep"));
    });
}

#[test]
fn long_selectors_are_an_error_and_those_allowed_need_little_stack() {
    with_small_stack(|| {
        assert!(Compiled::parse(&"a".repeat(20_000)).unwrap_err().reason().contains("longer"));
        assert!(Compiled::parse(&vec!["a"; 129].join(">")).unwrap_err().reason().contains("compounds"));
        assert!(Compiled::parse(&format!(":is({}) > b", vec!["a"; 128].join(">"))).unwrap_err().reason().contains("compounds"));
        let page = chain(300, known::A);
        for join in [">", " "] {
            let longest = vec!["a"; 128].join(join);
            let compiled = Compiled::parse(&longest).unwrap();
            let found = compiled.select(&page, &[NodeId::DOCUMENT], Reach::Document);
            assert_eq!((found.hits.len(), found.exceeded), (300 - 127, false), "{join:?}");
        }
        // As deep as recursion goes: compounds and brackets together.
        let mut nested = vec!["a"; 98].join(" > ");
        for _ in 0..15 {
            nested = format!("a > a:is({nested})");
        }
        let compiled = Compiled::parse(&nested).unwrap();
        let found = compiled.select(&page, &[NodeId::DOCUMENT], Reach::Document);
        assert_eq!((found.hits.len(), found.exceeded), (300 - 97, false));
        assert!(Compiled::parse(&format!("a > {nested}")).is_err());
        let many = vec!["a.b"; 4_000].join(",");
        assert_eq!(Compiled::parse(&many).unwrap().select(&page, &[NodeId::DOCUMENT], Reach::Document).hits, []);
    });
}

/// Steps each may take, and whether it has to be enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    InTime,
    Either,
}

#[test]
fn no_page_and_no_selector_costs_more_than_its_steps() {
    let n = 20_000;
    let names: String = (0..n / 4).map(|i| format!("<n{i}></n{i}>")).collect();
    let flat = format!("<!DOCTYPE html><body>{}", "<i></i>".repeat(n));
    let divs = format!("<!DOCTYPE html><body>{}", "<div><p></p></div>".repeat(n / 2));
    let pages = [
        ("flat", page(&flat)),
        ("divs", page(&divs)),
        ("names", page(&format!("<!DOCTYPE html><body>{names}"))),
        ("mixed", page(&format!("<!DOCTYPE html><body>{}", "<div></div><p></p><a class='a b c d e f' x=1></a>".repeat(n / 3)))),
        ("classes", page(&format!("<!DOCTYPE html><body class='{}'>{}", "c ".repeat(n), "<i class='c d'></i>".repeat(n / 4)))),
        ("texts", page(&format!("<!DOCTYPE html><body>{}", "<b>aaaaaaaa".repeat(300)))),
        ("deep", chain(n, known::DIV)),
    ];
    let selectors = [
        ("* * * * *", Ends::InTime),
        ("i ~ i ~ i ~ p", Ends::InTime),
        ("p ~ i", Ends::InTime),
        ("div:not(:has(a)) ~ p", Ends::Either),
        (":has(~ i)", Ends::InTime),
        (":has(p)", Ends::InTime),
        (":has(> p + a)", Ends::Either),
        (":has(i ~ zz)", Ends::Either),
        (":has(:is(i ~ zz))", Ends::Either),
        ("i:nth-last-child(odd)", Ends::InTime),
        (":nth-of-type(2)", Ends::Either),
        (":nth-last-of-type(2)", Ends::Either),
        (":nth-child(2 of :is(i ~ i))", Ends::Either),
        (":is(i ~ p) ~ :is(i ~ i) ~ :not(i ~ p)", Ends::Either),
        (":is(:is(:is(* ~ zz) ~ zz, *) ~ zz, *) ~ zz", Ends::Either),
        ("body .c", Ends::InTime),
        (".x .c", Ends::InTime),
        ("[x] div", Ends::Either),
        ("zz div", Ends::InTime),
        ("div div div zz", Ends::InTime),
        (":contains('b')", Ends::Either),
        ("div :lang(x)", Ends::Either),
        ("[class*=dddddddddddd i]", Ends::InTime),
        (":disabled", Ends::InTime),
    ];
    for (kind, page) in &pages {
        let most = 150_000 + 20 * page.byte_count();
        for (selector, ends) in selectors {
            let compiled = Compiled::parse(selector).unwrap();
            for found in [
                compiled.select(page, &[NodeId::DOCUMENT], Reach::Document),
                compiled.first(page, &[NodeId::DOCUMENT], Reach::Document),
            ] {
                // What the last element takes until it notices.
                assert!(found.steps <= most + 50_000, "{selector} on {kind}: {} of {most}", found.steps);
                assert!(ends == Ends::Either || !found.exceeded, "{selector} on {kind}: {} of {most}", found.steps);
                assert!(found.exceeded == (found.steps > most) || !found.hits.is_empty(), "{selector} on {kind}");
            }
        }
    }
}

#[test]
fn a_selection_that_stops_says_so_and_what_it_found_is_right() {
    let mut text = String::from("<!DOCTYPE html><body><p></p>");
    text.push_str(&"<i></i>".repeat(20_000));
    let page = page(&text);
    let found = Compiled::parse(":is(zz ~ i), p").unwrap().select(&page, &[root(&page)], Reach::Document);
    assert!(found.exceeded);
    assert_eq!(show(&page, &found.hits), ["p"]);
    assert!(!Compiled::parse("p, i").unwrap().select(&page, &[root(&page)], Reach::Document).exceeded);
}

#[test]
fn deep_trees_are_not_searched_upwards_from_each_element() {
    let page = chain(20_000, known::DIV);
    for selector in ["article div", ".a div", "#a > div", "svg|g div", "article div ~ div"] {
        let found = Compiled::parse(selector).unwrap().select(&page, &[root(&page)], Reach::Document);
        assert_eq!((found.hits.len(), found.exceeded), (0, false), "{selector}");
        assert!(found.steps < 20 * page.node_count() as u64, "{selector}: {} steps", found.steps);
    }
    // What is there is found without searching upwards from each.
    for (selector, hits) in
        [("body div div", 19_999), ("html > body > div div > div", 19_998), ("div ".repeat(20).trim(), 19_981)]
    {
        let found = Compiled::parse(selector).unwrap().select(&page, &[root(&page)], Reach::Subtree);
        assert_eq!((found.hits.len(), found.exceeded), (hits, false), "{selector}");
    }
}

#[test]
fn flat_trees_are_not_searched_backwards_from_each_element() {
    let page = page(&format!("<!DOCTYPE html><body><p></p>{}", "<i></i><b></b>".repeat(20_000)));
    for (selector, hits) in [
        ("zz ~ i", 0),
        ("p ~ i", 20_000),
        ("p ~ i + b", 20_000),
        ("p + i ~ b + i ~ b", 19_999),
        ("p + i", 1),
        ("p ~ i ~ b", 20_000),
        ("body > p ~ i", 20_000),
    ] {
        for reach in [Reach::Document, Reach::Subtree] {
            let found = Compiled::parse(selector).unwrap().select(&page, &[root(&page)], reach);
            assert_eq!((found.hits.len(), found.exceeded), (hits, false), "{selector}");
            assert!(found.steps < 20 * page.node_count() as u64, "{selector}: {} steps", found.steps);
        }
    }
    // Roots beside each other: what is outside of one does not count.
    let roots: Vec<Hit> = css(&page, "i, b");
    assert!(inner(&page, &roots, "i ~ b, i + b, zz b, p ~ i").is_empty());
}

#[test]
#[ignore = "measures; run in release with --nocapture"]
fn a_step_costs_less_than_500_nanoseconds() {
    let n = 50_000;
    let flat = format!("<!DOCTYPE html>{}", "<i></i>".repeat(n));
    let (flat_page, deep) = (page(&flat), chain(n, known::DIV));
    for (bytes, page, selector) in [
        (flat.len(), &flat_page, "zz ~ i"),
        (flat.len(), &flat_page, ":is(zz ~ i)"),
        (flat.len(), &flat_page, ":is(i ~ zz) ~ i"),
        (flat.len(), &flat_page, ":is(i ~ i):is(zz ~ i)"),
        (flat.len(), &flat_page, ":has(~ i zz)"),
        (flat.len(), &flat_page, ":has(~ zz)"),
        (flat.len(), &flat_page, "i:nth-last-child(odd)"),
        (flat.len(), &flat_page, ":nth-last-child(2 of :is(zz ~ i, i))"),
        (5 * n, &deep, "body div div"),
        (5 * n, &deep, "* * * * * * * * * * * * * * * * * * * *"),
        (5 * n, &deep, ":has(p)"),
        (5 * n, &deep, ":has(p b)"),
        (5 * n, &deep, ":not(zz div)"),
        (5 * n, &deep, ":lang(x)"),
        (5 * n, &deep, ":contains(x)"),
    ] {
        let compiled = Compiled::parse(selector).unwrap();
        let start = std::time::Instant::now();
        let found = compiled.select(page, &[NodeId::DOCUMENT], Reach::Document);
        let time = start.elapsed().as_secs_f64() * 1e9;
        let (by_byte, by_step) = (time / bytes as f64, time / found.steps as f64);
        println!(
            "{selector}: {by_byte:.1} ns a byte, {by_step:.1} ns a step, {} steps, {} hits, exceeded {}",
            found.steps,
            found.hits.len(),
            found.exceeded
        );
        assert!(by_step < 500.0, "a step of {selector} takes {by_step:.1} ns: it is not counted for what it costs");
    }
}

#[test]
fn a_long_list_of_attributes_is_paid_for_wherever_the_wanted_one_stands() {
    let many: String = (0..2_000).map(|n| format!("a{n} ")).collect();
    let page = page(&format!("<!DOCTYPE html><body><div {many} last>{}", "<i></i>".repeat(200)));
    let found = Compiled::parse("[last] i").unwrap().select(&page, &[root(&page)], Reach::Document);
    assert_eq!(found.hits.len(), 200);
    assert!(found.steps >= 4_000, "{} steps", found.steps);
}
