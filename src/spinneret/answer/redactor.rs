//! Takes the client's own token out of texts that others wrote: an intermediary may echo what it was sent.

use std::borrow::Cow;
use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// What stands in the place of what is hidden.
pub(crate) const HIDDEN: &str = "[redacted]";

/// Knows what must never be shown.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    token: Option<SecretString>,
}

impl Redactor {
    /// Hides this token wherever it occurs.
    pub(crate) fn new(token: SecretString) -> Self {
        Self { token: Some(token).filter(|token| !token.expose_secret().is_empty()) }
    }

    /// The text without the token.
    pub(super) fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.token {
            Some(token) if text.contains(token.expose_secret()) => Cow::Owned(text.replace(token.expose_secret(), HIDDEN)),
            _ => Cow::Borrowed(text),
        }
    }

    /// How many bytes the token has.
    pub(super) fn reach(&self) -> usize {
        self.token.as_ref().map_or(0, |token| token.expose_secret().len())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("has_token", &self.token.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_vanishes_and_nothing_else() {
        let redactor = Redactor::new(SecretString::from("spn_c4n4ry"));
        assert_eq!(redactor.clean("got spn_c4n4ry, twice: spn_c4n4ry"), "got [redacted], twice: [redacted]");
        assert_eq!(redactor.clean("got spn_other"), "got spn_other");
        assert_eq!(Redactor::default().clean("as it is"), "as it is");
        assert_eq!(Redactor::new(SecretString::from("")).clean("as it is"), "as it is");
        assert!(!format!("{redactor:?}").contains("c4n4ry"));
    }
}
