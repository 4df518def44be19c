//! The rightmost compound of a selector, as tests that need no matcher: most elements fail them, and for many selectors
//! they decide alone.

use selectors::attr::CaseSensitivity;
use selectors::parser::{Component, LocalName, Selector};

use super::element::Search;
use super::types::{Css, Name, Text};
use crate::html::arena::{Namespace, NodeId};
use crate::html::names::NameId;

/// What an element must have for the whole selector to match.
#[derive(Debug)]
pub(super) struct Compound {
    name: Option<LocalName<Css>>,
    tests: Vec<Test>,
    /// Whether there is nothing else to ask.
    pub(super) decides: bool,
    /// Whether other elements count too.
    pub(super) has_combinators: bool,
}

#[derive(Debug)]
enum Test {
    Class(Text),
    Id(Text),
    /// An attribute, by its name in SVG and MathML and by that in HTML.
    Has(Name, Name),
    /// An attribute that is the same everywhere, with a value the matcher asks for.
    Valued(Name),
}

impl Compound {
    pub(super) fn of(selector: &Selector<Css>) -> Self {
        let mut compound = Self { name: None, tests: Vec::new(), decides: true, has_combinators: false };
        for component in selector.iter_raw_match_order() {
            match component {
                Component::Combinator(_) => {
                    compound.decides = false;
                    compound.has_combinators = true;
                    break;
                }
                Component::LocalName(name) => compound.name = Some(name.clone()),
                Component::Class(class) => compound.tests.push(Test::Class(class.clone())),
                Component::ID(id) => compound.tests.push(Test::Id(id.clone())),
                Component::AttributeInNoNamespaceExists { local_name, local_name_lower } if !local_name.text().contains(':') => {
                    compound.tests.push(Test::Has(local_name.clone(), local_name_lower.clone()));
                }
                Component::AttributeInNoNamespace { local_name, .. } => {
                    compound.tests.push(Test::Valued(local_name.clone()));
                    compound.decides = false;
                }
                Component::ExplicitUniversalType | Component::ExplicitAnyNamespace => {}
                _ => compound.decides = false,
            }
        }
        compound
    }

    /// The name all matches have, whatever their namespace.
    pub(super) fn only_name(&self, search: &Search<'_>) -> Option<NameId> {
        self.name.as_ref().filter(|name| name.name == name.lower_name).map(|name| search.name(&name.name))
    }

    /// Whether an element passes.
    #[inline]
    pub(super) fn may_match(&self, search: &Search<'_>, id: NodeId, case: CaseSensitivity) -> bool {
        if let Some(name) = &self.name {
            let own = search.arena.name(id);
            // Mostly the two are the same, and then the namespace does not matter.
            if own != search.name(&name.lower_name) || name.name != name.lower_name {
                let is_html = search.arena.namespace(id) == Namespace::Html;
                if own != search.name(if is_html { &name.lower_name } else { &name.name }) {
                    return false;
                }
            }
        }
        self.tests.iter().all(|test| match test {
            Test::Class(class) => search.has_class(id, &class.0, case),
            Test::Id(wanted) => search.has_id(id, &wanted.0, case),
            Test::Has(name, lower) => {
                let is_html = search.arena.namespace(id) == Namespace::Html;
                search.attr(id, search.name(if is_html { lower } else { name })).is_some()
            }
            Test::Valued(name) => search.attr(id, search.name(name)).is_some(),
        })
    }
}
