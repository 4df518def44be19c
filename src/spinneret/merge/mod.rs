//! What a lease puts on a request, and what the caller says about it: what the caller says wins.
//!
//! [`Parts`] are plain values for any HTTP client; [`apply`] writes the same onto a request of `reqwest`. Neither form
//! ever has two sources of cookies: where a `Cookie` header and cookies by name come together, they become one header.
//! Nothing here sends anything, and no error or `Debug` form shows a value.

mod apply;
mod cookies;
mod proxy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

pub(crate) use apply::apply;
pub(crate) use cookies::parse as parse_cookies;
pub(crate) use proxy::http;

use super::Result;
use super::messages::{AcquireResponse, Credential, ProxyAssignment};

/// What the caller of a request says himself; it wins over what the identity brings.
///
/// `Debug` shows names, no values.
///
/// ```
/// use dragline::spinneret::{Explicit, messages::Credential, parts};
///
/// let mut credential = Credential::default();
/// credential.headers.insert("User-Agent".to_owned(), "identity".to_owned());
/// let parts = parts(&credential, None, &Explicit::new().header("user-agent", "mine").param("page", "2"));
/// assert_eq!(parts.headers, [("user-agent".to_owned(), "mine".to_owned())]);
/// assert_eq!(parts.params, [("page".to_owned(), "2".to_owned())]);
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Explicit {
    headers: Vec<(String, String)>,
    cookies: BTreeMap<String, String>,
    params: Vec<(String, String)>,
}

impl Explicit {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A header. It takes the place of the credential's header of that name, whatever the case of its letters; given
    /// several times, it is sent several times.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// A cookie. It takes the place of the credential's cookie of that name; of several the last one counts.
    #[must_use]
    pub fn cookie(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.cookies.insert(name.into(), value.into());
        self
    }

    /// A query parameter, not encoded. It takes the place of the credential's parameter of that name; given several
    /// times, it is sent several times.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    fn names_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }
}

impl fmt::Debug for Explicit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explicit")
            .field("headers", &names(&self.headers))
            .field("cookies", &self.cookies.keys().collect::<Vec<_>>())
            .field("params", &names(&self.params))
            .finish()
    }
}

/// All that a request under a lease carries, for any HTTP client.
///
/// `Debug` shows counts only.
#[derive(Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Parts {
    /// Headers, each with its spelling: those of the credential by name, then the caller's in his order.
    pub headers: Vec<(String, String)>,
    /// Cookies by name. Empty when [`Self::headers`] has a `Cookie`: that one then has all of them.
    pub cookies: BTreeMap<String, String>,
    /// Query parameters, not encoded: those of the credential by name, then the caller's in his order.
    pub params: Vec<(String, String)>,
    /// The URL of the proxy, user and password included; `None` when the lease has no proxy.
    pub proxy: Option<String>,
    /// What the site's type delivers as JSON; where it goes is the caller's business.
    pub json: Option<Value>,
    /// Named values of the credential; where they go is the caller's business.
    pub values: Map<String, Value>,
}

impl Parts {
    /// All cookies as the one value of a `Cookie` header; `None` without any.
    #[must_use]
    pub fn cookie_header(&self) -> Option<String> {
        match self.headers.iter().find(|(name, _)| cookies::is_cookie(name)) {
            Some((_, text)) => Some(text.clone()),
            None if self.cookies.is_empty() => None,
            None => Some(cookies::join(&self.cookies)),
        }
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("headers", &self.headers.len())
            .field("cookies", &self.cookies.len())
            .field("params", &self.params.len())
            .field("has_proxy", &self.proxy.is_some())
            .field("has_json", &self.json.is_some())
            .field("values", &self.values.len())
            .finish()
    }
}

/// What a request carries under this credential and proxy when the caller says this much (wire contract, section 10).
///
/// - Headers, cookies and query parameters of the credential come first; the caller's take their place by name, headers
///   whatever the case of their letters.
/// - `cookie_header` counts only when the credential has neither cookies by name nor a `Cookie` header. It is sent as
///   it is, unless the caller has cookies of his own: then it is taken apart and his are put in. A `Cookie` header of
///   the caller takes its place like that of any other header.
/// - A `Cookie` header beside cookies by name becomes one header. Of two cookies of one name the caller's cookie wins,
///   then his `Cookie` header, then the credential's cookie, then its header.
#[must_use]
pub fn parts(credential: &Credential, proxy: Option<&ProxyAssignment>, explicit: &Explicit) -> Parts {
    let mut headers: Vec<(String, String)> =
        credential.headers.iter().filter(|(name, _)| !explicit.names_header(name)).map(owned).collect();
    headers.extend(explicit.headers.iter().cloned());

    let mut own = credential.cookies.clone();
    let is_text_all = own.is_empty() && !credential.cookie_header.is_empty() && !has_cookie_header(credential);
    if is_text_all && !explicit.cookies.is_empty() {
        own = cookies::parse(&credential.cookie_header).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    } else if is_text_all && !explicit.names_header("cookie") {
        headers.push(("Cookie".to_owned(), credential.cookie_header.clone()));
    }
    let cookies = one_source(&mut headers, own, explicit);

    let mut params: Vec<(String, String)> = credential
        .query
        .iter()
        .filter(|(name, _)| !explicit.params.iter().any(|(explicit, _)| explicit == *name))
        .map(owned)
        .collect();
    params.extend(explicit.params.iter().cloned());

    Parts {
        headers,
        cookies,
        params,
        proxy: proxy.map(|proxy| proxy.url.clone()).filter(|url| !url.is_empty()),
        json: credential.json.clone(),
        values: credential.values.clone(),
    }
}

/// The cookies by name, or none of them when they went into the `Cookie` header that is there.
fn one_source(
    headers: &mut Vec<(String, String)>,
    own: BTreeMap<String, String>,
    explicit: &Explicit,
) -> BTreeMap<String, String> {
    let Some(first) = headers.iter().position(|(name, _)| cookies::is_cookie(name)) else {
        let mut all = own;
        all.extend(explicit.cookies.clone());
        return all;
    };
    let texts: Vec<&str> = headers.iter().filter(|(name, _)| cookies::is_cookie(name)).map(|(_, text)| text.as_str()).collect();
    let mut text = texts.join("; ");
    // The caller's header is stronger than the credential's cookies, the credential's own header is weaker.
    text = if explicit.names_header("cookie") { cookies::complete(&text, &own) } else { cookies::overrule(&text, &own) };
    text = cookies::overrule(&text, &explicit.cookies);

    let mut at = 0;
    headers.retain(|(name, _)| {
        at += 1;
        at - 1 == first || !cookies::is_cookie(name)
    });
    if let Some((_, value)) = headers.get_mut(first) {
        *value = text;
    }
    BTreeMap::new()
}

fn has_cookie_header(credential: &Credential) -> bool {
    credential.headers.keys().any(|name| cookies::is_cookie(name))
}

fn owned((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

impl Credential {
    /// Writes headers, cookies and query parameters onto a request. What the request has already wins; `json` and
    /// `values` are left to the caller.
    ///
    /// - A header is written when the request has none of that name. `Host`, `Content-Length`, `Transfer-Encoding` and
    ///   `Trailer` are never written: they belong to the request's URL and body. Values are marked as sensitive.
    /// - Cookies become one `Cookie` header: those the request has stay as they are, missing ones are appended by name.
    ///   `cookie_header` is sent as it is only when there is nothing to put it together with.
    /// - Query parameters whose name the URL does not have are appended; not one byte that is there changes. Errors of
    ///   `reqwest` show the URL they are about: `reqwest::Error::without_url` before they are logged keeps these out.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](super::Error::InvalidArgument) names the header whose value cannot be one (a line
    /// break, for instance); the request is then as it was. Mend the identity in the control plane.
    pub fn apply(&self, request: &mut reqwest::Request) -> Result<()> {
        apply(self, request)
    }
}

impl AcquireResponse {
    /// What a request under this lease carries when the caller says this much; see [`parts`].
    #[must_use]
    pub fn parts(&self, explicit: &Explicit) -> Parts {
        parts(&self.credential, self.proxy.as_ref(), explicit)
    }
}
