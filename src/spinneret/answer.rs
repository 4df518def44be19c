//! What an answer of the server means: a message, or an error with its code, its reason and the hint when to ask again.
//!
//! Never repeats what it cannot read, nothing of a page that could be a secret, and no text without end.

mod page;
#[cfg(test)]
mod properties;
mod redactor;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::error::Category;
use serde_json::{Map, Value};

pub(crate) use redactor::Redactor;

use super::Result;
use super::code::Code;
use super::error::{Details, Error};
use super::messages::tolerant::Object;
use super::procedure::Rpc;
use super::transport::Reply;

/// The largest body in which a code and a message are looked for: what is no more than a few lines is never as long, and
/// read as JSON it takes up to thirty times its size.
const LARGEST_ERROR: usize = 1024 * 1024;

/// The most characters that are kept of a word (a code, a reason) and of a message. An error is logged, and copied.
const WORD: usize = 128;
const MESSAGE: usize = 2048;

/// The message of an answer, or its error.
pub(crate) fn read<R: Rpc>(reply: &Reply, redactor: &Redactor) -> Result<R::Answer> {
    if (200..300).contains(&reply.status) {
        return message::<R>(&reply.body).map_err(|what| Error::invalid_response(R::PROCEDURE, reply.status, &what));
    }
    Err(failure(reply, redactor))
}

/// Reads a message. The error says which kind of thing is wrong and where, never what is written there.
fn message<R: Rpc>(body: &[u8]) -> Result<R::Answer, String> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    let body = std::str::from_utf8(body).map_err(|_| "it is not UTF-8".to_owned())?;
    let Object(answer) = serde_json::from_str(body).map_err(|error| {
        let what = match error.classify() {
            Category::Data => "it does not fit the message",
            Category::Syntax | Category::Eof | Category::Io => "it is not JSON",
        };
        format!("{what} (line {}, column {})", error.line(), error.column())
    })?;
    R::check(&answer)?;
    Ok(answer)
}

fn failure(reply: &Reply, redactor: &Redactor) -> Error {
    let header = |name: &str| reply.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let connect = connect_body(&reply.body);
    let is_bare = connect.is_none();
    let (code, message) = connect.map_or_else(
        || (bare_code(reply.status), bare_message(reply, redactor)),
        |(code, message)| (Code::of(&kept(&code, WORD, redactor)), kept(&message, MESSAGE, redactor)),
    );
    Error::of(Details {
        code,
        reason: kept(header("spinneret-reason").unwrap_or_default(), WORD, redactor),
        message,
        retry_after: header("spinneret-retry-after-ms").and_then(hint),
        http_status: reply.status,
        is_bare,
        error_kind: None,
        is_unsent: false,
        source: None,
    })
}

/// What is kept of a text: its beginning, without the token.
fn kept(text: &str, most: usize, redactor: &Redactor) -> String {
    // Cut afterwards: half a token would not be known again.
    let text = redactor.clean(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

/// Code and message of an answer of the server's own handlers. Everything else comes from something in between.
fn connect_body(body: &[u8]) -> Option<(String, String)> {
    if body.len() > LARGEST_ERROR {
        return None;
    }
    let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let mut text = |name| match members.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let code = text("code").filter(|code| !code.is_empty())?;
    Some((code, text("message").unwrap_or_default()))
}

/// What the status of an answer means that has no code.
const fn bare_code(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

fn bare_message(reply: &Reply, redactor: &Redactor) -> String {
    let status = reply.status;
    let excerpt = page::excerpt(&reply.body, redactor);
    if excerpt.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {excerpt}") }
}

/// A hint: milliseconds, not negative. Longer ones than the wire's integers can say become the longest one they can.
fn hint(text: &str) -> Option<Duration> {
    const LONGEST_MS: u64 = i32::MAX as u64;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_millis(text.parse().unwrap_or(LONGEST_MS).min(LONGEST_MS)))
}
