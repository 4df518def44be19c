//! The controls of a form, as read from the page and changed by its reader.

use crate::web::form_data::Upload;

use super::value::InputType;

/// One control that may add an entry.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) name: String,
    pub(super) is_disabled: bool,
    pub(super) kind: Kind,
    /// The name and value of the entry for the direction of its text (`dirname`).
    pub(super) direction: Option<(String, &'static str)>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// An `input` with a text, or a `textarea`.
    Text {
        value: String,
        input: InputType,
    },
    /// A hidden `_charset_`, filled with the name of the encoding.
    Charset,
    Checkbox {
        value: String,
        is_checked: bool,
    },
    Radio {
        value: String,
        is_checked: bool,
    },
    File(Vec<Upload>),
    Select {
        is_multiple: bool,
        choices: Vec<Choice>,
    },
    Button(Button),
}

/// An `option`.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) is_selected: bool,
    pub(super) is_disabled: bool,
}

/// A button that submits a form.
#[derive(Clone, Debug)]
pub struct Button {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) text: String,
    pub(super) is_image: bool,
    pub(super) is_disabled: bool,
    pub(super) attrs: Vec<(String, String)>,
}

impl Button {
    /// Its name; empty where it has none, and sends nothing of its own then (an image sends where it was pressed).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What is written on it, white space collapsed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it cannot be pressed.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// One of its attributes, as the page has it.
    #[must_use]
    pub fn attr(&self, name: &str) -> Option<&str> {
        self.attrs.iter().find(|(attr, _)| attr == name).map(|(_, value)| value.as_str())
    }

    /// Whether it has all of these attributes with these values.
    pub(super) fn fits(&self, attrs: &[(&str, &str)]) -> bool {
        attrs.iter().all(|(name, value)| self.attr(name) == Some(*value))
    }

    /// How messages call it.
    pub(super) fn label(&self) -> String {
        let said = if self.name.is_empty() { &self.text } else { &self.name };
        let state = if self.is_disabled { " (disabled)" } else { "" };
        format!("{said:?}{state}")
    }
}

impl Control {
    /// Whether a reader could change it.
    pub(super) fn is_fillable(&self) -> bool {
        !self.is_disabled && !matches!(self.kind, Kind::Button(_) | Kind::File(_))
    }
}
