//! `set:` of EXSLT: functions on node-sets.

use std::collections::HashSet;
use std::rc::Rc;

use super::Function;
use crate::html::hit::Hit;
use crate::html::xpath::eval::{Context, Eval, Res};
use crate::html::xpath::plan::Op;
use crate::html::xpath::value::Val;

impl<'e> Eval<'e> {
    pub(super) fn set_function(&self, function: Function, args: &'e [Op], context: Context) -> Res<Val<'e>> {
        let [first, rest @ ..] = args else { return Ok(Val::Nodes(Rc::default())) };
        let mut hits = Rc::unwrap_or_clone(self.nodes(first, context, "what set: works on")?);
        self.charge(hits.len())?;
        let Some(second) = rest.first() else {
            self.distinct(&mut hits)?;
            return Ok(Val::Nodes(Rc::new(hits)));
        };
        let others = self.nodes(second, context, "what set: works on")?;
        self.charge(others.len())?;
        match function {
            Function::SetDifference | Function::SetIntersection => {
                let set: HashSet<Hit> = others.iter().copied().collect();
                hits.retain(|hit| set.contains(hit) == (function == Function::SetIntersection));
            }
            // Those before or behind the first of the second set; none if that one is not in the first set.
            _ => {
                if let Some(edge) = others.first() {
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

    /// Of nodes with the same string-value the first.
    fn distinct(&self, hits: &mut Vec<Hit>) -> Res<()> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        let mut bytes = 0;
        for hit in hits.iter() {
            let text = self.text_of(*hit)?;
            bytes += text.len();
            self.check_len(bytes)?;
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
        self.charge(first.len() + second.len())?;
        let set: HashSet<Hit> = first.iter().copied().collect();
        Ok(second.iter().any(|hit| set.contains(hit)))
    }
}
