//! Reading what others write: `null` is the default, numbers may be texts, messages are objects and nothing else.
//!
//! Strict where a guess would be wrong: a text is never made of a number, nor a cookie of anything but a text.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A message that was read from an object. The derived code alone would take an array for one as well.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: DeserializeOwned> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

/// Anything with a default that `null` stands for: a text, a flag, a list of texts, a map of texts.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A map of texts. A `null` in the place of a text is an error; in the place of the map it is the empty one.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    or_default(deserializer)
}

/// A message, or `null` for the default one.
pub(crate) fn message<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    optional_message(deserializer).map(Option::unwrap_or_default)
}

/// A message, or `null` for none.
pub(crate) fn optional_message<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::<Object<T>>::deserialize(deserializer).map(|object| object.map(|Object(message)| message))
}

/// A list of messages, or `null` for the empty one.
pub(crate) fn messages<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let objects = Option::<Vec<Object<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(objects.into_iter().map(|Object(message)| message).collect())
}

/// An integer: a number without a fraction, its decimal text, or `null` for 0. What does not fit the field is an error.
pub(crate) fn integer<'de, D: Deserializer<'de>, T: TryFrom<i64> + Default>(deserializer: D) -> Result<T, D::Error> {
    T::try_from(deserializer.deserialize_any(Integer)?).map_err(|_| D::Error::custom("an integer out of range"))
}

struct Integer;

impl Visitor<'_> for Integer {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, its decimal text or null")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::custom("an integer out of range"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i64, E> {
        /// Up to here every integer has a double of its own.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && number.abs() <= EXACT {
            #[allow(clippy::cast_possible_truncation, reason = "an integer of at most 53 bits")]
            return Ok(number as i64);
        }
        Err(E::custom("a number that is no integer"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
        text.parse().map_err(|_| E::custom("a text that is no integer"))
    }

    fn visit_unit<E: Error>(self) -> Result<i64, E> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn integers_are_read_from_numbers_texts_and_null() {
        let read = |value: Value| integer::<_, i64>(value).ok();
        for (value, number) in [
            (json!(7), 7),
            (json!(-7), -7),
            (json!("3"), 3),
            (json!("-3"), -3),
            (json!(null), 0),
            (json!(2.0), 2),
            (json!("9007199254740993"), 9_007_199_254_740_993),
            (json!(9_007_199_254_740_993_i64), 9_007_199_254_740_993),
            (json!(i64::MAX), i64::MAX),
            (json!(i64::MIN.to_string()), i64::MIN),
        ] {
            assert_eq!(read(value.clone()), Some(number), "{value}");
        }
        for value in [json!(2.5), json!(1e300), json!(u64::MAX), json!(""), json!("a"), json!(" 3"), json!("3.0"), json!(true)] {
            assert_eq!(read(value.clone()), None, "{value}");
        }
        for value in [json!([]), json!({}), json!("9223372036854775808")] {
            assert_eq!(read(value.clone()), None, "{value}");
        }
    }

    #[test]
    fn an_integer_that_does_not_fit_is_an_error() {
        assert_eq!(integer::<_, i32>(json!(2_147_483_647)).ok(), Some(i32::MAX));
        assert!(integer::<_, i32>(json!(2_147_483_648_i64)).is_err());
        assert!(integer::<_, i32>(json!("2147483648")).is_err());
    }

    #[test]
    fn a_map_of_texts_holds_texts_only() {
        assert_eq!(texts(json!(null)).unwrap(), BTreeMap::new());
        assert_eq!(texts(json!({"a": "b"})).unwrap(), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        for value in [json!({"a": 1}), json!({"a": null}), json!({"a": true}), json!([]), json!("a=b")] {
            assert!(texts(value.clone()).is_err(), "{value}");
        }
    }
}
