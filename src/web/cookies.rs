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
        let key = Key {
            site,
            domain: String::from(&cookie.domain),
            path: String::from(&cookie.path),
            name: parts.name,
        };
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
        let same_domain = |key: &&Key| key.site == added.site && key.domain == added.domain;
        let of_domain = self.numbers.keys().filter(same_domain).count();
        let oldest = if of_domain > MAX_PER_DOMAIN {
            self.ages.values().find(same_domain).cloned()
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
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Cases that are answered otherwise, with the reason.
    const EXCEPTIONS: &[(&str, &str)] = &[];

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn set(jar: &mut Jar, from: &str, values: &[&str]) {
        let values: Vec<HeaderValue> = values.iter().map(|value| HeaderValue::from_bytes(value.as_bytes()).unwrap()).collect();
        jar.set(&url(from), values.iter());
    }

    fn sent(jar: &Jar, to: &str) -> Option<String> {
        jar.header(&url(to)).map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn the_http_state_suite_is_answered() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/cookies_http_state.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 222);
        let mut report = Vec::new();
        for case in cases {
            let id = case["id"].as_str().unwrap();
            let mut jar = Jar::new();
            let values: Vec<HeaderValue> = case["set_cookie"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|value| HeaderValue::from_bytes(value.as_str().unwrap().as_bytes()).ok())
                .collect();
            jar.set(&url(case["set_url"].as_str().unwrap()), values.iter());
            let ours = sent(&jar, case["request_url"].as_str().unwrap());
            let right = ours.as_deref() == case["expected_header"].as_str();
            if right == EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                report.push(format!("{id} {} {}: {ours:?}, expected {}", case["set_url"], case["set_cookie"], case["expected_header"]));
            }
        }
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    #[test]
    fn the_public_suffix_list_is_followed() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/public_suffix.json")).unwrap();
        for case in data["cases"].as_array().unwrap() {
            let host = case["host"].as_str().unwrap();
            assert_eq!(registrable_domain(host).as_deref(), case["registrable_domain"].as_str(), "{host}");
        }
    }

    #[test]
    fn a_cookie_for_a_public_suffix_is_refused() {
        let mut jar = Jar::new();
        set(&mut jar, "http://shop.example.co.uk/", &["a=1; Domain=co.uk", "b=2; Domain=.example.co.uk", "c=3; Domain=uk"]);
        assert_eq!(sent(&jar, "http://other.example.co.uk/").as_deref(), Some("b=2"));
        assert_eq!(sent(&jar, "http://victim.co.uk/"), None);
        set(&mut jar, "http://localhost/", &["d=4; Domain=localhost"]);
        assert_eq!(sent(&jar, "http://localhost/").as_deref(), Some("d=4"));
    }

    #[test]
    fn secure_cookies_stay_on_secure_connections_and_longer_paths_come_first() {
        let mut jar = Jar::new();
        set(&mut jar, "https://h.test/a/b", &["s=1; Secure; Path=/", "p=2; Path=/a/b", "q=3; Path=/"]);
        assert_eq!(sent(&jar, "https://h.test/a/b").as_deref(), Some("p=2; s=1; q=3"));
        assert_eq!(sent(&jar, "http://h.test/a/b").as_deref(), Some("p=2; q=3"));
        assert_eq!(sent(&jar, "https://h.test/ab").as_deref(), Some("s=1; q=3"));
    }

    #[test]
    fn the_oldest_cookie_goes_when_a_domain_is_full() {
        let mut jar = Jar::new();
        for n in 0..60 {
            set(&mut jar, "http://h.test/", &[&format!("c{n}=1")]);
        }
        assert_eq!(jar.len(), MAX_PER_DOMAIN);
        let header = sent(&jar, "http://h.test/").unwrap();
        assert!(header.starts_with("c10=1; c11=1") && header.ends_with("c59=1"), "{header}");
    }

    #[test]
    fn the_whole_jar_is_bounded() {
        let mut jar = Jar::new();
        for n in 0..MAX_TOTAL + 7 {
            set(&mut jar, &format!("http://h{n}.test/"), &["a=1"]);
        }
        assert_eq!(jar.len(), MAX_TOTAL);
        assert_eq!(sent(&jar, "http://h6.test/"), None);
        assert!(sent(&jar, "http://h7.test/").is_some());
    }

    #[test]
    fn a_saved_jar_gives_the_same_headers() {
        let mut jar = Jar::new();
        set(
            &mut jar,
            "https://a.example.org/x/y",
            &["one=1; Domain=example.org; Path=/", "two=\"q, é\"; Secure; HttpOnly; Max-Age=900", "three=3; Path=/x"],
        );
        set(&mut jar, "http://127.0.0.1:8080/", &["ip=4"]);
        set(&mut jar, "http://[::1]/", &["six=6"]);
        let again = Jar::from_json(&jar.to_json()).unwrap();
        assert_eq!(again.len(), 5);
        for to in ["https://a.example.org/x/y", "https://b.example.org/", "http://127.0.0.1/", "http://[::1]/"] {
            assert!(sent(&jar, to).is_some(), "{to}");
            assert_eq!(sent(&again, to), sent(&jar, to), "{to}");
        }
    }

    #[test]
    fn the_saved_form_is_a_format() {
        let mut jar = Jar::new();
        set(&mut jar, "https://a.example.org/x/y", &["one=1; Domain=example.org; Path=/; Secure"]);
        assert_eq!(
            jar.to_json(),
            r#"{"version":1,"cookies":[{"name":"one","value":"1","domain":"example.org","scope":"domain","path":"/","secure":true,"http_only":false}]}"#
        );
        assert!(matches!(Jar::from_json("{\"version\":9}"), Err(JarError::Version { found: 9 })));
        assert!(matches!(Jar::from_json("["), Err(JarError::Json { .. })));
    }

    #[test]
    fn debug_shows_no_cookie_and_the_header_is_sensitive() {
        let mut jar = Jar::new();
        set(&mut jar, "http://h.test/", &["session=s3cret"]);
        assert!(!format!("{jar:?}").contains("s3cret"));
        assert!(!format!("{:?}", jar.header(&url("http://h.test/"))).contains("s3cret"));
    }

    #[test]
    fn an_expired_cookie_deletes_the_stored_one() {
        let mut jar = Jar::new();
        set(&mut jar, "http://h.test/", &["a=1", "b=2"]);
        set(&mut jar, "http://h.test/", &["a=; Max-Age=0", "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]);
        assert!(jar.is_empty());
    }

    proptest! {
        #[test]
        fn any_header_is_taken(bytes in proptest::collection::vec(32_u8..=255, 0..80)) {
            let mut jar = Jar::new();
            let text: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 127).collect();
            let value = HeaderValue::from_bytes(&text).unwrap();
            jar.set(&url("http://h.test/"), [&value].into_iter());
            let _ = jar.header(&url("http://h.test/"));
            let _ = Jar::from_json(&jar.to_json()).unwrap();
        }
    }
}
