//! Why a selector, an expression or a pattern gives nothing.

use std::fmt;

use super::css::{CssError, Quoted};
use super::xpath::XPathError;

/// What kind of text could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorKind {
    /// A CSS selector.
    Css,
    /// An XPath expression.
    XPath,
    /// A regular expression.
    Pattern,
}

impl fmt::Display for SelectorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Css => "css selector",
            Self::XPath => "xpath expression",
            Self::Pattern => "regular expression",
        })
    }
}

/// A selector, an XPath expression or a regular expression that cannot be used, or was given up on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    kind: SelectorKind,
    text: String,
    what: What,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It is wrong at this byte.
    Invalid(usize),
    /// The same, and the reason quotes it already.
    Quoted(usize),
    /// It is right, but not on this page or with these variables.
    Failed,
    /// It would have cost too much on this page.
    GivenUp,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { kind, reason, .. }, text) = (self, Quoted(&self.text));
        match self.what {
            What::Invalid(position) => write!(f, "{kind} {text} is not valid at byte {position}: {reason}"),
            What::Quoted(_) => f.write_str(reason),
            What::Failed => write!(f, "{kind} {text} cannot be answered: {reason}"),
            What::GivenUp => write!(f, "{kind} {text} was given up on this page: {reason}"),
        }
    }
}

impl std::error::Error for SelectorError {}

impl SelectorError {
    /// A text that cannot be compiled.
    pub(crate) fn new(kind: SelectorKind, text: &str, position: usize, reason: impl Into<String>) -> Self {
        Self { kind, text: text.to_owned(), what: What::Invalid(position), reason: reason.into() }
    }

    /// A text that cannot be compiled, with a reason that quotes it.
    pub(crate) fn quoted(kind: SelectorKind, text: &str, position: usize, reason: impl Into<String>) -> Self {
        Self { kind, text: text.to_owned(), what: What::Quoted(position), reason: reason.into() }
    }

    /// A text that was compiled, and gave an error when it was asked.
    pub(crate) fn failed(kind: SelectorKind, text: &str, reason: impl Into<String>) -> Self {
        Self { kind, text: text.to_owned(), what: What::Failed, reason: reason.into() }
    }

    /// A text that was compiled, and would have taken more steps on a page than there are.
    pub(crate) fn given_up(kind: SelectorKind, text: &str, reason: impl Into<String>) -> Self {
        Self { kind, text: text.to_owned(), what: What::GivenUp, reason: reason.into() }
    }

    /// What CSS says is wrong with a selector.
    pub(crate) fn of_css(error: &CssError) -> Self {
        Self::new(SelectorKind::Css, error.text(), error.position(), error.reason())
    }

    /// What XPath says is wrong with an expression, or with this page.
    pub(crate) fn of_xpath(text: &str, error: &XPathError) -> Self {
        let (kind, reason) = (SelectorKind::XPath, error.to_string());
        match error {
            XPathError::Syntax { position, .. }
            | XPathError::Depth { position, .. }
            | XPathError::UnknownFunction { position, .. }
            | XPathError::Arguments { position, .. }
            | XPathError::UnknownPrefix { position, .. } => Self::quoted(kind, text, *position, reason),
            XPathError::Length { .. } => Self::quoted(kind, text, 0, reason),
            XPathError::Budget { .. } | XPathError::StringLength { .. } => Self::given_up(kind, text, reason),
            _ => Self::failed(kind, text, reason),
        }
    }

    /// What was to be compiled.
    #[must_use]
    pub fn kind(&self) -> SelectorKind {
        self.kind
    }

    /// The text as the spider gave it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Offset in bytes of the part that was not understood; 0 where the text itself is right.
    #[must_use]
    pub fn position(&self) -> usize {
        match self.what {
            What::Invalid(position) | What::Quoted(position) => position,
            What::Failed | What::GivenUp => 0,
        }
    }

    /// Why it cannot be used.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether the text is right and would only have cost too much on the page it was asked of.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.what == What::GivenUp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_quotes_the_text_and_says_what_is_wrong() {
        let invalid = SelectorError::new(SelectorKind::Css, "a[", 1, "it ends too early");
        assert_eq!(invalid.to_string(), "css selector \"a[\" is not valid at byte 1: it ends too early");
        assert_eq!((invalid.position(), invalid.is_given_up()), (1, false));
        let given_up = SelectorError::given_up(SelectorKind::XPath, "//a//a", "it took 10 steps");
        assert_eq!(given_up.to_string(), "xpath expression \"//a//a\" was given up on this page: it took 10 steps");
        assert_eq!((given_up.position(), given_up.is_given_up()), (0, true));
        let long = SelectorError::new(SelectorKind::Pattern, &"é(".repeat(10_000), 2, "unclosed group").to_string();
        assert!(long.chars().count() < 400 && long.ends_with("é(\"… is not valid at byte 2: unclosed group"), "{long}");
        let quoted = SelectorError::quoted(SelectorKind::XPath, "//", 2, "xpath at byte 2 of \"//\": it ends too early");
        assert_eq!(quoted.to_string(), "xpath at byte 2 of \"//\": it ends too early");
        assert_eq!(quoted.position(), 2);
        let failed = SelectorError::failed(SelectorKind::XPath, "$x", "there is no variable x");
        assert_eq!(failed.to_string(), "xpath expression \"$x\" cannot be answered: there is no variable x");
    }
}
