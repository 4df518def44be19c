//! The path of a URI as the rules see it: raw, never decoded, never normalised (wire contract, section 18).

/// The longest URI and the longest path, in bytes.
const MAX_URI: usize = 2048;

/// The longest authority, in bytes.
const MAX_AUTHORITY: usize = 1024;

/// A text that has no path to match (reason `uri_invalid`). Never quotes the text: a query may hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum UriError {
    /// Neither a path nor an absolute URL.
    #[error("the uri is neither a path that starts with / nor a URL that starts with http:// or https://")]
    Form,
    /// Longer than allowed.
    #[error("the uri has {0} bytes; allowed: at most {MAX_URI}")]
    TooLong(usize),
    /// A URL without a host.
    #[error("the uri names no host; write it as https://host/path, or the path alone")]
    NoHost,
    /// A host that cannot be one.
    #[error("the host of the uri has {0} bytes; allowed: at most {MAX_AUTHORITY}")]
    HostTooLong(usize),
    /// A control character or white space.
    #[error("the uri has a control character or white space in its path or host; percent-encode it")]
    Space,
}

/// The path of a path or an absolute `http(s)` URL, without query and fragment; an empty one is `/`.
pub(crate) fn path_of(uri: &str) -> Result<&str, UriError> {
    if uri.len() > MAX_URI {
        return Err(UriError::TooLong(uri.len()));
    }
    let path = if uri.starts_with('/') { uri } else { after_host(uri)? };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if has_space(path) {
        return Err(UriError::Space);
    }
    Ok(if path.is_empty() { "/" } else { path })
}

/// Whether a text has a character that a raw path never has.
pub(super) fn has_space(text: &str) -> bool {
    text.chars().any(|character| character.is_control() || character.is_whitespace())
}

fn after_host(uri: &str) -> Result<&str, UriError> {
    let rest = ["http://", "https://"]
        .into_iter()
        .find_map(|scheme| {
            let (start, rest) = uri.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        })
        .ok_or(UriError::Form)?;
    let (host, path) = rest.split_at_checked(rest.find(['/', '?', '#']).unwrap_or(rest.len())).unwrap_or((rest, ""));
    if host.is_empty() {
        return Err(UriError::NoHost);
    }
    if host.len() > MAX_AUTHORITY {
        return Err(UriError::HostTooLong(host.len()));
    }
    if has_space(host) {
        return Err(UriError::Space);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_path_is_what_stands_between_host_and_query() {
        for (uri, path) in [
            ("/", "/"),
            ("/feed?page=2", "/feed"),
            ("/feed#top", "/feed"),
            ("/a?b#c", "/a"),
            ("/a#b?c", "/a"),
            ("//host/x", "//host/x"),
            ("/?q=a b", "/"),
            ("/a/../b/./c/", "/a/../b/./c/"),
            ("/%41%2f", "/%41%2f"),
            ("/größe", "/größe"),
            ("https://h/search/x", "/search/x"),
            ("HTTPS://H/X", "/X"),
            ("hTTp://h", "/"),
            ("http://h?q", "/"),
            ("http://h#f", "/"),
            ("http://user:pw@h:80/x?y=1#f", "/x"),
            ("https://h/x?y=z w", "/x"),
            ("http://h//x", "//x"),
        ] {
            assert_eq!(path_of(uri), Ok(path), "{uri}");
        }
    }

    #[test]
    fn b131_a_uri_without_a_path_is_invalid() {
        for (uri, error) in [
            ("search", UriError::Form),
            ("", UriError::Form),
            ("?q=1", UriError::Form),
            ("ftp://h/x", UriError::Form),
            ("http:/h/x", UriError::Form),
            ("http:", UriError::Form),
            ("ü", UriError::Form),
            ("http://", UriError::NoHost),
            ("https:///x", UriError::NoHost),
            ("http://?x", UriError::NoHost),
            ("/a b", UriError::Space),
            (" /a", UriError::Form),
            ("/a\u{7f}", UriError::Space),
            ("/a\u{a0}", UriError::Space),
            ("/a\u{2028}", UriError::Space),
            ("/a\u{85}", UriError::Space),
            ("/a\n", UriError::Space),
            ("http://a b/x", UriError::Space),
            ("http://h/a b", UriError::Space),
        ] {
            assert_eq!(path_of(uri), Err(error), "{uri:?}");
        }
        let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        assert!(path_of(&path(2048)).is_ok());
        assert_eq!(path_of(&path(2049)), Err(UriError::TooLong(2049)));
        let url = |host: usize| format!("http://{}/x", "h".repeat(host));
        assert_eq!(path_of(&url(1024)), Ok("/x"));
        assert_eq!(path_of(&url(1025)), Err(UriError::HostTooLong(1025)));
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_a_path_is_clean(text in "\\PC{0,40}|[/?#: a-z]{0,30}|https?://\\PC{0,30}") {
            if let Ok(path) = path_of(&text) {
                prop_assert!(path.starts_with('/') && !path.contains(['?', '#']) && !has_space(path));
                prop_assert_eq!(path_of(path), Ok(path));
            }
        }
    }
}
