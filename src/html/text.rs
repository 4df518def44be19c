//! The texts of a node: what a reader sees of it, and what patterns are matched against.

use std::borrow::Cow;

use super::arena::{Kind, NodeId};
use super::document::Document;
use super::names::known::{SCRIPT, STYLE, TEMPLATE};
use super::serialize::write_outer;

/// What a reader sees of a node: all text below it without scripts, styles and templates, runs of white space as one
/// blank, trimmed.
pub(crate) fn visible(document: &Document, top: NodeId) -> String {
    let arena = document.arena();
    let mut out = String::new();
    let mut id = top;
    while id.is_some() {
        let hidden = match arena.kind(id) {
            Kind::Text => {
                push_words(arena.text(arena.data(id)), &mut out);
                false
            }
            Kind::Element => is_hidden(document, id),
            _ => false,
        };
        id = if hidden { arena.following_outside(id, top) } else { arena.following(id, top) };
    }
    trim_end(&mut out);
    out
}

/// A text with runs of white space as one blank, trimmed.
pub(crate) fn words(text: &str) -> String {
    let mut out = String::new();
    push_words(text, &mut out);
    trim_end(&mut out);
    out
}

/// The text a pattern is matched against for an element: its HTML with `&gt;`, `&quot;` and `&nbsp;` undone.
pub(crate) fn for_pattern(document: &Document, id: NodeId) -> String {
    let mut html = String::new();
    write_outer(document, id, &mut html);
    match unescaped(&html) {
        Cow::Borrowed(_) => html,
        Cow::Owned(text) => text,
    }
}

fn unescaped(html: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = html;
    let mut written = html;
    while let Some((_, behind)) = rest.split_once('&') {
        rest = behind;
        let found = [("gt;", ">"), ("quot;", "\""), ("nbsp;", "\u{a0}")].into_iter().find(|(name, _)| behind.starts_with(name));
        if let Some((name, text)) = found {
            let before = written.len() - behind.len() - 1;
            out.push_str(written.get(..before).unwrap_or_default());
            out.push_str(text);
            rest = behind.get(name.len()..).unwrap_or_default();
            written = rest;
        }
    }
    if written.len() == html.len() {
        return html.into();
    }
    out.push_str(written);
    out.into()
}

fn is_hidden(document: &Document, id: NodeId) -> bool {
    // By name alone: a script in an SVG image is no text for readers either.
    [SCRIPT, STYLE, TEMPLATE].contains(&document.arena().name(id))
}

fn push_words(text: &str, out: &mut String) {
    let mut is_first = true;
    for word in text.split(char::is_whitespace) {
        if !is_first && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        out.push_str(word);
        is_first = false;
    }
}

fn trim_end(out: &mut String) {
    if out.ends_with(' ') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_one_blank_between_words() {
        for (text, expected) in
            [("", ""), (" \n\t", ""), ("a", "a"), ("  a  b\u{a0}\u{2003}c ", "a b c"), ("\u{a0}é\r\nü", "é ü")]
        {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_of_several_texts_are_joined_where_they_touch() {
        let mut out = String::new();
        for text in ["a", "b ", " c", "", " ", "d"] {
            push_words(text, &mut out);
        }
        assert_eq!(out, "ab c d");
    }

    #[test]
    fn only_what_patterns_should_not_see_is_undone() {
        for (html, expected) in [
            ("a", "a"),
            ("&gt;&quot;&nbsp;", ">\"\u{a0}"),
            ("a &amp; b &lt; c &gt; d", "a &amp; b &lt; c > d"),
            ("&amp;gt; &", "&amp;gt; &"),
            ("&&gt;é&quot", "&>é&quot"),
        ] {
            assert_eq!(unescaped(html), expected, "{html}");
        }
    }
}
