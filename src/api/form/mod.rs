//! Forms: what a browser would send for a form of a page, filled by the spider.
//!
//! A [`Form`] is read from the page with the values it has there, changed, and becomes a request by [`Form::submit`]. It follows the
//! standard of HTML (4.10.21): scripts do not run, and `required` or `pattern` hold nobody back.

mod control;
mod direction;
mod entries;
mod error;
mod find;
mod read;
mod submit;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;

use encoding_rs::Encoding;
use url::Url;

pub use self::control::Button;
use self::control::{Control, Kind};
pub use self::error::FormError;
pub use crate::web::form_data::Upload;
use crate::web::form_data::{Entry, EntryValue};

/// Names and values that are listed in a message.
const NAMED: usize = 12;

/// A form of a page: its fields as the page has them, then as the spider fills them. It does not borrow from the page.
///
/// [`fill`](Form::fill) does what a reader does, to a control that is there; [`set`](Form::set) sends a field whatever the form
/// has, as scripts do. Without further word the first submit button that is not disabled is pressed.
///
/// ```
/// # use dragline::prelude::*;
/// # use dragline::api::FormError;
/// # #[derive(Serialize, Deserialize, Clone)] enum Step { Account, Results }
/// # fn login(response: &Response) -> Result<Vec<Request>, FormError> {
/// let mut login = response.form("form#login")?;
/// login.fill("user", "anna")?.fill("remember", "yes")?.set("token", "x1");
/// let account = login.submit(&Step::Account)?; // hand it to `out.request`
///
/// let mut search = response.form("[name=q]")?; // or anything in it
/// search.fill("q", "tides")?.press("advanced")?;
/// let results = search.submit(&Step::Results)?;
/// # Ok(vec![account, results])
/// # }
/// ```
#[derive(Clone)]
pub struct Form {
    /// Where the form was found: what it is sent to without an action.
    page: Url,
    /// What an action is relative to.
    base: Url,
    /// The encoding of the page.
    encoding: &'static Encoding,
    attrs: Attributes,
    controls: Vec<Control>,
    /// Fields that take the place of all others of their name, in order; one without a value is left out.
    set: Vec<(String, Vec<EntryValue>)>,
    pressed: Pressed,
}

/// The attributes of a form that say how it is sent.
#[derive(Clone, Debug, Default)]
struct Attributes {
    id: String,
    name: String,
    action: String,
    method: String,
    enctype: String,
    accept_charset: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Pressed {
    /// The first submit button that is not disabled.
    First,
    None,
    /// The place of the button among the controls.
    Button(usize),
}

impl Form {
    /// The `id` of the form; empty without one.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.attrs.id
    }

    /// The `name` of the form; empty without one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.attrs.name
    }

    /// The fields as they would be sent now, in order; of a file its name.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        self.entries().into_iter().map(|entry| (entry.text().to_owned(), entry.name)).map(|(value, name)| (name, value)).collect()
    }

    /// The first value that would be sent for this name now.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        self.entries().iter().find(|entry| entry.name == name).map(|entry| entry.text().to_owned())
    }

    /// The submit buttons, in the order of the page.
    pub fn buttons(&self) -> impl Iterator<Item = &Button> {
        self.controls.iter().filter_map(|control| if let Kind::Button(button) = &control.kind { Some(button) } else { None })
    }

    /// Fills a control as a reader does: writes into a text, chooses from a list or from radio buttons, ticks the box that has
    /// this value. Where there are several of a name that fit, it is the first.
    ///
    /// # Errors
    /// When no control of this name can be filled, it does not offer this value, or its type does not take it: a date that is not
    /// written as `2024-02-01`, what is no number, time or color. Nothing is changed then.
    pub fn fill(&mut self, name: &str, value: &str) -> Result<&mut Self, FormError> {
        let mut offered: Option<Vec<String>> = None;
        let mut refused = None;
        let mut fit = None;
        for (place, control) in self.controls.iter().enumerate().filter(|(_, c)| c.name == name && c.is_fillable()) {
            if let Kind::Text { input, .. } = &control.kind
                && let Some(allowed) = input.refuses(value)
            {
                refused.get_or_insert(allowed);
                continue;
            }
            let offers: Vec<&str> = match &control.kind {
                Kind::Checkbox { value, .. } | Kind::Radio { value, .. } => vec![value],
                Kind::Select { choices, .. } => choices.iter().filter(|c| !c.is_disabled).map(|c| c.value.as_str()).collect(),
                _ => vec![value],
            };
            if offers.contains(&value) {
                fit = Some(place);
                break;
            }
            offered.get_or_insert_default().extend(offers.into_iter().take(NAMED).map(str::to_owned));
        }
        let Some(place) = fit else {
            let (form, name) = (self.label(), name.to_owned());
            return Err(match (offered, refused) {
                (Some(offered), _) => FormError::NoChoice { form, name, offered: list(offered.iter().map(String::as_str)) },
                (None, Some(allowed)) => FormError::NotTaken { form, name, allowed },
                (None, None) => FormError::NoField { form, name, found: self.names() },
            });
        };
        let is_radio = self.controls.get(place).is_some_and(|control| matches!(control.kind, Kind::Radio { .. }));
        if is_radio {
            self.controls.iter_mut().filter(|control| control.name == name).for_each(|control| {
                if let Kind::Radio { is_checked, .. } = &mut control.kind {
                    *is_checked = false;
                }
            });
        }
        if let Some(control) = self.controls.get_mut(place) {
            control.take(value);
        }
        Ok(self)
    }

    /// Takes the tick out of every box of this name, and every choice of a `multiple` list back.
    ///
    /// # Errors
    /// When there is no such box or list.
    pub fn untick(&mut self, name: &str) -> Result<&mut Self, FormError> {
        let mut found = false;
        for control in self.controls.iter_mut().filter(|control| control.name == name && control.is_fillable()) {
            match &mut control.kind {
                Kind::Checkbox { is_checked, .. } => *is_checked = false,
                Kind::Select { is_multiple: true, choices } => choices.iter_mut().for_each(|choice| choice.is_selected = false),
                _ => continue,
            }
            found = true;
        }
        if found { Ok(self) } else { Err(FormError::NoField { form: self.label(), name: name.to_owned(), found: self.names() }) }
    }

    /// Sends this field, in the place of all fields of this name and behind those of the page.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.set_all(name, [value])
    }

    /// The same with several values.
    pub fn set_all<V: Into<String>>(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = V>) -> &mut Self {
        let values = values.into_iter().map(|value| EntryValue::Text(value.into())).collect();
        self.replace(name.into(), values)
    }

    /// Leaves out every field of this name.
    pub fn remove(&mut self, name: impl Into<String>) -> &mut Self {
        self.replace(name.into(), Vec::new())
    }

    /// Sends a file, in the place of all fields of this name. Only a form of the type `multipart/form-data` sends what is in it.
    pub fn attach(&mut self, name: impl Into<String>, file: Upload) -> &mut Self {
        let name = name.into();
        let own = self.controls.iter_mut().find(|control| control.name == name && matches!(control.kind, Kind::File(_)));
        if let Some(control) = own {
            control.kind = Kind::File(vec![file]);
            return self;
        }
        self.replace(name, vec![EntryValue::File(file)])
    }

    /// Presses the first submit button of this name.
    ///
    /// # Errors
    /// When there is none that is not disabled.
    pub fn press(&mut self, name: &str) -> Result<&mut Self, FormError> {
        self.press_where(&[("name", name)])
    }

    /// Presses the first submit button that has all of these attributes with these values.
    ///
    /// # Errors
    /// When there is none that is not disabled.
    pub fn press_where(&mut self, attrs: &[(&str, &str)]) -> Result<&mut Self, FormError> {
        let asked = attrs.iter().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>().join(" ");
        let place = self.places_of_buttons().find(|(_, button)| !button.is_disabled && button.fits(attrs));
        self.press_at(place.map(|(place, _)| place), asked)
    }

    /// Presses the submit button with this number among all of the form, from 0.
    ///
    /// # Errors
    /// When there is none, or it is disabled.
    pub fn press_nth(&mut self, number: usize) -> Result<&mut Self, FormError> {
        let place = self.places_of_buttons().nth(number).filter(|(_, button)| !button.is_disabled);
        self.press_at(place.map(|(place, _)| place), format!("number {number}"))
    }

    /// Presses no button, as scripts submit forms.
    pub fn press_none(&mut self) -> &mut Self {
        self.pressed = Pressed::None;
        self
    }

    fn press_at(&mut self, place: Option<usize>, asked: String) -> Result<&mut Self, FormError> {
        match place {
            Some(place) => {
                self.pressed = Pressed::Button(place);
                Ok(self)
            }
            None => {
                let labels: Vec<String> = self.buttons().take(NAMED).map(Button::label).collect();
                let found = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
                Err(FormError::NoButton { form: self.label(), asked, found })
            }
        }
    }

    fn replace(&mut self, name: String, values: Vec<EntryValue>) -> &mut Self {
        match self.set.iter_mut().find(|(set, _)| *set == name) {
            Some((_, before)) => *before = values,
            None => self.set.push((name, values)),
        }
        self
    }

    fn places_of_buttons(&self) -> impl Iterator<Item = (usize, &Button)> {
        let buttons = self.controls.iter().enumerate();
        buttons.filter_map(|(place, control)| if let Kind::Button(button) = &control.kind { Some((place, button)) } else { None })
    }

    /// The place of the button that is pressed.
    fn pressed(&self) -> Option<usize> {
        match self.pressed {
            Pressed::First => self.places_of_buttons().find(|(_, button)| !button.is_disabled).map(|(place, _)| place),
            Pressed::None => None,
            Pressed::Button(place) => Some(place),
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = entries::of(&self.controls, self.pressed(), self.sent_encoding());
        if !self.set.is_empty() {
            entries.retain(|entry| !self.set.iter().any(|(name, _)| *name == entry.name));
            for (name, values) in &self.set {
                entries.extend(values.iter().map(|value| Entry { name: name.clone(), value: value.clone() }));
            }
        }
        entries
    }

    /// How messages call it.
    fn label(&self) -> String {
        let Attributes { id, name, action, .. } = &self.attrs;
        let said = [("#", id), ("named ", name), ("to ", action)].into_iter().find(|(_, said)| !said.is_empty());
        said.map_or_else(|| "without a name".to_owned(), |(what, said)| format!("{what}{said:?}"))
    }

    /// The names of what can be filled, for messages.
    fn names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for control in self.controls.iter().filter(|control| control.is_fillable() && !control.name.is_empty()) {
            if names.len() <= NAMED && !names.contains(&control.name.as_str()) {
                names.push(&control.name);
            }
        }
        list(names)
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A value may be a password.
        f.debug_struct("Form")
            .field("id", &self.attrs.id)
            .field("name", &self.attrs.name)
            .field("controls", &self.controls.len())
            .field("set", &self.set.len())
            .finish_non_exhaustive()
    }
}

impl Control {
    /// Takes a value that it offers.
    fn take(&mut self, given: &str) {
        match &mut self.kind {
            Kind::Text { value, input } => *value = input.sanitized(given),
            Kind::Checkbox { is_checked, .. } | Kind::Radio { is_checked, .. } => *is_checked = true,
            Kind::Select { is_multiple, choices } => {
                if !*is_multiple {
                    choices.iter_mut().for_each(|choice| choice.is_selected = false);
                }
                if let Some(choice) = choices.iter_mut().find(|choice| choice.value == given && !choice.is_disabled) {
                    choice.is_selected = true;
                }
            }
            Kind::Charset => self.kind = Kind::Text { value: given.to_owned(), input: value::InputType::Hidden },
            Kind::File(_) | Kind::Button(_) => {}
        }
    }
}

/// A list for a message, cut where it gets long.
fn list<'t>(names: impl IntoIterator<Item = &'t str>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(NAMED).map(|name| format!("{name:?}")).collect();
    let more = if names.next().is_some() { " and more" } else { "" };
    if first.is_empty() { "nothing".to_owned() } else { format!("{}{more}", first.join(", ")) }
}
