//! The grammar of XPath 1.0 (2, 3) as a parser that climbs the ranks of operators; it recurses on the nesting of the expression
//! only, and not deeper than [`MOST_DEPTH`].

use super::ast::{Axis, Binary, Expr, Path, Start, Step, Test};
use super::error::{XPathError, quote};
use super::eval::Res;
use super::lexer::{Kind, Operator, Token, tokens};

/// The longest expression in bytes; real ones have some hundred.
pub(super) const MOST_BYTES: usize = 64 * 1024;
/// The deepest nesting of brackets, calls and operators of rising rank.
pub(super) const MOST_DEPTH: usize = 50;

/// Parses a whole expression.
pub(super) fn parse(text: &str) -> Res<Expr> {
    if text.len() > MOST_BYTES {
        return Err(XPathError::Length { expression: quote(text, 0), found: text.len(), most: MOST_BYTES }.into());
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, at: 0, depth: 0 };
    let expr = parser.expr(Rank::Or)?;
    if parser.peek().is_some() {
        return Err(parser.error("an operator, / or [, or the end"));
    }
    Ok(expr)
}

/// Ranks of operators, from the loosest to the tightest (3.4, 3.5); union and paths bind tighter still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Or,
    And,
    Equality,
    Relation,
    Sum,
    Product,
    Operand,
}

impl Rank {
    const fn above(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Equality,
            Self::Equality => Self::Relation,
            Self::Relation => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Operand => Self::Operand,
        }
    }
}

/// The rank of an operator between two operands, and what it does if it takes both values.
const fn rank(operator: Operator) -> Option<(Rank, Option<Binary>)> {
    Some(match operator {
        Operator::Or => (Rank::Or, None),
        Operator::And => (Rank::And, None),
        Operator::Equal => (Rank::Equality, Some(Binary::Equal)),
        Operator::NotEqual => (Rank::Equality, Some(Binary::NotEqual)),
        Operator::Less => (Rank::Relation, Some(Binary::Less)),
        Operator::LessEqual => (Rank::Relation, Some(Binary::LessEqual)),
        Operator::Greater => (Rank::Relation, Some(Binary::Greater)),
        Operator::GreaterEqual => (Rank::Relation, Some(Binary::GreaterEqual)),
        Operator::Plus => (Rank::Sum, Some(Binary::Add)),
        Operator::Minus => (Rank::Sum, Some(Binary::Subtract)),
        Operator::Multiply => (Rank::Product, Some(Binary::Multiply)),
        Operator::Div => (Rank::Product, Some(Binary::Divide)),
        Operator::Mod => (Rank::Product, Some(Binary::Modulo)),
        Operator::Slash | Operator::SlashSlash | Operator::Union => return None,
    })
}

const OPERAND: &str = "a path, a function call, a number, a string in quotes, $name or (";
const STEP: &str = "a name, *, @name, axis::name, a node type such as text(), . or ..";

struct Parser<'p, 't> {
    text: &'t str,
    tokens: &'p [Token<'t>],
    at: usize,
    depth: usize,
}

impl<'t> Parser<'_, 't> {
    fn peek(&self) -> Option<Kind<'t>> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn position(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.len(), |token| token.start)
    }

    fn error(&self, allowed: &str) -> Box<XPathError> {
        let (position, found) = match self.tokens.get(self.at) {
            Some(token) => {
                let text = self.text.get(token.start..token.end).unwrap_or_default();
                (token.start, format!("{:?}", text.chars().take(40).collect::<String>()))
            }
            None => (self.text.len(), "the end".to_owned()),
        };
        Box::new(XPathError::Syntax { expression: quote(self.text, position), position, found, allowed: allowed.to_owned() })
    }

    fn eat(&mut self, kind: Kind<'_>) -> bool {
        let is_it = self.peek() == Some(kind);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, kind: Kind<'_>, allowed: &str) -> Res<()> {
        if self.eat(kind) { Ok(()) } else { Err(self.error(allowed)) }
    }

    /// Operators of `lowest` rank or tighter ones (14, 21 to 27).
    fn expr(&mut self, lowest: Rank) -> Res<Expr> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            let position = self.position();
            return Err(XPathError::Depth { expression: quote(self.text, position), position, most: MOST_DEPTH }.into());
        }
        let mut left = self.unary()?;
        // Operators come in falling rank here: a tighter one on the right is taken by the call for the operand.
        let mut highest = Rank::Operand;
        while let Some(Kind::Operator(operator)) = self.peek()
            && let Some((rank, _)) = rank(operator)
            && rank >= lowest
            && rank < highest
        {
            left = self.chain(left, rank)?;
            highest = rank;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// All operands of operators of one rank, from left to right.
    fn chain(&mut self, first: Expr, of: Rank) -> Res<Expr> {
        let mut rest = Vec::new();
        while let Some(Kind::Operator(operator)) = self.peek()
            && let Some((rank, binary)) = rank(operator)
            && rank == of
        {
            self.at += 1;
            rest.push((binary, self.expr(of.above())?));
        }
        Ok(match of {
            Rank::Or => Expr::Or(std::iter::once(first).chain(rest.into_iter().map(|(_, expr)| expr)).collect()),
            Rank::And => Expr::And(std::iter::once(first).chain(rest.into_iter().map(|(_, expr)| expr)).collect()),
            _ => {
                let rest = rest.into_iter().filter_map(|(binary, expr)| binary.map(|binary| (binary, expr))).collect();
                Expr::Chain(Box::new(first), rest)
            }
        })
    }

    /// Production 27, and 18 behind the signs.
    fn unary(&mut self) -> Res<Expr> {
        let mut signs = 0;
        while self.eat(Kind::Operator(Operator::Minus)) {
            signs += 1;
        }
        let operand = self.union()?;
        Ok(if signs > 0 { Expr::Negate(Box::new(operand), signs) } else { operand })
    }

    fn union(&mut self) -> Res<Expr> {
        let first = self.path()?;
        let position = self.position();
        if self.peek() != Some(Kind::Operator(Operator::Union)) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.eat(Kind::Operator(Operator::Union)) {
            all.push(self.path()?);
        }
        Ok(Expr::Union(all, position))
    }

    /// Productions 1 to 3 and 19: a location path, or an expression with predicates and steps behind it.
    fn path(&mut self) -> Res<Expr> {
        match self.peek() {
            Some(Kind::Operator(Operator::Slash)) => {
                self.at += 1;
                let mut steps = Vec::new();
                if self.is_step() {
                    self.steps(&mut steps)?;
                }
                Ok(Expr::Path(Path { start: Start::Root, steps }))
            }
            Some(Kind::Operator(Operator::SlashSlash)) => {
                let mut steps = Vec::new();
                self.more_steps(&mut steps)?;
                Ok(Expr::Path(Path { start: Start::Root, steps }))
            }
            _ if self.is_step() => {
                let mut steps = Vec::new();
                self.steps(&mut steps)?;
                Ok(Expr::Path(Path { start: Start::Context, steps }))
            }
            _ => self.filter(),
        }
    }

    /// Production 20, and the steps behind it.
    fn filter(&mut self) -> Res<Expr> {
        let position = self.position();
        let mut expr = self.primary()?;
        let predicates = self.predicates()?;
        if !predicates.is_empty() {
            expr = Expr::Filter(Box::new(expr), predicates, position);
        }
        if matches!(self.peek(), Some(Kind::Operator(Operator::Slash | Operator::SlashSlash))) {
            let mut steps = Vec::new();
            self.more_steps(&mut steps)?;
            expr = Expr::Path(Path { start: Start::Expr(Box::new(expr), position), steps });
        }
        Ok(expr)
    }

    /// Production 15.
    fn primary(&mut self) -> Res<Expr> {
        let position = self.position();
        let Some(kind) = self.peek() else { return Err(self.error(OPERAND)) };
        let expr = match kind {
            Kind::Number(number) => Expr::Number(number),
            Kind::Literal(text) => Expr::Literal(text.to_owned()),
            Kind::Variable(name) => Expr::Variable(name.to_owned()),
            Kind::OpenParen => {
                self.at += 1;
                let inside = self.expr(Rank::Or)?;
                self.expect(Kind::CloseParen, "an operator or )")?;
                return Ok(inside);
            }
            Kind::Function(name) => {
                self.at += 1;
                let arguments = self.arguments()?;
                return Ok(Expr::Call(name.to_owned(), arguments, position));
            }
            _ => return Err(self.error(OPERAND)),
        };
        self.at += 1;
        Ok(expr)
    }

    /// Production 16 from the bracket on.
    fn arguments(&mut self) -> Res<Vec<Expr>> {
        self.expect(Kind::OpenParen, "(")?;
        let mut all = Vec::new();
        if self.eat(Kind::CloseParen) {
            return Ok(all);
        }
        loop {
            all.push(self.expr(Rank::Or)?);
            if self.eat(Kind::CloseParen) {
                return Ok(all);
            }
            self.expect(Kind::Comma, "an operator, a comma or )")?;
        }
    }

    fn predicates(&mut self) -> Res<Vec<Expr>> {
        let mut all = Vec::new();
        while self.eat(Kind::OpenBracket) {
            all.push(self.expr(Rank::Or)?);
            self.expect(Kind::CloseBracket, "an operator or ]")?;
        }
        Ok(all)
    }

    fn is_step(&self) -> bool {
        matches!(
            self.peek(),
            Some(
                Kind::Dot
                    | Kind::DotDot
                    | Kind::At
                    | Kind::Star
                    | Kind::PrefixStar(_)
                    | Kind::Name(..)
                    | Kind::NodeType(_)
                    | Kind::Axis(_)
            )
        )
    }

    /// A step and all behind it.
    fn steps(&mut self, steps: &mut Vec<Step>) -> Res<()> {
        steps.push(self.step()?);
        self.more_steps(steps)
    }

    /// Steps as long as `/` or `//` comes.
    fn more_steps(&mut self, steps: &mut Vec<Step>) -> Res<()> {
        loop {
            let position = self.position();
            if self.eat(Kind::Operator(Operator::SlashSlash)) {
                steps.push(Step { axis: Axis::DescendantOrSelf, test: Test::Node, predicates: Vec::new(), position });
            } else if !self.eat(Kind::Operator(Operator::Slash)) {
                return Ok(());
            }
            steps.push(self.step()?);
        }
    }

    /// Productions 4 to 7 and 12, 13.
    fn step(&mut self) -> Res<Step> {
        let position = self.position();
        let abbreviated = |axis| Step { axis, test: Test::Node, predicates: Vec::new(), position };
        let axis = match self.peek() {
            Some(Kind::Dot) => {
                self.at += 1;
                return Ok(abbreviated(Axis::Itself));
            }
            Some(Kind::DotDot) => {
                self.at += 1;
                return Ok(abbreviated(Axis::Parent));
            }
            Some(Kind::At) => {
                self.at += 1;
                Axis::Attribute
            }
            Some(Kind::Axis(name)) => {
                let Some(axis) = Axis::of_name(name) else {
                    return Err(self.error(
                        "an axis: child, descendant, parent, ancestor, following-sibling, preceding-sibling, following, \
                         preceding, attribute, self, descendant-or-self, ancestor-or-self or namespace",
                    ));
                };
                self.at += 1;
                self.expect(Kind::ColonColon, "::")?;
                axis
            }
            _ => Axis::Child,
        };
        let position = self.position();
        let test = self.test()?;
        Ok(Step { axis, test, predicates: self.predicates()?, position })
    }

    fn test(&mut self) -> Res<Test> {
        let test = match self.peek() {
            Some(Kind::Star) => Test::Any,
            Some(Kind::PrefixStar(prefix)) => Test::AnyOf(prefix.to_owned()),
            Some(Kind::Name(prefix, local)) => Test::Name(prefix.map(str::to_owned), local.to_owned()),
            Some(Kind::NodeType(name)) => {
                self.at += 1;
                self.expect(Kind::OpenParen, "(")?;
                let target = match (name, self.peek()) {
                    ("processing-instruction", Some(Kind::Literal(target))) => {
                        self.at += 1;
                        Some(target.to_owned())
                    }
                    _ => None,
                };
                self.expect(Kind::CloseParen, ")")?;
                return Ok(match name {
                    "text" => Test::Text,
                    "comment" => Test::Comment,
                    "processing-instruction" => Test::ProcessingInstruction(target),
                    _ => Test::Node,
                });
            }
            _ => return Err(self.error(STEP)),
        };
        self.at += 1;
        Ok(test)
    }
}
