//! From the written file to the roster: ranges, names, headers, cookies and proxy URLs.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use toml::Spanned;

use super::raw::{self, Secret};
use crate::plane::embedded::roster::{self, ANONYMOUS, DEFAULT_GROUP, Pool, ReuseAnchor, Roster};
use crate::plane::{Credential, ProxyUrl};

/// Headers no identity may set: the client makes them itself, or they have a table of their own.
const NOT_HERE: [&str; 6] = ["cookie", "host", "content-length", "connection", "transfer-encoding", "proxy-authorization"];

/// A value that is not allowed.
pub(super) struct Wrong {
    /// A byte within the table it is in.
    pub(super) at: usize,
    pub(super) key: String,
    pub(super) reason: String,
}

/// Where in the file we are, for messages: names and positions, never values.
#[derive(Clone)]
struct At {
    byte: usize,
    path: String,
}

impl At {
    fn table<T>(&self, table: &Spanned<T>, kind: &str, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { byte: table.span().start, path: format!("{}{dot}{kind}[{name:?}]", self.path) }
    }

    fn wrong(&self, key: &str, reason: impl Into<String>) -> Wrong {
        let dot = if self.path.is_empty() { "" } else { "." };
        Wrong { at: self.byte, key: format!("{}{dot}{key}", self.path), reason: reason.into() }
    }
}

/// Checks the file.
pub(super) fn roster(file: raw::File) -> Result<Roster, Wrong> {
    let top = At { byte: 0, path: String::new() };
    if file.sites.is_empty() {
        return Err(top.wrong("sites", "the file has no site; write one [[sites]] table for each, or unset IDENTITIES"));
    }
    let proxies = proxies(file.proxies, &top)?;
    let mut names = HashSet::new();
    let mut sites = Vec::with_capacity(file.sites.len());
    for written in file.sites {
        let at = top.table(&written, "sites", &written.get_ref().name);
        let site = site(written.into_inner(), &at, !proxies.is_empty())?;
        if !names.insert(Arc::clone(&site.name)) {
            return Err(at.wrong("name", "another site has this name; names are unique in the file"));
        }
        sites.push(site);
    }
    Ok(Roster { sites, proxies })
}

fn site(site: raw::Site, at: &At, has_shared: bool) -> Result<roster::Site, Wrong> {
    let defaults = roster::Rules::default();
    let rules = roster::Rules {
        ttl: seconds(site.ttl, defaults.ttl, 1.0, 86_400.0, at, "ttl")?,
        reuse_anchor: match site.reuse_anchor.as_deref() {
            None | Some("released") => ReuseAnchor::Released,
            Some("acquired") => ReuseAnchor::Acquired,
            Some(_) => return Err(at.wrong("reuse_anchor", "allowed are \"released\" and \"acquired\"")),
        },
        cooldown_429: seconds(site.cooldown_429, defaults.cooldown_429, 0.0, 604_800.0, at, "cooldown_429")?,
        cooldown_403: seconds(site.cooldown_403, defaults.cooldown_403, 0.0, 604_800.0, at, "cooldown_403")?,
        cooldown_proxy: seconds(site.cooldown_proxy, defaults.cooldown_proxy, 0.0, 604_800.0, at, "cooldown_proxy")?,
        sticky_ttl: seconds(site.sticky_ttl, defaults.sticky_ttl, 1.0, 604_800.0, at, "sticky_ttl")?,
    };
    let clients = site.clients.iter().map(|client| name(client, at, "clients")).collect::<Result<Vec<_>, _>>()?;
    let own = proxies(site.proxies, at)?;
    let pool = match (site.proxy_pool.as_deref(), own.is_empty(), has_shared) {
        (None | Some("own"), false, _) => Pool::Own(own),
        (None, true, true) | (Some("shared"), true, true) => Pool::Shared,
        (None, true, false) | (Some("none"), true, _) => Pool::None,
        (Some("own"), true, _) => return Err(at.wrong("proxy_pool", "\"own\" needs [[sites.proxies]] tables in the site")),
        (Some("shared"), true, false) => {
            return Err(at.wrong("proxy_pool", "\"shared\" needs [[proxies]] tables at the top of the file"));
        }
        (Some("shared" | "none"), false, _) => {
            return Err(at.wrong("proxy_pool", "the site has proxies of its own; write \"own\" or take them out"));
        }
        (Some(_), _, _) => return Err(at.wrong("proxy_pool", "allowed are \"own\", \"shared\" and \"none\"")),
    };
    let groups = groups(site.groups, at)?;
    if site.identities.is_empty() {
        return Err(at.wrong("identities", "the site has none; write at least one [[sites.identities]] table"));
    }
    let concurrency = at_once(site.concurrency, 1, at)?;
    let reuse = seconds(site.reuse_interval, Duration::ZERO, 0.0, 604_800.0, at, "reuse_interval")?;
    let mut names = HashSet::new();
    let mut identities = Vec::with_capacity(site.identities.len());
    for written in site.identities {
        let at = at.table(&written, "identities", &written.get_ref().name);
        let identity = identity(written.into_inner(), &clients, concurrency, reuse, &at)?;
        if !names.insert(Arc::clone(&identity.name)) {
            return Err(at.wrong("name", "another identity of the site has this name; names are unique in a site"));
        }
        identities.push(identity);
    }
    Ok(roster::Site { name: name(&site.name, at, "name")?, clients, groups, rules, identities, pool })
}

fn groups(written: Vec<Spanned<raw::Group>>, at: &At) -> Result<Vec<roster::Group>, Wrong> {
    let mut names = HashSet::new();
    let mut groups = Vec::with_capacity(written.len());
    for written in written {
        let at = at.table(&written, "groups", &written.get_ref().name);
        let group = written.into_inner();
        let name = name(&group.name, &at, "name")?;
        if &*name == DEFAULT_GROUP {
            return Err(at.wrong("name", "this group is always there and covers what no other does; take the table out"));
        }
        if !names.insert(Arc::clone(&name)) {
            return Err(at.wrong("name", "another group of the site has this name"));
        }
        if group.prefixes.iter().any(|prefix| !prefix.starts_with('/') || prefix.contains(['?', '#'])) {
            return Err(at.wrong("prefixes", "a prefix starts with / and has no ? or #: it is compared with the path alone"));
        }
        groups.push(roster::Group { name, prefixes: group.prefixes });
    }
    Ok(groups)
}

fn identity(
    written: raw::Identity,
    site_clients: &[Arc<str>],
    concurrency: u32,
    reuse: Duration,
    at: &At,
) -> Result<roster::Identity, Wrong> {
    let own_name = name(&written.name, at, "name")?;
    if &*own_name == ANONYMOUS {
        return Err(at.wrong("name", "this name stands for no identity at all; choose another"));
    }
    let clients = written.clients.iter().map(|client| name(client, at, "clients")).collect::<Result<Vec<_>, _>>()?;
    if let Some(unknown) = clients.iter().find(|client| !site_clients.is_empty() && !site_clients.contains(client)) {
        let known = site_clients.join(", ");
        return Err(at.wrong("clients", format!("the site has no client {unknown:?}; it has {known}")));
    }
    let concurrency = at_once(written.concurrency, concurrency, at)?;
    let credential = Credential {
        headers: headers(&written.headers, at)?,
        cookies: cookies(written.cookies, at)?,
        query: written.query.into_iter().map(|(key, Secret(value))| (key, value)).collect(),
        json: if written.json.is_empty() { serde_json::Value::Null } else { written.json.into() },
        values: serde_json::Map::new(),
    };
    // The identity's limit is the limit of its own proxy as well.
    let proxy = match written.proxy {
        Some(url) => Some(roster::Proxy { name: Arc::clone(&own_name), url: proxy_url(&url.0, at, "proxy")?, concurrency }),
        None => None,
    };
    Ok(roster::Identity {
        name: own_name,
        clients,
        credential: Arc::new(credential),
        proxy,
        concurrency,
        reuse_interval: seconds(written.reuse_interval, reuse, 0.0, 604_800.0, at, "reuse_interval")?,
    })
}

fn headers(written: &BTreeMap<String, Secret>, at: &At) -> Result<HeaderMap, Wrong> {
    let mut headers = HeaderMap::with_capacity(written.len());
    for (key, Secret(value)) in written {
        let path = format!("headers.{key:?}");
        let Ok(name) = HeaderName::try_from(key) else {
            return Err(at.wrong(&path, "not a header name; use letters, digits and hyphens (RFC 9110, 5.1)"));
        };
        if NOT_HERE.contains(&name.as_str()) {
            let reason = match name.as_str() {
                "cookie" => "write cookies under cookies, one key each",
                "proxy-authorization" => "write user and password into the proxy's URL",
                _ => "the client sets this header itself; take it out",
            };
            return Err(at.wrong(&path, reason));
        }
        let Ok(mut value) = HeaderValue::from_str(value.expose_secret()) else {
            return Err(at.wrong(&path, "the value has characters no header may have; use visible ASCII, without line breaks"));
        };
        value.set_sensitive(true);
        if headers.insert(name, value).is_some() {
            return Err(at.wrong(&path, "written twice; header names do not distinguish upper and lower case"));
        }
    }
    Ok(headers)
}

fn cookies(written: BTreeMap<String, Secret>, at: &At) -> Result<Vec<(String, SecretString)>, Wrong> {
    for (key, Secret(value)) in &written {
        let path = format!("cookies.{key:?}");
        // RFC 6265, 4.1.1: a cookie's name is a token, like a header's.
        if HeaderName::try_from(key).is_err() {
            return Err(at.wrong(&path, "not a cookie name; use letters, digits and any of !#$%&'*+-.^_`|~"));
        }
        if value.expose_secret().bytes().any(|b| !(0x20..0x7f).contains(&b) || b == b';') {
            return Err(at.wrong(&path, "the value has characters no cookie may have; use visible ASCII, without semicolons"));
        }
    }
    Ok(written.into_iter().map(|(key, Secret(value))| (key, value)).collect())
}

fn proxies(written: Vec<Spanned<raw::Proxy>>, at: &At) -> Result<Vec<roster::Proxy>, Wrong> {
    let mut names = HashSet::new();
    let mut proxies = Vec::with_capacity(written.len());
    for written in written {
        let at = at.table(&written, "proxies", &written.get_ref().name);
        let proxy = written.into_inner();
        let name = name(&proxy.name, &at, "name")?;
        if !names.insert(Arc::clone(&name)) {
            return Err(at.wrong("name", "another proxy of this list has this name"));
        }
        let concurrency = at_once(proxy.concurrency, 1, &at)?;
        proxies.push(roster::Proxy { name, url: proxy_url(&proxy.url.0, &at, "url")?, concurrency });
    }
    Ok(proxies)
}

fn proxy_url(url: &SecretString, at: &At, key: &str) -> Result<ProxyUrl, Wrong> {
    const ALLOWED: &str =
        "not a proxy URL; write scheme://user:password@host:port with http, https, socks5 or socks5h, and no path";
    let text = url.expose_secret();
    let Ok(parsed) = url::Url::parse(text) else { return Err(at.wrong(key, ALLOWED)) };
    let bare = matches!(parsed.path(), "" | "/") && parsed.query().is_none() && parsed.fragment().is_none();
    let known = matches!(parsed.scheme(), "http" | "https" | "socks5" | "socks5h");
    if !known || !bare || parsed.host_str().is_none_or(str::is_empty) {
        return Err(at.wrong(key, ALLOWED));
    }
    Ok(ProxyUrl(text.into()))
}

fn name(text: &str, at: &At, key: &str) -> Result<Arc<str>, Wrong> {
    let fits = (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if fits { Ok(text.into()) } else { Err(at.wrong(key, "a name has 1 to 64 letters, digits, dots, hyphens or underscores")) }
}

fn at_once(written: Option<u32>, default: u32, at: &At) -> Result<u32, Wrong> {
    match written.unwrap_or(default) {
        n @ 1..=10_000 => Ok(n),
        _ => Err(at.wrong("concurrency", "allowed are whole numbers from 1 to 10000")),
    }
}

fn seconds(written: Option<f64>, default: Duration, least: f64, most: f64, at: &At, key: &str) -> Result<Duration, Wrong> {
    match written {
        None => Ok(default),
        Some(n) if n >= least && n <= most => Ok(Duration::from_secs_f64(n)),
        Some(_) => Err(at.wrong(key, format!("allowed are seconds from {least} to {most}"))),
    }
}
