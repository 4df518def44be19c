//! Endpoint groups: which group of a site's client a request belongs to (wire contract, section 18).
//!
//! Rules are checked and compiled once; a look-up allocates nothing. Of the four kinds of rules the first that matches
//! decides: exact, template, prefix, regex; a path that no rule matches belongs to `_default`. A path is compared as it was
//! written: nothing is decoded, nothing normalised.

mod error;
pub(crate) mod names;
mod pattern;
mod prefixes;
mod re2;
mod regexes;
mod templates;
#[cfg(test)]
mod tests;
mod uri;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) use error::{GroupsError, RouteError};
pub(crate) use pattern::RuleKind;
pub(crate) use uri::{UriError, path_of};

use prefixes::Prefixes;
use regexes::Regexes;
use templates::Templates;

/// The name of the group that is always there and takes what no rule matches.
pub(crate) const DEFAULT_GROUP: &str = "_default";

/// The index of [`DEFAULT_GROUP`]; the declared groups follow in their order.
pub(crate) const DEFAULT_INDEX: u32 = 0;

/// The most rules in one group.
pub(crate) const MAX_RULES: usize = 500;

/// A rule as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) kind: RuleKind,
    pub(crate) pattern: String,
    /// Orders the rules of a client; equal positions are ordered by `id`, equal ids by the order they are written in.
    pub(crate) position: i64,
    pub(crate) id: String,
}

/// A group as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) rules: Vec<Rule>,
}

/// Where a path belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    /// Index of the group.
    pub(crate) group: u32,
    /// The rule that said so; none for a path that no rule matches.
    pub(crate) rule: Option<&'a Ranked>,
}

/// A checked rule, in its place among all rules of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub(crate) group: u32,
    pub(crate) kind: RuleKind,
    pub(crate) pattern: Box<str>,
    pub(crate) id: Box<str>,
}

/// The groups of one client of one site, ready to be asked.
#[derive(Debug)]
pub(crate) struct Groups {
    names: Vec<Arc<str>>,
    indices: HashMap<Arc<str>, u32>,
    /// All rules by rank; the tables below hold ranks.
    rules: Vec<Ranked>,
    exact: HashMap<Box<str>, u32>,
    templates: Templates,
    prefixes: Prefixes,
    regexes: Regexes,
}

impl Groups {
    /// Checks and compiles the groups. `_default` need not be among them, and has no rules.
    pub(crate) fn compile(site: &str, client: &str, groups: &[Group]) -> Result<Self, GroupsError> {
        names::site(site)?;
        names::client(client)?;
        let names = names_of(site, client, groups)?;
        let indices = names.iter().zip(0..).map(|(name, index)| (Arc::clone(name), index)).collect::<HashMap<_, _>>();
        let mut written: Vec<(u32, &Group, &Rule)> = Vec::new();
        for group in groups {
            let index = indices.get(group.name.as_str()).copied().unwrap_or(DEFAULT_INDEX);
            written.extend(group.rules.iter().map(|rule| (index, group, rule)));
        }
        written.sort_by(|(_, _, one), (_, _, other)| (one.position, &one.id).cmp(&(other.position, &other.id)));

        let mut compiled = Self {
            names,
            indices,
            rules: Vec::with_capacity(written.len()),
            exact: HashMap::new(),
            templates: Templates::default(),
            prefixes: Prefixes::default(),
            regexes: Regexes::default(),
        };
        let mut prefixes = Vec::new();
        let mut regexes = Vec::new();
        for (rank, (index, group, rule)) in (0..).zip(written) {
            let wrong = |fault| GroupsError::pattern(site, client, &group.name, rule, fault);
            match rule.kind {
                RuleKind::Exact => {
                    pattern::check_path(&rule.pattern).map_err(wrong)?;
                    compiled.exact.entry(rule.pattern.as_str().into()).or_insert(rank);
                }
                RuleKind::Template => {
                    compiled.templates.add(&pattern::segments(&rule.pattern).map_err(wrong)?, rank);
                }
                RuleKind::Prefix => {
                    pattern::check_path(&rule.pattern).map_err(wrong)?;
                    prefixes.push((rule.pattern.as_str().into(), rank));
                }
                RuleKind::Regex => regexes.push((pattern::regex(&rule.pattern).map_err(wrong)?, rank)),
            }
            compiled.rules.push(Ranked {
                group: index,
                kind: rule.kind,
                pattern: rule.pattern.as_str().into(),
                id: rule.id.as_str().into(),
            });
        }
        compiled.prefixes = Prefixes::new(prefixes);
        compiled.regexes = Regexes::new(regexes);
        Ok(compiled)
    }

    /// The group of an acquire: the one named explicitly, else the one of the URI, else `_default`.
    pub(crate) fn route(&self, endpoint_group: &str, uri: &str) -> Result<u32, RouteError> {
        if !endpoint_group.is_empty() {
            return self.index_of(endpoint_group).ok_or_else(|| RouteError::unknown(endpoint_group, &self.names));
        }
        if uri.is_empty() {
            return Ok(DEFAULT_INDEX);
        }
        Ok(self.matching(path_of(uri)?).group)
    }

    /// The group of a path, and the rule that said so.
    pub(crate) fn matching(&self, path: &str) -> Route<'_> {
        let rank = (self.exact.get(path).copied())
            .or_else(|| self.templates.find(path))
            .or_else(|| self.prefixes.find(path))
            .or_else(|| self.regexes.find(path));
        let rule = rank.and_then(|rank| self.rules.get(usize::try_from(rank).ok()?));
        Route { group: rule.map_or(DEFAULT_INDEX, |rule| rule.group), rule }
    }

    /// The index of the group with this name.
    pub(crate) fn index_of(&self, name: &str) -> Option<u32> {
        self.indices.get(name).copied()
    }

    /// The names by index, `_default` first.
    pub(crate) fn names(&self) -> &[Arc<str>] {
        &self.names
    }
}

/// Checks names and counts; gives the names by index.
fn names_of(site: &str, client: &str, groups: &[Group]) -> Result<Vec<Arc<str>>, GroupsError> {
    let mut names = vec![Arc::from(DEFAULT_GROUP)];
    let mut seen = HashSet::new();
    for group in groups {
        names::group(&group.name)?;
        if !seen.insert(group.name.as_str()) {
            return Err(GroupsError::twice(site, client, &group.name));
        }
        if group.name == DEFAULT_GROUP {
            if !group.rules.is_empty() {
                return Err(GroupsError::rules_of_default(site, client));
            }
            continue;
        }
        if group.rules.len() > MAX_RULES {
            return Err(GroupsError::too_many(site, client, &group.name, group.rules.len()));
        }
        names.push(group.name.as_str().into());
    }
    Ok(names)
}
