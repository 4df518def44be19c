//! Expressions in the order of their rank; many are searched for at once.

use regex::{RegexSet, RegexSetBuilder};

use super::pattern::MAX_REGEX_SIZE;

/// How many expressions are searched for together. A set looks for all of its members, so that a hit in the first few
/// spares the rest.
const CHUNK: usize = 32;

/// The compiled expressions of a client.
#[derive(Debug, Default)]
pub(super) struct Regexes(Vec<Chunk>);

#[derive(Debug)]
struct Chunk {
    set: RegexSet,
    ranks: Vec<u32>,
}

impl Regexes {
    /// Compiles checked expressions, given in the order of their rank.
    pub(super) fn new(expressions: Vec<(String, u32)>) -> Self {
        let mut chunks = Vec::new();
        for part in expressions.chunks(CHUNK) {
            compile(part, &mut chunks);
        }
        Self(chunks)
    }

    /// The rank of the first expression that is found in `path`.
    pub(super) fn find(&self, path: &str) -> Option<u32> {
        self.0.iter().find_map(|chunk| chunk.ranks.get(chunk.set.matches(path).iter().next()?).copied())
    }
}

/// Compiles a part as one set, or as two if it grows too large as one. Each alone fits: that was checked.
fn compile(part: &[(String, u32)], chunks: &mut Vec<Chunk>) {
    let set = RegexSetBuilder::new(part.iter().map(|(text, _)| text)).size_limit(2 * part.len() * MAX_REGEX_SIZE).build();
    match set {
        Ok(set) => chunks.push(Chunk { set, ranks: part.iter().map(|(_, rank)| *rank).collect() }),
        Err(_) if part.len() > 1 => {
            let (first, second) = part.split_at(part.len() / 2);
            compile(first, chunks);
            compile(second, chunks);
        }
        Err(error) => debug_assert!(false, "a checked expression does not compile: {error}"),
    }
}
