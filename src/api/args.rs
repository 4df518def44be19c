//! A spider's arguments: `-a NAME=VALUE`, read into the spider's own fields.
//!
//! The values are text; a field's type decides how its text is read. An argument without a field is an
//! error that names the fields there are.

use std::collections::BTreeMap;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Arguments by name, each as the text it was given as.
pub type Arguments = BTreeMap<String, String>;

/// An argument that does not fit the spider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The spider has no such field.
    #[error("spider argument {name:?} is unknown; this spider takes {takes}")]
    Unknown {
        /// The argument.
        name: String,
        /// The fields there are.
        takes: String,
    },
    /// The text does not fit the field, or a required one is missing.
    #[error("spider arguments: {0}")]
    Value(String),
}

/// Builds a spider from its arguments.
///
/// # Errors
/// When an argument is unknown, missing, or not of its field's type.
pub fn from_arguments<T: DeserializeOwned>(arguments: &Arguments) -> Result<T, ArgumentError> {
    T::deserialize(Top(arguments)).map_err(|e| e.0)
}

struct Top<'a>(&'a Arguments);

#[derive(Debug)]
struct Wrapped(ArgumentError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Wrapped {}

impl de::Error for Wrapped {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(ArgumentError::Value(message.to_string()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(ArgumentError::Value(format!("{field:?} is missing; give it with -a {field}=VALUE")))
    }
}

impl Top<'_> {
    fn check(&self, fields: &[&str]) -> Result<(), Wrapped> {
        for name in self.0.keys() {
            if !fields.contains(&name.as_str()) {
                let takes = if fields.is_empty() { "no arguments".to_owned() } else { fields.join(", ") };
                return Err(Wrapped(ArgumentError::Unknown { name: name.clone(), takes }));
            }
        }
        Ok(())
    }
}

impl<'de> de::Deserializer<'de> for Top<'_> {
    type Error = Wrapped;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
        visitor.visit_map(MapDeserializer::new(self.0.iter().map(|(k, v)| (k.as_str(), Text(k, v)))))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrapped> {
        self.check(fields)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrapped> {
        self.check(&[])?;
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrapped> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
        self.check(&[])?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// One argument's text, with its name for errors.
struct Text<'a>(&'a str, &'a str);

impl Text<'_> {
    fn wrong(&self, wanted: &str) -> Wrapped {
        Wrapped(ArgumentError::Value(format!("{} is {:?}, which is not {wanted}", self.0, self.1)))
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty, $wanted:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
            let value: $type = self.1.trim().parse().map_err(|_| self.wrong($wanted))?;
            visitor.$visit(value)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Text<'_> {
    type Error = Wrapped;

    parsed! {
        deserialize_i8 visit_i8 i8, "a whole number from -128 to 127";
        deserialize_i16 visit_i16 i16, "a whole number from -32768 to 32767";
        deserialize_i32 visit_i32 i32, "a whole number of 32 bits";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_u8 visit_u8 u8, "a whole number from 0 to 255";
        deserialize_u16 visit_u16 u16, "a whole number from 0 to 65535";
        deserialize_u32 visit_u32 u32, "a whole number of at least 0";
        deserialize_u64 visit_u64 u64, "a whole number of at least 0";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
        deserialize_char visit_char char, "one character";
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
        match self.1.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => visitor.visit_bool(true),
            "0" | "false" | "no" | "off" => visitor.visit_bool(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrapped> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
        let name = self.0;
        let parts = self.1.split(',').map(str::trim).filter(|p| !p.is_empty()).map(move |p| Text(name, p));
        visitor.visit_seq(SeqDeserializer::new(parts))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrapped> {
        if !variants.contains(&self.1) {
            return Err(self.wrong(&format!("one of {}", variants.join(", "))));
        }
        visitor.visit_enum(Variant(self.1))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrapped> {
        visitor.visit_str(self.1)
    }

    forward_to_deserialize_any! {
        i128 u128 str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Wrapped> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

struct Variant<'a>(&'a str);

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Wrapped;
    type Variant = Unit;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Unit), Wrapped> {
        seed.deserialize(StrDeserializer::<Wrapped>::new(self.0)).map(|value| (value, Unit))
    }
}

/// An argument can only name an enum's plain variants.
struct Unit;

impl<'de> de::VariantAccess<'de> for Unit {
    type Error = Wrapped;

    fn unit_variant(self) -> Result<(), Wrapped> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Wrapped> {
        Err(de::Error::custom("an argument cannot hold this variant's value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrapped> {
        Err(de::Error::custom("an argument cannot hold this variant's values"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Wrapped> {
        Err(de::Error::custom("an argument cannot hold this variant's fields"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Depth {
        Shallow,
        Deep,
    }

    fn depth() -> Depth {
        Depth::Deep
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Shop {
        url: String,
        #[serde(default)]
        pages: Option<u32>,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default = "depth")]
        depth: Depth,
        #[serde(default)]
        polite: bool,
        #[serde(skip)]
        seen: std::sync::Arc<()>,
    }

    #[derive(Debug, Deserialize)]
    struct Bare;

    fn read<T: DeserializeOwned>(pairs: &[(&str, &str)]) -> Result<T, String> {
        let arguments = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        from_arguments(&arguments).map_err(|e| e.to_string())
    }

    #[test]
    fn each_field_reads_its_text_by_its_type() {
        let shop: Shop =
            read(&[("url", "http://x"), ("pages", "3"), ("tags", "a, b"), ("depth", "shallow"), ("polite", "yes")]).unwrap();
        assert_eq!(shop.pages, Some(3));
        assert_eq!(shop.tags, ["a", "b"]);
        assert_eq!(shop.depth, Depth::Shallow);
        assert!(shop.polite);
    }

    #[test]
    fn a_wrong_argument_says_what_is_wrong() {
        for (pairs, parts) in [
            (&[("url", "x"), ("page", "3")][..], &["\"page\"", "url, pages, tags, depth, polite"][..]),
            (&[("pages", "3")], &["\"url\" is missing", "-a url=VALUE"]),
            (&[("url", "x"), ("pages", "many")], &["pages", "\"many\"", "whole number"]),
            (&[("url", "x"), ("depth", "wide")], &["depth", "\"wide\"", "shallow, deep"]),
        ] {
            let error = read::<Shop>(pairs).unwrap_err();
            assert!(parts.iter().all(|p| error.contains(p)), "{error}");
        }
    }

    #[test]
    fn a_spider_without_fields_takes_no_argument() {
        assert!(read::<Bare>(&[]).is_ok());
        assert!(read::<Bare>(&[("x", "1")]).unwrap_err().contains("takes no arguments"));
    }
}
