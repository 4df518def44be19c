//! From an expression as written to one that is evaluated: functions and names looked up, `//` joined with the step behind it,
//! predicates told apart, and what is the same for every node of a predicate marked to be computed once.

use super::ast::{self, Axis, Binary, Expr};
use super::error::{XPathError, quote};
use super::eval::Res;
use super::functions::{Function, Kind, Looks};
use super::order::{is_dot, join, order};
use super::plan::{Name, Op, Path, Predicate, Start, Step, Test};
use super::regex::Pattern;
use crate::html::arena::Namespace;
use crate::html::names::NameId;

/// Prefixes that stand for something, though no node has a name in it: EXSLT's, as parsel declares them.
const EXTENSIONS: [&str; 2] = ["re", "set"];

/// A compiled expression without its text.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) op: Op,
    /// Names to look up on each page.
    pub(super) names: Vec<Box<str>>,
    /// How many values are kept.
    pub(super) kept: usize,
}

/// Compiles what was parsed from `text`.
pub(super) fn compile(text: &str, expr: &Expr) -> Res<Plan> {
    let mut compiler = Compiler { text, names: Vec::new(), kept: 0, predicates: 0 };
    let (op, _) = compiler.expr(expr)?;
    Ok(Plan { op, names: compiler.names, kept: compiler.kept })
}

/// What an expression depends on.
#[derive(Clone, Copy, Debug)]
struct Facts {
    kind: Kind,
    position: bool,
    size: bool,
    node: bool,
    /// Whether it visits nodes.
    is_costly: bool,
}

impl Facts {
    const fn of(kind: Kind) -> Self {
        Self { kind, position: false, size: false, node: false, is_costly: false }
    }

    /// With what a part depends on.
    const fn and(self, part: Self) -> Self {
        Self {
            kind: self.kind,
            position: self.position || part.position,
            size: self.size || part.size,
            node: self.node || part.node,
            is_costly: self.is_costly || part.is_costly,
        }
    }

    const fn is_constant(self) -> bool {
        !self.position && !self.size && !self.node
    }
}

struct Compiler<'t> {
    text: &'t str,
    names: Vec<Box<str>>,
    kept: usize,
    /// How many predicates the expression is in.
    predicates: usize,
}

impl Compiler<'_> {
    fn expr(&mut self, expr: &Expr) -> Res<(Op, Facts)> {
        let (op, facts) = self.bare_expr(expr)?;
        // In a predicate it would be computed for each node again.
        if self.predicates > 0 && facts.is_costly && facts.is_constant() {
            let place = self.kept;
            self.kept += 1;
            return Ok((Op::Kept(place, Box::new(op)), facts));
        }
        Ok((op, facts))
    }

    fn bare_expr(&mut self, expr: &Expr) -> Res<(Op, Facts)> {
        match expr {
            Expr::Number(number) => Ok((Op::Number(*number), Facts::of(Kind::Number))),
            Expr::Literal(text) => Ok((Op::Literal(text.as_str().into()), Facts::of(Kind::String))),
            Expr::Variable(name) => Ok((Op::Variable(name.as_str().into()), Facts::of(Kind::Any))),
            Expr::Call(name, args, position) => self.call(name, args, *position),
            Expr::Or(all) => {
                let (ops, facts) = self.all(all, Facts::of(Kind::Boolean))?;
                Ok((Op::Or(ops), facts))
            }
            Expr::And(all) => {
                let (ops, facts) = self.all(all, Facts::of(Kind::Boolean))?;
                Ok((Op::And(ops), facts))
            }
            Expr::Chain(first, rest) => {
                let is_comparison = rest.last().is_some_and(|(binary, _)| is_comparison(*binary));
                let kind = if is_comparison { Kind::Boolean } else { Kind::Number };
                let (first, first_facts) = self.expr(first)?;
                let mut facts = Facts::of(kind).and(first_facts);
                let mut ops = Vec::new();
                for (binary, expr) in rest {
                    let (op, part) = self.expr(expr)?;
                    facts = facts.and(part);
                    ops.push((*binary, op));
                }
                Ok((Op::Chain(Box::new(first), ops.into()), facts))
            }
            Expr::Negate(operand, signs) => {
                let (op, facts) = self.expr(operand)?;
                Ok((Op::Negate(Box::new(op), signs % 2 == 1), Facts::of(Kind::Number).and(facts)))
            }
            Expr::Union(all, position) => {
                let mut ops = Vec::new();
                let mut facts = Facts::of(Kind::Nodes);
                for expr in all {
                    let (op, part) = self.expr(expr)?;
                    self.expect_nodes(part.kind, *position, "a node-set to each side of |")?;
                    facts = facts.and(part);
                    ops.push(op);
                }
                Ok((Op::Union(ops.into()), facts))
            }
            Expr::Path(path) => self.path(path),
            Expr::Filter(inner, predicates, position) => {
                let (op, facts) = self.expr(inner)?;
                self.expect_nodes(facts.kind, *position, "a node-set before [")?;
                let (predicates, part) = self.all_predicates(predicates)?;
                // The context node of matches stays the outer one.
                let node = facts.node || (facts.kind != Kind::Nodes && part.node);
                Ok((Op::Filter(Box::new(op), predicates), Facts { node, is_costly: true, ..facts }))
            }
        }
    }

    fn all(&mut self, all: &[Expr], of: Facts) -> Res<(Box<[Op]>, Facts)> {
        let mut facts = of;
        let mut ops = Vec::new();
        for expr in all {
            let (op, part) = self.expr(expr)?;
            facts = facts.and(part);
            ops.push(op);
        }
        Ok((ops.into(), facts))
    }

    fn expect_nodes(&self, kind: Kind, position: usize, allowed: &str) -> Res<()> {
        if kind.may_be_nodes() {
            return Ok(());
        }
        Err(XPathError::Syntax {
            expression: quote(self.text, position),
            position,
            found: format!("a {}", kind.name()),
            allowed: allowed.to_owned(),
        }
        .into())
    }

    // Calls (3.2).

    fn call(&mut self, name: &str, args: &[Expr], position: usize) -> Res<(Op, Facts)> {
        let Some(function) = Function::of_name(name) else {
            if let Some((prefix, _)) = name.split_once(':')
                && !EXTENSIONS.contains(&prefix)
            {
                return Err(self.unknown_prefix(prefix, position));
            }
            return Err(
                XPathError::UnknownFunction { expression: quote(self.text, position), position, name: name.to_owned() }.into()
            );
        };
        let signature = function.signature();
        let wrong = |found: String, allowed: String| {
            Box::new(XPathError::Arguments {
                expression: quote(self.text, position),
                position,
                function: name.to_owned(),
                found,
                allowed,
            })
        };
        if args.len() < signature.fewest || args.len() > signature.most {
            let allowed = match (signature.fewest, signature.most) {
                (fewest, usize::MAX) => format!("{fewest} or more arguments"),
                (fewest, most) if fewest == most => format!("{fewest}"),
                (fewest, most) => format!("{fewest} to {most}"),
            };
            return Err(wrong(format!("{} arguments", args.len()), allowed));
        }
        let mut facts = Facts::of(signature.gives);
        let mut ops = Vec::new();
        for (place, arg) in (1_usize..).zip(args) {
            let (op, part) = self.expr(arg)?;
            if place <= signature.node_sets && !part.kind.may_be_nodes() {
                let found = format!("a {} as argument {place}", part.kind.name());
                return Err(XPathError::Arguments {
                    expression: quote(self.text, position),
                    position,
                    function: name.to_owned(),
                    found,
                    allowed: "a node-set".to_owned(),
                }
                .into());
            }
            facts = facts.and(part);
            ops.push(op);
        }
        facts.position |= function == Function::Position;
        facts.size |= function == Function::Last;
        facts.node |= match signature.context {
            Looks::Never => false,
            Looks::WithoutArguments => args.is_empty(),
            Looks::Always => true,
        };
        facts.is_costly |= matches!(function, Function::Id | Function::ReTest | Function::ReMatch | Function::ReReplace);
        if matches!(function, Function::ReTest | Function::ReMatch | Function::ReReplace)
            && let Some(Expr::Literal(pattern)) = args.get(1)
            && let None | Some(Expr::Literal(_)) = args.get(2)
        {
            let flags = match args.get(2) {
                Some(Expr::Literal(flags)) => flags,
                _ => "",
            };
            let pattern = Pattern::new(pattern, flags)?;
            return Ok((Op::Matching(function, ops.into(), Box::new(pattern)), facts));
        }
        Ok((Op::Call(function, ops.into()), facts))
    }

    fn unknown_prefix(&self, prefix: &str, position: usize) -> Box<XPathError> {
        Box::new(XPathError::UnknownPrefix { expression: quote(self.text, position), position, prefix: prefix.to_owned() })
    }

    // Paths (2).

    fn path(&mut self, path: &ast::Path) -> Res<(Op, Facts)> {
        let mut facts = Facts { is_costly: true, ..Facts::of(Kind::Nodes) };
        let start = match &path.start {
            ast::Start::Context => {
                facts.node = true;
                Start::Context
            }
            ast::Start::Root => Start::Root,
            ast::Start::Expr(expr, position) => {
                let (op, part) = self.expr(expr)?;
                self.expect_nodes(part.kind, *position, "a node-set before / or //")?;
                facts = facts.and(part);
                if part.kind != Kind::Nodes {
                    facts.kind = Kind::Any;
                }
                Start::Op(Box::new(op))
            }
        };
        let mut steps: Vec<Step> = Vec::new();
        for step in &path.steps {
            let step = self.step(step)?;
            join(&mut steps, step);
        }
        // `self::node()` changes nothing where something else is said.
        if steps.len() > 1 && steps.first().is_some_and(is_dot) {
            steps.remove(0);
        }
        let walk = order(&start, &mut steps);
        Ok((Op::Path(Path { start, steps: steps.into(), walk }), facts))
    }

    fn step(&mut self, step: &ast::Step) -> Res<Step> {
        let test = self.test(step.axis, &step.test, step.position)?;
        let (predicates, _) = self.all_predicates(&step.predicates)?;
        let is_positional = predicates.iter().any(Predicate::is_positional);
        let needs_size = predicates.iter().position(Predicate::needs_size);
        Ok(Step { axis: step.axis, test, predicates, is_positional, needs_size, needs_sort: true })
    }

    /// A name of the page: fixed, or to be looked up.
    fn name(&mut self, text: &str) -> Name {
        if let Some(id) = NameId::of_known(text) {
            return Name::Known(id);
        }
        let place = self.names.iter().position(|name| **name == *text).unwrap_or_else(|| {
            self.names.push(text.into());
            self.names.len() - 1
        });
        Name::Listed(place)
    }

    /// Node tests (2.3). Names of HTML elements and of their attributes do not depend on letter case; those of SVG and MathML
    /// do. A name without prefix is any namespace's, as on pages read by lxml.
    fn test(&mut self, axis: Axis, test: &ast::Test, position: usize) -> Res<Test> {
        let is_attr = axis == Axis::Attribute;
        Ok(match test {
            ast::Test::Any => Test::Any,
            ast::Test::Node => Test::Node,
            // Attributes are no texts, comments or instructions.
            ast::Test::Text | ast::Test::Comment | ast::Test::ProcessingInstruction(_) if is_attr => Test::Nothing,
            ast::Test::Text => Test::Text,
            ast::Test::Comment => Test::Comment,
            ast::Test::ProcessingInstruction(None) => Test::Instruction,
            ast::Test::ProcessingInstruction(Some(target)) => Test::InstructionOf(self.name(target)),
            ast::Test::AnyOf(prefix) => match prefix.as_str() {
                "svg" if !is_attr => Test::Namespace(Namespace::Svg),
                "math" if !is_attr => Test::Namespace(Namespace::MathMl),
                "svg" | "math" => Test::Nothing,
                _ if EXTENSIONS.contains(&prefix.as_str()) => Test::Nothing,
                _ => return Err(self.unknown_prefix(prefix, position)),
            },
            ast::Test::Name(Some(prefix), local) => match prefix.as_str() {
                "svg" if !is_attr => Test::ElementIn(Namespace::Svg, self.name(local)),
                "math" if !is_attr => Test::ElementIn(Namespace::MathMl, self.name(local)),
                "xml" | "xlink" | "xmlns" if is_attr => Test::Attr(self.name(&format!("{prefix}:{local}"))),
                "svg" | "math" | "xml" => Test::Nothing,
                _ if EXTENSIONS.contains(&prefix.as_str()) => Test::Nothing,
                _ => return Err(self.unknown_prefix(prefix, position)),
            },
            ast::Test::Name(None, local) => {
                let lower = local.to_ascii_lowercase();
                let is_lower = lower == *local;
                let lower = self.name(&lower);
                match (is_attr, is_lower) {
                    (false, true) => Test::Element(lower),
                    (false, false) => Test::ElementOfCase(lower, self.name(local)),
                    (true, true) => Test::Attr(lower),
                    (true, false) => Test::AttrOfCase(lower, self.name(local)),
                }
            }
        })
    }

    // Predicates (2.4).

    fn all_predicates(&mut self, all: &[Expr]) -> Res<(Box<[Predicate]>, Facts)> {
        self.predicates += 1;
        let mut facts = Facts::of(Kind::Boolean);
        let mut made = Vec::new();
        for expr in all {
            let (predicate, part) = self.predicate(expr)?;
            facts = facts.and(part);
            made.push(predicate);
        }
        self.predicates -= 1;
        Ok((made.into(), facts))
    }

    fn predicate(&mut self, expr: &Expr) -> Res<(Predicate, Facts)> {
        let (op, facts) = self.expr(expr)?;
        let needs_size = facts.size;
        let predicate = match facts.kind {
            Kind::Number => match op {
                Op::Number(number) => Predicate::Index(number),
                Op::Call(Function::Last, _) => Predicate::Last,
                op => Predicate::Number { op, needs_size },
            },
            Kind::Any => Predicate::Any { op, needs_size },
            _ if facts.position || facts.size => match position_equals(op) {
                Ok(predicate) => predicate,
                Err(op) => Predicate::Positional { op, needs_size },
            },
            _ => plain(op),
        };
        Ok((predicate, facts))
    }
}

const fn is_comparison(binary: Binary) -> bool {
    !matches!(binary, Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Modulo)
}

/// `position() = 3` and `position() = last()` in their short forms.
fn position_equals(op: Op) -> Result<Predicate, Op> {
    if let Op::Chain(left, rest) = &op
        && let (Op::Call(Function::Position, _), [(Binary::Equal, right)]) = (&**left, &**rest)
    {
        match right {
            Op::Number(number) => return Ok(Predicate::Index(*number)),
            Op::Call(Function::Last, _) => return Ok(Predicate::Last),
            _ => {}
        }
    }
    Err(op)
}

/// The test of a path that is one attribute of the context node.
fn attr_test(op: &Op) -> Option<Test> {
    let Op::Path(Path { start: Start::Context, steps, .. }) = op else { return None };
    match &**steps {
        [Step { axis: Axis::Attribute, test, predicates, .. }] if predicates.is_empty() => Some(*test),
        _ => None,
    }
}

/// A predicate that does not depend on the position.
fn plain(op: Op) -> Predicate {
    if let Some(test) = attr_test(&op) {
        return Predicate::HasAttr(test);
    }
    if let Op::Chain(left, rest) = &op
        && let [(Binary::Equal, right)] = &**rest
    {
        let (attr, literal) = if let Op::Literal(text) = right { (&**left, Some(&**text)) } else { (right, literal(left)) };
        if let (Some(test @ (Test::Attr(_) | Test::AttrOfCase(..))), Some(text)) = (attr_test(attr), literal) {
            return Predicate::AttrIs(test, text.into());
        }
    }
    Predicate::Plain(op)
}

fn literal(op: &Op) -> Option<&str> {
    match op {
        Op::Literal(text) => Some(text),
        _ => None,
    }
}
