//! YAML as JSON values: one document, no aliases, no key twice, bounded in depth.

use serde_json::{Map, Number, Value};
use yaml_rust2::parser::Parser;
use yaml_rust2::scanner::{Marker, TScalarStyle};
use yaml_rust2::{Event, Yaml};

use super::TypeError;

/// Deepest nesting of lists and tables.
const MAX_DEPTH: usize = 64;

/// Longest text, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Value, TypeError> {
    if text.len() > MAX_BYTES {
        return Err(wrong(1, format!("the text has {} bytes; allowed: at most {MAX_BYTES}", text.len())));
    }
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    loop {
        let (event, mark) =
            parser.next_token().map_err(|error| wrong(error.marker().line(), format!("not valid YAML: {}", error.info())))?;
        if event == Event::StreamEnd {
            return builder.root.ok_or_else(|| wrong(1, "the text is empty"));
        }
        builder.take(event, mark)?;
    }
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Value>,
}

enum Open {
    List(Vec<Value>),
    Table(Map<String, Value>, Option<String>),
}

impl Builder {
    fn take(&mut self, event: Event, mark: Marker) -> Result<(), TypeError> {
        let line = mark.line();
        match event {
            Event::Scalar(text, style, ..) => self.put(scalar(text, style), line)?,
            Event::SequenceStart(..) => self.open.push(Open::List(Vec::new())),
            Event::MappingStart(..) => self.open.push(Open::Table(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.put(Value::Array(items), line)?,
                Some(Open::Table(map, _)) => self.put(Value::Object(map), line)?,
                None => {}
            },
            Event::Alias(_) => return Err(wrong(line, "found an alias; write the value out")),
            _ => {}
        }
        if self.open.len() > MAX_DEPTH {
            return Err(wrong(line, format!("found more than {MAX_DEPTH} levels of nesting")));
        }
        Ok(())
    }

    fn put(&mut self, value: Value, line: usize) -> Result<(), TypeError> {
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Table(map, key @ None)) => {
                let text = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(truth) => truth.to_string(),
                    _ => return Err(wrong(line, "found a key that is no text")),
                };
                if map.contains_key(&text) {
                    return Err(wrong(line, format!("key \"{text}\" is there twice; take one out")));
                }
                *key = Some(text);
            }
            Some(Open::Table(map, key @ Some(_))) => {
                map.extend(key.take().map(|key| (key, value)));
            }
            None if self.root.is_none() => self.root = Some(value),
            None => return Err(wrong(line, "found a second document; write each type into its own file")),
        }
        Ok(())
    }
}

fn scalar(text: String, style: TScalarStyle) -> Value {
    if style != TScalarStyle::Plain {
        return Value::String(text);
    }
    match Yaml::from_str(&text) {
        Yaml::Integer(number) => Value::from(number),
        Yaml::Boolean(truth) => Value::Bool(truth),
        Yaml::Null => Value::Null,
        Yaml::Real(real) => real.parse().ok().and_then(Number::from_f64).map_or(Value::String(text), Value::Number),
        _ => Value::String(text),
    }
}

fn wrong(line: usize, problem: impl Into<String>) -> TypeError {
    TypeError::Yaml { line, problem: problem.into() }
}
