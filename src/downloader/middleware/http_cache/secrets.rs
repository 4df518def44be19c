//! Whether an answer repeats what only its lease may know: then it is not stored.
//!
//! Looks for every value of the credential as it is written. One that a page hides (hashed, encoded otherwise than in a
//! URL) is not found; neither is one that is too short to be a secret.

use std::collections::BTreeSet;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use secrecy::ExposeSecret;
use serde_json::Value;
use url::form_urlencoded;

use crate::downloader::middleware::cookies::granted;
use crate::plane::Credential;

/// Bytes from which a value is taken for a secret. A shorter one (`en`, `mobile`) may stand in any page.
const SECRET_FROM: usize = 8;

/// Headers a browser sends to everybody: a page that repeats them tells nothing.
const PUBLIC: [&str; 6] = ["user-agent", "cookie", "referer", "origin", "dnt", "upgrade-insecure-requests"];

/// Whether headers or body have a value of the credential in them, or the `Authorization` that was sent.
pub(crate) fn repeats(credential: &Credential, sent: &HeaderMap, headers: &HeaderMap, body: &[u8]) -> bool {
    let mut secrets = secrets(credential);
    if let Some(value) = sent.get(AUTHORIZATION) {
        // What follows `Basic` is the secret.
        let value = value.as_bytes();
        let at = memchr::memchr(b' ', value).unwrap_or(0);
        secrets.insert(value.get(at..).unwrap_or_default().trim_ascii().to_vec());
        secrets.retain(|secret| !secret.is_empty());
    }
    let is_in = |text: &[u8]| secrets.iter().any(|secret| memchr::memmem::find(text, secret).is_some());
    !secrets.is_empty() && (headers.values().any(|value| is_in(value.as_bytes())) || is_in(body))
}

/// Every value, and its form in a URL where that is another one.
fn secrets(credential: &Credential) -> BTreeSet<Vec<u8>> {
    let Credential { headers, cookies: _, query, json, values } = credential;
    let mut found = BTreeSet::new();
    let mut add = |value: &[u8]| {
        let value = value.trim_ascii();
        if value.len() >= SECRET_FROM {
            found.insert(value.to_vec());
            found.insert(form_urlencoded::byte_serialize(value).collect::<String>().into_bytes());
        }
    };
    for (name, value) in headers.iter().filter(|(name, _)| !is_public(name)) {
        add(value.as_bytes());
        // What follows `Bearer` is the secret.
        if let Some(at) = memchr::memchr(b' ', value.as_bytes())
            && name.as_str().contains("auth")
        {
            add(value.as_bytes().get(at..).unwrap_or_default());
        }
    }
    granted(credential).for_each(|(_, value)| add(value));
    query.iter().for_each(|(_, value)| add(value.expose_secret().as_bytes()));
    let mut rest: Vec<&Value> = values.values().chain([json]).collect();
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => add(text.as_bytes()),
            Value::Array(values) => rest.extend(values),
            Value::Object(values) => rest.extend(values.values()),
            _ => {}
        }
    }
    found
}

fn is_public(name: &HeaderName) -> bool {
    let name = name.as_str();
    PUBLIC.contains(&name) || name.starts_with("accept") || name.starts_with("sec-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use serde_json::{Map, json};

    use super::*;

    fn credential() -> Credential {
        let headers = [
            ("authorization", "Bearer canary-token"),
            ("user-agent", "Mozilla/5.0 of anna"),
            ("accept-language", "en-GB, en;q=0.5"),
            ("cookie", "other=canary-in-header"),
            ("x-device", "canary-device"),
        ];
        Credential {
            headers: headers.into_iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect(),
            cookies: vec![("sid".into(), "canary-cookie".into())],
            query: vec![("key".into(), "canary query".into()), ("page".into(), "9".into())],
            json: json!({"list": ["canary-json"], "n": 12_345_678}),
            values: Map::from_iter([("token".to_owned(), json!("canary-value"))]),
        }
    }

    #[test]
    fn an_answer_that_repeats_a_value_of_the_credential_is_told() {
        for (text, is_told) in [
            ("Bearer canary-token", true),
            ("token=canary-token;", true),
            ("<a href='/?key=canary+query'>", true),
            ("canary query", true),
            ("canary-cookie", true),
            ("canary-in-header", true),
            ("canary-device", true),
            ("canary-json", true),
            ("canary-value", true),
            ("Mozilla/5.0 of anna, en-GB, en;q=0.5, 9, sid, key, token, 12345678, canary", false),
        ] {
            let mut headers = HeaderMap::new();
            assert_eq!(
                repeats(&credential(), &HeaderMap::new(), &headers, format!("<p>{text}</p>").as_bytes()),
                is_told,
                "{text}"
            );
            headers.insert("x-echo", HeaderValue::from_str(text).unwrap());
            assert_eq!(repeats(&credential(), &HeaderMap::new(), &headers, b""), is_told, "{text}");
            assert!(!repeats(&Credential::default(), &HeaderMap::new(), &headers, text.as_bytes()));
        }
    }

    #[test]
    fn a_page_that_repeats_the_authorization_that_was_sent_is_told() {
        let sent = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Basic YW5uYTpjYW5hcnk="))]);
        for (page, is_told) in [("<pre>Basic YW5uYTpjYW5hcnk=</pre>", true), ("YW5uYTpjYW5hcnk=", true), ("Basic", false)] {
            assert_eq!(repeats(&Credential::default(), &sent, &HeaderMap::new(), page.as_bytes()), is_told, "{page}");
        }
    }
}
