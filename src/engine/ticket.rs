//! A ticket's name: which piece of work an order or a fact is about, and which issue of it.

/// Names one ticket and its issue. Every order carries one; a fact whose epoch is not the ticket's present
/// one answers an order that was given up, and is dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The ticket's number, rising over the run.
    pub ticket: u64,
    /// Which issue of it.
    pub epoch: u32,
}
