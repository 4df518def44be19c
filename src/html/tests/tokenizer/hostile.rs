//! Pages made to be slow: the work grows with the page, never faster.

use super::{Arena, Bytes, Content, DoctypeToken, Limits, NameId, Sink, Span, Tag, known};
use crate::html::tokenizer::{self, find};

/// A sink that keeps nothing but counts.
struct Counter {
    arena: Arena,
    cdata: bool,
    calls: usize,
    attributes: usize,
}

impl Sink for Counter {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }
    fn start_tag(&mut self, tag: Tag) -> Content {
        self.calls += 1;
        self.attributes += self.arena.attrs_in(tag.attrs).count();
        match tag.name {
            known::TITLE => Content::Rcdata,
            known::STYLE => Content::Rawtext,
            known::SCRIPT => Content::Script,
            _ => Content::Data,
        }
    }
    fn end_tag(&mut self, _name: NameId) {
        self.calls += 1;
    }
    fn text(&mut self, _text: Span) {
        self.calls += 1;
    }
    fn null(&mut self) {
        self.calls += 1;
    }
    fn comment(&mut self, _text: Span) {
        self.calls += 1;
    }
    fn processing_instruction(&mut self, _target: NameId, _data: Span) {
        self.calls += 1;
    }
    fn doctype(&mut self, _doctype: DoctypeToken) {
        self.calls += 1;
    }
    fn allows_cdata(&self) -> bool {
        self.cdata
    }
    fn is_over(&self) -> bool {
        false
    }
    fn limits(&self) -> Limits {
        Limits::NONE
    }
}

/// Reads a page and checks what it costs: bytes looked at, calls, and bytes written beside the source.
fn read(page: &str, cdata: bool) -> Counter {
    let mut counter = Counter { arena: Arena::new(Bytes::copy_from_slice(page.as_bytes())), cdata, calls: 0, attributes: 0 };
    find::looked_at();
    tokenizer::run(&mut counter, Content::Data, None);
    let looked_at = find::looked_at();
    let shown: String = page.chars().take(40).collect();
    let len = page.len();
    assert!(looked_at <= 3 * len + 100, "{shown:?}: looked at {looked_at} bytes of {len}");
    assert!(counter.calls <= len + 10, "{shown:?}: {} calls for {len} bytes", counter.calls);
    assert!(counter.arena.side.len() <= 3 * len, "{shown:?}: {} bytes aside for {len}", counter.arena.side.len());
    counter
}

#[test]
fn a_flood_costs_as_much_as_it_is_long() {
    for (piece, times) in [
        ("<", 1_000_000),
        ("&", 500_000),
        ("</", 200_000),
        ("<!", 200_000),
        ("<?", 200_000),
        ("<?a ", 100_000),
        ("<?a$", 100_000),
        ("<?xml", 100_000),
        ("<!-", 100_000),
        ("<!--", 100_000),
        ("<!-->", 100_000),
        ("<!--x", 100_000),
        ("--", 200_000),
        ("<!DOCTYPE", 100_000),
        ("<!DOCTYPE ", 100_000),
        ("<!DOCTYPE>", 100_000),
        ("<!DOCTYPE a PUBLIC \"", 50_000),
        ("<![CDATA[", 100_000),
        ("<![CDATA[]]", 100_000),
        ("<![CDATA[]]>", 100_000),
        ("]]", 100_000),
        ("<a ", 100_000),
        ("<a b=\"", 100_000),
        ("<a b='&", 100_000),
        ("<a b=\"&\" c='", 50_000),
        ("<a b=&", 100_000),
        ("<a/", 100_000),
        ("<a =", 100_000),
        ("</a b=\"", 100_000),
        ("</a>", 100_000),
        ("\0", 300_000),
        ("<\0", 200_000),
        ("<a\0", 100_000),
        ("<A>", 100_000),
        ("&#", 200_000),
        ("&#x", 200_000),
        ("&#0", 200_000),
        ("&#1111111111", 50_000),
        ("&amp", 100_000),
        ("&nGt;", 100_000),
        ("&CounterClockwiseContourIntegra", 30_000),
        ("&not<", 100_000),
        ("<title>", 50_000),
        ("<title>&</title>", 50_000),
        ("<title></titl", 50_000),
        ("<style></style", 50_000),
        ("<script></script", 50_000),
        ("<script><!--<script></script>", 50_000),
        ("<script><!--", 50_000),
        ("<script>--></script>", 50_000),
    ] {
        for start in
            ["", "<title>", "<style>", "<script>", "<script><!--", "<script><!--<script>", "<a b=\"", "<!--", "<![CDATA["]
        {
            for times in [times / 100, times / 20] {
                read(&format!("{start}{}", piece.repeat(times)), true);
            }
        }
        read(&piece.repeat(times), false);
    }
}

#[test]
fn one_long_piece_is_read_once() {
    let long = "x".repeat(4_000_000);
    for page in [
        format!("<a b=\"{long}\">"),
        format!("<a b=\"{long}"),
        format!("<a b={long}>"),
        format!("<a b=\"{long}&amp;{long}\">"),
        format!("<{long}>"),
        format!("<a {long}>"),
        format!("<a {}>", long.to_uppercase()),
        format!("<?{long} {long}>"),
        format!("<!DOCTYPE {long} PUBLIC '{long}'>"),
        format!("&#{};", "1".repeat(4_000_000)),
        format!("<!--{long}-->"),
        format!("{long}&lt;{long}"),
    ] {
        read(&page, false);
    }
}

#[test]
fn many_attributes_of_one_tag_are_told_apart_by_their_stamps() {
    let distinct: String = (0..20_000).map(|n| format!(" a{n}=1")).collect();
    let counter = read(&format!("<a{distinct}><b{distinct}{distinct}>"), false);
    assert_eq!(counter.attributes, 40_000);
    let counter = read(&format!("<a{}>", " a=1".repeat(20_000)), false);
    assert_eq!(counter.attributes, 1);
    // The names of many tags come again in each, and each tag has its own.
    let counter = read(&"<a a b a>".repeat(20_000), false);
    assert_eq!(counter.attributes, 40_000);
}

#[test]
fn names_in_upper_case_are_kept_aside_once() {
    let mut counter = read(&"<DIV CLASS=a><UNKNOWN-ELEMENT>".repeat(1_000), false);
    assert_eq!(counter.arena().side, b"unknown-element");
}
