//! Staff picks and old links: the pages that lead to every special product, to moved, lost and looping addresses.

use super::layout::{breadcrumb, document, pager};
use crate::demo::address::{self, BLOCKS_PER_PAGE};
use crate::demo::special::{LOOP_EVERY_BLOCKS, Special};
use crate::demo::text::{escape, put};
use crate::demo::truth::Truth;

/// A page of staff picks; None when there is no such page.
pub(crate) fn staff_picks(truth: &Truth, page: u32) -> Option<String> {
    let catalog = truth.catalog();
    let mut main = breadcrumb(&[], "Staff picks");
    main.push_str("<h1>Staff picks</h1>\n<p>Books we press into the hands of friends. Some of their pages are slow, shy or badly printed.</p>\n<ul class=\"picks\">\n");
    for block in blocks(truth, page)? {
        for kind in Special::ALL {
            let Some(book) = catalog.special.find(block, kind).map(|id| catalog.book(id)) else { continue };
            let title = escape(&book.title);
            put!(main, "<li><a href=\"{}\">{title}</a>", address::product(&book));
            match kind {
                Special::ReorderedTwin => {
                    for link in address::reordered_twin_spellings(&book) {
                        put!(main, " · <a href=\"{}\">seen on the shelf</a>", escape(&link));
                    }
                    put!(main, " · <a href=\"{}#reviews\">reviews</a>", address::product(&book));
                }
                Special::SessionTwin => {
                    put!(main, " · <a href=\"{}\">from your last visit</a>", escape(&address::session_twin(&book, catalog.seed)))
                }
                _ => {}
            }
            main.push_str("</li>\n");
        }
    }
    main.push_str("</ul>\n");
    main.push_str(&pager("/staff-picks", page, truth.special_pages()));
    Some(document("Staff picks", "Books we press into the hands of friends.", Some(&address::page("/staff-picks", page)), &main))
}

/// A page of old links; None when there is no such page.
pub(crate) fn old_links(truth: &Truth, page: u32) -> Option<String> {
    let catalog = truth.catalog();
    let mut main = breadcrumb(&[], "Old links");
    main.push_str("<h1>Old links</h1>\n<p>Addresses from our previous catalogue. Most lead somewhere, some no longer do.</p>\n<ul class=\"old\">\n");
    for block in blocks(truth, page)? {
        for kind in [Special::MovedForGood, Special::MovedForNow] {
            if let Some(book) = catalog.special.find(block, kind).map(|id| catalog.book(id)) {
                put!(
                    main,
                    "<li><a href=\"{}\">{} (old catalogue number {})</a></li>\n",
                    address::old_product(book.id),
                    escape(&book.title),
                    book.id
                );
            }
        }
        let gone = catalog.book(truth.missing_product(block));
        put!(main, "<li><a href=\"{}\">{} (out of print)</a></li>\n", address::product(&gone), escape(&gone.title));
        if block % LOOP_EVERY_BLOCKS == 0 {
            let [one, _] = address::redirect_loop(block / LOOP_EVERY_BLOCKS);
            put!(main, "<li><a href=\"{one}\">Our moved newsletter, part {}</a></li>\n", block / LOOP_EVERY_BLOCKS + 1);
        }
    }
    main.push_str("</ul>\n");
    main.push_str(&pager("/old-links", page, truth.special_pages()));
    Some(document("Old links", "Addresses from our previous catalogue.", Some(&address::page("/old-links", page)), &main))
}

fn blocks(truth: &Truth, page: u32) -> Option<std::ops::Range<u32>> {
    if page == 0 || page > truth.special_pages() {
        return None;
    }
    let first = (page - 1) * BLOCKS_PER_PAGE;
    Some(first..truth.catalog().special.blocks().min(first + BLOCKS_PER_PAGE))
}
