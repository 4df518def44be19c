//! The authority: every decision of a lease server over one namespace, in one struct (wire contract, sections 17 to 30).
//!
//! Composes the model's parts: who calls, which endpoint group, which identity and proxy, what a report does to them. Pure:
//! a run is repeated exactly by the same seed, dice, moments and calls. Waits for nothing and sheds nothing; that is the
//! caller's, as are held watches, which [`Plane::take_woken`] names.

mod act;
mod attempt;
mod build;
mod calls;
mod catalogue;
mod effects;
mod granted;
mod identity;
mod ledger;
mod life;
mod manual;
mod names;
mod pages;
mod process;
mod reload;
mod replay;
mod rules;
mod runtime;
mod site;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::ExposeSecret;

use self::attempt::Picked;
pub(crate) use self::build::BuildError;
use self::catalogue::Catalogue;
pub(crate) use self::effects::{Change, Effect, Standings, Subject};
pub(crate) use self::granted::{Granted, GrantedProxy, spelled};
pub(crate) use self::ledger::{IdentityLedger, Ledger, SiteLedger};
pub(crate) use self::manual::Manual;
use self::names::Names;
pub(crate) use self::reload::Changes;
use self::reload::Written;
pub(crate) use self::replay::Withheld;
use self::site::{Outside, Site};
use super::Ms;
use super::config_center::{ConfigCenter, WaiterId};
use super::refusal::Refusal;
use super::token::{Token, Tokens};
use crate::dice::Dice;
use crate::spinneret::{GetSecretRequest, Secret};

/// The reaper's pace.
const REAP: Ms = 1_000;
/// The pace of the job that evaluates breakers.
const EVALUATE: Ms = 5_000;
/// The pace of the job that ends bans and quarantines.
const END: Ms = 10_000;

/// The model of one namespace.
#[derive(Debug)]
pub(crate) struct Plane {
    namespace: Arc<str>,
    tokens: Tokens,
    /// By the key that their lease ids carry; those a reloaded file no longer has stay, for their leases.
    sites: Vec<Site>,
    /// Those that are there.
    by_name: BTreeMap<Arc<str>, u32>,
    catalogue: Catalogue,
    /// The proxies of sites that have none of their own.
    shared: Vec<u32>,
    names: Names,
    center: ConfigCenter,
    dice: Dice,
    /// Watches that changes of `_runtime` ended.
    woken: Vec<WaiterId>,
    /// Reports that name no site's lease.
    stray_reports: u64,
    reaped_at: Ms,
    evaluated_at: Ms,
    ended_at: Ms,
    /// What the file said last.
    written: Written,
    /// A list used again and again.
    picked: Vec<Picked>,
}

impl Plane {
    /// Lets a call in; [`Tokens::enter`] says how.
    ///
    /// # Errors
    /// `session_invalid`, `token_invalid`, `token_revoked`, `token_expired`, `ip_not_allowed`, `rate_limited`.
    pub(crate) fn enter(&mut self, authorization: Option<&str>, peer: Option<IpAddr>, now: Ms) -> Result<Arc<Token>, Refusal> {
        self.tokens.enter(authorization, peer, now)
    }

    /// The namespace all of it belongs to.
    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// The chance of this plane, for whoever serves it.
    pub(crate) const fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// Config items, secrets and `_runtime`.
    pub(crate) const fn config_center(&mut self) -> &mut ConfigCenter {
        &mut self.center
    }

    /// Held watches that changes of breakers, pauses or the file have ended since this was last asked.
    #[must_use]
    pub(crate) fn take_woken(&mut self) -> Vec<WaiterId> {
        std::mem::take(&mut self.woken)
    }

    /// The call `GetSecret`.
    ///
    /// # Errors
    /// As [`Secrets::read`](super::secrets::Secrets::read).
    pub(crate) fn get_secret(&mut self, token: &Token, request: &GetSecretRequest) -> Result<Secret, Refusal> {
        let found = self.center.secrets().read(Some(&token.scopes), &token.namespace, &request.path, request.version);
        // A token of another namespace may not learn what this one holds.
        let secret = match found {
            Ok(_) if *token.namespace != *self.namespace => {
                return Err(Refusal::not_found(format!("there is no secret {}", request.path)));
            }
            other => other?,
        };
        Ok(Secret {
            path: request.path.clone(),
            version: secret.version,
            value: secret.value.expose_secret().to_owned(),
            expires_at: secret.expires_at.map(timestamp),
        })
    }

    /// Does what is due: ends leases that are over, bans and quarantines, and evaluates breakers.
    pub(crate) fn tick(&mut self, now: Ms) {
        if now.saturating_sub(self.reaped_at) >= REAP {
            self.reaped_at = now;
            for site in &mut self.sites {
                site.reap(&Outside { catalogue: &mut self.catalogue, dice: &mut self.dice, now });
            }
        }
        if now.saturating_sub(self.ended_at) >= END {
            self.ended_at = now;
            self.sites.iter_mut().for_each(|site| site.end_states(now));
            for key in self.catalogue.end(now) {
                for site in self.sites.iter_mut().filter(|site| site.proxies.contains(&key)) {
                    site.pool.admit(key, now);
                }
            }
        }
        if now.saturating_sub(self.evaluated_at) >= EVALUATE {
            self.evaluated_at = now;
            self.sites.iter_mut().for_each(|site| site.evaluate(now));
        }
        self.raise_moved();
    }

    /// When [`Plane::tick`] has something to do next; `None` while nothing can become due by time alone.
    pub(crate) fn next_due(&self) -> Option<Ms> {
        let reap = self.sites.iter().filter_map(|site| site.leases.next_due()).min();
        let ends = self.sites.iter().filter_map(|site| site.ends.first().map(|(at, _)| *at));
        let end = ends.chain(self.catalogue.next_end()).min();
        let now = self.evaluated_at;
        let is_awake = self.sites.iter().flat_map(|site| &site.groups).any(|group| group.breaker.wants_evaluation(now));
        let paced = |due: Option<Ms>, last: Ms, pace: Ms| due.map(|due| due.max(last.saturating_add(pace)));
        [paced(reap, self.reaped_at, REAP), paced(end, self.ended_at, END), paced(is_awake.then_some(0), now, EVALUATE)]
            .into_iter()
            .flatten()
            .min()
    }

    /// The names of its sites.
    pub(crate) fn site_names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    /// The names of a site's clients.
    pub(crate) fn client_names(&self, site: &str) -> impl Iterator<Item = &str> {
        self.named(site).into_iter().flat_map(|site| &site.clients).map(|client| &*client.name)
    }

    /// The names of a client's endpoint groups.
    pub(crate) fn group_names(&self, site: &str, client: &str) -> impl Iterator<Item = &str> {
        let site = self.named(site);
        let client = site.and_then(|site| site.clients.get(site.client(client)? as usize));
        client.into_iter().flat_map(|client| client.routes.names()).map(|name| &**name)
    }

    fn named(&self, site: &str) -> Option<&Site> {
        self.by_name.get(site).and_then(|key| self.sites.get(*key as usize))
    }

    fn site_of(&self, token: &Token, name: &str) -> Option<u32> {
        if *token.namespace == *self.namespace { self.by_name.get(name).copied() } else { None }
    }
}

/// A moment as the wire has it; one beyond the calendar is its last.
fn timestamp(at: Ms) -> Timestamp {
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(Timestamp::MAX)
}
