//! Reading an identity type: every key is known, every value of its kind, every path leads to a field.

use serde_json::{Map, Value};

use super::{Activation, Field, FieldKind, FieldPath, IdentityType, TypeError, yaml};
use crate::nearest::nearest;
use crate::plane::model::groups::names;
use crate::plane::model::render::Deliver;

/// The most fields of a type, paths of `unique_by`, and bytes of a description.
const MAX_FIELDS: usize = 128;
const MAX_UNIQUE: usize = 16;
const MAX_DESCRIPTION: usize = 2048;

/// Names that an import gives a meaning of its own.
const RESERVED: [&str; 5] = ["payload", "_account", "_region", "_tags", "_labels"];

const KEYS: [&str; 8] = ["name", "site", "client", "description", "fields", "unique_by", "activation", "deliver"];
const FIELD_KEYS: [&str; 4] = ["type", "required", "sensitive", "description"];

impl IdentityType {
    /// Reads the YAML form.
    pub(crate) fn from_yaml(text: &str) -> Result<Self, TypeError> {
        Self::read(&yaml::read(text)?)
    }

    /// Reads a parsed document, whatever it was written in.
    pub(crate) fn read(written: &Value) -> Result<Self, TypeError> {
        let Value::Object(map) = written else {
            return Err(TypeError::key("?", "document", "expected a table with name, client, fields and deliver"));
        };
        let name = map.get("name").and_then(Value::as_str).unwrap_or("?");
        let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        Reader { name: &shown, map }.read(name)
    }
}

struct Reader<'a> {
    name: &'a str,
    map: &'a Map<String, Value>,
}

impl Reader<'_> {
    fn read(&self, name: &str) -> Result<IdentityType, TypeError> {
        self.known(self.map, &KEYS, "")?;
        if !is_type_name(name) {
            let allowed = "allowed: 1 to 64 of a-z, 0-9, _ . and -, starting with a letter or digit";
            return Err(self.wrong("name", allowed));
        }
        let site = self.text(self.map, "site", "site")?.unwrap_or_default();
        if !site.is_empty() {
            names::site(site).map_err(|error| self.wrong("site", error.to_string()))?;
        }
        let client = self.text(self.map, "client", "client")?.ok_or_else(|| self.wrong("client", "the key is required"))?;
        names::client(client).map_err(|error| self.wrong("client", error.to_string()))?;
        // For people who read the file; its bounds hold all the same.
        self.description(self.map, "description")?;
        let fields = self.fields()?;
        let unique_by = self.unique_by(&fields)?;
        let activation = match self.text(self.map, "activation", "activation")? {
            None | Some("probe") => Activation::Probe,
            Some("immediate") => Activation::Immediate,
            Some(_) => return Err(self.wrong("activation", "allowed are probe and immediate")),
        };
        let deliver = match self.map.get("deliver") {
            None | Some(Value::Null) => Deliver::default(),
            Some(written) => {
                Deliver::read(written, &fields).map_err(|(key, problem)| self.wrong(format!("deliver{key}"), problem))?
            }
        };
        Ok(IdentityType { name: name.into(), site: site.into(), client: client.into(), fields, unique_by, activation, deliver })
    }

    fn fields(&self) -> Result<Vec<Field>, TypeError> {
        let Some(Value::Object(written)) = self.map.get("fields") else {
            return Err(self.wrong("fields", "expected a table of fields, name: {type: string}"));
        };
        if written.is_empty() || written.len() > MAX_FIELDS {
            return Err(self.wrong("fields", format!("found {} fields; allowed: 1 to {MAX_FIELDS}", written.len())));
        }
        written.iter().map(|(name, spec)| self.field(name, spec)).collect()
    }

    fn field(&self, name: &str, spec: &Value) -> Result<Field, TypeError> {
        let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        let key = format!("fields.{shown}");
        if !is_field_name(name) {
            return Err(self.wrong(key, "allowed: 1 to 64 letters, digits and _, not starting with a digit"));
        }
        if RESERVED.contains(&name) {
            return Err(self.wrong(key, "an import gives this name another meaning; choose another"));
        }
        let Value::Object(spec) = spec else {
            return Err(self.wrong(key, "expected a table with at least a type, as in {type: string}"));
        };
        self.known(spec, &FIELD_KEYS, &key)?;
        let kind = self.text(spec, "type", &format!("{key}.type"))?;
        let Some(kind) = kind.and_then(FieldKind::of) else {
            let allowed = FieldKind::ALL.map(FieldKind::name).join(", ");
            return Err(self.wrong(format!("{key}.type"), format!("allowed are {allowed}")));
        };
        Ok(Field {
            name: name.into(),
            kind,
            required: self.flag(spec, "required", &key)?,
            sensitive: self.flag(spec, "sensitive", &key)?,
            description: self.description(spec, &format!("{key}.description"))?,
        })
    }

    fn unique_by(&self, fields: &[Field]) -> Result<Vec<FieldPath>, TypeError> {
        let mut texts: Vec<&str> = match self.map.get("unique_by") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                texts.ok_or_else(|| self.wrong("unique_by", "expected a list of field names, or field.key"))?
            }
            Some(_) => return Err(self.wrong("unique_by", "expected a list of field names, or field.key")),
        };
        if texts.is_empty() {
            texts = fields.iter().filter(|field| field.required).map(|field| &*field.name).collect();
            texts.sort_unstable();
            if texts.is_empty() {
                return Err(self.wrong("unique_by", "name what tells identities apart, or make a field required"));
            }
        } else if texts.len() > MAX_UNIQUE {
            return Err(self.wrong("unique_by", format!("found {} paths; allowed: at most {MAX_UNIQUE}", texts.len())));
        }
        let mut paths: Vec<FieldPath> = Vec::with_capacity(texts.len());
        for text in texts {
            let path = FieldPath::parse(text, fields).map_err(|problem| self.wrong("unique_by", problem))?;
            if paths.contains(&path) {
                return Err(self.wrong("unique_by", format!("path \"{text}\" is there twice; take one out")));
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn known(&self, map: &Map<String, Value>, keys: &[&str], below: &str) -> Result<(), TypeError> {
        let Some(unknown) = map.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
        let shown: String = unknown.chars().take(64).flat_map(char::escape_debug).collect();
        let hint = nearest(&shown, keys.iter().copied())
            .map_or_else(|| format!("allowed are {}", keys.join(", ")), |near| format!("did you mean {near}?"));
        let place = if below.is_empty() { shown } else { format!("{below}.{shown}") };
        Err(self.wrong(place, format!("the key is not known; {hint}")))
    }

    fn text<'m>(&self, map: &'m Map<String, Value>, key: &str, place: &str) -> Result<Option<&'m str>, TypeError> {
        match map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(place, "expected a text")),
        }
    }

    fn flag(&self, map: &Map<String, Value>, key: &str, below: &str) -> Result<bool, TypeError> {
        match map.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(format!("{below}.{key}"), "expected true or false")),
        }
    }

    fn description(&self, map: &Map<String, Value>, place: &str) -> Result<Box<str>, TypeError> {
        let text = self.text(map, "description", place)?.unwrap_or_default();
        if text.len() > MAX_DESCRIPTION {
            return Err(self.wrong(place, format!("found {} bytes; allowed: at most {MAX_DESCRIPTION}", text.len())));
        }
        Ok(text.into())
    }

    fn wrong(&self, key: impl Into<String>, problem: impl Into<String>) -> TypeError {
        TypeError::key(self.name, key, problem)
    }
}

fn is_type_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-'))
}

fn is_field_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
