//! Proxies: written inline, or in files beside the seed (wire contract, sections 23 and 37).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::node::Raw;
use super::table::{Field, Table};
use super::{SeedError, SeedProxy};
use crate::plane::model::import::{Format, Mode, Proxy, ProxyChange, Run, import_proxies};
use crate::plane::model::proxy_url::ProxyUrl;

const KEYS: [&str; 9] = ["name", "url", "kind", "region", "city", "provider", "tags", "max_concurrency", "session_template"];
const RENAMED: [(&str, &str); 1] = [("concurrency", "write max_concurrency")];

/// A list of proxies; ids and URLs are unique.
#[derive(Default)]
pub(super) struct List {
    proxies: Vec<SeedProxy>,
    ids: HashSet<Arc<str>>,
    urls: HashSet<ProxyUrl>,
    /// How many have no name of their own, by what their ids begin with: one gateway may have thousands of users.
    unnamed: HashMap<String, u64>,
}

impl List {
    /// Reads `proxies` and `proxy_files` of a table.
    pub(super) fn read(table: &Table<'_, '_>) -> Result<Self, SeedError> {
        let mut list = Self::default();
        for field in table.list("proxies")? {
            let (name, proxy) = inline(&field)?;
            list.add(name, proxy, None).map_err(|problem| field.place.wrong(problem))?;
        }
        let files = table.get("proxy_files").map(|field| field.one_or_more()).transpose()?;
        for field in files.into_iter().flatten() {
            list.import(&field)?;
        }
        Ok(list)
    }

    /// Takes one in; its id.
    pub(super) fn add(
        &mut self,
        name: Option<&str>,
        proxy: Proxy,
        reserved_for: Option<&Arc<str>>,
    ) -> Result<Arc<str>, &'static str> {
        if !self.urls.insert(proxy.url.clone()) {
            return Err("the proxy is in the list already; equal URLs are one proxy, so take one out");
        }
        let id = match name {
            Some(name) => Arc::from(name),
            None => self.free(proxy.url.shown()),
        };
        if !self.ids.insert(Arc::clone(&id)) {
            return Err("another proxy of the list has this name; choose another");
        }
        self.proxies.push(SeedProxy { id: Arc::clone(&id), proxy, reserved_for: reserved_for.cloned() });
        Ok(id)
    }

    /// The proxy with this id.
    pub(super) fn find(&self, id: &str) -> Option<&SeedProxy> {
        self.proxies.iter().find(|proxy| *proxy.id == *id)
    }

    /// The ids.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.proxies.iter().map(|proxy| &*proxy.id)
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.proxies.is_empty()
    }

    /// The proxies, in their order.
    pub(super) fn into_proxies(self) -> Vec<SeedProxy> {
        self.proxies
    }

    fn import(&mut self, field: &Field<'_, '_>) -> Result<(), SeedError> {
        let file = field.file()?;
        let format = match file.ending().as_str() {
            "jsonl" | "ndjson" => Format::Jsonl,
            "csv" => Format::Csv,
            _ => Format::Lines,
        };
        let wrong = |line, problem: String| SeedError::Wrong {
            path: file.path.clone(),
            line,
            key: field.place.path().to_owned(),
            reason: problem,
        };
        let imported = import_proxies(format, Mode::Upsert, Run::Real, &file.bytes, |_| None);
        let imported = imported.map_err(|error| wrong(None, error.to_string()))?;
        if let Some((line, problem)) = super::first_failure(&imported.counts.failed) {
            return Err(wrong(line, problem));
        }
        for change in imported.changes {
            let (ProxyChange::Create { line, proxy } | ProxyChange::Update { line, proxy }) = change;
            self.add(None, proxy, None).map_err(|problem| wrong(Some(line), problem.to_owned()))?;
        }
        Ok(())
    }

    /// The text, or the text with the next number. A written name has no `#` and no `://`.
    fn free(&mut self, text: String) -> Arc<str> {
        let count = self.unnamed.entry(text.clone()).or_default();
        *count += 1;
        if *count == 1 { text.into() } else { format!("{text}#{count}").into() }
    }
}

/// A proxy in the seed itself: a table, or the text of one line of a file.
fn inline<'n>(field: &Field<'_, 'n>) -> Result<(Option<&'n str>, Proxy), SeedError> {
    if let Raw::Text(line) = &field.node.raw {
        return Ok((None, one(field, Format::Lines, line)?));
    }
    let table = field.table_renamed(&KEYS, &RENAMED)?;
    let name = table.get("name").map(|field| field.name()).transpose()?;
    let mut value = field.node.to_value();
    if let Value::Object(map) = &mut value {
        map.shift_remove("name");
    }
    Ok((name, one(field, Format::Jsonl, &value.to_string())?))
}

/// The one proxy of a line.
fn one(field: &Field<'_, '_>, format: Format, line: &str) -> Result<Proxy, SeedError> {
    let imported = import_proxies(format, Mode::Upsert, Run::Real, line.as_bytes(), |_| None);
    let imported = imported.map_err(|error| field.place.wrong(error))?;
    if let Some(failure) = imported.counts.failed.first() {
        // The message begins with the key that is wrong.
        let at = failure.message.split_once(':').and_then(|(key, _)| field.node.locate(key));
        return Err(field.place.wrong_at(at, &failure.message));
    }
    match imported.changes.into_iter().next() {
        Some(ProxyChange::Create { proxy, .. } | ProxyChange::Update { proxy, .. }) => Ok(proxy),
        None => Err(field.place.wrong("found an empty text; expected scheme://user:password@host:port")),
    }
}
