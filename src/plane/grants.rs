//! What a control plane grants on the wire, as the crawl uses it.
//!
//! What belongs to an identity or a proxy is made once and shared by all leases of it, for as long as the plane says the
//! same of it. No message here shows a value of a credential or the URL of a proxy.

pub(super) mod credential;
mod recent;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use url::Url;

use self::recent::Recent;
use super::contract::{About, Credential, Grant, IdentityKey, LeaseId, ProxyAbout, ProxyUrl};
use crate::spinneret::{AcquireResponse, Credential as WireCredential, Expiry, LeaseInfo, ProxyAssignment};

/// Where this module logs.
const TARGET: &str = "dragline::plane";

/// Identities and proxies of which at least so many, those used last, are kept, and at most twice as many.
const KEPT: usize = 10_000;
/// Words (groups, types, kinds, regions) that are kept.
const WORDS: usize = 4_096;

/// The longest name of a lease (wire contract, 4.1): one that is longer cannot be reported on or given back.
const LONGEST_ID: usize = 128;

/// How long a lease lives of which nothing is said (wire contract, 21.1: `rotation.lease_ttl`).
const LIFE: Duration = Duration::from_secs(120);

/// Makes grants of what a plane answers.
pub(crate) struct Grants {
    kept: Mutex<Kept>,
}

/// A lease that is out, and that no request can be made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// The lease, to be given back; `None` when it has no name to do that by.
    pub(crate) lease: Option<LeaseId>,
    /// What is wrong with it, and what to do.
    pub(crate) why: String,
}

struct Kept {
    identities: Recent<Identity>,
    proxies: Recent<Proxy>,
    words: HashSet<Arc<str>>,
    /// Where the name of an identity together with its site's is put together.
    key: String,
}

/// What was said last of an identity, and what was made of it.
struct Identity {
    key: IdentityKey,
    said: WireCredential,
    made: Arc<Credential>,
    /// A person was told that not all of it can be used.
    is_warned: bool,
}

struct Proxy {
    url: ProxyUrl,
    about: ProxyAbout,
}

impl Grants {
    pub(crate) fn new() -> Self {
        Self::keeping(KEPT)
    }

    /// The same with another number of identities and proxies to keep.
    fn keeping(most: usize) -> Self {
        let kept = Kept { identities: Recent::new(most), proxies: Recent::new(most), words: HashSet::new(), key: String::new() };
        Self { kept: Mutex::new(kept) }
    }

    /// The grant of a lease of this site that was answered at `now`, when the wall clock, which need not be the plane's,
    /// said `wall`.
    ///
    /// Two grants of one identity have the same credential, `Arc::ptr_eq`, unless the plane said something else of it
    /// meanwhile or many other identities were used in between.
    pub(crate) fn grant(
        &self,
        site: &Arc<str>,
        answer: AcquireResponse,
        wall: Timestamp,
        now: Instant,
    ) -> Result<Grant, Unusable> {
        let AcquireResponse { lease, credential, proxy, hints } = answer;
        let renew_before = Duration::from_millis(u64::try_from(hints.renew_before_ms).unwrap_or(0));
        let ends = ends(Expiry::granted(lease.expires_at, renew_before, wall, now), renew_before, now);
        let LeaseInfo { lease_id, identity_id, identity_type, endpoint_group, sticky, probe, .. } = lease;
        let unusable = |why: String| Unusable {
            lease: (!lease_id.is_empty() && lease_id.len() <= LONGEST_ID).then(|| LeaseId(lease_id.as_str().into())),
            why,
        };
        if lease_id.is_empty() {
            return Err(unusable(format!(
                "a lease of site {site} was granted without an id; look whether the server is a Spinneret server"
            )));
        }
        if lease_id.len() > LONGEST_ID {
            return Err(unusable(format!(
                "a lease of site {site} was granted with an id of {} bytes, allowed are {LONGEST_ID}; look whether the server is a \
                 Spinneret server",
                lease_id.len()
            )));
        }
        if identity_id.is_empty() {
            return Err(unusable(format!("lease {} of site {site} was granted without an identity", lease_id.escape_debug())));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (url, about) = match proxy {
            None => (None, None),
            Some(proxy) => kept.proxy(proxy).map_err(unusable)?,
        };
        let (identity, credential) = kept.identity(site, &identity_id, credential);
        let about = About {
            group: kept.word(&endpoint_group),
            identity_type: kept.word(&identity_type),
            proxy: about,
            is_sticky: sticky,
            is_probe: probe,
        };
        drop(kept);
        let renew_before = if renew_before.is_zero() { ends.saturating_duration_since(now) / 4 } else { renew_before };
        Ok(Grant { lease: LeaseId(lease_id.into()), identity, credential, proxy: url, about, expires_at: ends, renew_before })
    }
}

/// The end of a lease granted now: as it is known, or else by what is said of its duration, or else the usual one.
fn ends(expiry: Expiry, renew_before: Duration, now: Instant) -> Instant {
    expiry.ends().unwrap_or_else(|| now + if renew_before.is_zero() { LIFE } else { renew_before * 4 })
}

impl Kept {
    fn identity(&mut self, site: &Arc<str>, id: &str, said: WireCredential) -> (IdentityKey, Arc<Credential>) {
        self.key.clear();
        self.key.push_str(site);
        // No name holds it.
        self.key.push('\0');
        self.key.push_str(id);
        if let Some(known) = self.identities.get(&self.key) {
            if known.said != said {
                let (made, left_out) = credential::read(&said);
                known.made = Arc::new(made);
                known.said = said;
                known.is_warned = left_out.warn(&known.key, known.is_warned);
            }
            return (known.key.clone(), Arc::clone(&known.made));
        }
        let key = IdentityKey { site: Arc::clone(site), name: id.into() };
        let (made, left_out) = credential::read(&said);
        let made = Arc::new(made);
        let is_warned = left_out.warn(&key, false);
        let known = Identity { key: key.clone(), said, made: Arc::clone(&made), is_warned };
        self.identities.insert(self.key.as_str().into(), known);
        (key, made)
    }

    /// The proxy of a lease: its URL, unless it is empty, and what may be said of it.
    fn proxy(&mut self, proxy: ProxyAssignment) -> Result<(Option<ProxyUrl>, Option<ProxyAbout>), String> {
        let ProxyAssignment { proxy_id, url, kind, region } = proxy;
        if url.is_empty() {
            return Ok((None, None));
        }
        if let Some(Proxy { url, about }) = self.proxies.get(&url)
            && (&*about.id, &*about.kind, &*about.region) == (&*proxy_id, &*kind, &*region)
        {
            return Ok((Some(url.clone()), Some(about.clone())));
        }
        if !is_proxy(&url) {
            return Err(format!(
                "the URL of proxy {} (not shown) cannot be used; it must be http://, https:// or socks5:// with host and port; mend \
                 the proxy in the control plane",
                proxy_id.escape_debug()
            ));
        }
        let about = ProxyAbout { id: self.word(&proxy_id), kind: self.word(&kind), region: self.word(&region) };
        let key: Arc<str> = url.into();
        let url = ProxyUrl(Arc::clone(&key));
        self.proxies.insert(key, Proxy { url: url.clone(), about: about.clone() });
        Ok((Some(url), Some(about)))
    }

    /// The same word, once.
    fn word(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.words.get(word) {
            return Arc::clone(known);
        }
        if self.words.len() >= WORDS {
            self.words.clear();
        }
        let word: Arc<str> = word.into();
        self.words.insert(Arc::clone(&word));
        word
    }
}

fn is_proxy(url: &str) -> bool {
    // `Url` finds a host in `http:host` and drops white space; a connector may not.
    let is_plain = url.contains("://") && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    is_plain
        && Url::parse(url).is_ok_and(|url| {
            ["http", "https", "socks5", "socks5h"].contains(&url.scheme()) && url.host_str().is_some_and(|host| !host.is_empty())
        })
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants").finish_non_exhaustive()
    }
}
