//! The bounds of the wire contract (section 8): what a request must keep before it is sent.
//!
//! A finding names the field, what is there (a length, a number, one character) and what is allowed. It never shows a text
//! in full, except short words of a closed set.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::ops::RangeInclusive;

use crate::spinneret::Error;

/// A bound that is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken(String);

impl Broken {
    /// The same in the element of a list: `reports[3].uri has …`.
    pub(crate) fn at(self, list: &str, index: usize) -> Self {
        Self(format!("{list}[{index}].{}", self.0))
    }

    /// What is wrong, when it is none of the bounds here.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::invalid(broken.0)
    }
}

/// Checks the length of a text, in Unicode characters.
pub(crate) fn text(field: &str, text: &str, allowed: RangeInclusive<usize>) -> Result<(), Broken> {
    // A character is at least one byte: most texts need no counting.
    let is_short = !text.is_empty() && text.len() <= *allowed.end() && *allowed.start() <= 1;
    if is_short {
        return Ok(());
    }
    let found = text.chars().count();
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(Broken(format!("{field} has {found} characters, {}", Allowed(&allowed))))
}

/// Checks the number of elements.
pub(crate) fn count(field: &str, found: usize, allowed: RangeInclusive<usize>) -> Result<(), Broken> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(Broken(format!("{field} has {found} elements, {}", Allowed(&allowed))))
}

/// Checks a number.
pub(crate) fn number<N: PartialOrd + fmt::Display>(field: &str, found: N, allowed: RangeInclusive<N>) -> Result<(), Broken> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(Broken(format!("{field} is {found}, {}", Allowed(&allowed))))
}

/// Checks that a text holds only such characters.
pub(crate) fn alphabet(field: &str, text: &str, is_allowed: impl Fn(char) -> bool, allowed: &str) -> Result<(), Broken> {
    match text.chars().find(|character| !is_allowed(*character)) {
        None => Ok(()),
        Some(found) => Err(Broken(format!("{field} holds the character {found:?}, allowed are {allowed}"))),
    }
}

/// Checks that no element comes twice.
pub(crate) fn distinct<T: Hash + Eq>(list: &str, elements: impl IntoIterator<Item = T>) -> Result<(), Broken> {
    let mut known = HashSet::new();
    match elements.into_iter().position(|element| !known.insert(element)) {
        None => Ok(()),
        Some(index) => Err(Broken(format!("{list}[{index}] is there before, allowed are distinct ones"))),
    }
}

struct Allowed<'a, N>(&'a RangeInclusive<N>);

impl<N: fmt::Display> fmt::Display for Allowed<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allowed are {} to {}", self.0.start(), self.0.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: Result<(), Broken>) -> String {
        result.map_or_else(|Broken(what)| what, |()| String::new())
    }

    #[test]
    fn lengths_count_characters_not_bytes() {
        assert_eq!(text("site", &"ü".repeat(64), 1..=64), Ok(()));
        assert_eq!(text("site", "", 0..=64), Ok(()));
        assert_eq!(said(text("site", &"ü".repeat(65), 1..=64)), "site has 65 characters, allowed are 1 to 64");
        assert_eq!(said(text("site", "", 1..=64)), "site has 0 characters, allowed are 1 to 64");
    }

    #[test]
    fn findings_say_where_what_and_what_is_allowed() {
        assert_eq!(said(number("wait_ms", -1, 0..=5000)), "wait_ms is -1, allowed are 0 to 5000");
        assert_eq!(said(count("items", 201, 1..=200)), "items has 201 elements, allowed are 1 to 200");
        let strange = said(alphabet("path", "Upper", |c| c.is_ascii_lowercase(), "a-z"));
        assert_eq!(strange, "path holds the character 'U', allowed are a-z");
        assert_eq!(said(distinct("items", [1, 2, 1])), "items[2] is there before, allowed are distinct ones");
        assert_eq!(
            said(number("latency_ms", -1, 0..=9).map_err(|broken| broken.at("reports", 3))),
            "reports[3].latency_ms is -1, allowed are 0 to 9"
        );
    }
}
