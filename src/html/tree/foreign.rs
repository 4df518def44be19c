//! SVG and MathML in a page (WHATWG HTML 13.2.6, "tree construction dispatcher", and 13.2.6.5, "the rules for parsing tokens
//! in foreign content").
//!
//! The attributes `xlink:…`, `xml:…` and `xmlns:xlink` keep their name as written: it says its namespace by itself.

use super::foreign_names::{svg_attribute, svg_tag};
use super::{Builder, Flow, Open};
use crate::html::arena::{AttrList, Namespace};
use crate::html::names::known::{
    ANNOTATION_XML, BR, COLOR, DEFINITION_URL, DEFINITIONURL, DESC, ENCODING, FACE, FONT, FOREIGNOBJECT, MALIGNMARK, MGLYPH, MI,
    MN, MO, MS, MTEXT, P, SIZE, SVG, TITLE,
};
use crate::html::names::{BREAKOUT, NameId, category};
use crate::html::tokenizer::Tag;

/// "MathML text integration point" (13.2.6).
fn is_mathml_text_integration_point(open: Open) -> bool {
    open.namespace == Namespace::MathMl && matches!(open.name, MI | MO | MN | MS | MTEXT)
}

impl Builder {
    /// Whether end tags and comments belong to foreign content here.
    #[inline]
    pub(in crate::html::tree) fn is_foreign(&self) -> bool {
        self.adjusted_current().namespace != Namespace::Html
    }

    /// Whether text belongs to foreign content here.
    pub(in crate::html::tree) fn is_foreign_for_text(&self) -> bool {
        let open = self.adjusted_current();
        open.namespace != Namespace::Html && !is_mathml_text_integration_point(open) && !self.is_html_integration_point(open)
    }

    /// "HTML integration point" (13.2.6).
    pub(in crate::html::tree) fn is_html_integration_point(&self, open: Open) -> bool {
        match open.namespace {
            Namespace::Html => false,
            Namespace::Svg => matches!(open.name, FOREIGNOBJECT | DESC | TITLE),
            Namespace::MathMl => {
                open.name == ANNOTATION_XML
                    && self.arena.attr_in(self.attr_list_of(open), ENCODING).is_some_and(|value| {
                        let value = self.arena.bytes(value);
                        value.eq_ignore_ascii_case(b"text/html") || value.eq_ignore_ascii_case(b"application/xhtml+xml")
                    })
            }
        }
    }

    fn attr_list_of(&self, open: Open) -> AttrList {
        match &self.fragment {
            Some(context) if open.node.is_none() => context.attrs,
            _ => self.arena.attr_list(open.node),
        }
    }

    /// 13.2.6.5: a start tag. Nothing if the insertion mode's rules are to be used.
    #[inline]
    pub(in crate::html::tree) fn foreign_start(&mut self, tag: Tag) -> Option<Flow> {
        let open = self.adjusted_current();
        if open.namespace == Namespace::Html { None } else { self.start_in_foreign(tag, open) }
    }

    fn start_in_foreign(&mut self, tag: Tag, open: Open) -> Option<Flow> {
        // 13.2.6, the dispatcher's exceptions for start tags.
        if is_mathml_text_integration_point(open) && !matches!(tag.name, MGLYPH | MALIGNMARK)
            || open.namespace == Namespace::MathMl && open.name == ANNOTATION_XML && tag.name == SVG
            || self.is_html_integration_point(open)
        {
            return None;
        }
        if self.is_breakout(tag) {
            self.leave_foreign();
            return None;
        }
        self.enter_foreign(tag, open.namespace);
        Some(Flow::Done)
    }

    /// The start tags that are HTML wherever they stand.
    fn is_breakout(&self, tag: Tag) -> bool {
        category(tag.name) & BREAKOUT != 0
            || tag.name == FONT && self.arena.attrs_in(tag.attrs).any(|attr| matches!(attr.name(), COLOR | FACE | SIZE))
    }

    /// Pops until HTML may stand there.
    fn leave_foreign(&mut self) {
        loop {
            let open = self.current();
            // html5ever stops at those of SVG only.
            let may_be_point = !self.options.as_html5ever() || open.namespace == Namespace::Svg;
            if open.namespace == Namespace::Html
                || is_mathml_text_integration_point(open)
                || may_be_point && self.is_html_integration_point(open)
            {
                return;
            }
            self.step(1);
            self.pop();
        }
    }

    /// 13.2.6.5, "any other start tag", and 13.2.6.4.7, `math` and `svg`: inserts the element, with names in the case they
    /// have there.
    pub(in crate::html::tree) fn enter_foreign(&mut self, mut tag: Tag, namespace: Namespace) {
        match namespace {
            Namespace::Html => {}
            Namespace::Svg => {
                if let Some(name) = self.cased_svg_tag(tag.name) {
                    tag.name = self.arena.intern_text(name);
                }
                self.adjust_svg_attributes(tag.attrs);
            }
            Namespace::MathMl => self.adjust_mathml_attributes(tag.attrs),
        }
        self.insert_foreign(tag, namespace);
        if tag.self_closing {
            self.pop();
        }
    }

    fn cased_svg_tag(&self, name: NameId) -> Option<&'static str> {
        // No name with a fixed id is one of SVG's in lower case.
        if name.is_known() { None } else { svg_tag(self.arena.name_text(name)) }
    }

    /// 13.2.6.1, "adjust SVG attributes".
    fn adjust_svg_attributes(&mut self, list: AttrList) {
        // A list holds each name once, so this goes round once for each name of the table at most.
        let mut from = 0;
        loop {
            let found = self.arena.attrs_in(list).enumerate().skip(from).find_map(|(place, attr)| {
                let name = attr.name();
                if name.is_known() { None } else { Some((place, svg_attribute(self.arena.name_text(name))?)) }
            });
            let Some((place, name)) = found else { return };
            let name = self.arena.intern_text(name);
            self.arena.rename_attr(list, place, name);
            from = place + 1;
        }
    }

    /// 13.2.6.1, "adjust MathML attributes".
    fn adjust_mathml_attributes(&mut self, list: AttrList) {
        if let Some(place) = self.arena.attrs_in(list).position(|attr| attr.name() == DEFINITIONURL) {
            self.arena.rename_attr(list, place, DEFINITION_URL);
        }
    }

    /// 13.2.6.5: an end tag. Nothing if the insertion mode's rules are to be used.
    #[inline]
    pub(in crate::html::tree) fn foreign_end(&mut self, name: NameId) -> Option<Flow> {
        if self.is_foreign() { self.end_in_foreign(name) } else { None }
    }

    fn end_in_foreign(&mut self, name: NameId) -> Option<Flow> {
        if matches!(name, BR | P) {
            self.leave_foreign();
            return None;
        }
        let cased = self.cased_svg_tag(name).and_then(|cased| self.arena.find_name(cased));
        let mut place = self.stack.len();
        if place <= 1 {
            // The root of a fragment, whose context is foreign: nothing ends it.
            return Some(Flow::Done);
        }
        while place > 0 {
            place -= 1;
            self.step(1);
            let Some(open) = self.open_at(place) else { break };
            if open.namespace == Namespace::Html {
                return None;
            }
            if open.name == name || open.namespace == Namespace::Svg && cased == Some(open.name) {
                self.truncate(place);
                return Some(Flow::Done);
            }
        }
        Some(Flow::Done)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::html::{Document, Namespace, ParseOptions};

    #[test]
    fn names_have_the_case_of_their_namespace() {
        let page = Document::parse(
            "<svg viewbox=1 PreserveAspectRatio=2 definitionurl=3><lineargradient gradientunits=4 gradienttransform=5 x=6></svg>\
             <math definitionURL=7 viewbox=8><lineargradient></math><lineargradient viewbox=9>",
        );
        let found: Vec<(Option<Namespace>, &str, String)> = page
            .body()
            .unwrap()
            .descendants()
            .map(|node| {
                (node.namespace(), node.name().unwrap(), node.attrs().map(|(name, _)| name).collect::<Vec<_>>().join(" "))
            })
            .collect();
        let expected = [
            (Namespace::Svg, "svg", "viewBox preserveAspectRatio definitionurl"),
            (Namespace::Svg, "linearGradient", "gradientUnits gradientTransform x"),
            (Namespace::MathMl, "math", "definitionURL viewbox"),
            (Namespace::MathMl, "lineargradient", ""),
            (Namespace::Html, "lineargradient", "viewbox"),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(namespace, name, attrs)| (Some(namespace), name, attrs.to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_of_any_case_ends_its_element() {
        let page = Document::parse("<svg><foreignObject><p>a</p></FOREIGNOBJECT><lineargradient></linearGradient><g>");
        let svg = page.body().unwrap().first_child().unwrap();
        let names: Vec<_> = svg.children().filter_map(|node| node.name()).collect();
        assert_eq!(names, ["foreignObject", "linearGradient", "g"]);
    }

    #[test]
    fn stray_end_tags_in_deep_drawings_are_counted() {
        let page = format!("<svg>{}{}", "<g>".repeat(10_000), "</x>".repeat(10_000));
        let parsed = Document::parse(&page);
        assert!(parsed.exceeded().steps);
        assert!(parsed.steps() < ParseOptions::default().limits.steps_for(page.len()) + 20_000, "{}", parsed.steps());
    }
}
