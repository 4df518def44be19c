//! The frontier on disk: an index in memory over records in an embedded database.
mod base;
mod error;
mod place;
mod rows;
mod sync;
pub use error::DiskError;
