//! Evaluation: values of expressions in a context (XPath 1.0, 1 and 3), and what they cost.
//!
//! Every node looked at is a step; an evaluation that needs more than its budget ends in an error, never in half a result.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use super::ast::Binary;
use super::convert::boolean_of;
use super::error::XPathError;
use super::functions::Function;
use super::plan::{Op, Path, Start, Walk};
use super::regex::Patterns;
use super::texts::Texts;
use super::value::{Val, Variables};
use super::{Compiled, Options, number};
use crate::html::arena::{Arena, NodeId};
use crate::html::document::Document;
use crate::html::hit::{self, Hit};
use crate::html::names::NameId;

/// The error is boxed: results are returned for every node.
pub(super) type Res<T> = Result<T, Box<XPathError>>;

/// Bytes of text that cost a step to look at or to copy.
pub(super) const BYTES_A_STEP: usize = 64;
/// Bytes of text that cost a step to take apart.
const CHARS_A_STEP: usize = 8;
/// Steps that putting a text into a table or finding it there costs.
pub(super) const HASHED: usize = 12;
/// Steps that room for a list or a text costs.
const ROOM: usize = 10;
/// Steps that sorting costs for each node of a list that is out of order.
const SORT_STEPS: usize = 4;

/// What an expression is evaluated for (1): a node, and where it stands among the nodes of its step, from 1. Both numbers are 0
/// outside of predicates, and the size if nothing asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) hit: Hit,
    pub(super) position: usize,
    pub(super) size: usize,
}

/// One evaluation of an expression on a page.
pub(super) struct Eval<'e> {
    pub(super) document: &'e Document,
    pub(super) arena: &'e Arena,
    variables: &'e Variables,
    /// The listed names of the expression, as far as the page has them.
    pub(super) names: Vec<Option<NameId>>,
    pub(super) patterns: RefCell<Patterns>,
    /// Values that are the same for every context, once they are known.
    kept: RefCell<Vec<Option<Val<'e>>>>,
    /// The string-values of all elements, once many were asked for.
    pub(super) texts: &'e OnceCell<Option<Texts>>,
    pub(super) text_visits: Cell<usize>,
    budget: u64,
    steps_left: Cell<u64>,
    pub(super) most_bytes: usize,
}

impl<'e> Eval<'e> {
    pub(super) fn new(
        compiled: &Compiled,
        document: &'e Document,
        variables: &'e Variables,
        texts: &'e OnceCell<Option<Texts>>,
        options: Options,
    ) -> Self {
        let arena = document.arena();
        let budget = options.steps_for(document);
        Self {
            document,
            arena,
            variables,
            names: compiled.names.iter().map(|name| arena.find_name(name)).collect(),
            patterns: RefCell::default(),
            kept: RefCell::new(vec![None; compiled.kept]),
            texts,
            text_visits: Cell::new(0),
            budget,
            steps_left: Cell::new(budget),
            most_bytes: options.string_bytes,
        }
    }

    /// Steps taken so far.
    pub(super) fn steps(&self) -> u64 {
        self.budget - self.steps_left.get()
    }

    #[inline]
    pub(super) fn charge(&self, steps: usize) -> Res<()> {
        match self.steps_left.get().checked_sub(steps as u64) {
            Some(left) => {
                self.steps_left.set(left);
                Ok(())
            }
            None => {
                self.steps_left.set(0);
                Err(XPathError::Budget { steps: self.budget }.into())
            }
        }
    }

    /// Charges for looking at so many bytes of text.
    #[inline]
    pub(super) fn charge_bytes(&self, bytes: usize) -> Res<()> {
        self.charge(bytes / BYTES_A_STEP)
    }

    /// Charges for going through so many bytes of text character by character.
    #[inline]
    pub(super) fn charge_chars(&self, bytes: usize) -> Res<()> {
        self.charge(bytes / CHARS_A_STEP)
    }

    /// Charges for a text of so many bytes as the key of a table.
    #[inline]
    pub(super) fn charge_key(&self, bytes: usize) -> Res<()> {
        self.charge(HASHED + bytes / CHARS_A_STEP)
    }

    /// Charges for looking at a node; an attribute is looked for in the list of its element.
    #[inline]
    pub(super) fn charge_hit(&self, hit: Hit) -> Res<()> {
        match hit {
            Hit::Node(_) => self.charge(1),
            Hit::Attr { place, .. } => self.charge(1 + place as usize / 2),
        }
    }

    /// Charges for room for a list or a text.
    #[inline]
    pub(super) fn charge_room(&self) -> Res<()> {
        self.charge(ROOM)
    }

    /// Whether two texts are the same.
    #[inline]
    pub(super) fn is_same(&self, one: &str, other: &str) -> Res<bool> {
        // To compare nothing with nothing takes some processors a hundred times as long as to see that it is nothing.
        if one.len() != other.len() || one.is_empty() {
            return Ok(one.len() == other.len());
        }
        self.charge_chars(one.len())?;
        Ok(one == other)
    }

    /// The number a text is.
    #[inline]
    pub(super) fn parse_number(&self, text: &str) -> Res<f64> {
        self.charge(2 + text.len() / CHARS_A_STEP)?;
        Ok(number::parse(text))
    }

    /// The value of an attribute of an element, its list gone through.
    #[inline]
    pub(super) fn attr(&self, node: NodeId, name: NameId) -> Res<Option<&'e str>> {
        let mut visited = 0;
        let found = self.arena.attrs(node).find(|attr| {
            visited += 1;
            attr.name() == name
        });
        // A list is gone through several times as fast as nodes are.
        self.charge(visited / 8)?;
        Ok(found.map(|attr| self.arena.text(attr.value())))
    }

    /// Whether a string may be as long.
    pub(super) fn check_len(&self, bytes: usize) -> Res<()> {
        if bytes > self.most_bytes { Err(XPathError::StringLength { most: self.most_bytes }.into()) } else { Ok(()) }
    }

    /// Adds to a string, within its bound.
    pub(super) fn push(&self, text: &mut String, more: &str) -> Res<()> {
        self.check_len(text.len().saturating_add(more.len()))?;
        self.charge_bytes(more.len())?;
        text.push_str(more);
        Ok(())
    }

    // Expressions.

    /// The value of an expression.
    pub(super) fn value(&self, op: &'e Op, context: Context) -> Res<Val<'e>> {
        self.charge(1)?;
        Ok(match op {
            Op::Number(number) => Val::Number(*number),
            Op::Literal(text) => Val::String(Cow::Borrowed(text)),
            Op::Variable(name) => self.variable(name)?,
            Op::Call(function, args) => return self.call(*function, args, context),
            Op::Matching(function, args, pattern) => match function {
                Function::ReTest => Val::Boolean(self.re_test(Some(pattern), args, context)?),
                Function::ReMatch => self.re_match(Some(pattern), args, context)?,
                _ => Val::String(self.re_replace(Some(pattern), args, context)?),
            },
            Op::Or(_) | Op::And(_) => Val::Boolean(self.boolean(op, context)?),
            Op::Chain(first, rest) => return self.operators(first, rest, context),
            Op::Negate(operand, is_odd) => {
                let number = self.number(operand, context)?;
                Val::Number(if *is_odd { -number } else { number })
            }
            Op::Union(all) => {
                self.charge_room()?;
                let (mut hits, mut more) = (Vec::new(), Vec::new());
                for op in all {
                    more.extend_from_slice(&self.nodes(op, context, "an operand of |")?);
                    // Small sets are gathered, so that many of them do not cost a pass through a large one each.
                    if more.len() >= hits.len() {
                        self.sort(&mut more)?;
                        hits = self.merge(hits, &mut more)?;
                    }
                }
                self.sort(&mut more)?;
                hits = self.merge(hits, &mut more)?;
                Val::Nodes(Rc::new(hits))
            }
            Op::Path(path) => return self.path(path, context),
            Op::Filter(inner, predicates) => return self.filter(inner, predicates, context),
            Op::Kept(place, inner) => {
                if let Some(Some(value)) = self.kept.borrow().get(*place) {
                    return Ok(value.clone());
                }
                let value = self.value(inner, context)?;
                if let Some(slot) = self.kept.borrow_mut().get_mut(*place) {
                    *slot = Some(value.clone());
                }
                value
            }
        })
    }

    fn variable(&self, name: &str) -> Res<Val<'e>> {
        Ok(match self.variables.get(name) {
            None => return Err(XPathError::UndefinedVariable { name: name.to_owned() }.into()),
            Some(super::Value::Nodes(hits)) => {
                self.charge(hits.len())?;
                let mut hits = hits.clone();
                self.sort(&mut hits)?;
                Val::Nodes(Rc::new(hits))
            }
            Some(super::Value::String(text)) => Val::String(Cow::Borrowed(text)),
            Some(super::Value::Number(number)) => Val::Number(*number),
            Some(super::Value::Boolean(boolean)) => Val::Boolean(*boolean),
            Some(super::Value::Strings(texts)) => {
                self.charge(texts.len())?;
                Val::Strings(Rc::new(texts.clone()))
            }
        })
    }

    fn operators(&self, first: &'e Op, rest: &'e [(Binary, Op)], context: Context) -> Res<Val<'e>> {
        let mut rest = rest.iter();
        let Some((binary, right)) = rest.next() else { return self.value(first, context) };
        let mut left = match arithmetic(*binary) {
            Some(compute) => Val::Number(compute(self.number(first, context)?, self.number(right, context)?)),
            None => Val::Boolean(self.compare_ops(*binary, first, right, context)?),
        };
        for (binary, right) in rest {
            left = match arithmetic(*binary) {
                Some(compute) => Val::Number(compute(self.number_of(&left)?, self.number(right, context)?)),
                None => Val::Boolean(self.compare(*binary, &left, &self.value(right, context)?)?),
            };
        }
        Ok(left)
    }

    /// `boolean()` of an expression (4.3), without more of a set than its first node.
    pub(super) fn boolean(&self, op: &'e Op, context: Context) -> Res<bool> {
        match op {
            Op::Or(all) => {
                for op in all {
                    if self.boolean(op, context)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
            Op::And(all) => {
                for op in all {
                    if !self.boolean(op, context)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            _ => {}
        }
        let mut is_any = false;
        if self.each(op, context, &mut |_| {
            is_any = true;
            Ok(false)
        })? {
            return Ok(is_any);
        }
        Ok(boolean_of(&self.value(op, context)?))
    }

    /// `number()` of an expression (4.4).
    pub(super) fn number(&self, op: &'e Op, context: Context) -> Res<f64> {
        self.charge(1)?;
        match op {
            Op::Number(number) => Ok(*number),
            Op::Path(_) => self.parse_number(&self.string(op, context)?),
            _ => self.number_of(&self.value(op, context)?),
        }
    }

    /// `string()` of an expression (4.2): of a set that of its first node in document order.
    pub(super) fn string(&self, op: &'e Op, context: Context) -> Res<Cow<'e, str>> {
        self.charge(1)?;
        match op {
            Op::Literal(text) => Ok(Cow::Borrowed(text)),
            Op::Path(path) if path.walk == Walk::Ordered => match self.first(op, context, "a path")? {
                Some(hit) => self.text_of(hit),
                None => Ok(Cow::Borrowed("")),
            },
            _ => match self.value(op, context)? {
                Val::String(text) => Ok(text),
                other => self.string_of(&other),
            },
        }
    }

    /// The nodes of an expression; an error that names the place if it gives none.
    pub(super) fn nodes(&self, op: &'e Op, context: Context, place: &str) -> Res<Rc<Vec<Hit>>> {
        match self.value(op, context)? {
            Val::Nodes(hits) => Ok(hits),
            other => Err(Self::not_nodes(place, &other).into()),
        }
    }

    /// The first node of an expression in document order.
    pub(super) fn first(&self, op: &'e Op, context: Context, place: &str) -> Res<Option<Hit>> {
        if let Op::Path(path) = op
            && path.walk == Walk::Ordered
        {
            let mut first = None;
            self.each(op, context, &mut |hit| {
                first = Some(hit);
                Ok(false)
            })?;
            return Ok(first);
        }
        Ok(self.nodes(op, context, place)?.first().copied())
    }

    /// Calls `found` with each node of a path that can be walked, in the order of the walk, until it gives `false`. Gives
    /// whether the expression is such a path; if not, nothing was called.
    pub(super) fn each(&self, op: &'e Op, context: Context, found: &mut dyn FnMut(Hit) -> Res<bool>) -> Res<bool> {
        let Op::Path(path) = op else { return Ok(false) };
        let Some(from) = walk_start(path, context) else { return Ok(false) };
        self.charge(path.steps.len())?;
        self.walk(&path.steps, from, found)?;
        Ok(true)
    }

    fn path(&self, path: &'e Path, context: Context) -> Res<Val<'e>> {
        self.charge_room()?;
        let mut hits = Vec::new();
        if let Some(from) = walk_start(path, context) {
            self.walk(&path.steps, from, &mut |hit| {
                hits.push(hit);
                Ok(true)
            })?;
            if path.walk == Walk::Once {
                self.sort(&mut hits)?;
            }
            return Ok(Val::Nodes(Rc::new(hits)));
        }
        match &path.start {
            Start::Context => hits.push(context.hit),
            Start::Root => hits.push(Hit::Node(NodeId::DOCUMENT)),
            Start::Op(op) => match self.value(op, context)? {
                Val::Nodes(nodes) => hits = Rc::unwrap_or_clone(nodes),
                Val::Strings(texts) => return Ok(Val::Strings(self.steps_of_matches(&path.steps, texts))),
                other => return Err(Self::not_nodes("what stands before / or //", &other).into()),
            },
        }
        for step in &path.steps {
            hits = self.step_of_set(step, &hits)?;
        }
        Ok(Val::Nodes(Rc::new(hits)))
    }

    /// Two sets in document order as one; the second is left empty.
    fn merge(&self, first: Vec<Hit>, second: &mut Vec<Hit>) -> Res<Vec<Hit>> {
        if first.is_empty() || second.is_empty() {
            return Ok(if first.is_empty() { std::mem::take(second) } else { first });
        }
        self.charge((first.len() + second.len()) / 2)?;
        let mut merged = Vec::with_capacity(first.len() + second.len());
        let mut rest = second.drain(..).peekable();
        for hit in first {
            let order = hit.order(self.document);
            while let Some(other) = rest.next_if(|other| other.order(self.document) < order) {
                merged.push(other);
            }
            rest.next_if_eq(&hit);
            merged.push(hit);
        }
        merged.extend(rest);
        Ok(merged)
    }

    /// Takes doubles out when there are more nodes than there can be without.
    pub(super) fn keep_small(&self, hits: &mut Vec<Hit>) -> Res<()> {
        let most = 2 * (self.arena.len() + self.arena.attr_count()) + 1_024;
        if hits.len() > most { self.sort(hits) } else { Ok(()) }
    }

    /// Puts nodes in document order and takes doubles out.
    pub(super) fn sort(&self, hits: &mut Vec<Hit>) -> Res<()> {
        self.charge(hits.len() / 4)?;
        if !hits.is_sorted_by_key(|hit| hit.order(self.document)) {
            self.charge(SORT_STEPS * hits.len())?;
        }
        hit::sort(hits, self.document);
        Ok(())
    }
}

/// The node a path is walked from, if it can be walked.
fn walk_start(path: &Path, context: Context) -> Option<Hit> {
    match path.start {
        _ if path.walk == Walk::No => None,
        Start::Context => Some(context.hit),
        Start::Root => Some(Hit::Node(NodeId::DOCUMENT)),
        Start::Op(_) => None,
    }
}

/// What an operator computes (3.5), by IEEE 754; `mod` keeps the sign of the dividend, as `%` does.
fn arithmetic(binary: Binary) -> Option<fn(f64, f64) -> f64> {
    Some(match binary {
        Binary::Add => |a, b| a + b,
        Binary::Subtract => |a, b| a - b,
        Binary::Multiply => |a, b| a * b,
        Binary::Divide => |a, b| a / b,
        Binary::Modulo => |a, b| a % b,
        _ => return None,
    })
}
