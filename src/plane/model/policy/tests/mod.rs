//! Tests of the policies as a whole: the built-in ones, every field, every limit, any document.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod any;
mod built_in;
mod fields;
mod limits;

use serde_json::{Value, json};

use super::{ActionPolicy, BreakerPolicy, Kind, Policy, PolicyError, RotationPolicy, SignalPolicy};

/// Reads a document of this kind, only to see whether it can be.
fn check(kind: Kind, document: &Value) -> Result<(), PolicyError> {
    match kind {
        Kind::Rotation => RotationPolicy::read(document).map(|_| ()),
        Kind::Signal => SignalPolicy::read(document).map(|_| ()),
        Kind::Action => ActionPolicy::read(document).map(|_| ()),
        Kind::Breaker => BreakerPolicy::read(document).map(|_| ()),
    }
}

/// The document that has the value at this path (`rotation.quota[0].limit`), and nothing else but a name.
fn with(path: &str, value: Value) -> Value {
    let mut document = json!({"name": "p"});
    put(&mut document, path, value);
    document
}

/// Puts the value at the path, making the tables and lists on the way.
fn put(document: &mut Value, path: &str, value: Value) {
    let mut place = document;
    for key in path.split('.') {
        let (key, index) = match key.strip_suffix(']').and_then(|key| key.split_once('[')) {
            Some((key, index)) => (key, Some(index.parse::<usize>().unwrap())),
            None => (key, None),
        };
        if place.is_null() {
            *place = json!({});
        }
        place = &mut place[key];
        if let Some(index) = index {
            if place.is_null() {
                *place = json!([]);
            }
            let list = place.as_array_mut().unwrap();
            list.resize(list.len().max(index + 1), json!({}));
            place = &mut list[index];
        }
    }
    *place = value;
}
