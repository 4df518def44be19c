//! Pages to measure a parser with: made up, the same for the same kind and size, shaped like what a crawler meets.
//!
//! They hold what costs a parser time: references, comments, inline scripts, letters outside of ASCII, misnested `b` and
//! `i`, end tags left out, inline SVG, lazy images, `data-*` attributes, tables. They are no truth to check answers against.

use std::fmt::Write as _;

/// A kind of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageKind {
    /// A list of a shop: cards with lazy images, inline SVG and `data-*` attributes.
    Shop,
    /// An article: long paragraphs, little markup, `li` without end tags.
    News,
    /// A thread of a forum: quotes, signatures, many references in links.
    Forum,
    /// An article of an encyclopedia: a link every few words, notes, a table of facts.
    Encyclopedia,
    /// A product with related links and then filling, as a benchmark's site serves it.
    Bench,
    /// One table.
    Table,
}

impl PageKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Shop, Self::News, Self::Forum, Self::Encyclopedia, Self::Bench, Self::Table];

    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::News => "news",
            Self::Forum => "forum",
            Self::Encyclopedia => "encyclopedia",
            Self::Bench => "bench",
            Self::Table => "table",
        }
    }

    /// A page of this kind: of so many bytes, but for its last part (less than 1,500 more) and at least its frame.
    #[must_use]
    pub fn page(self, bytes: usize) -> String {
        let mut page = Writer { out: String::with_capacity(bytes + 2_000), state: self as u64 + 1 };
        match self {
            Self::Shop => shop(&mut page, bytes),
            Self::News => news(&mut page, bytes),
            Self::Forum => forum(&mut page, bytes),
            Self::Encyclopedia => encyclopedia(&mut page, bytes),
            Self::Bench => bench(&mut page, bytes),
            Self::Table => table(&mut page, bytes),
        }
        page.out
    }
}

const WORDS: &[&str] = &[
    "harbour",
    "lamp",
    "ferry",
    "winter",
    "the",
    "of",
    "and",
    "with",
    "a",
    "granite",
    "paper",
    "signal",
    "over",
    "tide",
    "orchard",
    "café",
    "slow",
    "bright",
    "kettle",
    "Zürich",
    "map",
    "early",
    "northern",
    "copper",
    "naïve",
    "bridge",
    "from",
    "market",
    "linen",
    "piñata",
    "quiet",
    "station",
    "to",
    "in",
    "green",
    "wheel",
    "façade",
    "letter",
    "stone",
    "under",
    "garden",
    "Łódź",
    "notebook",
    "river",
    "small",
    "window",
    "smörgås",
    "engine",
    "salt",
    "evening",
];
const REFERENCES: &[&str] = &["&amp;", "&nbsp;", "&mdash;", "&#8217;", "&hellip;", "&quot;", "&eacute;", "&#x2014;"];

struct Writer {
    out: String,
    state: u64,
}

impl Writer {
    /// A number below `most`, by a linear congruential generator.
    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % most.max(1)
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }

    fn word(&mut self) -> &'static str {
        self.pick(WORDS)
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// So many words, every ninth or so a reference.
    fn words(&mut self, count: usize) {
        for n in 0..count {
            if n > 0 {
                self.out.push(' ');
            }
            let word = if n > 0 && self.below(9) == 0 { self.pick(REFERENCES) } else { self.word() };
            self.out.push_str(word);
        }
    }

    /// Words as they stand in a path.
    fn slug(&mut self) {
        for n in 0..3 {
            if n > 0 {
                self.out.push('-');
            }
            let word = self.word();
            self.out.extend(word.chars().filter(char::is_ascii_alphanumeric));
        }
    }

    fn number(&mut self, most: usize) {
        let number = self.below(most);
        let _ = write!(self.out, "{number}");
    }

    fn is_shorter_than(&self, bytes: usize) -> bool {
        self.out.len() < bytes
    }
}

fn head(page: &mut Writer, lang: &str, style: &str) {
    let _ = write!(page.out, "<!DOCTYPE html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
    page.words(4);
    page.put("</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.put("<link rel=\"canonical\" href=\"https://pages.example/");
    page.slug();
    let _ = writeln!(page.out, "\">\n<link rel=\"stylesheet\" href=\"/static/{style}.css?v=31\">");
    page.put("<script>window.page = {\"kind\": \"");
    page.put(style);
    page.put("\", \"a<b\": true};\nif (1 < 2 && !window.q) { window.q = []; }</script>\n</head>\n");
}

fn shop(page: &mut Writer, bytes: usize) {
    head(page, "en", "shop");
    page.put("<body class=\"list\">\n<!-- header -->\n<header class=\"top\"><nav><ul>");
    for _ in 0..4 {
        page.put("<li><a href=\"/c/");
        page.slug();
        page.put("\">");
        page.words(2);
        page.put("</a></li>");
    }
    page.put("</ul></nav></header>\n<main><h1>");
    page.words(3);
    page.put("</h1>\n<ul class=\"products\">\n");
    while page.is_shorter_than(bytes.saturating_sub(120)) {
        let id = page.below(900_000) + 100_000;
        let _ =
            writeln!(page.out, "<li class=\"product-card\" data-sku=\"SKU-{id}\" data-price=\"{}\" data-list='main'>", id % 977);
        let _ = write!(page.out, "  <a class=\"thumb\" href=\"/p/{id}?ref=list&amp;pos=");
        page.number(60);
        let _ = write!(page.out, "\"><img src=\"/static/blank.gif\" data-src=\"/img/{id}_300.jpg\" alt=\"");
        page.words(3);
        page.put("\" loading=\"lazy\" width=\"300\" height=\"300\"></a>\n  <h3 class=\"title\">");
        page.words(4);
        page.put(
            "</h3>\n  <div class=\"rating\" aria-label=\"4.5 of 5\"><svg class=\"icon\" viewBox=\"0 0 20 20\" width=\"16\" ",
        );
        page.put(
            "height=\"16\" aria-hidden=\"true\"><path d=\"M10 1l2.6 6.2 6.7.5-5.1 4.3z\" fill=\"currentColor\"/></svg> <span>(",
        );
        page.number(400);
        page.put(")</span></div>\n  <p class=\"price\">£");
        page.number(90);
        page.put(".99 <s>£");
        page.number(120);
        page.put(".00</s></p>\n  <p class=\"blurb\">");
        page.words(5);
        if page.below(4) == 0 {
            page.put(" <b>new <i>and</b> tidy</i>");
        }
        page.put("</p>\n  <button type=\"button\" class=\"add\" disabled>Add to basket</button>\n</li>\n");
    }
    page.put("</ul></main>\n<footer><p>&copy; the shop <a href=\"/terms\">Terms</a></p></footer>\n</body>\n</html>\n");
}

fn news(page: &mut Writer, bytes: usize) {
    head(page, "en", "news");
    page.put("<body>\n<header><a href=\"/\">Home</a> <a href=\"/world\">World</a></header>\n<aside><ul class=\"latest\">\n");
    for _ in 0..6 {
        page.put("<li><a href=\"/2026/");
        page.slug();
        page.put("\">");
        page.words(5);
        page.put("</a>\n");
    }
    page.put("</ul></aside>\n<article><h1>");
    page.words(7);
    page.put("</h1>\n<p class=\"byline\"><time datetime=\"2026-11-30T08:00\">30 November</time></p>\n");
    while page.is_shorter_than(bytes.saturating_sub(180)) {
        page.put("<p>");
        let length = 60 + page.below(60);
        page.words(length);
        if page.below(3) == 0 {
            page.put(" <a href=\"/topic/");
            page.slug();
            page.put("?a=1&amp;b=2\">");
            page.words(3);
            page.put("</a> ");
            page.words(8);
        }
        page.put(".</p>\n");
        if page.below(8) == 0 {
            page.put("<!-- advertisement --><figure><img data-src=\"/i/photo.jpg\" loading=lazy alt=\"");
            page.words(4);
            page.put("\"><figcaption>");
            page.words(6);
            page.put("</figcaption></figure>\n");
        }
    }
    page.put("</article>\n<footer>");
    page.words(6);
    page.put("</footer>\n<script async src=\"/static/count.js\"></script>\n</body></html>\n");
}

fn forum(page: &mut Writer, bytes: usize) {
    head(page, "en-gb", "forum");
    page.put("<body id=\"phpbb\" class=\"section-viewtopic ltr\">\n<div id=\"wrap\"><h1>");
    page.words(4);
    page.put("</h1>\n");
    let mut post = 4_000;
    while page.is_shorter_than(bytes.saturating_sub(60)) {
        post += 1;
        let _ = writeln!(page.out, "<div id=\"p{post}\" class=\"post bg{}\"><div class=\"inner\">", post % 2 + 1);
        let author = page.below(300);
        let _ = write!(
            page.out,
            "<dl class=\"postprofile\" id=\"profile{post}\"><dt><a href=\"./memberlist.php?mode=viewprofile&amp;u={author}\">"
        );
        let _ = writeln!(page.out, "reader{author}</a></dt><dd>Posts: {}</dd><dd>&nbsp;</dd></dl>", author * 7);
        let _ =
            write!(page.out, "<div class=\"postbody\"><h3><a href=\"./viewtopic.php?f=2&amp;t=71&amp;p={post}#p{post}\">Re: ");
        page.words(3);
        page.put("</a></h3><p class=\"author\"><strong>");
        page.put("Sunday</strong> &raquo; 10:24</p>\n<div class=\"content\">");
        if page.below(2) == 0 {
            page.put("<blockquote><div><cite>wrote:</cite>");
            page.words(10);
            page.put("</div></blockquote>");
        }
        let length = 14 + page.below(20);
        page.words(length);
        page.put("<br>\n<br>");
        page.words(6);
        if page.below(3) == 0 {
            page.put(" <b>very <i>much</b> so</i> <img src=\"./images/smilies/smile.gif\" width=\"15\" height=\"17\" alt=\":)\" title=\"Smile\">");
        }
        page.put("</div>\n<div class=\"signature\">");
        page.words(4);
        page.put("</div></div>\n<!-- post ends --><hr class=\"divider\"></div></div>\n");
    }
    page.put("</div>\n<p>Powered by a board</p></body></html>\n");
}

fn encyclopedia(page: &mut Writer, bytes: usize) {
    head(page, "en", "wiki");
    page.put("<body class=\"mediawiki\"><div id=\"content\"><h1 id=\"firstHeading\"><i>");
    page.words(2);
    page.put("</i></h1>\n<table class=\"infobox\"><caption>");
    page.words(2);
    page.put("</caption>\n");
    for _ in 0..5 {
        page.put("<tr><th scope=\"row\">");
        page.words(1);
        page.put("<td>");
        page.words(3);
        page.put("\n");
    }
    page.put("</table>\n");
    let mut note = 0;
    // The notes at the end take about a third.
    while page.is_shorter_than(bytes.saturating_mul(2) / 3) {
        page.put("<p>");
        for _ in 0..5 {
            page.words(7);
            page.put(" <a href=\"/wiki/");
            page.slug();
            page.put("\" title=\"");
            page.words(2);
            page.put("\">");
            page.words(2);
            page.put("</a>, ");
        }
        note += 1;
        let _ = writeln!(
            page.out,
            "<sup id=\"cite_ref-{note}\" class=\"reference\"><a href=\"#cite_note-{note}\">&#91;{note}&#93;</a></sup>"
        );
        if page.below(5) == 0 {
            page.put("<h2><span class=\"headline\">");
            page.words(2);
            page.put("</span></h2>\n");
        }
    }
    page.put("<ol class=\"references\">\n");
    let mut number = 0;
    while number < note || page.is_shorter_than(bytes.saturating_sub(60)) {
        number += 1;
        let _ = write!(
            page.out,
            "<li id=\"cite_note-{number}\"><b><a href=\"#cite_ref-{number}\">^</a></b> <cite class=\"book\"><i>"
        );
        page.words(4);
        page.put("</i>. ");
        page.words(3);
        page.put("</cite></li>\n");
    }
    page.put("</ol></div>\n<!-- made for measurements -->\n</body></html>\n");
}

fn bench(page: &mut Writer, bytes: usize) {
    head(page, "en", "site");
    page.put("<body><div id=\"root\"><header class=\"top\"><div class=\"brand\">Bench</div></header><main><article class=\"product\">\n");
    page.put(
        "<h1 class=\"name\">Product 7</h1><p>Price: <span class=\"price\">$7.50</span> <small>incl. VAT</small></p>\n<nav><ul>\n",
    );
    for n in 0..10 {
        let _ = writeln!(page.out, "<li><a class=\"rel\" href=\"/{n}\">Product {n}</a></li>");
    }
    page.put("</ul></nav><section class=\"more\">\n");
    while page.is_shorter_than(bytes.saturating_sub(90)) {
        page.put("<div class=\"card\"><div class=\"card-body\"><h3 class=\"card-title\">");
        page.words(2);
        page.put("</h3>\n<p class=\"text-muted\">");
        page.words(9);
        page.put(", <em>");
        page.words(2);
        page.put("</em> ");
        page.words(3);
        page.put(".</p>\n<ul class=\"specs\">");
        for _ in 0..3 {
            page.put("<li><b>");
            page.words(1);
            page.put("</b> ");
            page.words(2);
            page.put("</li>");
        }
        page.put("</ul>\n<div class=\"meta\" data-id=\"");
        page.number(10_000);
        page.put("\"><span class=\"tag\">");
        page.words(1);
        page.put("</span><img src=\"/static/7.png\" alt=\"one\"></div></div></div>\n");
    }
    page.put("</section></article></main><footer><p>end of page</p></footer></div></body></html>\n");
}

fn table(page: &mut Writer, bytes: usize) {
    head(page, "en", "table");
    page.put("<body><h1>");
    page.words(3);
    page.put("</h1><table class=\"data\"><thead><tr><th>a<th>b<th>c<th>d</tr></thead><tbody>\n");
    let mut row = 0;
    while page.is_shorter_than(bytes.saturating_sub(50)) {
        row += 1;
        let _ = write!(page.out, "<tr><td><a href=\"/row/{row}\">{row}</a></td><td class=\"price\">");
        page.number(10_000);
        page.put("</td><td>");
        page.words(2);
        page.put("</td><td>&#177;");
        page.number(100);
        page.put("</td></tr>\n");
    }
    page.put("</tbody></table></body></html>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_size_and_is_the_same_each_time() {
        for kind in PageKind::ALL {
            for bytes in [3_000, 10_000, 100_000] {
                let page = kind.page(bytes);
                assert!((bytes - 100..bytes + 1_500).contains(&page.len()), "{} {bytes}: {}", kind.name(), page.len());
                assert!(page == kind.page(bytes), "{}", kind.name());
                assert!(page.ends_with("</html>\n") && page.contains("<h1") && page.contains("href="), "{}", kind.name());
            }
        }
    }
}
