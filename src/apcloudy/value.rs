//! Values as the Python client writes them, read and written again without a change.
//!
//! What Python's JSON reader takes and its writer gives goes beyond JSON: `NaN` and the infinities, integers of any
//! size, lone surrogates in texts. [`Value::write`] gives them back as they came, [`Value::write_strict`] gives JSON
//! that every reader takes. The records of this crawler never pass through here: they are written by
//! [`to_text`](super::to_text).

mod read;
#[cfg(test)]
mod tests;

use std::fmt;

use super::text::{write_escaped, write_float, write_string};

pub use read::{READ_DEPTH, ReadError};

/// A value of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number of any size: its decimal digits, after `-` when negative.
    Int(String),
    /// A number with a fraction or an exponent, or one of `NaN`, `Infinity`, `-Infinity`.
    Float(f64),
    /// A text.
    Text(Text),
    /// A list.
    List(Vec<Value>),
    /// An object: its fields in their order, each key once.
    Object(Vec<(Text, Value)>),
}

/// A text of Unicode characters and of surrogates without their other half.
///
/// Holds the text with U+FFFD for each of those, and beside it where they are and what they were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Text {
    lossy: String,
    /// Byte offsets of replaced surrogates in `lossy`, rising.
    lone: Vec<(usize, u16)>,
}

/// What numbers and surrogates that JSON cannot hold become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// What they are for Python.
    Python,
    /// `null` and U+FFFD.
    Strict,
}

impl Value {
    /// Reads one value, with white space around it allowed. Of equal keys of an object the first keeps its place and
    /// the last its value, as in Python.
    ///
    /// # Errors
    /// [`ReadError`] for what is not JSON but for `NaN`, `Infinity` and `-Infinity`; for bytes that are not UTF-8; for
    /// a value that nests deeper than [`READ_DEPTH`].
    pub fn parse(text: &[u8]) -> Result<Self, ReadError> {
        read::value(text)
    }

    /// The value in the text form of Python's default writer: pure ASCII, `NaN` and lone surrogates included.
    #[must_use]
    pub fn write(&self) -> String {
        self.written(Form::Python)
    }

    /// The value as JSON that every reader takes: as [`write`](Self::write), but NaN and the infinities are `null`
    /// and lone surrogates are U+FFFD.
    #[must_use]
    pub fn write_strict(&self) -> String {
        self.written(Form::Strict)
    }

    /// What kind of value it is, for messages: `a list`, `null`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// The field of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The fields of an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(Text, Self)]> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The values of a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }

    /// The text, with U+FFFD for lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The integer, when 64 bits hold it.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// The number, of either kind; an integer may lose digits.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(digits) => digits.parse().ok(),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn written(&self, form: Form) -> String {
        let mut out = Vec::with_capacity(256);
        self.put(&mut out, form);
        // Only ASCII is ever pushed, so the lossy branch is never taken.
        String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }

    fn put(&self, out: &mut Vec<u8>, form: Form) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Int(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::Float(number) => put_float(out, *number, form),
            Self::Text(text) => text.put(out, form),
            Self::List(values) => {
                out.push(b'[');
                for (at, value) in values.iter().enumerate() {
                    separate(out, at);
                    value.put(out, form);
                }
                out.push(b']');
            }
            Self::Object(fields) => {
                out.push(b'{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    separate(out, at);
                    key.put(out, form);
                    out.extend_from_slice(b": ");
                    value.put(out, form);
                }
                out.push(b'}');
            }
        }
    }
}

impl Text {
    /// The text, with U+FFFD for lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.lossy
    }

    /// Whether there are surrogates without their other half.
    #[must_use]
    pub const fn has_lone_surrogates(&self) -> bool {
        !self.lone.is_empty()
    }

    fn push_str(&mut self, text: &str) {
        self.lossy.push_str(text);
    }

    fn push(&mut self, c: char) {
        self.lossy.push(c);
    }

    fn push_lone(&mut self, surrogate: u16) {
        self.lone.push((self.lossy.len(), surrogate));
        self.lossy.push(char::REPLACEMENT_CHARACTER);
    }

    fn put(&self, out: &mut Vec<u8>, form: Form) {
        if form == Form::Strict || self.lone.is_empty() {
            return write_string(out, &self.lossy);
        }
        out.push(b'"');
        let mut from = 0;
        for (at, surrogate) in &self.lone {
            write_escaped(out, self.lossy.get(from..*at).unwrap_or_default());
            out.extend_from_slice(format!("\\u{surrogate:04x}").as_bytes());
            from = at + char::REPLACEMENT_CHARACTER.len_utf8();
        }
        write_escaped(out, self.lossy.get(from..).unwrap_or_default());
        out.push(b'"');
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self { lossy: text.to_owned(), lone: Vec::new() }
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.lone.is_empty() && self.lossy == other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lossy)
    }
}

fn separate(out: &mut Vec<u8>, at: usize) {
    if at > 0 {
        out.extend_from_slice(b", ");
    }
}

fn put_float(out: &mut Vec<u8>, number: f64, form: Form) {
    let word: &[u8] = match form {
        _ if number.is_finite() => return write_float(out, number),
        Form::Strict => b"null",
        Form::Python if number.is_nan() => b"NaN",
        Form::Python if number > 0.0 => b"Infinity",
        Form::Python => b"-Infinity",
    };
    out.extend_from_slice(word);
}
