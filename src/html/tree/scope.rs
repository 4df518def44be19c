//! "Has an element in … scope" (WHATWG HTML 13.2.4.2), and the end tags that are implied (13.2.6.3).

use super::{Builder, Open};
use crate::html::arena::NodeId;
use crate::html::names::{self, Category, NameId, known};

impl Builder {
    /// Has an HTML element of this name in scope.
    #[inline]
    pub(in crate::html) fn has_in_scope(&mut self, name: NameId) -> bool {
        self.stack.may_have(name) && self.finds(names::SCOPE, |open| open.is_html(name))
    }

    /// Has it in list item scope.
    #[inline]
    pub(in crate::html) fn has_in_list_scope(&mut self, name: NameId) -> bool {
        self.stack.may_have(name) && self.finds(names::LIST_SCOPE, |open| open.is_html(name))
    }

    /// Has it in button scope.
    #[inline]
    pub(in crate::html) fn has_in_button_scope(&mut self, name: NameId) -> bool {
        self.stack.may_have(name) && self.finds(names::BUTTON_SCOPE, |open| open.is_html(name))
    }

    /// Has it in table scope.
    #[inline]
    pub(in crate::html) fn has_in_table_scope(&mut self, name: NameId) -> bool {
        self.stack.may_have(name) && self.finds(names::TABLE_SCOPE, |open| open.is_html(name))
    }

    /// Has one of `h1` to `h6` in scope.
    pub(in crate::html) fn has_heading_in_scope(&mut self) -> bool {
        self.finds(names::SCOPE, |open| open.is(names::HEADING))
    }

    /// Has this node in scope.
    pub(in crate::html) fn has_node_in_scope(&mut self, node: NodeId) -> bool {
        self.finds(names::SCOPE, |open| open.node == node)
    }

    /// Looks from the current node down for one that `is_it`, up to the first one of a list.
    #[inline]
    fn finds(&mut self, ends: Category, is_it: impl Fn(Open) -> bool) -> bool {
        if is_it(self.stack.current()) && self.stack.len() > 0 {
            self.step(1);
            return true;
        }
        let mut steps = 0;
        let mut found = false;
        for open in self.open_elements().rev() {
            steps += 1;
            found = is_it(open);
            if found || open.is(ends) {
                break;
            }
        }
        self.step(steps);
        found
    }

    /// "Generate implied end tags", except for elements of a name.
    #[inline]
    pub(in crate::html) fn generate_implied_end_tags(&mut self, except: Option<NameId>) {
        while self.stack.current().is(names::IMPLIED_END) && Some(self.stack.current().name) != except {
            self.pop();
        }
    }

    /// "Generate all implied end tags thoroughly".
    pub(in crate::html) fn generate_all_implied_end_tags_thoroughly(&mut self) {
        while self.stack.current().is(names::IMPLIED_END_THOROUGH) {
            self.pop();
        }
    }

    /// "Close a `p` element" if there is one in button scope (13.2.6.4.7).
    #[inline]
    pub(in crate::html) fn close_p(&mut self) {
        if self.stack.count(known::P) > 0 && self.has_in_button_scope(known::P) {
            self.close_open_p();
        }
    }

    /// "Close a `p` element".
    pub(in crate::html) fn close_open_p(&mut self) {
        self.generate_implied_end_tags(Some(known::P));
        self.pop_until(known::P);
    }

    /// "Any other end tag" (13.2.6.4.7).
    pub(in crate::html) fn any_other_end_tag(&mut self, name: NameId) {
        if !self.stack.may_have(name) {
            return;
        }
        let mut steps = 0;
        let mut found = None;
        for (index, open) in self.open_elements().enumerate().rev() {
            steps += 1;
            if open.is_html(name) {
                found = Some(index);
                break;
            }
            if open.is(names::SPECIAL) {
                break;
            }
        }
        self.step(steps);
        if let Some(index) = found {
            self.generate_implied_end_tags(Some(name));
            self.truncate(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::builder;
    use super::*;
    use known::*;

    #[test]
    fn a_scope_ends_where_the_standard_says() {
        // Open elements, the element asked for, and whether it is in scope, list item scope, button scope, table scope.
        let table: [(&[NameId], NameId, [bool; 4]); 9] = [
            (&[HTML, BODY, P], P, [true, true, true, true]),
            (&[HTML, BODY, P, SPAN, B], P, [true, true, true, true]),
            (&[HTML, BODY, P, BUTTON], P, [true, true, false, true]),
            (&[HTML, BODY, LI, UL], LI, [true, false, true, true]),
            (&[HTML, BODY, LI, OL], LI, [true, false, true, true]),
            (&[HTML, BODY, P, TABLE], P, [false, false, false, false]),
            (&[HTML, BODY, TABLE, TBODY, TR, TD], TABLE, [false, false, false, true]),
            (&[HTML, TEMPLATE, SELECT], TEMPLATE, [false, false, false, true]),
            (&[HTML, BODY], P, [false, false, false, false]),
        ];
        for (open, name, expected) in table {
            let mut builder = builder(open);
            let found = [
                builder.has_in_scope(name),
                builder.has_in_list_scope(name),
                builder.has_in_button_scope(name),
                builder.has_in_table_scope(name),
            ];
            assert_eq!(found, expected, "{name:?} in {open:?}");
        }
    }

    #[test]
    fn walks_are_counted_and_absent_names_cost_none() {
        let mut builder = builder(&[HTML, BODY, P, DIV, DIV, DIV]);
        assert!(!builder.has_in_scope(LI));
        assert_eq!(builder.steps, 0);
        assert!(builder.has_in_scope(P));
        assert_eq!(builder.steps, 4);
    }

    #[test]
    fn implied_end_tags_are_popped() {
        let mut one = builder(&[HTML, BODY, DIV, LI, P, OPTION]);
        one.generate_implied_end_tags(Some(LI));
        assert_eq!(one.current().name, LI);
        one.generate_implied_end_tags(None);
        assert_eq!(one.current().name, DIV);
        let mut two = builder(&[HTML, TEMPLATE, TBODY, TR, TD, P]);
        two.generate_implied_end_tags(None);
        assert_eq!(two.current().name, TD);
        two.generate_all_implied_end_tags_thoroughly();
        assert_eq!(two.current().name, TEMPLATE);
    }

    #[test]
    fn any_other_end_tag_stops_at_a_special_element() {
        let mut one = builder(&[HTML, BODY, SPAN, CITE, P]);
        one.any_other_end_tag(SPAN);
        assert_eq!(one.current().name, P);
        let mut two = builder(&[HTML, BODY, SPAN, CITE, ABBR]);
        two.any_other_end_tag(SPAN);
        assert_eq!(two.current().name, BODY);
    }
}
