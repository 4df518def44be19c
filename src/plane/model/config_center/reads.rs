//! What nodes ask of a config centre: `GetConfig`, `BatchGetConfig` and `WatchConfig`.
//!
//! The order of checks: fields, namespace, scopes, existence, secrets. Who may not read a group does not learn what is in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use secrecy::ExposeSecret;

use super::super::Ms;
use super::super::refusal::Refusal;
use super::super::runtime_items;
use super::super::scope::Scopes;
use super::items::check_name;
use super::references::{Fault, resolve};
use super::{ConfigCenter, ConfigItem, Format, ItemName, WaiterId};

/// Most items of one call.
const ITEMS: usize = 200;
/// Longest namespace, characters.
const NAMESPACE: usize = 64;
/// How long a watch waits, ms: when it does not say, and at most.
const WATCH: Ms = 30_000;
const LONGEST_WATCH: Ms = 60_000;
/// How long before the caller's deadline a watch ends, ms, so that its answer still arrives.
const DEADLINE_MARGIN: Ms = 500;

/// An item and the version the watcher holds: 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchedItem<'a> {
    pub(crate) name: ItemName<'a>,
    pub(crate) version: i32,
}

/// The answer of `BatchGetConfig`: each item once, in the order asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch<'a> {
    pub(crate) items: Vec<ConfigItem>,
    pub(crate) missing: Vec<ItemName<'a>>,
}

/// What a look at watched items found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum Look {
    /// These are newer than what is held: the answer. If they are too much for one answer, the rest comes with the next poll.
    Changed(Vec<ConfigItem>),
    /// None is; the watch waits, until it is woken and looks again, or leaves.
    Waits(WaiterId),
}

/// One item, read.
enum Found {
    Missing,
    /// Above the room that is left.
    TooLong,
    Item(ConfigItem),
}

impl ConfigCenter {
    /// `GetConfig`. An empty `namespace` is the token's.
    ///
    /// # Errors
    /// `invalid_argument`, `scope_missing`, `not_found`, or `failed_precondition` when a secret it refers to does not exist.
    pub(crate) fn get(&self, scopes: &Scopes, namespace: &str, name: ItemName<'_>) -> Result<ConfigItem, Refusal> {
        check_namespace(namespace)?;
        check_name(name)?;
        self.check_own(namespace)?;
        scopes.check_config_read(name.group)?;
        match self.read(scopes, name, self.answer_bytes)? {
            Found::Item(item) => Ok(item),
            Found::Missing => Err(Refusal::not_found(format!("there is no config item {name}"))),
            Found::TooLong => Err(self.never_fits(name)),
        }
    }

    /// `BatchGetConfig`.
    ///
    /// # Errors
    /// As [`ConfigCenter::get`] for the whole call if for any item, but a missing item is none: it is listed. A call for more
    /// than one answer may carry is `resource_exhausted`.
    pub(crate) fn batch<'a>(&self, scopes: &Scopes, namespace: &str, names: &[ItemName<'a>]) -> Result<Batch<'a>, Refusal> {
        check_namespace(namespace)?;
        check_count(names.len())?;
        names.iter().try_for_each(|name| check_name(*name))?;
        self.check_own(namespace)?;
        names.iter().try_for_each(|name| scopes.check_config_read(name.group))?;
        let mut served = BTreeSet::new();
        let mut room = self.answer_bytes;
        let mut batch = Batch { items: Vec::with_capacity(names.len()), missing: Vec::new() };
        for name in names.iter().filter(|name| served.insert(**name)) {
            match self.read(scopes, *name, room)? {
                Found::Item(item) => {
                    room = room.saturating_sub(item.content.len());
                    batch.items.push(item);
                }
                Found::Missing => batch.missing.push(*name),
                Found::TooLong => return Err(Refusal::answer_too_large(self.answer_bytes)),
            }
        }
        Ok(batch)
    }

    /// Checks a `WatchConfig`; answers how long it may wait in all, ms. `deadline` is the caller's own for the whole call, ms
    /// from now.
    ///
    /// # Errors
    /// `invalid_argument`, also for an item that is named twice, or `scope_missing`.
    pub(crate) fn begin_watch(
        &self,
        scopes: &Scopes,
        namespace: &str,
        items: &[WatchedItem<'_>],
        timeout_ms: i32,
        deadline: Option<Ms>,
    ) -> Result<Ms, Refusal> {
        check_namespace(namespace)?;
        check_count(items.len())?;
        let mut seen = BTreeSet::new();
        for item in items {
            check_name(item.name)?;
            if item.version < 0 {
                return Err(Refusal::invalid_argument(format!("the version held of {} is negative", item.name)));
            }
            if !seen.insert(item.name) {
                return Err(Refusal::invalid_argument(format!("{} is watched twice in one call", item.name)));
            }
        }
        let timeout = match Ms::try_from(timeout_ms) {
            Ok(0) => WATCH,
            Ok(timeout) if timeout <= LONGEST_WATCH => timeout,
            _ => {
                let text = format!("timeout_ms is 0 (then {WATCH}) to {LONGEST_WATCH}, found {timeout_ms}");
                return Err(Refusal::invalid_argument(text));
            }
        };
        self.check_own(namespace)?;
        items.iter().try_for_each(|item| scopes.check_config_read(item.name.group))?;
        Ok(deadline.map_or(timeout, |deadline| timeout.min(deadline - DEADLINE_MARGIN.min(deadline / 2))))
    }

    /// Looks once at what a watch is about, and has it wait if nothing is newer than what it holds. A held version that is
    /// above the published one is left alone: nobody is moved back.
    ///
    /// # Errors
    /// `scope_missing` or `failed_precondition` for a changed item whose secrets cannot be had, and `rate_limited` when too many
    /// watches wait.
    pub(crate) fn look(&mut self, scopes: &Scopes, items: &[WatchedItem<'_>]) -> Result<Look, Refusal> {
        let mut room = self.answer_bytes;
        let mut changed = Vec::new();
        for item in items.iter().filter(|item| self.published_version(item.name).is_some_and(|version| version > item.version)) {
            match self.read(scopes, item.name, room)? {
                Found::Item(item) => {
                    room = room.saturating_sub(item.content.len());
                    changed.push(item);
                }
                Found::Missing => {}
                Found::TooLong if changed.is_empty() => return Err(self.never_fits(item.name)),
                Found::TooLong => break,
            }
        }
        if changed.is_empty() {
            return self.waiters.wait(items.iter().map(|item| item.name)).map(Look::Waits);
        }
        Ok(Look::Changed(changed))
    }

    fn published_version(&self, name: ItemName<'_>) -> Option<i32> {
        if name.group == runtime_items::GROUP {
            return self.runtime.find(name.key).map(|(version, _)| version);
        }
        self.items.find(name).map(|item| item.version)
    }

    fn read(&self, scopes: &Scopes, name: ItemName<'_>, room: usize) -> Result<Found, Refusal> {
        let mut item = if name.group == runtime_items::GROUP {
            let Some((version, content)) = self.runtime.find(name.key) else { return Ok(Found::Missing) };
            self.item(name, Format::Json, version, content)
        } else {
            let Some(found) = self.items.find(name) else { return Ok(Found::Missing) };
            ConfigItem {
                updated_at: Some(found.published_at),
                has_secret_refs: found.has_references,
                ..self.item(name, found.format, found.version, &found.content)
            }
        };
        if item.has_secret_refs {
            let secret = |path: &str, version| self.secret(scopes, name, path, version);
            match resolve(name, &item.content, room, secret) {
                Ok(content) => item.content = content.into(),
                Err(Fault::Refused(refusal)) => return Err(refusal),
                Err(Fault::TooLong) => return Ok(Found::TooLong),
            }
        }
        Ok(if item.content.len() > room { Found::TooLong } else { Found::Item(item) })
    }

    fn item(&self, name: ItemName<'_>, format: Format, version: i32, content: &Arc<str>) -> ConfigItem {
        ConfigItem {
            namespace: Arc::clone(&self.namespace),
            group: name.group.into(),
            key: name.key.into(),
            format,
            version,
            content: Arc::clone(content),
            updated_at: None,
            has_secret_refs: false,
        }
    }

    fn secret(&self, scopes: &Scopes, name: ItemName<'_>, path: &str, version: i32) -> Result<&str, Refusal> {
        scopes.check_secret_read(&self.namespace, path)?;
        let found = self.secrets.find(path, version).ok_or_else(|| {
            let version = if version == 0 { String::new() } else { format!(" version {version}") };
            Refusal::failed_precondition(format!(
                "the config item {name} refers to the secret {path}{version}, which does not exist"
            ))
        })?;
        Ok(found.value.expose_secret())
    }

    fn never_fits(&self, name: ItemName<'_>) -> Refusal {
        let most = self.answer_bytes;
        Refusal::failed_precondition(format!("the config item {name} is longer than {most} bytes with its secrets; shorten it"))
    }

    fn check_own(&self, namespace: &str) -> Result<(), Refusal> {
        if namespace.is_empty() || *namespace == *self.namespace {
            return Ok(());
        }
        Err(Refusal::other_namespace(namespace, &self.namespace))
    }
}

fn check_namespace(namespace: &str) -> Result<(), Refusal> {
    if namespace.chars().nth(NAMESPACE).is_some() {
        return Err(Refusal::invalid_argument(format!("a namespace has at most {NAMESPACE} characters")));
    }
    Ok(())
}

fn check_count(items: usize) -> Result<(), Refusal> {
    if (1..=ITEMS).contains(&items) {
        return Ok(());
    }
    Err(Refusal::invalid_argument(format!("a call is for 1 to {ITEMS} config items, found {items}")))
}
