//! An expression as it was written: the grammar of XPath 1.0 with its abbreviations (2.5) spelled out.
//!
//! Chains of operators and steps are lists, so a long expression is not a deep one.

/// An expression (3).
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(f64),
    Literal(String),
    Variable(String),
    /// A call and the byte it stands at.
    Call(String, Vec<Expr>, usize),
    Or(Vec<Expr>),
    And(Vec<Expr>),
    /// Operators of one rank, from left to right.
    Chain(Box<Expr>, Vec<(Binary, Expr)>),
    /// Minus signs before an operand.
    Negate(Box<Expr>, usize),
    /// Operands and the byte of the first `|`.
    Union(Vec<Expr>, usize),
    Path(Path),
    /// An expression and its predicates (3.3), and the byte it stands at.
    Filter(Box<Expr>, Vec<Expr>, usize),
}

/// Operators that take the values of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A location path (2).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    pub(super) start: Start,
    pub(super) steps: Vec<Step>,
}

/// Where a path starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Start {
    Context,
    Root,
    /// The nodes of an expression, which stands at a byte.
    Expr(Box<Expr>, usize),
}

/// A step (2.1).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Vec<Expr>,
    /// The byte its node test stands at.
    pub(super) position: usize,
}

/// The axes (2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    /// Always empty: nodes of an HTML page declare no namespaces.
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    Itself,
}

impl Axis {
    /// The axis of a name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "ancestor" => Self::Ancestor,
            "ancestor-or-self" => Self::AncestorOrSelf,
            "attribute" => Self::Attribute,
            "child" => Self::Child,
            "descendant" => Self::Descendant,
            "descendant-or-self" => Self::DescendantOrSelf,
            "following" => Self::Following,
            "following-sibling" => Self::FollowingSibling,
            "namespace" => Self::Namespace,
            "parent" => Self::Parent,
            "preceding" => Self::Preceding,
            "preceding-sibling" => Self::PrecedingSibling,
            "self" => Self::Itself,
            _ => return None,
        })
    }
}

/// The node tests (2.3), names not looked up yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// `*`.
    Any,
    /// `prefix:*`.
    AnyOf(String),
    /// A name with or without prefix.
    Name(Option<String>, String),
    Node,
    Text,
    Comment,
    /// With a target or any.
    ProcessingInstruction(Option<String>),
}
