//! What an answer of the server means: a message, or an error with its code and reason.

use std::time::Duration;

use super::Result;
use super::code::Code;
use super::error::{Details, Error};
use super::procedure::Rpc;
use super::transport::Reply;

/// The message of an answer, or its error.
pub(crate) fn read<R: Rpc>(reply: &Reply) -> Result<R::Answer> {
    if (200..300).contains(&reply.status) {
        let body = if reply.body.trim_ascii().is_empty() { b"{}".as_slice() } else { &reply.body };
        return serde_json::from_slice(body)
            .map_err(|error| Error::invalid_response(R::PROCEDURE, reply.status, &format!("{:?}", error.classify())));
    }
    let text = |name: &str| reply.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let body: Option<serde_json::Value> = serde_json::from_slice(&reply.body).ok();
    let code = body.as_ref().and_then(|body| body.get("code")?.as_str()).filter(|code| !code.is_empty());
    Err(Error::of(Details {
        code: code.map_or(Code::Unavailable, Code::of),
        reason: text("spinneret-reason").unwrap_or_default().to_owned(),
        message: body.as_ref().and_then(|body| body.get("message")?.as_str()).unwrap_or_default().to_owned(),
        retry_after: text("spinneret-retry-after-ms").and_then(|hint| hint.parse().ok()).map(Duration::from_millis),
        http_status: reply.status,
        is_bare: code.is_none(),
        error_kind: None,
        source: None,
    }))
}
