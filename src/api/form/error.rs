//! What can go wrong with a form.

use super::super::request::RequestError;
use super::super::selector::SelectorError;

/// A form that cannot be found, filled or submitted. No value of a field is in it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The page has no such form.
    #[error("{url} has no form for {asked:?} ({forms} on the page); look at what `response.forms()` gives")]
    NoForm {
        /// The page.
        url: String,
        /// The selector.
        asked: String,
        /// How many forms the page has.
        forms: usize,
    },
    /// The selector cannot be used.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// The form has no control of this name that a reader could fill.
    #[error("form {form} has no control named {name:?} to fill, only {found}; `set` adds a field whatever the form has")]
    NoField {
        /// The form, by its id, name or action.
        form: String,
        /// What was asked for.
        name: String,
        /// The names it has.
        found: String,
    },
    /// A list, a radio group or a box does not offer this value.
    #[error("{name:?} of form {form} offers no such value, only {offered}; `set` sends any value")]
    NoChoice {
        /// The form, by its id, name or action.
        form: String,
        /// The control.
        name: String,
        /// The values it has.
        offered: String,
    },
    /// The type of a control does not take this value: a browser would send nothing, or some other value, in its place.
    #[error("{name:?} of form {form} takes no such value, only {allowed}; `set` sends any value")]
    NotTaken {
        /// The form, by its id, name or action.
        form: String,
        /// The control.
        name: String,
        /// What it takes, and how that is written.
        allowed: &'static str,
    },
    /// No button of the form fits.
    #[error("form {form} has no submit button that can be pressed for {asked}; its buttons: {found}")]
    NoButton {
        /// The form, by its id, name or action.
        form: String,
        /// What was asked for.
        asked: String,
        /// The buttons it has.
        found: String,
    },
    /// The form closes a dialog of the page and sends nothing.
    #[error("form {form} has the method \"dialog\": a browser sends nothing; make the request by hand if the site wants one")]
    Dialog {
        /// The form, by its id, name or action.
        form: String,
    },
    /// The action is no address a crawler can go to.
    #[error("form {form} is sent to {action:?}, which is no http or https address; a script of the page handles it")]
    Action {
        /// The form, by its id or name.
        form: String,
        /// The action.
        action: String,
    },
    /// The request cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
}
