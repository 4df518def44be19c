//! Configuration items on disk, for starts without a server.
//!
//! One file an item, in the format that every Spinneret SDK reads and writes: `<cache_dir>/<host>/<namespace>/<group>/<key>.json`,
//! each name encoded as one component ([`path`]), holding a JSON document ([`document`]) whose item is plain, or encrypted under the
//! node's token ([`envelope`]). A file is replaced as a whole or not at all ([`disk`]), and nobody but its owner may read it.
//!
//! A secret item is never written in plain text, and no failure here is fatal: a snapshot that cannot be written or read
//! costs a warning, which names the file and what is wrong with it, never what is in it. All calls block.

mod disk;
mod document;
mod envelope;
mod path;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::{SnapshotOptions, SnapshotStore};
