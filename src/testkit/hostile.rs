//! Pages made to cost a parser much for their size, each by another rule of the standard (WHATWG HTML 13.2).
//!
//! The rules themselves bound nothing: by them many of these grow with the square, in time or in nodes.

use std::ops::Range;

/// A way to make a page that costs much.
#[derive(Clone, Copy, Debug)]
pub struct Hostile {
    /// What the page is, in the form of its markup.
    pub name: &'static str,
    before: &'static str,
    /// What is repeated; `#` stands for the number of the time.
    repeated: &'static [&'static str],
    behind: &'static str,
}

impl Hostile {
    const fn of(name: &'static str, before: &'static str, repeated: &'static [&'static str], behind: &'static str) -> Self {
        Self { name, before, repeated, behind }
    }

    /// The page at about this length. Longer than `bytes` by less than 400.
    #[must_use]
    pub fn page(&self, bytes: usize) -> String {
        let mut page = String::with_capacity(bytes + 400);
        page.push_str(self.before);
        let share = bytes.saturating_sub(self.before.len() + self.behind.len()) / self.repeated.len().max(1);
        for part in self.repeated {
            let end = page.len() + share;
            // A part that begins with `!` counts down.
            let (part, is_down) = part.strip_prefix('!').map_or((*part, false), |part| (part, true));
            let most = share / part.len().max(1);
            let mut times: Range<usize> = 0..usize::MAX;
            while page.len() < end {
                let n = times.next().unwrap_or_default();
                let number = if is_down { most.saturating_sub(n) } else { n };
                if part.contains('#') {
                    page.push_str(&part.replace('#', &number.to_string()));
                } else {
                    page.push_str(part);
                }
            }
        }
        page.push_str(self.behind);
        page
    }
}

/// All ways.
pub const ALL: &[Hostile] = &[
    // Depth, and scopes asked for at depth (13.2.4.2).
    Hostile::of("<div> nested", "", &["<div>"], ""),
    Hostile::of("<div><p> nested", "", &["<div><p>text</p>"], ""),
    Hostile::of("<p><button>, <div> nested, <hr>", "<p><button>", &["<div>", "<hr>"], ""),
    Hostile::of("<form><button>, <div> nested, stray ends", "<form><button>", &["<div>", "</h1></li></dd></dt>"], ""),
    Hostile::of("<svg>, <g> nested, stray ends", "<svg>", &["<g>", "</x>"], ""),
    Hostile::of("<svg><foreignObject> nested, stray ends", "", &["<svg><foreignObject>", "</x>"], ""),
    Hostile::of("<span> nested, stray ends", "", &["<span>", "</i>"], ""),
    Hostile::of("<ul><li> nested", "", &["<ul><li>"], ""),
    Hostile::of("<dl><dd> nested", "", &["<dl><dd>", "<dt>"], ""),
    Hostile::of("<button> in depth", "", &["<div>", "<button>"], ""),
    Hostile::of("<option> in depth", "<select>", &["<div>", "<option>"], ""),
    Hostile::of("<ruby><rt> nested", "", &["<ruby><rt>"], ""),
    Hostile::of("<h1> in depth", "", &["<span>", "<h1>x</h2>"], ""),
    Hostile::of("</p> alone", "", &["</p>"], ""),
    Hostile::of("</p> in depth", "", &["<button><span>", "</p>"], ""),
    Hostile::of("<table> nested", "", &["<table><tr><td>"], ""),
    Hostile::of("<table> in depth, ends", "", &["<table><tr><td>", "</tr>"], ""),
    Hostile::of("<template> nested", "", &["<template>"], ""),
    Hostile::of("<template><tr> nested", "", &["<template><tr><td>"], ""),
    Hostile::of("<select><option> nested", "", &["<select><option>"], ""),
    Hostile::of("<frameset> nested", "", &["<frameset>"], ""),
    Hostile::of("<div><a href> nested", "", &["<div><a href>"], ""),
    Hostile::of("<div class=x> nested, <i>", "", &["<div class=x>", "<i class=y></i>"], ""),
    // Formatting elements (13.2.4.3, 13.2.6.1) and the adoption agency (13.2.6.4.7).
    Hostile::of("<b a=N>, then one <p>", "", &["<b a=#>"], "<p>"),
    Hostile::of("<p>, <b a=N>, many <p>", "<p>", &["<b a=#>", "<p>x"], ""),
    Hostile::of("<a><div> nested", "", &["<a><div>"], ""),
    Hostile::of("<b><p> nested, </b>", "", &["<b><p>", "</b>"], ""),
    Hostile::of("<b><i a=N> , <p>x</b> again", "<b>", &["<i a=#>", "<p>x</b>"], ""),
    Hostile::of("<nobr> again", "", &["<nobr a=#>"], ""),
    Hostile::of("<font size=N><div></font>", "", &["<font size=#><div></font>"], ""),
    Hostile::of("<applet><b> nested", "", &["<applet><b>"], ""),
    Hostile::of("two <b> with many attributes, one reversed", "<b", &[" a#=#"], "><b z=1>"),
    Hostile::of("<b> with 200 attributes again", "", &[B200], ""),
    // Foster parenting (13.2.6.1).
    Hostile::of("<table>, texts to be joined", "<table>", &["x&amp;<tr><td>&amp;"], ""),
    Hostile::of("<table><b>x", "<table>", &["<b>x"], ""),
    Hostile::of("<table>x<!---->", "<table>", &["x<!---->"], ""),
    Hostile::of("<table><a>", "<table>", &["<a>"], ""),
    Hostile::of("<table>, white space and comments", "<table>", &[" <!---->"], ""),
    // Attributes (13.2.5.33 and following; 13.2.6.4.7, start tags "html" and "body").
    Hostile::of("attributes of one tag", "<p", &[" a#=#"], ">"),
    Hostile::of("attributes without value", "<p", &[" #"], ">"),
    Hostile::of("the same attribute again", "<p", &[" a"], ">"),
    Hostile::of("<body> with another attribute", "<body>", &["<body a#>"], ""),
    Hostile::of("<html> with another attribute, <p>", "", &["<html a#><p>"], ""),
    Hostile::of("one long attribute", "<p a=\"", &["abcdefgh"], "\">"),
    Hostile::of("attribute without end", "<a href=\"", &["<p>"], ""),
    // Names.
    Hostile::of("names of elements", "", &["<z#></z>"], ""),
    Hostile::of("tags with new attributes", "", &["<p a# b# c# d# e# f# g# h#>"], ""),
    Hostile::of("long names that differ in the middle", "", &["<abcdefgh-#-abcdefgh>"], ""),
    // Texts, references and what looks like markup (13.2.5).
    Hostile::of("<", "", &["<"], ""),
    Hostile::of("&", "", &["&"], ""),
    Hostile::of("&amp;", "", &["&amp;"], ""),
    Hostile::of("&amp; in a value", "<p a='", &["&amp;"], "'>"),
    Hostile::of("long references without end", "", &["&CounterClockwiseContourIntegra"], ""),
    Hostile::of("&#x41;", "", &["&#x41;"], ""),
    Hostile::of("&#1111111111", "&#", &["1111"], ""),
    Hostile::of("NUL", "", &["\0"], ""),
    Hostile::of("NUL in a name", "<p", &["\0"], ">"),
    Hostile::of("upper-case name", "<P", &["ABCD"], ">"),
    Hostile::of("CR", "", &["a\r"], ""),
    Hostile::of("<!--", "", &["<!--"], ""),
    Hostile::of("<!-- --!", "<!--", &["--!"], ""),
    Hostile::of("<!>", "", &["<!>"], ""),
    Hostile::of("<?a b>", "", &["<?a b>"], ""),
    Hostile::of("<!DOCTYPE>", "", &["<!DOCTYPE>"], ""),
    Hostile::of("CDATA without end", "<svg><![CDATA[", &["]]"], ""),
    Hostile::of("CDATA again", "<svg>", &["<![CDATA[]]>"], ""),
    Hostile::of("script, escaped", "<script>", &["<!--<script>"], ""),
    Hostile::of("script, ends that are none", "<script>", &["</scrip"], ""),
    Hostile::of("<title>, ends that are none", "<title>", &["</titl&"], ""),
    Hostile::of("<textarea> again", "", &["<textarea></textarea>"], ""),
    // Many nodes.
    Hostile::of("<li> without end", "", &["<li>"], ""),
    Hostile::of("<p> without end", "", &["<p>"], ""),
    Hostile::of("<br>", "", &["<br>"], ""),
    Hostile::of("x<b>", "", &["x<b></b>"], ""),
    Hostile::of("<a>", "", &["<a>"], ""),
    Hostile::of("<td> in rows", "<table>", &["<tr><td>"], ""),
    Hostile::of("<col>", "<table>", &["<col>"], ""),
];

/// Selectors that ask much of a page: ancestors, siblings or descendants of each element.
pub const SELECTORS: &[&str] = &[
    "article a[href]",
    "div div div div > x",
    "* * * * * *",
    "* ~ * ~ * ~ x",
    "* + * ~ * * > x",
    ":nth-child(2n+1)",
    ":nth-last-child(7)",
    ":nth-last-of-type(3n+2)",
    ":nth-child(2n+1 of b, p, div, li, br)",
    ":has(x)",
    ":has(~ x)",
    "div:has(div + x)",
    ":not(:has(:not(:is(x))) > *)",
    ":is(div, p, b, li) :is(div, p, b, li) :is(a, i) ::text",
    "[class~=x], [a*='1'], [a$='9'], .x, #x",
    ":empty, :only-child, :root > *",
];

/// XPath expressions that ask much of a page: by the standard many grow with the square or the cube of its nodes.
pub const EXPRESSIONS: &[&str] = &[
    "//*[preceding-sibling::*[7]]",
    "//*[count(preceding::*) > 3]",
    "//*[count(following::*) > 3]",
    "//*[ancestor::*[.//x]]",
    "//*//*//*//*",
    "//*/ancestor::*/descendant::*",
    "//*[. = //x]",
    "//*[contains(., 'zz')]",
    "//text()[string-length(normalize-space(concat(., ..))) > 1000000]",
    "//*[last()]/following::*[last()]",
    "count(//*/following-sibling::*)",
    "//*[not(preceding::x = following::*)]",
    "sum(//*/preceding-sibling::node()/@*)",
    "string(//*[position() = last()]/..)",
    "//*[re:test(., '(a|b)*c')]",
    "//@* | //text() | //* | //comment()",
];

/// A tag with many attributes: sets of them are compared (13.2.4.3, "Noah's Ark clause").
const B200: &str = concat!(
    "<b a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6 d7 ",
    "d8 d9 e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 g0 g1 g2 g3 g4 g5 g6 g7 g8 g9 h0 h1 h2 h3 h4 h5 h6 ",
    "h7 h8 h9 i=#>"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_as_long_as_wanted() {
        for hostile in ALL {
            for bytes in [1_000, 50_000] {
                let page = hostile.page(bytes);
                assert!((bytes - 10..bytes + 400).contains(&page.len()), "{}: {}", hostile.name, page.len());
                assert!(page.starts_with(hostile.before) && page.ends_with(hostile.behind), "{}", hostile.name);
            }
        }
    }
}
