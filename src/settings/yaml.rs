//! The YAML form of a settings file.
//!
//! The loader recurses and copies what an alias names, so a first pass over the events bounds both
//! before it runs, and notes the lines of the settings on the way.

use serde_json::{Map, Number, Value};
use yaml_rust2::parser::Parser;
use yaml_rust2::{Event, ScanError, Yaml, YamlLoader};

use super::file::{Entry, Fault};

/// Deepest nesting of lists and tables; settings need four levels.
const MAX_DEPTH: usize = 64;

/// Most aliases in one file: each may double the file in memory.
const MAX_ALIASES: usize = 16;

/// Parses one document with a table at its top.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, Fault> {
    let mut lines = lines_of_settings(text)?.into_iter();
    let documents = YamlLoader::load_from_str(text).map_err(fault)?;
    let mut documents = documents.into_iter();
    let map = match (documents.next(), documents.next()) {
        (None | Some(Yaml::Null), None) => return Ok(Vec::new()),
        (Some(Yaml::Hash(map)), None) => map,
        (_, Some(_)) => return Err(Fault::not_a_table("several documents")),
        (Some(Yaml::Array(_)), None) => return Err(Fault::not_a_table("a list")),
        _ => return Err(Fault::not_a_table("a single value")),
    };
    map.into_iter().map(|(key, value)| Ok(Entry { key: key_text(key)?, value: json_value(value)?, line: lines.next() })).collect()
}

/// Parses one document of any kind; none at all is nothing.
pub(crate) fn document(text: &str) -> Result<Value, Fault> {
    lines_of_settings(text)?;
    let mut documents = YamlLoader::load_from_str(text).map_err(fault)?.into_iter();
    match (documents.next(), documents.next()) {
        (None, _) => Ok(Value::Null),
        (Some(document), None) => json_value(document),
        (Some(_), Some(_)) => Err(Fault { place: None, message: "found several documents; allowed: one".to_owned() }),
    }
}

/// The lines of the keys at the top, in order; checks depth and aliases of the whole text.
fn lines_of_settings(text: &str) -> Result<Vec<usize>, Fault> {
    let mut parser = Parser::new_from_str(text);
    let mut lines = Vec::new();
    let mut depth = 0_usize;
    let mut aliases = 0_usize;
    // At the top of the table keys and values take turns.
    let mut key_is_next = true;
    loop {
        let (event, mark) = parser.next_token().map_err(fault)?;
        let node_begins =
            matches!(event, Event::Scalar(..) | Event::Alias(_) | Event::SequenceStart(..) | Event::MappingStart(..));
        if node_begins && depth == 1 {
            if key_is_next {
                lines.push(mark.line());
            }
            key_is_next = !key_is_next;
        }
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
            Event::Alias(_) => aliases += 1,
            Event::StreamEnd => return Ok(lines),
            _ => {}
        }
        let too_much = if depth > MAX_DEPTH {
            format!("more than {MAX_DEPTH} levels of nesting")
        } else if aliases > MAX_ALIASES {
            format!("more than {MAX_ALIASES} aliases")
        } else {
            continue;
        };
        return Err(Fault {
            place: Some((mark.line(), mark.col() + 1)),
            message: format!("found {too_much}; write the values out in fewer levels"),
        });
    }
}

fn fault(error: ScanError) -> Fault {
    Fault { place: Some((error.marker().line(), error.marker().col() + 1)), message: error.info().to_owned() }
}

fn key_text(key: Yaml) -> Result<String, Fault> {
    match key {
        Yaml::String(text) | Yaml::Real(text) => Ok(text),
        Yaml::Integer(number) => Ok(number.to_string()),
        Yaml::Boolean(flag) => Ok(flag.to_string()),
        _ => Err(Fault { place: None, message: "found a key that is a list, a table or nothing; allowed: text".to_owned() }),
    }
}

fn json_value(value: Yaml) -> Result<Value, Fault> {
    Ok(match value {
        Yaml::Real(text) => text.parse().ok().and_then(Number::from_f64).map_or(Value::String(text), Value::Number),
        Yaml::Integer(number) => Value::from(number),
        Yaml::String(text) => Value::String(text),
        Yaml::Boolean(flag) => Value::Bool(flag),
        Yaml::Array(items) => Value::Array(items.into_iter().map(json_value).collect::<Result<_, _>>()?),
        Yaml::Hash(map) => {
            let mut fields = Map::new();
            for (key, value) in map {
                fields.insert(key_text(key)?, json_value(value)?);
            }
            Value::Object(fields)
        }
        Yaml::Null | Yaml::Alias(_) | Yaml::BadValue => Value::Null,
    })
}
