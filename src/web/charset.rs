//! Turns the bytes of a page into text.
//!
//! Order of evidence: byte order mark, charset of `Content-Type`, declaration in the first 1024 bytes (`<meta>` or XML),
//! valid UTF-8, a statistical guess on the first 16 KiB. Malformed bytes become U+FFFD; decoding never fails.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use simdutf8::basic::from_utf8;

use super::charset_prescan::declared_encoding;
use super::media_type::MediaType;

/// Bytes searched for a declaration (HTML standard, "prescan a byte stream").
pub(super) const PRESCAN_BYTES: usize = 1024;

/// Bytes shown to the statistical detector.
const DETECTOR_BYTES: usize = 16 * 1024;

/// Decodes a body, without a copy when its text is already UTF-8 (or ASCII under any compatible encoding).
///
/// `content_type` is the value of the header, `host_tld` the last label of the host in ASCII; it only helps the guess.
/// The byte order mark is not part of the text.
#[must_use]
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>, host_tld: Option<&str>) -> (Cow<'a, str>, &'static Encoding) {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(body) {
        let text = body.get(mark_bytes..).unwrap_or_default();
        return (decoded(encoding, text), encoding);
    }
    let named = content_type.and_then(MediaType::parse).and_then(|media_type| media_type.charset());
    if let Some(encoding) = named.or_else(|| declared_encoding(body)) {
        return (decoded(encoding, body), encoding);
    }
    if let Ok(text) = from_utf8(body) {
        return (Cow::Borrowed(text), UTF_8);
    }
    let encoding = guessed(body, host_tld);
    (encoding.decode_without_bom_handling(body).0, encoding)
}

fn decoded<'a>(encoding: &'static Encoding, body: &'a [u8]) -> Cow<'a, str> {
    if encoding == UTF_8
        && let Ok(text) = from_utf8(body)
    {
        return Cow::Borrowed(text);
    }
    encoding.decode_without_bom_handling(body).0
}

fn guessed(body: &[u8], host_tld: Option<&str>) -> &'static Encoding {
    let head = body.get(..DETECTOR_BYTES).unwrap_or(body);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, head.len() == body.len());
    // The detector panics on anything but a lower-case ASCII label.
    let tld = host_tld
        .filter(|tld| !tld.is_empty())
        .filter(|tld| tld.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use base64::Engine as _;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Cases that are answered otherwise, with the reason.
    const EXCEPTIONS: &[(&str, &str)] = &[
        ("h5-t1-048", BEYOND),
        ("h5-t1-049", BEYOND),
        ("h5-t1-050", BEYOND),
        ("h5-t1-051", BEYOND),
        ("h5-t1-052", BEYOND),
        ("h5-t1-053", BEYOND),
        ("h5-t1-054", BEYOND),
        ("w3-022", UTF_32),
        ("w3-023", UTF_32),
        ("w3-024", UTF_32),
        ("w3-025", UTF_32),
        ("w3-026", "the label utf-16 without a mark means little-endian (WHATWG Encoding)"),
        ("w3-027", UTF_32),
        ("w3-028", "`< meta` with a blank is no tag"),
    ];

    const BEYOND: &str = "the declaration lies beyond the first 1024 bytes";
    const UTF_32: &str = "the WHATWG Encoding standard has no UTF-32";

    fn names_agree(python: &str, ours: &'static Encoding) -> bool {
        let ours = ours.name();
        match python {
            "utf8" | "ascii" => ours == "UTF-8",
            "cp1251" => ours == "windows-1251",
            "cp1252" => ours == "windows-1252",
            "gb18030" => ours == "GBK",
            "big5hkscs" => ours == "Big5",
            "utf-16-be" => ours == "UTF-16BE",
            "utf-16-le" => ours == "UTF-16LE",
            other => ours.eq_ignore_ascii_case(other),
        }
    }

    #[test]
    fn every_case_of_the_collection_is_decoded() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/encoding_sniffing.json")).unwrap();
        let mut report = Vec::new();
        for case in data["cases"].as_array().unwrap() {
            let id = case["id"].as_str().unwrap();
            let body = base64::engine::general_purpose::STANDARD.decode(case["body_b64"].as_str().unwrap()).unwrap();
            let problem = if let Some(expected) = case["expected_canonical"].as_str() {
                // Windows-1252 stands for "nothing declared" in this suite.
                let declared = Encoding::for_bom(&body).map(|(encoding, _)| encoding).or(declared_encoding(&body));
                let ours = declared.map_or("windows-1252", Encoding::name);
                (!ours.eq_ignore_ascii_case(expected)).then(|| format!("{ours}, expected {expected}"))
            } else {
                let header = case["content_type"].as_str().map(|line| line.trim_start_matches("Content-Type:"));
                let (text, encoding) = decode(&body, header, None);
                let same =
                    text == case["expected_text"].as_str().unwrap() && names_agree(case["expected"].as_str().unwrap(), encoding);
                (!same).then(|| format!("{} {text:?}, expected {}", encoding.name(), case["expected"]))
            };
            if problem.is_some() != EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                report.push(format!("{id}: {problem:?}"));
            }
        }
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    #[test]
    fn a_byte_order_mark_beats_the_header() {
        let body = "\u{feff}<!DOCTYPE html><title>Привет</title>";
        let (text, encoding) = decode(body.as_bytes(), Some("text/html; charset=cp1251"), None);
        assert_eq!((text.as_ref(), encoding), ("<!DOCTYPE html><title>Привет</title>", UTF_8));
    }

    #[test]
    fn a_declaration_beats_the_guess() {
        let mut body = b"<html><head><meta content='text/html; charset=windows-1251' http-equiv='Content-Type'><title>".to_vec();
        body.extend(b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0</title>");
        let (text, encoding) = decode(&body, Some("text/html"), None);
        assert!(text.ends_with("Привет мир</title>"), "{text}");
        assert_eq!(encoding.name(), "windows-1251");
    }

    #[test]
    fn utf_8_is_borrowed_whatever_named_it() {
        let body = "<p>grüße</p>".as_bytes();
        for header in [None, Some("text/html; charset=utf-8"), Some("text/html; charset=bogus")] {
            assert!(matches!(decode(body, header, None).0, Cow::Borrowed(_)), "{header:?}");
        }
    }

    #[test]
    fn an_undeclared_page_is_guessed_and_the_top_level_domain_may_be_anything() {
        let body = b"\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0? \xdd\xf2\xee \xef\xf0\xee\xf1\xf2\xee\xe9 \xf2\xe5\xea\xf1\xf2.";
        for tld in [None, Some("ru"), Some("RU"), Some("co.uk"), Some("рф"), Some(""), Some("xn--p1ai")] {
            assert_eq!(decode(body, None, tld).1.name(), "windows-1251", "{tld:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_become_text(body in proptest::collection::vec(any::<u8>(), 0..400), tld in "\\PC{0,4}") {
            let _ = decode(&body, None, Some(&tld));
            let mut page = b"<meta ".to_vec();
            page.extend(&body);
            let _ = decode(&page, Some("text/html"), Some(&tld));
        }
    }
}
