//! Rendering: from the payload of an identity to the credential a node receives (wire contract, section 19).
//!
//! Templates know one construct, `{{ path }}`, and are compiled once. An error names the type and the field, never a value.

mod deliver;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) use deliver::Deliver;
pub(crate) use template::Template;

use super::identity_type::{FieldPath, Found, IdentityType, Payload};

/// What a node receives; serialises as on the wire. Its debug text counts and shows nothing.
#[derive(Clone, Default, PartialEq, Serialize)]
pub(crate) struct Credential {
    pub(crate) cookies: BTreeMap<String, String>,
    pub(crate) cookie_header: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) json: Option<Value>,
    pub(crate) values: Map<String, Value>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("cookies", &self.cookies.len())
            .field("has_cookie_header", &!self.cookie_header.is_empty())
            .field("headers", &self.headers.len())
            .field("query", &self.query.len())
            .field("has_json", &self.json.is_some())
            .field("values", &self.values.len())
            .finish()
    }
}

/// A credential that cannot be made of a payload (code `internal` on the wire).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RenderError {
    /// A secret that cannot be had.
    #[error("identity type {kind}, field {field}: its secret cannot be read: {reason}")]
    Secret { kind: String, field: String, reason: &'static str },
    /// A field that the type requires is missing: the payload is older than the type.
    #[error("identity type {kind}, field {field}: it is required and missing; import the identity again")]
    Missing { kind: String, field: String },
    /// A value that cannot be sent where the type puts it.
    #[error("identity type {kind}, field {field}: {place} cannot take its value: {problem}")]
    Unfit { kind: String, field: String, place: String, problem: &'static str },
}

/// Where secrets come from: the path in, the plain text or the reason why not out.
pub(crate) type Secrets<'a> = &'a mut dyn FnMut(&str) -> Result<String, &'static str>;

/// Makes the credential. Each secret is asked for once.
pub(crate) fn render(kind: &IdentityType, payload: &Payload, secrets: Secrets<'_>) -> Result<Credential, RenderError> {
    for (index, field) in kind.fields.iter().enumerate() {
        if field.required && payload.get(index).is_none() {
            return Err(RenderError::Missing { kind: kind.name.to_string(), field: field.name.to_string() });
        }
    }
    let mut resolved = BTreeMap::new();
    for path in kind.deliver.paths() {
        if let Found::Secret(secret) = path.find(payload)
            && !resolved.contains_key(secret)
        {
            let text = secrets(secret).map_err(|reason| RenderError::Secret {
                kind: kind.name.to_string(),
                field: field_name(kind, path),
                reason,
            })?;
            resolved.insert(secret, text);
        }
    }
    kind.deliver.render(&Scene { kind, payload, secrets: resolved })
}

/// What a template is rendered with.
struct Scene<'a> {
    kind: &'a IdentityType,
    payload: &'a Payload,
    /// The plain texts by path.
    secrets: BTreeMap<&'a str, String>,
}

impl Scene<'_> {
    /// The value at a path, a secret in plain text.
    fn find(&self, path: &FieldPath) -> Found<'_> {
        match path.find(self.payload) {
            Found::Secret(secret) => self.secrets.get(secret).map_or(Found::Missing, |text| Found::Text(text)),
            found => found,
        }
    }

    fn unfit(&self, template: &Template, place: String, problem: &'static str) -> RenderError {
        let field = template.paths().next().map_or_else(|| "(none)".to_owned(), |path| field_name(self.kind, path));
        RenderError::Unfit { kind: self.kind.name.to_string(), field, place, problem }
    }
}

fn field_name(kind: &IdentityType, path: &FieldPath) -> String {
    kind.fields.get(path.field()).map_or_else(String::new, |field| field.name.to_string())
}
