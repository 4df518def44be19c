//! Sites: clients, groups, identities, proxies, and whether they are paused.

use std::sync::Arc;

use super::node::Raw;
use super::policies::{self, SITE_KEYS};
use super::table::{Field, Table};
use super::{SeedError, SeedSite, groups, identities, proxies};
use crate::plane::model::groups::names;
use crate::plane::model::policy::ProxyMode;

const KEYS: [&str; 10] =
    ["name", "clients", "groups", "identity_types", "identities", "import", "accounts", "proxies", "proxy_files", "paused"];
const RENAMED: [(&str, &str); 6] = [
    ("concurrency", "write [sites.rotation] max_concurrent_leases"),
    ("reuse_interval", "write [sites.rotation] reuse_interval, with a unit, such as \"500ms\""),
    ("reuse_anchor", "write [sites.rotation] reuse_anchor"),
    ("ttl", "write [sites.rotation] lease_ttl, with a unit, such as \"5m\""),
    ("sticky_ttl", "write [sites.rotation] sticky = { enabled = true, ttl = \"10m\" }"),
    ("proxy_pool", "write [sites.proxy] mode: none, pool, bind_identity or region_match"),
];

/// Longest reason of a pause, in characters.
const REASON: usize = 1024;

/// Reads the list `sites`; their policies are added to the others.
pub(super) fn read<'f>(
    top: &Table<'f, '_>,
    pepper: &[u8],
    shared: &proxies::List,
    policies: &mut policies::Reader<'f>,
) -> Result<Vec<SeedSite>, SeedError> {
    let mut sites: Vec<SeedSite> = Vec::new();
    for field in top.list("sites")? {
        let site = site(&field, pepper, shared, policies)?;
        if sites.iter().any(|other| other.name == site.name) {
            return Err(field.place.wrong_key("name", "another site has this name; names are unique"));
        }
        sites.push(site);
    }
    Ok(sites)
}

fn site<'f>(
    field: &Field<'f, '_>,
    pepper: &[u8],
    shared: &proxies::List,
    policies: &mut policies::Reader<'f>,
) -> Result<SeedSite, SeedError> {
    let keys: Vec<&str> = KEYS.into_iter().chain(SITE_KEYS).collect();
    let table = field.table_renamed(&keys, &RENAMED)?;
    let written = table.required("name", "the name that LEASES and nodes use")?;
    let name: Arc<str> = written.text()?.into();
    names::site(&name).map_err(|error| written.place.wrong(error))?;
    let clients = groups::clients(&name, &table)?;
    let types = identities::types(&table, &name, &clients)?;
    let mut own = proxies::List::read(&table)?;
    let has_proxies = !own.is_empty() || !shared.is_empty();
    let mut reader = identities::Reader { site: &name, clients: &clients, pepper, types: &types, own: &mut own, shared };
    let identities = reader.read(&table)?;
    let mode = match (identities.iter().any(|identity| identity.proxy.is_some()), has_proxies) {
        (true, _) => ProxyMode::BindIdentity,
        (false, true) => ProxyMode::Pool,
        (false, false) => ProxyMode::None,
    };
    policies.site(&table, &name, mode)?;
    Ok(SeedSite {
        clients: groups::read(&name, &table, &clients)?,
        accounts: identities::accounts(&table, &identities)?,
        proxies: own.into_proxies(),
        paused: table.get("paused").map(|field| paused(&field)).transpose()?.flatten(),
        name,
        types,
        identities,
    })
}

/// `true`, or why.
fn paused(field: &Field<'_, '_>) -> Result<Option<Arc<str>>, SeedError> {
    match &field.node.raw {
        Raw::Flag(paused) => Ok(paused.then(|| "".into())),
        Raw::Text(reason) if reason.chars().count() <= REASON => Ok(Some(reason.as_str().into())),
        Raw::Text(_) => Err(field.place.wrong(format_args!("the reason has more than {REASON} characters; write a shorter one"))),
        _ => Err(field.expected("true, false, or the reason of the pause")),
    }
}
