//! What every policy has: its kind, a name, a description, and the places it is bound to (wire contract, section 32).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::error::PolicyError;
use super::read::{Field, Table, show};

/// The keys of a [`Head`].
pub(super) const KEYS: [&str; 3] = ["name", "description", "bind"];

/// The four kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Rotation,
    Signal,
    Action,
    Breaker,
}

/// Name, description, bindings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// `^[a-z0-9][a-z0-9._-]{0,63}$`.
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) bind: Vec<Binding>,
}

/// A place a policy holds for. The namespace as a whole has none of the three; a client needs its site, a group its client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Binding {
    pub(crate) site: Option<Arc<str>>,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) group: Option<Arc<str>>,
}

impl Kind {
    /// The contract's word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rotation => "rotation",
            Self::Signal => "signal",
            Self::Action => "action",
            Self::Breaker => "breaker",
        }
    }

    pub(super) const fn policy(self) -> &'static str {
        match self {
            Self::Rotation => "rotation policy",
            Self::Signal => "signal policy",
            Self::Action => "action policy",
            Self::Breaker => "breaker policy",
        }
    }

    /// The name of the built-in policy of this kind.
    pub(crate) const fn built_in(self) -> &'static str {
        match self {
            Self::Rotation => "default-rotation",
            Self::Signal => "default-signal",
            Self::Action => "default-action",
            Self::Breaker => "default-breaker",
        }
    }
}

impl Head {
    pub(super) fn built_in(kind: Kind) -> Self {
        Self { name: kind.built_in().into(), description: "".into(), bind: Vec::new() }
    }

    pub(super) fn read(table: &Table<'_>) -> Result<Self, PolicyError> {
        let name = table.field("name").required("a name for the policy")?;
        let bind = table.field("bind");
        let places = match bind.value {
            Some(Value::Object(_)) => vec![bind],
            _ => bind.items(256)?,
        };
        Ok(Self {
            name: policy_name(&name)?,
            description: table.field("description").text(1024)?.unwrap_or_default().into(),
            bind: places.into_iter().map(Binding::read).collect::<Result<_, _>>()?,
        })
    }
}

impl Binding {
    fn read(field: Field<'_>) -> Result<Self, PolicyError> {
        let at = field.at.clone();
        let Some(table) = field.table(&["site", "client", "endpoint_group"])? else {
            return Err(at.missing("a table with site, client and endpoint_group, or with fewer of them"));
        };
        let part = |key: &str, allowed: &str, fits: fn(&str) -> bool| {
            let field = table.field(key);
            match field.value {
                None => Ok(None),
                Some(Value::String(name)) if fits(name) => Ok(Some(Arc::from(name.as_str()))),
                Some(other) => Err(field.at.wrong(show(other), allowed)),
            }
        };
        let binding = Self {
            site: part("site", SITE, is_site)?,
            client: part("client", "1 to 32 of a-z, 0-9, \"_\" and \"-\"", is_client)?,
            group: part("endpoint_group", SITE, is_site)?,
        };
        if binding.client.is_some() && binding.site.is_none() {
            return Err(table.field("site").at.missing("the site of the client"));
        }
        if binding.group.is_some() && binding.client.is_none() {
            return Err(table.field("client").at.missing("the client of the endpoint group"));
        }
        Ok(binding)
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(site) = &self.site else { return f.write_str("the namespace") };
        f.write_str(site)?;
        for part in [&self.client, &self.group].into_iter().flatten() {
            write!(f, "/{part}")?;
        }
        Ok(())
    }
}

/// A policy's name in a field.
pub(super) fn policy_name(field: &Field<'_>) -> Result<Arc<str>, PolicyError> {
    match field.value {
        Some(Value::String(name)) if is_policy(name) => Ok(name.as_str().into()),
        other => Err(field.at.wrong(
            show(other.unwrap_or(&Value::Null)),
            "1 to 64 of a-z, 0-9, \".\", \"_\" and \"-\", beginning with a letter or digit",
        )),
    }
}

const SITE: &str = "1 to 64 of a-z, 0-9, \"_\", \".\" and \"-\", beginning with a letter, digit or \"_\"";

fn is_policy(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
}

fn is_site(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
}

fn is_client(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}
