//! An expression as it is evaluated: names looked up as far as they are the same on every page, predicates told apart by what
//! they need, and for each path what is known about the order of its nodes.

use super::ast::{Axis, Binary};
use super::functions::Function;
use super::regex::Pattern;
use crate::html::arena::Namespace;
use crate::html::names::NameId;

/// An expression.
#[derive(Debug)]
pub(super) enum Op {
    Number(f64),
    Literal(Box<str>),
    Variable(Box<str>),
    Call(Function, Box<[Op]>),
    /// A function of regular expressions whose pattern is a literal.
    Matching(Function, Box<[Op]>, Box<Pattern>),
    Or(Box<[Op]>),
    And(Box<[Op]>),
    Chain(Box<Op>, Box<[(Binary, Op)]>),
    /// The number of an operand; negated if there was an odd number of signs.
    Negate(Box<Op>, bool),
    Union(Box<[Op]>),
    Path(Path),
    Filter(Box<Op>, Box<[Predicate]>),
    /// An expression that has one value for the whole evaluation, and the place where it is kept.
    Kept(usize, Box<Op>),
}

/// A location path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) start: Start,
    pub(super) steps: Box<[Step]>,
    /// How its nodes come when it is walked node by node instead of step by step.
    pub(super) walk: Walk,
}

/// Where a path starts.
#[derive(Debug)]
pub(super) enum Start {
    Context,
    Root,
    Op(Box<Op>),
}

/// Whether a path can be walked depth first: each node on the way is reached once then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// It cannot: nodes would come more than once.
    No,
    /// Each node comes once, in any order.
    Once,
    /// Each node comes once, in document order.
    Ordered,
}

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Box<[Predicate]>,
    /// Whether a predicate depends on the position of a node: the nodes of each context node must be kept apart then.
    pub(super) is_positional: bool,
    /// The first predicate that has to know how many nodes there are, if any.
    pub(super) needs_size: Option<usize>,
    /// Whether the nodes of the step may come out of order or more than once.
    pub(super) needs_sort: bool,
}

/// A name of the expression: its id if that is the same on every page, else its place in the list of names to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Known(NameId),
    Listed(usize),
}

/// A node test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Elements or, on the attribute axis, attributes of any name.
    Any,
    /// Nodes that may have children.
    Parent,
    /// Elements of a namespace.
    Namespace(Namespace),
    /// Elements of this name in lower case, whatever their namespace.
    Element(Name),
    /// HTML elements of the first name, others of the second: the name was not written in lower case.
    ElementOfCase(Name, Name),
    ElementIn(Namespace, Name),
    /// Attributes of this name.
    Attr(Name),
    /// Attributes of the first name on HTML elements, of the second on others.
    AttrOfCase(Name, Name),
    Node,
    Text,
    Comment,
    Instruction,
    InstructionOf(Name),
    /// No node at all: names in namespaces a page has no nodes in.
    Nothing,
}

/// A predicate.
#[derive(Debug)]
pub(super) enum Predicate {
    /// `[3]`.
    Index(f64),
    /// `[last()]`.
    Last,
    /// `[@name]`.
    HasAttr(Test),
    /// `[@name = "text"]`.
    AttrIs(Test, Box<str>),
    /// True or false whatever the position.
    Plain(Op),
    /// True or false, by position or size.
    Positional { op: Op, needs_size: bool },
    /// A number, which is compared with the position.
    Number { op: Op, needs_size: bool },
    /// Of a kind known only when it is evaluated: a variable.
    Any { op: Op, needs_size: bool },
}

impl Predicate {
    /// Whether it depends on the position of a node.
    pub(super) const fn is_positional(&self) -> bool {
        !matches!(self, Self::HasAttr(_) | Self::AttrIs(..) | Self::Plain(_))
    }

    /// Whether it has to know how many nodes there are.
    pub(super) const fn needs_size(&self) -> bool {
        matches!(
            self,
            Self::Last
                | Self::Positional { needs_size: true, .. }
                | Self::Number { needs_size: true, .. }
                | Self::Any { needs_size: true, .. }
        )
    }
}
