//! Merges what a request is made of: base headers, the lease's credential, the spider's own words.
//!
//! Precedence per header and per query name: base headers < credential < what the spider set. Cookies are
//! merged in [`super::cookies`]. Headers that only the client may set are dropped from every source; a proxy's
//! credential comes with its URL and never from here.

use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName};
use secrecy::ExposeSecret;
use url::Url;

use crate::plane::Credential;

/// The headers of a request, `Cookie` left out.
pub(crate) fn headers(base: &HeaderMap, credential: &HeaderMap, own: Option<&HeaderMap>) -> HeaderMap {
    let mut merged = base.clone();
    for name in RESERVED {
        merged.remove(name);
    }
    overlay(&mut merged, credential, Secrecy::Secret);
    if let Some(own) = own {
        overlay(&mut merged, own, Secrecy::AsGiven);
    }
    merged
}

/// Adds the credential's query parameters whose names the spider's URL does not have.
pub(crate) fn query(url: &mut Url, credential: &Credential) {
    if credential.query.is_empty() {
        return;
    }
    let added: Vec<_> =
        credential.query.iter().filter(|(name, _)| !url.query_pairs().any(|(present, _)| present == name.as_str())).collect();
    if added.is_empty() {
        return;
    }
    let mut pairs = url.query_pairs_mut();
    for (name, value) in added {
        pairs.append_pair(name, value.expose_secret());
    }
}

/// Merged elsewhere, or the client's to set.
const RESERVED: [HeaderName; 6] = [COOKIE, HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING, PROXY_AUTHORIZATION];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    AsGiven,
    Secret,
}

/// Replaces headers of `below` by those of `above` with the same name, keeping several values of one name.
fn overlay(below: &mut HeaderMap, above: &HeaderMap, secrecy: Secrecy) {
    let mut last: Option<&HeaderName> = None;
    for (name, value) in above {
        if is_reserved(name) {
            continue;
        }
        let mut value = value.clone();
        if secrecy == Secrecy::Secret {
            value.set_sensitive(true);
        }
        if last == Some(name) {
            below.append(name, value);
        } else {
            below.insert(name, value);
            last = Some(name);
        }
    }
}

fn is_reserved(name: &HeaderName) -> bool {
    RESERVED.contains(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use http::HeaderValue;

    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn each_level_wins_over_the_one_below_it_by_name() {
        let base = map(&[("accept", "base"), ("user-agent", "base"), ("accept-language", "en")]);
        let credential = map(&[("user-agent", "grant"), ("x-token", "grant"), ("x-device", "grant")]);
        let own = map(&[("x-device", "own"), ("accept", "own")]);
        let merged = headers(&base, &credential, Some(&own));
        for (name, value) in
            [("accept", "own"), ("user-agent", "grant"), ("accept-language", "en"), ("x-token", "grant"), ("x-device", "own")]
        {
            assert_eq!(merged[name], value, "{name}");
        }
        assert!(merged["x-token"].is_sensitive() && !merged["x-device"].is_sensitive());
    }

    #[test]
    fn a_granted_header_goes_before_a_default_one() {
        let merged = headers(&map(&[("user-agent", "base")]), &map(&[("User-Agent", "grant")]), None);
        assert_eq!(merged.get_all("USER-AGENT").iter().collect::<Vec<_>>(), ["grant"]);
    }

    #[test]
    fn the_requests_own_header_goes_before_a_granted_one() {
        let merged = headers(&HeaderMap::new(), &map(&[("X-Device", "grant")]), Some(&map(&[("x-device", "own")])));
        assert_eq!(merged.get_all("x-DEVICE").iter().collect::<Vec<_>>(), ["own"]);
    }

    #[test]
    fn the_requests_own_header_goes_before_a_default_one() {
        let merged = headers(&map(&[("Accept", "base")]), &HeaderMap::new(), Some(&map(&[("accept", "own")])));
        assert_eq!(merged.get_all("ACCEPT").iter().collect::<Vec<_>>(), ["own"]);
    }

    #[test]
    fn the_requests_own_query_goes_before_a_granted_one() {
        let granted =
            Credential { query: vec![("lang".into(), "grant".into()), ("key".into(), "grant".into())], ..Credential::default() };
        let mut url = Url::parse("https://shop.example/a?lang=own&q=%7e+x").unwrap();
        query(&mut url, &granted);
        assert_eq!(url.query(), Some("lang=own&q=%7e+x&key=grant"), "what the spider wrote stays as it is written");
    }

    #[test]
    fn several_values_of_one_name_stay_together() {
        let merged = headers(&map(&[("a", "0")]), &map(&[("a", "1"), ("a", "2"), ("b", "3")]), None);
        assert_eq!(merged.get_all("a").iter().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn headers_of_the_client_are_dropped() {
        let own = map(&[
            ("content-length", "7"),
            ("host", "x"),
            ("connection", "close"),
            ("cookie", "a=b"),
            ("proxy-authorization", "z"),
            ("x", "y"),
        ]);
        assert_eq!(headers(&own, &own, Some(&own)).keys().collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn the_urls_own_query_name_wins_over_the_credentials() {
        let credential =
            Credential { query: vec![("key".into(), "canary".into()), ("page".into(), "9".into())], ..Credential::default() };
        let mut url = Url::parse("https://shop.example/a?page=1#f").unwrap();
        query(&mut url, &credential);
        assert_eq!(url.as_str(), "https://shop.example/a?page=1&key=canary#f");
    }
}
