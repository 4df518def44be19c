//! The job's id: a number or a text, kept as it was given.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::value::Value;

/// The id of a job on the wire. A number given in a settings file stays a number; anything from the command line
/// or the environment is text. The backend's answer may depend on it, so the two are never mixed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JobId {
    /// `"job_id": 123`
    Number(i64),
    /// `"job_id": "123"`
    Text(String),
}

impl JobId {
    /// The id as JSON text: `123` or `"123"`.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Number(id) => id.to_string(),
            Self::Text(id) => {
                let mut out = Vec::with_capacity(id.len() + 2);
                super::text::write_string(&mut out, id);
                String::from_utf8(out).unwrap_or_default()
            }
        }
    }

    /// The id that a body carries: a whole number of 64 bits or a text. `None` for everything else.
    #[must_use]
    pub fn from_wire(value: &Value) -> Option<Self> {
        match value {
            Value::Int(_) => value.as_i64().map(Self::Number),
            Value::Text(id) => Some(Self::Text(id.as_str().to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(id) => id.fmt(f),
            Self::Text(id) => id.fmt(f),
        }
    }
}

impl From<i64> for JobId {
    fn from(id: i64) -> Self {
        Self::Number(id)
    }
}

impl From<String> for JobId {
    fn from(id: String) -> Self {
        Self::Text(id)
    }
}

impl From<&str> for JobId {
    fn from(id: &str) -> Self {
        Self::Text(id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn a_number_stays_a_number_and_a_text_a_text() {
        assert_eq!(JobId::from(123).to_json(), "123");
        assert_eq!(JobId::from("123").to_json(), "\"123\"");
        assert_eq!(JobId::from("ж").to_json(), "\"\\u0436\"");
        assert_eq!(JobId::from("0x7-b").to_string(), "0x7-b");
    }

    #[test]
    fn the_id_of_a_body_is_a_whole_number_or_a_text() {
        let read = |text: &str| JobId::from_wire(&Value::parse(text.as_bytes()).unwrap());
        for id in [JobId::from(-7), JobId::from(i64::MAX), JobId::from("123"), JobId::from("abc-1 ж")] {
            assert_eq!(read(&id.to_json()), Some(id));
        }
        for other in ["1.0", "null", "true", "[1]", "{}", "9223372036854775808"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
