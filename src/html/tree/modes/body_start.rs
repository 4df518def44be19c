//! Start tags in "in body" (WHATWG HTML 13.2.6.4.7).

use crate::html::arena::{AttrList, Namespace, NodeId};
use crate::html::document::QuirksMode;
use crate::html::names::{self, known::*};
use crate::html::tokenizer::{Content, Tag};
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// A start tag in "in body".
    pub(in crate::html) fn start_in_body(&mut self, tag: Tag) -> Flow {
        match tag.name {
            ADDRESS | ARTICLE | ASIDE | BLOCKQUOTE | CENTER | DETAILS | DIALOG | DIR | DIV | DL | FIELDSET | FIGCAPTION
            | FIGURE | FOOTER | HEADER | HGROUP | MAIN | MENU | NAV | OL | P | SEARCH | SECTION | SUMMARY | UL => {
                self.close_p();
                self.insert_html_element(tag);
            }
            A => self.start_a(tag),
            LI => self.start_li(tag),
            DD | DT => self.start_dd_dt(tag),
            B | BIG | CODE | EM | FONT | I | S | SMALL | STRIKE | STRONG | TT | U => {
                self.reconstruct_formatting();
                self.insert_formatting_element(tag);
            }
            AREA | BR | EMBED | IMG | KEYGEN | WBR => self.start_void_in_line(tag),
            INPUT => self.start_input(tag),
            H1 | H2 | H3 | H4 | H5 | H6 => {
                self.close_p();
                if self.current().is(names::HEADING) {
                    self.pop();
                }
                self.insert_html_element(tag);
            }
            BASE | BASEFONT | BGSOUND | LINK | META | NOFRAMES | SCRIPT | STYLE | TEMPLATE | TITLE => {
                return self.start_in_head(tag);
            }
            TABLE => {
                if self.quirks != QuirksMode::Quirks {
                    self.close_p();
                }
                self.insert_html_element(tag);
                self.frameset_ok = false;
                self.mode = Mode::InTable;
            }
            SELECT | OPTION | OPTGROUP | HR => self.start_of_select(tag),
            FORM => self.start_form(tag),
            BUTTON => {
                if self.has_in_scope(BUTTON) {
                    self.generate_implied_end_tags(None);
                    self.pop_until(BUTTON);
                }
                self.reconstruct_formatting();
                let button = self.insert_html_element(tag);
                self.note_owner(button);
                self.frameset_ok = false;
            }
            SVG => self.start_foreign_root(tag, Namespace::Svg),
            MATH => self.start_foreign_root(tag, Namespace::MathMl),
            PRE | LISTING => {
                self.close_p();
                self.insert_html_element(tag);
                self.ignore_newline = true;
                self.frameset_ok = false;
            }
            PLAINTEXT => {
                self.close_p();
                self.insert_html_element(tag);
                self.content = Content::Plaintext;
            }
            NOBR => self.start_nobr(tag),
            APPLET | MARQUEE | OBJECT => {
                self.reconstruct_formatting();
                self.insert_html_element(tag);
                self.push_marker();
                self.frameset_ok = false;
            }
            PARAM | SOURCE | TRACK => {
                self.insert_void(tag);
            }
            IMAGE => self.start_void_in_line(Tag { name: IMG, ..tag }),
            TEXTAREA | XMP | IFRAME | NOEMBED => self.start_raw(tag),
            NOSCRIPT if self.options.scripting => self.start_raw(tag),
            RB | RTC => {
                if self.has_in_scope(RUBY) {
                    self.generate_implied_end_tags(None);
                }
                self.insert_html_element(tag);
            }
            RP | RT => {
                if self.has_in_scope(RUBY) {
                    self.generate_implied_end_tags(Some(RTC));
                }
                self.insert_html_element(tag);
            }
            SELECTEDCONTENT => {
                self.reconstruct_formatting();
                let content = self.insert_html_element(tag);
                self.selectedcontent_inserted(content);
            }
            HTML => self.add_attrs_to_root(tag.attrs),
            BODY => self.start_second_body(tag),
            FRAMESET => self.start_frameset_in_body(tag),
            CAPTION | COL | COLGROUP | FRAME | HEAD | TBODY | TD | TFOOT | TH | THEAD | TR => {}
            _ => {
                self.reconstruct_formatting();
                self.insert_html_element(tag);
            }
        }
        Flow::Done
    }

    /// `html` in most modes: the root gets the attributes that it does not have.
    pub(in crate::html) fn add_attrs_to_root(&mut self, attrs: AttrList) {
        if self.count(TEMPLATE) == 0 {
            self.add_attrs(self.stack.root(), attrs);
        }
    }

    fn add_attrs(&mut self, to: NodeId, attrs: AttrList) {
        let added = self.arena.add_attrs(to, attrs, self.options.limits.attributes_per_element);
        self.step(added.compared as u64);
        self.exceeded.attributes |= added.is_cut;
    }

    /// The `body` that is the second open element, unless there is a template.
    fn second_body(&self) -> Option<NodeId> {
        self.open_at(1).filter(|open| open.is_html(BODY)).map(|open| open.node)
    }

    #[inline(never)]
    fn start_second_body(&mut self, tag: Tag) {
        if let Some(body) = self.second_body()
            && self.count(TEMPLATE) == 0
        {
            self.frameset_ok = false;
            self.add_attrs(body, tag.attrs);
        }
    }

    #[inline(never)]
    fn start_frameset_in_body(&mut self, tag: Tag) {
        if let Some(body) = self.second_body()
            && self.frameset_ok
        {
            self.arena.detach(body);
            self.truncate(1);
            self.insert_html_element(tag);
            self.mode = Mode::InFrameset;
        }
    }

    fn start_li(&mut self, tag: Tag) {
        self.frameset_ok = false;
        if self.count(LI) > 0 {
            self.close_item(|name| name == LI);
        }
        self.close_p();
        self.insert_html_element(tag);
    }

    fn start_dd_dt(&mut self, tag: Tag) {
        self.frameset_ok = false;
        if self.count(DD) > 0 || self.count(DT) > 0 {
            self.close_item(|name| name == DD || name == DT);
        }
        self.close_p();
        self.insert_html_element(tag);
    }

    /// Ends the item that a new one follows, if there is nothing special in between but `address`, `div` and `p`.
    #[inline]
    fn close_item(&mut self, is_item: impl Fn(names::NameId) -> bool) {
        let mut steps = 0;
        let mut found = None;
        for open in self.open_elements().rev() {
            steps += 1;
            if open.namespace == Namespace::Html && is_item(open.name) {
                found = Some(open.name);
                break;
            }
            let is_passed = open.namespace == Namespace::Html && matches!(open.name, ADDRESS | DIV | P);
            if open.is(names::SPECIAL) && !is_passed {
                break;
            }
        }
        self.step(steps);
        if let Some(name) = found {
            self.generate_implied_end_tags(Some(name));
            self.pop_until(name);
        }
    }

    fn start_a(&mut self, tag: Tag) {
        if let Some(index) = self.last_formatting(A) {
            let open = self.formatting.get(index).map_or(NodeId::NONE, |entry| entry.node);
            self.adoption_agency(A);
            if let Some(index) = self.formatting_position(open) {
                self.formatting.remove(index);
            }
            if self.count(A) > 0 {
                self.remove_node(open);
            }
        }
        self.reconstruct_formatting();
        self.insert_formatting_element(tag);
    }

    #[inline(never)]
    fn start_nobr(&mut self, tag: Tag) {
        self.reconstruct_formatting();
        if self.has_in_scope(NOBR) {
            self.adoption_agency(NOBR);
            self.reconstruct_formatting();
        }
        self.insert_formatting_element(tag);
    }

    fn start_void_in_line(&mut self, tag: Tag) {
        self.reconstruct_formatting();
        self.insert_void(tag);
        self.frameset_ok = false;
    }

    #[inline(never)]
    fn start_form(&mut self, tag: Tag) {
        let is_in_template = self.count(TEMPLATE) > 0;
        if self.form.is_some() && !is_in_template {
            return;
        }
        self.close_p();
        let form = self.insert_html_element(tag);
        if !is_in_template {
            self.form = form;
        }
    }

    fn start_input(&mut self, tag: Tag) {
        if self.is_in_fragment_of_select() {
            return;
        }
        if self.has_in_scope(SELECT) {
            self.pop_until(SELECT);
        }
        self.reconstruct_formatting();
        let input = self.insert_void(tag);
        self.note_owner(input);
        if !self.is_hidden_input(tag) {
            self.frameset_ok = false;
        }
    }

    fn is_in_fragment_of_select(&self) -> bool {
        self.fragment.is_some_and(|context| context.namespace == Namespace::Html && context.name == SELECT)
    }

    /// `select` and what may be in one; since 2025 that is nearly anything.
    fn start_of_select(&mut self, tag: Tag) {
        match tag.name {
            SELECT => {
                if self.is_in_fragment_of_select() {
                    return;
                }
                if self.has_in_scope(SELECT) {
                    self.pop_until(SELECT);
                    return;
                }
                self.reconstruct_formatting();
                let select = self.insert_html_element(tag);
                self.note_owner(select);
                self.frameset_ok = false;
            }
            HR => {
                self.close_p();
                if self.has_in_scope(SELECT) {
                    self.generate_implied_end_tags(None);
                }
                self.insert_void(tag);
                self.frameset_ok = false;
            }
            _ => {
                if self.has_in_scope(SELECT) {
                    self.generate_implied_end_tags((tag.name == OPTION).then_some(OPTGROUP));
                } else if self.is_current(OPTION) {
                    self.pop();
                }
                self.reconstruct_formatting();
                self.insert_html_element(tag);
            }
        }
    }

    #[inline(never)]
    fn start_raw(&mut self, tag: Tag) {
        match tag.name {
            TEXTAREA => {
                self.frameset_ok = false;
                self.parse_raw(tag, Content::Rcdata);
                self.note_owner(self.stack.current().node);
                self.ignore_newline = true;
            }
            XMP => {
                self.close_p();
                self.reconstruct_formatting();
                self.frameset_ok = false;
                self.parse_raw(tag, Content::Rawtext);
            }
            IFRAME => {
                self.frameset_ok = false;
                self.parse_raw(tag, Content::Rawtext);
            }
            _ => self.parse_raw(tag, Content::Rawtext),
        }
    }

    #[inline(never)]
    fn start_foreign_root(&mut self, tag: Tag, namespace: Namespace) {
        self.reconstruct_formatting();
        self.enter_foreign(tag, namespace);
    }
}
