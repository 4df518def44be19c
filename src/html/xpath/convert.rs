//! Conversions: the string-value of a node (XPath 1.0, 5), and `string()`, `boolean()` and `number()` of a value (4.2 to 4.4).
//!
//! Texts that are copied cost steps; what is asked for again and again is made once for the whole page.

use std::borrow::Cow;

use super::eval::{BYTES_A_STEP, Eval, Res};
use super::number;
use super::texts::Texts;
use super::value::{Val, string_value};
use crate::html::arena::NodeId;
use crate::html::hit::Hit;

/// Nodes visited for string-values, in numbers of all nodes, from which on all are made at once.
const TEXT_VISITS: usize = 3;

impl<'e> Eval<'e> {
    /// The string-value of a node (5).
    pub(super) fn text_of(&self, hit: Hit) -> Res<Cow<'e, str>> {
        self.charge_hit(hit)?;
        if let (Hit::Node(node), Some(Some(texts))) = (hit, self.texts.get())
            && self.arena.first_child(node).is_some()
        {
            let text = texts.below(node);
            self.charge_bytes(text.len())?;
            return Ok(Cow::Borrowed(text));
        }
        let (mut len, mut visited) = (0, 0);
        let text = string_value(self.document, hit, |bytes| {
            len += bytes;
            visited += 1;
            self.charge(1 + bytes / BYTES_A_STEP)?;
            self.check_len(len)
        })?;
        let all = self.text_visits.get() + visited;
        self.text_visits.set(all);
        if all > TEXT_VISITS * self.arena.len() && self.arena.is_in_order() && self.texts.get().is_none() {
            self.charge(2 * self.arena.len())?;
            let texts = self.texts.get_or_init(|| Texts::new(self.arena, self.most_bytes));
            self.charge_bytes(texts.as_ref().map_or(0, |texts| texts.below(NodeId::DOCUMENT).len()))?;
        }
        Ok(text)
    }

    /// `string()` of a value.
    pub(super) fn string_of(&self, value: &Val<'e>) -> Res<Cow<'e, str>> {
        Ok(match value {
            Val::String(text) => text.clone(),
            Val::Number(number) => {
                self.charge_room()?;
                number::text(*number)
            }
            Val::Boolean(boolean) => Cow::Borrowed(if *boolean { "true" } else { "false" }),
            Val::Nodes(hits) => match hits.first() {
                Some(hit) => self.text_of(*hit)?,
                None => Cow::Borrowed(""),
            },
            Val::Strings(texts) => {
                self.charge_bytes(texts.first().map_or(0, String::len))?;
                texts.first().map_or(Cow::Borrowed(""), |text| Cow::Owned(text.clone()))
            }
        })
    }

    /// `number()` of a value.
    pub(super) fn number_of(&self, value: &Val<'e>) -> Res<f64> {
        Ok(match value {
            Val::Number(number) => *number,
            Val::Boolean(boolean) => f64::from(u8::from(*boolean)),
            Val::String(text) => self.parse_number(text)?,
            Val::Nodes(_) | Val::Strings(_) => self.parse_number(&self.string_of(value)?)?,
        })
    }
}

/// `boolean()` of a value (4.3).
pub(super) fn boolean_of(value: &Val<'_>) -> bool {
    match value {
        Val::Boolean(boolean) => *boolean,
        Val::Number(number) => *number != 0.0 && !number.is_nan(),
        Val::String(text) => !text.is_empty(),
        Val::Nodes(hits) => !hits.is_empty(),
        Val::Strings(texts) => !texts.is_empty(),
    }
}
