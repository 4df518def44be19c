//! What becomes of the values of a field: small steps, put one behind the other.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::super::json_path::{self, JsonPathError};
use super::super::selector::{SelectorError, compile_pattern};

/// A value that a processor does not take; without the value.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ProcessError(pub String);

type Step = dyn Fn(Value) -> Result<Value, ProcessError> + Send + Sync;

/// Changes the values of a field. It gets them as a JSON list and gives a list, or one value, or null for none.
///
/// ```
/// use dragline::api::Processor;
/// use dragline::prelude::json;
///
/// let price = Processor::strip().then(Processor::map_text(|text| text.replace(',', "."))).then(Processor::take_first());
/// assert_eq!(price.apply(json!([" ", " 12,50 "])).unwrap(), json!("12.50"));
///
/// let tags = Processor::split(",").then(Processor::strip());
/// assert_eq!(tags.apply(json!(["sea, wind", "tide"])).unwrap(), json!(["sea", "wind", "tide"]));
/// ```
#[derive(Clone)]
pub struct Processor(Arc<Step>);

impl Processor {
    /// Any function of the whole list.
    pub fn new(step: impl Fn(Value) -> Result<Value, ProcessError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(step))
    }

    /// The values as they are.
    #[must_use]
    pub fn identity() -> Self {
        Self::new(Ok)
    }

    /// The first value that is neither null nor an empty text.
    #[must_use]
    pub fn take_first() -> Self {
        let is_there = |value: &Value| !value.is_null() && value.as_str() != Some("");
        Self::new(move |values| Ok(listed(values).into_iter().find(is_there).unwrap_or_default()))
    }

    /// All values as one text, with this between them; null is left out.
    #[must_use]
    pub fn join(separator: impl Into<String>) -> Self {
        let separator = separator.into();
        Self::new(move |values| {
            let texts = listed(values).into_iter().filter(|value| !value.is_null()).map(|value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            });
            Ok(texts.collect::<Vec<_>>().join(&separator).into())
        })
    }

    /// Each value by itself: null leaves it out, a list puts all of its values there.
    pub fn each(step: impl Fn(Value) -> Value + Send + Sync + 'static) -> Self {
        Self::try_each(move |value| Ok(step(value)))
    }

    /// Each value by itself, with errors.
    pub fn try_each(step: impl Fn(Value) -> Result<Value, ProcessError> + Send + Sync + 'static) -> Self {
        Self::new(move |values| {
            let mut made = Vec::new();
            for value in listed(values) {
                match step(value)? {
                    Value::Null => {}
                    Value::Array(several) => made.extend(several),
                    one => made.push(one),
                }
            }
            Ok(Value::Array(made))
        })
    }

    /// Each text by itself; other values stay.
    pub fn map_text(step: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::each(move |value| match value {
            Value::String(text) => step(&text).into(),
            other => other,
        })
    }

    /// Each text without white space around it; texts without anything else are left out.
    #[must_use]
    pub fn strip() -> Self {
        Self::texts(|text| Some(text.trim().to_owned()).filter(|text| !text.is_empty()).into())
    }

    /// Each text with one blank for every run of white space, and none around it; empty ones are left out.
    #[must_use]
    pub fn words() -> Self {
        Self::texts(|text| Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty()).into())
    }

    /// The parts of each text between these separators.
    #[must_use]
    pub fn split(separator: impl Into<String>) -> Self {
        let separator = separator.into();
        Self::texts(move |text| text.split(&separator).collect())
    }

    /// What a regular expression finds in each text: its groups, or the whole match without any.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn re(pattern: &str) -> Result<Self, SelectorError> {
        let regex = compile_pattern(pattern)?;
        Ok(Self::texts(move |text| {
            let found = regex.captures_iter(text).flat_map(|groups| {
                let from = usize::from(groups.len() > 1);
                groups.iter().skip(from).map(|group| group.map_or("", |group| group.as_str()).to_owned()).collect::<Vec<_>>()
            });
            found.collect()
        }))
    }

    /// What a JSONPath finds in each value.
    ///
    /// # Errors
    /// When the path is none.
    pub fn json_path(path: &str) -> Result<Self, JsonPathError> {
        json_path::select(&Value::Null, path)?;
        let path = path.to_owned();
        Ok(Self::try_each(move |value| {
            let found = json_path::select(&value, &path).map_err(|error| ProcessError(error.to_string()))?;
            Ok(found.into_iter().cloned().collect())
        }))
    }

    /// This value where there is none.
    #[must_use]
    pub fn or(default: impl Into<Value>) -> Self {
        let default = default.into();
        Self::new(move |value| {
            let is_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            Ok(if is_nothing { default.clone() } else { value })
        })
    }

    /// Another one behind this.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self::new(move |value| next.apply(self.apply(value)?))
    }

    /// What it makes of a list.
    ///
    /// # Errors
    /// When it does not take a value.
    pub fn apply(&self, values: Value) -> Result<Value, ProcessError> {
        (self.0)(values)
    }

    fn texts(step: impl Fn(&str) -> Value + Send + Sync + 'static) -> Self {
        Self::each(move |value| match value {
            Value::String(text) => step(&text),
            other => other,
        })
    }
}

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Processor")
    }
}

/// A value as a list: null is an empty one.
pub(super) fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values,
        one => vec![one],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_becomes_what_each_processor_says() {
        let upper = || Processor::map_text(str::to_uppercase);
        for (name, processor, from, to) in [
            ("identity", Processor::identity(), json!(["a", null]), json!(["a", null])),
            ("take_first", Processor::take_first(), json!(["", null, 0, "a"]), json!(0)),
            ("take_first of none", Processor::take_first(), json!(["", null]), json!(null)),
            ("take_first of one", Processor::take_first(), json!("a"), json!("a")),
            ("join", Processor::join(" - "), json!(["a", null, 1.5, true]), json!("a - 1.5 - true")),
            ("join of none", Processor::join(","), json!([]), json!("")),
            ("strip", Processor::strip(), json!([" a ", "\n", 1, "\u{a0}b"]), json!(["a", 1, "b"])),
            ("words", Processor::words(), json!([" a \n b "]), json!(["a b"])),
            ("split", Processor::split("/"), json!(["a/b", "c"]), json!(["a", "b", "c"])),
            ("re", Processor::re(r"\d+").unwrap(), json!(["a 1 2", "x", 3]), json!(["1", "2", 3])),
            ("re with groups", Processor::re(r"(\w)=(\d)?").unwrap(), json!(["a=1 b="]), json!(["a", "1", "b", ""])),
            ("json_path", Processor::json_path("$.n").unwrap(), json!([{"n": 1}, {"m": 2}, {"n": [3]}]), json!([1, [3]])),
            ("or", Processor::or("none"), json!([]), json!("none")),
            ("or of some", Processor::or("none"), json!(["a"]), json!(["a"])),
            ("each drops null", Processor::each(|v| if v == json!(1) { Value::Null } else { v }), json!([1, 2]), json!([2])),
            ("each puts lists in", Processor::each(|v| json!([v, v])), json!([1]), json!([1, 1])),
            ("then", upper().then(Processor::join("")), json!(["a", "b"]), json!("AB")),
        ] {
            assert_eq!(processor.apply(from).unwrap(), to, "{name}");
        }
    }

    #[test]
    fn an_error_stops_what_follows() {
        let numbers = Processor::try_each(|value| {
            value
                .as_str()
                .and_then(|text| text.parse::<i64>().ok())
                .map(Value::from)
                .ok_or_else(|| ProcessError("no number".into()))
        });
        let chain = numbers.then(Processor::take_first());
        assert_eq!(chain.apply(json!(["1", "2"])).unwrap(), json!(1));
        assert_eq!(chain.apply(json!(["1", "b"])).unwrap_err().to_string(), "no number");
        assert!(Processor::re("(").is_err() && Processor::json_path("n").is_err());
    }
}
