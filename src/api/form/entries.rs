//! The entry list of a form (WHATWG HTML 4.10.22.4): what its controls send when a button, or none, is pressed.

use encoding_rs::Encoding;

use super::control::{Control, Kind};
use crate::web::form_data::{Entry, EntryValue};

/// The entries of controls in the order of the page. `pressed` is the place of a button among them.
pub(super) fn of(controls: &[Control], pressed: Option<usize>, encoding: &'static Encoding) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(controls.len());
    for (place, control) in controls.iter().enumerate().filter(|(_, control)| !control.is_disabled) {
        let before = entries.len();
        add(&mut entries, control, pressed == Some(place), encoding);
        if let Some((name, direction)) = &control.direction
            && entries.len() > before
        {
            entries.push(Entry::new(name, *direction));
        }
    }
    entries
}

fn add(entries: &mut Vec<Entry>, control: &Control, is_pressed: bool, encoding: &'static Encoding) {
    let name = &control.name;
    if let Kind::Button(button) = &control.kind
        && button.is_image
    {
        if is_pressed {
            // Pressed in its corner, as by the keyboard.
            let dot = if name.is_empty() { "" } else { "." };
            entries.extend(["x", "y"].map(|axis| Entry::new(format!("{name}{dot}{axis}"), "0")));
        }
        return;
    }
    if name.is_empty() {
        return;
    }
    match &control.kind {
        Kind::Text { value, .. } => entries.push(Entry::new(name, value)),
        Kind::Charset => entries.push(Entry::new(name, encoding.name())),
        Kind::Checkbox { value, is_checked } | Kind::Radio { value, is_checked } => {
            if *is_checked {
                entries.push(Entry::new(name, value));
            }
        }
        Kind::File(files) => {
            entries.extend(files.iter().map(|file| Entry { name: name.clone(), value: EntryValue::File(file.clone()) }));
        }
        Kind::Select { choices, .. } => {
            let sent = choices.iter().filter(|choice| choice.is_selected && !choice.is_disabled);
            entries.extend(sent.map(|choice| Entry::new(name, &choice.value)));
        }
        Kind::Button(button) => {
            if is_pressed {
                entries.push(Entry::new(name, &button.value));
            }
        }
    }
}
