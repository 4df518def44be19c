//! "Reset the insertion mode appropriately" (WHATWG HTML 13.2.4.1).

use super::{Builder, Mode, Open};
use crate::html::arena::{Namespace, NodeId};
use crate::html::names::known::*;

impl Builder {
    /// Sets the mode that suits the elements that are open.
    pub(in crate::html) fn reset_insertion_mode(&mut self) {
        let mut steps = 0;
        let mut mode = Mode::InBody;
        for (index, open) in self.open_elements().enumerate().rev() {
            steps += 1;
            let is_last = index == 0;
            let open = match &self.fragment {
                Some(context) if is_last => Open::new(NodeId::NONE, context.name, context.namespace),
                _ => open,
            };
            if let Some(found) = self.mode_for(open, is_last) {
                mode = found;
                break;
            }
        }
        self.step(steps);
        self.mode = mode;
    }

    fn mode_for(&self, open: Open, is_last: bool) -> Option<Mode> {
        if open.namespace != Namespace::Html {
            return None;
        }
        Some(match open.name {
            TD | TH if !is_last => Mode::InCell,
            TR => Mode::InRow,
            TBODY | THEAD | TFOOT => Mode::InTableBody,
            CAPTION => Mode::InCaption,
            COLGROUP => Mode::InColumnGroup,
            TABLE => Mode::InTable,
            TEMPLATE => self.template_modes.last().copied().unwrap_or(Mode::InTemplate),
            HEAD if !is_last => Mode::InHead,
            BODY => Mode::InBody,
            FRAMESET => Mode::InFrameset,
            HTML if self.head.is_none() => Mode::BeforeHead,
            HTML => Mode::AfterHead,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::FragmentContext;
    use super::super::tests::builder;
    use super::*;
    use crate::html::arena::AttrList;
    use crate::html::names::NameId;

    #[test]
    fn the_mode_suits_the_innermost_element_that_has_one() {
        let table: [(&[NameId], Mode); 14] = [
            (&[HTML], Mode::BeforeHead),
            (&[HTML, HEAD], Mode::InHead),
            (&[HTML, BODY], Mode::InBody),
            (&[HTML, BODY, DIV, P], Mode::InBody),
            (&[HTML, FRAMESET], Mode::InFrameset),
            (&[HTML, BODY, TABLE], Mode::InTable),
            (&[HTML, BODY, TABLE, CAPTION, P], Mode::InCaption),
            (&[HTML, BODY, TABLE, COLGROUP], Mode::InColumnGroup),
            (&[HTML, BODY, TABLE, TFOOT], Mode::InTableBody),
            (&[HTML, BODY, TABLE, TBODY, TR], Mode::InRow),
            (&[HTML, BODY, TABLE, TBODY, TR, TH, DIV], Mode::InCell),
            (&[HTML, BODY, SELECT, OPTION], Mode::InBody),
            (&[HTML, BODY, TEMPLATE, DIV], Mode::InRow),
            (&[HTML, BODY, TABLE, TBODY, TR, TD, TABLE], Mode::InTable),
        ];
        for (open, expected) in table {
            let mut builder = builder(open);
            builder.template_modes = vec![Mode::InTemplate, Mode::InRow];
            builder.reset_insertion_mode();
            assert_eq!(builder.mode, expected, "{open:?}");
        }
    }

    #[test]
    fn the_context_of_a_fragment_counts_as_the_root() {
        for (context, namespace, expected) in [
            (TR, Namespace::Html, Mode::InRow),
            (TD, Namespace::Html, Mode::InBody),
            (HEAD, Namespace::Html, Mode::InBody),
            (HTML, Namespace::Html, Mode::BeforeHead),
            (TABLE, Namespace::Svg, Mode::InBody),
        ] {
            let mut builder = builder(&[HTML]);
            builder.fragment = Some(FragmentContext { name: context, namespace, attrs: AttrList::EMPTY });
            builder.reset_insertion_mode();
            assert_eq!(builder.mode, expected, "{context:?}");
        }
    }
}
