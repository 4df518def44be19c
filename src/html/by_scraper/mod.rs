//! The other engine: html5ever builds the tree and scraper selects by CSS on it; all else is asked of our copy of the tree.
//!
//! For `HTML_ENGINE = "scraper"` and `"compare"`. Knows no bounds: what a hostile page costs here, it costs.

mod compiled;
mod matching;
mod source_order;

use std::cell::OnceCell;

use ego_tree::NodeId as ScraperId;
use scraper::{ElementRef, Html};

pub(crate) use compiled::Compiled;
use matching::Found;
pub(crate) use source_order::{Pair, SourceOrder, parse};

use super::arena::NodeId;
use super::css::Reach;
use super::document::Document;
use super::from_scraper::{Converted, convert};
use super::hit::Hit;

/// The tree of scraper, with the nodes of our copy they stand for.
pub(crate) struct ByScraper {
    html: Html,
    /// By the index of our node.
    theirs: Vec<ScraperId>,
    /// Sorted by their id; made when first needed.
    ours: OnceCell<Vec<(ScraperId, NodeId)>>,
}

impl ByScraper {
    /// Builds their tree, and our copy of it, which has the attributes in the order of the source.
    pub(crate) fn parse(text: &str) -> (Self, Document) {
        let (html, order) = parse(text);
        let Converted { document, nodes } = convert(&html, &order);
        (Self { html, theirs: nodes, ours: OnceCell::new() }, document)
    }

    /// What a selector finds in nodes of our copy, in document order and without doubles.
    pub(crate) fn all(&self, copy: &Document, compiled: &Compiled, roots: &[NodeId], reach: Reach) -> Vec<Hit> {
        let found = matching::all(&self.roots(roots), compiled.groups(reach));
        let mut hits: Vec<Hit> = found.into_iter().filter_map(|found| self.hit(copy, found)).collect();
        // Attributes of one element stand in another order here.
        super::hit::sort(&mut hits, copy);
        hits
    }

    /// The first of what a selector finds.
    pub(crate) fn first(&self, copy: &Document, compiled: &Compiled, roots: &[NodeId], reach: Reach) -> Option<Hit> {
        let first = matching::first(&self.roots(roots), compiled.groups(reach))?;
        match first {
            // Another attribute of the element may come before it.
            Found::Attr(..) => self.all(copy, compiled, roots, reach).first().copied(),
            Found::Element(_) | Found::Text(_) => self.hit(copy, first),
        }
    }

    fn roots(&self, roots: &[NodeId]) -> Vec<ElementRef<'_>> {
        let element = |root: &NodeId| ElementRef::wrap(self.html.tree.get(*self.theirs.get(root.index())?)?);
        roots.iter().filter_map(element).collect()
    }

    fn hit(&self, copy: &Document, found: Found<'_, '_>) -> Option<Hit> {
        match found {
            Found::Element(element) => self.our(element.id()).map(Hit::Node),
            Found::Text(text) => self.our(text.id()).map(Hit::Node),
            Found::Attr(element, name) => {
                let owner = self.our(element.id())?;
                let name = copy.arena().find_name(name)?;
                let place = copy.arena().attrs(owner).position(|attr| attr.name() == name)?;
                Some(Hit::Attr { owner, place: u32::try_from(place).ok()? })
            }
        }
    }

    fn our(&self, theirs: ScraperId) -> Option<NodeId> {
        let ours = self.ours.get_or_init(|| {
            let mut ours: Vec<_> = self.theirs.iter().enumerate().map(|(index, id)| (*id, NodeId::at(index))).collect();
            ours.sort_unstable_by_key(|(theirs, _)| *theirs);
            ours
        });
        let at = ours.binary_search_by_key(&theirs, |(theirs, _)| *theirs).ok()?;
        ours.get(at).map(|(_, ours)| *ours)
    }
}

impl std::fmt::Debug for ByScraper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByScraper").field("nodes", &self.theirs.len()).finish_non_exhaustive()
    }
}
