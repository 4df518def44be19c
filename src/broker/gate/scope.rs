//! Scopes: what a refusal speaks of, from the whole plane down to one path.

use std::sync::Arc;
use std::time::Duration;

use super::{FORGET, FORGET_PATH, MOST, PATHS_MOST};
use crate::plane::{Ask, RefusalKind};

/// What a gate holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    Plane,
    Site(Arc<str>),
    /// What a client asks for without naming an endpoint group, whatever the path.
    Paths {
        site: Arc<str>,
        client: Arc<str>,
    },
    /// An endpoint group that the ask names, or all of an anonymous host.
    Group {
        site: Arc<str>,
        client: Arc<str>,
        group: Arc<str>,
    },
    /// A path whose group only the plane knows.
    Path {
        site: Arc<str>,
        client: Arc<str>,
        path: String,
    },
}

/// What the plane's configuration can switch off and on again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::broker) enum Origin<'a> {
    /// A site.
    Site(&'a str),
    /// The circuit of an endpoint group: site, client, group.
    Group(&'a str, &'a str, &'a str),
    /// The circuit of some group of a site and client.
    Paths(&'a str, &'a str),
}

impl Scope {
    /// 0 for the widest.
    pub(super) fn level(&self) -> usize {
        match self {
            Self::Plane => 0,
            Self::Site(_) => 1,
            Self::Paths { .. } => 2,
            Self::Group { .. } | Self::Path { .. } => 3,
        }
    }

    /// The site whose leases it waits for; none where it waits for more than that.
    pub(super) fn site(&self) -> Option<&str> {
        match self {
            Self::Plane | Self::Site(_) => None,
            Self::Paths { site, .. } | Self::Group { site, .. } | Self::Path { site, .. } => Some(site),
        }
    }

    /// The longest a refusal holds it.
    pub(super) fn most(&self) -> Duration {
        if matches!(self, Self::Paths { .. }) { PATHS_MOST } else { MOST }
    }

    pub(super) fn forget_after(&self) -> Duration {
        if matches!(self, Self::Path { .. }) { FORGET_PATH } else { FORGET }
    }

    /// What the plane's configuration would call the reason it is held for, if that is one of those.
    pub(super) fn origin(&self, why: RefusalKind) -> Option<Origin<'_>> {
        match (why, self) {
            (RefusalKind::SitePaused, Self::Site(site)) => Some(Origin::Site(site)),
            (RefusalKind::CircuitOpen, Self::Group { site, client, group }) => Some(Origin::Group(site, client, group)),
            (RefusalKind::CircuitOpen, Self::Paths { site, client } | Self::Path { site, client, .. }) => {
                Some(Origin::Paths(site, client))
            }
            _ => None,
        }
    }
}

impl Origin<'_> {
    /// The reason a refusal would name.
    pub(super) fn why(&self) -> RefusalKind {
        match self {
            Self::Site(_) => RefusalKind::SitePaused,
            Self::Group(..) | Self::Paths(..) => RefusalKind::CircuitOpen,
        }
    }

    /// The gate that holds exactly this; none for some group that is not named.
    pub(super) fn scope(&self) -> Option<Scope> {
        match *self {
            Self::Site(site) => Some(Scope::Site(site.into())),
            Self::Group(site, client, group) => {
                Some(Scope::Group { site: site.into(), client: client.into(), group: group.into() })
            }
            Self::Paths(..) => None,
        }
    }
}

/// Whether only the plane knows the endpoint group of `ask`.
pub(super) fn is_by_path(ask: &Ask) -> bool {
    ask.group.is_empty() && !ask.anonymous
}

/// The scopes an ask is under, the widest first.
pub(super) fn scopes(ask: &Ask) -> Vec<Scope> {
    let (site, client) = (|| Arc::clone(&ask.site), || Arc::clone(&ask.client));
    let mut scopes = Vec::with_capacity(4);
    scopes.extend([Scope::Plane, Scope::Site(site())]);
    if is_by_path(ask) {
        scopes.push(Scope::Paths { site: site(), client: client() });
        scopes.push(Scope::Path { site: site(), client: client(), path: ask.path.clone() });
    } else {
        scopes.push(Scope::Group { site: site(), client: client(), group: Arc::clone(&ask.group) });
    }
    scopes
}

/// The level of the scope that a temporary refusal speaks of.
pub(super) fn level(why: RefusalKind) -> usize {
    match why {
        RefusalKind::RateLimited | RefusalKind::Overloaded | RefusalKind::Unreachable | RefusalKind::Unanswered => 0,
        RefusalKind::SitePaused => 1,
        _ => 3,
    }
}
