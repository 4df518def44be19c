//! Functions that give booleans (XPath 1.0, 4.2 and 4.3).

use super::Function;
use crate::html::xpath::eval::{Context, Eval, Res};
use crate::html::xpath::plan::Op;

impl<'e> Eval<'e> {
    pub(in crate::html::xpath) fn call_boolean(&self, function: Function, args: &'e [Op], context: Context) -> Res<bool> {
        Ok(match (function, args) {
            (Function::True, _) => true,
            (Function::Boolean, [arg]) => self.boolean(arg, context)?,
            (Function::Not, [arg]) => !self.boolean(arg, context)?,
            (Function::StartsWith, [text, start]) => self.string(text, context)?.starts_with(&*self.string(start, context)?),
            (Function::Contains, [text, part]) => self.contains(&self.string(text, context)?, &self.string(part, context)?)?,
            (Function::Lang, [arg]) => {
                let wanted = self.string(arg, context)?;
                self.lang(context.hit, &wanted)?
            }
            (Function::HasClass, _) => self.has_class(args, context)?,
            (Function::SetHasSameNode, [first, second]) => self.has_same_node(first, second, context)?,
            (Function::ReTest, _) => self.re_test(None, args, context)?,
            _ => false,
        })
    }

    fn contains(&self, text: &str, part: &str) -> Res<bool> {
        self.charge_bytes(text.len())?;
        Ok(memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some())
    }
}
