//! Reads a `Location` header as browsers do.
//!
//! Works on the raw bytes: a header that is not UTF-8 must be followed too, with its bytes percent-encoded as received.

use url::Url;

use super::error::{UrlError, shown};
use super::percent::push_escape;
use super::reference::join_url;

/// Resolves the `Location` of a response against the URL that answered.
///
/// White space around the value is dropped. A target without a fragment inherits that of `base` (RFC 9110 10.2.2).
///
/// # Errors
/// [`UrlError::Empty`] for a blank value, [`UrlError::Syntax`] for one that the URL standard cannot read.
pub fn resolve_location(base: &Url, raw: &[u8]) -> Result<Url, UrlError> {
    let trimmed = raw.trim_ascii();
    if trimmed.is_empty() {
        return Err(UrlError::Empty { base: shown(base.as_str()) });
    }
    let mut target = match std::str::from_utf8(trimmed) {
        Ok(text) => join(base, text)?,
        Err(_) => join(base, &escaped_bytes(trimmed))?,
    };
    if target.fragment().is_none() {
        target.set_fragment(base.fragment());
    }
    Ok(target)
}

fn join(base: &Url, text: &str) -> Result<Url, UrlError> {
    join_url(base, text).map_err(|source| UrlError::Syntax { url: shown(text), source })
}

fn escaped_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 16);
    for &byte in bytes {
        if byte.is_ascii() {
            out.push(char::from(byte));
        } else {
            push_escape(&mut out, byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn resolved(base: &str, raw: &[u8]) -> String {
        resolve_location(&Url::parse(base).unwrap(), raw).unwrap().into()
    }

    #[test]
    fn raw_bytes_are_encoded_as_received() {
        assert_eq!(resolved("http://a.test/u", b"/caf\xc3\xa9"), "http://a.test/caf%C3%A9");
        assert_eq!(resolved("http://a.test/l", b"/caf\xe9"), "http://a.test/caf%E9");
        assert_eq!(resolved("http://a.test/l", b"/?q=caf\xe9"), "http://a.test/?q=caf%E9");
    }

    #[test]
    fn three_slashes_name_a_host() {
        assert_eq!(resolved("http://a.test/p", b"///b.test/new/1/"), "http://b.test/new/1/");
        assert_eq!(resolved("https://a.test/p", br"\/\/b.test/"), "https://b.test/");
        assert_eq!(resolved("http://a.test/p", b"//b.test//x"), "http://b.test//x");
    }

    #[test]
    fn white_space_around_the_value_is_dropped() {
        assert_eq!(resolved("http://a.test/", b" http://a.test/x \t"), "http://a.test/x");
        assert_eq!(resolved("http://a.test/", b"/x\n"), "http://a.test/x");
    }

    #[test]
    fn characters_outside_the_grammar_are_encoded() {
        assert_eq!(resolved("http://a.test/", "/?m=TWO WORDS&x=é".as_bytes()), "http://a.test/?m=TWO%20WORDS&x=%C3%A9");
        assert_eq!(resolved("http://a.test/", b"/up/my file 1.jpg"), "http://a.test/up/my%20file%201.jpg");
        assert_eq!(resolved("http://a.test/", b"/search?q=top-1||1|60&Fr=4"), "http://a.test/search?q=top-1||1|60&Fr=4");
    }

    #[test]
    fn the_fragment_is_inherited_unless_the_target_has_one() {
        assert_eq!(resolved("http://a.test/a#top", b"/b"), "http://a.test/b#top");
        assert_eq!(resolved("http://a.test/a#top", b"/b#end"), "http://a.test/b#end");
        assert_eq!(resolved("http://a.test/a#top", b"/b#"), "http://a.test/b#");
    }

    #[test]
    fn a_blank_or_broken_value_is_an_error() {
        let base = Url::parse("http://a.test/").unwrap();
        assert!(matches!(resolve_location(&base, b"  "), Err(UrlError::Empty { .. })));
        assert!(matches!(resolve_location(&base, b"http://[zz]/"), Err(UrlError::Syntax { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(raw in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = resolve_location(&Url::parse("http://a.test/x?y#z").unwrap(), &raw);
        }
    }
}
