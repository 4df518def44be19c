//! A lease as it is given out: credential and proxy rendered, in process or as the wire has it (wire contract, sections 4.1,
//! 19 and 23).

use std::fmt;
use std::sync::Arc;

use secrecy::ExposeSecret;

use super::attempt::Picked;
use super::catalogue::Proxy;
use super::{Plane, timestamp};
use crate::dice::Dice;
use crate::plane::model::Ms;
use crate::plane::model::lease_id::LeaseId;
use crate::plane::model::proxy_url::Session;
use crate::plane::model::render::{self, Credential};
use crate::plane::seed::Given;
use crate::spinneret::{self, AcquireResponse, Hints, LeaseInfo, ProxyAssignment};

/// A lease that was written, with all that its holder needs. What does not change from lease to lease is shared.
pub(crate) struct Granted {
    pub(crate) lease: LeaseId,
    pub(crate) identity: Arc<str>,
    /// The name of its type.
    pub(crate) kind: Arc<str>,
    pub(crate) group: Arc<str>,
    /// Of an identity without a type the same one each time.
    pub(crate) credential: Arc<Credential>,
    pub(crate) proxy: Option<GrantedProxy>,
    /// Site and identity, by key: never another one later.
    pub(crate) place: (u32, u32),
    pub(crate) until: Ms,
    pub(crate) renew_before: Ms,
    pub(crate) is_sticky: bool,
    pub(crate) is_probe: bool,
}

/// The proxy of a lease.
pub(crate) struct GrantedProxy {
    pub(crate) id: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) region: Arc<str>,
    /// User and password included.
    pub(crate) url: Arc<str>,
}

impl Plane {
    /// The lease that was written, rendered; `None` when its credential cannot be made.
    pub(super) fn granted(&mut self, key: u32, picked: &Picked) -> Option<Granted> {
        let site = self.sites.get(key as usize)?;
        let lease = site.leases.get(picked.lease)?;
        let identity = site.identity(picked.identity)?;
        let group = site.group(lease.holding.group)?;
        let secrets = self.center.secrets();
        let credential = match &identity.given {
            Given::Plain(credential) => Arc::clone(credential),
            Given::Typed { kind, payload } => {
                let mut find = |path: &str| match secrets.find(path, 0) {
                    Some(secret) => Ok(secret.value.expose_secret().to_owned()),
                    None => Err("there is no such secret"),
                };
                match render::render(kind, payload, &mut find) {
                    Ok(credential) => Arc::new(credential),
                    Err(error) => {
                        tracing::warn!(site = &*site.name, identity = &*identity.id, %error, "a lease was taken back");
                        return None;
                    }
                }
            }
        };
        let proxy = match picked.proxy {
            None => None,
            Some(key) => Some(granted_proxy(self.catalogue.get(key)?, &identity.id, lease.id(), &mut self.dice)),
        };
        Some(Granted {
            lease: lease.id(),
            identity: Arc::clone(&identity.id),
            kind: Arc::clone(&site.memberships.get(identity.membership as usize)?.kind),
            group: Arc::clone(&group.name),
            credential,
            proxy,
            place: (key, picked.identity),
            until: lease.until(),
            renew_before: group.rules.terms.renew_before(),
            is_sticky: picked.is_sticky,
            is_probe: picked.is_probe,
        })
    }
}

impl From<Granted> for AcquireResponse {
    fn from(granted: Granted) -> Self {
        Self {
            lease: LeaseInfo {
                lease_id: granted.lease.to_string(),
                identity_id: (*granted.identity).to_owned(),
                identity_type: (*granted.kind).to_owned(),
                endpoint_group: (*granted.group).to_owned(),
                expires_at: Some(timestamp(granted.until)),
                sticky: granted.is_sticky,
                probe: granted.is_probe,
            },
            credential: spelled(Arc::unwrap_or_clone(granted.credential)),
            proxy: granted.proxy.map(|proxy| ProxyAssignment {
                proxy_id: (*proxy.id).to_owned(),
                url: (*proxy.url).to_owned(),
                kind: (*proxy.kind).to_owned(),
                region: (*proxy.region).to_owned(),
            }),
            hints: Hints { renew_before_ms: i32::try_from(granted.renew_before).unwrap_or(i32::MAX) },
        }
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Granted")
            .field("lease", &self.lease)
            .field("identity", &self.identity)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

fn granted_proxy(proxy: &Proxy, identity_id: &str, lease: LeaseId, dice: &mut Dice) -> GrantedProxy {
    let url = match &proxy.template {
        None => Arc::clone(&proxy.revealed),
        Some(template) => {
            let random = (dice.roll() >> 32) as u32;
            let lease_id = lease.to_string();
            template.render(&proxy.url, Session { identity_id, lease_id: &lease_id, random }).into()
        }
    };
    GrantedProxy { id: Arc::clone(&proxy.id), kind: Arc::clone(&proxy.kind), region: Arc::clone(&proxy.region), url }
}

/// The same six segments, as the message has them.
pub(crate) fn spelled(credential: Credential) -> spinneret::Credential {
    let Credential { cookies, cookie_header, headers, query, json, values } = credential;
    spinneret::Credential { cookies, cookie_header, headers, query, json, values }
}
