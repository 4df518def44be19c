//! Reads URLs and references as browsers do (WHATWG URL).
//!
//! The `url` crate does the work; what stands here is the white space around a reference, and the one place where the
//! crate reads a reference otherwise than the standard. Never changes what a URL says.

use std::borrow::Cow;

use url::{ParseError, Url};

/// Reads an absolute URL; white space around it is dropped.
///
/// # Errors
/// When the standard has no reading for the text.
pub fn parse_url(text: &str) -> Result<Url, ParseError> {
    Url::parse(trimmed(text))
}

/// Resolves a reference against the URL of its document.
///
/// # Errors
/// When the standard has no reading for the text.
pub fn join_url(base: &Url, reference: &str) -> Result<Url, ParseError> {
    base.join(&as_browsers_read(base, reference))
}

/// A reference so that the `url` crate reads it as browsers do.
pub(super) fn as_browsers_read<'a>(base: &Url, reference: &'a str) -> Cow<'a, str> {
    let reference = trimmed(reference);
    // Tabs and line ends are nowhere part of a URL, so that they may stand among the slashes.
    let host_first = reference.trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    let before = reference.len() - host_first.len();
    let slashes = reference.bytes().take(before).filter(|byte| matches!(byte, b'/' | b'\\')).count();
    // More than two slashes in front of a host count as two (special authority ignore slashes state).
    let is_host = slashes > 2 && is_special(base);
    if is_host { Cow::Owned(format!("//{host_first}")) } else { Cow::Borrowed(reference) }
}

/// Drops what the standard drops at both ends: control characters and the blank.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// Whether the URL standard reads authorities leniently in this scheme; `file` has rules of its own.
fn is_special(base: &Url) -> bool {
    matches!(base.scheme(), "http" | "https" | "ftp" | "ws" | "wss")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::web::canonical::{canonicalize, wire_fingerprint};
    use crate::web::key::seen_key;

    /// Cases that are answered otherwise, with the reason.
    const EXCEPTIONS: &[(&str, &str)] = &[];

    #[test]
    fn every_url_of_the_standards_tests_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/url_whatwg.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 477);
        let mut report = Vec::new();
        for case in cases {
            let id = case["id"].as_str().unwrap();
            let input = case["input"].as_str().unwrap();
            let ours = match case["base"].as_str() {
                Some(base) => parse_url(base).and_then(|base| join_url(&base, input)),
                None => parse_url(input),
            };
            let problem = match &ours {
                Ok(url) => difference(url, case),
                Err(error) => (case["failure"] != true).then(|| error.to_string()),
            };
            if problem.is_some() != EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                report.push(format!("{id} {input:?} on {}: {problem:?}", case["base"]));
            }
        }
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    fn difference(url: &Url, case: &Value) -> Option<String> {
        if case["failure"] == true {
            return Some(format!("read as {url}"));
        }
        let parts = [
            ("href", url::quirks::href(url)),
            ("protocol", url::quirks::protocol(url)),
            ("username", url::quirks::username(url)),
            ("password", url::quirks::password(url)),
            ("host", url::quirks::host(url)),
            ("hostname", url::quirks::hostname(url)),
            ("port", url::quirks::port(url)),
            ("pathname", url::quirks::pathname(url)),
            ("search", url::quirks::search(url)),
            ("hash", url::quirks::hash(url)),
        ];
        let origin = url::quirks::origin(url);
        parts
            .into_iter()
            .chain([("origin", origin.as_str())])
            .find(|(part, ours)| case[*part].as_str().is_some_and(|expected| expected != *ours))
            .map(|(part, ours)| format!("{part} {ours:?}, expected {}", case[part]))
    }

    /// Hosts that are answered otherwise, with the reason.
    const HOST_EXCEPTIONS: &[(&str, &str)] = &[(
        "host-25",
        "a digit before a label of the right-to-left kind is refused, as by other readers of the standard (disputed)",
    )];

    #[test]
    fn every_host_of_the_standards_tests_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/url_hosts_idna.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 43);
        let mut report = Vec::new();
        for case in cases {
            let id = case["id"].as_str().unwrap();
            let url = parse_url(&format!("https://{}/x", case["host"].as_str().unwrap()));
            let ours = url.as_ref().ok().and_then(Url::host_str);
            if (ours != case["expected"].as_str()) != HOST_EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                report.push(format!("{case}: {ours:?} {:?}", url.as_ref().err()));
            }
        }
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    #[test]
    fn case_u05_hosts_that_strict_idna_rejects() {
        for (url, host) in [
            ("http://a_b.test/", "a_b.test"),
            ("http://hg--69.test/", "hg--69.test"),
            ("http://bücher.test/", "xn--bcher-kva.test"),
            ("http://BÜCHER.test/", "xn--bcher-kva.test"),
            ("http://xn--bcher-kva.test/", "xn--bcher-kva.test"),
            ("http://-a-.test/", "-a-.test"),
        ] {
            assert_eq!(parse_url(url).unwrap().host_str(), Some(host), "{url}");
        }
    }

    #[test]
    fn case_u03_trailing_space_url() {
        let url = parse_url("http://a.test/x ").unwrap();
        assert_eq!(url.as_str(), "http://a.test/x");
        for link in [" http://a.test/x ", "/x\n", "\t/x", "x", "\u{c}x\r\n"] {
            assert_eq!(join_url(&url, link).unwrap(), url, "{link:?}");
        }
    }

    #[test]
    fn tabs_and_line_ends_among_slashes_are_not_there() {
        let base = parse_url("http://a.test/d/p").unwrap();
        for (reference, url) in [
            ("/\n//b.test/x", "http://b.test/x"),
            ("\t/\n/\r/b.test/x", "http://b.test/x"),
            ("\\\t\\\r\n//\tb.te\nst/x", "http://b.test/x"),
            ("/\n/b.test/x", "http://b.test/x"),
            ("/\n\t\r/b.test/x", "http://b.test/x"),
            ("/\n\t\rb.test/x", "http://a.test/b.test/x"),
            ("\n\t\rx", "http://a.test/d/x"),
            ("x/\n//y", "http://a.test/d/x///y"),
        ] {
            assert_eq!(join_url(&base, reference).unwrap().as_str(), url, "{reference:?}");
        }
        let file = parse_url("file:///d/p").unwrap();
        assert_eq!(join_url(&file, "/\n//b/x").unwrap(), join_url(&file, "///b/x").unwrap());
    }

    #[test]
    fn case_u04_characters_outside_the_grammar() {
        for (url, target) in [
            ("http://a.test/search?q=top-1||1|60&Fr=4", "/search?q=top-1||1|60&Fr=4"),
            ("http://a.test/?m=TWO WORDS&x=é", "/?m=TWO%20WORDS&x=%C3%A9"),
            ("http://a.test/up/my file 1.jpg", "/up/my%20file%201.jpg"),
        ] {
            assert_eq!(&parse_url(url).unwrap()[url::Position::BeforePath..], target, "{url}");
        }
    }

    /// The pairs are those of the case: for what is sent, a fingerprint is that of the URL as the standard writes it.
    #[test]
    fn case_u01_percent_encoded_hash() {
        let print = |text: &str| {
            let url = parse_url(text).unwrap();
            (seen_key(&http::Method::GET, &url, b""), wire_fingerprint("GET", url.as_str()))
        };
        let canonical = canonicalize("https://example.test/p/foo%20bar%3a%20x%20%2376%2c%20y#frag").unwrap();
        assert!(canonical.contains("%2376") && !canonical.contains('#'), "{canonical}");
        assert_eq!(canonicalize(&canonical).unwrap(), canonical);
        for (one, other) in [
            ("HTTP://Example.TEST:80/a?b=2&a=1", "http://example.test/a?a=1&b=2"),
            ("https://example.test/%7Euser", "https://example.test/~user"),
            ("https://example.test/a%2fb", "https://example.test/a%2Fb"),
            ("https://example.test", "https://example.test/"),
        ] {
            assert_eq!(print(one), print(other), "{one} {other}");
        }
        for (one, other) in [
            ("https://example.test/a%2Fb", "https://example.test/a/b"),
            ("https://example.test/x%23y", "https://example.test/x#y"),
            ("https://example.test/x%3Fy", "https://example.test/x?y"),
            ("https://example.test/a", "https://example.test/A"),
            ("https://example.test/a", "https://example.test/a/"),
        ] {
            let (one_print, other_print) = (print(one), print(other));
            assert_ne!(one_print.0, other_print.0, "{one} {other}");
            assert_ne!(one_print.1, other_print.1, "{one} {other}");
        }
        let sent = parse_url("https://example.test/p/foo%20bar%3a%20x%20%2376%2c%20y#frag").unwrap();
        assert!(sent.as_str().contains("bar%3a%20x"), "what is sent keeps its spelling: {sent}");
    }

    /// Texts near URLs: delimiters, escapes, dots, hosts of every kind.
    fn near_urls() -> impl Strategy<Value = String> {
        let pieces = proptest::sample::select(vec![
            "http://",
            "https://",
            "HTTP:/",
            "//",
            "/",
            "\\",
            "a.test",
            "bücher.test",
            "[::1]",
            "127.0.0.1",
            "0x7f.1",
            "u:p@",
            ":80",
            ":",
            "?",
            "#",
            "&",
            "=",
            "a=1",
            "b",
            "%",
            "%2",
            "%2f",
            "%2E",
            "%23",
            "%7e",
            "%ff",
            "%41",
            "%37",
            "..",
            ".",
            "é",
            " ",
            "\t",
            "+",
            ";",
            "|",
            "[",
            "]",
            "\u{0}",
            "ß",
            "xn--a",
            "@",
            "~",
            "日本",
        ]);
        proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_url_that_can_be_sent_has_a_canonical_form_that_is_its_own(text in near_urls()) {
            for url in [parse_url(&text), parse_url(&format!("http://h.test/{text}")), parse_url(&format!("https://{text}"))] {
                let Ok(url) = url else { continue };
                if !is_special(&url) {
                    continue;
                }
                let once = canonicalize(url.as_str());
                prop_assert!(once.is_ok(), "{url}: {once:?}");
                let once = once.unwrap();
                prop_assert_eq!(canonicalize(&once).ok(), Some(once.clone()), "{}", url);
                prop_assert_eq!(wire_fingerprint("GET", url.as_str()), wire_fingerprint("GET", &once));
                // The key of the seen set is one value, however often a URL is written and read.
                let again = parse_url(url.as_str()).unwrap();
                prop_assert_eq!(seen_key(&http::Method::GET, &url, b""), seen_key(&http::Method::GET, &again, b""));
            }
        }

        #[test]
        fn what_a_reference_gives_is_read_as_itself(base in near_urls(), text in near_urls()) {
            let base = parse_url(&format!("http://h.test/{base}")).unwrap();
            if let Ok(url) = join_url(&base, &text) {
                prop_assert_eq!(parse_url(url.as_str()).ok(), Some(url.clone()));
                prop_assert_eq!(join_url(&base, url.as_str()).ok(), Some(url));
            }
        }
    }
}
