#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod built;
mod sockets;

use super::*;

/// An error of some library, with whatever it says and whatever lies behind it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Foreign(&'static str, #[source] Option<Box<dyn StdError + Send + Sync>>);

fn said(words: &'static str) -> Foreign {
    Foreign(words, None)
}

fn caused(words: &'static str, cause: impl StdError + Send + Sync + 'static) -> Foreign {
    Foreign(words, Some(Box::new(cause)))
}
