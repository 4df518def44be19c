//! The serde serialiser behind the wire's text form.
//!
//! It writes a value in one pass, counts the floats JSON cannot hold, bounds the nesting, and in item mode puts
//! the collection time into the outermost object. How strings and floats are spelled is decided in `text`.

mod scalar;

use std::fmt::Display;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::ser::{self, Serialize, Serializer};

use scalar::{KeyWriter, RawText};

use super::text::{MAX_DEPTH, TextError, write_float, write_single, write_string};

/// The struct name under which `serde_json` hands over a `RawValue`.
const RAW_VALUE: &str = "$serde_json::private::RawValue";
const STAMP_KEY: &str = "_ts";

#[derive(Debug, Clone, Copy)]
enum Stamp {
    Unwanted,
    Wanted(u64),
    Written,
}

pub(super) struct TextWriter {
    out: Vec<u8>,
    nonfinite: u32,
    depth: u32,
    stamp: Stamp,
}

impl TextWriter {
    pub(super) fn new() -> Self {
        Self { out: Vec::with_capacity(256), nonfinite: 0, depth: 0, stamp: Stamp::Unwanted }
    }

    /// A writer for an item: the outermost object gets `_ts`, in place when it has one, else at its end.
    pub(super) fn stamping(unix_seconds: u64) -> Self {
        Self { stamp: Stamp::Wanted(unix_seconds), ..Self::new() }
    }

    /// Whether the stamp asked for found its object.
    pub(super) fn is_stamped(&self) -> bool {
        matches!(self.stamp, Stamp::Written)
    }

    pub(super) fn finish(self) -> (String, u32) {
        // Only ASCII is ever pushed, so the lossy branch is never taken.
        let text = String::from_utf8(self.out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        (text, self.nonfinite)
    }

    fn display(&mut self, value: impl Display) {
        let _ = write!(self.out, "{value}");
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn open(&mut self, bracket: u8) -> Result<(), TextError> {
        if self.depth >= MAX_DEPTH {
            return Err(TextError::TooDeep);
        }
        self.depth += 1;
        self.out.push(bracket);
        Ok(())
    }

    fn close_array(&mut self) {
        self.depth -= 1;
        self.out.push(b']');
    }

    fn close_object(&mut self, empty: bool) {
        if let (1, Stamp::Wanted(at)) = (self.depth, self.stamp) {
            if !empty {
                self.put(b", ");
            }
            let _ = write!(self.out, "\"{STAMP_KEY}\": {at}");
            self.stamp = Stamp::Written;
        }
        self.depth -= 1;
        self.out.push(b'}');
    }

    fn open_variant(&mut self, variant: &str) -> Result<(), TextError> {
        self.open(b'{')?;
        write_string(&mut self.out, variant);
        self.put(b": ");
        Ok(())
    }
}

/// What an open container is, and with it how it closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Array,
    Object,
    VariantArray,
    VariantObject,
    Raw,
}

pub(super) struct Container<'a> {
    writer: &'a mut TextWriter,
    shape: Shape,
    empty: bool,
    /// The value that follows is the item's own `_ts` and is overwritten.
    overwrite: bool,
}

impl<'a> Container<'a> {
    fn new(writer: &'a mut TextWriter, shape: Shape) -> Result<Self, TextError> {
        match shape {
            Shape::Array | Shape::VariantArray => writer.open(b'[')?,
            Shape::Object | Shape::VariantObject => writer.open(b'{')?,
            Shape::Raw => {}
        }
        Ok(Self { writer, shape, empty: true, overwrite: false })
    }

    fn separate(&mut self) {
        if !self.empty {
            self.writer.put(b", ");
        }
        self.empty = false;
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextError> {
        self.separate();
        value.serialize(&mut *self.writer)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), TextError> {
        self.separate();
        let from = self.writer.out.len();
        key.serialize(KeyWriter(&mut *self.writer))?;
        self.overwrite = self.writer.depth == 1
            && matches!(self.writer.stamp, Stamp::Wanted(_))
            && self.writer.out.get(from..) == Some(br#""_ts""#);
        self.writer.put(b": ");
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextError> {
        self.write_value(|writer| value.serialize(writer))
    }

    fn write_value(&mut self, write: impl FnOnce(&mut TextWriter) -> Result<(), TextError>) -> Result<(), TextError> {
        if let (true, Stamp::Wanted(at)) = (self.overwrite, self.writer.stamp) {
            self.writer.display(at);
            self.writer.stamp = Stamp::Written;
            return Ok(());
        }
        write(&mut *self.writer)
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), TextError> {
        if self.shape == Shape::Raw {
            return value.serialize(RawText(&mut *self.writer));
        }
        self.key(key)?;
        self.value(value).map_err(|error| error.in_field(key))
    }

    fn close(self) {
        match self.shape {
            Shape::Array => self.writer.close_array(),
            Shape::Object => self.writer.close_object(self.empty),
            Shape::VariantArray => {
                self.writer.close_array();
                self.writer.close_object(false);
            }
            Shape::VariantObject => {
                self.writer.close_object(self.empty);
                self.writer.close_object(false);
            }
            Shape::Raw => {}
        }
    }
}

macro_rules! written_as_display {
    ($($name:ident: $kind:ty),*) => {$(
        fn $name(self, value: $kind) -> Result<(), TextError> {
            self.display(value);
            Ok(())
        }
    )*};
}

impl<'a> Serializer for &'a mut TextWriter {
    type Ok = ();
    type Error = TextError;
    type SerializeSeq = Container<'a>;
    type SerializeTuple = Container<'a>;
    type SerializeTupleStruct = Container<'a>;
    type SerializeTupleVariant = Container<'a>;
    type SerializeMap = Container<'a>;
    type SerializeStruct = Container<'a>;
    type SerializeStructVariant = Container<'a>;

    written_as_display!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128
    );

    fn serialize_f32(self, value: f32) -> Result<(), TextError> {
        if value.is_finite() {
            write_single(&mut self.out, value);
            return Ok(());
        }
        self.nonfinite = self.nonfinite.saturating_add(1);
        self.serialize_unit()
    }

    fn serialize_f64(self, value: f64) -> Result<(), TextError> {
        if value.is_finite() {
            write_float(&mut self.out, value);
            return Ok(());
        }
        self.nonfinite = self.nonfinite.saturating_add(1);
        self.serialize_unit()
    }

    fn serialize_char(self, value: char) -> Result<(), TextError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), TextError> {
        write_string(&mut self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), TextError> {
        self.serialize_str(&BASE64.encode(value))
    }

    fn serialize_none(self) -> Result<(), TextError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), TextError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), TextError> {
        self.put(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), TextError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), TextError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), TextError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), TextError> {
        self.open_variant(variant)?;
        value.serialize(&mut *self)?;
        self.close_object(false);
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Container<'a>, TextError> {
        Container::new(self, Shape::Array)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Container<'a>, TextError> {
        Container::new(self, Shape::Array)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Container<'a>, TextError> {
        Container::new(self, Shape::Array)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'a>, TextError> {
        self.open_variant(variant)?;
        Container::new(self, Shape::VariantArray)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Container<'a>, TextError> {
        Container::new(self, Shape::Object)
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Container<'a>, TextError> {
        let raw = name == RAW_VALUE;
        Container::new(self, if raw { Shape::Raw } else { Shape::Object })
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'a>, TextError> {
        self.open_variant(variant)?;
        Container::new(self, Shape::VariantObject)
    }
}

macro_rules! container {
    ($($name:ident $element:ident),*) => {$(
        impl ser::$name for Container<'_> {
            type Ok = ();
            type Error = TextError;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextError> {
                self.element(value)
            }

            fn end(self) -> Result<(), TextError> {
                self.close();
                Ok(())
            }
        }
    )*};
}

container!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl ser::SerializeMap for Container<'_> {
    type Ok = ();
    type Error = TextError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), TextError> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextError> {
        self.value(value)
    }

    fn end(self) -> Result<(), TextError> {
        self.close();
        Ok(())
    }
}

macro_rules! with_fields {
    ($($name:ident),*) => {$(
        impl ser::$name for Container<'_> {
            type Ok = ();
            type Error = TextError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), TextError> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), TextError> {
                self.close();
                Ok(())
            }
        }
    )*};
}

with_fields!(SerializeStruct, SerializeStructVariant);

impl ser::Error for TextError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Value(message.to_string())
    }
}
