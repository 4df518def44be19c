//! `re:test`, `re:match` and `re:replace` as lxml has them (EXSLT names, Python's rules for groups and replacements), on the
//! `regex` crate: no look-around and no back references, but time that is linear in the text.
//!
//! Flags are `i` (letter case does not count) and `g` (all matches instead of the first); others are ignored, as in lxml.

use std::borrow::Cow;
use std::rc::Rc;

use regex::{Captures, Regex, RegexBuilder};

use super::error::XPathError;
use super::eval::{Context, Eval, Res};
use super::plan::Op;
use super::value::Val;

/// The largest compiled program in bytes; `\d{1,100}` takes some ten thousand.
const MOST_BYTES: usize = 1 << 20;
/// Patterns made while evaluating that are kept for the next node.
const KEPT: usize = 16;
/// Steps that finding a match with its groups costs.
const A_MATCH: usize = 24;

/// A compiled pattern with its flags.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
    is_global: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str, flags: &str) -> Res<Self> {
        RegexBuilder::new(&translate(pattern))
            .case_insensitive(flags.contains('i'))
            .size_limit(MOST_BYTES)
            .dfa_size_limit(MOST_BYTES)
            .build()
            .map(|regex| Self { regex, is_global: flags.contains('g') })
            .map_err(|error| {
                let reason = match error {
                    regex::Error::CompiledTooBig(most) => format!("it takes more than {most} bytes when compiled"),
                    error => error.to_string(),
                };
                XPathError::Pattern { pattern: pattern.chars().take(200).collect(), reason }.into()
            })
    }
}

/// Python's `\Z`, the end of the text, is `\z` here.
fn translate(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains("\\Z") {
        return Cow::Borrowed(pattern);
    }
    let mut made = String::with_capacity(pattern.len());
    let mut is_escaped = false;
    for c in pattern.chars() {
        made.push(if is_escaped && c == 'Z' { 'z' } else { c });
        is_escaped = c == '\\' && !is_escaped;
    }
    Cow::Owned(made)
}

/// Patterns made while evaluating, the latest last.
pub(super) type Patterns = Vec<(String, Rc<Pattern>)>;

impl<'e> Eval<'e> {
    /// The pattern of a call: the one made with the expression, else one of its arguments.
    fn pattern(&self, made: Option<&'e Pattern>, args: &'e [Op], context: Context) -> Res<Made<'e>> {
        if let Some(pattern) = made {
            return Ok(Made::Before(pattern));
        }
        let text = match args.get(1) {
            Some(arg) => self.string(arg, context)?,
            None => Cow::Borrowed(""),
        };
        let flags = match args.get(2) {
            Some(arg) => self.string(arg, context)?,
            None => Cow::Borrowed(""),
        };
        let key = format!("{flags}/{text}");
        let mut kept = self.patterns.borrow_mut();
        if let Some((_, pattern)) = kept.iter().find(|(other, _)| *other == key) {
            return Ok(Made::Now(Rc::clone(pattern)));
        }
        // Making one costs far more than looking at a node.
        self.charge(5_000 + 50 * text.len())?;
        let pattern = Rc::new(Pattern::new(&text, &flags)?);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((key, Rc::clone(&pattern)));
        Ok(Made::Now(pattern))
    }

    fn subject(&self, args: &'e [Op], context: Context) -> Res<Cow<'e, str>> {
        let text = match args.first() {
            Some(arg) => self.string(arg, context)?,
            None => Cow::Borrowed(""),
        };
        self.charge_chars(text.len())?;
        Ok(text)
    }

    /// `re:test(text, pattern, flags?)`.
    pub(super) fn re_test(&self, made: Option<&'e Pattern>, args: &'e [Op], context: Context) -> Res<bool> {
        let text = self.subject(args, context)?;
        Ok(self.pattern(made, args, context)?.get().regex.is_match(&text))
    }

    /// `re:match(text, pattern, flags?)`: the first match and its groups; with `g` all matches, or their groups if there are any.
    pub(super) fn re_match(&self, made: Option<&'e Pattern>, args: &'e [Op], context: Context) -> Res<Val<'e>> {
        let text = self.subject(args, context)?;
        let pattern = self.pattern(made, args, context)?;
        let pattern = pattern.get();
        let group = |captures: &Captures<'_>, place: usize| captures.get(place).map_or("", |found| found.as_str()).to_owned();
        let groups = pattern.regex.captures_len();
        let mut found = Vec::new();
        if !pattern.is_global {
            if let Some(captures) = pattern.regex.captures(&text) {
                found.extend((0..groups).map(|place| group(&captures, place)));
            }
        } else {
            let mut bytes = 0;
            for captures in pattern.regex.captures_iter(&text) {
                self.charge(A_MATCH)?;
                let one =
                    if groups == 1 { group(&captures, 0) } else { (1..groups).map(|place| group(&captures, place)).collect() };
                bytes += one.len();
                self.check_len(bytes)?;
                found.push(one);
            }
        }
        Ok(Val::Strings(Rc::new(found)))
    }

    /// `re:replace(text, pattern, flags, replacement)`; the replacement may name groups as `\1` or `\g<name>`.
    pub(super) fn re_replace(&self, made: Option<&'e Pattern>, args: &'e [Op], context: Context) -> Res<Cow<'e, str>> {
        let text = self.subject(args, context)?;
        let pattern = self.pattern(made, args, context)?;
        let pattern = pattern.get();
        let replacement = match args.get(3) {
            Some(arg) => self.string(arg, context)?,
            None => Cow::Borrowed(""),
        };
        let parts = parts(&replacement, &pattern.regex)?;
        let mut result = String::new();
        let mut behind = 0;
        let most = if pattern.is_global { usize::MAX } else { 1 };
        for captures in pattern.regex.captures_iter(&text).take(most) {
            self.charge(A_MATCH)?;
            let Some(whole) = captures.get(0) else { continue };
            self.push(&mut result, text.get(behind..whole.start()).unwrap_or_default())?;
            for part in &parts {
                let piece = match part {
                    Part::Text(text) => text,
                    Part::Group(place) => captures.get(*place).map_or("", |found| found.as_str()),
                };
                self.push(&mut result, piece)?;
            }
            behind = whole.end();
        }
        if behind == 0 && result.is_empty() && !pattern.regex.is_match(&text) {
            return Ok(text);
        }
        self.push(&mut result, text.get(behind..).unwrap_or_default())?;
        Ok(Cow::Owned(result))
    }
}

/// A pattern of the expression, or one made by this evaluation.
enum Made<'e> {
    Before(&'e Pattern),
    Now(Rc<Pattern>),
}

impl Made<'_> {
    fn get(&self) -> &Pattern {
        match self {
            Self::Before(pattern) => pattern,
            Self::Now(pattern) => pattern,
        }
    }
}

/// A piece of a replacement.
#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Group(usize),
}

/// The pieces of a replacement in Python's form.
fn parts(replacement: &str, regex: &Regex) -> Res<Vec<Part>> {
    let mut all = Vec::new();
    let mut text = String::new();
    let mut rest = replacement;
    while let Some((before, behind)) = rest.split_once('\\') {
        text.push_str(before);
        let mut chars = behind.chars();
        rest = match chars.next() {
            Some('1'..='9') => {
                let len = behind.bytes().take(2).take_while(u8::is_ascii_digit).count();
                let (digits, rest) = behind.split_at_checked(len).unwrap_or((behind, ""));
                all.push(Part::Text(std::mem::take(&mut text)));
                all.push(Part::Group(group(digits, regex)?));
                rest
            }
            Some('g') if behind.starts_with("g<") => {
                let (name, rest) = behind.get(2..).and_then(|name| name.split_once('>')).unwrap_or(("", ""));
                all.push(Part::Text(std::mem::take(&mut text)));
                all.push(Part::Group(group(name, regex)?));
                rest
            }
            Some(c) => {
                match c {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '\\' => text.push('\\'),
                    c => text.extend(['\\', c]),
                }
                chars.as_str()
            }
            None => {
                text.push('\\');
                ""
            }
        };
    }
    text.push_str(rest);
    all.push(Part::Text(text));
    Ok(all)
}

/// The number of a group that is named by number or by name.
fn group(name: &str, regex: &Regex) -> Res<usize> {
    let number = match name.parse::<usize>() {
        Ok(number) => (number < regex.captures_len()).then_some(number),
        Err(_) => regex.capture_names().position(|other| other == Some(name)),
    };
    number.ok_or_else(|| {
        let reason = format!("it has no group {name:?}, which the replacement asks for");
        XPathError::Pattern { pattern: regex.as_str().chars().take(200).collect(), reason }.into()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_end_of_the_text_is_written_as_python_does() {
        assert_eq!(translate(r"a\Z"), r"a\z");
        assert_eq!(translate(r"a\\Z\d"), r"a\\Z\d");
        assert_eq!(translate(r"\\\Z"), r"\\\z");
    }

    #[test]
    fn groups_of_a_replacement_are_named_by_number_or_name() {
        let regex = Regex::new("(?P<word>a)(b)").unwrap();
        let text = |text: &str| Part::Text(text.to_owned());
        assert_eq!(parts(r"x\2y", &regex).unwrap(), [text("x"), Part::Group(2), text("y")]);
        assert_eq!(parts(r"\g<word>\g<0>", &regex).unwrap(), [text(""), Part::Group(1), text(""), Part::Group(0), text("")]);
        assert_eq!(parts(r"a\n\\\.$1\", &regex).unwrap(), [text("a\n\\\\.$1\\")]);
        assert!(parts(r"\3", &regex).is_err());
        assert!(parts(r"\g<no>", &regex).is_err());
    }

    #[test]
    fn a_pattern_that_is_too_large_or_wrong_is_an_error() {
        for pattern in ["(", r"(?=a)", r"(a)\1", r"\w{1000}{1000}"] {
            assert!(matches!(Pattern::new(pattern, ""), Err(error) if matches!(*error, XPathError::Pattern { .. })), "{pattern}");
        }
    }
}
