//! Serialisers for the two places that take nothing but scalars: object keys and ready JSON text.

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::{Container, Shape, TextWriter};
use crate::apcloudy::text::TextError;
use crate::apcloudy::value::Value;

/// Writes one object key; scalars become text, everything else is refused.
pub(super) struct KeyWriter<'a>(pub(super) &'a mut TextWriter);

impl KeyWriter<'_> {
    fn quoted(self, write: impl FnOnce(&mut TextWriter) -> Result<(), TextError>) -> Result<(), TextError> {
        self.0.out.push(b'"');
        write(&mut *self.0)?;
        self.0.out.push(b'"');
        Ok(())
    }
}

macro_rules! quoted_key {
    ($($name:ident: $kind:ty),*) => {$(
        fn $name(self, value: $kind) -> Result<(), TextError> {
            self.quoted(|writer| writer.$name(value))
        }
    )*};
}

/// The methods of a serialiser that takes nothing but scalars.
macro_rules! only_scalars {
    ($refuse:expr) => {
        type Ok = ();
        type Error = TextError;
        type SerializeSeq = Impossible<(), TextError>;
        type SerializeTuple = Impossible<(), TextError>;
        type SerializeTupleStruct = Impossible<(), TextError>;
        type SerializeTupleVariant = Impossible<(), TextError>;
        type SerializeMap = Impossible<(), TextError>;
        type SerializeStruct = Impossible<(), TextError>;
        type SerializeStructVariant = Impossible<(), TextError>;

        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, TextError> {
            Err($refuse("a list"))
        }
        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, TextError> {
            Err($refuse("a tuple"))
        }
        fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, TextError> {
            Err($refuse("a tuple"))
        }
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, TextError> {
            Err($refuse("an enum with values"))
        }
        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, TextError> {
            Err($refuse("a map"))
        }
        fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, TextError> {
            Err($refuse("a struct"))
        }
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, TextError> {
            Err($refuse("an enum with values"))
        }
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<(), TextError> {
            Err($refuse("an enum with values"))
        }
        fn serialize_bytes(self, _: &[u8]) -> Result<(), TextError> {
            Err($refuse("bytes"))
        }
        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), TextError> {
            value.serialize(self)
        }
        fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), TextError> {
            value.serialize(self)
        }
        fn serialize_none(self) -> Result<(), TextError> {
            self.serialize_unit()
        }
        fn serialize_unit_struct(self, _: &'static str) -> Result<(), TextError> {
            self.serialize_unit()
        }
        fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), TextError> {
            self.serialize_str(variant)
        }
        fn serialize_char(self, value: char) -> Result<(), TextError> {
            self.serialize_str(value.encode_utf8(&mut [0; 4]))
        }
    };
}

impl Serializer for KeyWriter<'_> {
    only_scalars!(|found| TextError::Key { found });

    quoted_key!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_f32: f32, serialize_f64: f64
    );

    fn serialize_unit(self) -> Result<(), TextError> {
        self.quoted(|writer| writer.serialize_unit())
    }

    fn serialize_str(self, value: &str) -> Result<(), TextError> {
        self.0.serialize_str(value)
    }
}

/// Takes JSON that is already text and writes it again in the wire's form.
pub(super) struct RawText<'a>(pub(super) &'a mut TextWriter);

macro_rules! not_raw {
    ($($name:ident: $kind:ty),*) => {$(
        fn $name(self, _: $kind) -> Result<(), TextError> {
            Err(raw_without_text("a number"))
        }
    )*};
}

impl Serializer for RawText<'_> {
    only_scalars!(raw_without_text);

    not_raw!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64
    );

    fn serialize_unit(self) -> Result<(), TextError> {
        Err(raw_without_text("null"))
    }

    fn serialize_str(self, value: &str) -> Result<(), TextError> {
        let parsed = Value::parse(value.as_bytes()).map_err(ser::Error::custom)?;
        write_parsed(self.0, &parsed)
    }
}

/// Writes a value that was read: integers with all their digits, the rest as everything else is written.
fn write_parsed(writer: &mut TextWriter, value: &Value) -> Result<(), TextError> {
    match value {
        Value::Null => writer.serialize_unit(),
        Value::Bool(value) => writer.serialize_bool(*value),
        Value::Int(digits) => {
            writer.put(digits.as_bytes());
            Ok(())
        }
        Value::Float(number) => writer.serialize_f64(*number),
        Value::Text(text) => writer.serialize_str(text.as_str()),
        Value::List(values) => {
            let mut list = Container::new(writer, Shape::Array)?;
            for value in values {
                list.separate();
                write_parsed(&mut *list.writer, value)?;
            }
            list.close();
            Ok(())
        }
        Value::Object(fields) => {
            let mut object = Container::new(writer, Shape::Object)?;
            for (key, value) in fields {
                object.key(key.as_str())?;
                object.write_value(|writer| write_parsed(writer, value))?;
            }
            object.close();
            Ok(())
        }
    }
}

fn raw_without_text(found: &'static str) -> TextError {
    TextError::Value(format!("raw JSON must be text, found {found}"))
}
