//! Passes over the nodes by their number: what selectors ask first of every node, in loops that do nothing else.

use std::ops::Range;

use super::super::names::NameId;
use super::super::span::Span;
use super::attrs::LAST;
use super::{Arena, Kind, NodeId};

/// All of a head but the namespace.
const NAME_AND_KIND: u32 = !0xf0;

/// Attributes of one element that are looked at in one step.
const ATTRS_A_STEP: u64 = 4;

impl Arena {
    /// The first element among `ids`.
    #[inline]
    pub(crate) fn find_element(&self, ids: Range<usize>) -> Option<NodeId> {
        let start = ids.start;
        let place = self.nodes.get(ids)?.iter().position(|node| node.head & 0xf == Kind::Element as u32)?;
        Some(NodeId::at(start + place))
    }

    /// The first element of this name among `ids`, whatever its namespace.
    #[inline]
    pub(crate) fn find_named(&self, ids: Range<usize>, name: NameId) -> Option<NodeId> {
        let start = ids.start;
        let wanted = name.to_bits() << 8 | Kind::Element as u32;
        let place = self.nodes.get(ids)?.iter().position(|node| node.head & NAME_AND_KIND == wanted)?;
        Some(NodeId::at(start + place))
    }

    /// The first element among `ids` whose attribute of this name has a value that `is_it`. Counts the steps it takes for long
    /// lists; stops at any element when they are more than `most`.
    #[inline]
    pub(crate) fn find_with_attr(
        &self,
        ids: Range<usize>,
        name: NameId,
        steps: &mut u64,
        most: u64,
        mut is_it: impl FnMut(Span) -> bool,
    ) -> Option<NodeId> {
        let start = ids.start;
        for (place, node) in self.nodes.get(ids)?.iter().enumerate() {
            if node.head & 0xf != Kind::Element as u32 || node.data == u32::MAX {
                continue;
            }
            let list = self.list_of(node);
            if list.is_empty() {
                continue;
            }
            let mut seen = 0;
            for attr in self.attrs.get(list.0 as usize..).unwrap_or_default() {
                if attr.name & !LAST == name.to_bits() {
                    if is_it(attr.value) {
                        return Some(NodeId::at(start + place));
                    }
                    break;
                }
                seen += 1;
                if attr.name & LAST != 0 {
                    break;
                }
            }
            if seen >= ATTRS_A_STEP {
                *steps += seen / ATTRS_A_STEP;
                if *steps > most {
                    return Some(NodeId::at(start + place));
                }
            }
        }
        None
    }
}
