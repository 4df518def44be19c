//! Where a cookie may go: host names, domain-match, path-match and the default path (RFC 6265bis 5.1.2 to 5.1.4).
//!
//! Text in, yes or no out. Which domains a site may name at all is the jar's question.

use std::net::IpAddr;

use url::{Host, Url};

/// The host of a Domain attribute as URLs write it: one leading dot dropped, lower case, IDNA in ASCII.
///
/// A text that no URL could have as its host is only lower-cased, so that it matches nothing.
pub(super) fn canonical_host(text: &str) -> String {
    let text = text.strip_prefix('.').unwrap_or(text);
    if text.is_ascii() && !text.starts_with('[') {
        return text.to_ascii_lowercase();
    }
    Host::parse(text).map_or_else(|_| text.to_lowercase(), |host| host.to_string())
}

/// Whether a host is the cookie's domain or lies below it. Both are canonical.
pub(super) fn domain_matches(host: &str, domain: &str) -> bool {
    if host == domain {
        return true;
    }
    host.strip_suffix(domain).is_some_and(|below| below.ends_with('.')) && !is_address(host)
}

/// Whether the path of a request lies within the path of a cookie.
pub(super) fn path_matches(request: &str, cookie: &str) -> bool {
    match request.strip_prefix(cookie) {
        Some(rest) => rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

/// The path of a cookie that names none: the folder of the page that set it.
pub(super) fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(at) if at > 0 && path.starts_with('/') => path.get(..at).unwrap_or("/"),
        _ => "/",
    }
}

/// Whether cookies for encrypted connections may come from and go to this URL.
pub(super) fn is_secure(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "wss")
}

/// The path of a URL as cookies see it.
pub(super) fn path_of(url: &Url) -> &str {
    Some(url.path()).filter(|path| path.starts_with('/')).unwrap_or("/")
}

fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    inner.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_match_of_the_collection_is_decided() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/cookie_matching.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 96);
        let mut wrong = Vec::new();
        for case in cases {
            let text = |name: &str| case[name].as_str().unwrap();
            let ours = match text("kind") {
                "domain_match" => {
                    Value::Bool(domain_matches(&canonical_host(text("host")), &canonical_host(text("cookie_domain"))))
                }
                "path_match" => Value::Bool(path_matches(text("request_path"), text("cookie_path"))),
                "default_path" => Value::from(default_path(text("uri_path"))),
                // The collection prints IPv6 addresses without the brackets that URLs have.
                "canonical_domain" => Value::from(canonical_host(text("input")).trim_matches(['[', ']'])),
                other => panic!("{other}"),
            };
            if ours != case["expected"] {
                wrong.push(format!("{case}: {ours}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    proptest! {
        #[test]
        fn a_host_that_matches_ends_in_the_domain_at_a_label(host in "[a-c.]{0,12}", domain in "[a-c.]{0,6}") {
            if domain_matches(&host, &domain) {
                let is_below = host.ends_with(&format!(".{domain}"));
                prop_assert!(host == domain || is_below, "{} {}", host, domain);
            }
        }

        #[test]
        fn a_default_path_matches_the_page_that_set_it(path in "(/[ab/]{0,8})?") {
            let request = if path.is_empty() { "/" } else { &path };
            prop_assert!(path_matches(request, default_path(&path)));
        }
    }
}
