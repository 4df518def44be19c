//! A lease as the node receives it: credential and proxy rendered (wire contract, sections 4.1, 19 and 23).

use secrecy::ExposeSecret;

use super::attempt::Picked;
use super::catalogue::Proxy;
use super::{Plane, timestamp};
use crate::dice::Dice;
use crate::plane::model::proxy_url::Session;
use crate::plane::model::render;
use crate::plane::seed::Given;
use crate::spinneret::{AcquireResponse, Credential, Hints, LeaseInfo, ProxyAssignment};

impl Plane {
    /// The answer for a lease that was written; `None` when its credential cannot be made.
    pub(super) fn answer(&mut self, site: u32, picked: &Picked) -> Option<AcquireResponse> {
        let site = self.sites.get(site as usize)?;
        let lease = site.leases.get(picked.lease)?;
        let identity = site.identity(picked.identity)?;
        let group = site.group(lease.holding.group)?;
        let secrets = self.center.secrets();
        let credential = match &identity.given {
            Given::Plain(credential) => spelled(render::Credential::clone(credential)),
            Given::Typed { kind, payload } => {
                let mut find = |path: &str| match secrets.find(path, 0) {
                    Some(secret) => Ok(secret.value.expose_secret().to_owned()),
                    None => Err("there is no such secret"),
                };
                match render::render(kind, payload, &mut find) {
                    Ok(credential) => spelled(credential),
                    Err(error) => {
                        tracing::warn!(site = &*site.name, identity = &*identity.id, %error, "a lease was taken back");
                        return None;
                    }
                }
            }
        };
        let lease_id = lease.id().to_string();
        let proxy = match picked.proxy {
            None => None,
            Some(key) => Some(assignment(self.catalogue.get(key)?, &identity.id, &lease_id, &mut self.dice)),
        };
        let renew = group.rules.terms.renew_before();
        Some(AcquireResponse {
            lease: LeaseInfo {
                lease_id,
                identity_id: (*identity.id).to_owned(),
                identity_type: site.memberships.get(identity.membership as usize)?.kind.to_string(),
                endpoint_group: (*group.name).to_owned(),
                expires_at: Some(timestamp(lease.until())),
                sticky: picked.is_sticky,
                probe: picked.is_probe,
            },
            credential,
            proxy,
            hints: Hints { renew_before_ms: i32::try_from(renew).unwrap_or(i32::MAX) },
        })
    }
}

fn assignment(proxy: &Proxy, identity_id: &str, lease_id: &str, dice: &mut Dice) -> ProxyAssignment {
    let url = match &proxy.template {
        None => proxy.url.reveal(),
        Some(template) => {
            let random = (dice.roll() >> 32) as u32;
            template.render(&proxy.url, Session { identity_id, lease_id, random })
        }
    };
    ProxyAssignment { proxy_id: (*proxy.id).to_owned(), url, kind: (*proxy.kind).to_owned(), region: (*proxy.region).to_owned() }
}

/// The same six segments, as the message has them.
fn spelled(credential: render::Credential) -> Credential {
    let render::Credential { cookies, cookie_header, headers, query, json, values } = credential;
    Credential { cookies, cookie_header, headers, query, json, values }
}
