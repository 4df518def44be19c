//! Where the running text of a page is: blocks of text vote for the elements they stand in.
//!
//! A block is an element such as a paragraph with 25 characters or more that are no links. Its weight goes to its parent whole and
//! to its grandparent by half; many links and telling class names take some away. The element with the most is the content.

use std::collections::HashMap;

use super::shown::{is_around, is_hidden};
use super::{Walk, walk};
use crate::api::selector::{NodeKind, NodeRef};
use crate::html::Document;

/// Characters without which a block does not vote.
const SHORT: usize = 25;
/// The least weight that makes a content.
const ENOUGH: f64 = 5.0;

/// Words in a class or an id of what is no content.
const AGAINST: &[&str] = &[
    "comment",
    "sidebar",
    "footer",
    "footnote",
    "header",
    "menu",
    "nav",
    "breadcrumb",
    "share",
    "social",
    "related",
    "promo",
    "sponsor",
    "advert",
    "banner",
    "cookie",
    "consent",
    "popup",
    "modal",
    "widget",
    "pagination",
    "newsletter",
    "subscribe",
    "skip",
];
/// Words in a class or an id of what is content.
const FOR: &[&str] = &["article", "content", "entry", "main", "post", "story", "text", "body", "blog"];

/// The characters of an element, white space between words counted once, and how many of them are links.
#[derive(Clone, Copy, Debug, Default)]
struct Text {
    all: usize,
    links: usize,
    commas: usize,
}

struct Open<'d> {
    element: NodeRef<'d>,
    text: Text,
    in_link: bool,
}

/// The element with the content of a page; `None` where there is no running text.
pub(super) fn find(document: &Document) -> Option<NodeRef<'_>> {
    let top = document.body().or_else(|| document.document_element())?;
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut votes: HashMap<usize, Vote<'_>> = HashMap::new();
    walk(top, |step| {
        match step {
            Walk::Enter(node) if node.is_element() => {
                let name = node.name().unwrap_or_default();
                if node != top && (is_hidden(node, name) || is_around(node, name)) {
                    return false;
                }
                let in_link = name == "a" || open.last().is_some_and(|outer| outer.in_link);
                open.push(Open { element: node, text: Text::default(), in_link });
            }
            Walk::Enter(node) => {
                if node.kind() == NodeKind::Text
                    && let Some(inner) = open.last_mut()
                {
                    count(node.data().unwrap_or_default(), inner.in_link, &mut inner.text);
                }
            }
            Walk::Leave(_) => {
                let Some(closed) = open.pop() else { return true };
                if is_block(closed.element) {
                    vote(&closed, &open, &mut votes);
                }
                if let Some(vote) = votes.get_mut(&closed.element.id.index()) {
                    vote.text = closed.text;
                }
                if let Some(outer) = open.last_mut() {
                    outer.text.all += closed.text.all;
                    outer.text.links += closed.text.links;
                    outer.text.commas += closed.text.commas;
                }
            }
        }
        true
    });
    let weighed = votes.into_values().map(|vote| (vote.weight * (1.0 - vote.text.share_of_links()), vote));
    let best = weighed.max_by(|(one, a), (other, b)| {
        // Of equals the first.
        one.total_cmp(other).then_with(|| document.place(b.element.id).cmp(&document.place(a.element.id)))
    });
    let (_, best) = best.filter(|(weight, _)| *weight >= ENOUGH)?;
    Some(named_around(best.element))
}

struct Vote<'d> {
    element: NodeRef<'d>,
    weight: f64,
    text: Text,
}

fn vote<'d>(block: &Open<'d>, around: &[Open<'d>], votes: &mut HashMap<usize, Vote<'d>>) {
    let plain = block.text.all.saturating_sub(block.text.links);
    if plain < SHORT {
        return;
    }
    #[allow(clippy::cast_precision_loss, reason = "lengths of texts")]
    let weight = (1.0 + block.text.commas as f64 + (plain as f64 / 100.0).min(3.0)) * (1.0 - block.text.share_of_links());
    for (outer, share) in around.iter().rev().zip([1.0, 0.5]) {
        let id = outer.element.id.index();
        let vote = votes.entry(id).or_insert_with(|| Vote {
            element: outer.element,
            weight: bonus(outer.element),
            text: Text::default(),
        });
        vote.weight += weight * share;
    }
}

impl Text {
    #[allow(clippy::cast_precision_loss, reason = "lengths of texts")]
    fn share_of_links(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.links as f64 / self.all as f64 }
    }
}

/// An article or the main part of a page that the content stands in alone, or nearly.
fn named_around(content: NodeRef<'_>) -> NodeRef<'_> {
    let is_named = |node: &NodeRef<'_>| {
        matches!(node.name(), Some("article" | "main")) || node.attr("role").is_some_and(|role| role.eq_ignore_ascii_case("main"))
    };
    content.ancestors().take(4).find(is_named).filter(|_| !is_named(&content)).unwrap_or(content)
}

/// What the names of an element say for it.
fn bonus(element: NodeRef<'_>) -> f64 {
    let by_name = match element.name().unwrap_or_default() {
        "article" | "main" => 25.0,
        "section" | "div" | "td" => 2.0,
        "ul" | "ol" | "dl" | "li" => -3.0,
        _ => 0.0,
    };
    let names = ["class", "id"].into_iter().filter_map(|name| element.attr(name));
    names.fold(by_name, |sum, names| {
        sum + if says(names, AGAINST) {
            -25.0
        } else if says(names, FOR) {
            10.0
        } else {
            0.0
        }
    })
}

fn says(names: &str, words: &[&str]) -> bool {
    // Class names can be as long as the page.
    let names = names.get(..names.len().min(200)).unwrap_or_default().to_ascii_lowercase();
    words.iter().any(|word| names.contains(word))
}

fn count(text: &str, in_link: bool, into: &mut Text) {
    for word in text.split_ascii_whitespace() {
        let length = word.chars().count() + 1;
        into.all += length;
        into.commas += word.chars().filter(|c| matches!(c, ',' | '，' | '、' | '،')).count();
        if in_link {
            into.links += length;
        }
    }
}

/// Elements that text runs in; what may hold blocks of its own is one where it holds text itself.
fn is_block(element: NodeRef<'_>) -> bool {
    match element.name().unwrap_or_default() {
        "p" | "pre" | "h2" | "h3" => true,
        "div" | "section" | "article" | "main" | "td" | "blockquote" | "dd" | "li" => element
            .children()
            .take(50)
            .any(|child| child.kind() == NodeKind::Text && child.data().is_some_and(|text| text.trim_ascii().len() >= SHORT)),
        _ => false,
    }
}
