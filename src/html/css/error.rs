//! Why a text is no selector, and where.

use std::fmt;

/// The most characters of a selector, an expression or a pattern that a message repeats.
const SHOWN: usize = 256;

/// A text that cannot be used as a CSS selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("css selector {} is not valid at byte {position}: {reason}", Quoted(.text))]
pub(crate) struct CssError {
    pub(super) text: Box<str>,
    pub(super) position: usize,
    pub(super) reason: Box<str>,
}

impl CssError {
    pub(super) fn new(text: &str, position: usize, reason: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), position, reason: reason.into() }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The byte of the text from which on it was not understood.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// What is wrong there.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }
}

/// A text in quotes, its beginning only if it is long.
pub(crate) struct Quoted<'t>(pub(crate) &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{:?}…", self.0.get(..end).unwrap_or_default()),
            None => write!(f, "{:?}", self.0),
        }
    }
}
