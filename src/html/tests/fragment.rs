//! Fragments: the cases of the public suite, and what it does not look at.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use html5ever::tendril::TendrilSink as _;
use html5ever::{LocalName, QualName, ns};
use scraper::Html;
use serde_json::Value;

use super::oracle;
use crate::html::from_scraper::from_scraper;
use crate::html::{Document, FragmentContext, Limits, Namespace, ParseOptions, QuirksMode};

const CASES: &str = include_str!("../../../tests/data/html_fragments.json");

fn context_of(text: &str) -> FragmentContext {
    match text.split_once(' ') {
        Some(("svg", name)) => FragmentContext::foreign(Namespace::Svg, name),
        Some(("math", name)) => FragmentContext::foreign(Namespace::MathMl, name),
        _ => FragmentContext::html(text),
    }
}

/// The lines of the fragment's nodes.
fn dump(fragment: &Document) -> String {
    let dump = fragment.dump();
    let inner = dump.strip_prefix("<html>\n").expect("the root holds the fragment");
    inner.split_inclusive('\n').map(|line| line.strip_prefix("  ").unwrap_or(line)).collect()
}

fn parse(context: &FragmentContext, text: &str) -> String {
    dump(&Document::fragment(text, context, &ParseOptions::default()))
}

/// `<html class=x>` in a fragment gives the root an attribute, which is no part of the fragment.
fn without_attributes_of_root(dump: &str) -> String {
    let mut lines = dump.split_inclusive('\n');
    let root: String = lines.by_ref().take(1).collect();
    root + &lines.skip_while(|line| !line.trim_start().starts_with(['<', '"'])).collect::<String>()
}

#[test]
fn the_cases_of_the_public_suite_give_their_trees() {
    let all: Value = serde_json::from_str(CASES).unwrap();
    let cases = all["cases"].as_array().unwrap();
    assert_eq!(cases.len() as u64, all["count"].as_u64().unwrap());
    let mut failures = Vec::new();
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let fragment =
            Document::fragment(text("data"), &context_of(text("context")), &ParseOptions::default().limits(Limits::NONE));
        let mut expected = "<html>\n".to_owned();
        for line in case["tree"].as_array().unwrap() {
            expected.push_str("  ");
            expected.push_str(line.as_str().unwrap());
            expected.push('\n');
        }
        let found = without_attributes_of_root(&fragment.dump());
        if found != expected {
            failures.push(format!("{} in {}: {:?}\n{found}expected\n{expected}", text("id"), text("context"), text("data")));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn what_a_text_means_depends_on_its_context() {
    for (context, text, expected) in [
        ("body", "<td>a", "\"a\"\n"),
        ("tr", "<td>a", "<td>\n  \"a\"\n"),
        ("p", "<p>a<li>b", "<p>\n  \"a\"\n<li>\n  \"b\"\n"),
        ("template", "<tr><td>a", "<tr>\n  <td>\n    \"a\"\n"),
        ("title", "a<b>&amp;</title>", "\"a<b>&</title>\"\n"),
        ("textarea", "\n<b>", "\"\n<b>\"\n"),
        ("style", "<b>&amp;</style>", "\"<b>&amp;</style>\"\n"),
        ("script", "<!--<script></script>", "\"<!--<script></script>\"\n"),
        ("plaintext", "a</plaintext><b>", "\"a</plaintext><b>\"\n"),
        ("noscript", "<b>a", "<b>\n  \"a\"\n"),
        ("select", "<select><b>x", "<b>\n  \"x\"\n"),
        ("frameset", "a<frame>", "<frame>\n"),
        ("html", "<title>t</title>a", "<head>\n  <title>\n    \"t\"\n<body>\n  \"a\"\n"),
        ("svg svg", "<lineargradient>", "<svg linearGradient>\n"),
        ("svg foreignObject", "<lineargradient>", "<lineargradient>\n"),
        ("math math", "<![CDATA[a<b]]>", "\"a<b\"\n"),
        ("body", "<![CDATA[a]]>", "<!-- [CDATA[a]] -->\n"),
        ("math mi", "<mglyph><p>", "<math mglyph>\n<p>\n"),
    ] {
        assert_eq!(parse(&context_of(context), text), expected, "{text} in {context}");
    }
}

#[test]
fn scripting_makes_a_noscript_text() {
    let options = ParseOptions::default().scripting(true);
    let fragment = Document::fragment("<b>a", &FragmentContext::html("noscript"), &options);
    assert_eq!(dump(&fragment), "\"<b>a\"\n");
}

#[test]
fn an_annotation_with_an_encoding_holds_html() {
    let annotation = FragmentContext::foreign(Namespace::MathMl, "annotation-xml");
    assert_eq!(parse(&annotation, "<g>a"), "<math g>\n  \"a\"\n");
    assert_eq!(parse(&annotation, "<svg><g>"), "<svg svg>\n  <svg g>\n");
    assert_eq!(parse(&annotation.clone().attribute("encoding", "Text/HTML"), "<g>a"), "<g>\n  \"a\"\n");
    assert_eq!(parse(&annotation.attribute("encoding", "text/plain"), "<g>a"), "<math g>\n  \"a\"\n");
}

#[test]
fn a_form_in_a_form_is_left_out() {
    assert_eq!(parse(&FragmentContext::html("div"), "<form>a</form>b"), "<form>\n  \"a\"\n\"b\"\n");
    for context in [FragmentContext::html("form"), FragmentContext::html("div").in_form()] {
        assert_eq!(parse(&context, "<form>a</form>b"), "\"ab\"\n");
        assert_eq!(parse(&context, "a</form><form>b"), "\"a\"\n<form>\n  \"b\"\n");
        // Foreign content hands the end tag on to the mode.
        let expected = "<svg svg>\n  <svg desc>\n    <form>\n      \"b\"\n";
        assert_eq!(parse(&context, "<svg></form><desc><form>b"), expected);
    }
}

#[test]
fn the_mode_of_the_page_counts() {
    let context = FragmentContext::default();
    assert_eq!(parse(&context, "<p><table>"), "<p>\n<table>\n");
    let quirks = context.quirks_mode(QuirksMode::Quirks);
    assert_eq!(parse(&quirks, "<p><table>"), "<p>\n  <table>\n");
    assert_eq!(Document::fragment("", &quirks, &ParseOptions::default()).quirks_mode(), QuirksMode::Quirks);
}

#[test]
fn tables_nest_in_fragments_as_in_pages() {
    // A cell's content is no cell itself; stray parts of tables are dropped.
    assert_eq!(parse(&FragmentContext::html("td"), "a</td><td>b"), "\"ab\"\n");
    assert_eq!(parse(&FragmentContext::html("table"), "x<tr>y<td>z"), "\"x\"\n<tbody>\n  <tr>\n    <td>\n      \"z\"\n\"y\"\n");
    assert_eq!(parse(&FragmentContext::html("colgroup"), "<col>a<b>"), "<col>\n");
}

#[test]
fn a_name_of_html_is_the_same_in_any_letter_case() {
    assert_eq!(parse(&FragmentContext::html("TR"), "<td>a"), "<td>\n  \"a\"\n");
}

/// Contexts that html5ever treats as the standard says: it lets an `input` into a `select`, and it is not told of a `form`.
const CONTEXTS: [&str; 30] = [
    "body",
    "div",
    "table",
    "caption",
    "colgroup",
    "tbody",
    "thead",
    "tr",
    "td",
    "th",
    "template",
    "html",
    "head",
    "frameset",
    "option",
    "button",
    "title",
    "textarea",
    "style",
    "script",
    "iframe",
    "noscript",
    "plaintext",
    "svg svg",
    "svg title",
    "svg desc",
    "svg foreignObject",
    "math math",
    "math mi",
    "math annotation-xml",
];

const TAGS: [&str; 62] = [
    "table",
    "tbody",
    "thead",
    "tfoot",
    "tr",
    "td",
    "th",
    "caption",
    "col",
    "colgroup",
    "template",
    "select",
    "option",
    "optgroup",
    "svg",
    "math",
    "mi",
    "mo",
    "annotation-xml",
    "foreignObject",
    "desc",
    "title",
    "g",
    "frameset",
    "frame",
    "html",
    "head",
    "body",
    "body class=x",
    "b",
    "a",
    "i",
    "p",
    "div",
    "nobr",
    "button",
    "form",
    "input",
    "input type=hidden",
    "style",
    "script",
    "noscript",
    "textarea",
    "hr",
    "br",
    "li",
    "ul",
    "dd",
    "font",
    "font color=x",
    "mglyph",
    "malignmark",
    "svg viewbox=1 xlink:href=2",
    "math definitionurl=3",
    "meta",
    "noframes",
    "h1",
    "ruby",
    "rt",
    "object",
    "plaintext",
    "image",
];

const TEXTS: [&str; 8] = ["x", " ", "a b", "\n", "&amp;y", "<!--c-->", "<![CDATA[d]]>", "<!DOCTYPE x>"];

/// Pseudo-random numbers: the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn soup(&mut self) -> String {
        let near = self.below(TAGS.len());
        let pieces = (0..self.below(24) + 1).map(|_| {
            // Tags of a kind belong together.
            let tag = if self.below(3) == 0 { (near + self.below(6)) % TAGS.len() } else { self.below(TAGS.len()) };
            let tag = TAGS[tag];
            match self.below(16) {
                0..8 => format!("<{tag}>"),
                8 => format!("<{tag}/>"),
                9..12 => format!("</{}>", tag.split(' ').next().unwrap()),
                _ => TEXTS[self.below(TEXTS.len())].to_owned(),
            }
        });
        pieces.collect()
    }
}

fn dump_of_html5ever(context: &str, text: &str) -> String {
    let (namespace, name) = match context.split_once(' ') {
        Some(("svg", name)) => (ns!(svg), name),
        Some((_, name)) => (ns!(mathml), name),
        None => (ns!(html), context),
    };
    let (sink, options) = (oracle::Sink::new(Html::new_fragment()), oracle::options());
    let name = QualName::new(None, namespace, LocalName::from(name));
    let html = html5ever::parse_fragment(sink, options, name, Vec::new(), false).one(text);
    from_scraper(&html).document.dump()
}

#[test]
fn fragments_of_soup_are_those_of_html5ever() {
    let mut options = ParseOptions::default().limits(Limits::NONE);
    options.as_html5ever = true;
    let mut dice = Dice(0x5e_ed0f_d4a6);
    for _ in 0..6_000 {
        let text = dice.soup();
        let context = CONTEXTS[dice.below(CONTEXTS.len())];
        let ours = Document::fragment(&text, &context_of(context), &options).dump();
        assert_eq!(ours, dump_of_html5ever(context, &text), "{text:?} in {context}");
    }
}
