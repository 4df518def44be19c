//! Identities: what an import creates, brings up to date, and leaves.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::{Counts, Failures, Format, ImportError, Imported, Mode, Run, json_tags, labels, table, tags};
use crate::plane::model::identity_type::{IdentityType, Payload, Source, UniqueKey};

const RESERVED: [&str; 4] = ["_account", "_region", "_tags", "_labels"];
const ENVELOPE: [&str; 5] = ["payload", "account", "region", "tags", "labels"];

/// What an import is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdentityImport<'a> {
    pub(crate) kind: &'a IdentityType,
    pub(crate) type_id: &'a str,
    /// The key of the hash that tells identities apart.
    pub(crate) pepper: &'a [u8],
    pub(crate) format: Format,
    pub(crate) mode: Mode,
    pub(crate) run: Run,
}

/// What a row says about an identity beside its payload; what it does not say stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attributes {
    pub(crate) account: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum IdentityChange {
    /// A new identity, in the state its type's activation says.
    Create { line: u64, key: UniqueKey, payload: Payload, attributes: Attributes },
    /// A new version of the payload: health starts anew, the state too unless banned, disabled or retired.
    Update { line: u64, key: UniqueKey, payload: Payload, attributes: Attributes },
    /// The payload is the known one; only the attributes are set. Counts as unchanged.
    Annotate { line: u64, key: UniqueKey, attributes: Attributes },
}

/// Reads all rows and compares them with what is known.
pub(crate) fn import_identities<'k>(
    import: IdentityImport<'_>,
    data: &[u8],
    known: impl Fn(&UniqueKey) -> Option<&'k Payload>,
) -> Result<Imported<IdentityChange>, ImportError> {
    let rows = match import.format {
        Format::Jsonl => jsonl(data)?,
        Format::Csv => csv(data)?,
        Format::Lines => return Err(ImportError::Format),
    };
    let source = if import.format == Format::Csv { Source::Cells } else { Source::Json };
    let mut failures = Failures::default();
    let mut counts = Counts::default();
    let mut changes = Vec::new();
    let mut seen: HashMap<UniqueKey, u64> = HashMap::new();
    for (line, row) in rows {
        let checked = row.and_then(|(values, attributes)| {
            if values.is_empty() {
                return Err("the payload is empty".to_owned());
            }
            let payload = Payload::new(import.kind, values, source).map_err(|error| error.to_string())?;
            let key = UniqueKey::new(import.pepper, import.type_id, import.kind, &payload).map_err(|error| error.to_string())?;
            if let Some(first) = seen.get(&key) {
                return Err(format!("the same identity as in line {first}; take one out"));
            }
            seen.insert(key, line);
            Ok((key, payload, attributes))
        });
        let (key, payload, attributes) = match checked {
            Ok(checked) => checked,
            Err(message) => {
                failures.add(line, message);
                continue;
            }
        };
        let change = match (known(&key), import.mode) {
            (None, _) => {
                counts.created += 1;
                Some(IdentityChange::Create { line, key, payload, attributes })
            }
            (Some(old), Mode::Upsert) if *old != payload => {
                counts.updated += 1;
                Some(IdentityChange::Update { line, key, payload, attributes })
            }
            (Some(_), mode) => {
                counts.unchanged += 1;
                let says_something = mode == Mode::Upsert && attributes != Attributes::default();
                says_something.then_some(IdentityChange::Annotate { line, key, attributes })
            }
        };
        if import.run == Run::Real {
            changes.extend(change);
        }
    }
    counts.failed = failures.finish();
    Ok(Imported { counts, changes })
}

type Split = (Map<String, Value>, Attributes);

fn jsonl(data: &[u8]) -> Result<Vec<table::Row<Split>>, ImportError> {
    Ok(table::jsonl(data)?.into_iter().map(|(line, row)| (line, row.and_then(split))).collect())
}

/// Takes the attributes out of an object, in either of its two forms.
fn split(mut map: Map<String, Value>) -> Result<Split, String> {
    let Some(payload) = map.swap_remove("payload") else {
        let [account, region, tags, labels] = RESERVED.map(|key| map.shift_remove(key));
        return Ok((map, attributes(account, region, tags, labels)?));
    };
    let Value::Object(payload) = payload else {
        return Err("payload: expected an object".to_owned());
    };
    let [account, region, tags, labels] = ["account", "region", "tags", "labels"].map(|key| map.swap_remove(key));
    if let Some(unknown) = map.keys().next() {
        let shown: String = unknown.chars().take(64).flat_map(char::escape_debug).collect();
        return Err(format!("{shown}: not known beside payload; allowed are {}", ENVELOPE.join(", ")));
    }
    Ok((payload, attributes(account, region, tags, labels)?))
}

fn attributes(
    account: Option<Value>,
    region: Option<Value>,
    tags: Option<Value>,
    written_labels: Option<Value>,
) -> Result<Attributes, String> {
    let labels = match written_labels.filter(|value| !value.is_null()) {
        None => None,
        Some(Value::Object(map)) => {
            let texts: Option<BTreeMap<String, String>> =
                map.into_iter().map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect();
            Some(labels(texts.ok_or("labels: expected texts")?)?)
        }
        Some(_) => return Err("labels: expected an object of texts".to_owned()),
    };
    let tags = tags.filter(|value| !value.is_null()).map(|value| json_tags(&value)).transpose()?;
    Ok(Attributes { account: text(account, "account")?, region: text(region, "region")?, tags, labels })
}

/// A text; an empty one says nothing.
fn text(value: Option<Value>, name: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{name}: expected a text")),
    }
}

fn csv(data: &[u8]) -> Result<Vec<table::Row<Split>>, ImportError> {
    Ok(table::csv(data, &RESERVED)?.into_iter().map(|(line, row)| (line, row.and_then(split_cells))).collect())
}

fn split_cells(cells: table::Cells) -> Result<Split, String> {
    let mut attributes = Attributes::default();
    let mut values = Map::new();
    for (name, cell) in cells {
        match name.as_str() {
            "_account" => attributes.account = Some(cell),
            "_region" => attributes.region = Some(cell),
            "_tags" => attributes.tags = Some(tags(cell.split(';'))?),
            "_labels" => {
                let mut read = BTreeMap::new();
                for label in cell.split(';').map(str::trim).filter(|label| !label.is_empty()) {
                    let (name, value) = label.split_once('=').ok_or("labels: expected name=value, separated by ;")?;
                    read.insert(name.trim().to_owned(), value.trim().to_owned());
                }
                attributes.labels = Some(labels(read)?);
            }
            _ => {
                values.insert(name, table::cell_value(cell));
            }
        }
    }
    Ok((values, attributes))
}
