//! CSS selectors on our tree: the `selectors` crate behind tests of the rightmost compound, with Scrapy's `::text` and
//! `::attr(name)`, bounded in depth, length and steps.
//!
//! Nothing here panics or recurses on a page; recursion on a selector is bounded when it is read. A selection that would
//! cost too much stops and says so.

mod compound;
mod element;
mod error;
mod has;
mod lineage;
mod pseudo;
mod reader;
mod select;
pub(in crate::html) mod split;
mod types;

use std::cell::Cell;

use selectors::parser::Selector;

pub(crate) use error::{CssError, Quoted};
pub(crate) use select::Found;

use compound::Compounds;
use split::Take;
use types::{Css, Name};

/// The longest selector text, in bytes.
pub(crate) const LONGEST: usize = 16 << 10;

/// What [`Compiled::patience`] is: a few times the depth of ordinary pages.
const PATIENCE: u64 = 32;

/// How far the leftmost part of a selector may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anywhere: the whole page is searched, from the document or its element on.
    Document,
    /// Only the node searched and what is below it, as in Scrapy: ancestors outside of it do not count.
    Subtree,
}

/// A selector text ready to be run on any page. Can be shared between threads.
#[derive(Debug)]
pub(crate) struct Compiled {
    text: Box<str>,
    arms: Box<[Arm]>,
    /// Names that no page knows beforehand; [`Name`]s know their place in it.
    names: Box<[Box<str>]>,
    /// Whether `:scope` may make an inner root find what an outer one does not.
    uses_scope: bool,
    /// Steps on each element on average, beyond which searches upwards, backwards and below are prepared for the whole
    /// page; tests have none.
    pub(in crate::html) patience: u64,
}

/// One item of the comma list.
#[derive(Debug)]
struct Arm {
    selector: Selector<Css>,
    compounds: Compounds,
    take: ArmTake,
    /// Whether what is below a match counts as matched.
    is_deep: bool,
}

/// What is taken of a match.
#[derive(Debug)]
enum ArmTake {
    Element,
    Text,
    /// The attribute of this name; letter case counts, as in parsel.
    Attr(Name),
}

impl Compiled {
    /// Reads a selector: a comma list of CSS selectors, each with `::text` or `::attr(name)` at its end or neither.
    ///
    /// # Errors
    /// For a text that is no selector, is longer than 16 KiB, has brackets nested more than 16 deep or more than 128
    /// compounds in one selector.
    pub(crate) fn parse(text: &str) -> Result<Self, CssError> {
        if text.len() > LONGEST {
            return Err(CssError::new(text, LONGEST, format!("it is longer than {LONGEST} bytes")));
        }
        // A list that forgives errors, as that of `:is()`, would hide this one.
        if let Some(position) = split::too_deep(text, usize::from(reader::DEEPEST)) {
            return Err(CssError::new(text, position, format!("brackets are nested too deep, at most {}", reader::DEEPEST)));
        }
        let has_slots = Cell::new(0);
        let (arms, names) = types::collect_names(|| {
            let parts = split::parts(text)?;
            parts.iter().map(|part| Arm::read(text, part, &has_slots)).collect::<Result<Box<[_]>, _>>()
        });
        // An escape could hide it; then an inner root costs a search of its own, no more.
        let uses_scope = text.contains('\\') || text.as_bytes().windows(5).any(|word| word.eq_ignore_ascii_case(b"scope"));
        Ok(Self { text: text.into(), arms: arms?, names, uses_scope, patience: PATIENCE })
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Arm {
    fn read(text: &str, part: &split::Part<'_>, has_slots: &Cell<u32>) -> Result<Self, CssError> {
        let selector = reader::read(text, part, has_slots)?;
        let take = match &part.take {
            Take::Element => ArmTake::Element,
            Take::Text => ArmTake::Text,
            Take::Attr(name) => ArmTake::Attr(Name::from(&**name)),
        };
        Ok(Self { compounds: Compounds::of(&selector), selector, take, is_deep: part.is_deep })
    }
}
