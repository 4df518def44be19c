//! A template: text with `{{ path }}` in it.

use serde_json::Value;

use super::Scene;
use crate::plane::model::identity_type::{Field, FieldPath};

/// The longest template, in bytes.
const MAX_TEMPLATE: usize = 8 * 1024;

/// A checked template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(Box<str>),
    Value(FieldPath),
}

impl Template {
    /// Checks a template against the fields of its type; an error says what is wrong.
    pub(crate) fn parse(text: &str, fields: &[Field]) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE {
            return Err(format!("the template has {} bytes; allowed: at most {MAX_TEMPLATE}", text.len()));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            let Some((path, after)) = behind.split_once("}}") else {
                return Err("found {{ without }}; a placeholder is written {{ field }}".to_owned());
            };
            let path = path.trim_matches([' ', '\t']);
            if path.is_empty() || path.contains(is_odd) {
                return Err("a placeholder holds the name of a field, or field.key; nothing else is known there".to_owned());
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            parts.push(Part::Value(FieldPath::parse(path, fields)?));
            rest = after;
        }
        if rest.contains("}}") {
            return Err("found }} without {{; a placeholder is written {{ field }}".to_owned());
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Self(parts))
    }

    /// The path, if the template is one placeholder and nothing else.
    pub(crate) fn only(&self) -> Option<&FieldPath> {
        match self.0.as_slice() {
            [Part::Value(path)] => Some(path),
            _ => None,
        }
    }

    /// The paths it refers to.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        self.0.iter().filter_map(|part| match part {
            Part::Value(path) => Some(path),
            Part::Text(_) => None,
        })
    }

    /// The text between the placeholders.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Value(_) => None,
        })
    }

    /// The text; what is missing is empty.
    pub(super) fn text(&self, scene: &Scene<'_>) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Value(path) => scene.find(path).write(&mut text),
            }
        }
        text
    }

    /// The value with its type if the template is one placeholder, else the text.
    pub(super) fn value(&self, scene: &Scene<'_>) -> Value {
        self.only().map_or_else(|| Value::String(self.text(scene)), |path| scene.find(path).to_value())
    }
}

/// Characters that belong to expressions other templates know; refused so that nobody relies on them.
fn is_odd(character: char) -> bool {
    character.is_whitespace() || character.is_control() || "|()\"'`,+*/\\$!=<>&{}".contains(character)
}
