//! `Link` header fields (RFC 8288, 3 and appendix B): next pages, canonical addresses, alternates.
//!
//! Lenient as the RFC asks of readers: what is damaged costs itself and nothing else. Follows nothing.

use url::Url;

use super::ext_value;
use super::location::resolve_location;

/// Attributes of one link that are read.
const MOST: usize = 64;

/// One link of a `Link` header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderLink {
    /// Where it leads, absolute.
    pub url: Url,
    /// Its relation types, registered ones in lower case; none when it names none.
    pub rel: Vec<String>,
    /// What it is a link from, when that is not the response's own URL (`anchor`).
    pub anchor: Option<Url>,
    /// Other attributes, names in lower case, in order; only `hreflang` may stand there more than once.
    pub params: Vec<(String, String)>,
}

impl HeaderLink {
    /// Whether it has this relation type, in any case.
    #[must_use]
    pub fn is(&self, rel: &str) -> bool {
        self.rel.iter().any(|known| known.eq_ignore_ascii_case(rel))
    }

    /// The first value of an attribute, by its lower-case name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads one `Link` field value of a response from `base`. Links whose address cannot be read are left out.
#[must_use]
pub fn header_links(value: &[u8], base: &Url) -> Vec<HeaderLink> {
    let mut links = Vec::new();
    let mut rest = value;
    loop {
        rest = skip(rest, |byte| is_space(byte) || byte == b',');
        let Some(after) = rest.strip_prefix(b"<") else {
            // What stands between links and begins none is passed over, to the next comma.
            match rest.iter().position(|byte| *byte == b',') {
                Some(comma) => rest = rest.get(comma..).unwrap_or_default(),
                None => return links,
            }
            continue;
        };
        let Some(end) = after.iter().position(|byte| *byte == b'>') else { return links };
        let (address, after) = after.split_at_checked(end).unwrap_or_default();
        let (attributes, after) = attributes(after.get(1..).unwrap_or_default());
        rest = after;
        links.extend(link(address, attributes, base));
    }
}

fn link(address: &[u8], attributes: Vec<(String, String)>, base: &Url) -> Option<HeaderLink> {
    let mut link = HeaderLink { url: resolved(address, base)?, rel: Vec::new(), anchor: None, params: Vec::new() };
    let mut has_rel = false;
    // Each is compared with those before it.
    for (name, value) in attributes.into_iter().take(MOST) {
        match name.as_str() {
            // The first one counts (3.3).
            "rel" if !has_rel => {
                has_rel = true;
                link.rel = value.split_ascii_whitespace().map(relation).collect();
            }
            "rel" => {}
            "anchor" if link.anchor.is_none() => link.anchor = resolved(value.as_bytes(), base),
            "hreflang" => link.params.push((name, value)),
            _ => match name.strip_suffix('*') {
                // What is written for every language goes before the plain form, wherever it stands.
                Some(plain) => {
                    if let Some(value) = ext_value::decoded(&value) {
                        match link.params.iter_mut().find(|(known, _)| known == plain) {
                            Some((_, known)) => *known = value,
                            None => link.params.push((plain.to_owned(), value)),
                        }
                    }
                }
                None if link.param(&name).is_none() => link.params.push((name, value)),
                None => {}
            },
        }
    }
    Some(link)
}

/// Registered types are the same in any case; extension types are URLs and stay as written.
fn relation(word: &str) -> String {
    if word.contains(':') { word.to_owned() } else { word.to_ascii_lowercase() }
}

fn resolved(address: &[u8], base: &Url) -> Option<Url> {
    let mut base = base.clone();
    base.set_fragment(None);
    // An empty reference is one to the response itself.
    if address.trim_ascii().is_empty() { Some(base) } else { resolve_location(&base, address).ok() }
}

/// Reads attributes up to the comma that ends the link.
fn attributes(mut rest: &[u8]) -> (Vec<(String, String)>, &[u8]) {
    let mut found = Vec::new();
    loop {
        rest = skip(rest, is_space);
        match rest.split_first() {
            Some((b';', after)) => rest = after,
            Some((b',', after)) => return (found, after),
            None => return (found, rest),
            // Not an attribute: passed over.
            Some(_) => {
                rest = skip(rest, |byte| !matches!(byte, b';' | b','));
                continue;
            }
        }
        rest = skip(rest, is_space);
        let (name, after) = split(rest, |byte| matches!(byte, b'=' | b';' | b',') || is_space(byte));
        let name = text(name).to_ascii_lowercase();
        rest = skip(after, is_space);
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix(b"=") {
            let after = skip(after, is_space);
            (value, rest) = match after.strip_prefix(b"\"") {
                Some(quoted) => unquoted(quoted),
                None => {
                    let (token, after) = split(after, |byte| matches!(byte, b';' | b','));
                    (text(token.trim_ascii_end()), after)
                }
            };
        }
        if !name.is_empty() {
            found.push((name, value));
        }
    }
}

/// Reads to the closing quote, or to the end where there is none.
fn unquoted(mut rest: &[u8]) -> (String, &[u8]) {
    let mut out = Vec::new();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => break,
            b'\\' => {
                if let Some((escaped, after)) = rest.split_first() {
                    out.push(*escaped);
                    rest = after;
                }
            }
            other => out.push(*other),
        }
    }
    (text(&out), rest)
}

/// UTF-8 where it is that, ISO-8859-1 where not.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn skip(bytes: &[u8], what: impl Fn(u8) -> bool) -> &[u8] {
    split(bytes, |byte| !what(byte)).1
}

/// Splits before the first byte that ends the part.
fn split(bytes: &[u8], ends: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|byte| ends(*byte)).unwrap_or(bytes.len());
    bytes.split_at_checked(at).unwrap_or_default()
}

/// Blanks and tabs, and line ends that a server left in its value.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// A link in the form of the collection.
    fn told(link: &HeaderLink) -> Value {
        let mut params: Map<String, Value> = Map::new();
        for (name, value) in &link.params {
            match params.get_mut(name) {
                Some(Value::Array(values)) => values.push(json!(value)),
                Some(first) => *first = json!([first, value]),
                None => drop(params.insert(name.clone(), json!(value))),
            }
        }
        if let Some(anchor) = &link.anchor {
            params.insert("anchor".to_owned(), json!(anchor.as_str()));
        }
        let mut told = json!({ "href": link.url.as_str(), "rel": link.rel });
        if !params.is_empty() {
            told["params"] = params.into();
        }
        told
    }

    #[test]
    fn every_value_of_the_collection_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_link_header.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 29);
        for case in cases {
            let base = Url::parse(case["base"].as_str().unwrap()).unwrap();
            let ours: Vec<Value> = header_links(case["value"].as_str().unwrap().as_bytes(), &base).iter().map(told).collect();
            // A reference that does not parse is told as a link without an address there, and left out here.
            let expected = case["expected"].as_array().unwrap().iter().filter(|link| !link["href"].is_null());
            assert_eq!(ours, expected.cloned().collect::<Vec<_>>(), "{case}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_kept_as_received() {
        let base = Url::parse("http://a.test/x#top").unwrap();
        let links = header_links(b"</caf\xe9>; rel=next; title=\"caf\xe9\", <>; rel=self", &base);
        assert_eq!(links[0].url.as_str(), "http://a.test/caf%E9");
        assert_eq!(links[0].param("title"), Some("café"));
        assert!(links[1].is("SELF") && links[1].url.as_str() == "http://a.test/x");
    }

    #[test]
    fn what_is_damaged_costs_itself_only() {
        let base = Url::parse("http://a.test/").unwrap();
        let of = |value: &str| header_links(value.as_bytes(), &base).into_iter().map(|l| l.url.to_string()).collect::<Vec<_>>();
        assert_eq!(of("junk, </a> junk; rel=next, <http://[zz]>; rel=up, </b>"), ["http://a.test/a", "http://a.test/b"]);
        assert_eq!(of("</a>; ;=x; rel=next; rel=prev,</b>"), ["http://a.test/a", "http://a.test/b"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(any in proptest::collection::vec(any::<u8>(), 0..80), like in "[<>;,=\"\\\\ a*'/r%e]{0,60}") {
            let base = Url::parse("http://a.test/x?y#z").unwrap();
            let _ = header_links(&any, &base);
            let _ = header_links(like.as_bytes(), &base);
        }
    }
}
