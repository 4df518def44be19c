//! The APCloudy wire form: records, items, bodies and signatures, usable on its own.
//!
//! What APCloudy receives is text: JSON in the exact form Python's default writer gives it, signed with
//! HMAC-SHA256 over timestamp and body. This module turns values into that text and signs it. It opens no
//! connection, keeps no queue and knows neither the engine nor the spool.

mod answer;
mod body;
mod item;
mod job;
mod record;
mod serializer;
mod sign;
#[cfg(test)]
pub(crate) mod testdata;
mod text;

pub use answer::Answer;
pub use body::{BodyBuilder, RecordKind};
pub use item::{StampedItem, item_text};
pub use job::JobId;
pub use record::{LogLevel, LogRecord, RequestRecord};
pub use sign::Signer;
pub use text::{MAX_DEPTH, TextError, to_text, to_text_counting};
