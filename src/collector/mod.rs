//! The collector's plain parts: the record log, batches, and the ring log records come through.
//!
//! A record is accepted when it is written to the record log; a batch is a range of that log. Nothing here sends
//! anything and nothing here is an actor.

pub mod batch;
pub mod layer;
pub mod log;
pub mod logring;
pub mod message;
