//! Patterns of rules: their kinds, and what is allowed in each (wire contract, section 18).

use std::fmt;

use regex::RegexBuilder;

use super::error::{PatternFault, shown};
use super::re2::to_rust;
use super::uri::has_space;

/// The longest pattern for a path, in bytes.
const MAX_PATH: usize = 2048;

/// The longest expression, in bytes.
const MAX_REGEX: usize = 1024;

/// The largest compiled expression, in bytes: about what 2048 instructions take that each match any character.
pub(super) const MAX_REGEX_SIZE: usize = 1 << 20;

/// How a rule compares its pattern with a path, in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RuleKind {
    /// The path is the pattern.
    Exact,
    /// Segment by segment; `{name}` is any one segment that is not empty.
    Template,
    /// The path starts with the pattern, byte by byte; the longest wins.
    Prefix,
    /// The expression is found somewhere in the path.
    Regex,
}

impl RuleKind {
    /// All of them, in the order of precedence.
    pub(crate) const ALL: [Self; 4] = [Self::Exact, Self::Template, Self::Prefix, Self::Regex];

    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Template => "template",
            Self::Prefix => "prefix",
            Self::Regex => "regex",
        }
    }

    /// The kind of exactly this spelling.
    #[cfg(test)]
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A segment of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    Literal(&'a str),
    Parameter,
}

/// Checks a pattern that is compared with a path.
pub(super) fn check_path(pattern: &str) -> Result<(), PatternFault> {
    if !pattern.starts_with('/') {
        return Err(PatternFault::NoSlash);
    }
    if pattern.len() > MAX_PATH {
        return Err(PatternFault::TooLong { found: pattern.len(), allowed: MAX_PATH });
    }
    if let Some(found) = pattern.chars().find(|character| matches!(character, '?' | '#')) {
        return Err(PatternFault::QueryOrFragment(found));
    }
    if has_space(pattern) { Err(PatternFault::Space) } else { Ok(()) }
}

/// Checks a template and splits it; the part before the first `/` is left out.
pub(super) fn segments(pattern: &str) -> Result<Vec<Segment<'_>>, PatternFault> {
    check_path(pattern)?;
    let mut names = Vec::new();
    let mut segments = Vec::new();
    for segment in pattern.split('/').skip(1) {
        if !segment.contains(['{', '}']) {
            segments.push(Segment::Literal(segment));
            continue;
        }
        let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(name) = name.filter(|name| !name.contains(['{', '}'])) else {
            return Err(PatternFault::Brace(shown(segment)));
        };
        let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !starts_well || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(PatternFault::Parameter(shown(name)));
        }
        if names.contains(&name) {
            return Err(PatternFault::ParameterTwice(shown(name)));
        }
        names.push(name);
        segments.push(Segment::Parameter);
    }
    Ok(segments)
}

/// Checks an expression; gives it in the syntax of the engine here.
pub(super) fn regex(pattern: &str) -> Result<String, PatternFault> {
    if pattern.len() > MAX_REGEX {
        return Err(PatternFault::TooLong { found: pattern.len(), allowed: MAX_REGEX });
    }
    let ours = to_rust(pattern);
    match RegexBuilder::new(&ours).size_limit(MAX_REGEX_SIZE).build() {
        Ok(_) => Ok(ours),
        Err(regex::Error::CompiledTooBig(_)) => Err(PatternFault::RegexSize),
        Err(error) => {
            // The last line says what is wrong; those before it draw the pattern again.
            let text = error.to_string();
            let reason = text.lines().next_back().unwrap_or_default();
            Err(PatternFault::Regex(shown(reason.strip_prefix("error: ").unwrap_or(reason))))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn every_kind_keeps_its_spelling() {
        assert!(RuleKind::ALL.iter().all(|kind| RuleKind::of(kind.name()) == Some(*kind)));
        assert_eq!(RuleKind::of("Exact"), None);
    }

    #[test]
    fn a_path_pattern_is_a_clean_path() {
        for pattern in ["/", "//", "/a/b/", "/%20", "/ü", "/{", &format!("/{}", "a".repeat(2047))] {
            assert_eq!(check_path(pattern), Ok(()), "{pattern}");
        }
        for (pattern, fault) in [
            ("", PatternFault::NoSlash),
            ("a/", PatternFault::NoSlash),
            ("/a?b", PatternFault::QueryOrFragment('?')),
            ("/a#b", PatternFault::QueryOrFragment('#')),
            ("/a b", PatternFault::Space),
            ("/a\u{3000}", PatternFault::Space),
            (&format!("/{}", "a".repeat(2048)), PatternFault::TooLong { found: 2049, allowed: 2048 }),
        ] {
            assert_eq!(check_path(pattern), Err(fault), "{pattern}");
        }
    }

    #[test]
    fn a_template_is_split_into_literals_and_parameters() {
        use Segment::{Literal, Parameter};
        for (pattern, expected) in [
            ("/", vec![Literal("")]),
            ("/a/{id}", vec![Literal("a"), Parameter]),
            ("/{_a}/{b2}/", vec![Parameter, Parameter, Literal("")]),
            ("//x", vec![Literal(""), Literal("x")]),
        ] {
            assert_eq!(segments(pattern), Ok(expected), "{pattern}");
        }
        for (pattern, fault) in [
            ("/a{id}", PatternFault::Brace("a{id}".to_owned())),
            ("/{id", PatternFault::Brace("{id".to_owned())),
            ("/id}", PatternFault::Brace("id}".to_owned())),
            ("/{a}{b}", PatternFault::Brace("{a}{b}".to_owned())),
            ("/{", PatternFault::Brace("{".to_owned())),
            ("/{}", PatternFault::Parameter(String::new())),
            ("/{1a}", PatternFault::Parameter("1a".to_owned())),
            ("/{a-b}", PatternFault::Parameter("a-b".to_owned())),
            ("/{ü}", PatternFault::Parameter("ü".to_owned())),
            ("/{a}/{a}", PatternFault::ParameterTwice("a".to_owned())),
        ] {
            assert_eq!(segments(pattern), Err(fault), "{pattern}");
        }
    }

    #[test]
    fn an_expression_is_bounded_in_length_and_size() {
        assert!(regex(&"a".repeat(1024)).is_ok());
        assert_eq!(regex(&"a".repeat(1025)), Err(PatternFault::TooLong { found: 1025, allowed: 1024 }));
        assert_eq!(regex(r"(?:\pL{500}){500}"), Err(PatternFault::RegexSize));
        assert!(matches!(regex("/a("), Err(PatternFault::Regex(reason)) if reason == "unclosed group"));
        assert!(matches!(regex(r"(a)\1"), Err(PatternFault::Regex(_))), "RE2 has no back references");
    }
}
