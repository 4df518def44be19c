//! The cookies of one identity (RFC 6265 over `cookie_store`).
//!
//! One jar belongs to one lease or session and is never shared. Cookies for a public suffix are refused, the number of
//! cookies is bounded, and `Debug` shows counts only. Cookies are kept by registrable domain, so that a request looks
//! at those of its own site only.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use cookie_store::{Cookie, CookieDomain, CookieExpiration, CookiePath, CookieStore, RawCookie};
use http::HeaderValue;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::cookie_parse::{Access, SetCookie, Transport};

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
    sites: HashMap<String, CookieStore>,
    /// Creation order of every cookie in the jar; the smallest number is the oldest.
    ages: BTreeMap<u64, Key>,
    numbers: HashMap<Key, u64>,
    next_number: u64,
}

/// What makes two cookies one (RFC 6265 5.3 step 11).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    site: String,
    domain: String,
    path: String,
    name: String,
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
        self.ages.len()
    }

    /// Whether the jar holds no cookie.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ages.is_empty()
    }

    /// Takes the `Set-Cookie` values of a response from `url`. Values that set nothing acceptable are ignored.
    ///
    /// Bytes that are not UTF-8 are replaced; a redirect's cookies belong to the URL that sent them.
    pub fn set<'a>(&mut self, url: &Url, header_values: impl Iterator<Item = &'a HeaderValue>) {
        let now = Timestamp::now();
        for value in header_values {
            let text = String::from_utf8_lossy(value.as_bytes());
            if let Some(cookie) = SetCookie::parse(&text, now) {
                self.insert(url, cookie, now);
            }
        }
    }

    /// The `Cookie` header for a request to `url`: longer paths first, then older cookies. `None` without a match.
    #[must_use]
    pub fn header(&self, url: &Url) -> Option<HeaderValue> {
        let site = site_of(url)?;
        let mut found: Vec<(usize, u64, &Cookie<'static>)> = self
            .sites
            .get(&site)?
            .matches(url)
            .into_iter()
            .map(|cookie| (cookie.path.len(), self.number_of(&site, cookie), cookie))
            .collect();
        found.sort_by(|(a_path, a_number, _), (b_path, b_number, _)| b_path.cmp(a_path).then(a_number.cmp(b_number)));
        let mut text = String::new();
        for (_, _, cookie) in found {
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(cookie.name());
            text.push('=');
            text.push_str(cookie.value());
        }
        if text.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_bytes(text.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Takes out every cookie of this name, whatever its domain and path; tells how many there were.
    pub fn remove_named(&mut self, name: &str) -> usize {
        let named: Vec<Key> = self.ages.values().filter(|key| key.name == name).cloned().collect();
        named.iter().for_each(|key| self.remove(key));
        named.len()
    }

    /// Writes the jar, with session cookies and without expired ones, oldest first.
    #[must_use]
    pub fn to_json(&self) -> String {
        let cookies = self.ages.values().filter_map(|key| self.saved(key)).collect();
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
            };
            jar.insert(&url, parts, now);
        }
        Ok(jar)
    }

    fn insert(&mut self, url: &Url, parts: SetCookie, now: Timestamp) {
        let Some(site) = site_of(url) else {
            return;
        };
        let Some(cookie) = scoped(url, &parts, now) else {
            return;
        };
        let key = Key { site, domain: String::from(&cookie.domain), path: String::from(&cookie.path), name: parts.name };
        if parts.expires.is_some_and(|end| end <= now) {
            self.remove(&key);
            return;
        }
        let store = self.sites.entry(key.site.clone()).or_default();
        if store.insert(cookie, url).is_err() {
            return;
        }
        // A replaced cookie keeps its place in the order (RFC 6265 5.3 step 11.3).
        if !self.numbers.contains_key(&key) {
            self.ages.insert(self.next_number, key.clone());
            self.numbers.insert(key.clone(), self.next_number);
            self.next_number += 1;
            self.keep_bounds(&key);
        }
    }

    fn keep_bounds(&mut self, added: &Key) {
        let in_domain = |cookie: &&Cookie<'_>| String::from(&cookie.domain) == added.domain;
        let of_domain = self.sites.get(&added.site).map_or(0, |store| store.iter_any().filter(in_domain).count());
        let oldest = if of_domain > MAX_PER_DOMAIN {
            self.ages.values().find(|key| key.site == added.site && key.domain == added.domain).cloned()
        } else if self.ages.len() > MAX_TOTAL {
            self.ages.values().next().cloned()
        } else {
            None
        };
        if let Some(key) = oldest {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(store) = self.sites.get_mut(&key.site) {
            store.remove(&key.domain, &key.path, &key.name);
            if store.iter_any().next().is_none() {
                self.sites.remove(&key.site);
            }
        }
        if let Some(number) = self.numbers.remove(key) {
            self.ages.remove(&number);
        }
    }

    fn number_of(&self, site: &str, cookie: &Cookie<'_>) -> u64 {
        let key = Key {
            site: site.to_owned(),
            domain: String::from(&cookie.domain),
            path: String::from(&cookie.path),
            name: cookie.name().to_owned(),
        };
        self.numbers.get(&key).copied().unwrap_or(u64::MAX)
    }

    fn saved(&self, key: &Key) -> Option<SavedCookie> {
        let cookie = self.sites.get(&key.site)?.get(&key.domain, &key.path, &key.name)?;
        Some(SavedCookie {
            name: cookie.name().to_owned(),
            value: cookie.value().to_owned(),
            domain: key.domain.clone(),
            scope: if matches!(cookie.domain, CookieDomain::HostOnly(_)) { Scope::Host } else { Scope::Domain },
            path: key.path.clone(),
            secure: cookie.secure().unwrap_or(false),
            http_only: cookie.http_only().unwrap_or(false),
            expires: match cookie.expires {
                CookieExpiration::AtUtc(end) => Some(end.unix_timestamp()),
                CookieExpiration::SessionEnd => None,
            },
        })
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

/// Gives a cookie its scope, or refuses it (RFC 6265 5.3 steps 4 to 7).
fn scoped(url: &Url, parts: &SetCookie, now: Timestamp) -> Option<Cookie<'static>> {
    let host = url.host_str()?;
    let domain = match &parts.domain {
        Some(wanted) => {
            let wanted = Host::parse(wanted).ok()?.to_string();
            if wanted == host && registrable_domain(host).is_none() {
                // The suffix itself, an address or a single label: the attribute says nothing new.
                CookieDomain::HostOnly(wanted)
            } else if registrable_domain(&wanted).is_none() {
                return None;
            } else {
                CookieDomain::Suffix(wanted)
            }
        }
        None => CookieDomain::HostOnly(host.to_owned()),
    };
    if !domain.matches(url) {
        return None;
    }
    let raw = RawCookie::build((parts.name.clone(), parts.value.clone()))
        .secure(parts.transport == Transport::SecureOnly)
        .http_only(parts.access == Access::HttpOnly)
        .build();
    let mut cookie = Cookie::try_from_raw_cookie(&raw, url).ok()?.into_owned();
    cookie.domain = domain;
    cookie.path = match &parts.path {
        Some(path) => CookiePath::parse(path)?,
        None => CookiePath::default_path(url),
    };
    cookie.expires = match parts.expires {
        Some(end) => CookieExpiration::from(u64::try_from(end.as_second() - now.as_second()).unwrap_or(0)),
        None => CookieExpiration::SessionEnd,
    };
    Some(cookie)
}

#[cfg(test)]
mod tests;
