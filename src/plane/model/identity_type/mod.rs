//! Identity types: the fields of a payload, what makes two payloads one identity, and how a payload is delivered (wire
//! contract, sections 19 and 37).
//!
//! Reading is strict, and no message here ever quotes a payload's value.

pub(crate) mod cookies;
mod error;
mod path;
mod payload;
mod read;
#[cfg(test)]
mod tests;
mod unique;
mod yaml;

use std::sync::Arc;

pub(crate) use error::{PayloadError, TypeError};
pub(crate) use path::{FieldPath, Found, number_text};
pub(crate) use payload::{FieldValue, Payload, Source};
pub(crate) use unique::UniqueKey;

use crate::plane::model::render::Deliver;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FieldKind {
    Text,
    Number,
    Bool,
    CookieMap,
    Json,
    /// The path of a secret, looked up when a credential is rendered.
    SecretRef,
}

impl FieldKind {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [Self::Text, Self::Number, Self::Bool, Self::CookieMap, Self::Json, Self::SecretRef];

    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Bool => "bool",
            Self::CookieMap => "cookie_map",
            Self::Json => "json",
            Self::SecretRef => "secret_ref",
        }
    }

    /// The kind of exactly this spelling.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A field of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
    /// Whether its value is never shown.
    pub(crate) sensitive: bool,
    pub(crate) description: Box<str>,
}

/// In which state an imported identity begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Activation {
    /// `pending`, until a report of success.
    #[default]
    Probe,
    /// `active` at once.
    Immediate,
}

/// A checked identity type.
#[derive(Debug, Clone)]
pub(crate) struct IdentityType {
    pub(crate) name: Arc<str>,
    /// Empty when the file leaves it to the one who loads it.
    pub(crate) site: Arc<str>,
    pub(crate) client: Arc<str>,
    pub(crate) fields: Vec<Field>,
    pub(crate) unique_by: Vec<FieldPath>,
    pub(crate) activation: Activation,
    pub(crate) deliver: Deliver,
}

impl IdentityType {
    /// Whether a credential of it may hold secrets that are looked up: such a one is good for 60 seconds at most.
    #[cfg(test)]
    pub(crate) fn delivers_secrets(&self) -> bool {
        self.deliver.paths().any(|path| self.fields.get(path.field()).is_some_and(|field| field.kind == FieldKind::SecretRef))
    }
}
