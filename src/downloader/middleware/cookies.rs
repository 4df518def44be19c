//! Cookies: the merge of every source into one `Cookie` header.
//!
//! Precedence per name: default headers < credential < jar < what the spider set; after a redirect the jar goes before
//! the spider, since an answer on the way may have changed the cookie. Jars are kept in [`super::jars`].

use std::collections::HashSet;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use secrecy::ExposeSecret;

use crate::api::request::Request;
use crate::plane::Credential;

/// Where a request stands in a redirect chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leg {
    First,
    Redirected,
}

/// The `Cookie` header of a request; `None` when no source has one for it. `base` are the default headers.
pub(crate) fn merge(
    request: &Request,
    jar: Option<HeaderValue>,
    credential: &Credential,
    base: &HeaderMap,
    leg: Leg,
) -> Option<HeaderValue> {
    let by_hand = request.headers().filter(|headers| headers.contains_key(COOKIE));
    let has_granted = !credential.cookies.is_empty() || credential.headers.contains_key(COOKIE);
    if request.cookies().is_empty() && by_hand.is_none() && !has_granted && !base.contains_key(COOKIE) {
        return jar;
    }
    let mut line = Line::default();
    if leg == Leg::Redirected {
        line.level(jar.iter().flat_map(pairs), Twins::Keep);
    }
    line.level(request.cookies().iter().rev().map(|(name, value)| (name.as_bytes(), value.as_bytes())), Twins::Drop);
    line.level(by_hand.into_iter().flat_map(in_headers), Twins::Keep);
    if leg == Leg::First {
        line.level(jar.iter().flat_map(pairs), Twins::Keep);
    }
    line.level(in_map(credential), Twins::Keep);
    line.level(in_headers(&credential.headers), Twins::Keep);
    line.level(in_headers(base), Twins::Keep);
    line.finish()
}

/// The cookies a credential brings: those of its map, then those of its `Cookie` headers with other names.
pub(crate) fn granted(credential: &Credential) -> impl Iterator<Item = (&[u8], &[u8])> {
    let others = in_headers(&credential.headers)
        .filter(|(name, _)| !credential.cookies.iter().any(|(known, _)| known.as_bytes() == *name));
    in_map(credential).chain(others)
}

fn in_map(credential: &Credential) -> impl Iterator<Item = (&[u8], &[u8])> {
    credential.cookies.iter().map(|(name, value)| (name.as_bytes(), value.expose_secret().as_bytes()))
}

fn in_headers(headers: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    headers.get_all(COOKIE).into_iter().flat_map(pairs)
}

/// Whether one level may have several cookies of one name (a jar may: by path).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twins {
    Keep,
    Drop,
}

/// A `Cookie` value under construction.
#[derive(Default)]
struct Line<'a> {
    text: Vec<u8>,
    taken: HashSet<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// Adds the cookies whose names no level before had.
    fn level(&mut self, cookies: impl Iterator<Item = (&'a [u8], &'a [u8])>, twins: Twins) {
        let mut here = Vec::new();
        for (name, value) in cookies {
            // A separator or a control character inside would make one cookie look like two.
            let is_sound = name.iter().chain(value).all(|byte| *byte >= b' ' && *byte != b';' && *byte != 0x7f);
            if !is_sound || self.taken.contains(name) || (twins == Twins::Drop && here.contains(&name)) {
                continue;
            }
            here.push(name);
            if !self.text.is_empty() {
                self.text.extend_from_slice(b"; ");
            }
            // A nameless cookie is its value alone.
            if !name.is_empty() {
                self.text.extend_from_slice(name);
                self.text.push(b'=');
            }
            self.text.extend_from_slice(value);
        }
        self.taken.extend(here);
    }

    fn finish(self) -> Option<HeaderValue> {
        if self.text.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_bytes(&self.text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Names and values of a `Cookie` header; what has no equals sign is the value of a nameless cookie.
pub(super) fn pairs(header: &HeaderValue) -> impl Iterator<Item = (&[u8], &[u8])> {
    header.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()).map(|pair| {
        match memchr::memchr(b'=', pair) {
            Some(at) => {
                let (name, value) = pair.split_at(at);
                (name, value.get(1..).unwrap_or_default())
            }
            None => ([].as_slice(), pair),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn request(by_hand: Option<&str>, cookies: &[(&str, &str)]) -> Request {
        let mut request = Request::get("https://shop.example/", &()).unwrap();
        if let Some(text) = by_hand {
            request.header("cookie", text).unwrap();
        }
        for (name, value) in cookies {
            request.cookie(*name, *value);
        }
        request
    }

    #[test]
    fn each_level_wins_over_the_one_below_it_by_name() {
        let jar = || Some(HeaderValue::from_static("a=jar; b=jar; b=jar2"));
        let credential = |cookies: &[(&str, &str)]| Credential {
            cookies: cookies.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect(),
            ..Credential::default()
        };
        let table = [
            // (by hand, cookies, credential, merged)
            (None, vec![], vec![], "a=jar; b=jar; b=jar2"),
            (None, vec![("a", "own")], vec![], "a=own; b=jar; b=jar2"),
            (None, vec![("a", "first"), ("a", "own")], vec![], "a=own; b=jar; b=jar2"),
            (Some("b=hand"), vec![], vec![], "b=hand; a=jar"),
            (Some("a=hand"), vec![("a", "own")], vec![], "a=own; b=jar; b=jar2"),
            (None, vec![], vec![("a", "grant"), ("c", "grant")], "a=jar; b=jar; b=jar2; c=grant"),
            (None, vec![("c", "own")], vec![("c", "grant")], "c=own; a=jar; b=jar; b=jar2"),
        ];
        for (by_hand, cookies, granted, merged) in table {
            let value = merge(&request(by_hand, &cookies), jar(), &credential(&granted), &HeaderMap::new(), Leg::First).unwrap();
            assert_eq!(value, merged);
        }
        assert_eq!(merge(&request(None, &[]), None, &Credential::default(), &HeaderMap::new(), Leg::First), None);
        let own = request(None, &[("a", "own"), ("d", "own")]);
        let after_redirect = merge(&own, jar(), &Credential::default(), &HeaderMap::new(), Leg::Redirected);
        assert_eq!(after_redirect.unwrap(), "a=jar; b=jar; b=jar2; d=own");
    }

    #[test]
    fn a_nameless_cookie_stays_nameless() {
        let jar = HeaderValue::from_static("token; a=jar");
        let value = merge(&request(None, &[("a", "own")]), Some(jar), &Credential::default(), &HeaderMap::new(), Leg::First);
        assert_eq!(value.unwrap(), "a=own; token");
    }

    #[test]
    fn a_cookie_that_would_look_like_two_is_left_out() {
        let own = request(None, &[("a", "1; b=2"), ("c", "3")]);
        let value = merge(&own, None, &Credential::default(), &HeaderMap::new(), Leg::First);
        assert_eq!(value.unwrap(), "c=3");
    }

    fn base(cookie: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(cookie))])
    }

    fn credential(map: &[(&str, &str)], header: Option<&'static str>) -> Credential {
        Credential {
            headers: header.map(base).unwrap_or_default(),
            cookies: map.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
            ..Credential::default()
        }
    }

    fn merged(own: &Request, granted: &Credential, base: &HeaderMap) -> String {
        merge(own, None, granted, base, Leg::First).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_granted_cookie_goes_before_that_of_the_default_headers() {
        let granted = credential(&[("lang", "grant")], None);
        assert_eq!(merged(&request(None, &[]), &granted, &base("lang=base; theme=base")), "lang=grant; theme=base");
    }

    #[test]
    fn the_requests_own_cookie_goes_before_a_granted_one() {
        let granted = credential(&[("lang", "grant"), ("sid", "grant")], None);
        assert_eq!(merged(&request(None, &[("lang", "own")]), &granted, &HeaderMap::new()), "lang=own; sid=grant");
        assert_eq!(merged(&request(Some("lang=own"), &[]), &granted, &HeaderMap::new()), "lang=own; sid=grant");
    }

    #[test]
    fn the_requests_own_cookie_goes_before_that_of_the_default_headers() {
        let nothing = Credential::default();
        assert_eq!(merged(&request(None, &[("lang", "own")]), &nothing, &base("lang=base; theme=base")), "lang=own; theme=base");
    }

    #[test]
    fn a_credentials_cookie_header_merges_by_name_with_its_map() {
        let mut granted = credential(&[("sid", "map")], Some("sid=header; device=header"));
        granted.headers.append(COOKIE, HeaderValue::from_static("third=header"));
        assert_eq!(merged(&request(None, &[]), &granted, &HeaderMap::new()), "sid=map; device=header; third=header");
        assert_eq!(merged(&request(Some("device=own"), &[]), &granted, &HeaderMap::new()), "device=own; sid=map; third=header");
        assert_eq!(granted_names(&granted), ["sid", "device", "third"]);
    }

    fn granted_names(credential: &Credential) -> Vec<String> {
        super::granted(credential).map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    }
}
