//! Refusals of the model as the crawl reads them: what kind, when again, and which names there are.

use std::path::Path;
use std::time::Duration;

use crate::plane::model::Plane;
use crate::plane::model::refusal::{Reason, Refusal};
use crate::plane::{self, Ask, PlaneError, RefusalKind};
use crate::spinneret::Code;

/// Names that a message lists; of more it tells how many.
const LISTED: usize = 20;

/// Why there is no lease now.
pub(super) fn refused(ask: &Ask, refusal: Refusal, plane: &Plane, file: &Path) -> plane::Refusal {
    let why = kind(&refusal);
    let message = match why {
        RefusalKind::SiteUnknown => {
            format!("{} has no site {:?}; it has {}", file.display(), ask.site, listed(plane.site_names()))
        }
        RefusalKind::ClientUnknown => {
            let clients = listed(plane.client_names(&ask.site));
            format!("in {} the site {:?} has no client {:?}; it has {clients}", file.display(), ask.site, ask.client)
        }
        RefusalKind::GroupUnknown => {
            let groups = listed(plane.group_names(&ask.site, &ask.client));
            let place = format!("{:?}/{:?}", ask.site, ask.client);
            format!("in {} the client {place} has no endpoint group {:?}; it has {groups}", file.display(), ask.group)
        }
        _ => refusal.message.into_owned(),
    };
    plane::Refusal { why, retry_after: refusal.retry_after.map(Duration::from_millis), message }
}

/// Why a call about configuration failed.
pub(super) fn failed(refusal: Refusal) -> PlaneError {
    let message = refusal.message.into_owned();
    match refusal.reason {
        Some(Reason::NotFound | Reason::FailedPrecondition) => PlaneError::NotFound(message),
        Some(Reason::RateLimited) => PlaneError::Unavailable(message),
        Some(Reason::ScopeMissing | Reason::PermissionDenied) => PlaneError::Unauthorized(message),
        _ => PlaneError::Invalid(message),
    }
}

fn kind(refusal: &Refusal) -> RefusalKind {
    let Some(reason) = refusal.reason else { return RefusalKind::Unreachable };
    match reason {
        Reason::NoIdentityAvailable => RefusalKind::NoIdentity,
        Reason::NoProxyAvailable => RefusalKind::NoProxy,
        Reason::RateLimited => RefusalKind::RateLimited,
        Reason::CircuitOpen => RefusalKind::CircuitOpen,
        Reason::SitePaused => RefusalKind::SitePaused,
        Reason::Overloaded => RefusalKind::Overloaded,
        // As many leases are open as the plane keeps.
        Reason::Internal if refusal.code == Code::Unavailable => RefusalKind::Overloaded,
        Reason::SiteUnknown => RefusalKind::SiteUnknown,
        Reason::ClientUnknown => RefusalKind::ClientUnknown,
        Reason::EndpointGroupUnknown => RefusalKind::GroupUnknown,
        Reason::TokenInvalid | Reason::TokenExpired | Reason::TokenRevoked | Reason::SessionInvalid => RefusalKind::Unauthorized,
        Reason::IpNotAllowed | Reason::ScopeMissing | Reason::PermissionDenied => RefusalKind::Forbidden,
        // A credential that cannot be made: another attempt may find another identity.
        Reason::Internal | Reason::Rebuilding => RefusalKind::Unreachable,
        Reason::UriInvalid
        | Reason::InvalidArgument
        | Reason::LeaseUnknown
        | Reason::LeaseReleased
        | Reason::LeaseExpired
        | Reason::LeaseLifetimeExceeded
        | Reason::NotFound
        | Reason::FailedPrecondition
        | Reason::AlreadyExists
        | Reason::Conflict => RefusalKind::Invalid,
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.get(..LISTED) {
        Some(first) if names.len() > LISTED => format!("{} and {} more", first.join(", "), names.len() - LISTED),
        _ if names.is_empty() => "none".to_owned(),
        _ => names.join(", "),
    }
}
