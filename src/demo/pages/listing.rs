//! Pages with many products: a category, a search.

use super::layout::{breadcrumb, card, document, pager};
use crate::demo::address::{self, LISTING};
use crate::demo::catalog::Catalog;
use crate::demo::shelves::Shelf;
use crate::demo::text::{escape, put};

/// How many hits a search shows; it stops looking when it has them.
const HITS: usize = 60;
/// How many characters of a search are looked at.
const LONGEST_SEARCH: usize = 100;

/// A page of a category; None when there is no such page.
pub(crate) fn shelf(catalog: &Catalog, at: usize, shelf: &Shelf, page: u32) -> Option<String> {
    let size = catalog.shelf_size(at);
    let pages = address::pages(size, LISTING);
    if page == 0 || page > pages {
        return None;
    }
    let mut main = breadcrumb(&[], shelf.name);
    put!(main, "<h1>{}</h1>\n<p>{} {size} titles.</p>\n<ul class=\"grid\">\n", escape(shelf.name), escape(shelf.blurb));
    let first = (page - 1) * LISTING;
    for place in first..size.min(first + LISTING) {
        if let Some(id) = catalog.on_shelf(at, place) {
            card(catalog, id, &mut main);
        }
    }
    main.push_str("</ul>\n");
    main.push_str(&pager(&address::shelf(shelf.slug, 1), page, pages));
    Some(document(shelf.name, shelf.blurb, Some(&address::shelf(shelf.slug, page)), &main))
}

/// The products whose title holds every word of the search, the first 60 by id. Walks the whole stock at worst.
pub(crate) fn search(catalog: &Catalog, query: &str) -> String {
    let query: String = query.chars().take(LONGEST_SEARCH).collect();
    let wanted: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut hits = Vec::new();
    if !wanted.is_empty() {
        let found = (1..=catalog.products).filter(|id| {
            let title = catalog.title_of(*id).to_lowercase();
            wanted.iter().all(|word| title.contains(word.as_str()))
        });
        hits.extend(found.take(HITS));
    }
    let mut main = breadcrumb(&[], "Search");
    put!(
        main,
        "<h1>Search</h1>\n<p class=\"hits\">{} {} for “{}”.</p>\n<ul class=\"grid\">\n",
        hits.len(),
        if hits.len() == 1 { "title" } else { "titles" },
        escape(&query)
    );
    for id in hits {
        card(catalog, id, &mut main);
    }
    main.push_str("</ul>\n");
    document("Search", "Search the shop by title.", None, &main)
}
