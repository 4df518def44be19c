//! The APCloudy wire form: records, items, bodies, signatures and their delivery, usable on its own.
//!
//! What APCloudy receives is text: JSON in the exact form Python's default writer gives it, signed with
//! HMAC-SHA256 over timestamp and body. This module turns values into that text, reads what others made of theirs,
//! and posts a body once. It keeps no queue, tries nothing twice and knows neither the engine nor the spool.

mod answer;
mod body;
mod client;
mod endpoint;
mod fault;
mod item;
mod job;
mod record;
mod serializer;
mod sign;
#[cfg(test)]
pub(crate) mod testdata;
mod text;
mod value;

pub use crate::via::ProxyChoice;
pub use answer::Answer;
pub use body::{BodyBuilder, RecordKind};
pub use client::{Client, ClientConfig, ClientError};
pub use endpoint::{Endpoint, EndpointError};
pub use item::{StampedItem, item_text};
pub use job::JobId;
pub use record::{LogLevel, LogRecord, RequestRecord};
pub use sign::Signer;
pub use text::{MAX_DEPTH, TextError, to_text, to_text_counting};
pub use value::{READ_DEPTH, ReadError, Text, Value};
