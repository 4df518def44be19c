//! Text that is not markup: RCDATA, RAWTEXT, script data and PLAINTEXT (WHATWG HTML 13.2.5.2 to 5 and 13.2.5.9 to 31).
//!
//! The end is looked for once; what has no end goes on to the end of the page.

use std::borrow::Cow;

use super::class::{ENDS_TAG_NAME, class};
use super::find::{find, find_of_2, find_where};
use super::reference::{Place, decode};
use super::side::Side;
use super::{Content, Sink, Tokenizer};
use crate::html::names::NameId;

impl<S: Sink> Tokenizer<'_, S> {
    /// Reads such a text up to the end tag of `name` and gives it to the sink. The end tag itself is read as any other.
    pub(super) fn raw(&mut self, content: Content, name: Option<NameId>) {
        let rest = self.rest();
        let name = self.name_bytes(name);
        let len = match content {
            Content::Data => return,
            Content::Rcdata | Content::Rawtext => end_of_raw(rest, &name),
            Content::Script => end_of_script(rest, &name),
            Content::Plaintext => rest.len(),
        };
        let text = rest.get(..len).unwrap_or_default();
        let is_plain = match content {
            Content::Rcdata => find_of_2(b'&', 0, text).is_none(),
            _ => find(0, text).is_none(),
        };
        if is_plain {
            self.source_text(rest, len);
            return;
        }
        self.at += len;
        let mut side = Side::new(&mut self.sink.arena().side);
        if content == Content::Rcdata {
            decode(text, Place::Text, &mut side);
        } else {
            side.put_without_nulls(text);
        }
        let text = side.end();
        self.side_text(text);
    }

    /// The name of the end tag, empty if no end tag is the right one.
    fn name_bytes(&mut self, name: Option<NameId>) -> Cow<'static, [u8]> {
        let Some(name) = name else { return Cow::Borrowed(b"") };
        match name.known_text() {
            Some(text) => Cow::Borrowed(text.as_bytes()),
            None => Cow::Owned(self.sink.arena().name_text(name).as_bytes().to_vec()),
        }
    }
}

/// Whether a text that begins with `<` begins with an end tag of this name ("appropriate end tag token").
#[inline]
fn is_end_tag(text: &[u8], name: &[u8]) -> bool {
    let [b'<', b'/', behind @ ..] = text else { return false };
    is_name(behind, name)
}

/// Whether a text begins with this name, in either case, and with what ends a name.
#[inline]
fn is_name(text: &[u8], name: &[u8]) -> bool {
    let Some((found, [next, ..])) = text.split_at_checked(name.len()) else { return false };
    !name.is_empty() && found.eq_ignore_ascii_case(name) && class(*next) & ENDS_TAG_NAME != 0
}

fn end_of_raw(text: &[u8], name: &[u8]) -> usize {
    let ends_here = |place: &usize| text.get(*place..).is_some_and(|text| is_end_tag(text, name));
    find_where(b'<', text, ends_here).unwrap_or(text.len())
}

/// Which of the script data states a place is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Script data (13.2.5.4).
    Plain,
    /// Behind `<!--` (13.2.5.20).
    Escaped,
    /// Behind a `<script` in that (13.2.5.27): the next `</script` only ends this one.
    DoubleEscaped,
}

fn end_of_script(text: &[u8], name: &[u8]) -> usize {
    let mut state = Script::Plain;
    let mut rest = text;
    loop {
        let found = match state {
            Script::Plain => find(b'<', rest),
            Script::Escaped | Script::DoubleEscaped => find_of_2(b'<', b'-', rest),
        };
        let Some(here) = found.and_then(|found| rest.get(found..)) else { return text.len() };
        let read = match state {
            Script::Plain | Script::Escaped if is_end_tag(here, name) => return text.len() - here.len(),
            Script::Plain if here.starts_with(b"<!--") => {
                state = Script::Escaped;
                // Its hyphens may be those of `-->` too.
                2
            }
            Script::Escaped | Script::DoubleEscaped if here.starts_with(b"-->") => {
                state = Script::Plain;
                3
            }
            Script::Escaped if here.starts_with(b"<") && here.get(1..).is_some_and(|text| is_name(text, b"script")) => {
                state = Script::DoubleEscaped;
                7
            }
            Script::DoubleEscaped if here.starts_with(b"<") && is_end_tag(here, b"script") => {
                state = Script::Escaped;
                8
            }
            _ => 1,
        };
        rest = here.get(read..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_ends_at_the_end_tag_that_is_not_in_its_escaped_part() {
        for (text, rest) in [
            ("a</script>b", "</script>b"),
            ("a</script", ""),
            ("</scripty></script\n>", "</script\n>"),
            ("</SCRIPT/>", "</SCRIPT/>"),
            ("<!--</script>", "</script>"),
            ("<!--<script></script>--></script>x", "</script>x"),
            ("<!--<script></script></script>x", "</script>x"),
            ("<!--<script>--></script>x", "</script>x"),
            ("<!--<scripty></script>x", "</script>x"),
            ("<!--<script></script>", ""),
            ("<!--><script></script>x", "</script>x"),
            ("<!---><script></script>x", "</script>x"),
            ("<!-<script></script>x", "</script>x"),
            ("<!--<script-->x</script>y", "</script>y"),
            ("<!--<script>-- ></script></script>y", "</script>y"),
            ("<!--<script/</script /></script>", "</script>"),
            ("<!-- - -- --- --></script>", "</script>"),
            ("-->/script></script>", "</script>"),
            ("<!--/script></script>", "</script>"),
            ("<!-- -/script></script>", "</script>"),
        ] {
            let end = end_of_script(text.as_bytes(), b"script");
            assert_eq!(text.get(end..), Some(rest), "{text}");
        }
    }

    #[test]
    fn a_raw_text_ends_at_its_own_end_tag() {
        for (text, name, rest) in [
            ("a</title>b", "title", "</title>b"),
            ("a</titlex></TiTle >b", "title", "</TiTle >b"),
            ("a</title", "title", ""),
            ("a</style><</style>", "style", "</style><</style>"),
            ("a</style></title>", "title", "</title>"),
            ("a</>", "", ""),
        ] {
            let end = end_of_raw(text.as_bytes(), name.as_bytes());
            assert_eq!(text.get(end..), Some(rest), "{text}");
        }
    }
}
