//! The addresses of the shop, in one place: what links are written with is what `/__truth` lists.

use super::catalog::{Author, Book};
use super::dice::mix;

/// How many products a listing shows.
pub(crate) const LISTING: u32 = 20;

/// How many blocks of special products one page of staff picks or old links covers.
pub(crate) const BLOCKS_PER_PAGE: u32 = 10;

const SESSION: u64 = 0x5e55;

pub(crate) fn product(book: &Book) -> String {
    format!("/products/{}-{}", book.id, book.slug)
}

pub(crate) fn author(author: &Author) -> String {
    format!("/authors/{}-{}", author.id, author.slug)
}

/// A page of something that is cut into pages; the first one has no query.
pub(crate) fn page(path: &str, page: u32) -> String {
    if page <= 1 { path.to_owned() } else { format!("{path}?page={page}") }
}

pub(crate) fn shelf(slug: &str, number: u32) -> String {
    page(&format!("/category/{slug}"), number)
}

pub(crate) fn old_product(id: u32) -> String {
    format!("/p/{id}")
}

/// The two addresses of a redirect loop, each of which leads to the other.
pub(crate) fn redirect_loop(number: u32) -> [String; 2] {
    [format!("/moved/{number}"), format!("/moved/{number}/again")]
}

/// The second address of a product whose links differ in the order of the query only, in canonical order.
pub(crate) fn reordered_twin(book: &Book) -> String {
    format!("{}?from=shelf&ref=picks", product(book))
}

/// The same address as [`reordered_twin`] as the shop links it: other order, and a fragment.
pub(crate) fn reordered_twin_spellings(book: &Book) -> [String; 3] {
    let path = product(book);
    [
        format!("{path}?ref=picks&from=shelf#reviews"),
        format!("{path}?from=shelf&ref=picks"),
        format!("{path}?from=shelf&ref=picks#description"),
    ]
}

/// The second address of a product linked with a session id.
pub(crate) fn session_twin(book: &Book, seed: u64) -> String {
    format!("{}?sid={:08x}", product(book), mix(seed, SESSION, u64::from(book.id)) >> 32)
}

/// How many pages `entries` fill; at least one.
pub(crate) const fn pages(entries: u32, per_page: u32) -> u32 {
    let pages = entries.div_ceil(per_page);
    if pages == 0 { 1 } else { pages }
}
