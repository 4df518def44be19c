//! Expressions and pages made to cost much: bounds as step counts, never as time.

use super::*;
use crate::html::xpath::Options;

fn cost(document: &Document, xpath: &str) -> (Result<Value, XPathError>, u64) {
    cost_within(document, xpath, Options::default())
}

fn cost_within(document: &Document, xpath: &str, options: Options) -> (Result<Value, XPathError>, u64) {
    Compiled::parse(xpath).unwrap().evaluate_within(document, top(document), &Variables::NONE, options)
}

/// Runs on a small stack: what recurses without bound ends the process.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 * 1024).spawn(work).unwrap().join().unwrap();
}

fn nested(nodes: usize) -> Document {
    page(&"<div><a href=x>t</a>".repeat(nodes / 3))
}

fn flat(nodes: usize) -> Document {
    page(&format!("<ul>{}</ul>", "<li class=c>t</li>".repeat(nodes / 2)))
}

#[test]
fn nesting_of_the_expression_is_bounded_and_needs_little_stack() {
    on_a_small_stack(|| {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("not(", "1", ")"),
            ("a[", "1", "]"),
            ("b[.//", "c", "]"),
            ("string(concat('a',", "'b'", "))"),
            ("1 or 1 and 1 = 1 < 1 + 1 * (", "1", ")"),
            ("-(", "1", ")"),
            ("a | (", "b", ")"),
            ("(a)[", "1", "]"),
            ("re:test('a', concat('b', ", "'c'", "))"),
        ] {
            let deep = format!("{}{middle}{}", open.repeat(2_000), close.repeat(2_000));
            let error = Compiled::parse(&deep).unwrap_err();
            assert!(matches!(error, XPathError::Depth { .. }), "{open}: {error}");
            assert!(error.to_string().len() < 400 && error.to_string().contains(open), "quotes the place: {error}");
            // The deepest that is allowed is evaluated too.
            let document = page("<a><b>x</b></a>");
            let most =
                (1..100).rev().find_map(|n| Compiled::parse(&format!("{}{middle}{}", open.repeat(n), close.repeat(n))).ok());
            let _ = most.unwrap().evaluate(&document, top(&document), &Variables::NONE);
        }
        let brackets = "(".repeat(10_000);
        assert!(matches!(Compiled::parse(&brackets), Err(XPathError::Depth { .. })));
        assert!(matches!(Compiled::parse(&"[".repeat(10_000)), Err(XPathError::Syntax { .. })));
    });
}

#[test]
fn a_long_expression_is_not_a_deep_one() {
    on_a_small_stack(|| {
        let document = page("<p>x");
        for (part, by) in [("1", "+"), ("1", " or "), ("//p", "|"), ("a", "/"), ("a", "//"), ("1", "="), ("..", "/")] {
            let text = vec![part; 5_000].join(by);
            let _ = Compiled::parse(&text).unwrap().evaluate(&document, top(&document), &Variables::NONE);
        }
        let signs = format!("{}1", "-".repeat(10_001));
        assert_eq!(evaluate(&document, &signs), Ok(Value::Number(-1.0)));
        let predicates = format!("//p{}", "[1]".repeat(5_000));
        assert_eq!(names(&document, &evaluate(&document, &predicates).unwrap()), ["p"]);
        let sum = vec!["1"; 20_000].join("+");
        assert_eq!(evaluate(&document, &sum), Ok(Value::Number(20_000.0)));
        assert!(matches!(evaluate(&document, &"1+".repeat(40_000)), Err(XPathError::Length { .. })));
    });
}

#[test]
fn steps_that_meet_the_same_nodes_again_visit_them_once() {
    for document in [nested(10_000), flat(10_000)] {
        let nodes = document.node_count() as u64;
        for (xpath, most) in [
            ("//*//*//*//*[count(//*) > 1]", 30),
            ("//a[//b[//c]]", 10),
            ("//*/ancestor::*", 10),
            ("//*/ancestor-or-self::node()/ancestor::*/..", 20),
            ("//*/following-sibling::*", 10),
            ("//*/preceding-sibling::*/preceding-sibling::*", 20),
            ("//*/following::*", 15),
            ("//*/preceding::*", 10),
            ("//*/preceding::*/following::*/preceding::node()/ancestor::node()/descendant::*", 40),
            ("//node()//node()//node()//node()//node()", 30),
            ("//*/descendant-or-self::*/descendant::*", 20),
            ("//*[//*[//*[//*]]]", 15),
            ("//*[count(//a) = count(//*)]", 15),
            ("count(//*[. = '']) + count(//@*)", 100),
            ("count(//*[contains(., 'xyz')])", 60),
            (&vec!["//*"; 50].join("|"), 110),
        ] {
            let options = Options { steps: most * nodes, ..Options::default() };
            let (result, steps) = cost_within(&document, xpath, options);
            assert!(result.is_ok(), "{xpath}: {result:?}, {steps}");
            assert!(steps <= most * nodes, "{xpath}: {} a node", steps / nodes);
        }
    }
}

#[test]
fn what_must_look_at_pairs_of_nodes_ends_in_an_error() {
    let document = flat(20_000);
    for xpath in [
        "//*[count(preceding::*) = 5]",
        "//li[preceding-sibling::li[last()] = 'u']",
        "//li[following::li[. = 'u']]",
        "//*/preceding-sibling::*[position() mod 2 = 1]",
        "//*[count(.//*[count(preceding::*) > 3]) > 2]",
    ] {
        let (result, steps) = cost(&document, xpath);
        let most = Options::default().steps_for(&document);
        assert_eq!((result, steps), (Err(XPathError::Budget { steps: most }), most), "{xpath}");
    }
}

#[test]
fn long_predicates_on_many_nodes_are_counted_too() {
    let document = flat(10_000);
    for predicate in [
        vec!["false()"; 5_000].join(" or "),
        vec!["'a' != 'b'"; 3_500].join(" and "),
        vec!["1"; 15_000].join(" + "),
        format!("concat({}) = 'b'", vec!["'a'"; 10_000].join(",")),
        format!("@class{}", "][@class".repeat(5_000)),
        format!("translate('a', '{}', '') = 'b'", "b".repeat(60_000)),
        format!("has-class({})", vec!["'c'"; 10_000].join(",")),
    ] {
        let (result, _) = cost(&document, &format!("//*[{predicate}]"));
        assert!(matches!(result, Err(XPathError::Budget { .. })), "{}", &predicate[..30]);
    }
}

#[test]
fn positions_that_are_near_are_found_without_looking_further() {
    let document = flat(20_000);
    let nodes = document.node_count() as u64;
    for xpath in [
        "//li[preceding-sibling::li[1] = 't']",
        "//li[following-sibling::*[2]]",
        "//li[following::li[1]]",
        "//li[preceding::node()[3]]",
        "(//li)[7]",
        "//li[1]",
        "//li[ancestor::*[1]]",
    ] {
        let (result, steps) = cost(&document, xpath);
        assert!(result.is_ok(), "{xpath}: {result:?}");
        assert!(steps <= 15 * nodes, "{xpath}: {} a node", steps / nodes);
    }
}

#[test]
fn a_budget_is_met_exactly_and_can_be_set() {
    let document = flat(1_000);
    let compiled = Compiled::parse("//li").unwrap();
    let tight = Options { steps_per_byte: 0, steps: 500, ..Options::default() };
    let (result, steps) = compiled.evaluate_within(&document, top(&document), &Variables::NONE, tight);
    assert_eq!((result, steps), (Err(XPathError::Budget { steps: 500 }), 500));
    let one = Options { steps_per_byte: 2, steps: 0, ..Options::default() };
    assert!(compiled.evaluate_within(&document, top(&document), &Variables::NONE, one).0.is_ok());
}

#[test]
fn strings_do_not_grow_without_bound() {
    let document = page(&format!("<p>{}", "x".repeat(1 << 20)));
    let many = format!("concat({})", vec!["string(/)"; 17].join(", "));
    let (result, _) = cost(&document, &many);
    assert_eq!(result, Err(XPathError::StringLength { most: 16 << 20 }));
    // Built again and again, it is the steps that end it.
    let doubled = (0..9).fold("string(/)".to_owned(), |inner, _| format!("substring(concat({inner}, {inner}), 2)"));
    let tight = Options { steps_per_byte: 0, steps: 1_000_000, ..Options::default() };
    assert!(matches!(cost_within(&document, &doubled, tight).0, Err(XPathError::Budget { .. })));
    let (result, _) = cost(&document, &format!("re:replace(/, 'x{{1024}}', 'g', '{}')", "x".repeat(20 * 1024)));
    assert_eq!(result, Err(XPathError::StringLength { most: 16 << 20 }));
    assert!(cost(&document, "string-length(translate(/, 'x', '😀')) = 1048576").0 == Ok(Value::Boolean(true)));
}

#[test]
fn a_deep_page_needs_no_deep_stack() {
    on_a_small_stack(|| {
        // Built without a parser, which would bound the depth.
        let mut document = page("<body>");
        let mut parent = document.body().unwrap().id;
        for _ in 0..100_000 {
            let id = document.arena.new_element(
                crate::html::names::known::DIV,
                crate::html::Namespace::Html,
                crate::html::arena::AttrList::EMPTY,
            );
            document.arena.append(parent, id);
            parent = id;
        }
        for xpath in
            ["count(//div)", "count(//div/ancestor::*)", "string(/)", "count(//*//*/..)", "count(//div[last()]/following::*)"]
        {
            assert!(matches!(cost(&document, xpath).0, Ok(Value::Number(_) | Value::String(_))), "{xpath}");
        }
    });
}

/// What one step does must not grow with the page: long texts, long lists, tables and matches are counted.
#[test]
fn a_step_is_never_much_work() {
    let long = "x".repeat(4_096);
    let texts = page(&"<p>".repeat(200).replace("<p>", &format!("<p a={long}>{long}</p>")));
    let words = page(&format!("<p>{}</p>", "ab ".repeat(2_000)));
    let attributes = page(&format!("<p {}>", (0..2_000).map(|n| format!("a{n} ")).collect::<String>()));
    for (document, xpath, least) in [
        // 200 times 200 texts of 4 KiB are the same: eight bytes a step.
        (&texts, "count(//p[not(. != //p)])", 200 * 200 * 4_096 / 8),
        (&texts, "count(//p[not(@a != //@a)])", 200 * 200 * 4_096 / 8),
        (&texts, "count(//p[@a = 'y' or count(//p[@a = concat(string(//@a), '')]) = 200])", 200 * 4_096 / 8),
        (&texts, "count(//p[. < //p])", 200 * 200 * 4_096 / 8),
        (&words, "count(re:match(/, '[a-z]', 'g'))", 4_000 * 20),
        (&words, "string-length(re:replace(/, '[a-z]', 'g', 'x'))", 4_000 * 20),
        (&words, "string-length(translate(/, 'abcdefgh', 'ABCDEFGH'))", 6_000 / 2),
        (&attributes, "sum(//p/@*)", 2_000 * 2_000 / 8),
        (&attributes, "count(set:distinct(//p/@*))", 2_000 * 12),
        (&attributes, "count(set:intersection(//p/@*, //p/@*))", 2 * 2_000 * 12),
    ] {
        let (result, steps) = cost_within(document, xpath, Options { steps: u64::MAX / 2, ..Options::default() });
        assert!(result.is_ok() && steps >= least, "{xpath}: {steps} steps, {result:?}");
    }
}
