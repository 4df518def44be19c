//! A refresh that a page asks for: the `Refresh` header and `<meta http-equiv=refresh>` (HTML, "shared declarative
//! refresh steps").
//!
//! Reads what is declared; whether it is followed, and after what time, others decide. Whether a body may declare one at
//! all is told from its bytes, so that ordinary pages are never parsed for it.

use std::time::Duration;

use encoding_rs::Encoding;
use memchr::memchr2_iter;
use url::Url;

use super::document_url;
use crate::html::Page;

/// Bytes of a body in which a declaration is looked for.
pub const LOOKED_AT: usize = 64 * 1024;

/// What a page asks for: to be left for another address, or loaded again, after a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// Whole seconds; a fraction is dropped, as the standard says.
    pub after: Duration,
    /// The address as written, white space that no URL has taken out; `None` for the page itself.
    pub url: Option<String>,
}

impl Refresh {
    /// Reads the value of a `Refresh` header or of the `content` attribute. `None` when it asks for nothing.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim_start_matches(is_space);
        let rest = value.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = value.get(..value.len() - rest.len())?;
        if digits.is_empty() && !rest.starts_with('.') {
            return None;
        }
        // More digits than fit are more time than anybody waits.
        let seconds = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
        let after = Duration::from_secs(seconds);
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if rest.is_empty() {
            return Some(Self { after, url: None });
        }
        if !rest.starts_with(|c| is_space(c) || matches!(c, ';' | ',')) {
            return None;
        }
        let rest = rest.trim_start_matches(is_space);
        let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(is_space);
        Some(Self { after, url: address(rest) })
    }

    /// The address, against what relative ones on the page are relative to, its query in the page's encoding. `None` for
    /// the page itself, and for what is no URL.
    #[must_use]
    pub fn target(&self, base: &Url, encoding: &'static Encoding) -> Option<Url> {
        document_url::join(base, self.url.as_deref()?, encoding).ok()
    }
}

/// Whether a page may declare a refresh, told from its bytes in UTF-8 or any encoding that has ASCII in it.
///
/// Looks for an `http-equiv` whose value begins like `refresh`; whether it is a tag, and which, is for a parser to say.
/// What has no such bytes declares none, with one exception: a name written in character references.
#[must_use]
pub fn may_declare(body: &[u8]) -> bool {
    let head = body.get(..LOOKED_AT).unwrap_or(body);
    // The rarest letter of the name leads to it.
    memchr2_iter(b'q', b'Q', head).any(|at| {
        let name = at.checked_sub(6).and_then(|start| head.get(start..at + 4));
        name.is_some_and(|name| name.eq_ignore_ascii_case(b"http-equiv"))
            && value_after(head.get(at + 4..).unwrap_or_default()).is_some_and(begins_with_refresh)
    })
}

/// The first refresh that a page declares outside of the elements whose names are in `ignored`.
///
/// As in browsers the first one counts that can be read, be it one to the page itself.
#[must_use]
pub fn declared<T: AsRef<str>>(page: &Page, ignored: &[T]) -> Option<Refresh> {
    let metas = page.css("meta[http-equiv][content]");
    metas.nodes().find_map(|meta| {
        let is_refresh = meta.attr("http-equiv")?.eq_ignore_ascii_case("refresh");
        let is_ignored = meta
            .ancestors()
            .filter_map(|above| above.name())
            .any(|name| ignored.iter().any(|tag| tag.as_ref().eq_ignore_ascii_case(name)));
        (is_refresh && !is_ignored).then(|| Refresh::parse(meta.attr("content")?))?
    })
}

/// What an attribute's name is given, without its quote.
fn value_after(text: &[u8]) -> Option<&[u8]> {
    let value = text.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    match value.split_first() {
        Some((b'"' | b'\'', quoted)) => Some(quoted),
        _ => Some(value),
    }
}

fn begins_with_refresh(value: &[u8]) -> bool {
    value.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case(b"refresh"))
}

/// The address after time and separator: with `url=` in front or without, quoted or not.
fn address(text: &str) -> Option<String> {
    let named = match text.get(..3) {
        Some(name) if name.eq_ignore_ascii_case("url") => {
            text.get(3..)?.trim_start_matches(is_space).strip_prefix('=').map(|value| value.trim_start_matches(is_space))
        }
        _ => None,
    };
    // Only a name that is whole, or a text that does not begin like one, may be followed by a quote.
    let begins_like_a_name = text.starts_with(['u', 'U']);
    let found = match (named, begins_like_a_name) {
        (Some(value), _) => unquoted(value),
        (None, true) => text,
        (None, false) => unquoted(text),
    };
    // As the URL parser does.
    let trimmed = found.trim_matches(|c: char| c <= ' ');
    let address: String = trimmed.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    (!address.is_empty()).then_some(address)
}

/// A text without the quote it begins with, up to the next one of the kind.
fn unquoted(text: &str) -> &str {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return text };
    let inner = text.get(1..).unwrap_or_default();
    inner.split_once(quote).map_or(inner, |(before, _)| before)
}

/// ASCII white space as HTML has it.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use base64::Engine as _;
    use encoding_rs::UTF_8;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Cases that are answered otherwise: what we say, and why.
    const EXCEPTIONS: &[(&str, Option<u64>, &str)] = &[
        ("refresh-w3lib-003", None, "a tag that never ends is none: the standard drops it at the end of the file"),
        ("refresh-w3lib-016", Some(0), "the standard drops the fraction of a second"),
        ("refresh-w3lib-017", Some(3), "the standard drops the fraction of a second"),
        ("refresh-w3lib-023", None, "the text of a script is no markup, whatever is ignored"),
    ];

    fn data() -> Vec<Value> {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_refresh.json")).unwrap();
        data["cases"].as_array().unwrap().clone()
    }

    fn page_of(case: &Value) -> (Vec<u8>, String, &'static Encoding) {
        let bytes = match case["html"].as_str() {
            Some(html) => html.as_bytes().to_vec(),
            None => base64::prelude::BASE64_STANDARD.decode(case["html_b64"].as_str().unwrap()).unwrap(),
        };
        let encoding = case["encoding"].as_str().map_or(UTF_8, |label| Encoding::for_label(label.as_bytes()).unwrap());
        let text = encoding.decode(&bytes).0.into_owned();
        (bytes, text, encoding)
    }

    #[test]
    fn every_value_and_page_of_the_collection_is_read() {
        let cases = data();
        assert_eq!(cases.len(), 95);
        let (mut values, mut wrong) = (0, Vec::new());
        for case in &cases {
            let id = case["id"].as_str().unwrap();
            let (seconds, url) = (case["expected"]["seconds"].as_f64(), case["expected"]["url"].as_str());
            let ours = if let Some(value) = case["value"].as_str() {
                values += 1;
                Refresh::parse(value).map(|found| (found.after, found.url))
            } else {
                let (bytes, text, encoding) = page_of(case);
                let ignored = case["ignore_tags"].as_array().map_or_else(|| vec!["noscript"], |_| vec![]);
                let found = declared(&Page::parse(&text), &ignored);
                assert!(found.is_none() || may_declare(&bytes), "{id}: what is declared is seen in the bytes");
                let base = Url::parse(case["base"].as_str().unwrap()).unwrap();
                // Those pages are asked for where they lead.
                found.and_then(|found| Some((found.after, Some(found.target(&base, encoding)?.to_string()))))
            };
            let told = ours.as_ref().map(|(after, url)| (after.as_secs_f64(), url.as_deref()));
            let agrees = told == seconds.map(|seconds| (seconds, url));
            match EXCEPTIONS.iter().find(|(known, ..)| *known == id) {
                Some((_, expected, _)) => {
                    assert_eq!(ours.as_ref().map(|(after, _)| after.as_secs()), *expected, "{id}");
                    assert!(!agrees, "{id} is an exception no longer");
                }
                None if !agrees => wrong.push(format!("{case} {ours:?}")),
                None => {}
            }
        }
        assert_eq!(values, 69);
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn bytes_tell_which_pages_are_worth_parsing() {
        for (page, may) in [
            ("<meta http-equiv=refresh content=1>", true),
            ("<META\nHTTP-EQUIV = 'ReFresh' content=1>", true),
            ("<!-- http-equiv=\"refresh\" -->", true),
            ("<meta http-equiv=content-type content='text/html; refresh'>", false),
            ("<meta name=refresh content='0;url=/x'>", false),
            ("<p>The http-equiv attribute may say refresh", false),
            ("quick http-equi", false),
            ("q", false),
            ("http-equiv=refres", false),
        ] {
            assert_eq!(may_declare(page.as_bytes()), may, "{page}");
        }
        let late = format!("{}<meta http-equiv=refresh content=1>", " ".repeat(LOOKED_AT));
        assert!(!may_declare(late.as_bytes()), "only the first part of a page is looked at");
    }

    #[test]
    fn the_first_declaration_that_can_be_read_counts() {
        let of = |html: &str| declared(&Page::parse(html), &["noscript"]).map(|found| (found.after.as_secs(), found.url));
        let meta = |content: &str| format!("<meta http-equiv=refresh content='{content}'>");
        assert_eq!(of(&(meta("x") + &meta("2;/a") + &meta("3;/b"))), Some((2, Some("/a".to_owned()))));
        assert_eq!(of(&(meta("300") + &meta("0;/b"))), Some((300, None)), "one to the page itself counts as well");
        assert_eq!(of(&format!("<body><div>{}", meta("0;/b"))), Some((0, Some("/b".to_owned()))));
        assert_eq!(of(&format!("<noscript>{}</noscript>{}", meta("0;/a"), meta("1;/b"))), Some((1, Some("/b".to_owned()))));
        assert_eq!(of("<meta http-equiv=refresh>"), None);
    }

    #[test]
    fn a_time_beyond_all_measure_is_a_long_time() {
        let far = Refresh::parse(&format!("{}; url=/x", "9".repeat(400))).unwrap();
        assert!(far.after > Duration::from_secs(1 << 40));
    }

    #[test]
    fn slashes_before_a_host_count_as_two() {
        let base = Url::parse("https://a.test/x").unwrap();
        let target = |value| Refresh::parse(value).unwrap().target(&base, UTF_8).map(String::from);
        assert_eq!(target("0;url=///b.test/y").as_deref(), Some("https://b.test/y"));
        assert_eq!(target("0;url=http://[zz]"), None);
        assert_eq!(target("0;url=''"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(value in "\\PC{0,40}", like in "[0-9.;, urlURL='\"/a\\t]{0,30}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let base = Url::parse("http://a.test/").unwrap();
            for text in [value, like] {
                if let Some(found) = Refresh::parse(&text) {
                    let _ = found.target(&base, UTF_8);
                }
            }
            let _ = may_declare(&bytes);
        }

        #[test]
        fn what_a_page_declares_is_seen_in_its_bytes(before in "[a-zqQ<>='\" -]{0,40}", quote in "['\"]?", space in "[ \\n]{0,2}", word in "(?i)refresh") {
            let page = format!("{before}<meta http-equiv{space}={space}{quote}{word}{quote} content=1>");
            if declared(&Page::parse(&page), &[""; 0]).is_some() {
                prop_assert!(may_declare(page.as_bytes()), "{}", page);
            }
        }
    }
}
