//! Proxies: read from lines, JSON Lines or CSV; equal URLs are one proxy.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Counts, Failures, Format, ImportError, Imported, Mode, Run, json_tags, table};
use crate::nearest::nearest;
use crate::plane::model::proxy_url::{ProxyUrl, SessionTemplate};

/// The most leases at once.
const MAX_CONCURRENCY: u32 = 100_000;

const KEYS: [&str; 8] = ["url", "kind", "region", "city", "provider", "tags", "max_concurrency", "session_template"];

/// A proxy as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) url: ProxyUrl,
    pub(crate) kind: String,
    pub(crate) region: String,
    pub(crate) city: String,
    pub(crate) provider: String,
    pub(crate) tags: Vec<String>,
    /// Leases at once.
    pub(crate) max_concurrency: u32,
    pub(crate) session_template: Option<SessionTemplate>,
}

impl Proxy {
    /// A proxy of which only the URL is known.
    pub(crate) fn new(url: ProxyUrl) -> Self {
        Self {
            url,
            kind: "datacenter".to_owned(),
            region: String::new(),
            city: String::new(),
            provider: String::new(),
            tags: Vec::new(),
            max_concurrency: 1,
            session_template: None,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProxyChange {
    Create {
        line: u64,
        proxy: Proxy,
    },
    /// The proxy with this URL, as it is from now on.
    Update {
        line: u64,
        proxy: Proxy,
    },
}

/// Reads all rows and compares them with what is known. What a row does not say stays as it is.
pub(crate) fn import_proxies<'k>(
    format: Format,
    mode: Mode,
    run: Run,
    data: &[u8],
    known: impl Fn(&ProxyUrl) -> Option<&'k Proxy>,
) -> Result<Imported<ProxyChange>, ImportError> {
    let rows = match format {
        Format::Lines => table::lines(data)?
            .into_iter()
            .filter(|(_, row)| !row.as_ref().is_ok_and(|text| text.starts_with('#')))
            .map(|(line, row)| (line, row.and_then(words)))
            .collect(),
        Format::Jsonl => table::jsonl(data)?,
        Format::Csv => table::csv(data, &[])?.into_iter().map(|(line, row)| (line, row.map(cells))).collect(),
    };
    let mut failures = Failures::default();
    let mut counts = Counts::default();
    let mut changes = Vec::new();
    let mut seen: HashMap<ProxyUrl, u64> = HashMap::new();
    for (line, row) in rows {
        let checked = row.and_then(|map| {
            let url = url(&map)?;
            if let Some(first) = seen.get(&url) {
                return Err(format!("the same proxy as in line {first}; take one out"));
            }
            let old = known(&url);
            let mut proxy = old.cloned().unwrap_or_else(|| Proxy::new(url.clone()));
            for (key, value) in map {
                set(&mut proxy, &key, &value)?;
            }
            seen.insert(url, line);
            Ok((old, proxy))
        });
        let change = match checked {
            Err(message) => {
                failures.add(line, message);
                continue;
            }
            Ok((None, proxy)) => {
                counts.created += 1;
                ProxyChange::Create { line, proxy }
            }
            Ok((Some(old), proxy)) if mode == Mode::Upsert && *old != proxy => {
                counts.updated += 1;
                ProxyChange::Update { line, proxy }
            }
            Ok((Some(_), _)) => {
                counts.unchanged += 1;
                continue;
            }
        };
        if run == Run::Real {
            changes.push(change);
        }
    }
    counts.failed = failures.finish();
    Ok(Imported { counts, changes })
}

/// A URL and `key=value` words.
fn words(text: &str) -> Result<Map<String, Value>, String> {
    let mut words = text.split_whitespace();
    let mut map = Map::new();
    map.insert("url".to_owned(), Value::from(words.next().unwrap_or_default()));
    for (word, position) in words.zip(2_u32..) {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("word {position} is no key=value"))?;
        if key == "session_template" || key == "url" {
            return Err(format!("{key}: not in this format; use jsonl or csv"));
        }
        if map.insert(key.to_owned(), Value::from(value)).is_some() {
            return Err(format!("word {position}: its key is there twice; take one out"));
        }
    }
    Ok(map)
}

fn cells(cells: table::Cells) -> Map<String, Value> {
    let values = cells.into_iter().map(|(name, cell)| {
        let value = if name == "tags" { cell.split(';').map(Value::from).collect() } else { Value::String(cell) };
        (name, value)
    });
    values.collect()
}

fn url(map: &Map<String, Value>) -> Result<ProxyUrl, String> {
    match map.get("url") {
        Some(Value::String(text)) => ProxyUrl::parse(text.trim()).map_err(|error| format!("url: {error}")),
        None | Some(Value::Null) => Err("url: it is required and missing".to_owned()),
        Some(_) => Err("url: expected a text".to_owned()),
    }
}

fn set(proxy: &mut Proxy, key: &str, value: &Value) -> Result<(), String> {
    if !KEYS.contains(&key) {
        let shown: String = key.chars().take(64).flat_map(char::escape_debug).collect();
        let hint = nearest(&shown, KEYS)
            .map_or_else(|| format!("allowed are {}", KEYS.join(", ")), |near| format!("did you mean {near}?"));
        return Err(format!("{shown}: not known; {hint}"));
    }
    if key == "url" || value.is_null() {
        return Ok(());
    }
    match key {
        "tags" => proxy.tags = json_tags(value)?,
        "max_concurrency" => {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            proxy.max_concurrency = number
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| (1..=MAX_CONCURRENCY).contains(number))
                .ok_or_else(|| format!("max_concurrency: expected a whole number from 1 to {MAX_CONCURRENCY}"))?;
        }
        _ => {
            let text = value.as_str().ok_or_else(|| format!("{key}: expected a text"))?;
            match key {
                "kind" => {
                    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
                    if !(1..=32).contains(&text.len()) || !text.bytes().all(fits) {
                        return Err(
                            "kind: allowed are datacenter, residential, mobile, tunnel or another name of a-z, 0-9, _ and -"
                                .to_owned(),
                        );
                    }
                    proxy.kind = text.to_owned();
                }
                "region" => proxy.region = text.to_owned(),
                "city" => proxy.city = text.to_owned(),
                "provider" => proxy.provider = text.to_owned(),
                _ => {
                    let template = SessionTemplate::parse(text).map_err(|error| format!("session_template: {error}"))?;
                    proxy.session_template = Some(template).filter(|template| !template.text().is_empty());
                }
            }
        }
    }
    Ok(())
}
