//! Drafts from what an HTTP client hands back: a response, or an error.

use std::error::Error as StdError;

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};

use super::{ReportDraft, path};
use crate::causes::chain;
use crate::spinneret::classify::classify;
use crate::spinneret::error_kind::ErrorKind;

impl ReportDraft {
    /// A response with this status. 407 is the proxy's, so [`ErrorKind::ProxyAuth`] goes with it.
    pub fn status(status: u16) -> Self {
        let draft = Self::new().http_status(status);
        if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED.as_u16() { draft.error_kind(ErrorKind::ProxyAuth) } else { draft }
    }

    /// A response of `reqwest`: its status, the path of its final URL, and the length of its body as the head tells it.
    ///
    /// A response does not know its method, nor when its request was sent: say them with [`Self::method`] and
    /// [`Self::timed`]. When the body is read, [`Self::response_bytes`] replaces the length by the true one.
    pub fn response(response: &reqwest::Response) -> Self {
        Self { uri: Some(path::of(response.url().as_str())), ..Self::head(response.status(), response.headers()) }
    }

    /// The head of a response: its status, and the length of its body if it tells one.
    pub fn head(status: StatusCode, headers: &HeaderMap) -> Self {
        Self::status(status.as_u16()).response_bytes(content_length(headers))
    }

    /// A failure: its kind by the whole chain of its causes (wire contract, section 13), and the path if an error of
    /// `reqwest` in the chain has the URL.
    ///
    /// An error made of a response (`error_for_status`) is a response: it has the status, and no kind but that of 407.
    pub fn error(error: &(dyn StdError + 'static)) -> Self {
        let http: Option<&reqwest::Error> = chain(error).find_map(|link| link.downcast_ref());
        let draft = match http.and_then(reqwest::Error::status) {
            Some(status) => Self::status(status.as_u16()),
            None => Self::new().error_kind(classify(error)),
        };
        Self { uri: http.and_then(reqwest::Error::url).map(|url| path::of(url.as_str())), ..draft }
    }
}

/// The length of the body as the head tells it, if in digits only.
fn content_length(headers: &HeaderMap) -> u64 {
    let text = headers.get(CONTENT_LENGTH).map_or(b"".as_slice(), |value| value.as_bytes().trim_ascii());
    let is_digits = text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_digits).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

impl From<u16> for ReportDraft {
    fn from(status: u16) -> Self {
        Self::status(status)
    }
}

impl From<StatusCode> for ReportDraft {
    fn from(status: StatusCode) -> Self {
        Self::status(status.as_u16())
    }
}

impl From<ErrorKind> for ReportDraft {
    fn from(kind: ErrorKind) -> Self {
        Self::new().error_kind(kind)
    }
}

impl From<&reqwest::Response> for ReportDraft {
    fn from(response: &reqwest::Response) -> Self {
        Self::response(response)
    }
}

impl From<&reqwest::Error> for ReportDraft {
    fn from(error: &reqwest::Error) -> Self {
        Self::error(error)
    }
}
