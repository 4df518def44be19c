//! Merges what a request is made of: base headers, the lease's credential, the spider's own words.
//!
//! Precedence per header and per query name: base headers < credential < what the spider set. Cookies are
//! merged in [`super::cookies`]. Headers that only the client may set are dropped from every source.

use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName};
use secrecy::ExposeSecret;
use url::Url;

use crate::plane::Credential;

/// The headers of a request, `Cookie` left out.
pub(crate) fn headers(base: &HeaderMap, credential: &HeaderMap, own: Option<&HeaderMap>) -> HeaderMap {
    let mut merged = base.clone();
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

/// Takes the credential's query parameters out of a URL that came from outside, such as a redirect that
/// repeats them: they are merged again at the next hop, and must not stand in queue, records and logs.
pub(crate) fn without_granted_query(url: &mut Url, credential: &Credential) {
    let Some(query) = url.query() else { return };
    if credential.query.is_empty() {
        return;
    }
    let granted = |pair: &&str| {
        url::form_urlencoded::parse(pair.as_bytes())
            .next()
            .is_some_and(|(name, value)| credential.query.iter().any(|(n, v)| *n == name && v.expose_secret() == value))
    };
    if !query.split('&').any(|pair| granted(&pair)) {
        return;
    }
    let kept: Vec<&str> = query.split('&').filter(|pair| !granted(pair)).collect();
    let kept = (!kept.is_empty()).then(|| kept.join("&"));
    url.set_query(kept.as_deref());
}

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
    [COOKIE, HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING].contains(name)
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
    fn several_values_of_one_name_stay_together() {
        let merged = headers(&map(&[("a", "0")]), &map(&[("a", "1"), ("a", "2"), ("b", "3")]), None);
        assert_eq!(merged.get_all("a").iter().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn headers_of_the_client_are_dropped() {
        let own = map(&[("content-length", "7"), ("host", "x"), ("connection", "close"), ("cookie", "a=b"), ("x", "y")]);
        assert_eq!(headers(&HeaderMap::new(), &own, Some(&own)).keys().collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn the_urls_own_query_name_wins_over_the_credentials() {
        let credential =
            Credential { query: vec![("key".into(), "canary".into()), ("page".into(), "9".into())], ..Credential::default() };
        let mut url = Url::parse("https://shop.example/a?page=1#f").unwrap();
        query(&mut url, &credential);
        assert_eq!(url.as_str(), "https://shop.example/a?page=1&key=canary#f");
        without_granted_query(&mut url, &credential);
        assert_eq!(url.as_str(), "https://shop.example/a?page=1#f");
    }

    #[test]
    fn only_a_granted_value_is_taken_out_of_a_url() {
        let credential = Credential { query: vec![("key".into(), "can ary".into())], ..Credential::default() };
        for (from, to) in [
            ("http://a.example/?key=can+ary", "http://a.example/"),
            ("http://a.example/?x=1&key=can%20ary&y=%7e", "http://a.example/?x=1&y=%7e"),
            ("http://a.example/?key=other&&", "http://a.example/?key=other&&"),
            ("http://a.example/", "http://a.example/"),
        ] {
            let mut url = Url::parse(from).unwrap();
            without_granted_query(&mut url, &credential);
            assert_eq!(url.as_str(), to);
        }
    }
}
