//! Which form a control belongs to (WHATWG HTML 4.10.17.3, "form owner").

use super::arena::Namespace;
use super::document::NodeRef;

/// Controls that a `form` attribute can give to another form ("listed elements", those that are submitted).
const LISTED: &[&str] = &["button", "fieldset", "input", "object", "output", "select", "textarea"];

impl<'d> NodeRef<'d> {
    /// The form that a control belongs to: the one its `form` attribute names, else the one that was open where the control
    /// stands in the page (which tables may have moved elsewhere), else the nearest one around it. What is in a `template` is no
    /// part of the page: nothing there is named by an attribute, and for a control there the attribute says nothing.
    ///
    /// A page of another engine than ours knows the first and the last of these only.
    ///
    /// ```
    /// use dragline::html::Document;
    ///
    /// let page = Document::parse("<table><form id=f><tr><td><input name=q></table>");
    /// let input = page.root().descendants().find(|node| node.name() == Some("input")).unwrap();
    /// assert_eq!(input.form_owner().and_then(|form| form.attr("id")), Some("f"));
    /// ```
    #[must_use]
    pub fn form_owner(self) -> Option<NodeRef<'d>> {
        self.form_owner_among(|id| self.document.root().first_outside_templates(|node| node.attr("id") == Some(id)))
    }

    /// The same, where `named` gives the first node of the page with an id, of those that are in no `template`.
    pub(crate) fn form_owner_among(self, named: impl FnOnce(&str) -> Option<NodeRef<'d>>) -> Option<NodeRef<'d>> {
        if LISTED.contains(&self.name()?)
            && let Some(id) = self.attr("form")
            && !self.ancestors().any(Self::is_template)
        {
            return if id.is_empty() { None } else { named(id).filter(NodeRef::is_form) };
        }
        self.form_around()
    }

    /// The same without regard to the `form` attribute.
    pub(crate) fn form_around(self) -> Option<NodeRef<'d>> {
        let owners = &self.document.owners;
        let noted = owners.binary_search_by_key(&self.id, |(control, _)| *control).ok().and_then(|at| owners.get(at));
        match noted {
            Some((_, form)) => self.document.node(*form),
            None => self.ancestors().find(NodeRef::is_form),
        }
    }

    /// Whether it is a `form` of HTML.
    pub(crate) fn is_form(&self) -> bool {
        self.name() == Some("form") && self.namespace() == Some(Namespace::Html)
    }

    fn is_template(self) -> bool {
        self.name() == Some("template") && self.namespace() == Some(Namespace::Html)
    }

    /// The first node below this one that is meant, in document order.
    fn first_outside_templates(self, is_meant: impl Fn(NodeRef<'d>) -> bool) -> Option<NodeRef<'d>> {
        let mut next = self.first_child();
        while let Some(node) = next {
            if is_meant(node) {
                return Some(node);
            }
            let below = if node.is_template() { None } else { node.first_child() };
            next = below.or_else(|| {
                let around = std::iter::successors(Some(node), |node| node.parent());
                around.take_while(|node| *node != self).find_map(|node| node.next_sibling())
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use crate::html::Document;

    fn owner_of_x(page: &str) -> Option<String> {
        let page = Document::parse(page);
        let control = page.root().descendants().find(|node| node.attr("id") == Some("x")).unwrap();
        control.form_owner().map(|form| form.attr("id").unwrap_or_default().to_owned())
    }

    #[test]
    fn a_control_belongs_to_the_form_that_was_open_where_it_stands() {
        for (page, owner) in [
            ("<form id=a><p><input id=x></form>", Some("a")),
            ("<form id=a></form><input id=x>", None),
            // The form is left open: its div ends it in the tree only.
            ("<div><form id=a></div><textarea id=x></textarea>", Some("a")),
            ("<div><form id=a></div></form><button id=x>", None),
            // The end tag does not take the control out of the div, which is in the form.
            ("<form id=a><div></form><input id=x></div>", Some("a")),
            ("<table><form id=a><tr><td><select id=x></select></form></table>", Some("a")),
            ("<table><form id=a><input id=x type=hidden></table>", Some("a")),
            ("<table><form id=a><tr></form><td><input id=x></table>", None),
            // A form in a form is not there.
            ("<form id=a><form id=b><input id=x></form></form>", Some("a")),
            ("<form id=a></form><input id=x form=a>", Some("a")),
            ("<form id=b><input id=x form=a></form><form id=a></form>", Some("a")),
            ("<form id=b><input id=x form=c></form>", None),
            ("<form id=b><input id=x form=''></form>", None),
            ("<p id=c></p><form id=b><input id=x form=c></form>", None),
            ("<table><form id=a><tr><td><template><input id=x></template></table>", None),
            ("<template><form id=f><p></template><form id=f><p></form><input id=x form=f>", Some("f")),
            ("<template><p id=f></p></template><form id=f></form><input id=x form=f>", Some("f")),
            ("<template><form id=f></form></template><input id=x form=f>", None),
            ("<template id=f></template><form id=f></form><input id=x form=f>", None),
            ("<template><form id=g><input id=x form=f></form></template><form id=f></form>", Some("g")),
            ("<template><input id=x form=f></template><form id=f></form>", None),
        ] {
            assert_eq!(owner_of_x(page).as_deref(), owner, "{page}");
        }
    }

    #[test]
    fn a_form_in_a_template_is_not_taken_for_one_of_the_page() {
        let page = Document::parse("<template><form id=f></form></template><form id=f><p></form><input id=x form=f>");
        let control = page.root().descendants().find(|node| node.attr("id") == Some("x")).unwrap();
        let owner = control.form_owner().unwrap();
        assert!(owner.ancestors().all(|around| around.name() != Some("template")));
    }

    #[test]
    fn only_a_form_that_is_not_around_its_control_takes_memory() {
        let near = Document::parse(&format!("<form>{}</form>", "<p><input></p>".repeat(100)));
        assert!(near.owners.is_empty());
        let far = Document::parse(&format!("<form>{}<input>", "<div>".repeat(60)));
        assert_eq!(far.owners.len(), 1);
        assert_eq!(owner_of_x(&format!("<form id=a>{}<input id=x>", "<div>".repeat(600))).as_deref(), Some("a"));
    }
}
