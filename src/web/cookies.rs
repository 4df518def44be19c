//! The cookies of one identity, as browsers keep them (RFC 6265bis 5.7 and 5.8).
//!
//! One jar belongs to one lease or session and is never shared. Cookies for a public suffix are refused, the number of
//! cookies is bounded, and `Debug` shows counts only. Cookies are kept by registrable domain, so that a request looks
//! at those of its own site only.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use http::HeaderValue;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::cookie_parse::{Access, SetCookie, Spelling, Transport};
use super::cookie_scope::{default_path, domain_matches, is_secure, path_matches, path_of};

/// Cookies kept for one domain; beyond it the oldest goes.
pub const MAX_PER_DOMAIN: usize = 50;

/// Cookies kept in one jar; beyond it the oldest goes.
pub const MAX_TOTAL: usize = 3_000;

/// Version of the saved form.
const FORMAT_VERSION: u32 = 1;

/// Why a saved jar cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JarError {
    /// The text is not the saved form of a jar.
    #[error("saved cookies are not readable at line {line} column {column}: start the identity without cookies")]
    Json {
        /// Line of the first wrong character, from 1.
        line: usize,
        /// Column of the first wrong character, from 1.
        column: usize,
    },
    /// The text was written by another version.
    #[error("saved cookies have format version {found}, this program reads {FORMAT_VERSION}: start the identity without cookies")]
    Version {
        /// The version in the text.
        found: u32,
    },
}

/// A bounded cookie jar.
#[derive(Clone, Default)]
pub struct Jar {
    sites: HashMap<String, Vec<Stored>>,
    count: usize,
    next_number: u64,
}

/// A cookie with its scope.
#[derive(Clone)]
struct Stored {
    /// Where it stands in the order of creation; the smallest is the oldest.
    number: u64,
    domain: String,
    scope: Scope,
    path: String,
    parts: SetCookie,
}

impl Jar {
    /// Makes an empty jar.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of cookies, counting expired ones that were not yet dropped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the jar holds no cookie.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes the `Set-Cookie` values of a response from `url`. Values that set nothing acceptable are ignored.
    ///
    /// Values that are not UTF-8 are sent back in the same bytes; a redirect's cookies belong to the URL that sent them.
    pub fn set<'a>(&mut self, url: &Url, header_values: impl Iterator<Item = &'a HeaderValue>) {
        let now = Timestamp::now();
        for value in header_values {
            if let Some(cookie) = SetCookie::from_bytes(value.as_bytes(), now) {
                self.insert(url, cookie, now);
            }
        }
    }

    /// The `Cookie` header for a request to `url`: longer paths first, then older cookies. `None` without a match.
    #[must_use]
    pub fn header(&self, url: &Url) -> Option<HeaderValue> {
        let now = Timestamp::now();
        let host = url.host_str()?;
        let (path, secure) = (path_of(url), is_secure(url));
        let stored = self.sites.get(&site_of(url)?)?;
        let mut found: Vec<&Stored> = stored.iter().filter(|cookie| cookie.goes_to(host, path, secure, now)).collect();
        found.sort_by_key(|cookie| (Reverse(cookie.path.len()), cookie.number));
        let mut line = Vec::new();
        for cookie in found {
            if !line.is_empty() {
                line.extend_from_slice(b"; ");
            }
            cookie.parts.write_pair(&mut line);
        }
        if line.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_bytes(&line).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Takes out every cookie of this name, whatever its domain and path; tells how many there were.
    pub fn remove_named(&mut self, name: &str) -> usize {
        let before = self.count;
        self.keep_if(|cookie| cookie.parts.name != name);
        before - self.count
    }

    /// Writes the jar, with session cookies and without expired ones, oldest first.
    #[must_use]
    pub fn to_json(&self) -> String {
        let now = Timestamp::now();
        let mut cookies: Vec<&Stored> = self.sites.values().flatten().filter(|cookie| !cookie.is_over(now)).collect();
        cookies.sort_by_key(|cookie| cookie.number);
        let cookies = cookies.into_iter().map(SavedCookie::from).collect();
        // Strings and numbers only: nothing in it can fail to be written.
        serde_json::to_string(&SavedJar { version: FORMAT_VERSION, cookies }).unwrap_or_default()
    }

    /// Reads what [`Jar::to_json`] wrote. Cookies that have expired meanwhile are dropped.
    ///
    /// # Errors
    /// [`JarError`] when the text is no saved jar or of another version.
    pub fn from_json(text: &str) -> Result<Self, JarError> {
        let unreadable = |error: serde_json::Error| JarError::Json { line: error.line(), column: error.column() };
        let head: SavedVersion = serde_json::from_str(text).map_err(unreadable)?;
        if head.version != FORMAT_VERSION {
            return Err(JarError::Version { found: head.version });
        }
        let saved: SavedJar = serde_json::from_str(text).map_err(unreadable)?;
        let now = Timestamp::now();
        let mut jar = Self::new();
        for cookie in saved.cookies {
            let Ok(url) = Url::parse(&format!("https://{}/", cookie.domain)) else {
                continue;
            };
            let expires = cookie.expires.map(|second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX));
            let parts = SetCookie {
                name: cookie.name,
                value: cookie.value,
                domain: (cookie.scope == Scope::Domain).then_some(cookie.domain),
                path: Some(cookie.path),
                transport: if cookie.secure { Transport::SecureOnly } else { Transport::Any },
                access: if cookie.http_only { Access::HttpOnly } else { Access::Any },
                expires,
                spelling: if cookie.bytes { Spelling::Bytes } else { Spelling::Text },
            };
            jar.insert(&url, parts, now);
        }
        Ok(jar)
    }

    fn insert(&mut self, url: &Url, parts: SetCookie, now: Timestamp) {
        let Some(site) = site_of(url) else {
            return;
        };
        let Some(mut cookie) = Stored::scoped(url, parts) else {
            return;
        };
        let kept = self.sites.entry(site.clone()).or_default();
        let is_over = cookie.is_over(now);
        if !is_secure(url) && kept.iter().any(|old| old.is_out_of_reach_of(&cookie)) {
            return;
        }
        match kept.iter().position(|old| old.is_same_as(&cookie)) {
            Some(at) if is_over => {
                kept.remove(at);
                self.count -= 1;
            }
            // A replaced cookie keeps its place in the order of creation.
            Some(at) => {
                if let Some(old) = kept.get_mut(at) {
                    cookie.number = old.number;
                    *old = cookie;
                }
            }
            None if is_over => {}
            None => {
                cookie.number = self.next_number;
                self.next_number += 1;
                let domain = cookie.domain.clone();
                kept.push(cookie);
                self.count += 1;
                self.keep_bounds(&site, &domain, now);
            }
        }
        if self.sites.get(&site).is_some_and(Vec::is_empty) {
            self.sites.remove(&site);
        }
    }

    /// Drops what is over, and the oldest beyond the bounds, of one domain or of all.
    fn keep_bounds(&mut self, site: &str, domain: &str, now: Timestamp) {
        let of_domain = self.sites.get(site).into_iter().flatten().filter(|cookie| cookie.domain == domain).count();
        if of_domain <= MAX_PER_DOMAIN && self.count <= MAX_TOTAL {
            return;
        }
        let before = self.count;
        self.keep_if(|cookie| !cookie.is_over(now));
        if self.count < before {
            return;
        }
        let all = self.sites.values().flatten();
        let oldest = if of_domain > MAX_PER_DOMAIN {
            all.filter(|cookie| cookie.domain == domain).map(|cookie| cookie.number).min()
        } else {
            all.map(|cookie| cookie.number).min()
        };
        self.keep_if(|cookie| Some(cookie.number) != oldest);
    }

    fn keep_if(&mut self, is_kept: impl Fn(&Stored) -> bool) {
        self.sites.retain(|_, cookies| {
            cookies.retain(&is_kept);
            !cookies.is_empty()
        });
        self.count = self.sites.values().map(Vec::len).sum();
    }
}

impl Stored {
    /// Gives a cookie its scope, or refuses it (RFC 6265bis 5.7).
    fn scoped(url: &Url, parts: SetCookie) -> Option<Self> {
        let host = url.host_str()?;
        let (domain, scope) = match &parts.domain {
            // The suffix itself, an address or a single label: the attribute says nothing new.
            Some(wanted) if wanted == host && registrable_domain(host).is_none() => (wanted.clone(), Scope::Host),
            Some(wanted) if registrable_domain(wanted).is_some() && domain_matches(host, wanted) => {
                (wanted.clone(), Scope::Domain)
            }
            Some(_) => return None,
            None => (host.to_owned(), Scope::Host),
        };
        let path = parts.path.clone().unwrap_or_else(|| default_path(path_of(url)).to_owned());
        let is_secure_only = parts.transport == Transport::SecureOnly;
        if is_secure_only && !is_secure(url) {
            return None;
        }
        // A nameless cookie would be read as one with the name that its value begins with.
        let named = if parts.name.is_empty() { &parts.value } else { &parts.name };
        let is_named = |prefix: &str| named.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
        let allowed = if is_named("__Secure-") {
            is_secure_only && !parts.name.is_empty()
        } else if is_named("__Host-") {
            is_secure_only && !parts.name.is_empty() && scope == Scope::Host && parts.path.as_deref() == Some("/")
        } else {
            true
        };
        allowed.then_some(Self { number: 0, domain, scope, path, parts })
    }

    fn goes_to(&self, host: &str, path: &str, secure: bool, now: Timestamp) -> bool {
        let in_scope = match self.scope {
            Scope::Host => host == self.domain,
            Scope::Domain => domain_matches(host, &self.domain),
        };
        in_scope && path_matches(path, &self.path) && (secure || self.parts.transport == Transport::Any) && !self.is_over(now)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.parts.expires.is_some_and(|end| end <= now)
    }

    /// Whether both are one cookie, of which the newer stays. One of a host and one of its domain are two.
    fn is_same_as(&self, other: &Self) -> bool {
        self.parts.name == other.parts.name && self.domain == other.domain && self.scope == other.scope && self.path == other.path
    }

    /// Whether a page without encryption may not cover this cookie by that one.
    fn is_out_of_reach_of(&self, other: &Self) -> bool {
        self.parts.transport == Transport::SecureOnly
            && self.parts.name == other.parts.name
            && (domain_matches(&self.domain, &other.domain) || domain_matches(&other.domain, &self.domain))
            && path_matches(&other.path, &self.path)
    }
}

impl SetCookie {
    /// Writes the cookie as it goes into a `Cookie` header; a nameless one is its value alone.
    fn write_pair(&self, into: &mut Vec<u8>) {
        let mut write = |text: &str| match self.spelling {
            Spelling::Text => into.extend_from_slice(text.as_bytes()),
            Spelling::Bytes => into.extend(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))),
        };
        if !self.name.is_empty() {
            write(&self.name);
            write("=");
        }
        write(&self.value);
    }
}

impl fmt::Debug for Jar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jar").field("sites", &self.sites.len()).field("cookies", &self.len()).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct SavedVersion {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct SavedJar {
    version: u32,
    cookies: Vec<SavedCookie>,
}

#[derive(Serialize, Deserialize)]
struct SavedCookie {
    name: String,
    value: String,
    domain: String,
    scope: Scope,
    path: String,
    secure: bool,
    http_only: bool,
    /// Seconds since 1970; absent for a session cookie.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    expires: Option<i64>,
    /// Whether each character of name and value stands for one byte.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    bytes: bool,
}

impl From<&Stored> for SavedCookie {
    fn from(cookie: &Stored) -> Self {
        Self {
            name: cookie.parts.name.clone(),
            value: cookie.parts.value.clone(),
            domain: cookie.domain.clone(),
            scope: cookie.scope,
            path: cookie.path.clone(),
            secure: cookie.parts.transport == Transport::SecureOnly,
            http_only: cookie.parts.access == Access::HttpOnly,
            expires: cookie.parts.expires.map(Timestamp::as_second),
            bytes: cookie.parts.spelling == Spelling::Bytes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Host,
    Domain,
}

/// The registrable domain of a host, or `None` when the host is a public suffix or no domain name.
///
/// Uses the ICANN and private sections of the public suffix list; unlisted top-level domains count as suffixes.
#[must_use]
pub fn registrable_domain(host: &str) -> Option<String> {
    let host = host.to_lowercase();
    if host.is_empty() || host.split('.').any(str::is_empty) {
        return None;
    }
    psl::domain_str(&host).map(str::to_owned)
}

/// Under which name the cookies of a URL are kept.
fn site_of(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain(domain) => Some(registrable_domain(domain).unwrap_or_else(|| domain.to_owned())),
        Host::Ipv4(_) | Host::Ipv6(_) => url.host_str().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests;
