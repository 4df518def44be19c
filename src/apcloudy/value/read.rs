//! The reader of values: JSON as Python's default reader takes it, in one pass over bytes that anyone may have sent.

use std::collections::HashMap;

use super::{Text, Value};

/// The deepest nesting of lists and objects that is read.
pub const READ_DEPTH: u32 = 128;

/// Objects of more fields than this look their keys up by hash.
const FEW_FIELDS: usize = 16;

/// Why a text is not a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {what}")]
pub struct ReadError {
    /// How many bytes before the place are fine.
    pub offset: usize,
    /// What is wrong there.
    pub what: &'static str,
}

pub(super) fn value(bytes: &[u8]) -> Result<Value, ReadError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ReadError { offset: error.valid_up_to(), what: "this is not UTF-8; send the JSON text in UTF-8" })?;
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.blank();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.wrong("there is more after the end of the value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Value, ReadError> {
        self.blank();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => {
                self.at += 1;
                Ok(Value::Text(self.string()?))
            }
            Some(b'-' | b'0'..=b'9') if !self.rest().starts_with("-I") => self.number(),
            Some(_) => self.word(),
            None => Err(self.ended()),
        }
    }

    fn word(&mut self) -> Result<Value, ReadError> {
        for (word, value) in [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("expected a value"))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, ReadError>) -> Result<Value, ReadError> {
        if self.depth >= READ_DEPTH {
            return Err(self.wrong("the value nests deeper than 128 levels"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self) -> Result<Value, ReadError> {
        let mut values = Vec::new();
        self.blank();
        if self.eat(b']') {
            return Ok(Value::List(values));
        }
        loop {
            values.push(self.value()?);
            self.blank();
            if self.eat(b']') {
                return Ok(Value::List(values));
            }
            if !self.eat(b',') {
                return Err(self.wrong("expected a comma or the end of the list"));
            }
        }
    }

    fn object(&mut self) -> Result<Value, ReadError> {
        let mut fields = Fields::default();
        self.blank();
        if self.eat(b'}') {
            return Ok(Value::Object(fields.pairs));
        }
        loop {
            self.blank();
            if !self.eat(b'"') {
                return Err(self.wrong("expected a key in double quotes"));
            }
            let key = self.string()?;
            self.blank();
            if !self.eat(b':') {
                return Err(self.wrong("expected a colon after the key"));
            }
            let value = self.value()?;
            fields.put(key, value);
            self.blank();
            if self.eat(b'}') {
                return Ok(Value::Object(fields.pairs));
            }
            if !self.eat(b',') {
                return Err(self.wrong("expected a comma or the end of the object"));
            }
        }
    }

    /// Reads on from the opening quote to behind the closing one.
    fn string(&mut self) -> Result<Text, ReadError> {
        let mut text = Text::default();
        loop {
            let rest = self.rest();
            let plain = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20).unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(_) => return Err(self.wrong("a control character in a text must be written as an escape")),
                None => return Err(self.ended()),
            }
        }
    }

    fn escape(&mut self, text: &mut Text) -> Result<(), ReadError> {
        let c = match self.rest().as_bytes().get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(text),
            Some(_) => return Err(self.wrong("this escape is unknown")),
            None => return Err(ReadError { offset: self.text.len(), what: ENDED }),
        };
        text.push(c);
        self.at += 2;
        Ok(())
    }

    fn unicode_escape(&mut self, text: &mut Text) -> Result<(), ReadError> {
        let unit = self.unit().ok_or_else(|| self.wrong("four hex digits must follow \\u"))?;
        self.at += 6;
        if let Some(c) = char::from_u32(u32::from(unit)) {
            text.push(c);
            return Ok(());
        }
        let pair = self.unit().and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
        match pair {
            Some(c) => {
                self.at += 6;
                text.push(c);
            }
            None => text.push_lone(unit),
        }
        Ok(())
    }

    /// The number of the `\uXXXX` that stands here.
    fn unit(&self) -> Option<u16> {
        let digits = self.rest().strip_prefix("\\u")?.get(..4)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) -> Result<Value, ReadError> {
        let from = self.at;
        self.eat(b'-');
        if !self.eat(b'0') && self.digits() == 0 {
            return Err(self.wrong("expected a digit"));
        }
        let mut is_float = false;
        if self.peek() == Some(b'.') {
            self.at += 1;
            is_float = true;
            if self.digits() == 0 {
                return Err(self.wrong("expected a digit after the point"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            is_float = true;
            if !self.eat(b'-') {
                self.eat(b'+');
            }
            if self.digits() == 0 {
                return Err(self.wrong("expected a digit in the exponent"));
            }
        }
        let written = self.text.get(from..self.at).unwrap_or_default();
        if is_float {
            // Numbers that are too large become infinite, as in Python.
            return written.parse().map(Value::Float).map_err(|_| ReadError { offset: from, what: "this is not a number" });
        }
        // Python has one zero among its integers.
        Ok(Value::Int(if written == "-0" { "0" } else { written }.to_owned()))
    }

    fn digits(&mut self) -> usize {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += digits;
        digits
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The end of the text is said to be the end, whatever was expected there.
    fn wrong(&self, what: &'static str) -> ReadError {
        if self.peek().is_none() { self.ended() } else { ReadError { offset: self.at, what } }
    }

    fn ended(&self) -> ReadError {
        ReadError { offset: self.text.len(), what: ENDED }
    }
}

const ENDED: &str = "the text ends before the value does";

/// The fields of an object: a key that comes again replaces the value and keeps the place.
#[derive(Default)]
struct Fields {
    pairs: Vec<(Text, Value)>,
    /// Where each key is, once there are many.
    places: HashMap<Text, usize>,
}

impl Fields {
    fn put(&mut self, key: Text, value: Value) {
        let place = match self.pairs.len() {
            0..=FEW_FIELDS => self.pairs.iter().position(|(known, _)| *known == key),
            _ => {
                if self.places.is_empty() {
                    self.places = self.pairs.iter().enumerate().map(|(at, (known, _))| (known.clone(), at)).collect();
                }
                self.places.get(&key).copied()
            }
        };
        if let Some((_, old)) = place.and_then(|at| self.pairs.get_mut(at)) {
            *old = value;
            return;
        }
        if !self.places.is_empty() {
            self.places.insert(key.clone(), self.pairs.len());
        }
        self.pairs.push((key, value));
    }
}
