//! Comparisons (XPath 1.0, 3.4): of sets with anything, one pair that compares is enough.

use std::borrow::Cow;
use std::collections::HashSet;

use super::ast::Binary;
use super::convert::boolean_of;
use super::eval::{Context, Eval, Res};
use super::plan::Op;
use super::value::Val;
use crate::html::hit::Hit;

impl<'e> Eval<'e> {
    /// Compares two expressions; a path that can be walked is walked no further than the answer needs.
    pub(super) fn compare_ops(&self, binary: Binary, left: &'e Op, right: &'e Op, context: Context) -> Res<bool> {
        if let Op::Path(_) = left {
            return self.compare_path(binary, left, &self.value(right, context)?, context);
        }
        let left = self.value(left, context)?;
        if let Op::Path(_) = right {
            return self.compare_path(mirror(binary), right, &left, context);
        }
        self.compare(binary, &left, &self.value(right, context)?)
    }

    fn compare_path(&self, binary: Binary, path: &'e Op, other: &Val<'e>, context: Context) -> Res<bool> {
        let mut is_true = false;
        if matches!(other, Val::String(_) | Val::Number(_))
            && self.each(path, context, &mut |hit| {
                is_true = match (binary, other) {
                    (Binary::Equal, Val::String(wanted)) => self.has_text(hit, wanted)?,
                    (Binary::NotEqual, Val::String(wanted)) => !self.has_text(hit, wanted)?,
                    _ => self.one(binary, &self.text_of(hit)?, other)?,
                };
                Ok(!is_true)
            })?
        {
            return Ok(is_true);
        }
        self.compare(binary, &self.value(path, context)?, other)
    }

    /// Whether the string-value of a node is `wanted`; looks no further than where it differs.
    fn has_text(&self, hit: Hit, wanted: &str) -> Res<bool> {
        let node = match hit {
            Hit::Node(node) if self.arena.first_child(node).is_some() => node,
            _ => return self.is_same(&self.text_of(hit)?, wanted),
        };
        let mut rest = wanted.as_bytes();
        let mut id = self.arena.following(node, node);
        while id.is_some() {
            self.charge(1)?;
            if self.arena.is_text(id) {
                self.charge_bytes(rest.len())?;
                match rest.strip_prefix(self.arena.bytes(self.arena.data(id))) {
                    Some(behind) => rest = behind,
                    None => return Ok(false),
                }
            }
            id = self.arena.following(id, node);
        }
        Ok(rest.is_empty())
    }

    /// Compares two values.
    pub(super) fn compare(&self, binary: Binary, left: &Val<'e>, right: &Val<'e>) -> Res<bool> {
        Ok(match (left, right) {
            (Val::Boolean(_), _) | (_, Val::Boolean(_)) => {
                let as_number = |value| f64::from(u8::from(boolean_of(value)));
                let (left, right) = match binary {
                    Binary::Equal | Binary::NotEqual => (as_number(left), as_number(right)),
                    // Of these only sets become booleans first.
                    _ => (self.ordered(left)?, self.ordered(right)?),
                };
                numbers(binary, left, right)
            }
            (Val::Nodes(_) | Val::Strings(_), Val::Nodes(_) | Val::Strings(_)) => self.compare_sets(binary, left, right)?,
            (Val::Nodes(_) | Val::Strings(_), _) => self.any_text(left, |text| self.one(binary, text, right))?,
            (_, Val::Nodes(_) | Val::Strings(_)) => {
                let mirrored = mirror(binary);
                self.any_text(right, |text| self.one(mirrored, text, left))?
            }
            (Val::String(left), Val::String(right)) if matches!(binary, Binary::Equal | Binary::NotEqual) => {
                self.is_same(left, right)? == (binary == Binary::Equal)
            }
            _ => numbers(binary, self.number_of(left)?, self.number_of(right)?),
        })
    }

    fn ordered(&self, value: &Val<'e>) -> Res<f64> {
        match value {
            Val::Nodes(_) | Val::Strings(_) => Ok(f64::from(u8::from(boolean_of(value)))),
            _ => self.number_of(value),
        }
    }

    /// Whether a text of a set satisfies.
    fn any_text(&self, set: &Val<'e>, mut satisfies: impl FnMut(&str) -> Res<bool>) -> Res<bool> {
        match set {
            Val::Nodes(hits) => {
                for hit in hits.iter() {
                    self.charge(1)?;
                    if satisfies(&self.text_of(*hit)?)? {
                        return Ok(true);
                    }
                }
            }
            Val::Strings(texts) => {
                for text in texts.iter() {
                    self.charge(1)?;
                    if satisfies(text)? {
                        return Ok(true);
                    }
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// Two sets, in time linear in both.
    fn compare_sets(&self, binary: Binary, left: &Val<'e>, right: &Val<'e>) -> Res<bool> {
        match binary {
            Binary::Equal => {
                for (one, all) in [(left, right), (right, left)] {
                    if let Val::Nodes(hits) = one
                        && let [hit] = &***hits
                    {
                        let wanted = self.text_of(*hit)?;
                        return self.any_text(all, |text| self.is_same(text, &wanted));
                    }
                }
                let mut texts: HashSet<Cow<'e, str>> = HashSet::new();
                let mut bytes = 0;
                match left {
                    Val::Nodes(hits) => {
                        for hit in hits.iter() {
                            let text = self.text_of(*hit)?;
                            bytes += text.len();
                            self.check_len(bytes)?;
                            self.charge_key(text.len())?;
                            texts.insert(text);
                        }
                    }
                    Val::Strings(matches) => {
                        for text in matches.iter() {
                            self.charge_key(text.len())?;
                            texts.insert(Cow::Owned(text.clone()));
                        }
                    }
                    _ => {}
                }
                self.any_text(right, |text| {
                    self.charge_key(text.len())?;
                    Ok(texts.contains(text))
                })
            }
            Binary::NotEqual => {
                // There is such a pair unless all texts of both are the same.
                let mut first: Option<String> = None;
                self.any_text(left, |text| {
                    self.charge_room()?;
                    self.charge_bytes(text.len())?;
                    first = Some(text.to_owned());
                    Ok(true)
                })?;
                let Some(first) = first else { return Ok(false) };
                let mut is_any = false;
                let differs = self.any_text(right, |text| {
                    is_any = true;
                    Ok(!self.is_same(text, &first)?)
                })?;
                Ok(differs || (is_any && self.any_text(left, |text| Ok(!self.is_same(text, &first)?))?))
            }
            _ => {
                // The most favourable pair decides: the least of one side and the greatest of the other.
                let (mut least, mut greatest) = (None, None);
                let is_less = matches!(binary, Binary::Less | Binary::LessEqual);
                let (small, large) = if is_less { (left, right) } else { (right, left) };
                self.extreme(small, &mut least, f64::min)?;
                self.extreme(large, &mut greatest, f64::max)?;
                let (Some(small), Some(large)) = (least, greatest) else { return Ok(false) };
                Ok(if matches!(binary, Binary::Less | Binary::Greater) { small < large } else { small <= large })
            }
        }
    }

    fn extreme(&self, set: &Val<'e>, extreme: &mut Option<f64>, of: fn(f64, f64) -> f64) -> Res<()> {
        self.any_text(set, |text| {
            let number = self.parse_number(text)?;
            if !number.is_nan() {
                *extreme = Some(extreme.map_or(number, |other| of(other, number)));
            }
            Ok(false)
        })?;
        Ok(())
    }

    /// The text of a node with a string or a number.
    fn one(&self, binary: Binary, text: &str, other: &Val<'_>) -> Res<bool> {
        Ok(match (binary, other) {
            (Binary::Equal, Val::String(other)) => self.is_same(text, other)?,
            (Binary::NotEqual, Val::String(other)) => !self.is_same(text, other)?,
            (_, Val::String(other)) => numbers(binary, self.parse_number(text)?, self.parse_number(other)?),
            (_, Val::Number(other)) => numbers(binary, self.parse_number(text)?, *other),
            _ => false,
        })
    }
}

fn numbers(binary: Binary, left: f64, right: f64) -> bool {
    match binary {
        Binary::Equal => left == right,
        Binary::NotEqual => left != right,
        Binary::Less => left < right,
        Binary::LessEqual => left <= right,
        Binary::Greater => left > right,
        Binary::GreaterEqual => left >= right,
        _ => false,
    }
}

/// The operator with its sides changed.
const fn mirror(binary: Binary) -> Binary {
    match binary {
        Binary::Less => Binary::Greater,
        Binary::LessEqual => Binary::GreaterEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterEqual => Binary::LessEqual,
        other => other,
    }
}
