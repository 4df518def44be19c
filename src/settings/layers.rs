//! Layers: the places settings come from, and which of them wins.
//!
//! Low to high: default, settings file, watched config, spider, environment, command line. The
//! highest layer that has a key gives its whole value; tables are not merged. Every layer is checked
//! as it is added, overruled values too, and all errors are reported together by
//! [`Layers::resolve`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde_json::Value;

use super::delivery;
use super::environment::Environment;
use super::error::{SettingsError, SettingsErrors};
use super::file;
use super::key::Key;
use super::layer::{Given, GivenKind, ItemValue, Layer, typed};
use super::names::Name;
use super::references::{self, Reference};
use super::resolved::{Origin, Resolved};
use super::source::Source;
use super::table::Settings;

/// The layers, from low to high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    File,
    Watched,
    Spider,
    Environment,
    CommandLine,
}

/// Sources of settings, stacked. Cheap to clone and to resolve again after a reload.
///
/// ```
/// use dragline::settings::{Environment, Layers};
///
/// let resolved = Layers::new()
///     .env(Environment::of([("DRAGLINE_LOG_LEVEL", "DEBUG")]))
///     .set("CONCURRENT_REQUESTS=4")
///     .resolve()?;
/// assert_eq!(resolved.settings.concurrent_requests, 4);
/// # Ok::<(), dragline::settings::SettingsErrors>(())
/// ```
#[derive(Clone, Default)]
pub struct Layers {
    layers: BTreeMap<Rank, Layer>,
    file: Option<PathBuf>,
    secrets: BTreeMap<String, SecretString>,
}

impl Layers {
    /// Only the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a settings file (`-c FILE`), instead of the one so far. A file that cannot be read is
    /// an error of [`Layers::resolve`].
    #[must_use]
    pub fn file(self, path: &Path) -> Self {
        match file::read(path) {
            Ok(text) => self.with_file(path, &text),
            Err(error) => {
                let mut failed = self;
                failed.file = Some(path.to_owned());
                failed.layers.insert(Rank::File, Layer::failed(vec![error]));
                failed
            }
        }
    }

    /// Reads `config/dragline.toml` or else `dragline.toml` below `directory`, if one is there.
    #[must_use]
    pub fn default_file(self, directory: &Path) -> Self {
        let found =
            ["config/dragline.toml", "dragline.toml"].into_iter().map(|name| directory.join(name)).find(|path| path.is_file());
        match found {
            // A path below `.` is shown without the dot.
            Some(path) => self.file(path.strip_prefix(".").unwrap_or(&path)),
            None => self,
        }
    }

    /// A copy with this text as the settings file and all other layers as they are: what a reload
    /// resolves.
    #[must_use]
    pub fn with_file(&self, path: &Path, text: &str) -> Self {
        let layer = match file::parse(path, text) {
            Err(errors) => Layer::failed(errors),
            Ok(entries) => {
                let mut layer = Layer::default();
                for entry in entries {
                    let source = Source::File { path: path.to_owned(), line: entry.line };
                    layer.put(&entry.key, source, |_| entry.value);
                }
                layer
            }
        };
        let mut copy = self.clone();
        copy.file = Some(path.to_owned());
        copy.layers.insert(Rank::File, layer);
        copy
    }

    /// Takes the config that the control plane distributes, instead of the one so far.
    #[must_use]
    pub fn watched<K: AsRef<str>>(self, values: impl IntoIterator<Item = (K, Value)>) -> Self {
        self.typed(Rank::Watched, Source::Watched, values)
    }

    /// A copy with these settings of config items, instead of the watched config so far, and all other layers as they are.
    /// Items come from low to high. References to secrets were resolved by the plane: what looks like one is text.
    #[must_use]
    pub(crate) fn with_items<'a>(&self, items: impl IntoIterator<Item = (Source, &'a [ItemValue])>) -> Self {
        let mut layer = Layer::default();
        for (source, values) in items {
            for ItemValue { key, value, is_hidden } in values {
                let kind = if *is_hidden { GivenKind::Hidden } else { GivenKind::Plain };
                layer.take(key, Given { value: value.clone(), source: source.clone(), kind });
            }
        }
        let mut copy = self.clone();
        copy.layers.insert(Rank::Watched, layer);
        copy
    }

    /// The secrets that the values in effect refer to, in the order of the keys; each once for each setting.
    pub fn secret_references(&self) -> Vec<Reference> {
        let referring = Settings::keys().iter().filter_map(|key| {
            let given = self.winner(key.name).filter(|given| given.kind == GivenKind::Refers)?;
            Some((key.name, given))
        });
        referring
            .flat_map(|(key, given)| {
                let paths = references::paths(&given.value).unwrap_or_default();
                paths.into_iter().map(move |path| Reference { key, path, source: given.source.clone() })
            })
            .collect()
    }

    /// A copy that knows these secrets, by path, besides those it knows already.
    #[must_use]
    pub fn with_secrets(&self, secrets: &BTreeMap<String, SecretString>) -> Self {
        let mut copy = self.clone();
        copy.secrets.extend(secrets.iter().map(|(path, secret)| (path.clone(), secret.clone())));
        copy
    }

    /// Takes the spider's own settings, instead of those so far.
    #[must_use]
    pub fn spider<K: AsRef<str>>(self, values: impl IntoIterator<Item = (K, Value)>) -> Self {
        self.typed(Rank::Spider, Source::Spider, values)
    }

    /// Takes the environment, instead of the one so far.
    #[must_use]
    pub fn env(mut self, environment: Environment) -> Self {
        let mut layer = Layer::default();
        if let Environment::Variables(variables) = environment {
            for (name, value) in variables {
                layer.put_variable(&name, &value);
            }
        }
        self.layers.insert(Rank::Environment, layer);
        self
    }

    /// Adds one `-s NAME=VALUE`; the last one of a name wins.
    #[must_use]
    pub fn set(mut self, pair: &str) -> Self {
        let layer = self.layers.entry(Rank::CommandLine).or_default();
        match pair.split_once('=') {
            Some((name, text)) => {
                layer.put(name.trim(), Source::CommandLine, |key| typed(key, text));
            }
            None => layer.errors.push(SettingsError::NotAPair { given: name_or_placeholder(pair) }),
        }
        self
    }

    /// The settings file in use.
    pub fn settings_file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Picks the winning value of every key.
    ///
    /// # Errors
    /// Everything that is wrong in any layer, values that exclude each other, and references to secrets that
    /// [`Self::with_secrets`] has not brought.
    pub fn resolve(&self) -> Result<Resolved, SettingsErrors> {
        self.resolve_with(Secrets::Needed)
    }

    /// As [`Self::resolve`], with the default in place of every value that refers to a secret: what can be known, and shown,
    /// before the control plane is asked. Those values are not checked.
    ///
    /// # Errors
    /// Everything else that is wrong.
    pub fn resolve_without_secrets(&self) -> Result<Resolved, SettingsErrors> {
        self.resolve_with(Secrets::LeftOut)
    }

    fn resolve_with(&self, secrets: Secrets) -> Result<Resolved, SettingsErrors> {
        let mut errors: Vec<SettingsError> = self.layers.values().flat_map(|layer| layer.errors.iter().cloned()).collect();
        let referring: Vec<(&'static Key, &Given)> = Settings::keys()
            .iter()
            .filter_map(|key| Some((key, self.winner(key.name).filter(|given| given.kind == GivenKind::Refers)?)))
            .collect();
        let mut filled: BTreeMap<&'static str, Value> = BTreeMap::new();
        if secrets == Secrets::Needed {
            for (key, given) in &referring {
                match self.fill(key, given) {
                    Ok(value) => drop(filled.insert(key.name, value)),
                    Err(error) => errors.push(error),
                }
            }
        }
        if !errors.is_empty() {
            return Err(SettingsErrors(errors));
        }
        let value_of = |name: &str| match self.winner(name) {
            Some(Given { kind: GivenKind::Refers, .. }) => filled.get(name),
            Some(given) => Some(&given.value),
            None => None,
        };
        let mut settings = Settings::read(value_of).map_err(|problems| {
            SettingsErrors(
                problems
                    .into_iter()
                    .map(|(key, problem)| SettingsError::BadValue {
                        origin: self.source_of(key),
                        key,
                        found: problem.found,
                        allowed: problem.allowed,
                    })
                    .collect(),
            )
        })?;
        let is_secret = |name: &str| match self.winner(name).map(|given| given.kind) {
            Some(GivenKind::Refers) => secrets == Secrets::Needed,
            Some(GivenKind::Hidden) => true,
            Some(GivenKind::Plain) | None => false,
        };
        settings.from_secrets = Settings::keys().iter().map(|key| key.name).filter(|name| is_secret(name)).collect();
        let unknown: Vec<&'static str> = match secrets {
            Secrets::Needed => Vec::new(),
            Secrets::LeftOut => referring.iter().map(|(key, _)| key.name).collect(),
        };
        let conflicts = self.conflicts(&settings, &unknown);
        if !conflicts.is_empty() {
            return Err(SettingsErrors(conflicts));
        }
        let origins = Settings::keys()
            .iter()
            .map(|key| match self.winner(key.name) {
                Some(Given { value, source, kind: GivenKind::Plain }) => Origin::new(key, value, source.clone()),
                Some(Given { value, source, kind: GivenKind::Refers }) => Origin::of_reference(key, value, source.clone()),
                Some(Given { source, kind: GivenKind::Hidden, .. }) => Origin::of_secret(key, source.clone()),
                None => Origin::new(key, &key.default, Source::Default),
            })
            .collect();
        Ok(Resolved::new(settings, origins, self.file.clone()))
    }

    /// A value with its secrets in place, checked.
    fn fill(&self, key: &'static Key, given: &Given) -> Result<Value, SettingsError> {
        let origin = given.source.clone();
        let value = match references::filled(&given.value, &self.secrets) {
            Ok(value) => value,
            Err(references::Missing(path)) => return Err(SettingsError::SecretMissing { origin, key: key.name, path }),
        };
        // A secret is a text; where it is the value of a number or a list, it is read as one from the environment.
        let value = match value {
            Value::String(text) => (key.convert)(&text),
            other => other,
        };
        match (key.check)(&value) {
            Ok(()) => Ok(value),
            Err(problem) => Err(SettingsError::BadValue {
                origin,
                key: key.name,
                found: "another value once its secrets are in place (not shown)".to_owned(),
                allowed: problem.allowed,
            }),
        }
    }

    fn typed<K: AsRef<str>>(mut self, rank: Rank, source: Source, values: impl IntoIterator<Item = (K, Value)>) -> Self {
        let mut layer = Layer::default();
        for (name, value) in values {
            layer.put(name.as_ref(), source.clone(), |_| value);
        }
        self.layers.insert(rank, layer);
        self
    }

    fn winner(&self, name: &str) -> Option<&Given> {
        self.layers.values().rev().find_map(|layer| layer.values.get(name))
    }

    /// Where the winning value of a key was given.
    pub(crate) fn source_of(&self, name: &str) -> Source {
        self.winner(name).map_or(Source::Default, |given| given.source.clone())
    }

    /// Rules about two keys together, but for keys whose values are not known yet.
    fn conflicts(&self, settings: &Settings, unknown: &[&'static str]) -> Vec<SettingsError> {
        let mut conflicts = Vec::new();
        let mut conflict = |first: &'static str, second: &'static str, why: String| {
            if unknown.contains(&first) || unknown.contains(&second) {
                return;
            }
            let is_hidden = settings.from_secrets.contains(&first) || settings.from_secrets.contains(&second);
            let why = if is_hidden { "one of them comes from a secret, so neither is shown".to_owned() } else { why };
            conflicts.push(SettingsError::Conflict {
                first,
                first_origin: Box::new(self.source_of(first)),
                second,
                second_origin: Box::new(self.source_of(second)),
                why,
            });
        };
        let closing = settings.grace + settings.close_timeout;
        if closing > std::time::Duration::from_secs(25) {
            let found = closing.as_secs_f64();
            conflict("GRACE", "CLOSE_TIMEOUT", format!("found {found} s together; allowed: up to 25 s, so lower one of them"));
        }
        if settings.retry_backoff > settings.retry_backoff_max {
            conflict(
                "RETRY_BACKOFF",
                "RETRY_BACKOFF_MAX",
                format!(
                    "found {} s above its limit of {} s; raise the limit or lower the wait",
                    settings.retry_backoff.as_secs_f64(),
                    settings.retry_backoff_max.as_secs_f64()
                ),
            );
        }
        if settings.spinneret_backoff > settings.spinneret_backoff_max {
            conflict(
                "SPINNERET_BACKOFF",
                "SPINNERET_BACKOFF_MAX",
                format!(
                    "found {} s above its limit of {} s; raise the limit or lower the wait",
                    settings.spinneret_backoff.as_secs_f64(),
                    settings.spinneret_backoff_max.as_secs_f64()
                ),
            );
        }
        let halves = [delivery::half(settings), delivery::half_plane(settings), delivery::half_auth(settings)];
        for delivery::Half { what, way_out, mut given, mut missing } in halves.into_iter().flatten() {
            // What a secret will say is given, even if nobody knows it yet.
            given.extend(missing.extract_if(.., |key| unknown.contains(key)));
            if missing.is_empty() {
                continue;
            }
            let sourced = |keys: Vec<&'static str>| keys.into_iter().map(|key| (key, self.source_of(key))).collect();
            conflicts.push(SettingsError::Incomplete { what, way_out, given: sourced(given), missing: sourced(missing) });
        }
        conflicts
    }
}

/// What becomes of values that refer to secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Needed,
    LeftOut,
}

/// Shows which keys each layer has, never a value.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.layers.iter().map(|(rank, layer)| {
                let keys: Vec<&str> = layer.values.keys().copied().collect();
                (rank, keys)
            }))
            .finish()
    }
}

/// The argument if it looks like the name of a key; it may be a secret otherwise.
fn name_or_placeholder(given: &str) -> String {
    let like_a_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    match Name::of(given) {
        Name::Unknown(None) if !given.contains('_') || !given.chars().all(like_a_name) => "(not shown)".to_owned(),
        _ => given.to_owned(),
    }
}
