//! The downloader: one attempt per ticket, through the middlewares.

pub mod message;
pub mod transport;
