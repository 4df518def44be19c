//! Functions that give strings (XPath 1.0, 4.1 and 4.2). Characters are Unicode scalar values.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::Function;
use crate::html::xpath::eval::{Context, Eval, Res};
use crate::html::xpath::lexer::is_space;
use crate::html::xpath::number;
use crate::html::xpath::plan::Op;

/// Room for what is usually concatenated: a class list between two spaces.
const CONCATENATED: usize = 48;
/// Characters up to which `translate` looks through its list; longer lists get a table.
const SHORT: usize = 8;

impl<'e> Eval<'e> {
    pub(in crate::html::xpath) fn call_string(&self, function: Function, args: &'e [Op], context: Context) -> Res<Cow<'e, str>> {
        Ok(match (function, args) {
            (Function::LocalName | Function::Name | Function::NamespaceUri, args) => {
                self.name_function(function, args, context)?
            }
            (Function::String, args) => self.string_or_context(args, context)?,
            (Function::Concat, args) => {
                self.charge_room()?;
                let mut all = String::with_capacity(CONCATENATED);
                for arg in args {
                    self.push(&mut all, &self.string(arg, context)?)?;
                }
                Cow::Owned(all)
            }
            (Function::SubstringBefore, [text, part]) => {
                let (text, part) = (self.string(text, context)?, self.string(part, context)?);
                self.charge_bytes(text.len())?;
                let end = text.find(&*part).unwrap_or(0);
                cut(text, 0, end)
            }
            (Function::SubstringAfter, [text, part]) => {
                let (text, part) = (self.string(text, context)?, self.string(part, context)?);
                self.charge_bytes(text.len())?;
                let start = text.find(&*part).map_or(text.len(), |at| at + part.len());
                let end = text.len();
                cut(text, start, end)
            }
            (Function::Substring, [text, from, rest @ ..]) => {
                let text = self.string(text, context)?;
                let from = self.number(from, context)?;
                let len = match rest.first() {
                    Some(len) => Some(self.number(len, context)?),
                    None => None,
                };
                self.charge_bytes(text.len())?;
                let (start, end) = range(&text, from, len);
                cut(text, start, end)
            }
            (Function::NormalizeSpace, args) => {
                let text = self.string_or_context(args, context)?;
                self.charge_chars(text.len())?;
                normalize_space(text)
            }
            (Function::Translate, [text, from, to]) => {
                let text = self.string(text, context)?;
                let (from, to) = (self.string(from, context)?, self.string(to, context)?);
                self.translate(text, &from, &to)?
            }
            (Function::ReReplace, _) => self.re_replace(None, args, context)?,
            _ => Cow::Borrowed(""),
        })
    }

    pub(super) fn string_or_context(&self, args: &'e [Op], context: Context) -> Res<Cow<'e, str>> {
        match args.first() {
            Some(arg) => self.string(arg, context),
            None => self.text_of(context.hit),
        }
    }

    fn translate(&self, text: Cow<'e, str>, from: &str, to: &str) -> Res<Cow<'e, str>> {
        // Each character of the text is looked for in the list, and the list is sorted.
        self.charge_room()?;
        self.charge(text.len() + 4 * from.len() + to.len())?;
        let mut to = to.chars();
        // Of a character that comes twice the first counts; one without partner is left out.
        let mut pairs: Vec<(char, Option<char>)> = from.chars().map(|c| (c, to.next())).collect();
        let is_short = pairs.len() <= SHORT;
        if !is_short {
            pairs.sort_by_key(|pair| pair.0);
            pairs.dedup_by_key(|pair| pair.0);
        }
        let find = |c: char| {
            if is_short {
                pairs.iter().find(|pair| pair.0 == c)
            } else {
                pairs.binary_search_by_key(&c, |pair| pair.0).ok().and_then(|place| pairs.get(place))
            }
        };
        let Some(first) = text.find(|c| find(c).is_some()) else { return Ok(text) };
        let mut made = String::with_capacity(text.len());
        let (kept, rest) = text.split_at_checked(first).unwrap_or(("", &text));
        made.push_str(kept);
        made.extend(rest.chars().filter_map(|c| find(c).map_or(Some(c), |pair| pair.1)));
        self.check_len(made.len())?;
        Ok(Cow::Owned(made))
    }
}

/// Bytes `start..end` of a text, without a copy if it is borrowed.
fn cut(text: Cow<'_, str>, start: usize, end: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(start..end).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(start..end).unwrap_or_default().to_owned()),
    }
}

/// The bytes of `substring()`: characters at positions p, from 1, with p ≥ round(from) and p < round(from) + round(len); none
/// if a number is NaN.
fn range(text: &str, from: f64, len: Option<f64>) -> (usize, usize) {
    let from = number::round(from);
    let behind = len.map_or(f64::INFINITY, |len| from + number::round(len));
    // With NaN there is no order, so nothing is taken.
    if from.partial_cmp(&behind) != Some(Ordering::Less) {
        return (0, 0);
    }
    let byte_of = |position: f64| {
        if position <= 1.0 {
            return 0;
        }
        // Saturates; a text is not that long.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "greater than 1, and casts saturate")]
        let skipped = (position - 1.0) as usize;
        if skipped >= text.len() {
            return text.len();
        }
        text.char_indices().nth(skipped).map_or(text.len(), |(byte, _)| byte)
    };
    let start = byte_of(from);
    (start, byte_of(behind).max(start))
}

/// Runs of white space as one space each, and none at the ends.
fn normalize_space(text: Cow<'_, str>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_space_byte = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let is_plain = !bytes.first().is_some_and(is_space_byte)
        && !bytes.last().is_some_and(is_space_byte)
        && bytes.iter().zip(bytes.iter().skip(1)).all(|(a, b)| !is_space_byte(a) || (*a == b' ' && !is_space_byte(b)));
    if is_plain {
        return text;
    }
    let mut made = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !made.is_empty() {
            made.push(' ');
        }
        made.push_str(word);
    }
    Cow::Owned(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substring_takes_positions_between_rounded_numbers() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for (from, len, expected) in [
            (2.0, Some(3.0), "234"),
            (2.0, None, "2345"),
            (1.5, Some(2.6), "234"),
            (0.0, Some(3.0), "12"),
            (nan, Some(3.0), ""),
            (1.0, Some(nan), ""),
            (-42.0, Some(inf), "12345"),
            (-inf, Some(inf), ""),
            (-inf, None, "12345"),
            (inf, None, ""),
            (0.5, Some(1.0), "1"),
            (0.4, Some(1.0), ""),
            (-0.5, Some(2.5), "12"),
            (5.0, Some(9.0), "5"),
            (6.0, None, ""),
            (3.0, Some(-1.0), ""),
            (3.0, Some(0.4), ""),
            (3.0, Some(0.5), "3"),
        ] {
            let (start, end) = range("12345", from, len);
            assert_eq!("12345".get(start..end), Some(expected), "{from} {len:?}");
        }
        let (start, end) = range("a😀é", 2.0, Some(1.0));
        assert_eq!("a😀é".get(start..end), Some("😀"));
    }

    #[test]
    fn only_the_white_space_of_the_grammar_is_normalised() {
        for (given, expected) in [
            ("", ""),
            (" ", ""),
            (" a  b ", "a b"),
            ("a b", "a b"),
            ("a\tb", "a b"),
            ("a\u{a0} \u{a0}b", "a\u{a0} \u{a0}b"),
            ("\n\na", "a"),
        ] {
            assert_eq!(normalize_space(Cow::Borrowed(given)), expected);
        }
        assert!(matches!(normalize_space(Cow::Borrowed("a b c")), Cow::Borrowed(_)));
    }
}
