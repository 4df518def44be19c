//! The text of a page for people: all that a browser shows, or only what the page is about.
//!
//! No style sheet is read: what an element looks like follows from its name, and only an inline style, `hidden` and
//! `aria-hidden` hide it. Takes one or two passes over the tree.

mod main_content;
mod shown;

use super::selector::{NodeRef, Page};

/// All text of a page as a browser shows it: one line for each line or block, an empty line around paragraphs and headings,
/// a tab between cells of a table. Without scripts, styles, controls of forms and what is hidden.
///
/// ```
/// use dragline::api::{Page, readable};
///
/// let page = Page::parse("<nav>Home</nav><h1>Tides</h1><p>High at <b>six</b>,<br>low at noon.<table><tr><td>a<td>b</table>");
/// assert_eq!(readable::visible_text(&page), "Home\n\nTides\n\nHigh at six,\nlow at noon.\n\na\tb");
/// ```
#[must_use]
pub fn visible_text(page: &Page) -> String {
    page.document().document_element().map(|root| shown::text(root, shown::Keep::Everything)).unwrap_or_default()
}

/// The text of a page without what surrounds its content: the element that most of the running text is in, without
/// navigation, headers and footers of the site, side notes, forms. A page without running text gives its visible text, less
/// those.
///
/// A guess by the amount of text, the share of links in it, and the names of elements and classes; for a site that matters
/// say where the text is, by a selector.
///
/// ```
/// use dragline::api::{Page, readable};
///
/// let story = "It was low tide, and the boats lay on their sides in the mud of the harbour, waiting. ".repeat(5);
/// let page = Page::parse(&format!("<nav><a href=/>Home</a></nav><div><h1>Tides</h1><p>{story}</div><footer>Imprint</footer>"));
/// assert_eq!(readable::readable_text(&page), format!("Tides\n\n{}", story.trim_end()));
/// ```
#[must_use]
pub fn readable_text(page: &Page) -> String {
    let Some(root) = page.document().document_element() else { return String::new() };
    let text = main_content::find(page.document()).map(|main| shown::text(main, shown::Keep::Content)).unwrap_or_default();
    if text.is_empty() { shown::text(root, shown::Keep::Content) } else { text }
}

/// A step of a walk through a tree.
#[derive(Clone, Copy)]
enum Walk<'d> {
    /// A node that comes, its descendants behind it.
    Enter(NodeRef<'d>),
    /// An element that is left.
    Leave(NodeRef<'d>),
}

/// Walks through a node and all below it without recursion. `visit` says of each node it enters whether to go inside; what it
/// does not go into is not left either.
fn walk<'d>(top: NodeRef<'d>, mut visit: impl FnMut(Walk<'d>) -> bool) {
    let mut node = top;
    loop {
        let inside = visit(Walk::Enter(node));
        if inside && let Some(child) = node.first_child() {
            node = child;
            continue;
        }
        if inside && node.is_element() {
            visit(Walk::Leave(node));
        }
        loop {
            if node == top {
                return;
            }
            if let Some(next) = node.next_sibling() {
                node = next;
                break;
            }
            let Some(parent) = node.parent() else { return };
            node = parent;
            visit(Walk::Leave(node));
        }
    }
}

#[cfg(test)]
mod tests;
