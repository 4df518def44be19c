//! Text as it is laid out: after the DOM's `innerText` (WHATWG HTML, "rendered text"), with the usual style of each element.

use super::{Walk, walk};
use crate::api::selector::{NodeKind, NodeRef};

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Everything,
    /// Without what surrounds the content of a page.
    Content,
}

/// The text of a node, laid out.
pub(super) fn text(top: NodeRef<'_>, keep: Keep) -> String {
    let mut lines = Lines::default();
    walk(top, |step| match step {
        Walk::Enter(node) if node.is_element() => {
            let name = node.name().unwrap_or_default();
            if is_hidden(node, name) || (keep == Keep::Content && node != top && is_around(node, name)) {
                return false;
            }
            match name {
                "br" => lines.line_break(),
                "td" | "th" => lines.cell(),
                "pre" | "listing" | "xmp" | "plaintext" => lines.enter_preformatted(),
                "hr" => lines.separate(1),
                _ => {}
            }
            lines.separate(margin(name));
            true
        }
        Walk::Enter(node) => {
            if node.kind() == NodeKind::Text {
                lines.text(node.data().unwrap_or_default());
            }
            false
        }
        Walk::Leave(node) => {
            let name = node.name().unwrap_or_default();
            if matches!(name, "pre" | "listing" | "xmp" | "plaintext") {
                lines.leave_preformatted();
            }
            lines.separate(margin(name));
            true
        }
    });
    lines.out
}

/// Whether a browser shows nothing of an element.
pub(super) fn is_hidden(node: NodeRef<'_>, name: &str) -> bool {
    let by_name = matches!(
        name,
        "script"
            | "style"
            | "template"
            | "head"
            | "noscript"
            | "noembed"
            | "noframes"
            | "iframe"
            | "object"
            | "svg"
            | "math"
            | "canvas"
            | "audio"
            | "video"
            | "select"
            | "datalist"
            | "textarea"
            | "button"
            | "dialog"
            | "rp"
    );
    by_name
        || node.attr("hidden").is_some()
        || node.attr("aria-hidden").is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case("true"))
        || node.attr("style").is_some_and(hides)
}

/// Whether an element surrounds the content of a page.
pub(super) fn is_around(node: NodeRef<'_>, name: &str) -> bool {
    match name {
        "nav" | "aside" | "form" | "footer" | "menu" => true,
        // The head of an article is a part of it.
        "header" => !node.ancestors().any(|ancestor| matches!(ancestor.name(), Some("article" | "main"))),
        _ => node.attr("role").is_some_and(|role| {
            let roles =
                ["navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar"];
            roles.iter().any(|known| role.trim_ascii().eq_ignore_ascii_case(known))
        }),
    }
}

/// Whether an inline style hides its element.
fn hides(style: &str) -> bool {
    style.split(';').filter_map(|declaration| declaration.split_once(':')).any(|(property, value)| {
        let value = value.trim().trim_end_matches("!important").trim_end();
        (property.trim().eq_ignore_ascii_case("display") && value.eq_ignore_ascii_case("none"))
            || (property.trim().eq_ignore_ascii_case("visibility") && value.eq_ignore_ascii_case("hidden"))
    })
}

/// Line breaks around an element: two with an empty line between.
fn margin(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "pre" | "listing" | "xmp" | "ul" | "ol" | "dl"
        | "table" | "figure" => 2,
        "address" | "article" | "aside" | "body" | "caption" | "center" | "dd" | "details" | "dir" | "div" | "dt"
        | "fieldset" | "figcaption" | "footer" | "form" | "header" | "hgroup" | "hr" | "html" | "legend" | "li" | "main"
        | "menu" | "nav" | "option" | "plaintext" | "search" | "section" | "summary" | "tbody" | "tfoot" | "thead" | "tr" => 1,
        _ => 0,
    }
}

/// Lines that are being written. White space goes before the next word, so that none is left at an end.
#[derive(Default)]
struct Lines {
    out: String,
    /// Line breaks that the next text comes behind.
    breaks: usize,
    has_blank: bool,
    has_tab: bool,
    /// Whether a cell of this row was shown.
    in_row: bool,
    preformatted: usize,
    /// White space of preformatted text that something may follow.
    blanks: String,
}

impl Lines {
    fn separate(&mut self, breaks: usize) {
        if breaks > 0 {
            self.breaks = self.breaks.max(breaks);
            (self.has_blank, self.has_tab, self.in_row) = (false, false, false);
            self.blanks.clear();
        }
    }

    fn line_break(&mut self) {
        self.breaks += 1;
        (self.has_blank, self.has_tab) = (false, false);
        self.blanks.clear();
    }

    fn cell(&mut self) {
        self.has_tab = self.in_row;
        self.in_row = true;
        self.has_blank = false;
    }

    fn enter_preformatted(&mut self) {
        self.preformatted += 1;
    }

    fn leave_preformatted(&mut self) {
        self.preformatted = self.preformatted.saturating_sub(1);
    }

    fn text(&mut self, text: &str) {
        if self.preformatted > 0 {
            return self.raw(text);
        }
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
        for (at, word) in text.split(is_space).enumerate() {
            self.has_blank |= at > 0;
            if !word.is_empty() {
                self.begin();
                self.out.push_str(word);
            }
        }
    }

    /// Text whose white space counts.
    fn raw(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.line_break();
            }
            let shown = line.trim_end();
            if !shown.is_empty() {
                self.begin();
                self.out.push_str(shown);
            }
            self.blanks.push_str(line.get(shown.len()..).unwrap_or_default());
        }
    }

    /// Writes the white space that is due.
    fn begin(&mut self) {
        if !self.out.is_empty() {
            // More than one empty line says no more than one does.
            (0..self.breaks.min(2)).for_each(|_| self.out.push('\n'));
            if self.breaks == 0 && self.has_tab {
                self.out.push('\t');
            } else if self.breaks == 0 && self.has_blank {
                self.out.push(' ');
            }
        }
        self.out.push_str(&self.blanks);
        self.blanks.clear();
        (self.breaks, self.has_blank, self.has_tab) = (0, false, false);
    }
}
