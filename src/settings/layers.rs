//! Layers: the places settings come from, and which of them wins.
//!
//! Low to high: default, settings file, watched config, spider, environment, command line. The
//! highest layer that has a key gives its whole value; tables are not merged. Every layer is checked
//! as it is added, overruled values too, and all errors are reported together by
//! [`Layers::resolve`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::delivery;
use super::environment::{Environment, Variable};
use super::error::{SettingsError, SettingsErrors};
use super::file;
use super::key::Key;
use super::names::Name;
use super::resolved::{Origin, Resolved};
use super::table::Settings;

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: the built-in default.
    Default,
    /// In a settings file.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, from 1, where the format tells it.
        line: Option<usize>,
    },
    /// In the config that the control plane distributes.
    Watched,
    /// In the spider's own settings.
    Spider,
    /// In the environment.
    Environment {
        /// Name of the variable.
        variable: String,
    },
    /// With `-s`.
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::File { path, line: Some(line) } => write!(f, "{}, line {line}", path.display()),
            Self::Watched => f.write_str("watched config"),
            Self::Spider => f.write_str("spider"),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
            Self::CommandLine => f.write_str("-s"),
        }
    }
}

/// The layers, from low to high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    File,
    Watched,
    Spider,
    Environment,
    CommandLine,
}

/// What one layer holds: checked values by key, and what was wrong with the others.
#[derive(Clone, Default)]
struct Layer {
    values: BTreeMap<&'static str, (Value, Source)>,
    errors: Vec<SettingsError>,
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
                layer.put(name.trim(), Source::CommandLine, |key| (key.convert)(text));
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
    /// Everything that is wrong in any layer, and values that exclude each other.
    pub fn resolve(&self) -> Result<Resolved, SettingsErrors> {
        let errors: Vec<SettingsError> = self.layers.values().flat_map(|layer| layer.errors.iter().cloned()).collect();
        if !errors.is_empty() {
            return Err(SettingsErrors(errors));
        }
        let settings = Settings::read(|name| self.winner(name).map(|(value, _)| value)).map_err(|problems| {
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
        let conflicts = self.conflicts(&settings);
        if !conflicts.is_empty() {
            return Err(SettingsErrors(conflicts));
        }
        let origins = Settings::keys()
            .iter()
            .map(|key| match self.winner(key.name) {
                Some((value, source)) => Origin::new(key, value, source.clone()),
                None => Origin::new(key, &key.default, Source::Default),
            })
            .collect();
        Ok(Resolved::new(settings, origins, self.file.clone()))
    }

    fn typed<K: AsRef<str>>(mut self, rank: Rank, source: Source, values: impl IntoIterator<Item = (K, Value)>) -> Self {
        let mut layer = Layer::default();
        for (name, value) in values {
            layer.put(name.as_ref(), source.clone(), |_| value);
        }
        self.layers.insert(rank, layer);
        self
    }

    fn winner(&self, name: &str) -> Option<&(Value, Source)> {
        self.layers.values().rev().find_map(|layer| layer.values.get(name))
    }

    fn source_of(&self, name: &str) -> Source {
        self.winner(name).map_or(Source::Default, |(_, source)| source.clone())
    }

    /// Rules about two keys together.
    fn conflicts(&self, settings: &Settings) -> Vec<SettingsError> {
        let mut conflicts = Vec::new();
        let mut conflict = |first: &'static str, second: &'static str, why: String| {
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
        let halves = [delivery::half(settings), delivery::half_plane(settings)];
        for delivery::Half { what, way_out, given, missing } in halves.into_iter().flatten() {
            let sourced = |keys: Vec<&'static str>| keys.into_iter().map(|key| (key, self.source_of(key))).collect();
            conflicts.push(SettingsError::Incomplete { what, way_out, given: sourced(given), missing: sourced(missing) });
        }
        conflicts
    }
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

impl Layer {
    fn failed(errors: Vec<SettingsError>) -> Self {
        Self { values: BTreeMap::new(), errors }
    }

    /// Checks one value and keeps it, or the reason why not.
    fn put(&mut self, name: &str, origin: Source, value: impl FnOnce(&Key) -> Value) {
        match Name::of(name) {
            Name::Known(key) => {
                let value = value(key);
                match (key.check)(&value) {
                    Ok(()) => {
                        self.values.insert(key.name, (value, origin));
                    }
                    Err(problem) => self.errors.push(SettingsError::BadValue {
                        origin,
                        key: key.name,
                        found: problem.found,
                        allowed: problem.allowed,
                    }),
                }
            }
            Name::Unsupported(advice) => self.errors.push(SettingsError::Unsupported { origin, key: name.to_owned(), advice }),
            Name::Unknown(nearest) => self.errors.push(SettingsError::UnknownKey {
                origin,
                key: name.chars().filter(|c| !c.is_control()).take(80).collect(),
                nearest,
            }),
        }
    }

    fn put_variable(&mut self, name: &OsStr, value: &OsStr) {
        let name = name.to_string_lossy();
        let variable = name.clone().into_owned();
        match Variable::of(&name) {
            Variable::Foreign => {}
            Variable::Prefixed(key) => self.errors.push(SettingsError::Prefixed { variable, key: key.to_owned() }),
            Variable::Setting(key) => match value.to_str() {
                Some(text) => self.put(key, Source::Environment { variable }, |key| (key.convert)(text)),
                None => self.errors.push(SettingsError::NotText { variable }),
            },
        }
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
