//! A node: 20 bytes, whatever it is. The few that need more say where it lies.

/// A node of a page, by its place in the arena. The document itself is [`NodeId::DOCUMENT`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    /// No node.
    pub(crate) const NONE: Self = Self(u32::MAX);
    /// The root of every tree.
    pub(crate) const DOCUMENT: Self = Self(0);

    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// `None` for [`NodeId::NONE`].
    #[inline]
    pub(crate) const fn some(self) -> Option<Self> {
        if self.is_some() { Some(self) } else { None }
    }

    /// The place in the arena.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "an arena has at most as many nodes as its source and its limits allow")]
    pub(crate) const fn at(index: usize) -> Self {
        Self(index as u32)
    }
}

impl std::fmt::Debug for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_some() { write!(f, "#{}", self.0) } else { f.write_str("#-") }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Document,
    Element,
    Text,
    Comment,
    ProcessingInstruction,
    Doctype,
}

/// The namespace of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Namespace {
    /// `http://www.w3.org/1999/xhtml`.
    #[default]
    Html,
    /// `http://www.w3.org/2000/svg`.
    Svg,
    /// `http://www.w3.org/1998/Math/MathML`.
    MathMl,
}

/// Element or document: its first child is the node made right after it.
pub(super) const CHILD_IS_NEXT: u32 = 1 << 6;
/// Element or document: its first child and its attributes are told by a [`Far`].
pub(super) const IS_FAR: u32 = 1 << 7;
/// Others: the span is one of the arena's list of them.
pub(super) const IS_LONG: u32 = 1 << 4;
/// The most bytes of a text whose length is told by its node.
pub(super) const MOST_SHORT: usize = (1 << 24) - 1;

/// A node: 20 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) parent: NodeId,
    /// The sibling before; of a first child the last child of its parent.
    pub(super) prev: NodeId,
    pub(super) next: NodeId,
    /// Element: where its attributes start, or the place of its [`Far`]. Others: start of the span, or its place in the list.
    pub(super) data: u32,
    /// Kind (low 4 bits), namespace (next 2; of others one for [`IS_LONG`]) and the two bits about the first child, below the
    /// name of an element or target (24 bits); of others the length of the span, or the room a text has in the side buffer, as
    /// a power of two.
    pub(super) head: u32,
}

/// What an element has whose first child is not the node made right after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Far {
    pub(super) first: NodeId,
    pub(super) attrs: u32,
}

pub(super) const NODE: Node =
    Node { parent: NodeId::NONE, prev: NodeId::NONE, next: NodeId::NONE, data: u32::MAX, head: Kind::Doctype as u32 };

pub(super) static NOWHERE: Node = NODE;

impl Node {
    #[inline]
    pub(super) const fn kind(&self) -> Kind {
        match self.head & 0xf {
            0 => Kind::Document,
            1 => Kind::Element,
            2 => Kind::Text,
            3 => Kind::Comment,
            4 => Kind::ProcessingInstruction,
            _ => Kind::Doctype,
        }
    }
}
