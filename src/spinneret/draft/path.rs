//! The part of a URI that a report tells: its path.

/// The most characters of a path on the wire.
const MOST: usize = 2048;

/// The path of a URL (`http` or `https`, in any case), or what comes before the query of anything else; percent-encoding
/// stays as it is. Nothing becomes nothing, no path becomes `/`.
pub(crate) fn of(uri: &str) -> String {
    if uri.is_empty() {
        return String::new();
    }
    let path = match after_scheme(uri) {
        Some(rest) => rest.find(['/', '?', '#']).and_then(|end| rest.get(end..)).unwrap_or_default(),
        None => uri,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if path.is_empty() { "/".to_owned() } else { path.chars().take(MOST).collect() }
}

fn after_scheme(uri: &str) -> Option<&str> {
    ["http://", "https://"].into_iter().find_map(|scheme| {
        let (start, rest) = uri.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b076_a_uri_is_reduced_to_its_path() {
        for (uri, path) in [
            ("/feed?page=2", "/feed"),
            ("https://h/x/y?q=1#f", "/x/y"),
            ("http://h", "/"),
            ("?only=query", "/"),
            ("", ""),
            ("#f", "/"),
            ("/a#b?c", "/a"),
            ("/a?b#c?d", "/a"),
            ("HTTPS://H/x?y", "/x"),
            ("hTTp://h?q=/x", "/"),
            ("http://h#/x", "/"),
            ("http://user:pass@h:8080/x%2Fy/%C3%A9;v=1", "/x%2Fy/%C3%A9;v=1"),
            ("http://", "/"),
            ("http:/h/x?q", "http:/h/x"),
            ("feed/é?x", "feed/é"),
            ("/go/http://other/?x", "/go/http://other/"),
        ] {
            assert_eq!(of(uri), path, "{uri}");
        }
        assert_eq!(of(&format!("/{}", "x".repeat(5000))).len(), 2048);
        assert_eq!(of(&format!("/{}", "é".repeat(5000))).chars().count(), 2048, "characters, not bytes");
    }

    proptest! {
        #[test]
        fn a_path_is_bounded_has_no_query_and_stays_itself(uri in "(?s)((?i)https?://)?[a-z:@.]{0,8}([/?#]\\PC{0,30}){0,4}|.{0,60}") {
            let path = of(&uri);
            prop_assert_eq!(path.is_empty(), uri.is_empty());
            prop_assert!(!path.contains(['?', '#']));
            prop_assert!(path.chars().count() <= 2048);
            if let Some(rest) = after_scheme(&uri) {
                prop_assert!(path.starts_with('/'));
                prop_assert!(path == "/" || rest.contains(&path));
                prop_assert_eq!(of(&path), path.clone());
            }
        }
    }
}
