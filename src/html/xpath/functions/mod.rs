//! The functions: those of the core library (XPath 1.0, 4), `re:` and `set:` of EXSLT, and parsel's `has-class`; what they
//! take, what they give, and which of them look at the context.

mod core_boolean;
mod core_node;
pub(super) mod core_number;
mod core_string;
mod has_class;
mod sets;

use super::error::XPathError;
use super::eval::{Context, Eval, Res};
use super::plan::Op;
use super::value::Val;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Last,
    Position,
    Count,
    Id,
    LocalName,
    NamespaceUri,
    Name,
    String,
    Concat,
    StartsWith,
    Contains,
    SubstringBefore,
    SubstringAfter,
    Substring,
    StringLength,
    NormalizeSpace,
    Translate,
    Boolean,
    Not,
    True,
    False,
    Lang,
    Number,
    Sum,
    Floor,
    Ceiling,
    Round,
    ReTest,
    ReMatch,
    ReReplace,
    SetDifference,
    SetIntersection,
    SetDistinct,
    SetHasSameNode,
    SetLeading,
    SetTrailing,
    HasClass,
}

/// The kind of a value as far as the expression tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nodes,
    String,
    Number,
    Boolean,
    /// Matches of `re:match`.
    Strings,
    /// A variable.
    Any,
}

impl Kind {
    /// Whether it can stand where a node-set must.
    pub(super) const fn may_be_nodes(self) -> bool {
        matches!(self, Self::Nodes | Self::Strings | Self::Any)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nodes => "node-set",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Strings => "set of matches",
            Self::Any => "variable",
        }
    }
}

/// What a function takes and gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) fewest: usize,
    pub(super) most: usize,
    /// How many of the first arguments must be node-sets.
    pub(super) node_sets: usize,
    pub(super) gives: Kind,
    /// Whether it looks at the context node.
    pub(super) context: Looks,
}

/// When a function looks at the context node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    Never,
    WithoutArguments,
    Always,
}

impl Function {
    const ALL: [Self; 37] = [
        Self::Last,
        Self::Position,
        Self::Count,
        Self::Id,
        Self::LocalName,
        Self::NamespaceUri,
        Self::Name,
        Self::String,
        Self::Concat,
        Self::StartsWith,
        Self::Contains,
        Self::SubstringBefore,
        Self::SubstringAfter,
        Self::Substring,
        Self::StringLength,
        Self::NormalizeSpace,
        Self::Translate,
        Self::Boolean,
        Self::Not,
        Self::True,
        Self::False,
        Self::Lang,
        Self::Number,
        Self::Sum,
        Self::Floor,
        Self::Ceiling,
        Self::Round,
        Self::ReTest,
        Self::ReMatch,
        Self::ReReplace,
        Self::SetDifference,
        Self::SetIntersection,
        Self::SetDistinct,
        Self::SetHasSameNode,
        Self::SetLeading,
        Self::SetTrailing,
        Self::HasClass,
    ];

    /// The function of a name, case and prefix as written.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.signature().name == name)
    }

    pub(super) const fn signature(self) -> Signature {
        use Kind::{Boolean, Nodes, Number, String, Strings};
        use Looks::{Always, Never, WithoutArguments};
        const MANY: usize = usize::MAX;
        let (name, fewest, most, node_sets, gives, context) = match self {
            Self::Last => ("last", 0, 0, 0, Number, Never),
            Self::Position => ("position", 0, 0, 0, Number, Never),
            Self::Count => ("count", 1, 1, 1, Number, Never),
            Self::Id => ("id", 1, 1, 0, Nodes, Never),
            Self::LocalName => ("local-name", 0, 1, 1, String, WithoutArguments),
            Self::NamespaceUri => ("namespace-uri", 0, 1, 1, String, WithoutArguments),
            Self::Name => ("name", 0, 1, 1, String, WithoutArguments),
            Self::String => ("string", 0, 1, 0, String, WithoutArguments),
            Self::Concat => ("concat", 2, MANY, 0, String, Never),
            Self::StartsWith => ("starts-with", 2, 2, 0, Boolean, Never),
            Self::Contains => ("contains", 2, 2, 0, Boolean, Never),
            Self::SubstringBefore => ("substring-before", 2, 2, 0, String, Never),
            Self::SubstringAfter => ("substring-after", 2, 2, 0, String, Never),
            Self::Substring => ("substring", 2, 3, 0, String, Never),
            Self::StringLength => ("string-length", 0, 1, 0, Number, WithoutArguments),
            Self::NormalizeSpace => ("normalize-space", 0, 1, 0, String, WithoutArguments),
            Self::Translate => ("translate", 3, 3, 0, String, Never),
            Self::Boolean => ("boolean", 1, 1, 0, Boolean, Never),
            Self::Not => ("not", 1, 1, 0, Boolean, Never),
            Self::True => ("true", 0, 0, 0, Boolean, Never),
            Self::False => ("false", 0, 0, 0, Boolean, Never),
            Self::Lang => ("lang", 1, 1, 0, Boolean, Always),
            Self::Number => ("number", 0, 1, 0, Number, WithoutArguments),
            Self::Sum => ("sum", 1, 1, 1, Number, Never),
            Self::Floor => ("floor", 1, 1, 0, Number, Never),
            Self::Ceiling => ("ceiling", 1, 1, 0, Number, Never),
            Self::Round => ("round", 1, 1, 0, Number, Never),
            Self::ReTest => ("re:test", 2, 3, 0, Boolean, Never),
            Self::ReMatch => ("re:match", 2, 3, 0, Strings, Never),
            Self::ReReplace => ("re:replace", 4, 4, 0, String, Never),
            Self::SetDifference => ("set:difference", 2, 2, 2, Nodes, Never),
            Self::SetIntersection => ("set:intersection", 2, 2, 2, Nodes, Never),
            Self::SetDistinct => ("set:distinct", 1, 1, 1, Nodes, Never),
            Self::SetHasSameNode => ("set:has-same-node", 2, 2, 2, Boolean, Never),
            Self::SetLeading => ("set:leading", 2, 2, 2, Nodes, Never),
            Self::SetTrailing => ("set:trailing", 2, 2, 2, Nodes, Never),
            Self::HasClass => ("has-class", 1, MANY, 0, Boolean, Always),
        };
        Signature { name, fewest, most, node_sets, gives, context }
    }
}

impl<'e> Eval<'e> {
    /// Calls a function. The number of arguments was checked when the expression was compiled.
    pub(super) fn call(&self, function: Function, args: &'e [Op], context: Context) -> Res<Val<'e>> {
        self.charge(1)?;
        match function.signature().gives {
            Kind::Boolean => self.call_boolean(function, args, context).map(Val::Boolean),
            Kind::Number => self.call_number(function, args, context).map(Val::Number),
            Kind::String => self.call_string(function, args, context).map(Val::String),
            Kind::Nodes | Kind::Strings | Kind::Any => self.call_nodes(function, args, context),
        }
    }

    /// The error of a value that should be a node-set.
    pub(super) fn not_nodes(place: &str, found: &Val<'_>) -> XPathError {
        XPathError::Kind { place: place.to_owned(), found: found.kind(), allowed: "node-set" }
    }
}
