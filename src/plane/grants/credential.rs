//! A credential as it is delivered, made into what can be merged by name (wire contract, section 10).

use std::collections::BTreeMap;

use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde_json::Value;

use super::TARGET;
use crate::plane::contract::{Credential, IdentityKey};
use crate::spinneret::{Credential as WireCredential, parse_cookies};

/// Headers that follow from the URL, the body and the connection: a credential's would contradict them.
const NOT_OURS: [HeaderName; 5] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER, CONNECTION];

/// What of a credential no request can carry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::plane) struct LeftOut {
    /// Headers, by name.
    headers: Vec<String>,
    /// How many names of headers are none. They are not shown: who mixes up the fields puts a secret there.
    nameless: usize,
    /// Cookies, by name.
    cookies: Vec<String>,
}

impl LeftOut {
    /// Tells a person, unless that was done; whether it is done now.
    pub(in crate::plane) fn warn(&self, identity: &IdentityKey, is_warned: bool) -> bool {
        if is_warned || *self == Self::default() {
            return is_warned;
        }
        let Self { headers, nameless, cookies } = self;
        tracing::warn!(
            target: TARGET,
            site = &*identity.site,
            identity = &*identity.name,
            ?headers,
            nameless_headers = nameless,
            ?cookies,
            "no request can carry these parts of the identity's credential, they are left out; mend the identity in the control \
             plane"
        );
        true
    }
}

/// The credential, and what of it no request can carry.
///
/// There is one source of cookies. Those by name win over those of a `Cookie` header of the credential; its `cookie_header`
/// counts only where there is neither.
pub(in crate::plane) fn read(said: &WireCredential) -> (Credential, LeftOut) {
    let mut left_out = LeftOut::default();
    let mut texts: Vec<&str> = Vec::new();
    let mut headers = HeaderMap::new();
    for (name, value) in &said.headers {
        let Ok(known) = HeaderName::try_from(name.as_str()) else {
            left_out.nameless += 1;
            continue;
        };
        if known == COOKIE {
            texts.push(value);
            continue;
        }
        match HeaderValue::from_bytes(value.as_bytes()) {
            Ok(mut value) if !NOT_OURS.contains(&known) => {
                value.set_sensitive(true);
                headers.append(known, value);
            }
            _ => left_out.headers.push(name.clone()),
        }
    }
    if said.cookies.is_empty() && texts.is_empty() {
        texts.push(&said.cookie_header);
    }
    let cookies: BTreeMap<&str, &str> = texts
        .into_iter()
        .flat_map(parse_cookies)
        .chain(said.cookies.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        .collect();
    let mut kept = Vec::with_capacity(cookies.len());
    for (name, value) in cookies {
        if is_cookie(name, value) {
            kept.push((name.to_owned(), SecretString::from(value)));
        } else {
            left_out.cookies.push(name.to_owned());
        }
    }
    let query = said.query.iter().map(|(name, value)| (name.clone(), SecretString::from(value.as_str()))).collect();
    let json = said.json.clone().unwrap_or(Value::Null);
    (Credential { headers, cookies: kept, query, json, values: said.values.clone() }, left_out)
}

/// Whether a `Cookie` header can carry it as one cookie of this name.
fn is_cookie(name: &str, value: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', ';'])
        && !value.contains(';')
        && [name, value].into_iter().all(|text| HeaderValue::from_str(text).is_ok())
}
