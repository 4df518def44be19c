//! Which engine reads a page, and how.

use super::limits::Limits;
use super::options::ParseOptions;

/// Who builds the tree of a page and answers CSS. Texts, links, XPath and HTML come from our own code with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Ours, with bounds.
    #[default]
    Dragline,
    /// html5ever and scraper. Without bounds: a hostile page takes as long as it takes.
    Scraper,
    /// Both; ours answers, and where the other one answers otherwise is noted. As unbounded as that one.
    Compare,
}

/// How a page is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageOptions {
    /// Who reads it.
    pub engine: Engine,
    /// The scripting flag and the bounds of our own parser.
    pub parse: ParseOptions,
}

impl PageOptions {
    /// Sets the engine.
    #[must_use]
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the bounds.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.parse.limits = limits;
        self
    }
}
