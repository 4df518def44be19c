//! Cookie jars: one per identity, bounded in number, none ever read for another identity.
//!
//! A jar wins over the cookies of its identity's credential until the credential's own value changes: then the site's
//! older cookie of that name goes. A cookie the site deletes is gone from the jar, and the credential's is sent again.
//! Of a credential only keyed hashes stay here.

pub(crate) mod saved;
#[cfg(test)]
mod tests;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hmac::{Hmac, KeyInit, Mac};
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};
use moka::notification::RemovalCause;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::Sha256;
use tokio::time::Instant;
use url::Url;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::cookies::granted;
use crate::api::stats::Stats;
use crate::plane::{Credential, Grant, IdentityKey};
use crate::web::cookies::Jar;

/// Jars kept at once; the one unused for longest goes, and is counted.
const JARS_MAX: u64 = 10_000;

/// Superseded credentials of an identity whose leases may still be under way.
const PAST_MAX: usize = 4;

/// The jars of a crawl.
pub(crate) struct Jars {
    jars: Cache<IdentityKey, Arc<Mutex<Held>>>,
    keys: PrintKey,
    /// Rises whenever a jar may have changed.
    changes: AtomicU64,
}

/// The job's key of cookie hashes: those of two jobs say nothing about each other.
struct PrintKey([u8; 16]);

/// What is held for one identity: the site's cookies, and which words of the control plane they go before.
#[derive(Default)]
struct Held {
    jar: Jar,
    /// The newest credential: the same one again needs no look.
    last: Weak<Credential>,
    newest: Option<Version>,
    past: VecDeque<Version>,
    /// Its cookies by name.
    prints: Prints,
}

/// One wording of an identity's cookies.
struct Version {
    print: u64,
    /// The latest expiry of a lease that brought it.
    until: Instant,
}

/// Hashes of cookie values by name.
type Prints = HashMap<Vec<u8>, u64>;

/// Whether a lease brings the newest credential of its identity, or is left over from before a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Newest,
    Old,
}

impl Jars {
    /// No jars yet; evictions are counted in `stats`.
    pub(crate) fn new(stats: &Stats) -> Self {
        Self::with_bound(stats, JARS_MAX)
    }

    fn with_bound(stats: &Stats, most: u64) -> Self {
        let stats = stats.clone();
        let jars = Cache::builder()
            .max_capacity(most)
            .eviction_policy(EvictionPolicy::lru())
            .eviction_listener(move |_: Arc<IdentityKey>, _, cause| {
                if cause == RemovalCause::Size {
                    stats.inc("cookies/jars_evicted");
                }
            })
            .build();
        Self { jars, keys: PrintKey::draw(), changes: AtomicU64::new(0) }
    }

    /// The `Cookie` value that the jar of the lease's identity has for a URL.
    pub(crate) fn header(&self, grant: &Grant, url: &Url) -> Option<HeaderValue> {
        let held = self.jars.get(&grant.identity)?;
        let mut held = lock(&held);
        let known = held.newest.as_ref().map(|newest| newest.print);
        held.learn(grant, &self.keys);
        if held.newest.as_ref().map(|newest| newest.print) != known {
            self.changed();
        }
        held.jar.header(url)
    }

    /// Keeps the cookies of an answer from `url` to a request made under this lease.
    pub(crate) fn store(&self, grant: &Grant, url: &Url, headers: &HeaderMap) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let held = match self.jars.get(&grant.identity) {
            Some(held) => held,
            None => self.jars.get_with(grant.identity.clone(), Arc::default),
        };
        let mut held = lock(&held);
        let values = headers.get_all(SET_COOKIE).iter();
        self.changed();
        if held.learn(grant, &self.keys) == Age::Newest {
            held.jar.set(url, values);
            return;
        }
        // What the site says to a value that the plane has replaced is about a session that is over.
        let old = prints(&grant.credential, &self.keys);
        let Held { jar, prints, .. } = &mut *held;
        jar.set(url, values.filter(|value| old.get(name_of(value)) == prints.get(name_of(value))));
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Does the eviction that is due.
    pub(crate) fn tidy(&self) {
        self.jars.run_pending_tasks();
    }
}

impl Held {
    /// Compares the credential of a lease with what is known, and drops the site's cookies that it replaces.
    fn learn(&mut self, grant: &Grant, keys: &PrintKey) -> Age {
        if std::ptr::eq(self.last.as_ptr(), Arc::as_ptr(&grant.credential)) {
            if let Some(newest) = &mut self.newest {
                newest.until = newest.until.max(grant.expires_at);
            }
            return Age::Newest;
        }
        let prints = prints(&grant.credential, keys);
        let print = whole(&prints);
        if let Some(newest) = &mut self.newest
            && newest.print == print
        {
            newest.until = newest.until.max(grant.expires_at);
            self.last = Arc::downgrade(&grant.credential);
            return Age::Newest;
        }
        // A wording that was replaced and comes back under a lease granted since then is new once more.
        if self.past.iter().any(|past| past.print == print && grant.expires_at <= past.until) {
            return Age::Old;
        }
        for (name, print) in &prints {
            if self.prints.get(name) != Some(print) {
                self.jar.remove_named(&String::from_utf8_lossy(name));
            }
        }
        self.past.retain(|past| past.print != print);
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        self.past.extend(self.newest.replace(Version { print, until: grant.expires_at }));
        self.prints = prints;
        self.last = Arc::downgrade(&grant.credential);
        Age::Newest
    }
}

impl PrintKey {
    /// A key of its own for each job.
    fn draw() -> Self {
        let random = RandomState::new();
        Self((u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1))).to_le_bytes())
    }
}

fn prints(credential: &Credential, keys: &PrintKey) -> Prints {
    let mut hashers: HashMap<&[u8], Hmac<Sha256>> = HashMap::new();
    for (name, value) in granted(credential) {
        let hasher = hashers.entry(name).or_insert_with(|| keyed(keys));
        hasher.update(&value.len().to_le_bytes());
        hasher.update(value);
    }
    hashers.into_iter().map(|(name, hasher)| (name.to_vec(), first_eight(&hasher.finalize().into_bytes()))).collect()
}

fn keyed(keys: &PrintKey) -> Hmac<Sha256> {
    // HMAC takes a key of any length.
    #[allow(clippy::expect_used, reason = "only a cipher's key has a length of its own")]
    Hmac::new_from_slice(&keys.0).expect("HMAC takes a key of any length")
}

fn first_eight(sum: &[u8]) -> u64 {
    sum.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// One hash of all, whatever their order.
fn whole(prints: &Prints) -> u64 {
    prints.iter().fold(0, |sum, (name, print)| sum.wrapping_add(xxh3_64_with_seed(name, *print)))
}

/// The name of a `Set-Cookie` value; empty for a nameless cookie.
pub(super) fn name_of(value: &HeaderValue) -> &[u8] {
    let pair = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    memchr::memchr(b'=', pair).and_then(|at| pair.get(..at)).unwrap_or_default().trim_ascii()
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
