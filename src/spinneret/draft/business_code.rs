//! A status code of a site's own, as it stands in a body.

use std::fmt;

use serde_json::Value;

use crate::spinneret::error::Error;

/// A text or a number, as text: whole numbers and fractions in decimal digits, a fraction of nothing left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct BusinessCode(String);

impl BusinessCode {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl From<&str> for BusinessCode {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for BusinessCode {
    fn from(text: String) -> Self {
        Self(text)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for BusinessCode {
            fn from(number: $number) -> Self {
                Self(number.to_string())
            }
        })*
    };
}

numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);

/// A member of a body that was read as JSON.
impl TryFrom<&Value> for BusinessCode {
    type Error = Error;

    /// # Errors
    /// [`Error::InvalidArgument`] when it is neither a text nor a number.
    fn try_from(value: &Value) -> Result<Self, Error> {
        let kind = match value {
            Value::String(text) => return Ok(Self::from(text.as_str())),
            Value::Number(number) => {
                return Ok(match number.as_f64().filter(|_| number.is_f64()) {
                    Some(fraction) => Self::from(fraction),
                    None => Self(number.to_string()),
                });
            }
            Value::Null => "null",
            Value::Bool(_) => "a truth value",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Err(Error::invalid(format!("business_code is {kind}; a text or a number is allowed")))
    }
}

impl fmt::Display for BusinessCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    #[test]
    fn b077_numbers_become_decimal_texts_and_truth_values_are_refused() {
        assert_eq!(BusinessCode::from(0).as_str(), "0");
        assert_eq!(BusinessCode::from(10001_u64).as_str(), "10001");
        assert_eq!(BusinessCode::from(-7_i8).as_str(), "-7");
        assert_eq!(BusinessCode::from(1.5).as_str(), "1.5");
        assert_eq!(BusinessCode::from(2.0_f64).as_str(), "2");
        assert_eq!(BusinessCode::from(1e21).as_str(), "1000000000000000000000");
        assert_eq!(BusinessCode::from("E_LIMIT").as_str(), "E_LIMIT");

        for (value, code) in [
            (json!(0), "0"),
            (json!(10001), "10001"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(1.0), "1"),
            (json!(-1.25), "-1.25"),
            (json!("ok"), "ok"),
        ] {
            assert_eq!(BusinessCode::try_from(&value).unwrap().as_str(), code);
        }
        for value in [json!(true), json!(false), json!(null), json!([1]), json!({"a": 1})] {
            let error = BusinessCode::try_from(&value).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{value}: {error}");
        }
    }
}
