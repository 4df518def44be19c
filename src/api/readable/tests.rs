#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Pages as people read them.

use proptest::prelude::*;

use super::*;

const STORY: &str = "The harbour lay still, the tide was out, and the gulls walked where the ships had been that morning.";

fn visible(html: &str) -> String {
    visible_text(&Page::parse(html))
}

fn readable(html: &str) -> String {
    readable_text(&Page::parse(html))
}

#[test]
fn text_is_laid_out_as_a_browser_does_it() {
    for (html, expected) in [
        ("", ""),
        ("  a \n b  ", "a b"),
        ("<b>a</b><i>b</i> c", "ab c"),
        ("<b>a </b> <i> b</i>", "a b"),
        ("<div>a</div>b<div>c<div>d</div></div>", "a\nb\nc\nd"),
        ("<p>a<p>b<div>c</div>", "a\n\nb\n\nc"),
        ("a<br>b<br><br>c<br>", "a\nb\n\nc"),
        ("<ul><li>a<li>b <b>c</b></ul>d", "a\nb c\n\nd"),
        ("<table><tr><th>a<th>b<tr><td>c<td><td>d</table>", "a\tb\nc\td"),
        ("<pre>a  b\n   c\n\nd</pre>e  f", "a  b\n   c\n\nd\n\ne f"),
        ("<pre>\n  <b>x</b> y </pre>", "  x y"),
        ("a&nbsp;b", "a\u{a0}b"),
        ("<title>t</title><style>s</style>x<script>y</script><template>z</template><noscript>n</noscript>", "x"),
        ("<p hidden>a<p aria-hidden=TRUE>b<p style='color:red; DISPLAY : none !important'>c<p style='display:block'>d", "d"),
        ("<label>Name <input value=x><select><option>one</select><textarea>t</textarea></label><button>Go</button>", "Name"),
        ("<dl><dt>a<dd>b</dl><h2>c</h2><blockquote><p>d</blockquote>", "a\nb\n\nc\n\nd"),
        ("<div><div><div></div></div></div>a", "a"),
    ] {
        assert_eq!(visible(html), expected, "{html}");
    }
}

#[test]
fn the_content_is_found_among_what_surrounds_it() {
    let links = "<a href=/>Link with many words in it, and more</a> ".repeat(20);
    let story = format!("<p>{STORY}</p>").repeat(4);
    let told = [STORY; 4].join("\n\n");
    for (what, html) in [
        (
            "div",
            format!("<div class=top>{links}</div><div class=story>{story}</div><div class=related><p>{STORY}</p>{links}</div>"),
        ),
        ("sidebar", format!("<table><tr><td class=sidebar><p>{STORY}<p>{STORY}</td><td>{story}</td></table>")),
        (
            "nav and footer",
            format!("<nav>{links}</nav><section>{story}</section><footer><p>{STORY}<p>{STORY}<p>{STORY}</footer>"),
        ),
        (
            "link list",
            format!("<ul>{}</ul><div>{story}</div>", "<li><a href=/>Another article, with a long headline</a>".repeat(50)),
        ),
        ("form", format!("<div>{story}<form><p>{STORY}</form></div>")),
        ("hidden", format!("<div style='display:none'>{}</div><div>{story}</div>", story.repeat(3))),
    ] {
        assert_eq!(readable(&html), told, "{what}");
    }
}

#[test]
fn an_article_keeps_its_own_head() {
    let html = format!(
        "<header>Site</header><main><article><header><h1>Tides</h1></header><div>{}</div></article></main>",
        format!("<p>{STORY}").repeat(3)
    );
    assert_eq!(readable(&html), format!("Tides\n\n{}", [STORY; 3].join("\n\n")));
}

#[test]
fn a_page_without_running_text_is_read_whole_but_for_its_surroundings() {
    assert_eq!(readable("<nav>Home</nav><h1>Sold out</h1><p>Sorry.</p><footer>Imprint</footer>"), "Sold out\n\nSorry.");
    assert_eq!(readable(""), "");
    assert_eq!(readable("<nav>Home</nav>"), "");
}

const PIECES: &[&str] = &[
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "text, more text that is long enough to count. ",
    "<br>",
    "<pre>",
    "</pre>",
    "\n \t",
    "<table><tr><td>",
    "</table>",
    "<article>",
    "<a href=x>",
    "<li>",
    "<nav>",
    "<svg>",
    "<template>",
    "<frameset>",
    "<b hidden>",
];

proptest! {
    #[test]
    fn any_page_gives_text_without_loose_ends(pieces in proptest::collection::vec(0..PIECES.len(), 0..60), rest in ".{0,30}") {
        let html: String = pieces.iter().map(|at| PIECES[*at]).chain([rest.as_str()]).collect();
        for text in [visible(&html), readable(&html)] {
            prop_assert!(text.len() <= 4 * html.len());
            prop_assert!(!text.contains("\n\n\n"), "{:?}", text);
            let is_space = |c: char| matches!(c, ' ' | '\n' | '\t');
            prop_assert!(!text.ends_with(is_space) && !text.starts_with('\n'), "{:?}", text);
        }
    }
}
