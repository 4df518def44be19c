//! What is known about the steps of a path before it is evaluated: which can be one step, which must be sorted, and whether
//! the path can be walked depth first.

use super::ast::Axis;
use super::plan::{Predicate, Start, Step, Test, Walk};

/// Steps of a path up to which it may be walked depth first, one call inside the other.
const MOST_WALKED: usize = 8;

/// Whether a step is `.`.
pub(super) fn is_dot(step: &Step) -> bool {
    step.axis == Axis::Itself && step.test == Test::Node && step.predicates.is_empty()
}

/// Adds a step. `descendant-or-self::node()` before it is taken into its axis where positions do not forbid it (2.5 warns of
/// `//para[1]`), and a `.` behind another step changes nothing.
pub(super) fn join(steps: &mut Vec<Step>, mut step: Step) {
    let Some(last) = steps.last_mut() else {
        steps.push(step);
        return;
    };
    if is_dot(&step) {
        return;
    }
    let is_all = last.axis == Axis::DescendantOrSelf && last.test == Test::Node && last.predicates.is_empty();
    if is_all {
        if step.axis == Axis::Attribute {
            // Nothing else has attributes.
            last.test = Test::Any;
        } else if step.is_positional && step.axis == Axis::Child {
            last.test = Test::Parent;
        } else if !step.is_positional {
            let joined = match step.axis {
                Axis::Child | Axis::Descendant => Axis::Descendant,
                Axis::Itself | Axis::DescendantOrSelf => Axis::DescendantOrSelf,
                _ => {
                    steps.push(step);
                    return;
                }
            };
            step.axis = joined;
            *last = step;
            return;
        }
    }
    steps.push(step);
}

/// Finds out which steps must be sorted, and whether the path can be walked depth first.
///
/// Two facts are followed from step to step: whether there is at most one node, and whether no node is above another.
pub(super) fn order(start: &Start, steps: &mut [Step]) -> Walk {
    let mut is_single = !matches!(start, Start::Op(_));
    let mut is_disjoint = is_single;
    let mut walk = if is_single && steps.len() <= MOST_WALKED { Walk::Ordered } else { Walk::No };
    for step in steps {
        let picks_one = step.predicates.iter().any(|predicate| matches!(predicate, Predicate::Index(_) | Predicate::Last));
        // Nodes of one context node, of which at most one is taken, are in order.
        let is_one = is_single && picks_one;
        let (needs_sort, stays) = match step.axis {
            Axis::Itself | Axis::Attribute | Axis::Namespace => (false, walk),
            Axis::Child if is_disjoint => (false, walk),
            Axis::Child => (true, walk.min_once()),
            Axis::Descendant | Axis::DescendantOrSelf if is_disjoint => (false, walk),
            Axis::Parent | Axis::FollowingSibling | Axis::Following if is_single => (false, walk),
            Axis::Ancestor | Axis::AncestorOrSelf | Axis::PrecedingSibling | Axis::Preceding if is_single => {
                if is_one {
                    (false, walk)
                } else {
                    (true, walk.min_once())
                }
            }
            _ => (true, Walk::No),
        };
        step.needs_sort = needs_sort;
        walk = stays;
        let was_single = is_single;
        is_single = was_single
            && (picks_one
                || matches!(step.axis, Axis::Itself | Axis::Parent)
                || (step.axis == Axis::Attribute && matches!(step.test, Test::Attr(_) | Test::AttrOfCase(..))));
        is_disjoint = is_single
            || match step.axis {
                Axis::Itself | Axis::Child => is_disjoint,
                Axis::Attribute => true,
                Axis::FollowingSibling | Axis::PrecedingSibling => was_single,
                _ => false,
            };
    }
    walk
}

impl Walk {
    const fn min_once(self) -> Self {
        match self {
            Self::No => Self::No,
            Self::Once | Self::Ordered => Self::Once,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::Compiled;
    use super::super::plan::Op;
    use super::*;

    fn with_path<T>(text: &str, look: impl FnOnce(Walk, &[Step]) -> T) -> T {
        let compiled = Compiled::parse(text).unwrap();
        let Op::Path(path) = &compiled.op else { unreachable!("{text}") };
        look(path.walk, &path.steps)
    }

    #[test]
    fn two_slashes_are_one_step_unless_positions_forbid_it() {
        for (text, axes) in [
            ("//a", vec![Axis::Descendant]),
            ("//a[@href]", vec![Axis::Descendant]),
            (".//a", vec![Axis::Descendant]),
            ("//a[1]", vec![Axis::DescendantOrSelf, Axis::Child]),
            ("//a[$n]", vec![Axis::DescendantOrSelf, Axis::Child]),
            ("//a[position() > 1]", vec![Axis::DescendantOrSelf, Axis::Child]),
            ("//a[@b[1]]", vec![Axis::Descendant]),
            ("//@href", vec![Axis::DescendantOrSelf, Axis::Attribute]),
            ("//.", vec![Axis::DescendantOrSelf]),
            ("//..", vec![Axis::DescendantOrSelf, Axis::Parent]),
            ("//self::a", vec![Axis::DescendantOrSelf]),
            ("a//b/.//c", vec![Axis::Child, Axis::Descendant, Axis::Descendant]),
            ("./a", vec![Axis::Child]),
            (".", vec![Axis::Itself]),
        ] {
            assert_eq!(with_path(text, |_, steps| steps.iter().map(|step| step.axis).collect::<Vec<_>>()), axes, "{text}");
        }
    }

    #[test]
    fn paths_are_walked_where_no_node_comes_twice() {
        for (text, walk) in [
            ("//a/@href", Walk::Ordered),
            ("a/b/c", Walk::Ordered),
            ("a//b", Walk::Ordered),
            ("../../@id", Walk::Ordered),
            ("following-sibling::a/b//c", Walk::Ordered),
            ("preceding-sibling::a[1]/b", Walk::Ordered),
            ("//a/b", Walk::Once),
            ("ancestor::a", Walk::Once),
            ("preceding::a", Walk::Once),
            ("//a//b", Walk::No),
            ("a/..", Walk::No),
            ("//a/following-sibling::b", Walk::No),
            ("ancestor::a//b", Walk::No),
            ("a/b/c/d/e/f/g/h/i", Walk::No),
            ("$n/a", Walk::No),
        ] {
            assert_eq!(with_path(text, |walk, _| walk), walk, "{text}");
        }
    }

    #[test]
    fn only_steps_that_may_come_out_of_order_are_sorted() {
        for (text, expected) in [
            ("//a/b/@c", vec![false, true, false]),
            ("a/b/..", vec![false, false, true]),
            ("a//b//c", vec![false, false, true]),
            ("preceding-sibling::*[1]/a", vec![false, false]),
            ("preceding-sibling::*", vec![true]),
        ] {
            assert_eq!(
                with_path(text, |_, steps| steps.iter().map(|step| step.needs_sort).collect::<Vec<_>>()),
                expected,
                "{text}"
            );
        }
    }
}
