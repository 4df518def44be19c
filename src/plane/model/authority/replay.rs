//! Leases to an identity by its name, for a run of what was recorded: no node can ask for that.
//!
//! The same checks as for an identity that a session key keeps; nothing is rendered.

use std::sync::Arc;

use super::Plane;
use super::attempt::{Nothing, Picked, Unfit};
use super::site::{Outside, Rest, Site};
use crate::plane::model::Ms;
use crate::plane::model::breaker::Admission;
use crate::plane::model::groups::RouteError;
use crate::plane::model::lease::lease_limit;
use crate::plane::model::refusal::Refusal;
use crate::spinneret::AcquireRequest;

/// Why an identity is not leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// The call itself would be refused.
    Refused(Refusal),
    /// The site has no identity of this name.
    Unknown,
    /// It is none of those that the endpoint group leases.
    Elsewhere,
    /// Its state: `banned`, `quarantined`, `expired`, `disabled`, `retired`.
    State(&'static str),
    /// It rests.
    Cooling,
    /// It has as many leases as it may.
    InUse,
    /// It has made as many requests as it may.
    Quota,
    /// There is no proxy for it.
    NoProxy,
    /// The site keeps no more open leases.
    Full,
}

impl Plane {
    /// Leases this identity and no other; answers the lease's id.
    ///
    /// # Errors
    /// Why the plane would not have given it away now.
    pub(crate) fn lease_to(&mut self, identity: &str, request: &AcquireRequest, now: Ms) -> Result<String, Withheld> {
        let (name, client_name) = (&request.site, &request.client);
        let unknown = || Withheld::Refused(Refusal::site_unknown(name));
        let key = self.by_name.get(&**name).copied().ok_or_else(unknown)?;
        let site = self.sites.get_mut(key as usize).ok_or_else(unknown)?;
        let client = site.client(client_name).and_then(|client| site.clients.get(client as usize));
        let client = client.ok_or_else(|| Withheld::Refused(Refusal::client_unknown(name, client_name)))?;
        if site.pause.is_some() {
            return Err(Withheld::Refused(Refusal::site_paused(name)));
        }
        let route = client.routes.route(&request.endpoint_group, &request.uri).map_err(|error| {
            Withheld::Refused(match &error {
                RouteError::GroupUnknown { .. } => Refusal::endpoint_group_unknown(name, client_name, &request.endpoint_group),
                RouteError::Uri(why) => Refusal::uri_invalid(&why.to_string()),
            })
        })?;
        let group = client.groups.get(route as usize).copied().ok_or(Withheld::Elsewhere)?;
        let identity = site.by_id.get(identity).copied().ok_or(Withheld::Unknown)?;
        let mut outside = Outside { catalogue: &mut self.catalogue, dice: &mut self.dice, now };
        let picked = site.attempt_one(identity, group, &mut outside);
        let lease = match picked {
            Ok(picked) => site.leases.get(picked.lease).map(|lease| lease.id().to_string()).ok_or(Withheld::Full),
            Err(Stopped::Nothing(Nothing::Open(hint))) => {
                let group = site.group(group).map_or("", |group| &*group.name);
                Err(Withheld::Refused(Refusal::circuit_open(name, client_name, group, hint)))
            }
            Err(Stopped::Nothing(_)) => Err(Withheld::Full),
            Err(Stopped::Withheld(withheld)) => Err(withheld),
        };
        self.raise_moved();
        lease
    }
}

enum Stopped {
    Nothing(Nothing),
    Withheld(Withheld),
}

impl Site {
    fn attempt_one(&mut self, key: u32, index: u32, outside: &mut Outside<'_>) -> Result<Picked, Stopped> {
        self.reap(outside);
        let now = outside.now;
        let membership = self.identity(key).map(|identity| identity.membership);
        let groups = membership.and_then(|membership| self.memberships.get(membership as usize)).map(|all| &all.groups);
        if !groups.is_some_and(|groups| groups.contains(&index)) {
            return Err(Stopped::Withheld(Withheld::Elsewhere));
        }
        let Some(group) = self.group_mut(index) else { return Err(Stopped::Nothing(Nothing::Full)) };
        let rules = Arc::clone(&group.rules);
        let (admission, transition) = group.breaker.admit(now, &rules.breaker);
        if let Some(transition) = transition {
            self.moved(index, &transition, now);
        }
        let probe = match admission {
            Admission::Free => None,
            Admission::Probe { span } => Some(span),
            Admission::Refused { hint } => return Err(Stopped::Nothing(Nothing::Open(hint))),
        };
        let proxy = match self.fit(key, index, &rules, Rest::Skipped, outside) {
            Ok(proxy) => proxy,
            Err(Unfit::NoProxy) => return Err(Stopped::Withheld(Withheld::NoProxy)),
            Err(Unfit::Out | Unfit::Until(_)) => {
                let limit = |standing| lease_limit(standing, rules.concurrent, rules.probe_leases);
                let withheld = match self.identity(key) {
                    Some(identity) if !identity.state.is_scheduled() => Withheld::State(identity.state.name()),
                    Some(identity) if identity.occupancy.active() >= limit(identity.state.standing()) => Withheld::InUse,
                    _ if self.available(key, index, Rest::Skipped, now) > now => Withheld::Cooling,
                    _ => Withheld::Quota,
                };
                return Err(Stopped::Withheld(withheld));
            }
        };
        self.write(key, index, proxy, probe, &rules, outside).ok_or(Stopped::Nothing(Nothing::Full))
    }
}

impl Withheld {
    /// Why, in a word: the contract's reason where there is one.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.reason.map_or("refused", |reason| reason.name()),
            Self::Unknown => "identity_unknown",
            Self::Elsewhere => "identity_not_in_group",
            Self::State(name) => name,
            Self::Cooling => "cooling",
            Self::InUse => "in_use",
            Self::Quota => "quota",
            Self::NoProxy => "no_proxy_available",
            Self::Full => "too_many_open_leases",
        }
    }
}
