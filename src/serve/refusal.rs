//! A refusal: a status, a code for programs and a message for people, as one line of JSON.

use http::header::{HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde_json::json;

use crate::http_server::Reply;

/// Why a batch was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Never changes its meaning.
    pub(crate) code: &'static str,
    /// What was found, what is allowed, what to do. No secret.
    pub(crate) message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), header: None }
    }

    pub(crate) fn unauthorized(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// A body that is not what it should be.
    pub(crate) fn shape(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong_shape", message)
    }

    /// The same request may pass later.
    pub(crate) fn later(code: &'static str, message: impl Into<String>, seconds: u16) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).with(RETRY_AFTER, HeaderValue::from(seconds))
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }

    pub(crate) fn into_reply(self) -> Reply {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut reply = Reply::new(self.status, "application/json", format!("{body}\n"));
        if let Some((name, value)) = self.header {
            reply.headers.insert(name, value);
        }
        reply
    }
}
