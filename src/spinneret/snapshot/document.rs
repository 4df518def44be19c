//! The document that a snapshot file is: one JSON object, written as the Python SDK writes it, to the byte.

use std::io;

use jiff::Timestamp;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;

use super::envelope::{Envelope, EnvelopeError, Freshness, Sealed};
use crate::spinneret::{ConfigItem, ConfigKey};

/// The layout of the file.
const FORMAT: u64 = 1;

/// What a document holds.
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

/// A document as it is read. What else is in it is skipped, and takes no memory.
#[derive(Deserialize)]
struct Read<'a> {
    #[serde(borrow)]
    format: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    envelope: Option<&'a RawValue>,
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
    let document = str::from_utf8(document).ok().and_then(object::<Read<'_>>).ok_or(DocumentError::NotAnObject)?;
    if document.format.and_then(|format| serde_json::from_str(format.get()).ok()) != Some(FORMAT) {
        return Err(DocumentError::Format);
    }
    match document.encrypted.map(RawValue::get) {
        None | Some("false") => {
            let item = document.item.and_then(|item| object(item.get())).ok_or(DocumentError::Item)?;
            Ok(Content::Plain(item))
        }
        Some("true") => {
            let Some(token) = token else { return Ok(Content::Locked) };
            let sealed: Sealed<'_> =
                document.envelope.and_then(|envelope| object(envelope.get())).ok_or(DocumentError::NoEnvelope)?;
            let text = sealed.open(token, &key.group, &key.key)?;
            let item = str::from_utf8(&text).ok().and_then(object).ok_or(DocumentError::Item)?;
            Ok(Content::Decrypted(item))
        }
        Some(_) => Err(DocumentError::Encrypted),
    }
}

/// What a JSON object says. A list of the same values says nothing, as the order of members means nothing.
fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    text.trim_ascii_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
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
