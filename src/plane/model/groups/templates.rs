//! Templates as a tree of segments.
//!
//! Of several that match, the one with more literal segments wins, then the lower rank. (Fewer parameters follow from more
//! literals: all that match one path have as many segments as the path.)

use std::collections::HashMap;

use super::pattern::Segment;

const ROOT: usize = 0;

/// The templates of a client.
#[derive(Debug)]
pub(super) struct Templates(Vec<Node>);

#[derive(Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, usize>,
    parameter: Option<usize>,
    /// The template that ends here.
    end: Option<Hit>,
    /// The most literals of any template that ends here or below.
    most: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hit {
    literals: u32,
    rank: u32,
}

impl Hit {
    fn is_before(self, other: Self) -> bool {
        self.literals > other.literals || (self.literals == other.literals && self.rank < other.rank)
    }
}

impl Default for Templates {
    fn default() -> Self {
        Self(vec![Node::default()])
    }
}

impl Templates {
    /// Adds a template. Of two with the same shape the one with the lower rank stays.
    pub(super) fn add(&mut self, segments: &[Segment<'_>], rank: u32) {
        let literals = segments.iter().filter(|segment| matches!(segment, Segment::Literal(_))).map(|_| 1).sum();
        let mut at = ROOT;
        self.raise(at, literals);
        for segment in segments {
            let next = self.0.len();
            let Some(node) = self.0.get_mut(at) else { return };
            at = match segment {
                Segment::Literal(text) => *node.literals.entry((*text).into()).or_insert(next),
                Segment::Parameter => *node.parameter.get_or_insert(next),
            };
            if at == next {
                self.0.push(Node::default());
            }
            self.raise(at, literals);
        }
        let Some(node) = self.0.get_mut(at) else { return };
        if node.end.is_none_or(|end| rank < end.rank) {
            node.end = Some(Hit { literals, rank });
        }
    }

    /// The rank of the template that fits `path` best.
    pub(super) fn find(&self, path: &str) -> Option<u32> {
        let mut best = None;
        self.search(ROOT, Some(path.strip_prefix('/')?), &mut best);
        best.map(|hit| hit.rank)
    }

    /// Recurses only where a literal and a parameter both fit: no deeper than a template has parameters (a few hundred, by
    /// its length), and no node is visited twice.
    fn search(&self, start: usize, path: Option<&str>, best: &mut Option<Hit>) {
        let (mut at, mut rest) = (start, path);
        while let Some(node) = self.0.get(at) {
            if best.is_some_and(|best| node.most < best.literals) {
                return;
            }
            let Some(path) = rest else {
                if let Some(end) = node.end
                    && best.is_none_or(|best| end.is_before(best))
                {
                    *best = Some(end);
                }
                return;
            };
            let (segment, behind) = path.split_once('/').map_or((path, None), |(segment, behind)| (segment, Some(behind)));
            let literal = node.literals.get(segment).copied();
            match (literal, node.parameter.filter(|_| !segment.is_empty())) {
                (None, None) => return,
                (Some(next), None) | (None, Some(next)) => at = next,
                (Some(next), Some(parameter)) => {
                    // More literals first, so that fewer branches remain worth a look.
                    self.search(next, behind, best);
                    at = parameter;
                }
            }
            rest = behind;
        }
    }

    fn raise(&mut self, at: usize, literals: u32) {
        if let Some(node) = self.0.get_mut(at) {
            node.most = node.most.max(literals);
        }
    }
}
