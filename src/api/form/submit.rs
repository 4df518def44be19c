//! From a form to its request (WHATWG HTML 4.10.22.3, "form submission algorithm").

use encoding_rs::Encoding;
use http::Method;
use serde::Serialize;
use url::Url;

use super::super::request::{Request, RequestError};
use super::control::{Button, Kind};
use super::{Form, FormError};
use crate::web::document_url;
use crate::web::form_data::{self, PLAIN, URL_ENCODED};

impl Form {
    /// The request a browser would send, answered to by `step`: for `out.request`.
    ///
    /// # Errors
    /// When the form sends nothing (`method=dialog`), or not to an http or https address.
    pub fn submit(&self, step: &impl Serialize) -> Result<Request, FormError> {
        let (mut url, method) = (self.action()?, self.method()?);
        let (entries, encoding) = (self.entries(), self.sent_encoding());
        if method == Method::GET {
            url.set_query(Some(&form_data::url_encoded(&entries, encoding)));
            return Ok(Request::to_url(url, step)?);
        }
        let (body, content_type) = match self.said("formenctype", &self.attrs.enctype).to_ascii_lowercase().as_str() {
            "multipart/form-data" => form_data::multipart(&entries, encoding),
            PLAIN => (form_data::plain(&entries, encoding), PLAIN.to_owned()),
            _ => (form_data::url_encoded(&entries, encoding).into(), URL_ENCODED.to_owned()),
        };
        let mut request = Request::to_url(url, step)?;
        request.set_method(method);
        request.header(http::header::CONTENT_TYPE.as_str(), &content_type)?.body(body);
        Ok(request)
    }

    /// Where it is sent; the fields of a GET are not in it yet.
    ///
    /// # Errors
    /// When that is no http or https address.
    pub fn action(&self) -> Result<Url, FormError> {
        let action = self.said("formaction", &self.attrs.action);
        // Not the base: a form without an action is sent to where it stands.
        let url = if action.is_empty() { Ok(self.page.clone()) } else { self.join(action) };
        let no_address = || FormError::Action { form: self.label(), action: action.to_owned() };
        url.ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(no_address)
    }

    /// The method it is sent by.
    ///
    /// # Errors
    /// When it sends nothing.
    pub fn method(&self) -> Result<Method, FormError> {
        match self.said("formmethod", &self.attrs.method).to_ascii_lowercase().as_str() {
            "post" => Ok(Method::POST),
            "dialog" => Err(FormError::Dialog { form: self.label() }),
            _ => Ok(Method::GET),
        }
    }

    /// The encoding it is sent in.
    pub(super) fn sent_encoding(&self) -> &'static Encoding {
        form_data::encoding_of(self.attrs.accept_charset.as_deref(), self.encoding)
    }

    /// An address of the page, its query in the page's encoding ("encoding-parse a URL").
    fn join(&self, address: &str) -> Result<Url, RequestError> {
        document_url::join(&self.base, address, self.encoding)
            .map_err(|error| RequestError::Url { url: address.to_owned(), reason: error.to_string() })
    }

    /// What the pressed button says, else the form.
    fn said<'f>(&'f self, attr: &str, of_form: &'f str) -> &'f str {
        let pressed = self.pressed().and_then(|place| self.controls.get(place));
        let button: Option<&Button> = pressed.and_then(|c| if let Kind::Button(button) = &c.kind { Some(button) } else { None });
        button.and_then(|button| button.attr(attr)).unwrap_or(of_form)
    }
}
