//! Texts: where a text lies, and how it grows.

use super::super::span::Span;
use super::{Arena, IS_LONG, Kind, MOST_SHORT, Node, NodeId};

impl Arena {
    /// The text of a text node, a comment or a processing instruction; empty for others.
    #[inline]
    pub(crate) fn data(&self, id: NodeId) -> Span {
        let node = self.node(id);
        match node.kind() {
            Kind::Text | Kind::Comment | Kind::ProcessingInstruction => self.span_of(node),
            Kind::Document | Kind::Element | Kind::Doctype => Span::EMPTY,
        }
    }

    #[inline]
    fn span_of(&self, node: &Node) -> Span {
        if node.head & IS_LONG == 0 {
            return Span::from_raw(node.data, node.head >> 8);
        }
        self.long.get(node.data as usize).copied().unwrap_or(Span::EMPTY)
    }

    /// The room of a text in the side buffer, as a power of two; 0 for none.
    fn room(&self, id: NodeId) -> u32 {
        let node = self.node(id);
        if node.head & IS_LONG == 0 { 0 } else { node.head >> 8 }
    }

    /// Adds to the text of a text node. In all it costs no more than a small multiple of what is added.
    pub(crate) fn add_text(&mut self, id: NodeId, more: Span) {
        let data = self.data(id);
        let is_adjoining = data.end() == more.start() && data.is_side() == more.is_side();
        let room = self.room(id);
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
        let node = *self.node(id);
        let (data, head) = if node.head & IS_LONG != 0 {
            if let Some(span) = self.long.get_mut(node.data as usize) {
                *span = Span::from_raw(start, len);
            }
            (node.data, room << 8 | IS_LONG)
        } else if room > 0 || len as usize > MOST_SHORT {
            (self.push_long(Span::from_raw(start, len)), room << 8 | IS_LONG)
        } else {
            (start, len << 8)
        };
        self.edit(id, |node| (node.data, node.head) = (data, head | Kind::Text as u32));
    }

    /// Keeps a span that its node has no room for; gives its place.
    #[allow(clippy::cast_possible_truncation, reason = "at most one for each node")]
    pub(super) fn push_long(&mut self, span: Span) -> u32 {
        if self.long.len() == self.long.capacity() {
            self.long.reserve_exact(self.more(self.long.len()));
        }
        self.long.push(span);
        (self.long.len() - 1) as u32
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
