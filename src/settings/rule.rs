//! Rules for single values: how a value is read, what it may be, and how text becomes one.
//!
//! A rule never guesses: a string where a file should hold a number is an error. Only text from the
//! environment and the command line, which has no types of its own, is converted.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::redact::{redact_text, redact_value};

/// Why a value was refused: what was found and what would be taken. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) found: String,
    pub(crate) allowed: String,
}

/// The type and range of one setting.
pub(crate) trait Rule {
    /// What the setting is in the program.
    type Out;

    /// Reads a typed value, from a file, a spider or a default.
    fn read(&self, value: &Value) -> Result<Self::Out, Problem>;

    /// Types a text from the environment or the command line; a text that does not convert stays a
    /// string, so that [`Rule::read`] names it.
    fn convert(&self, text: &str) -> Value {
        Value::String(text.to_owned())
    }

    /// The type in one or two words.
    fn kind(&self) -> &'static str;

    /// The allowed values, as it continues "allowed: ".
    fn allowed(&self) -> String;

    /// The value as it may be shown to anybody.
    fn show(&self, value: &Value) -> Value {
        redact_value(value)
    }

    /// The problem for a value as a whole.
    fn refuse<T>(&self, value: &Value) -> Result<T, Problem> {
        Err(Problem { found: describe(value), allowed: self.allowed() })
    }
}

/// Names type and content of a value, short enough for one line and without credentials.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => format!("boolean {flag}"),
        Value::Number(number) => format!("number {number}"),
        Value::String(text) => {
            let shown: String = redact_text(text).chars().take(80).collect();
            format!("string {shown:?}")
        }
        Value::Array(items) => format!("a list of {} values", items.len()),
        Value::Object(map) => format!("a table of {} entries", map.len()),
    }
}

/// Names only the type, for values that may hold credentials in any place.
pub(crate) fn describe_type(value: &Value) -> String {
    match value {
        Value::String(_) => "text (not shown)".to_owned(),
        other => describe(other),
    }
}

/// True or false.
pub(crate) struct Flag;

impl Rule for Flag {
    type Out = bool;

    fn read(&self, value: &Value) -> Result<bool, Problem> {
        value.as_bool().map_or_else(|| self.refuse(value), Ok)
    }

    fn convert(&self, text: &str) -> Value {
        match text.trim() {
            "1" | "True" | "true" => Value::Bool(true),
            "0" | "False" | "false" => Value::Bool(false),
            _ => Value::String(text.to_owned()),
        }
    }

    fn kind(&self) -> &'static str {
        "boolean"
    }

    fn allowed(&self) -> String {
        "true or false (as text also True, False, 1, 0)".to_owned()
    }
}

/// A whole number of type `T` between two bounds, both included.
pub(crate) struct Whole<T> {
    min: i64,
    max: i64,
    of: PhantomData<T>,
}

impl<T> Whole<T> {
    pub(crate) const fn between(min: i64, max: i64) -> Self {
        Self { min, max, of: PhantomData }
    }
}

impl<T: TryFrom<i64>> Rule for Whole<T> {
    type Out = T;

    fn read(&self, value: &Value) -> Result<T, Problem> {
        value
            .as_i64()
            .filter(|number| (self.min..=self.max).contains(number))
            .and_then(|number| T::try_from(number).ok())
            .map_or_else(|| self.refuse(value), Ok)
    }

    fn convert(&self, text: &str) -> Value {
        number_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "integer"
    }

    fn allowed(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }
}

/// A number between two bounds, both included.
pub(crate) struct Real {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Rule for Real {
    type Out = f64;

    fn read(&self, value: &Value) -> Result<f64, Problem> {
        value.as_f64().filter(|number| (self.min..=self.max).contains(number)).map_or_else(|| self.refuse(value), Ok)
    }

    fn convert(&self, text: &str) -> Value {
        number_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "number"
    }

    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.min, self.max)
    }
}

/// A span of time, written as a number of seconds or, for keys that end in `_MS`, of milliseconds.
pub(crate) struct Span {
    unit: Duration,
    kind: &'static str,
    min: f64,
    max: f64,
}

impl Span {
    pub(crate) const fn seconds(min: f64, max: f64) -> Self {
        Self { unit: Duration::from_secs(1), kind: "seconds", min, max }
    }

    pub(crate) const fn millis(min: f64, max: f64) -> Self {
        Self { unit: Duration::from_millis(1), kind: "milliseconds", min, max }
    }
}

impl Rule for Span {
    type Out = Duration;

    fn read(&self, value: &Value) -> Result<Duration, Problem> {
        value
            .as_f64()
            .filter(|number| (self.min..=self.max).contains(number))
            .and_then(|number| Duration::try_from_secs_f64(number * self.unit.as_secs_f64()).ok())
            .map_or_else(|| self.refuse(value), Ok)
    }

    fn convert(&self, text: &str) -> Value {
        number_from_text(text)
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn allowed(&self) -> String {
        format!("a number of {} from {} to {}", self.kind, self.min, self.max)
    }
}

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const TIB: u64 = 1 << 40;

/// A size in bytes: a whole number, or text with a unit (`kB` to `TB`, `KiB` to `TiB`).
pub(crate) struct Bytes {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Rule for Bytes {
    type Out = u64;

    fn read(&self, value: &Value) -> Result<u64, Problem> {
        let bytes = match value {
            Value::String(text) => bytes_from_text(text),
            other => other.as_u64(),
        };
        bytes.filter(|bytes| (self.min..=self.max).contains(bytes)).map_or_else(|| self.refuse(value), Ok)
    }

    fn convert(&self, text: &str) -> Value {
        number_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "bytes"
    }

    fn allowed(&self) -> String {
        format!(
            "a size from {} to {}, as a whole number of bytes or text such as \"64MiB\" or \"1GB\"",
            size_text(self.min),
            size_text(self.max)
        )
    }
}

/// Any text.
pub(crate) struct Text;

impl Rule for Text {
    type Out = String;

    fn read(&self, value: &Value) -> Result<String, Problem> {
        match value {
            Value::String(text) if !text.is_empty() && !text.contains(char::is_control) => Ok(text.clone()),
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "text"
    }

    fn allowed(&self) -> String {
        "text that is not empty, on one line".to_owned()
    }
}

/// Text that may be left empty, which means not set.
pub(crate) struct OptionalText;

impl Rule for OptionalText {
    type Out = Option<String>;

    fn read(&self, value: &Value) -> Result<Option<String>, Problem> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if !text.contains(char::is_control) => Ok(Some(text.clone())),
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "text"
    }

    fn allowed(&self) -> String {
        "text on one line (empty: not set)".to_owned()
    }
}

/// A path that must be given.
pub(crate) struct Folder;

impl Rule for Folder {
    type Out = PathBuf;

    fn read(&self, value: &Value) -> Result<PathBuf, Problem> {
        match value {
            Value::String(text) if !text.is_empty() && !text.contains('\0') => Ok(text.into()),
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "path"
    }

    fn allowed(&self) -> String {
        "a path that is not empty".to_owned()
    }
}

/// A path that may be left empty, which means not set.
pub(crate) struct OptionalPath;

impl Rule for OptionalPath {
    type Out = Option<PathBuf>;

    fn read(&self, value: &Value) -> Result<Option<PathBuf>, Problem> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if !text.contains('\0') => Ok(Some(text.into())),
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "path"
    }

    fn allowed(&self) -> String {
        "a path (empty: not set)".to_owned()
    }
}

/// One of a few names; case counts.
pub(crate) struct Choice<T: 'static> {
    pub(crate) of: &'static [(&'static str, T)],
    /// What to add to the names in a message, for values that people will try; empty: nothing.
    pub(crate) note: &'static str,
}

impl<T: Clone> Rule for Choice<T> {
    type Out = T;

    fn read(&self, value: &Value) -> Result<T, Problem> {
        value
            .as_str()
            .and_then(|text| self.of.iter().find(|(name, _)| *name == text))
            .map_or_else(|| self.refuse(value), |(_, choice)| Ok(choice.clone()))
    }

    fn kind(&self) -> &'static str {
        "choice"
    }

    fn allowed(&self) -> String {
        let names: Vec<String> = self.of.iter().map(|(name, _)| format!("{name:?}")).collect();
        names.join(", ") + self.note
    }
}

/// A number if the text is one, in decimal; the text itself otherwise.
fn number_from_text(text: &str) -> Value {
    let trimmed = text.trim();
    if let Ok(whole) = trimmed.parse::<i64>() {
        return Value::from(whole);
    }
    match trimmed.parse::<f64>() {
        Ok(real) if real.is_finite() => Value::from(real),
        _ => Value::String(text.to_owned()),
    }
}

/// Reads `64MiB`, `1.5 GB` or `100`; `None` for anything else or beyond 64 bits.
fn bytes_from_text(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => KIB,
        "mib" => MIB,
        "gib" => GIB,
        "tib" => TIB,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let bytes = number.parse::<f64>().ok()? * unit as f64;
    // Beyond 2^53 a float no longer counts single bytes; no allowed size is near it.
    (bytes.is_finite() && (0.0..9.0e15).contains(&bytes)).then_some(bytes as u64)
}

/// A size in the largest binary unit that divides it.
fn size_text(bytes: u64) -> String {
    for (unit, name) in [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes > 0 && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    match bytes {
        1 => "1 byte".to_owned(),
        _ => format!("{bytes} bytes"),
    }
}
