//! A regular expression of a policy, compiled once, bounded in memory; equal to another of the same text.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Most memory of a compiled pattern, in bytes; a few hundred characters of ordinary pattern are far below it.
const MAX_BYTES: usize = 1 << 20;

/// Deepest nesting of groups.
const MAX_DEPTH: u32 = 100;

/// The pattern.
#[derive(Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    ///
    /// Why it is none, in one line.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(text).size_limit(MAX_BYTES).dfa_size_limit(MAX_BYTES).nest_limit(MAX_DEPTH).build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "this one becomes too big; write a simpler one".to_owned(),
            // The last line says what is wrong, those before it draw where.
            error => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        })
    }

    /// Whether it is found anywhere in the text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.as_str())
    }
}
