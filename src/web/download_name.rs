//! A name for a downloaded file, from what the server says and from its URL (RFC 6266, 4.3).
//!
//! The result is one path component: no directory, no control character, never `.` or `..`, at most [`LONGEST`] bytes.
//! Whether a file of that name is there already, and names that one system reserves, are for whoever writes it.

use url::Url;

use super::content_disposition::ContentDisposition;
use super::percent::escape;

/// Most bytes of a name: what file systems take.
pub const LONGEST: usize = 255;

/// Most bytes of what is kept as the extension of a name that is cut.
const LONGEST_EXTENSION: usize = 32;

/// The name where neither header nor URL gives one.
const NAMELESS: &str = "download";

/// The name under which a body may be kept: that of its `Content-Disposition`, else the last segment of its URL's path.
#[must_use]
pub fn download_name(disposition: Option<&[u8]>, url: &Url) -> String {
    let given = disposition.and_then(|value| {
        let read = ContentDisposition::from_bytes(value);
        if read.filename().is_none() && read.kind().starts_with("filename") {
            // The type was left out.
            let read = ContentDisposition::from_bytes(&[b";", value].concat());
            return component(read.filename()?);
        }
        component(read.filename()?)
    });
    given.or_else(|| of_path(url)).unwrap_or_else(|| NAMELESS.to_owned())
}

fn of_path(url: &Url) -> Option<String> {
    let last = url.path_segments()?.next_back()?;
    let mut bytes = Vec::with_capacity(last.len());
    let mut rest = last.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match escape(after).filter(|_| *byte == b'%') {
            Some((value, beyond)) => {
                bytes.push(value);
                rest = beyond;
            }
            None => bytes.push(*byte),
        }
    }
    component(&String::from_utf8_lossy(&bytes))
}

/// The last component of a path in either spelling, if anything of it can be a name.
fn component(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter(|c| !c.is_control() && !turns_text(*c)).collect();
    let clean = clean.trim();
    (!matches!(clean, "" | "." | "..")).then(|| cut(clean))
}

/// Characters that turn the direction of a text, so that `exe.txt` may be shown for `txt.exe`.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cuts a long name before its extension.
fn cut(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let (stem, extension) = match name.rfind('.').and_then(|at| name.split_at_checked(at)) {
        Some((stem, extension)) if extension.len() <= LONGEST_EXTENSION => (stem, extension),
        _ => (name, ""),
    };
    let mut end = (LONGEST - extension.len()).min(stem.len());
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{extension}", stem.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_value_of_the_collection_is_named() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_download_name.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 25);
        for case in cases {
            let url = Url::parse(case["url"].as_str().unwrap()).unwrap();
            let ours = download_name(Some(case["value"].as_str().unwrap().as_bytes()), &url);
            assert_eq!(Some(ours.as_str()), case["expected_name"].as_str(), "{case}");
        }
    }

    #[test]
    fn a_url_without_a_name_gives_a_plain_one() {
        for (url, name) in [
            ("https://a.test/", "download"),
            ("https://a.test/a/b%2F..%2Fc%20d.pdf?x=/y.txt#z", "c d.pdf"),
            ("https://a.test/a/%2e%2e%2f", "download"),
            ("data:text/plain,x", "download"),
            ("https://a.test/%e4.txt", "\u{fffd}.txt"),
            ("https://a.test/txt.%E2%80%AEexe", "txt.exe"),
        ] {
            assert_eq!(download_name(None, &Url::parse(url).unwrap()), name, "{url}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_extension() {
        let url = Url::parse("https://a.test/").unwrap();
        let named = |name: String| download_name(Some(format!("attachment; filename=\"{name}\"").as_bytes()), &url);
        let long = named(format!("{}.pdf", "ä".repeat(300)));
        assert!(long.len() <= LONGEST && long.len() >= LONGEST - 1 && long.ends_with("ä.pdf"), "{}", long.len());
        assert_eq!(named(format!("a.{}", "x".repeat(400))).len(), LONGEST);
    }

    proptest! {
        #[test]
        fn a_name_is_one_component_whatever_is_said(value in proptest::collection::vec(any::<u8>(), 0..80), path in "\\PC{0,40}") {
            let url = Url::parse("https://a.test/").unwrap().join(&path).unwrap_or_else(|_| Url::parse("https://a.test/").unwrap());
            for value in [value.clone(), [&b"attachment; filename="[..], &value].concat()] {
                let name = download_name(Some(&value), &url);
                prop_assert!(!name.contains(['/', '\\', '\0', '\n']) && !matches!(name.as_str(), "" | "." | ".."), "{:?}", name);
                prop_assert!(name.len() <= LONGEST);
            }
        }
    }
}
