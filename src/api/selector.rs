//! Extraction: a parsed page and selections on it. All of it lives in [`crate::html`]; this is where spiders look for it.

#[doc(inline)]
pub use crate::html::{
    Engine, Exceeded, NodeKind, NodeRef, Page, PageOptions, Selection, SelectorError, SelectorKind, Variables, XPathValue,
};

pub(crate) use crate::html::{KEPT_ERRORS, compile_pattern, matches};
