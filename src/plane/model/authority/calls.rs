//! The calls of a node: acquire, renew, release, report (wire contract, sections 17, 21, 22 and 24).

use super::attempt::{Ask, Nothing, Picked};
use super::site::{Outside, Site};
use super::{Granted, Plane, timestamp};
use crate::plane::model::Ms;
use crate::plane::model::groups::RouteError;
use crate::plane::model::lease::{RenewError, Seen};
use crate::plane::model::lease_id::LeaseId;
use crate::plane::model::ready::Lack;
use crate::plane::model::refusal::{Reason, Refusal};
use crate::plane::model::token::Token;
use crate::spinneret::messages::{ReleaseRequest, RenewRequest};
use crate::spinneret::{
    AcquireBatchRequest, AcquireBatchResponse, AcquireRequest, AcquireResponse, RejectedReport, ReleaseResponse, RenewResponse,
    Report, ReportResponse, Rpc,
};

/// Reports of one call.
const REPORTS: usize = 500;
/// Longest message about a rejected report, characters.
const MESSAGE: usize = 256;
/// When to come again to a site that keeps as many open leases as it may.
const FULL_WAIT: Ms = 1_000;

impl Plane {
    /// One attempt to lease; who wants to wait tries again.
    ///
    /// # Errors
    /// `invalid_argument`, `site_unknown`, `client_unknown`, `scope_missing`, `site_paused`, `endpoint_group_unknown`,
    /// `uri_invalid`, `circuit_open`, `no_identity_available`, `no_proxy_available`, `internal`: the first that applies.
    pub(crate) fn acquire(&mut self, token: &Token, request: &AcquireRequest, now: Ms) -> Result<AcquireResponse, Refusal> {
        self.grant(token, request, now).map(AcquireResponse::from)
    }

    /// The same for who asks in process.
    ///
    /// # Errors
    /// As [`Plane::acquire`].
    pub(crate) fn grant(&mut self, token: &Token, request: &AcquireRequest, now: Ms) -> Result<Granted, Refusal> {
        request.validate().map_err(invalid)?;
        let mut picked = std::mem::take(&mut self.picked);
        let leased = self.lease(token, request, 1, now, &mut picked);
        let granted = leased.and_then(|key| {
            let lease = picked.first().ok_or_else(Refusal::internal)?;
            self.deliver(key, lease, now).ok_or_else(Refusal::internal)
        });
        picked.clear();
        self.picked = picked;
        granted
    }

    /// One attempt to lease several identities, each once; fewer than asked for are a success.
    ///
    /// # Errors
    /// As [`Plane::acquire`].
    pub(crate) fn acquire_batch(
        &mut self,
        token: &Token,
        request: &AcquireBatchRequest,
        now: Ms,
    ) -> Result<AcquireBatchResponse, Refusal> {
        let leases = self.grant_batch(token, request, now)?.into_iter().map(AcquireResponse::from).collect();
        Ok(AcquireBatchResponse { leases, requested: request.count })
    }

    /// The same for who asks in process.
    ///
    /// # Errors
    /// As [`Plane::acquire`].
    pub(crate) fn grant_batch(&mut self, token: &Token, request: &AcquireBatchRequest, now: Ms) -> Result<Vec<Granted>, Refusal> {
        request.validate().map_err(invalid)?;
        let count = usize::try_from(request.count).unwrap_or(1);
        let mut picked = Vec::with_capacity(count);
        let key = self.lease(token, &request.each, count, now, &mut picked)?;
        let granted: Vec<Granted> = picked.iter().filter_map(|lease| self.deliver(key, lease, now)).collect();
        if granted.is_empty() { Err(Refusal::internal()) } else { Ok(granted) }
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    /// `lease_unknown`, `lease_released`, `lease_expired`, `lease_lifetime_exceeded`.
    pub(crate) fn renew(&mut self, token: &Token, request: &RenewRequest, now: Ms) -> Result<RenewResponse, Refusal> {
        self.renew_until(token, request, now).map(|until| RenewResponse { expires_at: Some(timestamp(until)) })
    }

    /// The same for who asks in process: the new expiry.
    ///
    /// # Errors
    /// As [`Plane::renew`].
    pub(crate) fn renew_until(&mut self, token: &Token, request: &RenewRequest, now: Ms) -> Result<Ms, Refusal> {
        request.validate().map_err(invalid)?;
        let (id, site) = self.lease_site(token, &request.lease_id)?;
        let extend = Ms::try_from(request.extend_ms).unwrap_or(0);
        site.renew(id, extend, now).map_err(|error| match error {
            RenewError::Unknown => Refusal::lease_unknown(),
            RenewError::Released => Refusal::lease_released(),
            RenewError::Expired => Refusal::lease_expired(),
            RenewError::LifetimeExceeded => Refusal::lease_lifetime_exceeded(),
        })
    }

    /// Releases a lease; `released` says whether it ended by this.
    ///
    /// # Errors
    /// `lease_unknown`.
    pub(crate) fn release(&mut self, token: &Token, request: &ReleaseRequest, now: Ms) -> Result<ReleaseResponse, Refusal> {
        request.validate().map_err(invalid)?;
        let (id, site) = self.lease_site(token, &request.lease_id)?;
        let released = site.release(id, now).ok_or_else(Refusal::lease_unknown)?;
        Ok(ReleaseResponse { released })
    }

    /// Takes in reports, and processes the accepted ones at once. An element that could not be read comes as the text of
    /// what is wrong with it, and is a rejected one.
    ///
    /// # Errors
    /// `invalid_argument` for none or more than 500, `scope_missing` when the token may report for no site.
    pub(crate) fn report(
        &mut self,
        token: &Token,
        reports: Vec<Result<Report, String>>,
        now: Ms,
    ) -> Result<ReportResponse, Refusal> {
        if reports.is_empty() || reports.len() > REPORTS {
            let found = reports.len();
            return Err(Refusal::invalid_argument(format!("reports has {found} elements, allowed are 1 to {REPORTS}")));
        }
        token.scopes.check_report_call()?;
        let mut response = ReportResponse::default();
        let mut unknown = Vec::new();
        for report in reports {
            match self.take_in(token, report, now) {
                Taken::Accepted => response.accepted += 1,
                Taken::Repeated => response.duplicated += 1,
                Taken::Wrong(rejected) => response.rejected.push(rejected),
                Taken::Unknown(rejected) => unknown.push(rejected),
            }
        }
        response.rejected.append(&mut unknown);
        self.raise_moved();
        Ok(response)
    }

    /// Leases up to `count` identities into `picked`, at least one; answers the key of their site.
    fn lease(
        &mut self,
        token: &Token,
        request: &AcquireRequest,
        count: usize,
        now: Ms,
        picked: &mut Vec<Picked>,
    ) -> Result<u32, Refusal> {
        let (name, client_name) = (&request.site, &request.client);
        let key = self.site_of(token, name).ok_or_else(|| Refusal::site_unknown(name))?;
        let site = self.sites.get_mut(key as usize).ok_or_else(|| Refusal::site_unknown(name))?;
        let client = site.client(client_name).and_then(|client| site.clients.get(client as usize));
        let client = client.ok_or_else(|| Refusal::client_unknown(name, client_name))?;
        token.scopes.check_acquire(name)?;
        if site.pause.is_some() {
            return Err(Refusal::site_paused(name));
        }
        let route = client.routes.route(&request.endpoint_group, &request.uri).map_err(|error| match &error {
            RouteError::GroupUnknown { .. } => Refusal::endpoint_group_unknown(name, client_name, &request.endpoint_group),
            RouteError::Uri(why) => Refusal::uri_invalid(&why.to_string()),
        })?;
        let group = client.groups.get(route as usize).copied().ok_or_else(Refusal::internal)?;
        let ask = Ask { group, session_key: &request.session_key, count };
        let mut outside = Outside { catalogue: &mut self.catalogue, dice: &mut self.dice, now };
        let attempted = site.attempt(ask, &mut outside, picked);
        let refused = attempted.map_err(|nothing| {
            let group = site.group(group).map_or("", |group| &*group.name);
            match nothing {
                Nothing::Open(hint) => Refusal::circuit_open(name, client_name, group, hint),
                Nothing::Lacks(Lack::Identity, hint) => Refusal::no_identity_available(name, client_name, group, hint),
                Nothing::Lacks(Lack::Proxy, hint) => Refusal::no_proxy_available(name, client_name, group, hint),
                Nothing::Full => Refusal::dependency_down("as many leases are open as are kept; release some", FULL_WAIT),
            }
        });
        self.raise_moved();
        refused.map(|()| key)
    }

    /// Renders what was leased; a lease that cannot be delivered is taken back.
    fn deliver(&mut self, key: u32, lease: &Picked, now: Ms) -> Option<Granted> {
        let granted = self.granted(key, lease);
        if granted.is_none()
            && let Some(site) = self.sites.get_mut(key as usize)
        {
            site.abort(lease.lease, now);
        }
        granted
    }

    /// The site of a lease the token may know of.
    fn lease_site(&mut self, token: &Token, lease: &str) -> Result<(LeaseId, &mut Site), Refusal> {
        let id = LeaseId::parse(lease).ok_or_else(Refusal::lease_unknown)?;
        if *token.namespace != *self.namespace {
            return Err(Refusal::lease_unknown());
        }
        let site = usize::try_from(id.site()).ok().and_then(|key| self.sites.get_mut(key)).ok_or_else(Refusal::lease_unknown)?;
        token.scopes.check_lease(&site.name)?;
        Ok((id, site))
    }

    fn take_in(&mut self, token: &Token, report: Result<Report, String>, now: Ms) -> Taken {
        let report = match report {
            Ok(report) => report,
            Err(wrong) => {
                self.stray_reports += 1;
                return Taken::Wrong(rejected(String::new(), Reason::InvalidArgument, &wrong));
            }
        };
        let wrong = report.validate().err().map(|error| error.details().message.clone());
        let id = LeaseId::parse(&report.lease_id).filter(|_| *token.namespace == *self.namespace);
        let site = id.and_then(|id| self.sites.get_mut(usize::try_from(id.site()).ok()?));
        let (Some(id), Some(site)) = (id, site) else {
            self.stray_reports += 1;
            return Taken::Wrong(match wrong {
                Some(wrong) => rejected(report.report_id, Reason::InvalidArgument, &wrong),
                None => lease_unknown(report.report_id),
            });
        };
        if let Some(wrong) = wrong {
            site.books.rejected += 1;
            return Taken::Wrong(rejected(report.report_id, Reason::InvalidArgument, &wrong));
        }
        if !token.scopes.may_report(&site.name) {
            site.books.rejected += 1;
            let wanted = format!("the token lacks the scope report:write:{}", site.name);
            return Taken::Wrong(rejected(report.report_id, Reason::ScopeMissing, &wanted));
        }
        let Some(key) = site.leases.find(id, now) else {
            site.books.rejected += 1;
            return Taken::Unknown(lease_unknown(report.report_id));
        };
        if site.dedup.note(id.shard(), &report.report_id, now) == Seen::Again {
            site.books.duplicated += 1;
            return Taken::Repeated;
        }
        site.books.accepted += 1;
        site.process(key, &report, &mut Outside { catalogue: &mut self.catalogue, dice: &mut self.dice, now });
        Taken::Accepted
    }
}

/// What became of one report.
enum Taken {
    Accepted,
    Repeated,
    /// Wrong by itself.
    Wrong(RejectedReport),
    /// Of a lease that is gone.
    Unknown(RejectedReport),
}

fn invalid(error: crate::spinneret::Error) -> Refusal {
    Refusal::invalid_argument(error.details().message.clone())
}

fn lease_unknown(report: String) -> RejectedReport {
    rejected(report, Reason::LeaseUnknown, "lease is unknown or expired")
}

fn rejected(report_id: String, reason: Reason, message: &str) -> RejectedReport {
    RejectedReport { report_id, reason: reason.name().to_owned(), message: message.chars().take(MESSAGE).collect() }
}
