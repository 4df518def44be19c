//! The `selectedcontent` element: it shows a copy of the chosen option of its `select` (WHATWG HTML 4.10.7, 4.10.10, "maybe
//! clone an option into selectedcontent", and 4.10.17, the element itself).
//!
//! The parser makes the copy when an option is popped off the stack of open elements, and when a `selectedcontent` is
//! inserted. Copies count as repeated elements, walks as steps. html5ever leaves all this to its users.

use super::Builder;
use crate::html::arena::{Kind, NodeId};
use crate::html::names::known::{
    DATALIST, DISABLED, HR, MULTIPLE, OPTGROUP, OPTION, SELECT, SELECTED, SELECTEDCONTENT, SIZE, TEMPLATE,
};

/// How many `select` elements are remembered: only those that are open can get options, and they are hardly ever nested.
const REMEMBERED: usize = 8;

/// A `select` that has a `selectedcontent`.
#[derive(Clone, Copy, Debug)]
struct Customized {
    select: NodeId,
    /// Its first `selectedcontent`.
    content: NodeId,
    /// Whether it shows one option at a time, so that the first one is selected if no other is.
    has_one_line: bool,
    /// The option that is selected.
    choice: NodeId,
}

/// The `select` elements of a page that have a `selectedcontent`, the last ones.
#[derive(Debug, Default)]
pub(in crate::html) struct Customizations(Vec<Customized>);

/// Where an option is.
struct Home {
    select: NodeId,
    /// Whether its group is disabled.
    is_disabled: bool,
}

impl Builder {
    /// An `option` was popped off the stack of open elements.
    #[inline]
    pub(super) fn option_popped(&mut self, option: NodeId) {
        if !self.customizations.0.is_empty() {
            self.show_popped(option);
        }
    }

    /// "Maybe clone an option into selectedcontent".
    fn show_popped(&mut self, option: NodeId) {
        let Some(home) = self.home_of(option) else { return };
        let Some(place) = self.customizations.0.iter().rposition(|one| one.select == home.select) else { return };
        let Some(customized) = self.customizations.0.get(place).copied() else { return };
        let choice = self.choice_with(customized.choice, option, &home, customized.has_one_line);
        if choice != option {
            return;
        }
        if let Some(customized) = self.customizations.0.get_mut(place) {
            customized.choice = choice;
        }
        self.show(option, customized.content);
    }

    /// The option that is selected once one more is there: the last one marked, else the first one that is not disabled
    /// ("the selectedness setting algorithm").
    fn choice_with(&self, before: NodeId, option: NodeId, home: &Home, has_one_line: bool) -> NodeId {
        if self.arena.attr(option, SELECTED).is_some() {
            return option;
        }
        if before.is_some() || !has_one_line || home.is_disabled || self.arena.attr(option, DISABLED).is_some() {
            return before;
        }
        option
    }

    /// Whether the "display size" of a `select` without `multiple` is 1.
    fn has_one_line(&self, select: NodeId) -> bool {
        let Some(size) = self.arena.attr(select, SIZE) else { return true };
        let text = self.arena.text(size).trim_ascii_start();
        let text = text.strip_prefix('+').unwrap_or(text);
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number = text.get(..digits).unwrap_or_default();
        number.is_empty() || number.trim_start_matches('0') == "1"
    }

    /// "The option element nearest ancestor select".
    fn home_of(&mut self, option: NodeId) -> Option<Home> {
        let mut group = NodeId::NONE;
        let mut node = self.arena.parent(option);
        let mut steps = 0;
        let mut select = None;
        while node.is_some() {
            steps += 1;
            if self.arena.is_html(node, SELECT) {
                select = Some(node);
                break;
            }
            if self.arena.is_html(node, OPTGROUP) {
                if group.is_some() {
                    break;
                }
                group = node;
            } else if [DATALIST, HR, OPTION, TEMPLATE].into_iter().any(|name| self.arena.is_html(node, name)) {
                break;
            }
            node = self.arena.parent(node);
        }
        self.step(steps + self.arena.attrs(group).count() as u64);
        let is_disabled = self.arena.attr(group, DISABLED).is_some();
        select.map(|select| Home { select, is_disabled })
    }

    /// A `selectedcontent` was inserted: its "post-connection steps".
    pub(super) fn selectedcontent_inserted(&mut self, content: NodeId) {
        if self.options.as_html5ever() {
            return;
        }
        let Some(select) = self.select_of_content(content) else { return };
        if let Some(place) = self.customizations.0.iter().rposition(|one| one.select == select) {
            let Some(other) = self.customizations.0.get(place).map(|one| one.content) else { return };
            if !self.is_before(content, other, select) {
                return;
            }
            // It is the first one now, and only that one shows something.
            self.clear(other);
            self.customizations.0.remove(place);
        }
        let has_one_line = self.has_one_line(select);
        let choice = self.choice_of(select, has_one_line);
        if self.customizations.0.len() >= REMEMBERED {
            self.customizations.0.remove(0);
        }
        self.customizations.0.push(Customized { select, content, has_one_line, choice });
        if choice.is_some() {
            self.show(choice, content);
        }
    }

    /// The `select` that a `selectedcontent` shows the choice of, if it is not disabled.
    fn select_of_content(&mut self, content: NodeId) -> Option<NodeId> {
        let mut select = None;
        let mut node = self.arena.parent(content);
        let mut steps = 0;
        while node.is_some() && !self.arena.is_html(node, TEMPLATE) {
            steps += 1;
            let is_select = self.arena.is_html(node, SELECT);
            if is_select && select.is_some() || self.arena.is_html(node, OPTION) || self.arena.is_html(node, SELECTEDCONTENT) {
                select = None;
                break;
            }
            if is_select {
                select = Some(node);
            }
            node = self.arena.parent(node);
        }
        self.step(steps);
        select.filter(|select| self.arena.attr(*select, MULTIPLE).is_none())
    }

    /// Whether `one` comes before `other` below `root`.
    fn is_before(&mut self, one: NodeId, other: NodeId, root: NodeId) -> bool {
        if self.arena.is_in_order() {
            return one < other;
        }
        let mut node = root;
        while node.is_some() && node != one && node != other && !self.is_over_budget() {
            self.step(1);
            node = self.arena.following(node, root);
        }
        node == one
    }

    /// The option that is selected among those a `select` has so far.
    fn choice_of(&mut self, select: NodeId, has_one_line: bool) -> NodeId {
        let mut choice = NodeId::NONE;
        let mut node = self.arena.first_child(select);
        while node.is_some() && !self.is_over_budget() {
            self.step(1);
            if self.arena.is_html(node, OPTION)
                && let Some(home) = self.home_of(node)
                && home.select == select
            {
                choice = self.choice_with(choice, node, &home, has_one_line);
            }
            let is_template = self.arena.is_html(node, TEMPLATE);
            node = if is_template { self.arena.following_outside(node, select) } else { self.arena.following(node, select) };
        }
        choice
    }

    fn clear(&mut self, content: NodeId) {
        let mut child = self.arena.first_child(content);
        while child.is_some() {
            self.step(1);
            self.arena.detach(child);
            child = self.arena.first_child(content);
        }
    }

    /// "Clone an option into a selectedcontent".
    fn show(&mut self, option: NodeId, content: NodeId) {
        // The option may be in there itself; what is below it stays as it is.
        self.clear(content);
        let mut from = self.arena.first_child(option);
        let mut to = content;
        while from.is_some() && !self.is_out_of_repeats() {
            let copy = self.copy_of(from);
            self.arena.append(to, copy);
            let child = self.arena.first_child(from);
            if child.is_some() {
                (from, to) = (child, copy);
                continue;
            }
            while from != option && self.arena.next(from).is_none() {
                from = self.arena.parent(from);
                // Where the copy of that parent is: the next one goes beside it.
                if from != option {
                    to = self.arena.parent(to);
                }
            }
            from = if from == option { NodeId::NONE } else { self.arena.next(from) };
        }
    }

    /// A node like this one without its children. Texts and attributes are shared.
    fn copy_of(&mut self, node: NodeId) -> NodeId {
        let arena = &mut self.arena;
        match arena.kind(node) {
            Kind::Element => arena.new_element(arena.name(node), arena.namespace(node), arena.attr_list(node)),
            Kind::Text => arena.new_text(arena.data(node)),
            kind => arena.new_data(kind, arena.name(node), arena.data(node)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::html::{Document, NodeRef};

    fn is_content(node: &NodeRef<'_>) -> bool {
        node.name() == Some("selectedcontent")
    }

    /// The texts that the `selectedcontent` elements of a page show.
    fn shown(page: &str) -> Vec<String> {
        Document::parse(page).root().descendants().filter(is_content).map(|node| node.text()).collect()
    }

    #[test]
    fn the_chosen_option_is_shown() {
        const BUTTON: &str = "<button><selectedcontent></selectedcontent></button>";
        for (options, expected) in [
            ("<option>a<option>b", "a"),
            ("<option>a<option selected>b<option>c", "b"),
            ("<option selected>a<option selected>b", "b"),
            ("<option disabled>a<option>b", "b"),
            ("<optgroup disabled><option>a</optgroup><option>b", "b"),
            ("<optgroup><option>a</optgroup><option>b", "a"),
            ("<optgroup><optgroup><option>a", "a"),
            ("<datalist><option>a</datalist><option>b", "b"),
            ("<div><option>a</div>", "a"),
            ("<template><option>a</template><option>b", "b"),
            ("<option>a<b>c</b><i>d", "acd"),
            ("", ""),
        ] {
            assert_eq!(shown(&format!("<select>{BUTTON}{options}</select>")), [expected], "{options}");
            // The options may come first.
            assert_eq!(
                shown(&format!("<select>{options}</option></optgroup></optgroup>{BUTTON}</select>")),
                [expected],
                "{options}"
            );
        }
    }

    #[test]
    fn a_list_of_more_lines_shows_only_what_is_marked() {
        for (size, expected) in [("1", "a"), ("01", "a"), (" +1x", "a"), ("x", "a"), ("2", ""), ("0", ""), ("10", "")] {
            assert_eq!(
                shown(&format!("<select size='{size}'><selectedcontent></selectedcontent><option>a")),
                [expected],
                "{size}"
            );
        }
        assert_eq!(shown("<select size=2><selectedcontent></selectedcontent><option>a<option selected>b"), ["b"]);
        assert_eq!(shown("<select multiple><selectedcontent></selectedcontent><option selected>b"), [""]);
    }

    #[test]
    fn only_the_first_element_shows_it() {
        let two = "<selectedcontent>x</selectedcontent><selectedcontent>y</selectedcontent>";
        assert_eq!(shown(&format!("<select>{two}<option>a")), ["a", "y"]);
        // A misplaced one goes before the table, and is the first one then.
        let page =
            "<select><table><tr><td><selectedcontent></selectedcontent><option>a</option><tr><selectedcontent></selectedcontent>";
        assert_eq!(shown(page), ["a", ""]);
        assert_eq!(shown("<selectedcontent>x</selectedcontent><select><option>a"), ["x"]);
        assert_eq!(shown("<select><option>a<selectedcontent></selectedcontent>"), [""]);
    }

    #[test]
    fn an_option_within_it_gives_way_to_its_copy() {
        let page = Document::parse("<select><selectedcontent>x<option>a<b>c");
        let content = page.root().descendants().find(is_content).unwrap();
        let names: Vec<_> = content.descendants().map(|node| node.name()).collect();
        assert_eq!(names, [None, Some("b"), None]);
        assert_eq!(content.text(), "ac");
    }

    #[test]
    fn copies_are_bounded() {
        let mut page = "<select><selectedcontent></selectedcontent>".to_owned();
        for n in 0..20_000 {
            page.push_str("<option selected>");
            page.push_str(if n % 2 == 0 { "<b>x</b>" } else { "" });
        }
        let parsed = Document::parse(&page);
        assert!(parsed.node_count() < page.len() / 2, "{}", parsed.node_count());
        // Each table's `selectedcontent` comes before those inside of it, and shows all of the option again.
        let nested = format!("<select><option>{}</option>{}", "<i>x</i>".repeat(2_000), "<table><tr><td>".repeat(100))
            + &"</table></td></tr><selectedcontent></selectedcontent>".repeat(100);
        let parsed = Document::parse(&nested);
        assert!(parsed.node_count() < 40_000, "{}", parsed.node_count());
    }
}
