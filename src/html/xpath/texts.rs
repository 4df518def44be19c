//! The string-values of all elements of a page as parts of one text: made when an evaluation asks for so many of them that
//! each text would be copied again and again.

use crate::html::arena::{Arena, NodeId};

/// All text of a page, and where in it the text below each node lies.
#[derive(Debug)]
pub(super) struct Texts {
    all: String,
    /// For each node and one behind the last: how much text comes before it.
    starts: Vec<u32>,
    /// For each node the index of the first node behind its subtree.
    ends: Vec<u32>,
}

impl Texts {
    /// For a page whose ids ascend in document order. `None` if it has more text than `most` bytes.
    #[allow(clippy::cast_possible_truncation, reason = "at most 2³¹ nodes, and most is checked")]
    pub(super) fn new(arena: &Arena, most: usize) -> Option<Self> {
        let len = arena.len();
        let texts = || (0..len).map(NodeId::at).map(|id| if arena.is_text(id) { arena.text(arena.data(id)) } else { "" });
        let bytes: usize = texts().map(str::len).sum();
        if bytes > most.min(u32::MAX as usize) {
            return None;
        }
        let mut all = String::with_capacity(bytes);
        let mut starts = Vec::with_capacity(len + 1);
        let mut ends: Vec<u32> = Vec::with_capacity(len);
        for (index, text) in texts().enumerate() {
            let id = NodeId::at(index);
            starts.push(all.len() as u32);
            all.push_str(text);
            let next = arena.next(id);
            // A parent comes before its children, so its end is known.
            let end = if next.is_some() {
                next.index() as u32
            } else {
                ends.get(arena.parent(id).index()).copied().unwrap_or(len as u32)
            };
            ends.push(end);
        }
        starts.push(all.len() as u32);
        Some(Self { all, starts, ends })
    }

    /// The text below a node.
    pub(super) fn below(&self, id: NodeId) -> &str {
        let start = self.starts.get(id.index()).copied().unwrap_or(0);
        let end = self.ends.get(id.index()).and_then(|end| self.starts.get(*end as usize)).copied().unwrap_or(start);
        self.all.get(start as usize..end as usize).unwrap_or_default()
    }
}
