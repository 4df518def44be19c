//! Functions that give numbers (XPath 1.0, 4.1, 4.2 and 4.4).

use super::Function;
use crate::html::xpath::error::XPathError;
use crate::html::xpath::eval::{Context, Eval, Res};
use crate::html::xpath::number;
use crate::html::xpath::plan::Op;
use crate::html::xpath::value::Val;

impl<'e> Eval<'e> {
    pub(in crate::html::xpath) fn call_number(&self, function: Function, args: &'e [Op], context: Context) -> Res<f64> {
        Ok(match (function, args) {
            (Function::Position, _) if context.position == 0 => {
                return Err(XPathError::NoPosition { function: "position" }.into());
            }
            (Function::Position, _) => as_number(context.position),
            (Function::Last, _) if context.size == 0 => return Err(XPathError::NoPosition { function: "last" }.into()),
            (Function::Last, _) => as_number(context.size),
            (Function::Count, [arg]) => self.count(arg, context)?,
            (Function::Sum, [arg]) => self.sum(arg, context)?,
            (Function::Number, []) => self.parse_number(&self.text_of(context.hit)?)?,
            (Function::Number, [arg]) => self.number(arg, context)?,
            (Function::StringLength, args) => {
                let text = self.string_or_context(args, context)?;
                self.charge_bytes(text.len())?;
                as_number(text.chars().count())
            }
            (Function::Floor, [arg]) => self.number(arg, context)?.floor(),
            (Function::Ceiling, [arg]) => self.number(arg, context)?.ceil(),
            (Function::Round, [arg]) => number::round(self.number(arg, context)?),
            _ => f64::NAN,
        })
    }

    fn count(&self, arg: &'e Op, context: Context) -> Res<f64> {
        let mut count = 0;
        if self.each(arg, context, &mut |_| {
            count += 1;
            Ok(true)
        })? {
            return Ok(as_number(count));
        }
        match self.value(arg, context)? {
            Val::Nodes(hits) => Ok(as_number(hits.len())),
            Val::Strings(texts) => Ok(as_number(texts.len())),
            other => Err(Self::not_nodes("what count() counts", &other).into()),
        }
    }

    fn sum(&self, arg: &'e Op, context: Context) -> Res<f64> {
        let mut sum = 0.0;
        match self.value(arg, context)? {
            Val::Nodes(hits) => {
                for hit in hits.iter() {
                    sum += self.parse_number(&self.text_of(*hit)?)?;
                }
            }
            Val::Strings(texts) => {
                for text in texts.iter() {
                    self.charge(1)?;
                    sum += self.parse_number(text)?;
                }
            }
            other => return Err(Self::not_nodes("what sum() adds up", &other).into()),
        }
        Ok(sum)
    }
}

/// A position or a count as a number.
#[allow(clippy::cast_precision_loss, reason = "pages have less than 2⁵³ nodes")]
pub(in crate::html::xpath) const fn as_number(count: usize) -> f64 {
    count as f64
}
