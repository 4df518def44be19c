//! Steps (XPath 1.0, 2.1): from one node with predicates (2.4), depth first along a path, or from a whole set at once.
//!
//! From a set, a step whose predicates do not depend on positions visits each node once however many nodes lead to it.

use std::rc::Rc;

use super::ast::Axis;
use super::convert::boolean_of;
use super::eval::{Context, Eval, Res};
use super::functions::core_number::as_number;
use super::plan::{Op, Predicate, Step, Test, Walk};
use super::value::Val;
use crate::html::arena::NodeId;
use crate::html::hit::Hit;

/// Predicates of a step whose positions are counted while its nodes come; steps with more collect their nodes first.
const COUNTED: usize = 4;

impl<'e> Eval<'e> {
    /// Calls `found` with the nodes at the end of the steps, depth first, until it gives `false`. The number of steps is bounded
    /// where paths are compiled. Gives whether it went through.
    pub(super) fn walk(&self, steps: &'e [Step], from: Hit, found: &mut dyn FnMut(Hit) -> Res<bool>) -> Res<bool> {
        match steps {
            [] => found(from),
            [step] => self.step(step, from, found),
            [step, rest @ ..] => self.step(step, from, &mut |hit| self.walk(rest, hit, found)),
        }
    }

    /// Calls `found` with the nodes of a step from one node, in the order of its axis, until it gives `false`. Gives whether it
    /// went through.
    pub(super) fn step(&self, step: &'e Step, from: Hit, found: &mut dyn FnMut(Hit) -> Res<bool>) -> Res<bool> {
        let mut goes_on = true;
        let predicates = &step.predicates;
        if predicates.is_empty() {
            self.axis(step.axis, step.test, from, |hit| {
                goes_on = found(hit)?;
                Ok(goes_on)
            })?;
        } else if !step.is_positional {
            self.axis(step.axis, step.test, from, |hit| {
                goes_on = !self.all_hold(predicates, hit)? || found(hit)?;
                Ok(goes_on)
            })?;
        } else if step.needs_size.is_none() && predicates.len() <= COUNTED {
            let mut counts = [0_usize; COUNTED];
            self.axis(step.axis, step.test, from, |hit| {
                let mut is_last = false;
                for (predicate, count) in predicates.iter().zip(&mut counts) {
                    *count += 1;
                    if let Predicate::Index(wanted) = predicate {
                        let position = as_number(*count);
                        if position > *wanted {
                            return Ok(false);
                        }
                        // No other node will get through this one.
                        is_last |= position == *wanted;
                    }
                    if !self.holds(predicate, Context { hit, position: *count, size: 0 })? {
                        return Ok(!is_last);
                    }
                }
                goes_on = found(hit)?;
                Ok(goes_on && !is_last)
            })?;
        } else {
            let plain = predicates.iter().take_while(|predicate| !predicate.is_positional()).count();
            let (plain, rest) = predicates.split_at_checked(plain).unwrap_or((predicates, &[]));
            if let [Predicate::Last] = rest {
                let mut last = None;
                self.axis(step.axis, step.test, from, |hit| {
                    if self.all_hold(plain, hit)? {
                        last = Some(hit);
                    }
                    Ok(true)
                })?;
                return last.map_or(Ok(true), found);
            }
            self.charge_room()?;
            let mut hits = Vec::new();
            self.axis(step.axis, step.test, from, |hit| {
                if self.all_hold(plain, hit)? {
                    hits.push(hit);
                }
                Ok(true)
            })?;
            for predicate in rest {
                self.keep(&mut hits, predicate)?;
            }
            for hit in hits {
                if !found(hit)? {
                    return Ok(false);
                }
            }
        }
        Ok(goes_on)
    }

    fn all_hold(&self, predicates: &'e [Predicate], hit: Hit) -> Res<bool> {
        for predicate in predicates {
            if !self.holds(predicate, Context { hit, position: 1, size: 1 })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn holds(&self, predicate: &'e Predicate, context: Context) -> Res<bool> {
        self.charge(2)?;
        let position = as_number(context.position);
        Ok(match predicate {
            Predicate::Index(wanted) => position == *wanted,
            Predicate::Last => context.position == context.size,
            Predicate::HasAttr(test) => self.attr_of(context.hit, *test)?.is_some(),
            Predicate::AttrIs(test, text) => match self.attr_of(context.hit, *test)? {
                Some(value) => self.is_same(value, text)?,
                None => false,
            },
            Predicate::Plain(op) | Predicate::Positional { op, .. } => self.boolean(op, context)?,
            Predicate::Number { op, .. } => self.number(op, context)? == position,
            Predicate::Any { op, .. } => match self.value(op, context)? {
                Val::Number(number) => number == position,
                other => boolean_of(&other),
            },
        })
    }

    /// The value of the attribute of that name, or of the first if the test names none.
    fn attr_of(&self, hit: Hit, test: Test) -> Res<Option<&'e str>> {
        let Hit::Node(node) = hit else { return Ok(None) };
        match self.attr_name(test, node) {
            Some(name) => self.attr(node, name),
            None => Ok(self.arena.attrs(node).next().map(|attr| self.arena.text(attr.value()))),
        }
    }

    /// Keeps of a list of nodes those for which a predicate holds; their positions are those in the list.
    fn keep(&self, hits: &mut Vec<Hit>, predicate: &'e Predicate) -> Res<()> {
        match predicate {
            Predicate::Index(wanted) => {
                let place = hits.iter().zip(1..).find(|(_, position)| as_number(*position) == *wanted).map(|(hit, _)| *hit);
                hits.clear();
                hits.extend(place);
            }
            Predicate::Last => {
                let last = hits.last().copied();
                hits.clear();
                hits.extend(last);
            }
            _ => {
                let size = hits.len();
                let mut kept = Vec::new();
                for (hit, position) in hits.iter().zip(1..) {
                    self.charge(1)?;
                    if self.holds(predicate, Context { hit: *hit, position, size })? {
                        kept.push(*hit);
                    }
                }
                *hits = kept;
            }
        }
        Ok(())
    }

    /// An expression with predicates behind it (3.3): positions are those in document order.
    pub(super) fn filter(&self, inner: &'e Op, predicates: &'e [Predicate], context: Context) -> Res<Val<'e>> {
        let mut rest = predicates;
        let mut hits = Vec::new();
        if let (Op::Path(path), [Predicate::Index(wanted), behind @ ..]) = (inner, predicates)
            && path.walk == Walk::Ordered
        {
            let mut count = 0;
            let was_walked = self.each(inner, context, &mut |hit| {
                count += 1;
                if as_number(count) == *wanted {
                    hits.push(hit);
                }
                Ok(as_number(count) < *wanted)
            })?;
            if was_walked {
                rest = behind;
            }
        }
        if rest.len() == predicates.len() {
            match self.value(inner, context)? {
                Val::Nodes(nodes) => hits = Rc::unwrap_or_clone(nodes),
                Val::Strings(texts) => return self.filter_matches(texts, predicates, context),
                other => return Err(Self::not_nodes("what stands before [", &other).into()),
            }
        }
        for predicate in rest {
            self.keep(&mut hits, predicate)?;
        }
        Ok(Val::Nodes(Rc::new(hits)))
    }

    /// Predicates of matches, which are nodes of no page: their positions count, and the context node stays the outer one.
    fn filter_matches(&self, texts: Rc<Vec<String>>, predicates: &'e [Predicate], context: Context) -> Res<Val<'e>> {
        let mut texts = Rc::unwrap_or_clone(texts);
        for predicate in predicates {
            let size = texts.len();
            let mut kept = Vec::new();
            for (text, position) in texts.into_iter().zip(1..) {
                self.charge(1)?;
                if self.holds(predicate, Context { hit: context.hit, position, size })? {
                    kept.push(text);
                }
            }
            texts = kept;
        }
        Ok(Val::Strings(Rc::new(texts)))
    }

    /// Steps from matches: their texts are below them, nothing else is.
    pub(super) fn steps_of_matches(&self, steps: &[Step], texts: Rc<Vec<String>>) -> Rc<Vec<String>> {
        let stays = |step: &Step| {
            step.predicates.is_empty()
                && match step.axis {
                    Axis::Child | Axis::Descendant => matches!(step.test, Test::Node | Test::Text),
                    Axis::Itself | Axis::DescendantOrSelf => matches!(step.test, Test::Node | Test::Text | Test::Any),
                    _ => false,
                }
        };
        if steps.iter().all(stays) { texts } else { Rc::default() }
    }

    /// A step from a set of nodes, which is in document order; gives one that is.
    pub(super) fn step_of_set(&self, step: &'e Step, from: &[Hit]) -> Res<Vec<Hit>> {
        let mut hits = Vec::new();
        if step.is_positional || from.len() < 2 {
            for hit in from {
                self.charge(1)?;
                self.step(step, *hit, &mut |hit| {
                    hits.push(hit);
                    Ok(true)
                })?;
                self.keep_small(&mut hits)?;
            }
        } else {
            let mut keep = |hit| {
                if self.all_hold(&step.predicates, hit)? {
                    hits.push(hit);
                }
                Ok(true)
            };
            self.step_once(step, from, &mut keep)?;
        }
        if step.needs_sort {
            self.sort(&mut hits)?;
        }
        Ok(hits)
    }

    /// The nodes a step leads to from any node of a set, each once but for those of `child`, `attribute` and `self`, where it
    /// cannot come twice.
    fn step_once(&self, step: &'e Step, from: &[Hit], keep: &mut dyn FnMut(Hit) -> Res<bool>) -> Res<()> {
        let (arena, document) = (self.arena, self.document);
        let (axis, test) = (step.axis, step.test);
        match axis {
            Axis::Child | Axis::Attribute | Axis::Itself => {
                for hit in from {
                    self.axis(axis, test, *hit, &mut *keep)?;
                }
            }
            Axis::Descendant | Axis::DescendantOrSelf => {
                // What is below an earlier node was visited with it.
                let mut covered = 0;
                for hit in from {
                    self.charge(1)?;
                    let is_covered = hit.order(document) < covered;
                    if let Hit::Node(node) = hit
                        && !is_covered
                    {
                        covered = self.order_from(self.behind(*node)?);
                        self.axis(axis, test, *hit, &mut *keep)?;
                    } else if let Hit::Attr { .. } = hit {
                        self.axis(axis, test, *hit, &mut *keep)?;
                    }
                }
            }
            Axis::Following => {
                // All behind the end of that node which ends first: the last of the chain of nodes, each below the one before,
                // that the set starts with.
                let mut innermost: Option<Hit> = None;
                for hit in from {
                    let is_below = match innermost {
                        None => true,
                        Some(Hit::Node(above)) => self.is_within(hit.node(), above)?,
                        Some(Hit::Attr { .. }) => false,
                    };
                    if !is_below {
                        break;
                    }
                    innermost = Some(*hit);
                }
                let first = match innermost {
                    None => NodeId::NONE,
                    Some(Hit::Node(node)) => self.behind(node)?,
                    Some(Hit::Attr { owner, .. }) => arena.following(owner, NodeId::DOCUMENT),
                };
                self.onwards(test, first, &mut *keep)?;
            }
            Axis::Preceding => {
                // What is before a node and not above it is so for any later node.
                if let Some(last) = from.last() {
                    self.axis(axis, test, *last, &mut *keep)?;
                }
            }
            Axis::Parent | Axis::Ancestor | Axis::AncestorOrSelf | Axis::FollowingSibling | Axis::PrecedingSibling => {
                self.chains_once(axis, test, from, keep)?;
            }
            Axis::Namespace => {}
        }
        Ok(())
    }

    /// Axes along links: where an earlier node has been, all behind it has been visited.
    fn chains_once(&self, axis: Axis, test: Test, from: &[Hit], keep: &mut dyn FnMut(Hit) -> Res<bool>) -> Res<()> {
        self.charge_room()?;
        self.charge(self.arena.len() / 1_024)?;
        let mut seen = vec![0_u64; self.arena.len() / 64 + 1];
        let check = self.check(test);
        for hit in from {
            self.charge(1)?;
            let (node, is_attr) = match hit {
                Hit::Node(node) => (*node, false),
                Hit::Attr { owner, .. } => (*owner, true),
            };
            let next = |id| match axis {
                Axis::FollowingSibling => self.arena.next(id),
                Axis::PrecedingSibling => self.arena.prev(id),
                _ => self.arena.parent(id),
            };
            let mut id = match axis {
                Axis::FollowingSibling | Axis::PrecedingSibling if is_attr => NodeId::NONE,
                Axis::AncestorOrSelf => node,
                _ if is_attr => node,
                _ => next(node),
            };
            if is_attr && axis == Axis::AncestorOrSelf && test == Test::Node {
                keep(*hit)?;
            }
            while id.is_some() {
                self.charge(1)?;
                let (word, bit) = (id.index() / 64, 1_u64 << (id.index() % 64));
                match seen.get_mut(word) {
                    Some(word) if *word & bit == 0 => *word |= bit,
                    _ => break,
                }
                if check.holds(self.arena, id) {
                    keep(Hit::Node(id))?;
                }
                if axis == Axis::Parent {
                    break;
                }
                id = next(id);
            }
        }
        Ok(())
    }

    /// Whether a node is `above` or below it.
    fn is_within(&self, node: NodeId, above: NodeId) -> Res<bool> {
        let mut id = node;
        while id.is_some() {
            self.charge(1)?;
            if id == above {
                return Ok(true);
            }
            id = self.arena.parent(id);
        }
        Ok(false)
    }

    /// The place of a node in document order; behind all if there is none.
    fn order_from(&self, id: NodeId) -> u64 {
        if id.is_some() { Hit::Node(id).order(self.document) } else { u64::MAX }
    }
}
