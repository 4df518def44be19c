//! Path patterns of robots.txt: normalisation and matching in linear time.
//!
//! Both sides are brought to one spelling first (RFC 9309 2.2.2): unreserved characters decoded, all other escapes in
//! upper case, everything outside ASCII encoded. Matching never backtracks: each literal piece between two `*` is taken
//! where it first occurs, which is right because `*` matches anything that follows.

use std::borrow::Cow;

use memchr::memmem;

use super::percent::{escape, is_unreserved};

/// One Allow or Disallow value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Literal text between the wildcards, at least one piece, possibly empty.
    pieces: Vec<Vec<u8>>,
    end: End,
    octets: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The rest of the target may be anything.
    Open,
    /// The target must end here (`$`).
    Anchored,
}

impl Pattern {
    pub(super) fn new(value: &[u8]) -> Self {
        let (value, end) = match value.strip_suffix(b"$") {
            Some(rest) => (rest, End::Anchored),
            None => (value, End::Open),
        };
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        for piece in value.split(|byte| *byte == b'*') {
            let normal = normalized(piece).into_owned();
            // A run of wildcards is one wildcard.
            if pieces.len() > 1 && normal.is_empty() && pieces.last().is_some_and(Vec::is_empty) {
                continue;
            }
            pieces.push(normal);
        }
        let wildcards = value.iter().filter(|byte| **byte == b'*').count();
        let octets = pieces.iter().map(Vec::len).sum::<usize>() + wildcards + usize::from(end == End::Anchored);
        Self { pieces, end, octets }
    }

    /// The length that decides between two matching patterns.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// Whether the pattern matches a target made by [`normalized_target`].
    pub(super) fn matches(&self, target: &[u8]) -> bool {
        self.matches_in(target).0
    }

    /// The same with the number of bytes that were compared or passed over.
    fn matches_in(&self, target: &[u8]) -> (bool, usize) {
        let Some((first, others)) = self.pieces.split_first() else {
            return (true, 0);
        };
        let mut steps = first.len();
        let Some(mut rest) = target.strip_prefix(first.as_slice()) else {
            return (false, steps);
        };
        let Some((last, middle)) = others.split_last() else {
            return (self.end == End::Open || rest.is_empty(), steps);
        };
        let mut skip = |rest: &mut &[u8], piece: &[u8]| {
            let after = after_first(rest, piece);
            steps += piece.len() + rest.len() - after.map_or(0, <[u8]>::len);
            *rest = after.unwrap_or(rest);
            after.is_some()
        };
        let is_match = middle.iter().all(|piece| skip(&mut rest, piece))
            && match self.end {
                End::Anchored => rest.ends_with(last),
                End::Open => skip(&mut rest, last),
            };
        (is_match, steps + if self.end == End::Anchored { last.len() } else { 0 })
    }
}

/// Brings path and query of a URL to the spelling of the patterns.
pub(super) fn normalized_target(target: &str) -> Cow<'_, [u8]> {
    normalized(target.as_bytes())
}

fn after_first<'a>(text: &'a [u8], piece: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::find(text, piece)?;
    text.get(at + piece.len()..)
}

/// Borrows when nothing has to change. `*` and `$` are encoded, because in a target they are ordinary characters.
fn normalized(text: &[u8]) -> Cow<'_, [u8]> {
    // Characters that some URL parsers encode and others do not are encoded on both sides.
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"%*$\"<>\\^`{|}".contains(byte);
    if text.iter().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            match escape(after) {
                Some((decoded, after_escape)) => {
                    rest = after_escape;
                    if is_unreserved(decoded) {
                        out.push(decoded);
                    } else {
                        push_escape(&mut out, decoded);
                    }
                }
                None => out.push(b'%'),
            }
        } else if is_plain(&byte) {
            out.push(byte);
        } else {
            push_escape(&mut out, byte);
        }
    }
    Cow::Owned(out)
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let mut text = String::with_capacity(3);
    super::percent::push_escape(&mut text, byte);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, target: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(&normalized_target(target))
    }

    #[test]
    fn wildcards_and_the_end_mark_have_their_meaning_only_in_the_pattern() {
        assert!(matches("/a*c$", "/abc"));
        assert!(!matches("/a*c$", "/abcd"));
        assert!(matches("/a$b", "/a$b"));
        assert!(!matches("/x*y", "/xz"));
        assert!(matches("/%2A", "/*"));
        assert!(!matches("/%2A", "/ab"));
        assert!(!matches("/ab*b$", "/ab"));
        assert!(matches("*$", "/anything"));
    }

    /// The sum of both lengths is what reading them once takes.
    fn assert_linear(pattern: &str, target: &str) {
        let pattern = Pattern::new(pattern.as_bytes());
        let target = normalized_target(target);
        let (_, steps) = pattern.matches_in(&target);
        assert!(steps <= pattern.octets() + target.len(), "{steps} steps, {} + {}", pattern.octets(), target.len());
    }

    #[test]
    fn a_hostile_pattern_takes_linear_steps() {
        let target = format!("/{}", "a".repeat(10_240));
        for piece in ["*", "a*", "*a", "*aa*b", "a**", "*/a*", "*a$"] {
            for end in ["", "b", "$", "b$", "*$"] {
                assert_linear(&format!("/{}{end}", piece.repeat(10_240 / piece.len())), &target);
            }
        }
    }

    /// The plain quadratic way to match, to compare with.
    fn by_table(pattern: &[u8], target: &[u8]) -> bool {
        let (pattern, anchored) = pattern.strip_suffix(b"$").map_or((pattern, false), |rest| (rest, true));
        let mut reachable: Vec<bool> = (0..=target.len()).map(|at| at == 0).collect();
        for symbol in pattern {
            let mut next = vec![false; target.len() + 1];
            let mut seen = false;
            for (at, open) in reachable.iter().enumerate() {
                seen |= *open;
                if *symbol == b'*' {
                    if let Some(slot) = next.get_mut(at) {
                        *slot = seen;
                    }
                } else if *open
                    && target.get(at) == Some(symbol)
                    && let Some(slot) = next.get_mut(at + 1)
                {
                    *slot = true;
                }
            }
            reachable = next;
        }
        if anchored { reachable.last() == Some(&true) } else { reachable.contains(&true) }
    }

    proptest! {
        #[test]
        fn the_greedy_way_agrees_with_the_table(pattern in "[ab*]{0,8}[$]?", target in "[ab]{0,12}") {
            prop_assert_eq!(matches(&pattern, &target), by_table(pattern.as_bytes(), target.as_bytes()));
        }

        #[test]
        fn every_pattern_takes_linear_steps(pattern in "[ab*%$]{0,200}", target in "[ab%]{0,200}") {
            assert_linear(&pattern, &target);
        }
    }
}
