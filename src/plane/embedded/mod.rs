//! The control plane in this process: the server's model over one file, for crawls without a server.
//!
//! Everything is answered at once: its futures are ready when first polled, nothing happens before that, and no task runs.
//! What time brings is done at the next call. Time is tokio's clock, counted from the wall clock at the start. Keeps nothing on
//! disk and knows no wire. Without a file, and for asks that no rule matched, every host has one anonymous identity.

mod anonymous;
mod credentials;
mod feed;
mod operate;
mod refusals;
mod reports;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use secrecy::SecretString;
use tokio::time::Instant;

use self::anonymous::Anonymous;
use self::credentials::Credentials;
use self::feed::Feed;
pub use self::operate::{IdentityChange, Operation};
use super::desk::{Clock, Desk};
use super::model::authority::{Granted, GrantedProxy};
use super::model::refusal::Reason;
use super::model::scope::Scopes;
use super::model::token::Token;
use super::model::{Ms, Plane};
use super::seed::{self, Part, Seed, SeedError};
use super::{
    About, Ask, ConfigFeed, ControlPlane, Grant, IdentityKey, IdentityUse, LeaseId, PlaneError, PlaneLedger, ProxyAbout,
    ProxyUrl, Refusal, Report, Taken,
};
use crate::dice::Dice;
use crate::permissions::is_open_to_others;
use crate::spinneret::messages::{ReleaseRequest, RenewRequest};
use crate::spinneret::{AcquireBatchRequest, AcquireRequest, ConfigKey, GetSecretRequest};

/// Reports that the model takes in one call.
const REPORTS: usize = 500;

/// A control plane in this process.
pub struct Embedded {
    desk: Arc<Desk>,
    /// What the plane was read from; without it every ask is anonymous.
    file: Option<PathBuf>,
    /// Of every call from here; may do everything.
    token: Arc<Token>,
    timeline: Timeline,
    anonymous: Mutex<Anonymous>,
    credentials: Mutex<Credentials>,
    /// Used again and again, so that asking costs nothing.
    request: Mutex<AcquireRequest>,
}

/// What the model's moments are by tokio's clock.
#[derive(Debug, Clone, Copy)]
struct Timeline {
    begin: Instant,
    /// The same moment by the wall clock.
    wall: Ms,
}

impl Embedded {
    /// A plane without a file: every site a rule names has one anonymous identity, without limit, rest or ban.
    #[must_use]
    pub fn anonymous() -> Self {
        #[allow(clippy::expect_used, reason = "a seed without anything contradicts nothing")]
        Self::of(Seed::default(), None, chance()).expect("a seed without anything contradicts nothing")
    }

    /// A plane of the file at `path`. One that others than its owner may read is used, with a warning in the log; so with the
    /// files it refers to.
    ///
    /// # Errors
    /// When a file cannot be read or says something that is not allowed.
    pub fn load(path: &Path) -> Result<Self, SeedError> {
        let seed = seed::load(path)?;
        for file in seed.files.iter().filter(|file| is_open_to_others(file)) {
            tracing::warn!(path = %file.display(), "the identities file can be read by other users; run chmod 600 on it");
        }
        Self::of(seed, Some(path), chance())
    }

    /// A plane of the text of the file at `path`: JSON if its name ends so, TOML otherwise. The files it refers to are beside
    /// it.
    ///
    /// # Errors
    /// When it, or a file it refers to, says something that is not allowed.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SeedError> {
        Self::parse_with_chance(text, path, chance())
    }

    /// The same with a seed for all its chance: equal calls at equal moments get equal answers.
    ///
    /// # Errors
    /// As [`Embedded::parse`].
    pub fn parse_with_chance(text: &str, path: &Path, chance: u64) -> Result<Self, SeedError> {
        let read = |path: &Path| std::fs::read(path);
        Self::of(seed::parse(text, path, Part::Whole, &read)?, Some(path), chance)
    }

    fn of(seed: Seed, file: Option<&Path>, chance: u64) -> Result<Self, SeedError> {
        let timeline = Timeline::begin();
        let token = Token {
            name: "in-process".into(),
            namespace: Arc::clone(&seed.namespace),
            scopes: Scopes::everything(),
            networks: Vec::new(),
            expires_at: None,
            rate_limit: None,
        };
        let plane = Plane::new(seed, timeline.wall, Dice::new(chance))
            .map_err(|error| SeedError::Unusable { path: file.unwrap_or(Path::new("")).to_owned(), reason: error.to_string() })?;
        Ok(Self {
            desk: Arc::new(Desk::new(plane, Clock::new(move || timeline.now()))),
            file: file.map(Path::to_owned),
            token: Arc::new(token),
            timeline,
            anonymous: Mutex::new(Anonymous::new(chance as u32)),
            credentials: Mutex::default(),
            request: Mutex::default(),
        })
    }

    /// Does what time has brought: ends leases that are over, bans and quarantines. Every call does; this is for the time in
    /// which there is none.
    pub fn sweep(&self) {
        lock(&self.anonymous).sweep(Instant::now());
        self.with(|_, _| ());
    }

    /// Grants a lease or says why not, at once.
    ///
    /// # Errors
    /// The refusal, with a hint when to ask again.
    pub fn acquire_now(&self, ask: &Ask) -> Result<Grant, Refusal> {
        if self.is_anonymous(ask) {
            return Ok(lock(&self.anonymous).grant(ask, Instant::now()));
        }
        let mut request = lock(&self.request);
        fill(&mut request, ask);
        let granted = self.with(|plane, now| plane.grant(&self.token, &request, now));
        drop(request);
        match granted {
            Ok(granted) => Ok(self.made(&ask.site, granted)),
            Err(refusal) => Err(self.refused(ask, refusal)),
        }
    }

    /// Grants up to `count` leases, 1 to [`BATCH_MAX`](super::BATCH_MAX), each of another identity; at least one, or says why
    /// not. There is one anonymous identity for each host.
    ///
    /// # Errors
    /// As [`Embedded::acquire_now`].
    pub fn acquire_batch_now(&self, ask: &Ask, count: usize) -> Result<Vec<Grant>, Refusal> {
        if self.is_anonymous(ask) {
            return self.acquire_now(ask).map(|grant| vec![grant]);
        }
        let mut each = AcquireRequest::default();
        fill(&mut each, ask);
        let request = AcquireBatchRequest::new(each, i32::try_from(count).unwrap_or(i32::MAX));
        match self.with(|plane, now| plane.grant_batch(&self.token, &request, now)) {
            Ok(granted) => Ok(granted.into_iter().map(|granted| self.made(&ask.site, granted)).collect()),
            Err(refusal) => Err(self.refused(ask, refusal)),
        }
    }

    /// Takes reports.
    pub fn report_now(&self, reports: &[Report]) -> Taken {
        let mut taken = Taken::default();
        let mut named = Vec::with_capacity(reports.len());
        {
            let mut anonymous = lock(&self.anonymous);
            let now = Instant::now();
            for report in reports {
                if Anonymous::owns(&report.lease) {
                    anonymous.report(report, &mut taken, now);
                } else {
                    named.push(Ok(reports::on_the_wire(report, self.timeline)));
                }
            }
        }
        while !named.is_empty() {
            let rest = named.split_off(named.len().min(REPORTS));
            let call = std::mem::replace(&mut named, rest);
            // It fails for want of a scope only, and the token has all.
            if let Ok(answer) = self.with(|plane, now| plane.report(&self.token, call, now)) {
                taken.duplicated += u64::try_from(answer.duplicated).unwrap_or(0);
                taken.rejected.extend(answer.rejected.into_iter().map(reports::rejected));
            }
        }
        taken
    }

    /// Ends a lease; one that is over stays over.
    ///
    /// # Errors
    /// [`PlaneError::UnknownLease`] when the plane never knew it, or has forgotten it.
    pub fn release_now(&self, lease: &LeaseId) -> Result<(), PlaneError> {
        if Anonymous::owns(lease) {
            lock(&self.anonymous).release(lease, Instant::now());
            return Ok(());
        }
        let request = ReleaseRequest { lease_id: lease.0.to_string() };
        let released = self.with(|plane, now| plane.release(&self.token, &request, now));
        released.map(|_| ()).map_err(|_| PlaneError::UnknownLease(lease.0.to_string()))
    }

    /// Prolongs a lease by its whole time from now on, as far as the plane lets it.
    ///
    /// # Errors
    /// [`PlaneError::UnknownLease`], or [`PlaneError::NoLease`] when it is over or as long as it may become.
    pub fn renew_now(&self, lease: &LeaseId) -> Result<Instant, PlaneError> {
        if Anonymous::owns(lease) {
            let renewed = lock(&self.anonymous).renew(lease, Instant::now());
            return renewed.ok_or_else(|| PlaneError::NoLease(lease.0.to_string()));
        }
        let request = RenewRequest { lease_id: lease.0.to_string(), extend_ms: 0 };
        let renewed = self.with(|plane, now| plane.renew_until(&self.token, &request, now));
        renewed.map(|until| self.timeline.instant(until)).map_err(|refusal| match refusal.reason {
            Some(Reason::LeaseUnknown) => PlaneError::UnknownLease(lease.0.to_string()),
            _ => PlaneError::NoLease(lease.0.to_string()),
        })
    }

    /// All leases by their end.
    #[must_use]
    pub fn ledger_now(&self) -> PlaneLedger {
        self.sweep();
        let anonymous = lock(&self.anonymous).ledger();
        let named = self.with(|plane, _| plane.totals());
        PlaneLedger {
            acquired: named.acquired + anonymous.acquired,
            released: named.released + anonymous.released,
            expired: named.expired + anonymous.expired,
            open: named.open + anonymous.open,
            reports: named.reports + anonymous.reports,
            cooled: named.cooled,
        }
    }

    /// Follows config items; see [`ControlPlane::follow`].
    ///
    /// # Errors
    /// [`PlaneError::Invalid`] for none or more than 200 items, or a name that is not allowed.
    pub fn follow_now(&self, keys: Vec<ConfigKey>) -> Result<Arc<dyn ConfigFeed>, PlaneError> {
        Ok(Arc::new(Feed::begin(Arc::clone(&self.desk), Arc::clone(&self.token), keys)?))
    }

    /// A secret of the file; see [`ControlPlane::secret`].
    ///
    /// # Errors
    /// [`PlaneError::NotFound`] when there is none, [`PlaneError::Invalid`] for a path that is not allowed.
    pub fn secret_now(&self, path: &str) -> Result<SecretString, PlaneError> {
        let request = GetSecretRequest { path: path.to_owned(), version: 0 };
        let secret = self.with(|plane, _| plane.get_secret(&self.token, &request)).map_err(refusals::failed)?;
        tracing::info!(target: "dragline::plane", path, version = secret.version, "a secret was read");
        Ok(SecretString::from(secret.value))
    }

    fn is_anonymous(&self, ask: &Ask) -> bool {
        ask.anonymous || self.file.is_none()
    }

    /// Does something with the plane, after what is due.
    fn with<T>(&self, act: impl FnOnce(&mut Plane, Ms) -> T) -> T {
        self.desk.with(|plane, now| {
            plane.tick(now);
            act(plane, now)
        })
    }

    fn made(&self, site: &Arc<str>, granted: Granted) -> Grant {
        let identity = IdentityKey { site: Arc::clone(site), name: granted.identity };
        let credential = lock(&self.credentials).of(granted.place, granted.credential, &identity);
        let (proxy, proxy_about) = granted.proxy.map(split).unzip();
        Grant {
            lease: LeaseId(granted.lease.text()),
            identity,
            credential,
            proxy,
            about: About {
                group: granted.group,
                identity_type: granted.kind,
                proxy: proxy_about,
                is_sticky: granted.is_sticky,
                is_probe: granted.is_probe,
            },
            expires_at: self.timeline.instant(granted.until),
            renew_before: Duration::from_millis(granted.renew_before),
        }
    }

    fn refused(&self, ask: &Ask, refusal: super::model::refusal::Refusal) -> Refusal {
        let file = self.file.as_deref().unwrap_or(Path::new(""));
        self.desk.with(|plane, _| refusals::refused(ask, refusal, plane, file))
    }
}

impl Timeline {
    fn begin() -> Self {
        let wall = Ms::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
        Self { begin: Instant::now(), wall }
    }

    fn now(&self) -> Ms {
        let passed = Ms::try_from(self.begin.elapsed().as_millis()).unwrap_or(Ms::MAX);
        self.wall.saturating_add(passed)
    }

    /// A moment of the model; one beyond the clock's end is the beginning's, which is over.
    fn instant(&self, at: Ms) -> Instant {
        self.begin.checked_add(Duration::from_millis(at.saturating_sub(self.wall))).unwrap_or(self.begin)
    }

    /// A moment of tokio's clock as the model tells it.
    fn moment(&self, at: Instant) -> Ms {
        let millis = |time: Duration| Ms::try_from(time.as_millis()).unwrap_or(Ms::MAX);
        match at.checked_duration_since(self.begin) {
            Some(passed) => self.wall.saturating_add(millis(passed)),
            None => self.wall.saturating_sub(millis(self.begin.duration_since(at))),
        }
    }
}

impl ControlPlane for Embedded {
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>> {
        Box::pin(async move { self.acquire_now(&ask) })
    }

    fn acquire_batch(&self, ask: Ask, count: usize) -> BoxFuture<'_, Result<Vec<Grant>, Refusal>> {
        Box::pin(async move { self.acquire_batch_now(&ask, count) })
    }

    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<Taken, PlaneError>> {
        Box::pin(async move { Ok(self.report_now(&reports)) })
    }

    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>> {
        Box::pin(async move { self.release_now(&lease) })
    }

    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>> {
        Box::pin(async move { self.renew_now(&lease) })
    }

    fn ledger(&self) -> Option<PlaneLedger> {
        Some(self.ledger_now())
    }

    fn identities(&self) -> Vec<IdentityUse> {
        self.with(|plane, _| plane.uses())
    }

    fn follow(&self, keys: Vec<ConfigKey>) -> BoxFuture<'_, Result<Arc<dyn ConfigFeed>, PlaneError>> {
        Box::pin(async move { self.follow_now(keys) })
    }

    fn secret(&self, path: String) -> BoxFuture<'_, Result<SecretString, PlaneError>> {
        Box::pin(async move { self.secret_now(&path) })
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Nothing that changes what is behind these locks can panic half-way.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A seed that differs from run to run; no secret, so any failure may be 0.
fn chance() -> u64 {
    getrandom::u64().unwrap_or(0)
}

/// What is asked of the model.
fn fill(request: &mut AcquireRequest, ask: &Ask) {
    let texts = [
        (&mut request.site, &*ask.site),
        (&mut request.client, &*ask.client),
        (&mut request.uri, &*ask.path),
        (&mut request.endpoint_group, &*ask.group),
        (&mut request.session_key, ask.session_key.as_deref().unwrap_or_default()),
    ];
    for (field, text) in texts {
        field.clear();
        field.push_str(text);
    }
}

fn split(proxy: GrantedProxy) -> (ProxyUrl, ProxyAbout) {
    let GrantedProxy { id, kind, region, url } = proxy;
    (ProxyUrl(url), ProxyAbout { id, kind, region })
}
