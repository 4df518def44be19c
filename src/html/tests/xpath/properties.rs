//! Random expressions on random small trees, against an evaluator that follows the specification's definitions word by word;
//! and random texts, which are parsed or refused, but never more.

use proptest::prelude::*;

use super::*;
use crate::html::Namespace;
use crate::html::arena::{Arena, Kind, NodeId};

/// Choices taken from bytes, so that shorter and smaller bytes are simpler cases.
struct Choices<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % most
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const AXES: [&str; 13] = [
    "child",
    "descendant",
    "descendant-or-self",
    "attribute",
    "self",
    "parent",
    "ancestor",
    "ancestor-or-self",
    "following-sibling",
    "preceding-sibling",
    "following",
    "preceding",
    "namespace",
];
const TESTS: [&str; 9] = ["*", "node()", "ax", "bx", "x", "y", "text()", "comment()", "BX"];

#[derive(Clone, Debug)]
enum Predicate {
    Index(usize),
    Last,
    Before(usize),
    FromEnd(usize),
    Some(Path),
    Not(Path),
    Count(Path, usize),
    Is(Path, &'static str),
    Size(usize),
}

#[derive(Clone, Debug)]
struct Step {
    axis: &'static str,
    test: &'static str,
    predicates: Vec<Predicate>,
    /// Whether it is written in its short form, if it has one.
    short: bool,
}

#[derive(Clone, Debug)]
struct Path {
    from_root: bool,
    steps: Vec<Step>,
}

impl Path {
    fn make(choices: &mut Choices<'_>, depth: usize) -> Self {
        let from_root = choices.below(4) == 3;
        let steps = (0..=choices.below(4)).map(|_| Step::make(choices, depth)).collect();
        Self { from_root, steps }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut is_open = !self.from_root;
        for step in &self.steps {
            let slash = if is_open { "" } else { "/" };
            let is_all = step.axis == "descendant-or-self" && step.test == "node()" && step.predicates.is_empty();
            let is_last = std::ptr::eq(step, &raw const *self.steps.last().unwrap());
            if step.short && is_all && (self.from_root || !text.is_empty()) && !text.ends_with('/') && !is_last {
                // `//` instead of a step between two others.
                text.push('/');
                continue;
            }
            text.push_str(slash);
            text.push_str(&step.text());
            is_open = false;
        }
        text
    }
}

impl Step {
    fn make(choices: &mut Choices<'_>, depth: usize) -> Self {
        let predicates = if depth == 0 { 0 } else { [0, 0, 1, 2][choices.below(4)] };
        let predicates = (0..predicates).map(|_| Predicate::make(choices, depth - 1)).collect();
        Self { axis: choices.of(&AXES), test: choices.of(&TESTS), predicates, short: choices.below(2) == 1 }
    }

    fn text(&self) -> String {
        let predicates: String = self.predicates.iter().map(|predicate| format!("[{}]", predicate.text())).collect();
        match (self.short, self.axis, self.test) {
            (true, "self", "node()") if predicates.is_empty() => ".".to_owned(),
            (true, "parent", "node()") if predicates.is_empty() => "..".to_owned(),
            (true, "child", test) => format!("{test}{predicates}"),
            (true, "attribute", test) => format!("@{test}{predicates}"),
            (_, axis, test) => format!("{axis}::{test}{predicates}"),
        }
    }
}

impl Predicate {
    fn make(choices: &mut Choices<'_>, depth: usize) -> Self {
        let number = choices.below(4);
        match choices.below(9) {
            0 => Self::Index(number),
            1 => Self::Last,
            2 => Self::Before(number),
            3 => Self::FromEnd(number),
            4 => Self::Some(Path::make(choices, depth)),
            5 => Self::Not(Path::make(choices, depth)),
            6 => Self::Count(Path::make(choices, depth), number),
            7 => Self::Is(Path::make(choices, depth), choices.of(&["0", "1", "", "01"])),
            _ => Self::Size(number),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Index(n) => n.to_string(),
            Self::Last => "last()".to_owned(),
            Self::Before(n) => format!("position() < {n}"),
            Self::FromEnd(n) => format!("last() - {n}"),
            Self::Some(path) => path.text(),
            Self::Not(path) => format!("not({})", path.text()),
            Self::Count(path, n) => format!("count({}) = {n}", path.text()),
            Self::Is(path, text) => format!("{} = '{text}'", path.text()),
            Self::Size(n) => format!("last() = {n}"),
        }
    }
}

/// All nodes in document order with the place of their parent.
struct Naive<'d> {
    document: &'d Document,
    nodes: Vec<(Hit, Option<usize>)>,
}

impl<'d> Naive<'d> {
    fn new(document: &'d Document) -> Self {
        let arena = document.arena();
        let mut nodes: Vec<(Hit, Option<usize>)> = Vec::new();
        let mut id = NodeId::DOCUMENT;
        while id.is_some() {
            if arena.kind(id) != Kind::Doctype {
                let parent = nodes.iter().position(|(hit, _)| *hit == Hit::Node(arena.parent(id)));
                let place = nodes.len();
                nodes.push((Hit::Node(id), parent));
                nodes.extend((0..).zip(arena.attrs(id)).map(|(n, _)| (Hit::Attr { owner: id, place: n }, Some(place))));
            }
            id = arena.following(id, NodeId::DOCUMENT);
        }
        Self { document, nodes }
    }

    fn arena(&self) -> &'d Arena {
        self.document.arena()
    }

    fn is_attr(&self, n: usize) -> bool {
        matches!(self.nodes[n].0, Hit::Attr { .. })
    }

    fn is_above(&self, above: usize, n: usize) -> bool {
        let mut n = n;
        while let Some(parent) = self.nodes[n].1 {
            if parent == above {
                return true;
            }
            n = parent;
        }
        false
    }

    /// 2.2, each axis as it is defined.
    fn is_on(&self, axis: &str, from: usize, n: usize) -> bool {
        let (attr, from_attr) = (self.is_attr(n), self.is_attr(from));
        let parent = |n: usize| self.nodes[n].1;
        match axis {
            "child" => !attr && parent(n) == Some(from),
            "descendant" => !attr && self.is_above(from, n),
            "descendant-or-self" => n == from || (!attr && self.is_above(from, n)),
            "attribute" => attr && parent(n) == Some(from),
            "self" => n == from,
            "parent" => parent(from) == Some(n),
            "ancestor" => self.is_above(n, from),
            "ancestor-or-self" => n == from || self.is_above(n, from),
            "following-sibling" => !attr && !from_attr && parent(n) == parent(from) && n > from,
            "preceding-sibling" => !attr && !from_attr && parent(n) == parent(from) && n < from,
            "following" => !attr && n > from && !self.is_above(from, n),
            "preceding" => !attr && n < from && !self.is_above(n, from),
            _ => false,
        }
    }

    fn passes(&self, axis: &str, test: &str, n: usize) -> bool {
        let arena = self.arena();
        match (self.nodes[n].0, test) {
            (_, "node()") => true,
            (Hit::Attr { .. }, "text()" | "comment()") => false,
            (hit @ Hit::Attr { .. }, name) => {
                let attr = hit.attr(arena).unwrap();
                axis == "attribute" && (name == "*" || arena.name_text(attr.name()) == written(arena, hit.node(), name))
            }
            (Hit::Node(id), "text()") => arena.is_text(id),
            (Hit::Node(id), "comment()") => arena.kind(id) == Kind::Comment,
            (Hit::Node(id), name) => {
                axis != "attribute"
                    && arena.is_element(id)
                    && (name == "*" || arena.name_text(arena.name(id)) == written(arena, id, name))
            }
        }
    }

    fn text(&self, n: usize) -> String {
        let arena = self.arena();
        match self.nodes[n].0 {
            hit @ Hit::Attr { .. } => arena.text(hit.attr(arena).unwrap().value()).to_owned(),
            Hit::Node(id) => self.document.node(id).unwrap().text(),
        }
    }

    fn path(&self, path: &Path, context: usize) -> Vec<usize> {
        let mut from = vec![if path.from_root { 0 } else { context }];
        for step in &path.steps {
            let mut all = vec![false; self.nodes.len()];
            for n in from {
                for found in self.step(step, n) {
                    all[found] = true;
                }
            }
            from = (0..all.len()).filter(|n| all[*n]).collect();
        }
        from
    }

    fn step(&self, step: &Step, from: usize) -> Vec<usize> {
        let on = |n: &usize| self.is_on(step.axis, from, *n) && self.passes(step.axis, step.test, *n);
        let mut found: Vec<usize> = (0..self.nodes.len()).filter(on).collect();
        if matches!(step.axis, "ancestor" | "ancestor-or-self" | "preceding" | "preceding-sibling") {
            found.reverse();
        }
        for predicate in &step.predicates {
            let size = found.len();
            let kept = found.iter().zip(1..).filter(|(n, position)| self.holds(predicate, **n, *position, size));
            found = kept.map(|(n, _)| *n).collect();
        }
        found
    }

    fn holds(&self, predicate: &Predicate, n: usize, position: usize, size: usize) -> bool {
        match predicate {
            Predicate::Index(k) => position == *k,
            Predicate::Last => position == size,
            Predicate::Before(k) => position < *k,
            Predicate::FromEnd(k) => position + k == size,
            Predicate::Some(path) => !self.path(path, n).is_empty(),
            Predicate::Not(path) => self.path(path, n).is_empty(),
            Predicate::Count(path, k) => self.path(path, n).len() == *k,
            Predicate::Is(path, text) => self.path(path, n).iter().any(|n| self.text(*n) == *text),
            Predicate::Size(k) => size == *k,
        }
    }
}

/// A name as it counts on an element.
fn written(arena: &Arena, id: NodeId, name: &str) -> String {
    if arena.namespace(id) == Namespace::Html { name.to_lowercase() } else { name.to_owned() }
}

/// A small tree; ids ascend in document order or, if `moves`, not.
fn tree(choices: &mut Choices<'_>, moves: bool) -> Document {
    let mut html = String::from("<!DOCTYPE html><body>");
    let mut open = Vec::new();
    for _ in 0..choices.below(14) {
        match choices.below(8) {
            0..4 => {
                let name = choices.of(&["ax", "bx", "svg"]);
                html.push_str(&format!("<{name}{}>", choices.of(&["", " x=0", " y=1", " x=1 y=0"])));
                open.push(name);
            }
            4 => html.push_str(choices.of(&["0", "1"])),
            5 => html.push_str("<!--1-->"),
            _ => {
                if let Some(name) = open.pop() {
                    html.push_str(&format!("</{name}>"));
                }
            }
        }
    }
    let mut document = page(&html);
    if moves {
        for _ in 0..choices.below(4) {
            let len = document.arena.len();
            let (id, to) = (NodeId::at(choices.below(len)), NodeId::at(choices.below(len)));
            let is_below = std::iter::successors(Some(to), |id| document.arena.parent(*id).some()).any(|above| above == id);
            if !is_below && document.arena.is_element(to) && document.arena.parent(id).is_some() {
                document.arena.detach(id);
                if choices.below(4) > 0 {
                    document.arena.append(to, id);
                }
            }
        }
    }
    document
}

fn same_as_naive(tree_bytes: &[u8], bytes: &[u8], moves: bool) -> Result<(), TestCaseError> {
    let document = tree(&mut Choices { bytes: tree_bytes.iter() }, moves);
    let mut choices = Choices { bytes: bytes.iter() };
    let naive = Naive::new(&document);
    let context = choices.below(naive.nodes.len());
    let (first, second) = (Path::make(&mut choices, 2), Path::make(&mut choices, 1));
    let (text, expected) = match choices.below(5) {
        0 => {
            let mut all = [naive.path(&first, context), naive.path(&second, context)].concat();
            all.sort_unstable();
            all.dedup();
            (format!("{} | {}", first.text(), second.text()), all)
        }
        1 => {
            let predicate = Predicate::make(&mut choices, 1);
            let all = naive.path(&first, context);
            let size = all.len();
            let kept = all.iter().zip(1..).filter(|(n, position)| naive.holds(&predicate, **n, *position, size));
            (format!("({})[{}]", first.text(), predicate.text()), kept.map(|(n, _)| *n).collect())
        }
        2 if !second.from_root => {
            let mut all: Vec<usize> = naive.path(&first, context).into_iter().flat_map(|n| naive.path(&second, n)).collect();
            all.sort_unstable();
            all.dedup();
            (format!("({})/{}", first.text(), second.text()), all)
        }
        _ => (first.text(), naive.path(&first, context)),
    };
    let compiled = Compiled::parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
    let found = compiled.evaluate(&document, naive.nodes[context].0, &Variables::NONE);
    let expected: Vec<Hit> =
        expected.into_iter().map(|n| naive.nodes[n].0).filter(|hit| *hit != Hit::Node(NodeId::DOCUMENT)).collect();
    prop_assert_eq!(found, Ok(Value::Nodes(expected)), "{} from {:?} on\n{}", text, naive.nodes[context].0, document.dump());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn paths_give_what_the_definitions_say(
        tree in prop::collection::vec(any::<u8>(), 0..60),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        same_as_naive(&tree, &bytes, false)?;
    }

    #[test]
    fn so_they_do_where_ids_do_not_ascend(
        tree in prop::collection::vec(any::<u8>(), 0..70),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        same_as_naive(&tree, &bytes, true)?;
    }

    #[test]
    fn any_text_is_an_expression_or_an_error(text in "\\PC{0,40}") {
        if let Err(error) = evaluate(&page("<p>x"), &text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn any_tokens_are_an_expression_or_an_error(tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..14)) {
        let text = tokens.concat();
        if let Err(error) = evaluate(&page("<p id=1 class='a b'>x<b>2</b>"), &text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

const TOKENS: [&str; 54] = [
    "/",
    "//",
    "[",
    "]",
    "(",
    ")",
    "@",
    ".",
    "..",
    "*",
    "|",
    "+",
    "-",
    "=",
    "!=",
    "<",
    ">=",
    ",",
    "::",
    " ",
    "p",
    "b",
    "id",
    "1",
    "2.5",
    "'x'",
    "\"é\"",
    "$v",
    "child::",
    "ancestor::",
    "preceding::",
    "text()",
    "node()",
    "processing-instruction('p')",
    "position()",
    "last()",
    "count(",
    "not(",
    "string(",
    "concat(",
    "substring(",
    "translate(",
    "re:test(",
    "re:match(",
    "re:replace(",
    "set:distinct(",
    "has-class(",
    "id(",
    "sum(",
    " and ",
    " or ",
    " div ",
    " mod ",
    "normalize-space(",
];
