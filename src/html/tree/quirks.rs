//! What a doctype says about how old a page is (WHATWG HTML 13.2.6.4.1, "the initial insertion mode").

use crate::html::arena::Arena;
use crate::html::document::QuirksMode;
use crate::html::span::Span;
use crate::html::tokenizer::DoctypeToken;

/// Public ids that begin so are of pages in quirks mode. In lower case: letter case does not count.
static QUIRKY_PREFIXES: [&str; 55] = [
    "+//silmaril//dtd html pro v0r11 19970101//",
    "-//as//dtd html 3.0 aswedit + extensions//",
    "-//advasoft ltd//dtd html 3.0 aswedit + extensions//",
    "-//ietf//dtd html 2.0 level 1//",
    "-//ietf//dtd html 2.0 level 2//",
    "-//ietf//dtd html 2.0 strict level 1//",
    "-//ietf//dtd html 2.0 strict level 2//",
    "-//ietf//dtd html 2.0 strict//",
    "-//ietf//dtd html 2.0//",
    "-//ietf//dtd html 2.1e//",
    "-//ietf//dtd html 3.0//",
    "-//ietf//dtd html 3.2 final//",
    "-//ietf//dtd html 3.2//",
    "-//ietf//dtd html 3//",
    "-//ietf//dtd html level 0//",
    "-//ietf//dtd html level 1//",
    "-//ietf//dtd html level 2//",
    "-//ietf//dtd html level 3//",
    "-//ietf//dtd html strict level 0//",
    "-//ietf//dtd html strict level 1//",
    "-//ietf//dtd html strict level 2//",
    "-//ietf//dtd html strict level 3//",
    "-//ietf//dtd html strict//",
    "-//ietf//dtd html//",
    "-//metrius//dtd metrius presentational//",
    "-//microsoft//dtd internet explorer 2.0 html strict//",
    "-//microsoft//dtd internet explorer 2.0 html//",
    "-//microsoft//dtd internet explorer 2.0 tables//",
    "-//microsoft//dtd internet explorer 3.0 html strict//",
    "-//microsoft//dtd internet explorer 3.0 html//",
    "-//microsoft//dtd internet explorer 3.0 tables//",
    "-//netscape comm. corp.//dtd html//",
    "-//netscape comm. corp.//dtd strict html//",
    "-//o'reilly and associates//dtd html 2.0//",
    "-//o'reilly and associates//dtd html extended 1.0//",
    "-//o'reilly and associates//dtd html extended relaxed 1.0//",
    "-//sq//dtd html 2.0 hotmetal + extensions//",
    "-//softquad software//dtd hotmetal pro 6.0::19990601::extensions to html 4.0//",
    "-//softquad//dtd hotmetal pro 4.0::19971010::extensions to html 4.0//",
    "-//spyglass//dtd html 2.0 extended//",
    "-//sun microsystems corp.//dtd hotjava html//",
    "-//sun microsystems corp.//dtd hotjava strict html//",
    "-//w3c//dtd html 3 1995-03-24//",
    "-//w3c//dtd html 3.2 draft//",
    "-//w3c//dtd html 3.2 final//",
    "-//w3c//dtd html 3.2//",
    "-//w3c//dtd html 3.2s draft//",
    "-//w3c//dtd html 4.0 frameset//",
    "-//w3c//dtd html 4.0 transitional//",
    "-//w3c//dtd html experimental 19960712//",
    "-//w3c//dtd html experimental 970421//",
    "-//w3c//dtd w3 html//",
    "-//w3o//dtd w3 html 3.0//",
    "-//webtechs//dtd mozilla html 2.0//",
    "-//webtechs//dtd mozilla html//",
];

/// Public ids of pages in quirks mode.
static QUIRKY_IDS: [&str; 3] = ["-//w3o//dtd w3 html strict 3.0//en//", "-/w3c/dtd html 4.0 transitional/en", "html"];

/// The system id of pages in quirks mode.
const QUIRKY_SYSTEM_ID: &str = "http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd";

/// Public ids that begin so: quirks mode without a system id, limited quirks mode with one.
static HTML4_PREFIXES: [&str; 2] = ["-//w3c//dtd html 4.01 frameset//", "-//w3c//dtd html 4.01 transitional//"];

/// Public ids that begin so are of pages in limited quirks mode.
static LIMITED_PREFIXES: [&str; 2] = ["-//w3c//dtd xhtml 1.0 frameset//", "-//w3c//dtd xhtml 1.0 transitional//"];

/// The mode a doctype puts its page in. A page without one is in quirks mode.
pub(super) fn mode_of(arena: &Arena, token: &DoctypeToken) -> QuirksMode {
    let doctype = &token.doctype;
    if token.force_quirks || !token.has_name || arena.bytes(doctype.name) != b"html" {
        return QuirksMode::Quirks;
    }
    let text = |id: Option<Span>| id.map(|span| arena.bytes(span));
    let (public, system) = (text(doctype.public_id), text(doctype.system_id));
    if system.is_some_and(|id| is(id, QUIRKY_SYSTEM_ID)) {
        return QuirksMode::Quirks;
    }
    let Some(public) = public else { return QuirksMode::No };
    let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| begins(public, prefix));
    if QUIRKY_IDS.iter().any(|id| is(public, id)) || begins_with(&QUIRKY_PREFIXES) {
        return QuirksMode::Quirks;
    }
    if begins_with(&HTML4_PREFIXES) {
        return if system.is_none() { QuirksMode::Quirks } else { QuirksMode::Limited };
    }
    if begins_with(&LIMITED_PREFIXES) { QuirksMode::Limited } else { QuirksMode::No }
}

fn is(id: &[u8], lower: &str) -> bool {
    id.eq_ignore_ascii_case(lower.as_bytes())
}

fn begins(id: &[u8], lower: &str) -> bool {
    id.get(..lower.len()).is_some_and(|start| is(start, lower))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::html::document::Doctype;

    /// The mode of a doctype with these parts, as the tokenizer gives them.
    fn mode(name: &str, public_id: Option<&str>, system_id: Option<&str>) -> QuirksMode {
        let mut arena = Arena::new(Bytes::new());
        let mut copy = |text: &str| {
            let start = arena.side.len();
            arena.side.extend_from_slice(text.as_bytes());
            Span::of_side(start, arena.side.len())
        };
        let doctype = Doctype { name: copy(name), public_id: public_id.map(&mut copy), system_id: system_id.map(&mut copy) };
        mode_of(&arena, &DoctypeToken { doctype, has_name: !name.is_empty(), force_quirks: false })
    }

    #[test]
    fn a_doctype_tells_the_age_of_a_page() {
        use QuirksMode::{Limited, No, Quirks};
        const STRICT: &str = "http://www.w3.org/TR/html4/strict.dtd";
        let table = [
            ("html", None, None, No),
            ("html", None, Some("about:legacy-compat"), No),
            ("html", Some("-//W3C//DTD HTML 4.01//EN"), Some(STRICT), No),
            ("html", Some("-//W3C//DTD XHTML 1.0 Strict//EN"), Some("x"), No),
            ("html", Some("-//W3C//DTD XHTML 1.0 Transitional//EN"), Some("x"), Limited),
            ("html", Some("-//W3C//DTD XHTML 1.0 Frameset//EN"), None, Limited),
            ("html", Some("-//W3C//DTD HTML 4.01 Transitional//EN"), Some("x"), Limited),
            ("html", Some("-//W3C//DTD HTML 4.01 Transitional//EN"), Some(""), Limited),
            ("html", Some("-//W3C//DTD HTML 4.01 Transitional//EN"), None, Quirks),
            ("html", Some("-//w3c//dtd html 4.01 frameset//"), None, Quirks),
            ("html", Some("-//W3C//DTD HTML 4.0 Transitional//EN"), Some("x"), Quirks),
            ("html", Some("-//W3C//DTD HTML 3.2 Final//EN"), None, Quirks),
            ("html", Some("-/W3C/DTD HTML 4.0 Transitional/EN"), None, Quirks),
            ("html", Some("HTML"), None, Quirks),
            ("html", Some("HTML 5"), None, No),
            ("html", Some("+//Silmaril//dtd html Pro v0r11 19970101//EN"), None, Quirks),
            ("html", None, Some("HTTP://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd"), Quirks),
            ("html", Some(""), Some(""), No),
            ("svg", None, None, Quirks),
            ("", None, None, Quirks),
        ];
        for (name, public_id, system_id, expected) in table {
            assert_eq!(mode(name, public_id, system_id), expected, "{name} {public_id:?} {system_id:?}");
        }
    }

    #[test]
    fn prefixes_are_in_lower_case() {
        for prefix in QUIRKY_PREFIXES.iter().chain(&HTML4_PREFIXES).chain(&LIMITED_PREFIXES).chain(&QUIRKY_IDS) {
            assert_eq!(*prefix, prefix.to_ascii_lowercase());
            assert_ne!(mode("html", Some(prefix), None), QuirksMode::No, "{prefix}");
        }
    }
    #[test]
    fn html5ever_tells_the_same_age() {
        use html5ever::tree_builder::QuirksMode as Theirs;
        let ids = QUIRKY_PREFIXES.iter().skip(1).chain(&HTML4_PREFIXES).chain(&LIMITED_PREFIXES).chain(&QUIRKY_IDS);
        for id in ids.flat_map(|id| [(*id).to_owned(), format!("{id}EN"), id.to_ascii_uppercase(), id.replacen('/', "x", 1)]) {
            for system_id in [None, Some(""), Some(QUIRKY_SYSTEM_ID), Some("about:legacy-compat")] {
                let system = system_id.map_or(String::new(), |id| format!(" \"{id}\""));
                let theirs = scraper::Html::parse_document(&format!("<!DOCTYPE html PUBLIC \"{id}\"{system}>")).quirks_mode;
                let ours = match mode("html", Some(&id), system_id) {
                    QuirksMode::No => Theirs::NoQuirks,
                    QuirksMode::Limited => Theirs::LimitedQuirks,
                    QuirksMode::Quirks => Theirs::Quirks,
                };
                assert_eq!(ours, theirs, "{id}{system}");
            }
        }
    }
}
