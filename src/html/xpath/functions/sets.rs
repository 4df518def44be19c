//! `set:` of EXSLT: functions on node-sets.

use std::collections::HashSet;
use std::rc::Rc;

use super::Function;
use crate::html::hit::Hit;
use crate::html::xpath::eval::{Context, Eval, HASHED, Res};
use crate::html::xpath::plan::Op;
use crate::html::xpath::value::Val;

impl<'e> Eval<'e> {
    pub(super) fn set_function(&self, function: Function, args: &'e [Op], context: Context) -> Res<Val<'e>> {
        let [first, rest @ ..] = args else { return Ok(Val::Nodes(Rc::default())) };
        let mut hits = Rc::unwrap_or_clone(self.nodes(first, context, "what set: works on")?);
        self.charge_room()?;
        self.charge(hits.len())?;
        let Some(second) = rest.first() else {
            self.distinct(&mut hits)?;
            return Ok(Val::Nodes(Rc::new(hits)));
        };
        let others = self.nodes(second, context, "what set: works on")?;
        match function {
            Function::SetDifference | Function::SetIntersection => {
                let set = self.table(&others)?;
                self.charge(HASHED * hits.len())?;
                hits.retain(|hit| set.contains(hit) == (function == Function::SetIntersection));
            }
            // Those before or behind the first of the second set; none if that one is not in the first set.
            _ => {
                if let Some(edge) = others.first() {
                    self.charge(hits.len())?;
                    match hits.iter().position(|hit| hit == edge) {
                        None => hits.clear(),
                        Some(place) if function == Function::SetLeading => hits.truncate(place),
                        Some(place) => drop(hits.drain(..=place)),
                    }
                }
            }
        }
        Ok(Val::Nodes(Rc::new(hits)))
    }

    fn table(&self, hits: &[Hit]) -> Res<HashSet<Hit>> {
        self.charge_room()?;
        self.charge(HASHED * hits.len())?;
        Ok(hits.iter().copied().collect())
    }

    /// Of nodes with the same string-value the first.
    fn distinct(&self, hits: &mut Vec<Hit>) -> Res<()> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        let mut bytes = 0;
        for hit in hits.iter() {
            let text = self.text_of(*hit)?;
            bytes += text.len();
            self.check_len(bytes)?;
            self.charge_key(text.len())?;
            if seen.insert(text) {
                kept.push(*hit);
            }
        }
        *hits = kept;
        Ok(())
    }

    pub(super) fn has_same_node(&self, first: &'e Op, second: &'e Op, context: Context) -> Res<bool> {
        let first = self.nodes(first, context, "what set: works on")?;
        let second = self.nodes(second, context, "what set: works on")?;
        let set = self.table(&first)?;
        self.charge(HASHED * second.len())?;
        Ok(second.iter().any(|hit| set.contains(hit)))
    }
}
