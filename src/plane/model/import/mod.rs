//! Imports of identities and proxies (wire contract, section 37): rows in, changes and counts out.
//!
//! Pure: what is known already is asked for, the changes are made by the caller. A bad row is reported with its line and
//! stops nothing; a message never quotes a value.

mod identities;
mod proxies;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub(crate) use identities::{Attributes, IdentityChange, IdentityImport, import_identities};
pub(crate) use proxies::{Proxy, ProxyChange, import_proxies};

/// The most rows and bytes of one import.
pub(crate) const MAX_ROWS: usize = 50_000;
pub(crate) const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The most tags, and the most labels, of one row.
pub(crate) const MAX_TAGS: usize = 64;

/// The most failures that are told one by one.
const MAX_FAILURES: usize = 1000;

/// How the rows are written. Identities come as JSON Lines or CSV, proxies in any of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One proxy URL per line, then `key=value` words.
    Lines,
    /// One JSON object per line.
    Jsonl,
    /// A header and rows.
    Csv,
}

/// What happens to a row that is known already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// It is brought up to date.
    #[default]
    Upsert,
    /// It is left as it is.
    #[allow(dead_code, reason = "a word of the contract that nothing here says yet")]
    CreateOnly,
}

/// Whether changes come out, or only counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Real,
    #[allow(dead_code, reason = "a word of the contract that nothing here says yet")]
    Dry,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    /// Counted from 1; 0 for the entry that stands for all further ones.
    pub(crate) line: u64,
    pub(crate) message: String,
}

/// The result as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) created: u32,
    pub(crate) updated: u32,
    pub(crate) unchanged: u32,
    pub(crate) failed: Vec<Failure>,
}

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Imported<C> {
    pub(crate) counts: Counts,
    /// In the order of the rows; empty for a dry run.
    pub(crate) changes: Vec<C>,
}

/// An import of which no row can be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ImportError {
    /// Too large.
    #[error("the import has {0} bytes; allowed: at most {MAX_BYTES}; split it")]
    TooLarge(usize),
    /// Too many rows.
    #[error("the import has more than {MAX_ROWS} rows; split it")]
    TooManyRows,
    /// A CSV header that cannot be used.
    #[error("CSV header, column {column}: {problem}")]
    Header { column: usize, problem: &'static str },
    /// A format that does not go with what is imported.
    #[error("identities are imported as jsonl or csv")]
    Format,
}

/// Collects failures and keeps their number bounded.
#[derive(Debug, Default)]
struct Failures {
    told: Vec<Failure>,
    more: usize,
}

impl Failures {
    fn add(&mut self, line: u64, message: String) {
        if self.told.len() < MAX_FAILURES {
            self.told.push(Failure { line, message });
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<Failure> {
        if self.more > 0 {
            self.told.push(Failure { line: 0, message: format!("{} more rows failed", self.more) });
        }
        self.told
    }
}

/// Tags of a JSON value: a list of texts, or a text with commas.
fn json_tags(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => tags(text.split(',')),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            tags(texts.ok_or("tags: expected texts")?)
        }
        _ => Err("tags: expected a list of texts, or a text with commas".to_owned()),
    }
}

/// The tags without white space around them, each once.
fn tags<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in texts.into_iter().map(str::trim).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
        if tags.len() > MAX_TAGS {
            return Err(format!("tags: found more than {MAX_TAGS}; that is the most of one row"));
        }
    }
    Ok(tags)
}

/// Checks the number of labels.
fn labels(labels: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    if labels.len() > MAX_TAGS {
        return Err(format!("labels: found {}; allowed: at most {MAX_TAGS} in one row", labels.len()));
    }
    Ok(labels)
}
