//! The pattern of a scope: `*` is any run of characters, slashes too, `?` is one character, all else is itself
//! (wire contract, section 17).

use std::fmt;

/// A pattern over a whole text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Glob(Box<str>);

impl Glob {
    /// Every text is a pattern.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// The pattern that everything matches.
    pub(crate) fn anything() -> Self {
        Self::new("*")
    }

    /// Whether the whole text matches. Time is at most the product of both lengths, whatever the pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut pattern = self.0.chars();
        let mut text = text.chars();
        // What follows the last star, and where in the text it was tried last. Only the last star need ever take more: what
        // an earlier one could take instead, the last one takes as well.
        let mut retry = None;
        loop {
            let here = text.clone();
            match (pattern.next(), text.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    text = here;
                    retry = Some((pattern.clone(), text.clone()));
                }
                (Some('?'), Some(_)) => {}
                (Some(wanted), Some(found)) if wanted == found => {}
                _ => {
                    let Some((after_star, tried)) = &mut retry else { return false };
                    if tried.next().is_none() {
                        return false;
                    }
                    pattern = after_star.clone();
                    text = tried.clone();
                }
            }
        }
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word, with exponential cost.
    fn slowly(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|taken| slowly(rest, &text[taken..])),
            Some(('?', rest)) => !text.is_empty() && slowly(rest, &text[1..]),
            Some((literal, rest)) => text.first() == Some(literal) && slowly(rest, &text[1..]),
        }
    }

    #[test]
    fn stars_cross_slashes_and_nothing_else_is_special() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("prod/*", "prod/signing/key", true),
            ("prod/*", "prod", false),
            ("crawler", "crawler2", false),
            ("c?awler", "crawler", true),
            ("?", "ü", true),
            ("?", "", false),
            ("a.c", "abc", false),
            ("[ab]", "a", false),
            ("*key*", "a/key", true),
            ("**", "x", true),
            ("*a*b", "aXbXb", true),
            ("*a*b", "aXbXc", false),
            ("Prod", "prod", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_the_product_of_the_lengths() {
        let pattern = Glob::new(&format!("{}b", "*a".repeat(200)));
        assert!(!pattern.matches(&"a".repeat(5_000)));
    }

    proptest! {
        #[test]
        fn matching_equals_the_slow_definition(pattern in "[ab?*/ü]{0,9}", text in "[ab?*/ü]{0,10}") {
            let slow = slowly(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());
            prop_assert_eq!(Glob::new(&pattern).matches(&text), slow);
        }
    }
}
