//! The HTTP cache, at place 900: nearest to the wire, under the lease of the request.
//!
//! Answers are kept per identity, so that nobody gets what another one was shown. One that comes from here is no attempt.
//! What is stored is what the request ended with: an answer that is tried again, or that repeats a secret of its lease, is
//! not kept. Decisions are in [`rules`] and [`rfc9111`], files in [`cache_store`](crate::downloader::cache_store). A cache
//! that fails costs a line in the log and a request to the site, never the crawl.

mod answer;
pub(crate) mod rfc9111;
mod rules;
mod secrets;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

pub(crate) use self::answer::{Came, Then};
use self::rules::{CacheRules, Good, Kind};
use crate::api::failure::{FailureKind, Fault};
use crate::api::stats::Stats;
use crate::downloader::cache_store::{CacheError, CacheStore, EntryName, Found};
use crate::downloader::middleware::granted;
use crate::downloader::progress::Tally;
use crate::downloader::transport::{Outgoing, Reply};
use crate::plane::{Grant, IdentityKey};
use crate::scheduler::job::Job;
use crate::settings::Settings;
use crate::web::canonical::canonicalize;

/// The cache of a crawl.
pub(crate) struct HttpCache {
    rules: CacheRules,
    store: CacheStore,
    stats: Stats,
    has_told: [AtomicBool; 2],
}

/// What was found for a request that is about to go out.
pub(crate) enum Looked {
    /// A stored answer takes the place of the wire's.
    Hit(Box<Reply>, EntryName),
    /// Nothing that may be used, and the site may not be asked.
    Missing(Fault),
    /// The request goes out.
    Ask(Asked),
}

/// What is known of a request that went out, until it is answered.
pub(crate) struct Asked(State);

enum State {
    /// Its answer is not the cache's business.
    Passed,
    /// A good answer to it makes stored ones of these names worthless.
    Unsafe([EntryName; 2]),
    Cached(Box<Question>),
}

struct Question {
    name: EntryName,
    method: Method,
    /// As the request was but for the conditions the cache added.
    headers: HeaderMap,
    /// Largest body.
    most: usize,
    /// What is stored and must be confirmed.
    stale: Option<Found>,
}

impl HttpCache {
    /// The cache of a spider, `None` where it is switched off.
    ///
    /// # Errors
    /// When its directory cannot be used.
    pub(crate) fn open(settings: &Settings, spider: &str, stats: &Stats) -> Result<Option<Self>, CacheError> {
        if !settings.httpcache_enabled {
            return Ok(None);
        }
        let store = CacheStore::open(&folder(settings, spider), settings.httpcache_gzip, settings.httpcache_max_bytes)?;
        let has_told = [const { AtomicBool::new(false) }; 2];
        Ok(Some(Self { rules: CacheRules::of(settings), store, stats: stats.clone(), has_told }))
    }

    /// Looks for an answer to a request that is ready to go out, and adds the conditions under which a stale one is good.
    pub(crate) async fn look_up(&self, job: &Job, grant: &Grant, outgoing: &mut Outgoing, tally: &Tally<'_>) -> Looked {
        let kind = self.rules.kind(job.url().scheme(), &outgoing.method, &outgoing.headers);
        if kind == Kind::Unsafe {
            return Looked::Ask(Asked(State::Unsafe(
                [Method::GET, Method::HEAD].map(|method| self.name(job, grant, outgoing, &method, b"")),
            )));
        }
        if job.request.passes_cache() || kind == Kind::Passed {
            return Looked::Ask(Asked(State::Passed));
        }
        let name = self.name(job, grant, outgoing, &outgoing.method, &outgoing.body);
        let mut question = Question {
            name,
            method: outgoing.method.clone(),
            headers: outgoing.headers.clone(),
            most: outgoing.limits.max_bytes,
            stale: None,
        };
        // A chain that comes back to a URL (for the cookie that was set meanwhile) wants another answer than the one before:
        // the new one takes the place of what is stored.
        let comes_back = job.chain.contains(&job.key);
        let found = if comes_back { None } else { self.find(&question).await };
        if let Some(found) = found {
            match self.rules.good(&found.head, &question.method, &question.headers, SystemTime::now()) {
                Good::AsItIs(age) => {
                    if let Some(reply) = self.load(&question, found, age, tally).await {
                        self.stats.inc("httpcache/hit");
                        return Looked::Hit(Box::new(reply), name);
                    }
                }
                Good::IfConfirmed(conditions) => {
                    conditions.into_iter().for_each(|(name, value)| _ = outgoing.headers.insert(name, value));
                    question.stale = Some(found);
                }
                Good::Nothing => {}
            }
        }
        if question.stale.is_none() {
            self.stats.inc("httpcache/miss");
        }
        if self.rules.is_offline(&question.headers) {
            self.stats.inc("httpcache/ignore");
            let message = "the HTTP cache has no answer that may be used, and the site may not be asked";
            return Looked::Missing(Fault::new(FailureKind::NotCached, message));
        }
        Looked::Ask(Asked(State::Cached(Box::new(question))))
    }

    /// The name under which the answer to a request is stored: who asks, by lease or otherwise, and for what. The URL is that
    /// which goes out, as hooks may change it, without what the lease adds.
    fn name(&self, job: &Job, grant: &Grant, outgoing: &Outgoing, method: &Method, body: &[u8]) -> EntryName {
        let IdentityKey { site, name } = &grant.identity;
        let mut url = outgoing.url.clone();
        if granted::clear(&mut url, &grant.credential).is_err() {
            url.clone_from(job.url());
        }
        let url = canonicalize(url.as_str()).unwrap_or_else(|_| url.as_str().to_owned());
        let parts = [site.as_bytes(), name.as_bytes(), method.as_str().as_bytes(), url.as_bytes(), body];
        self.store.name(&[&parts[..], &named_otherwise(job, grant, outgoing)].concat())
    }

    /// What is stored for a question and was an answer to the same.
    async fn find(&self, question: &Question) -> Option<Found> {
        let found = self.store.find(question.name).await;
        let found = found.unwrap_or_else(|error| {
            self.failed(&error);
            None
        })?;
        let fits = usize::try_from(found.body_len()).is_ok_and(|len| len <= question.most);
        let is_same =
            !self.rules.varies() || found.head.vary.iter().all(|(name, print)| self.print(&question.headers, name) == *print);
        (fits && is_same).then_some(found)
    }

    /// The stored answer as a whole, with `Age` where the policy counts it. Room for the body is taken before it is read.
    async fn load(
        &self,
        question: &Question,
        found: Found,
        age: Option<std::time::Duration>,
        tally: &Tally<'_>,
    ) -> Option<Reply> {
        tally.take(usize::try_from(found.body_len()).unwrap_or(usize::MAX)).await;
        let head = found.head.clone();
        match self.store.body(found).await {
            Ok(body) => Some(answer::reply(head, body, age)),
            Err(error) => {
                self.failed(&error);
                self.forget(question.name).await;
                None
            }
        }
    }

    /// Removes a stored answer that is not to be used again.
    pub(crate) async fn forget(&self, name: EntryName) {
        if let Err(error) = self.store.remove(name).await {
            self.failed(&error);
        }
    }

    /// A hash of what a request has in one header.
    fn print(&self, headers: &HeaderMap, name: &str) -> String {
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
        self.store.print(&values)
    }

    /// Counts a failure of the cache, and names the first one.
    fn failed(&self, error: &CacheError) {
        let (key, place) = match error {
            CacheError::Unusable { .. } => ("httpcache/unusable", 0),
            _ => ("httpcache/failed", 1),
        };
        self.stats.inc(key);
        let is_first = self.has_told.get(place).is_some_and(|told| !told.swap(true, Ordering::Relaxed));
        if is_first {
            tracing::warn!(%error, "the HTTP cache is not of use for a request; further ones are only counted ({key})");
        }
    }
}

/// Whom a request names that its lease does not: by `Authorization`, or by cookies of the spider's.
fn named_otherwise<'a>(job: &'a Job, grant: &Grant, outgoing: &'a Outgoing) -> Vec<&'a [u8]> {
    let by_lease = grant.credential.headers.get(AUTHORIZATION);
    let user = outgoing.headers.get(AUTHORIZATION).filter(|value| by_lease != Some(*value));
    let header = job.request.headers().and_then(|own| own.get(COOKIE));
    let cookies = job.request.cookies().iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    user.into_iter().chain(header).map(HeaderValue::as_bytes).chain(cookies).collect()
}

impl fmt::Debug for HttpCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCache").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Where a spider's answers lie.
fn folder(settings: &Settings, spider: &str) -> PathBuf {
    // Joined to an absolute path, the directory above it counts for nothing.
    settings.data_dir.join(&settings.httpcache_dir).join(escaped(spider))
}

/// A spider's name as the name of a directory.
fn escaped(spider: &str) -> String {
    let is_plain =
        |(at, byte): &(usize, u8)| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (*byte == b'.' && *at > 0);
    let letter =
        |place: (usize, u8)| if is_plain(&place) { char::from(place.1).to_string() } else { format!("%{:02X}", place.1) };
    spider.bytes().enumerate().map(letter).collect()
}

/// A URL as it may lie on disk.
fn bare(url: &Url) -> Url {
    let mut url = url.clone();
    // Fails only for URLs without a host, which have no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests;
