//! What is wrong with an expression, and what an evaluation may not do.

/// Bytes of the expression quoted to each side of the place of an error.
const QUOTED: usize = 60;

/// Why an XPath expression cannot be used, or gave no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum XPathError {
    /// The expression does not follow the grammar of XPath 1.0.
    #[error("xpath at byte {position} of {expression:?}: found {found}, allowed here: {allowed}")]
    Syntax {
        /// The expression, or what surrounds the place in a long one.
        expression: String,
        /// Where, in bytes from the start of the whole expression.
        position: usize,
        /// What stands there.
        found: String,
        /// What could stand there.
        allowed: String,
    },
    /// The expression is longer than the bound.
    #[error("xpath of {found} bytes, {expression:?}: allowed are {most}; evaluate it in parts")]
    Length {
        /// How the expression begins.
        expression: String,
        /// Its length in bytes.
        found: usize,
        /// The bound in bytes.
        most: usize,
    },
    /// Brackets, calls or operators are nested deeper than the bound.
    #[error("xpath at byte {position} of {expression:?}: nested more than {most} deep; evaluate it in parts")]
    Depth {
        /// The expression, or what surrounds the place in a long one.
        expression: String,
        /// Where the bound was met, in bytes.
        position: usize,
        /// The bound.
        most: usize,
    },
    /// No function has this name.
    #[error(
        "xpath at byte {position} of {expression:?}: there is no function {name}(); allowed are those of XPath 1.0, re:test, \
         re:match, re:replace, set:… of EXSLT and has-class"
    )]
    UnknownFunction {
        /// The expression, or what surrounds the place in a long one.
        expression: String,
        /// Where, in bytes.
        position: usize,
        /// The name.
        name: String,
    },
    /// A function has too many or too few arguments, or one of a kind it cannot take.
    #[error("xpath at byte {position} of {expression:?}: {function}() has {found}, allowed: {allowed}")]
    Arguments {
        /// The expression, or what surrounds the place in a long one.
        expression: String,
        /// Where, in bytes.
        position: usize,
        /// The function's name.
        function: String,
        /// What it was given.
        found: String,
        /// What it takes.
        allowed: String,
    },
    /// A name has a prefix that stands for no namespace.
    #[error(
        "xpath at byte {position} of {expression:?}: prefix {prefix:?} stands for no namespace; elements of HTML are named \
         without prefix, svg: and math: for elements and xml:, xlink:, xmlns: for attributes are known"
    )]
    UnknownPrefix {
        /// The expression, or what surrounds the place in a long one.
        expression: String,
        /// Where, in bytes.
        position: usize,
        /// The prefix.
        prefix: String,
    },
    /// A variable has no value.
    #[error("xpath variable ${name} has no value; give it one with the call")]
    UndefinedVariable {
        /// Its name.
        name: String,
    },
    /// A value is of another kind than its place asks for.
    #[error("xpath: {place} is a {found}, allowed is a {allowed}")]
    Kind {
        /// Where the value is used.
        place: String,
        /// The kind it is.
        found: &'static str,
        /// The kind it should be.
        allowed: &'static str,
    },
    /// `position()` or `last()` stands outside of a predicate.
    #[error("xpath: {function}() outside of a predicate has no meaning; use it between [ and ]")]
    NoPosition {
        /// The function.
        function: &'static str,
    },
    /// A regular expression cannot be compiled.
    #[error("xpath: regular expression {pattern:?} cannot be used: {reason}")]
    Pattern {
        /// The regular expression.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The evaluation would visit more nodes than it may.
    #[error("xpath evaluation stopped after {steps} steps, which is the bound for this page; narrow the expression")]
    Budget {
        /// The bound.
        steps: u64,
    },
    /// The evaluation would build a longer string than it may.
    #[error("xpath evaluation would build a string of more than {most} bytes, which is the bound; narrow the expression")]
    StringLength {
        /// The bound in bytes.
        most: usize,
    },
}

impl XPathError {
    /// Whether the expression itself is wrong, or a regular expression it makes: trying again does not help.
    #[cfg(test)]
    pub(crate) fn is_in_expression(&self) -> bool {
        !matches!(self, Self::UndefinedVariable { .. } | Self::Kind { .. } | Self::Budget { .. } | Self::StringLength { .. })
    }
}

/// The expression as an error quotes it: whole if short, else what surrounds the place.
pub(super) fn quote(expression: &str, position: usize) -> String {
    let start = expression.floor_char_boundary(position.saturating_sub(QUOTED));
    let end = expression.floor_char_boundary(position.saturating_add(QUOTED));
    let middle = expression.get(start..end).unwrap_or_default();
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{middle}{}", dots(start > 0), dots(end < expression.len()))
}
