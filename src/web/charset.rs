//! Turns the bytes of a page into text.
//!
//! Order of evidence: byte order mark, charset of `Content-Type`, declaration in the first bytes (`<meta>` or XML),
//! valid UTF-8, a statistical guess on the first 16 KiB. Malformed bytes become U+FFFD; decoding never fails.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use simdutf8::basic::from_utf8;

use super::charset_prescan::declared_encoding;
use super::media_type::MediaType;

/// Bytes shown to the statistical detector.
const DETECTOR_BYTES: usize = 16 * 1024;

/// Decodes a body, without a copy when its text is already UTF-8 (or ASCII under any compatible encoding).
///
/// `content_type` is the value of the header (several fields joined by commas), `host_tld` the last label of the host in ASCII; it only helps the guess.
/// The byte order mark is not part of the text.
#[must_use]
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>, host_tld: Option<&str>) -> (Cow<'a, str>, &'static Encoding) {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(body) {
        let text = body.get(mark_bytes..).unwrap_or_default();
        return (decoded(encoding, text), encoding);
    }
    let named = MediaType::from_fields(content_type.into_iter()).and_then(|media_type| media_type.charset());
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
        ("w3-022", UTF_32),
        ("w3-023", UTF_32),
        ("w3-024", UTF_32),
        ("w3-025", UTF_32),
        ("w3-026", UTF_16),
        ("w3-027", UTF_32),
        ("w3-028", NO_TAG),
    ];

    const UTF_16: &str = "the label utf-16 without a mark means little-endian (WHATWG Encoding)";
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
            "iso8859-4" => ours == "ISO-8859-4",
            other => ours.eq_ignore_ascii_case(other),
        }
    }

    #[test]
    fn every_case_of_the_collection_is_decoded() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/encoding_sniffing.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 117);
        let mut report = Vec::new();
        for case in cases {
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

    /// Helpers of the other library that answer otherwise, with the reason.
    const HELPER_EXCEPTIONS: &[(&str, &str)] = &[
        ("read-bom-003", UTF_32),
        ("read-bom-004", UTF_32),
        ("read-bom-019", UTF_32),
        ("read-bom-020", UTF_32),
        ("resolve-encoding-015", UTF_32),
        ("http-content-type-encoding-039", UTF_32),
        ("to-unicode-033", UTF_32),
        ("to-unicode-034", UTF_32),
        ("resolve-encoding-014", UTF_16),
        ("http-content-type-encoding-038", UTF_16),
        ("resolve-encoding-006", "`Latin-1` is no label (WHATWG Encoding)"),
        ("http-content-type-encoding-010", "a quoted value may lack its end (WHATWG MIME sniffing)"),
        ("http-content-type-encoding-015", "`foo=bar` is no media type, so there are no parameters"),
        ("http-content-type-encoding-016", BEHIND_QUOTES),
        ("http-content-type-encoding-017", BEHIND_QUOTES),
        ("http-content-type-encoding-025", "the first charset counts, and it is empty (WHATWG MIME sniffing)"),
        ("http-content-type-encoding-029", "of two types the last counts (Fetch)"),
        ("html-body-declared-encoding-007", NO_TAG),
        ("html-body-declared-encoding-024", NO_TAG),
        ("html-body-declared-encoding-031", NO_TAG),
        ("html-body-declared-encoding-012", WHOLE_PRESCAN),
        ("html-body-declared-encoding-028", WHOLE_PRESCAN),
        ("html-body-declared-encoding-013", NOT_CONTENT_TYPE),
        ("html-body-declared-encoding-014", NOT_CONTENT_TYPE),
        ("html-body-declared-encoding-029", NOT_CONTENT_TYPE),
    ];

    const BEHIND_QUOTES: &str = "what stands behind the quotes is dropped, not the value (WHATWG MIME sniffing)";
    const NO_TAG: &str = "`< meta` with a blank is no tag";
    const WHOLE_PRESCAN: &str = "the first 1024 bytes are searched as a whole, a body in them too (HTML standard)";
    const NOT_CONTENT_TYPE: &str = "a `content` counts with `http-equiv=content-type` only (HTML standard)";

    /// The collection names encodings as Python does.
    fn is_named(python: Option<&str>, ours: Option<&'static Encoding>) -> bool {
        match (python, ours) {
            (Some(python), Some(ours)) => names_agree(python, ours),
            (None, None) => true,
            _ => false,
        }
    }

    #[test]
    fn every_helper_of_the_collection_is_answered() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/encoding_helpers.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 153);
        let mut report = Vec::new();
        for case in cases {
            let id = case["id"].as_str().unwrap();
            let bytes = match case["input_b64"].as_str() {
                Some(text) => base64::engine::general_purpose::STANDARD.decode(text).unwrap(),
                None => case["input"].as_str().unwrap_or_default().as_bytes().to_vec(),
            };
            let text = String::from_utf8_lossy(&bytes);
            let named = case["expected"].as_str();
            let (right, ours) = match case["function"].as_str().unwrap() {
                "read_bom" => {
                    let ours = Encoding::for_bom(&bytes).map(|(encoding, _)| encoding);
                    (is_named(named, ours), format!("{ours:?}"))
                }
                "resolve_encoding" => {
                    let ours = Encoding::for_label(&bytes);
                    (is_named(named, ours), format!("{ours:?}"))
                }
                "http_content_type_encoding" => {
                    let value = text.strip_prefix("Content-Type:").unwrap_or(&text);
                    let ours = MediaType::from_fields([value].into_iter()).and_then(|media_type| media_type.charset());
                    (is_named(named, ours), format!("{ours:?}"))
                }
                "html_body_declared_encoding" => {
                    let ours = declared_encoding(&bytes);
                    (is_named(named, ours), format!("{ours:?}"))
                }
                "to_unicode" => {
                    let label = match case["encoding"].as_str().unwrap() {
                        "gb18030_2000" => "gb18030",
                        "big5hkscs" => "big5-hkscs",
                        "utf-16-be" => "utf-16be",
                        "utf-16-le" => "utf-16le",
                        label => label,
                    };
                    let header = format!("text/plain; charset={label}");
                    let (ours, encoding) = decode(&bytes, Some(&header), None);
                    (named == Some(&ours), format!("{ours:?} by {encoding:?}"))
                }
                other => panic!("{other}"),
            };
            if right == HELPER_EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                report.push(format!("{id}: {text:?} {ours}, expected {}", case["expected"]));
            }
        }
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    #[test]
    fn case_c01_bom_beats_header() {
        let body = "\u{feff}<!DOCTYPE html><title>Привет</title>";
        let (text, encoding) = decode(body.as_bytes(), Some("text/html; charset=cp1251"), None);
        assert_eq!((text.as_ref(), encoding), ("<!DOCTYPE html><title>Привет</title>", UTF_8));
    }

    #[test]
    fn case_c02_charset_only_in_meta() {
        let mut body = b"<html><head><meta content='text/html; charset=windows-1251' http-equiv='Content-Type'><title>".to_vec();
        body.extend(b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0</title>");
        let (text, encoding) = decode(&body, Some("text/html"), None);
        assert!(text.ends_with("Привет мир</title>"), "{text}");
        assert_eq!(encoding.name(), "windows-1251");
        // Bytes that a guess takes for windows-1251, and that mean something else: it is the declaration that counts.
        let mut body = b"<meta content='text/html; charset=koi8-r' http-equiv='Content-Type'><title>".to_vec();
        body.extend(b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0</title>");
        let (text, encoding) = decode(&body, Some("text/html"), None);
        assert!(text.ends_with("оПХБЕР ЛХП</title>"), "{text}");
        assert_eq!(encoding.name(), "KOI8-R");
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
