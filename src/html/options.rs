//! How a page is to be parsed.

use super::limits::Limits;

/// What [`Document::parse_with`](super::Document::parse_with) is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseOptions {
    /// The standard's scripting flag: whether `noscript` is text (a browser that runs scripts) or markup. Off.
    pub scripting: bool,
    /// Bounds.
    pub limits: Limits,
    /// Errs where html5ever 0.40 does, so that the two can be compared.
    #[cfg(test)]
    pub(crate) as_html5ever: bool,
}

impl ParseOptions {
    /// Whether a rule is to be broken as html5ever breaks it; always false outside of tests.
    #[inline]
    pub(crate) const fn as_html5ever(&self) -> bool {
        #[cfg(test)]
        return self.as_html5ever;
        #[cfg(not(test))]
        return false;
    }

    /// Sets the scripting flag.
    #[must_use]
    pub const fn scripting(mut self, on: bool) -> Self {
        self.scripting = on;
        self
    }

    /// Sets the bounds.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
