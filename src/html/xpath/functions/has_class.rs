//! parsel's `has-class(name, …)`: whether the context node has all of the classes.

use std::borrow::Cow;

use crate::html::hit::Hit;
use crate::html::names::known;
use crate::html::xpath::error::XPathError;
use crate::html::xpath::eval::{Context, Eval, Res};
use crate::html::xpath::plan::Op;
use crate::html::xpath::value::Val;

impl<'e> Eval<'e> {
    /// A class may be several words: they must stand side by side then, as in parsel. Letter case counts.
    pub(super) fn has_class(&self, args: &'e [Op], context: Context) -> Res<bool> {
        let list = match context.hit {
            Hit::Node(node) => self.attr(node, known::CLASS)?,
            Hit::Attr { .. } => None,
        };
        for arg in args {
            self.charge(1)?;
            let wanted = match arg {
                Op::Literal(wanted) => Cow::Borrowed(&**wanted),
                _ => self.class(arg, context)?,
            };
            let Some(list) = list else { return Ok(false) };
            self.charge_chars(list.len())?;
            if !has(list, &wanted) {
                return Ok(false);
            }
        }
        Ok(list.is_some())
    }

    fn class(&self, arg: &'e Op, context: Context) -> Res<Cow<'e, str>> {
        match self.value(arg, context)? {
            Val::String(wanted) => Ok(wanted),
            other => {
                Err(XPathError::Kind { place: "a class of has-class()".to_owned(), found: other.kind(), allowed: "string" }
                    .into())
            }
        }
    }
}

/// Whether `wanted` stands in the list with white space or an end to each side; each white space of the list is a space.
fn has(list: &str, wanted: &str) -> bool {
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let (list, wanted) = (list.as_bytes(), wanted.as_bytes());
    if wanted.is_empty() {
        // Two white spaces side by side, those put around the list included.
        return list.is_empty()
            || list.first().copied().is_some_and(is_space)
            || list.last().copied().is_some_and(is_space)
            || list.iter().zip(list.iter().skip(1)).any(|(a, b)| is_space(*a) && is_space(*b));
    }
    if !wanted.iter().copied().any(is_space) {
        return list.split(|byte| is_space(*byte)).any(|class| class == wanted);
    }
    let same = |a: &u8, b: &u8| a == b || (*b == b' ' && is_space(*a));
    let mut at = 0;
    while let Some(rest) = list.get(at..)
        && rest.len() >= wanted.len()
    {
        if rest.iter().zip(wanted).all(|(a, b)| same(a, b)) && rest.get(wanted.len()).is_none_or(|byte| is_space(*byte)) {
            return true;
        }
        // On to the next place behind white space.
        match rest.iter().position(|byte| is_space(*byte)) {
            Some(space) => at += space + 1,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_between_white_space_only() {
        for (list, wanted, expected) in [
            ("item first", "item", true),
            ("item first", "first", true),
            ("item first", "ite", false),
            ("item first", "irst", false),
            ("item", "Item", false),
            ("a\nb\tc", "b", true),
            ("a\nb\tc", "a b", true),
            ("a  b", "a b", false),
            ("ab ab-c", "ab-c", true),
            ("", "x", false),
            ("", "", true),
            ("a b", "", false),
            ("a  b", "", true),
            (" a", "a", true),
            ("aa a", "a", true),
            ("a\u{a0}b", "a", false),
            ("x", "x y", false),
        ] {
            assert_eq!(has(list, wanted), expected, "{list:?} {wanted:?}");
        }
    }
}
