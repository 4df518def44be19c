//! Form owners that the tree does not show (WHATWG HTML 13.2.6.1, "create an element for a token"): a control belongs to the form
//! that is open for the parser, which need not be around it: `<table><form><tr><td><input>`.

use super::Builder;
use crate::html::arena::NodeId;
use crate::html::names::known::TEMPLATE;

/// How far up a form is looked for, before it is noted whether or not the tree shows it.
const NEAR: usize = 12;

impl Builder {
    /// Notes the form of a new control. One with a `form` attribute is noted as well: that attribute goes first when it is asked.
    #[inline]
    pub(in crate::html) fn note_owner(&mut self, control: NodeId) {
        // In a fragment the form may be outside of it.
        if self.form.is_some() && self.form != NodeId::DOCUMENT {
            self.note_owner_of(control);
        }
    }

    #[inline(never)]
    fn note_owner_of(&mut self, control: NodeId) {
        let around = std::iter::successors(Some(control), |node| self.arena.parent(*node).some());
        let is_seen = around.take(NEAR).any(|node| node == self.form);
        if !is_seen && self.stack.count(TEMPLATE) == 0 {
            self.owners.push((control, self.form));
        }
    }

    pub(in crate::html) fn owners_bytes(&self) -> usize {
        self.owners.capacity() * size_of::<(NodeId, NodeId)>()
    }
}
