//! The embedded control plane: the server's model of leases in memory, for crawls without a server.
//!
//! Leases identities and proxies of a [`Roster`], lets them rest and cool down, and keeps an exact ledger.
//! Everything is answered at once: its futures are ready when first polled, and nothing happens before that.
//! Keeps nothing on disk and knows no wire.

mod leases;
pub mod roster;
mod site;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use self::leases::{Holding, Leases, Taken, after};
use self::roster::{ANONYMOUS, Roster};
use self::site::{Proxy, Site};
use super::{
    About, Ask, ControlPlane, Credential, ErrorKind, Grant, IdentityKey, LeaseId, PlaneError, PlaneLedger, Refusal, RefusalKind,
    Rejected, Report, Taken as TakenIn,
};

/// How long an anonymous lease lasts.
const ANONYMOUS_TTL: Duration = Duration::from_secs(300);

/// A control plane in this process.
pub struct Embedded {
    state: Mutex<State>,
    /// Shared by every anonymous grant, so that one costs next to nothing.
    nobody: Arc<str>,
    nothing: Arc<Credential>,
}

struct State {
    leases: Leases,
    /// `None` without a roster: then every site has one anonymous identity.
    sites: Option<HashMap<Arc<str>, usize>>,
    table: Vec<Site>,
    proxies: Vec<Proxy>,
}

impl Embedded {
    /// A plane that leases from `roster`; without one, every site a rule names has an anonymous identity.
    #[must_use]
    pub fn new(roster: Option<&Roster>) -> Self {
        // Sets this run's lease names apart from an earlier one's; no secret, so any failure may be 0.
        let instance = getrandom::u32().unwrap_or(0);
        let (mut table, mut proxies) = (Vec::new(), Vec::new());
        let sites = roster.map(|roster| {
            proxies.extend(roster.proxies.iter().map(Proxy::new));
            let shared: Vec<usize> = (0..proxies.len()).collect();
            table.extend(roster.sites.iter().map(|site| Site::new(site, &shared, &mut proxies)));
            roster.sites.iter().enumerate().map(|(index, site)| (Arc::clone(&site.name), index)).collect()
        });
        Self {
            state: Mutex::new(State { leases: Leases::new(instance), sites, table, proxies }),
            nobody: ANONYMOUS.into(),
            nothing: Arc::default(),
        }
    }

    /// Takes back what has expired. Every call does; this is for the time in which there is none.
    pub fn sweep(&self) {
        self.state().sweep(Instant::now());
    }

    /// Grants a lease or says why not, at once.
    ///
    /// # Errors
    /// The refusal, with the exact time until something is free unless that hangs on a lease being given back.
    pub fn acquire_now(&self, ask: &Ask) -> Result<Grant, Refusal> {
        let now = Instant::now();
        let mut state = self.state();
        state.sweep(now);
        let index = match &state.sites {
            _ if ask.anonymous => None,
            None => None,
            Some(sites) => Some(sites.get(&ask.site).copied().ok_or_else(|| unknown(&ask.site, sites))?),
        };
        match index {
            Some(index) => state.grant(index, ask, now),
            None => Ok(self.anonymous(&mut state, ask, now)),
        }
    }

    /// Takes reports; answers those that were rejected.
    pub fn report_now(&self, reports: &[Report]) -> Vec<Rejected> {
        let now = Instant::now();
        let mut state = self.state();
        state.sweep(now);
        reports.iter().filter_map(|report| state.report(report, now)).collect()
    }

    /// Ends a lease; one that is over stays over.
    pub fn release_now(&self, lease: &LeaseId) {
        let now = Instant::now();
        let mut state = self.state();
        state.sweep(now);
        if let Some(holding) = state.leases.release(lease).and_then(|ended| ended.holding) {
            state.give_back(holding, now);
        }
    }

    /// Prolongs a lease by its whole time from now on.
    ///
    /// # Errors
    /// [`PlaneError::NoLease`] when it is unknown or over.
    pub fn renew_now(&self, lease: &LeaseId) -> Result<Instant, PlaneError> {
        let now = Instant::now();
        let mut state = self.state();
        state.sweep(now);
        state.leases.renew(lease, now).ok_or_else(|| PlaneError::NoLease(lease.0.to_string()))
    }

    fn anonymous(&self, state: &mut State, ask: &Ask, now: Instant) -> Grant {
        let (lease, expires_at) = state.leases.open(None, ANONYMOUS_TTL, now);
        Grant {
            lease,
            identity: IdentityKey { site: Arc::clone(&ask.site), name: Arc::clone(&self.nobody) },
            credential: Arc::clone(&self.nothing),
            proxy: None,
            about: About::default(),
            expires_at,
            renew_before: ANONYMOUS_TTL / 4,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that changes the state can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlPlane for Embedded {
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>> {
        Box::pin(async move { self.acquire_now(&ask) })
    }

    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<TakenIn, PlaneError>> {
        Box::pin(async move { Ok(TakenIn { duplicated: 0, rejected: self.report_now(&reports) }) })
    }

    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>> {
        Box::pin(async move {
            self.release_now(&lease);
            Ok(())
        })
    }

    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>> {
        Box::pin(async move { self.renew_now(&lease) })
    }

    fn ledger(&self) -> Option<PlaneLedger> {
        let mut state = self.state();
        state.sweep(Instant::now());
        Some(state.leases.ledger())
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Embedded")
            .field("sites", &state.table.len())
            .field("proxies", &state.proxies.len())
            .field("ledger", &state.leases.ledger())
            .finish_non_exhaustive()
    }
}

impl State {
    fn sweep(&mut self, now: Instant) {
        while let Some(ended) = self.leases.expire(now) {
            if let Some(holding) = ended.holding {
                self.give_back(holding, ended.expires_at);
            }
        }
    }

    fn grant(&mut self, index: usize, ask: &Ask, now: Instant) -> Result<Grant, Refusal> {
        let Self { leases, table, proxies, .. } = self;
        // The index comes from the table's own map.
        let Some(site) = table.get_mut(index) else { return Err(unknown(&ask.site, &HashMap::new())) };
        let pick = site.pick(ask, proxies, now).map_err(|no| Refusal {
            why: no.why,
            retry_after: no.free_at.map(|at| at.duration_since(now)),
            message: no.message,
        })?;
        let turn = leases.ledger().acquired + 1;
        let Some((identity, credential)) = site.take(pick, turn, now) else {
            return Err(unknown(&ask.site, &HashMap::new()));
        };
        let proxy = pick.proxy.and_then(|proxy| proxies.get_mut(proxy)).map(|proxy| {
            proxy.take(turn);
            proxy.url()
        });
        let holding = Holding { site: index, identity: pick.identity, group: pick.group, proxy: pick.proxy };
        let ttl = site.rules.ttl;
        let (lease, expires_at) = leases.open(Some(holding), ttl, now);
        Ok(Grant { lease, identity, credential, proxy, about: About::default(), expires_at, renew_before: ttl / 4 })
    }

    fn report(&mut self, report: &Report, now: Instant) -> Option<Rejected> {
        let (taken, ended) = if report.release {
            self.leases.report_last(&report.lease, report.id).map(|(taken, ended)| (taken, ended.holding)).unzip()
        } else {
            (self.leases.report(&report.lease, report.id), None)
        };
        let Some(taken) = taken else {
            return Some(Rejected { id: report.id, is_unknown_lease: true, reason: "lease is unknown or over".to_owned() });
        };
        if let Taken::First(Some(holding)) = taken {
            self.learn(holding, report, now);
        }
        if let Some(holding) = ended.flatten() {
            self.give_back(holding, now);
        }
        None
    }

    /// What a report says about the identity and the proxy it was made with.
    fn learn(&mut self, holding: Holding, report: &Report, now: Instant) {
        let Some(site) = self.table.get_mut(holding.site) else { return };
        let rest = match report.status {
            Some(429) => site.rules.cooldown_429.max(report.retry_after.unwrap_or_default()),
            Some(403) => site.rules.cooldown_403,
            _ => Duration::ZERO,
        };
        if !rest.is_zero() {
            site.rest(holding.identity, holding.group, after(now, rest));
        }
        if report.error == Some(ErrorKind::ProxyAuth) || report.status == Some(407) {
            let until = after(now, site.rules.cooldown_proxy);
            if let Some(proxy) = holding.proxy.and_then(|proxy| self.proxies.get_mut(proxy)) {
                proxy.rest(until);
            }
        }
    }

    fn give_back(&mut self, holding: Holding, at: Instant) {
        if let Some(site) = self.table.get_mut(holding.site) {
            site.give_back(holding.identity, holding.group, at);
        }
        if let Some(proxy) = holding.proxy.and_then(|proxy| self.proxies.get_mut(proxy)) {
            proxy.give_back();
        }
    }
}

fn unknown(site: &str, known: &HashMap<Arc<str>, usize>) -> Refusal {
    let mut names: Vec<&str> = known.keys().map(|name| &**name).collect();
    names.sort_unstable();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Refusal {
        why: RefusalKind::SiteUnknown,
        retry_after: None,
        message: format!("the identities file has no site {site:?}; it has {known}"),
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
