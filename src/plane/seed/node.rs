//! A document as a tree that remembers where everything stands. Its values may be secrets, so it is never shown.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and the byte it stands at; JSON does not tell.
pub(super) struct Node {
    pub(super) at: Option<usize>,
    pub(super) raw: Raw,
}

/// A value.
pub(super) enum Raw {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Option<usize>,
    pub(super) node: Node,
}

/// What is wrong with a text, and at which line. Quotes nothing of it.
pub(super) struct Unreadable {
    pub(super) line: u64,
    pub(super) reason: String,
}

impl Node {
    /// Reads TOML.
    pub(super) fn from_toml(text: &str) -> Result<Self, Unreadable> {
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Unreadable { line: line_of(text, at), reason: format!("not valid TOML: {}", plain(error.message())) }
        })?;
        let at = table.span().start;
        entries(table.into_inner())
            .map(|entries| Self { at: Some(at), raw: Raw::Table(entries) })
            .map_err(|odd| Unreadable { line: line_of(text, odd.at), reason: odd.reason.to_owned() })
    }

    /// Reads JSON.
    pub(super) fn from_json(text: &str) -> Result<Self, Unreadable> {
        let value: Value = serde_json::from_str(text).map_err(|error| Unreadable {
            line: u64::try_from(error.line()).unwrap_or(u64::MAX).max(1),
            reason: match error.classify() {
                serde_json::error::Category::Eof => "not valid JSON: the text ends too early".to_owned(),
                _ => format!("not valid JSON: wrong at column {}", error.column()),
            },
        })?;
        Ok(Self::from_value(value))
    }

    fn from_value(value: Value) -> Self {
        let raw = match value {
            Value::Null => Raw::Null,
            Value::Bool(flag) => Raw::Flag(flag),
            Value::Number(number) => Raw::Number(number),
            Value::String(text) => Raw::Text(text),
            Value::Array(items) => Raw::List(items.into_iter().map(Self::from_value).collect()),
            Value::Object(map) => {
                Raw::Table(map.into_iter().map(|(key, value)| Entry { key, at: None, node: Self::from_value(value) }).collect())
            }
        };
        Self { at: None, raw }
    }

    /// The same without places.
    pub(super) fn to_value(&self) -> Value {
        match &self.raw {
            Raw::Null => Value::Null,
            Raw::Flag(flag) => Value::Bool(*flag),
            Raw::Number(number) => Value::Number(number.clone()),
            Raw::Text(text) => Value::String(text.clone()),
            Raw::List(items) => items.iter().map(Self::to_value).collect(),
            Raw::Table(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.to_value())).collect::<Map<_, _>>())
            }
        }
    }

    /// What it is, for messages: its kind alone.
    pub(super) const fn kind(&self) -> &'static str {
        match self.raw {
            Raw::Null => "nothing",
            Raw::Flag(_) => "true or false",
            Raw::Number(_) => "a number",
            Raw::Text(_) => "a text",
            Raw::List(_) => "a list",
            Raw::Table(_) => "a table",
        }
    }

    /// The byte of the deepest part of `path` that is there: keys with dots, items with their index in brackets.
    pub(super) fn locate(&self, path: &str) -> Option<usize> {
        let mut at = self.at;
        let mut node = self;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match &node.raw {
                Raw::Table(entries) => entries.iter().find(|entry| entry.key == step).map(|entry| (entry.at, &entry.node)),
                Raw::List(items) => {
                    step.strip_suffix(']').and_then(|index| items.get(index.parse::<usize>().ok()?)).map(|item| (item.at, item))
                }
                _ => None,
            };
            let Some((place, below)) = next else { break };
            (at, node) = (place.or(at), below);
        }
        at
    }
}

/// A number that JSON does not have.
struct Odd {
    at: usize,
    reason: &'static str,
}

fn entries(table: DeTable<'_>) -> Result<Vec<Entry>, Odd> {
    let entries = table.into_iter().map(|(key, value)| {
        let at = Some(key.span().start);
        Ok(Entry { key: key.into_inner().into_owned(), at, node: node(value)? })
    });
    let mut entries = entries.collect::<Result<Vec<_>, Odd>>()?;
    // The parser sorts by name; messages and lists of fields follow the file.
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

fn node(value: Spanned<DeValue<'_>>) -> Result<Node, Odd> {
    let at = value.span().start;
    let raw = match value.into_inner() {
        DeValue::String(text) => Raw::Text(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Raw::Number(Number::from(number)),
            Err(_) => return Err(Odd { at, reason: "the number has more than 64 bits; write it smaller, or in quotes" }),
        },
        DeValue::Float(number) => match number.as_str().parse().ok().and_then(Number::from_f64) {
            Some(number) => Raw::Number(number),
            None => return Err(Odd { at, reason: "nothing here takes inf or nan; write a number" }),
        },
        DeValue::Boolean(flag) => Raw::Flag(flag),
        DeValue::Datetime(moment) => Raw::Text(moment.to_string()),
        DeValue::Array(items) => Raw::List(items.into_iter().map(node).collect::<Result<_, _>>()?),
        DeValue::Table(table) => Raw::Table(entries(table)?),
    };
    Ok(Node { at: Some(at), raw })
}

/// The line of a byte, from 1.
pub(super) fn line_of(text: &str, at: usize) -> u64 {
    text.bytes().take(at).filter(|byte| *byte == b'\n').fold(1, |line, _| line + 1)
}

/// The parser's words without what it quotes: that may be part of a secret.
fn plain(message: &str) -> String {
    let words: String = message.lines().next().unwrap_or_default().split(['`', '"', '\'']).step_by(2).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}
