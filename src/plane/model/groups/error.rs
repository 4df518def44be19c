//! What can be wrong with endpoint groups, and with a request for one.

use std::sync::Arc;

use super::{MAX_RULES, Rule, RuleKind, UriError};
use crate::nearest::nearest;

/// Groups that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum GroupsError {
    /// A name outside the grammar.
    #[error("{what} name \"{found}\" is not allowed; allowed: {allowed}")]
    Name { what: &'static str, found: String, allowed: &'static str },
    /// More clients than a site may have, or none.
    #[error("site {site} declares {found} clients; allowed: 1 to {allowed}")]
    Clients { site: String, found: usize, allowed: usize },
    /// A client declared twice.
    #[error("site {site}: client {client} is declared twice; take one out")]
    ClientTwice { site: String, client: String },
    /// A group declared twice.
    #[error("site {site}, client {client}: endpoint group {group} is declared twice; put its rules into one")]
    Twice { site: String, client: String, group: String },
    /// Rules for the group that takes the rest.
    #[error("site {site}, client {client}: endpoint group _default has rules; it takes what no other group does, so move them")]
    RulesOfDefault { site: String, client: String },
    /// More rules than a group may have.
    #[error("site {site}, client {client}, endpoint group {group}: found {found} rules; allowed: at most {MAX_RULES}")]
    TooManyRules { site: String, client: String, group: String, found: usize },
    /// A pattern that cannot be used.
    #[error(transparent)]
    Pattern(Box<PatternError>),
}

/// A pattern that cannot be used, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("site {site}, client {client}, endpoint group {group}: {kind} pattern \"{pattern}\": {fault}")]
pub(crate) struct PatternError {
    pub(crate) site: String,
    pub(crate) client: String,
    pub(crate) group: String,
    pub(crate) kind: RuleKind,
    /// Its beginning.
    pub(crate) pattern: String,
    #[source]
    pub(crate) fault: PatternFault,
}

impl GroupsError {
    pub(super) fn twice(site: &str, client: &str, group: &str) -> Self {
        Self::Twice { site: site.to_owned(), client: client.to_owned(), group: group.to_owned() }
    }

    pub(super) fn rules_of_default(site: &str, client: &str) -> Self {
        Self::RulesOfDefault { site: site.to_owned(), client: client.to_owned() }
    }

    pub(super) fn too_many(site: &str, client: &str, group: &str, found: usize) -> Self {
        Self::TooManyRules { site: site.to_owned(), client: client.to_owned(), group: group.to_owned(), found }
    }

    pub(super) fn pattern(site: &str, client: &str, group: &str, rule: &Rule, fault: PatternFault) -> Self {
        Self::Pattern(Box::new(PatternError {
            site: site.to_owned(),
            client: client.to_owned(),
            group: group.to_owned(),
            kind: rule.kind,
            pattern: shown(&rule.pattern),
            fault,
        }))
    }
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PatternFault {
    /// No `/` at its start.
    #[error("it has to start with /")]
    NoSlash,
    /// Longer than allowed.
    #[error("it has {found} bytes; allowed: at most {allowed}")]
    TooLong { found: usize, allowed: usize },
    /// `?` or `#` in it.
    #[error("found {0:?}; a rule is compared with the path alone, so end it before the query")]
    QueryOrFragment(char),
    /// A control character or white space in it.
    #[error("found a control character or white space; write it percent-encoded, as the requests do")]
    Space,
    /// A brace that is not around a whole segment.
    #[error("segment {0:?} mixes text and braces; a parameter is a whole segment, as in /item/{{id}}")]
    Brace(String),
    /// A parameter name outside the grammar.
    #[error("parameter {0:?}; allowed: letters, digits and _, not starting with a digit")]
    Parameter(String),
    /// A parameter used twice.
    #[error("parameter {0:?} is used twice; give each its own name")]
    ParameterTwice(String),
    /// Not an expression.
    #[error("not a regular expression: {0}")]
    Regex(String),
    /// An expression that grows too large.
    #[error("the expression is too large once compiled; repeat less or split it into several rules")]
    RegexSize,
}

/// A request that no group can be found for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RouteError {
    /// An explicit group that is not there.
    #[error("endpoint group \"{name}\" does not exist{hint}")]
    GroupUnknown { name: String, hint: String },
    /// A URI without a usable path.
    #[error(transparent)]
    Uri(#[from] UriError),
}

impl RouteError {
    pub(super) fn unknown(name: &str, names: &[Arc<str>]) -> Self {
        let hint = nearest(&shown(name), names.iter().map(|name| &**name))
            .map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        Self::GroupUnknown { name: shown(name), hint }
    }

    /// The contract's reason.
    #[cfg(test)]
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::GroupUnknown { .. } => "endpoint_group_unknown",
            Self::Uri(_) => "uri_invalid",
        }
    }
}

/// The beginning of a text, fit for one line of a message.
pub(super) fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        start.push('…');
    }
    start
}
