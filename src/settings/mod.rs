//! Settings: every key with its type, default, range and meaning, and the layers values come from.
//!
//! One table (`table.rs`) declares the keys; the [`Settings`] struct, the key list, the parsers and
//! `config/dragline.toml` all follow from it. [`Layers`] stacks the sources and [`Layers::resolve`]
//! gives typed settings with the origin of each value. Nothing here reads the environment by itself,
//! knows an actor, or shows a secret.

mod change;
mod collection;
mod content;
mod delivery;
mod environment;
mod error;
mod file;
mod frontier;
mod hosts;
mod key;
mod layer;
mod layers;
mod names;
mod redact;
mod references;
mod resolved;
mod rule;
mod secret;
mod source;
mod structure;
mod table;
mod template;
mod value;
mod watched;
mod yaml;

pub use change::{Changes, changes};
pub(crate) use content::{Content, content};
pub use environment::Environment;
pub use error::{SettingsError, SettingsErrors};
pub use frontier::FrontierStore;
pub use hosts::{Hosts, PrivateAddresses};
pub use key::{Key, Reload};
pub(crate) use layer::ItemValue;
pub use layers::Layers;
pub(crate) use names::Name;
pub use references::Reference;
pub use resolved::{Origin, Resolved};
pub use secret::Secret;
pub use source::Source;
pub use table::Settings;
pub use template::template;
pub use value::{
    Feed, FeedEncoding, Headers, HtmlEngine, JobId, LeaseRule, LogFormat, LogLevel, MarkerRule, OnFatal, ProgressStyle,
    RequestRecords, UnmatchedLease,
};

#[cfg(test)]
mod tests;
