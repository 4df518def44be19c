//! URLs of a document: addresses found on a page, resolved as a browser resolves them (WHATWG HTML, "encoding-parse a URL").
//!
//! A query is encoded in the encoding of the document, the rest of a URL as UTF-8 (WHATWG URL, "percent-encode after
//! encoding"). Nothing here knows trees or crawls.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use url::{ParseError, Url};

use super::reference::as_browsers_read;

/// The absolute URL of `href` on a page with this base URL and encoding. White space around it is no part of it.
///
/// # Errors
/// When the two do not join.
pub fn join(base: &Url, href: &str, encoding: &'static Encoding) -> Result<Url, ParseError> {
    let href = as_browsers_read(base, href);
    // Only a query depends on the encoding.
    if encoding.output_encoding() == UTF_8 || href.is_ascii() {
        return base.join(&href);
    }
    Url::options().base_url(Some(base)).encoding_override(Some(&|text| Cow::Owned(encoded(text, encoding)))).parse(&href)
}

/// Whether an address surely leads to no web page, because it names another scheme than http and https. A cheap look before
/// the URL parser, which decides the rest: `false` says nothing.
#[must_use]
pub fn is_off_the_web(href: &str) -> bool {
    let href = href.trim_start_matches(|c: char| c <= ' ');
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let Some((scheme, _)) = href.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(is_of_scheme)
        && !scheme.eq_ignore_ascii_case("https")
        && !scheme.eq_ignore_ascii_case("http")
}

/// The bytes of a text in an encoding; what it has no character for becomes a percent-encoded character reference.
fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
    let mut out = Vec::with_capacity(room.saturating_add(16));
    let mut rest = text;
    loop {
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => out.reserve(rest.len().saturating_mul(2).saturating_add(16)),
            EncoderResult::Unmappable(character) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(character)).as_bytes());
                out.reserve(rest.len().saturating_mul(2).saturating_add(16));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use encoding_rs::{EUC_JP, SHIFT_JIS, UTF_16LE, WINDOWS_1251, WINDOWS_1252};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_query_is_in_the_encoding_of_its_document_and_the_rest_in_utf_8() {
        let base = Url::parse("http://a.test/d/p?ж").unwrap();
        for (href, encoding, expected) in [
            ("/каталог?q=цена", UTF_8, "http://a.test/%D0%BA%D0%B0%D1%82%D0%B0%D0%BB%D0%BE%D0%B3?q=%D1%86%D0%B5%D0%BD%D0%B0"),
            ("/ж?q=цена#ж", WINDOWS_1251, "http://a.test/%D0%B6?q=%F6%E5%ED%E0#%D0%B6"),
            ("?q=東京", SHIFT_JIS, "http://a.test/d/p?q=%93%8C%8B%9E"),
            ("?q=東京&r=東", EUC_JP, "http://a.test/d/p?q=%C5%EC%B5%FE&r=%C5%EC"),
            ("?q=é&ж;東'", WINDOWS_1252, "http://a.test/d/p?q=%E9&%26%231078%3B;%26%2326481%3B%27"),
            ("?é", UTF_16LE, "http://a.test/d/p?%C3%A9"),
            (" ?q=a%e9 ", WINDOWS_1252, "http://a.test/d/p?q=a%e9"),
            ("#ж", WINDOWS_1251, "http://a.test/d/p?%D0%B6#%D0%B6"),
            ("ftp://b.test/?é", WINDOWS_1252, "ftp://b.test/?%E9"),
            ("ws://b.test/?é", WINDOWS_1252, "ws://b.test/?%C3%A9"),
        ] {
            assert_eq!(join(&base, href, encoding).unwrap().as_str(), expected, "{href} {}", encoding.name());
        }
        assert!(join(&base, "http://[ж", WINDOWS_1251).is_err());
    }

    #[test]
    fn other_schemes_are_known_without_parsing() {
        for (href, expected) in [
            ("mailto:a@b.test", true),
            (" \n JavaScript:void(0)", true),
            ("tel:1", true),
            ("data:text/html,x", true),
            ("https:rel", false),
            ("HTTP://a.test", false),
            ("/a:b", false),
            ("a/b:c", false),
            ("?a:b", false),
            ("1:2", false),
            (":", false),
            ("", false),
            // Line breaks inside are taken out by the parser, which then decides.
            ("java\nscript:1", false),
        ] {
            assert_eq!(is_off_the_web(href), expected, "{href:?}");
        }
    }

    proptest! {
        #[test]
        fn any_address_on_any_page_joins_or_does_not(href in ".{0,60}", encoding in 0..4_usize) {
            let base = Url::parse("http://a.test/d/p").unwrap();
            let encoding = [UTF_8, WINDOWS_1251, SHIFT_JIS, encoding_rs::ISO_2022_JP][encoding];
            if let Ok(url) = join(&base, &href, encoding) {
                prop_assert!(url.as_str().is_ascii() || !matches!(url.scheme(), "http" | "https"));
                prop_assert!(!is_off_the_web(&href) || !matches!(url.scheme(), "http" | "https"));
            }
        }
    }
}
