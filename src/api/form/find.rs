//! Which form of a page is meant.

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::super::response::Response;
use super::super::selector::{NodeRef, Page, Selection};
use super::control::Control;
use super::{Attributes, Form, FormError, Pressed, read};

impl Response {
    /// The form that a CSS selector finds: a form itself, or the form of the first match that belongs to one, such as a field.
    ///
    /// # Errors
    /// When the selector does not parse, or nothing it finds belongs to a form.
    pub fn form(&self, selector: &str) -> Result<Form, FormError> {
        Origin::of(self).form(&self.try_css(selector)?, selector)
    }

    /// The same for an XPath expression.
    ///
    /// # Errors
    /// As [`Response::form`].
    pub fn form_by_xpath(&self, expression: &str) -> Result<Form, FormError> {
        Origin::of(self).form(&self.try_xpath(expression)?, expression)
    }

    /// All forms of the page, in its order.
    #[must_use]
    pub fn forms(&self) -> Vec<Form> {
        Origin::of(self).forms()
    }
}

/// Nodes of a selection that are asked for their form.
const MOST_ASKED: usize = 256;

/// What a form takes over from its page.
pub(super) struct Origin<'p> {
    pub(super) page: &'p Page,
    pub(super) url: &'p Url,
    pub(super) base: &'p Url,
    pub(super) encoding: &'static Encoding,
}

impl<'p> Origin<'p> {
    fn of(response: &'p Response) -> Self {
        let encoding = Encoding::for_label(response.encoding().as_bytes()).unwrap_or(UTF_8);
        Self { page: response.page(), url: response.url(), base: response.base_url(), encoding }
    }

    pub(super) fn forms(&self) -> Vec<Form> {
        read::forms(self.page.document()).forms.into_iter().map(|(node, controls)| self.made(node, controls)).collect()
    }

    pub(super) fn form(&self, selection: &Selection<'p>, asked: &str) -> Result<Form, FormError> {
        let read = read::forms(self.page.document());
        let count = read.forms.len();
        let meant = selection.nodes().take(MOST_ASKED).find_map(|node| read.owner(node));
        let found = meant.and_then(|meant| read.forms.into_iter().find(|(node, _)| *node == meant));
        found.map(|(node, controls)| self.made(node, controls)).ok_or_else(|| FormError::NoForm {
            url: self.url.to_string(),
            asked: asked.to_owned(),
            forms: count,
        })
    }

    fn made(&self, form: NodeRef<'_>, controls: Vec<Control>) -> Form {
        let attr = |name: &str| form.attr(name).unwrap_or_default().to_owned();
        Form {
            page: self.url.clone(),
            base: self.base.clone(),
            encoding: self.encoding,
            attrs: Attributes {
                id: attr("id"),
                name: attr("name"),
                // White space around it is left to the parser of URLs, and an action of it alone is the base.
                action: attr("action"),
                method: attr("method"),
                enctype: attr("enctype"),
                accept_charset: form.attr("accept-charset").map(str::to_owned),
            },
            controls,
            set: Vec::new(),
            pressed: Pressed::First,
        }
    }
}
