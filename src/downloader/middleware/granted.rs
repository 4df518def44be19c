//! Takes the query values of a credential out of URLs that came from outside: a `Location` or a link that repeats them.
//!
//! Granted parameters are merged anew at every hop and must not stand in queue, records and logs. A granted *name* with
//! another value stays, and so do bodies: what a page says of itself is the site's own affair. A value hidden by more
//! than percent-encoding (hashed, in base64) is not found.

use std::borrow::Cow;

use http::header::{CONTENT_LOCATION, LINK, LOCATION, REFRESH};
use http::{HeaderMap, HeaderValue};
use secrecy::ExposeSecret;
use url::{Url, form_urlencoded};

use crate::api::lease::LeaseView;
use crate::plane::Credential;
use crate::web::location::resolve_location;

/// Bytes from which a value is taken for a secret wherever it stands. A shorter one (`en`, `mobile`) may be anything in
/// another place; it is taken out only beside its own name.
const SECRET_FROM: usize = 8;

/// Layers of percent-encoding that are looked through.
const LAYERS: usize = 3;

/// A URL repeats a granted value where it cannot be taken out: in path, host or user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound;

/// Takes every granted value out of a URL: whole query parameters and the fragment.
///
/// # Errors
/// [`Bound`] when it stands in another part; the URL must be shown to nobody then.
pub(crate) fn clear(url: &mut Url, credential: &Credential) -> Result<(), Bound> {
    if credential.query.is_empty() {
        return Ok(());
    }
    if let Some(query) = url.query() {
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_granted(pair, credential)).collect();
        // What holds nothing is left as it is written, empty pairs included.
        if kept.len() < query.split('&').count() {
            let kept = (!kept.is_empty()).then(|| kept.join("&"));
            url.set_query(kept.as_deref());
        }
    }
    if url.fragment().is_some_and(|fragment| holds(fragment, credential)) {
        url.set_fragment(None);
    }
    if holds(url.as_str(), credential) || is_in_host(url, credential) { Err(Bound) } else { Ok(()) }
}

impl LeaseView {
    /// Takes what a page repeats of the lease's query out of a URL found there: under another lease it would go before that
    /// one's own, and in queue and records it would be seen. On another host only what is long enough for a secret.
    pub(crate) fn clear(&self, url: &mut Url, page: &Url) {
        if url.host() == page.host() || holds(url.as_str(), &self.credential) {
            // In a path it stays: without it the URL would be another one.
            let _ = clear(url, &self.credential);
        }
    }
}

/// Hosts are written in lower case, whatever was given.
fn is_in_host(url: &Url, credential: &Credential) -> bool {
    let Some(host) = url.host_str() else { return false };
    let mut secrets = credential.query.iter().map(|(_, value)| value.expose_secret()).filter(|v| v.len() >= SECRET_FROM);
    secrets.any(|secret| host.contains(&secret.to_ascii_lowercase()))
}

/// Whether a text has a secret value of the credential in it, percent-encoded or not.
pub(crate) fn holds(text: &str, credential: &Credential) -> bool {
    let mut secrets =
        credential.query.iter().map(|(_, value)| value.expose_secret()).filter(|v| v.len() >= SECRET_FROM).peekable();
    if secrets.peek().is_none() {
        return false;
    }
    let layers = layers(text);
    secrets.any(|secret| layers.iter().any(|layer| memchr::memmem::find(layer, secret.as_bytes()).is_some()))
}

/// Rewrites the headers of an answer that name another URL, if they repeat a granted value. One whose value cannot be
/// taken out of its URL goes, and so does one of several URLs that repeats one. `base` is the URL that answered.
pub(crate) fn clear_headers(headers: &mut HeaderMap, base: &Url, credential: &Credential) {
    if credential.query.is_empty() {
        return;
    }
    for name in [LINK, REFRESH] {
        if headers.get_all(&name).iter().any(|value| holds(&String::from_utf8_lossy(value.as_bytes()), credential)) {
            headers.remove(name);
        }
    }
    for name in [LOCATION, CONTENT_LOCATION] {
        let Some(value) = headers.get(&name) else { continue };
        let Ok(found) = resolve_location(base, value.as_bytes()) else {
            if holds(&String::from_utf8_lossy(value.as_bytes()), credential) {
                headers.remove(name);
            }
            continue;
        };
        let mut cleared = found.clone();
        let is_clear = clear(&mut cleared, credential).is_ok();
        if is_clear && cleared == found {
            continue;
        }
        match HeaderValue::from_str(cleared.as_str()) {
            Ok(value) if is_clear => _ = headers.insert(name, value),
            _ => _ = headers.remove(name),
        }
    }
}

/// Whether a pair of a query is a granted one, or has a granted value in it.
fn is_granted(pair: &str, credential: &Credential) -> bool {
    let is_repeated = form_urlencoded::parse(pair.as_bytes())
        .next()
        .is_some_and(|(name, value)| credential.query.iter().any(|(n, v)| *n == name && v.expose_secret() == value));
    is_repeated || holds(pair, credential)
}

/// A text as it stands and with each layer of percent-encoding undone, `+` as itself and as a blank.
fn layers(text: &str) -> Vec<Cow<'_, [u8]>> {
    let mut layers = vec![Cow::Borrowed(text.as_bytes())];
    for _ in 0..LAYERS {
        let Some(last) = layers.last() else { break };
        let decoded = undone(last);
        if decoded.as_slice() == last.as_ref() {
            break;
        }
        layers.push(Cow::Owned(decoded));
    }
    let blanks: Vec<_> = layers.iter().filter(|layer| layer.contains(&b'+')).map(|layer| with_blanks(layer)).collect();
    layers.extend(blanks);
    layers
}

fn undone(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%'
            && let [high, low, beyond @ ..] = after
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            out.push(high << 4 | low);
            rest = beyond;
        } else {
            out.push(*first);
        }
    }
    out
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// In a form a blank is written `+`, and a plus sign `%2B`: the blanks come first.
fn with_blanks(text: &[u8]) -> Cow<'static, [u8]> {
    let blank: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(undone(&blank))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn credential(value: &str) -> Credential {
        Credential { query: vec![("key".into(), value.into()), ("lang".into(), "en".into())], ..Credential::default() }
    }

    fn cleared(url: &str, value: &str) -> Option<String> {
        let mut url = Url::parse(url).unwrap();
        clear(&mut url, &credential(value)).ok().map(|()| url.into())
    }

    #[test]
    fn a_granted_value_is_taken_out_wherever_a_query_or_a_fragment_has_it() {
        for (from, to) in [
            ("http://a.example/?key=canary+value", "http://a.example/"),
            ("http://a.example/?x=1&key=canary%20value&y=%7e", "http://a.example/?x=1&y=%7e"),
            ("http://a.example/?token=canary+value&y=1", "http://a.example/?y=1"),
            ("http://a.example/?next=%2Fp%3Fkey%3Dcanary%2520value", "http://a.example/"),
            ("http://a.example/?next=%2Fp%3Fkey%3D%63anary%2Bvalue", "http://a.example/"),
            ("http://a.example/?canary%20value", "http://a.example/"),
            ("http://a.example/p#key=canary%20value", "http://a.example/p"),
            ("http://a.example/p?q=2#key=%2563anary%2520value", "http://a.example/p?q=2"),
            ("http://a.example/?lang=en&p=2", "http://a.example/?p=2"),
        ] {
            assert_eq!(cleared(from, "canary value").as_deref(), Some(to), "{from}");
        }
    }

    #[test]
    fn a_granted_name_with_another_value_and_a_short_value_elsewhere_stay() {
        for url in [
            "http://a.example/?key=other&&",
            "http://a.example/?hl=en&key=",
            "http://a.example/en/?lang=de#en",
            "http://a.example/canary/value",
            "http://a.example/",
        ] {
            assert_eq!(cleared(url, "canary value").as_deref(), Some(url));
        }
    }

    #[test]
    fn a_granted_value_in_a_path_or_a_host_cannot_be_taken_out() {
        for url in [
            "http://a.example/s/canary-value/x",
            "http://a.example/s/%63anary%2Dvalue",
            "http://a.example/s;key=canary%252Dvalue/x?y=1",
            "http://canary-value.a.example/",
            "http://canary-value@a.example/",
        ] {
            assert_eq!(cleared(url, "canary-value"), None, "{url}");
        }
    }

    #[test]
    fn odd_characters_of_a_value_are_found_in_each_spelling() {
        let value = "a+b/c=d%e ü";
        let form: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        let twice: String = form_urlencoded::byte_serialize(form.as_bytes()).collect();
        for text in [form.as_str(), twice.as_str(), "a%2bb%2Fc%3Dd%25e%20%C3%BC"] {
            assert!(holds(text, &credential(value)), "{text}");
        }
        assert!(!holds("a+b/c", &credential(value)));
    }

    #[test]
    fn headers_that_name_a_url_are_rewritten_or_go() {
        let base = Url::parse("http://a.example/x").unwrap();
        let with = |location: &str| {
            let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(location).unwrap())]);
            clear_headers(&mut headers, &base, &credential("canary-value"));
            headers.get(LOCATION).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(with("/y?p=1").as_deref(), Some("/y?p=1"), "what holds nothing stays as it is written");
        assert_eq!(with("/y?t=canary-value&p=1").as_deref(), Some("http://a.example/y?p=1"));
        assert_eq!(with("/y/canary-value"), None);
        assert_eq!(with("http://[zz]/canary-value"), None);
        assert_eq!(with("http://[zz]/").as_deref(), Some("http://[zz]/"));
    }

    #[test]
    fn a_value_in_a_host_is_found_in_lower_case() {
        assert_eq!(cleared("https://a-CaNaRy-Value.evil.example/", "CaNaRy-Value"), None);
        assert!(cleared("https://a-canary.evil.example/", "CaNaRy-Value").is_some());
    }

    #[test]
    fn headers_of_several_urls_go_if_one_repeats_a_value() {
        for (value, stays) in [("</y?p=2>; rel=next", true), ("</y?p=2&key=canary%2Dvalue>; rel=next", false)] {
            let mut headers = HeaderMap::new();
            headers.append(LINK, HeaderValue::from_static("</>; rel=up"));
            headers.append(LINK, HeaderValue::from_static(value));
            headers.insert(REFRESH, HeaderValue::from_static("3"));
            clear_headers(&mut headers, &Url::parse("http://a.example/x").unwrap(), &credential("canary-value"));
            assert_eq!((headers.contains_key(LINK), headers.contains_key(REFRESH)), (stays, true), "{value}");
        }
    }
}
