//! Rules for headers, feeds, lease rules and the job id.
//!
//! Headers and feeds may hold credentials: their messages name types and places, never contents.

use serde_json::{Map, Value};

use super::collection::{Places, structure_from_text};
use super::redact::{REDACTED, is_public_header, redact_text};
use super::rule::{Problem, Rule, describe, describe_type};
use super::value::{Feed, Headers, JobId, LeaseRule};

/// The value of one header.
pub(crate) struct HeaderText;

impl Rule for HeaderText {
    type Out = String;

    fn read(&self, value: &Value) -> Result<String, Problem> {
        value
            .as_str()
            .filter(|text| !text.trim().is_empty() && http::HeaderValue::from_str(text).is_ok())
            .map_or_else(|| self.refuse(value), |text| Ok(text.to_owned()))
    }

    fn kind(&self) -> &'static str {
        "text"
    }

    fn allowed(&self) -> String {
        "text a header can carry, not empty".to_owned()
    }
}

/// The user name of HTTP basic authentication, empty for none. A colon would end it (RFC 7617, 2).
pub(crate) struct UserName;

impl Rule for UserName {
    type Out = Option<String>;

    fn read(&self, value: &Value) -> Result<Option<String>, Problem> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if !text.contains(|c: char| c.is_control() || c == ':') => Ok(Some(text.clone())),
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "text"
    }

    fn allowed(&self) -> String {
        "text on one line without a colon (empty: not set)".to_owned()
    }
}

/// A table of header names and values.
pub(crate) struct HeaderTable;

impl Rule for HeaderTable {
    type Out = Headers;

    fn read(&self, value: &Value) -> Result<Headers, Problem> {
        let Value::Object(map) = value else {
            return self.refuse(value);
        };
        let mut headers = Headers::default();
        for (name, value) in map {
            let bad = |found: &str| Err(Problem { found: format!("header {name:?} {found}"), allowed: self.allowed() });
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return bad("(not a header name)");
            }
            if headers.get(name).is_some() {
                return bad("twice");
            }
            let Value::String(text) = value else {
                return bad("with a value that is not text");
            };
            if http::HeaderValue::from_str(text).is_err() {
                return bad("with a value no header can carry");
            }
            headers.0.push((name.clone(), text.clone()));
        }
        Ok(headers)
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "table of headers"
    }

    // The text may be a header or a URL with a credential that only failed to parse.
    fn refuse<T>(&self, value: &Value) -> Result<T, Problem> {
        Err(Problem { found: describe_type(value), allowed: self.allowed() })
    }

    fn show(&self, value: &Value) -> Value {
        let Value::Object(map) = value else {
            return Value::from(REDACTED);
        };
        map.iter()
            .map(|(name, value)| match is_public_header(name) {
                true => (name.clone(), value.clone()),
                false => (name.clone(), Value::from(REDACTED)),
            })
            .collect::<Map<_, _>>()
            .into()
    }

    fn allowed(&self) -> String {
        "a table of header names and texts (as text: JSON or inline TOML)".to_owned()
    }
}

/// The table of feeds: URI to options.
pub(crate) struct FeedTable;

impl Rule for FeedTable {
    type Out = Vec<Feed>;

    fn read(&self, value: &Value) -> Result<Vec<Feed>, Problem> {
        let Value::Object(map) = value else {
            return self.refuse(value);
        };
        map.iter().map(|(uri, options)| self.feed(uri, options)).collect()
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "table of feeds"
    }

    // The text may be a header or a URL with a credential that only failed to parse.
    fn refuse<T>(&self, value: &Value) -> Result<T, Problem> {
        Err(Problem { found: describe_type(value), allowed: self.allowed() })
    }

    fn allowed(&self) -> String {
        "a table of URIs, each with a table of format (text) and overwrite (true or false), \
         for example { \"items.jsonl\" = { format = \"jsonl\", overwrite = true } }"
            .to_owned()
    }
}

impl FeedTable {
    fn feed(&self, uri: &str, options: &Value) -> Result<Feed, Problem> {
        let bad = |found: String| Problem { found: format!("feed {:?} with {found}", redact_text(uri)), allowed: self.allowed() };
        let Value::Object(options) = options else {
            return Err(bad(describe(options)));
        };
        if uri.is_empty() {
            return Err(bad("an empty URI".to_owned()));
        }
        let mut feed = Feed { uri: uri.to_owned(), format: None, overwrite: false };
        for (name, value) in options {
            match (name.as_str(), value) {
                ("format", Value::String(format)) if !format.is_empty() => {
                    feed.format = Some(format.clone());
                }
                ("overwrite", Value::Bool(overwrite)) => feed.overwrite = *overwrite,
                ("format" | "overwrite", other) => {
                    return Err(bad(format!("{name} = {}", describe(other))));
                }
                _ => return Err(bad(format!("option {name:?}"))),
            }
        }
        Ok(feed)
    }
}

/// The list of lease rules.
pub(crate) struct LeaseRules;

impl Rule for LeaseRules {
    type Out = Vec<LeaseRule>;

    fn read(&self, value: &Value) -> Result<Vec<LeaseRule>, Problem> {
        let Value::Array(rules) = value else {
            return self.refuse(value);
        };
        rules.iter().enumerate().map(|(index, rule)| self.rule(index + 1, rule)).collect()
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "list of lease rules"
    }

    fn allowed(&self) -> String {
        "a list of tables with domains (list of host names, each with a port if wanted), site, client and, if wanted, \
         endpoint_group and session_key"
            .to_owned()
    }
}

impl LeaseRules {
    fn rule(&self, number: usize, rule: &Value) -> Result<LeaseRule, Problem> {
        let bad = |found: String| Problem { found: format!("rule {number} with {found}"), allowed: self.allowed() };
        let Value::Object(fields) = rule else {
            return Err(bad(describe(rule)));
        };
        for name in fields.keys() {
            if !["domains", "site", "client", "endpoint_group", "session_key"].contains(&name.as_str()) {
                return Err(bad(format!("field {name:?}")));
            }
        }
        let domains = fields.get("domains").unwrap_or(&Value::Null);
        let domains = Places.read(domains).map_err(|problem| bad(format!("domains = {}", problem.found)))?;
        if domains.is_empty() {
            return Err(bad("domains empty".to_owned()));
        }
        let needed = |name: &str| text_field(fields, name).filter(|text| !text.is_empty());
        let optional = |name: &str| match fields.contains_key(name) {
            true => text_field(fields, name),
            false => Some(String::new()),
        };
        Ok(LeaseRule {
            domains,
            site: needed("site").ok_or_else(|| bad("no text as site".to_owned()))?,
            client: needed("client").ok_or_else(|| bad("no text as client".to_owned()))?,
            endpoint_group: optional("endpoint_group").ok_or_else(|| bad("no text as endpoint_group".to_owned()))?,
            session_key: optional("session_key").ok_or_else(|| bad("no text as session_key".to_owned()))?,
        })
    }
}

/// The job id: a whole number or a text, not set only where it is left out. Text from outside never becomes a number.
pub(crate) struct JobIdRule;

impl Rule for JobIdRule {
    type Out = Option<JobId>;

    fn read(&self, value: &Value) -> Result<Option<JobId>, Problem> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if !text.is_empty() => Ok(Some(JobId::Text(text.clone()))),
            other => match other.as_i64() {
                Some(number) if number != 0 => Ok(Some(JobId::Number(number))),
                _ => self.refuse(other),
            },
        }
    }

    fn kind(&self) -> &'static str {
        "integer or text"
    }

    fn allowed(&self) -> String {
        "a whole number other than 0, or text that is not empty (not set: leave it out)".to_owned()
    }
}

fn text_field(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}
