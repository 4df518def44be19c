//! Texts: where a text lies, and how it grows.

use super::super::span::Span;
use super::{Arena, Kind, NodeId};

impl Arena {
    /// The text of a text node, a comment or a processing instruction; empty for others.
    #[inline]
    pub(crate) fn data(&self, id: NodeId) -> Span {
        let node = self.node(id);
        match node.kind() {
            Kind::Text | Kind::Comment | Kind::ProcessingInstruction => Span::from_raw(node.first, node.second),
            Kind::Document | Kind::Element | Kind::Doctype => Span::EMPTY,
        }
    }

    /// Adds to the text of a text node. In all it costs no more than a small multiple of what is added.
    pub(crate) fn add_text(&mut self, id: NodeId, more: Span) {
        let data = self.data(id);
        let is_adjoining = data.end() == more.start() && data.is_side() == more.is_side();
        let room = self.node(id).head >> 8;
        if is_adjoining && room == 0 {
            self.set_data(id, data, data.len() + more.len(), 0);
            return;
        }
        let len = data.len() + more.len();
        if data.is_side() && room == 0 && data.end() == self.side.len() {
            self.copy_aside(more);
            self.set_data(id, data, len, 0);
            return;
        }
        if room > 0 && len <= 1 << room {
            let bytes = self.bytes(more).to_vec();
            if let Some(place) = self.side.get_mut(data.end()..data.end() + bytes.len()) {
                place.copy_from_slice(&bytes);
                self.set_data(id, data, len, room);
            }
            return;
        }
        // Elsewhere: with as much room again if it had to move before, so that it seldom has to.
        let start = self.side.len();
        self.copy_aside(data);
        self.copy_aside(more);
        let room = if data.is_side() { (len * 2).next_power_of_two().trailing_zeros() } else { 0 };
        if room > 0 {
            self.side.resize(start + (1 << room), b' ');
        }
        self.set_data(id, Span::of_side(start, start), len, room);
    }

    fn set_data(&mut self, id: NodeId, at: Span, len: usize, room: u32) {
        #[allow(clippy::cast_possible_truncation, reason = "at most MOST_BYTES")]
        let (start, len) = (at.raw().0, len as u32);
        self.edit(id, |node| {
            node.first = start;
            node.second = len;
            node.head = room << 8 | Kind::Text as u32;
        });
    }

    /// Copies the bytes of a span to the end of the side buffer.
    pub(crate) fn copy_aside(&mut self, span: Span) {
        if span.is_side() {
            if span.end() <= self.side.len() {
                self.side.extend_from_within(span.start()..span.end());
            }
        } else {
            self.side.extend_from_slice(self.source.get(span.start()..span.end()).unwrap_or_default());
        }
    }
}
