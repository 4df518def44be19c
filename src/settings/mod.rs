//! Settings: every key with its type, default, range and meaning, and the layers values come from.
//!
//! One table (`table.rs`) declares the keys; the [`Settings`] struct, the key list, the parsers and
//! `config/dragline.toml` all follow from it. [`Layers`] stacks the sources and [`Layers::resolve`]
//! gives typed settings with the origin of each value. Nothing here reads the environment by itself,
//! knows an actor, or shows a secret.

mod collection;
mod file;
mod key;
mod redact;
mod rule;
mod table;
mod template;
mod value;

pub use key::{Key, Reload};
pub use table::Settings;
pub use template::template;
pub use value::{
    Feed, FeedEncoding, FrontierStore, Headers, JobIdValue, LeaseRule, LogFormat, LogLevel,
    ProgressStyle, UnmatchedLease,
};
