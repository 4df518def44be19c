//! The document that a snapshot file is: one JSON object, written as the Python SDK writes it, to the byte.

use std::io;

use jiff::Timestamp;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use super::envelope::{Envelope, EnvelopeError, Freshness};
use crate::spinneret::{ConfigItem, ConfigKey};

/// The layout of the file.
const FORMAT: u64 = 1;

/// What a document holds.
#[derive(PartialEq, Eq)]
pub(super) enum Content {
    /// An item in plain text.
    Plain(ConfigItem),
    /// An item that was encrypted.
    Decrypted(ConfigItem),
    /// An encrypted item, and there is no token to read it with.
    Locked,
}

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum DocumentError {
    /// Not JSON in UTF-8, or no object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// Another layout.
    #[error("its format is not {FORMAT}")]
    Format,
    /// Neither encrypted nor plain.
    #[error("it does not say whether it is encrypted")]
    Encrypted,
    /// The item is missing, or is not one.
    #[error("its item cannot be read")]
    Item,
    /// Said to be encrypted, without an envelope.
    #[error("it has no envelope")]
    NoEnvelope,
    /// The envelope stays shut.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

#[derive(Serialize)]
struct Plain<'a> {
    format: u64,
    saved_at: String,
    encrypted: bool,
    item: Stored<'a>,
}

#[derive(Serialize)]
struct Encrypted {
    format: u64,
    saved_at: String,
    encrypted: bool,
    envelope: Envelope,
}

/// An item as it is stored: all members, in this order, times to the microsecond.
#[derive(Serialize)]
struct Stored<'a> {
    namespace: &'a str,
    group: &'a str,
    key: &'a str,
    format: &'a str,
    version: i32,
    content: &'a str,
    updated_at: Option<String>,
    has_secret_refs: bool,
}

/// The document of an item in plain text.
pub(super) fn plain(item: &ConfigItem, saved_at: Timestamp) -> io::Result<Vec<u8>> {
    spaced(&Plain { format: FORMAT, saved_at: stamp(saved_at), encrypted: false, item: Stored::of(item) })
}

/// The document of an item that only holders of the token can read.
pub(super) fn encrypted(item: &ConfigItem, saved_at: Timestamp, token: &SecretString, fresh: &Freshness) -> io::Result<Vec<u8>> {
    let text = Zeroizing::new(serde_json::to_vec(&Stored::of(item))?);
    let envelope = Envelope::seal(token, fresh, &item.group, &item.key, &text).map_err(io::Error::other)?;
    spaced(&Encrypted { format: FORMAT, saved_at: stamp(saved_at), encrypted: true, envelope })
}

/// What a document holds that should be of this item.
pub(super) fn read(document: &[u8], key: &ConfigKey, token: Option<&SecretString>) -> Result<Content, DocumentError> {
    let Ok(Value::Object(mut document)) = serde_json::from_slice(document) else {
        return Err(DocumentError::NotAnObject);
    };
    if document.get("format").and_then(Value::as_u64) != Some(FORMAT) {
        return Err(DocumentError::Format);
    }
    match document.get("encrypted") {
        None | Some(Value::Null | Value::Bool(false)) => {
            Ok(Content::Plain(item(document.remove("item").ok_or(DocumentError::Item)?)?))
        }
        Some(Value::Bool(true)) => {
            let Some(token) = token else { return Ok(Content::Locked) };
            let envelope = document.get("envelope").and_then(Value::as_object).ok_or(DocumentError::NoEnvelope)?;
            let text = Envelope::open(envelope, token, &key.group, &key.key)?;
            Ok(Content::Decrypted(item(serde_json::from_slice(&text).map_err(|_| DocumentError::Item)?)?))
        }
        Some(_) => Err(DocumentError::Encrypted),
    }
}

fn item(value: Value) -> Result<ConfigItem, DocumentError> {
    // The order of the members means nothing, so a list of their values is no item.
    if !value.is_object() {
        return Err(DocumentError::Item);
    }
    serde_json::from_value(value).map_err(|_| DocumentError::Item)
}

impl<'a> Stored<'a> {
    fn of(item: &'a ConfigItem) -> Self {
        Self {
            namespace: &item.namespace,
            group: &item.group,
            key: &item.key,
            format: &item.format,
            version: item.version,
            content: &item.content,
            updated_at: item.updated_at.map(stamp),
            has_secret_refs: item.has_secret_refs,
        }
    }
}

fn stamp(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// JSON with a space after each comma and colon.
fn spaced(document: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut text, Spaced))?;
    Ok(text)
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
