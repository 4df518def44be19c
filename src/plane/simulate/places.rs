//! The names an event may use: those of the plane file, and what stands in where it names none.

use std::sync::Arc;

use super::error::Wrong;
use super::event::Defaults;
use crate::nearest::nearest;
use crate::plane::seed::{Seed, SeedClient, SeedSite};

/// Names that an error lists.
const LISTED: usize = 10;

/// Looks names up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) seed: &'a Seed,
    pub(super) defaults: &'a Defaults,
}

impl<'a> Places<'a> {
    /// The site of this name; of none: the default one, or the only one.
    pub(super) fn site(&self, given: Option<&str>) -> Result<&'a SeedSite, Wrong> {
        let sites = &self.seed.sites;
        match (given.or(self.defaults.site.as_deref()), sites.as_slice()) {
            (Some(name), _) => {
                let found = sites.iter().find(|site| *site.name == *name);
                found.ok_or_else(|| Wrong::field("site", unknown("no site", name, sites.iter().map(|site| &*site.name))))
            }
            (None, [only]) => Ok(only),
            (None, _) => Err(Wrong::field("site", "left out, and the plane file has several; write it here or give --site NAME")),
        }
    }

    /// The client of this name; of none: the default one, or the only one.
    pub(super) fn client(&self, site: &'a SeedSite, given: Option<&str>) -> Result<&'a SeedClient, Wrong> {
        match (given.or(self.defaults.client.as_deref()), site.clients.as_slice()) {
            (Some(name), clients) => {
                let found = clients.iter().find(|client| *client.name == *name);
                let what = format!("the site {} has no client", site.name);
                found.ok_or_else(|| Wrong::field("client", unknown(&what, name, clients.iter().map(|client| &*client.name))))
            }
            (None, [only]) => Ok(only),
            (None, _) => {
                let why = format!("left out, and the site {} has several; write it here or give --client NAME", site.name);
                Err(Wrong::field("client", why))
            }
        }
    }

    /// The identity of this name.
    pub(super) fn identity(site: &SeedSite, name: &str) -> Result<Arc<str>, Wrong> {
        let found = site.identities.iter().find(|identity| *identity.id == *name).map(|identity| Arc::clone(&identity.id));
        let what = format!("the site {} has no identity", site.name);
        found.ok_or_else(|| Wrong::field("identity", unknown(&what, name, site.identities.iter().map(|identity| &*identity.id))))
    }

    /// Whether the client has this endpoint group.
    pub(super) fn group(site: &SeedSite, client: &SeedClient, name: &str) -> Result<(), Wrong> {
        if client.groups.index_of(name).is_some() {
            return Ok(());
        }
        let what = format!("{}/{} has no endpoint group", site.name, client.name);
        let default = (!client.written.iter().any(|group| *group.name == *"_default")).then_some("_default");
        let names = client.written.iter().map(|group| &*group.name).chain(default);
        Err(Wrong::field("endpoint_group", unknown(&what, name, names)))
    }
}

fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.collect();
    let guess = nearest(name, known.iter().copied()).map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    let more = known.len().saturating_sub(LISTED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let listed = known.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    let listed = if listed.is_empty() { "there are none".to_owned() } else { format!("known: {listed}{rest}") };
    format!("{what} {name:?}; {guess}{listed}")
}
