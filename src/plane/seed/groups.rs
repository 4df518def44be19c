//! Endpoint groups of a site's clients (wire contract, section 18).

use std::sync::Arc;

use super::table::{Field, Table, guess, shown};
use super::{SeedClient, SeedError};
use crate::plane::model::groups::{Group, Groups, Rule, RuleKind, names};

const KEYS: [&str; 7] = ["name", "clients", "rules", "exact", "template", "prefix", "regex"];
const RENAMED: [(&str, &str); 1] = [("prefixes", "write prefix")];
const RULE_KEYS: [&str; 3] = ["kind", "pattern", "position"];

/// The clients a site declares, or the contract's default.
pub(super) fn clients(site: &str, table: &Table<'_, '_>) -> Result<Vec<Arc<str>>, SeedError> {
    let Some(field) = table.get("clients") else { return Ok(names::DEFAULT_CLIENTS.map(Arc::from).to_vec()) };
    let texts = field.list()?.iter().map(Field::text).collect::<Result<Vec<_>, _>>()?;
    names::clients(site, &texts).map_err(|error| field.place.wrong(error))?;
    Ok(texts.into_iter().map(Arc::from).collect())
}

/// Some of the clients: the ones that are listed, or all.
pub(super) fn some_clients(table: &Table<'_, '_>, all: &[Arc<str>]) -> Result<Vec<Arc<str>>, SeedError> {
    let Some(field) = table.get("clients") else { return Ok(all.to_vec()) };
    let mut some: Vec<Arc<str>> = Vec::new();
    for item in field.list()? {
        let client = known_client(&item, all)?;
        if !some.contains(client) {
            some.push(Arc::clone(client));
        }
    }
    if some.is_empty() {
        return Err(field.place.wrong("found an empty list; leave the key out where every client is meant"));
    }
    Ok(some)
}

fn known_client<'a>(field: &Field<'_, '_>, all: &'a [Arc<str>]) -> Result<&'a Arc<str>, SeedError> {
    let given = field.text()?;
    all.iter().find(|client| &***client == given).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|client| &**client).collect();
        let guess = guess(given, &known);
        field.place.wrong(format_args!("the site has no client {:?}{guess}; it has {}", shown(given), known.join(", ")))
    })
}

/// Reads the list `groups` of a site.
pub(super) fn read(site: &str, table: &Table<'_, '_>, clients: &[Arc<str>]) -> Result<Vec<SeedClient>, SeedError> {
    let mut written: Vec<(Vec<Arc<str>>, Group)> = Vec::new();
    for field in table.list("groups")? {
        let table = field.table_renamed(&KEYS, &RENAMED)?;
        let own = some_clients(&table, clients)?;
        let group = group(&table)?;
        // One by one, so that an error knows its place.
        for client in &own {
            let twice = written.iter().any(|(others, other)| other.name == group.name && others.contains(client));
            if twice {
                let reason = format_args!("client {client} has a group of this name already; put the rules into one");
                return Err(table.place.wrong_key("name", reason));
            }
            Groups::compile(site, client, std::slice::from_ref(&group)).map_err(|error| field.place.wrong(error))?;
        }
        written.push((own, group));
    }
    let clients = clients.iter().map(|client| {
        let own = written.iter().filter(|(clients, _)| clients.contains(client)).map(|(_, group)| group.clone());
        let own: Vec<Group> = own.collect();
        let groups = Groups::compile(site, client, &own).map_err(|error| table.place.wrong_key("groups", error))?;
        Ok(SeedClient { name: Arc::clone(client), written: own, groups })
    });
    clients.collect()
}

fn group(table: &Table<'_, '_>) -> Result<Group, SeedError> {
    let name = table.required("name", "the name of the group")?;
    names::group(name.text()?).map_err(|error| name.place.wrong(error))?;
    let mut rules = Vec::new();
    for field in table.list("rules")? {
        let rule = field.table(&RULE_KEYS)?;
        let kinds = RuleKind::ALL.map(|kind| (kind.name(), kind));
        let Some(kind) = rule.choice("kind", &kinds)? else {
            return Err(rule.place.wrong_key("kind", "the key is missing; write exact, template, prefix or regex"));
        };
        let position = rule.get("position").map(|field| field.whole(-1_000_000..=1_000_000)).transpose()?;
        let pattern = rule.required("pattern", "what the path is compared with")?;
        rules.push(rule_of(kind, &pattern, position.unwrap_or(0), rules.len())?);
    }
    for kind in RuleKind::ALL {
        let patterns = table.get(kind.name()).map(|field| field.one_or_more()).transpose()?;
        for pattern in patterns.into_iter().flatten() {
            rules.push(rule_of(kind, &pattern, 0, rules.len())?);
        }
    }
    Ok(Group { name: name.text()?.to_owned(), rules })
}

fn rule_of(kind: RuleKind, pattern: &Field<'_, '_>, position: i64, number: usize) -> Result<Rule, SeedError> {
    // Of equal positions the order of the file decides.
    Ok(Rule { kind, pattern: pattern.text()?.to_owned(), position, id: format!("{:06}", number + 1) })
}
