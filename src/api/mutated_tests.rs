#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Pages that were changed at random, read as callbacks read them: no panic, no runaway.

use super::response::tests::response;
use crate::html::PageOptions;
use crate::web::mutated::{Kind, Rng, read_all};

/// Fields of one form that are filled in and sent.
const MOST_FIELDS: usize = 8;

fn read(_: Kind, bytes: &[u8], rng: &mut Rng) {
    let declared = ["text/html", "text/html; charset=utf-8", "text/html; charset=windows-1251", "text/html; charset=iso-2022-jp"];
    let page = response(declared[rng.below(declared.len())], bytes.to_vec(), PageOptions::default());
    for link in page.links() {
        assert!(matches!(link.url.scheme(), "http" | "https"), "{}", link.url);
    }
    for mut form in page.forms() {
        for (name, value) in form.fields().into_iter().take(MOST_FIELDS) {
            let _ = form.fill(&name, &value);
        }
        let _ = form.submit(&());
    }
    let _ = page.form("input, button");
    let data = page.structured_data();
    assert!(serde_json::to_string(&data.microdata).is_ok());
    let text = page.text().len();
    // A blank or two more for each element is all that a layout adds.
    for shown in [page.visible_text(), page.readable_text()] {
        assert!(shown.len() <= 4 * text + 16, "{} bytes of text of {text} bytes", shown.len());
    }
}

#[test]
fn a_callback_may_be_given_any_page() {
    read_all(&[Kind::Html], 3_000, read);
}
