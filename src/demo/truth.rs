//! What a full crawl of the bookshop brings home, as pure functions of the number of products and the seed.
//!
//! The pages are written from the same functions, so the two cannot disagree by accident; the tests in `over_http` compare them over HTTP.
//! Nothing is collected: iterators compute one entry at a time.

use serde::Serialize;

use super::address;
use super::catalog::Catalog;
use super::shelves::SHELVES;
use super::special::Special;

/// What "full crawl" means, word for word as `/__truth` says it.
pub const RULE: &str = "A full crawl starts at `base`. It follows the href of every <a> element of every HTML page that answers 200, and the \
Location of every redirect, as long as scheme, host and port are those of `base` and robots.txt allows it (robots.txt disallows /private/ and /cart). \
Two addresses are the same page when they are equal after the fragment is dropped and the query pairs are sorted by name, then value; a session id is \
part of the address. `pages` holds each address that such a crawl requests, in that form, once. `status` is what the last attempt answers, redirects \
not followed: a page with `first_status` answers that status to the first GET after the start of the site and `status` to all later ones, so a crawler \
that retries ends with `status`. A page with special `always_fails` answers 500 to every attempt; it ends as failed with 500 when the crawler's retries \
are used up, and its product is not in `products`. `target` is where a redirect leads; a page of kind `redirect_loop` leads to the other address of its \
loop for ever and ends as failed when the crawler's redirect limit is reached. A page of kind `duplicate` shows the product of `same_as`. Forms, images, \
<link> elements, robots.txt, sitemaps, the JSON API and addresses under /__ are not part of a full crawl.";

/// What kind of page an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PageKind {
    /// The home page.
    Home,
    /// A page of a category listing.
    Category,
    /// A page of the staff picks, which link to special products.
    StaffPicks,
    /// A page of old links: moved, lost and looping addresses.
    OldLinks,
    /// About, contact, login.
    Static,
    /// An author.
    Author,
    /// A product at its own address.
    Product,
    /// A product at a second address that stays distinct.
    Duplicate,
    /// An old address that redirects to a product.
    Redirect,
    /// One of the two addresses of a redirect loop.
    RedirectLoop,
    /// A link to a product that is gone.
    Missing,
}

impl PageKind {
    /// Every kind, in the order of [`Truth::pages`].
    pub const ALL: [Self; 11] = [
        Self::Home,
        Self::Category,
        Self::StaffPicks,
        Self::OldLinks,
        Self::Static,
        Self::Author,
        Self::Product,
        Self::Duplicate,
        Self::Redirect,
        Self::RedirectLoop,
        Self::Missing,
    ];

    /// The name used in `/__truth`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Category => "category",
            Self::StaffPicks => "staff_picks",
            Self::OldLinks => "old_links",
            Self::Static => "static",
            Self::Author => "author",
            Self::Product => "product",
            Self::Duplicate => "duplicate",
            Self::Redirect => "redirect",
            Self::RedirectLoop => "redirect_loop",
            Self::Missing => "missing",
        }
    }
}

/// One address a full crawl must request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TruthPage {
    /// The address in canonical form: path and query; absolute in `/__truth`.
    pub url: String,
    /// What it is.
    pub kind: PageKind,
    /// What is special about the product it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub special: Option<&'static str>,
    /// What the last attempt answers, redirects not followed.
    pub status: u16,
    /// What the first GET answers, when that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_status: Option<u16>,
    /// Where a redirect leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The product's own address, for duplicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

impl TruthPage {
    fn new(url: String, kind: PageKind, status: u16) -> Self {
        Self { url, kind, special: None, status, first_status: None, target: None, same_as: None }
    }

    /// The same page with absolute addresses; `base` has no slash at its end.
    #[must_use]
    pub fn on(mut self, base: &str) -> Self {
        self.url.insert_str(0, base);
        for url in [&mut self.target, &mut self.same_as].into_iter().flatten() {
            url.insert_str(0, base);
        }
        self
    }
}

/// Who wrote a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TruthAuthor {
    /// The name as the pages show it.
    pub name: String,
    /// The year in the author page's date of birth.
    pub birth_year: u32,
    /// The author page.
    pub url: String,
}

/// What an item made from a product page must show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TruthProduct {
    /// The number in the product's address.
    pub id: u32,
    /// The product's own address.
    pub url: String,
    /// The product code, unique in the shop; also the stock keeping unit.
    pub upc: String,
    /// The title.
    pub title: String,
    /// The price in pounds, without the sign: `12.99`.
    pub price: String,
    /// Always `GBP`.
    pub currency: &'static str,
    /// The words of the page: `In stock (14 available)` or `Out of stock`.
    pub availability: String,
    /// Copies in stock.
    pub stock: u32,
    /// Stars, 1 to 5.
    pub rating: u32,
    /// The category's name.
    pub category: &'static str,
    /// The author.
    pub author: TruthAuthor,
}

impl TruthProduct {
    /// The same product with absolute addresses; `base` has no slash at its end.
    #[must_use]
    pub fn on(mut self, base: &str) -> Self {
        self.url.insert_str(0, base);
        self.author.url.insert_str(0, base);
        self
    }
}

/// The truth about one shop.
#[derive(Debug, Clone)]
pub struct Truth {
    catalog: Catalog,
}

impl Truth {
    /// The truth about the shop with this many products, at most [`MAX_PRODUCTS`](super::MAX_PRODUCTS), and this seed.
    #[must_use]
    pub fn new(products: u32, seed: u64) -> Self {
        Self { catalog: Catalog::new(products.min(super::MAX_PRODUCTS), seed) }
    }

    pub(crate) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Every address a full crawl requests, each once, by kind.
    pub fn pages(&self) -> impl Iterator<Item = TruthPage> + Send + '_ {
        self.listings().chain(self.authors()).chain(self.product_pages()).chain(self.duplicates()).chain(self.old_addresses())
    }

    /// Every product that some page shows, by id. Those whose page always fails are left out.
    pub fn products(&self) -> impl Iterator<Item = TruthProduct> + Send + '_ {
        (1..=self.catalog.products)
            .filter(|id| self.catalog.special.of(*id) != Some(Special::AlwaysFails))
            .map(|id| self.product(id))
    }

    /// One product, also when its page always fails.
    pub(crate) fn product(&self, id: u32) -> TruthProduct {
        let book = self.catalog.book(id);
        let author = self.catalog.author(book.author);
        TruthProduct {
            id,
            url: address::product(&book),
            price: super::text::pounds(book.pence),
            currency: "GBP",
            availability: book.availability(),
            stock: book.stock,
            rating: book.rating,
            category: book.shelf_name(),
            author: TruthAuthor { birth_year: author.year, url: address::author(&author), name: author.name },
            upc: book.upc,
            title: book.title,
        }
    }

    /// How many pages the staff picks and the old links have, each.
    pub(crate) const fn special_pages(&self) -> u32 {
        address::pages(self.catalog.special.blocks(), address::BLOCKS_PER_PAGE)
    }

    fn listings(&self) -> impl Iterator<Item = TruthPage> + Send + '_ {
        let home = std::iter::once(TruthPage::new("/".to_owned(), PageKind::Home, 200));
        let shelves = SHELVES.iter().enumerate().flat_map(|(at, shelf)| {
            let pages = address::pages(self.catalog.shelf_size(at), address::LISTING);
            (1..=pages).map(|page| TruthPage::new(address::shelf(shelf.slug, page), PageKind::Category, 200))
        });
        let special = [("/staff-picks", PageKind::StaffPicks), ("/old-links", PageKind::OldLinks)];
        let special = special.into_iter().flat_map(|(path, kind)| {
            (1..=self.special_pages()).map(move |page| TruthPage::new(address::page(path, page), kind, 200))
        });
        let fixed =
            ["/about", "/contact", "/login"].into_iter().map(|path| TruthPage::new(path.to_owned(), PageKind::Static, 200));
        home.chain(shelves).chain(special).chain(fixed)
    }

    fn authors(&self) -> impl Iterator<Item = TruthPage> + Send + '_ {
        let ids = (1..=self.catalog.last_author()).filter(|id| !self.catalog.books_of(*id).is_empty());
        ids.map(|id| TruthPage::new(address::author(&self.catalog.author(id)), PageKind::Author, 200))
    }

    fn product_pages(&self) -> impl Iterator<Item = TruthPage> + Send + '_ {
        (1..=self.catalog.products).map(|id| {
            let special = self.catalog.special.of(id);
            let (first_status, status) = match special {
                Some(Special::FailsOnce) => (Some(503), 200),
                Some(Special::RateLimited) => (Some(429), 200),
                Some(Special::AlwaysFails) => (None, 500),
                _ => (None, 200),
            };
            let url = address::product(&self.catalog.book(id));
            TruthPage { special: special.map(Special::name), first_status, ..TruthPage::new(url, PageKind::Product, status) }
        })
    }

    fn duplicates(&self) -> impl Iterator<Item = TruthPage> + Send + '_ {
        let blocks = 0..self.catalog.special.blocks();
        blocks.flat_map(|block| [Special::ReorderedTwin, Special::SessionTwin].map(|kind| (block, kind))).filter_map(
            |(block, kind)| {
                let book = self.catalog.book(self.catalog.special.find(block, kind)?);
                let url = if kind == Special::SessionTwin {
                    address::session_twin(&book, self.catalog.seed)
                } else {
                    address::reordered_twin(&book)
                };
                let page = TruthPage::new(url, PageKind::Duplicate, 200);
                Some(TruthPage { special: Some(kind.name()), same_as: Some(address::product(&book)), ..page })
            },
        )
    }

    fn old_addresses(&self) -> impl Iterator<Item = TruthPage> + Send + '_ {
        let blocks = self.catalog.special.blocks();
        let moved = (0..blocks)
            .flat_map(|block| [Special::MovedForGood, Special::MovedForNow].map(|kind| (block, kind)))
            .filter_map(|(block, kind)| {
                let id = self.catalog.special.find(block, kind)?;
                let page = TruthPage::new(address::old_product(id), PageKind::Redirect, self.catalog.special.moved_status(id));
                Some(TruthPage { special: Some(kind.name()), target: Some(address::product(&self.catalog.book(id))), ..page })
            });
        let loops = (0..self.catalog.special.loops()).flat_map(|number| {
            let [one, other] = address::redirect_loop(number);
            [(one.clone(), other.clone()), (other, one)]
                .map(|(url, target)| TruthPage { target: Some(target), ..TruthPage::new(url, PageKind::RedirectLoop, 302) })
        });
        let missing = (0..blocks).map(|block| {
            TruthPage::new(address::product(&self.catalog.book(self.missing_product(block))), PageKind::Missing, 404)
        });
        moved.chain(loops).chain(missing)
    }

    /// The id behind the dead link of a block: a book beyond the stock.
    pub(crate) const fn missing_product(&self, block: u32) -> u32 {
        self.catalog.products + 1 + block
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn a_thousand_products_have_the_promised_numbers_of_special_pages() {
        for seed in [1, 2, 900_719] {
            let truth = Truth::new(1_000, seed);
            let mut special: BTreeMap<&str, usize> = BTreeMap::new();
            let mut kinds: BTreeMap<PageKind, usize> = BTreeMap::new();
            for page in truth.pages() {
                *kinds.entry(page.kind).or_default() += 1;
                if let (PageKind::Product, Some(name)) = (page.kind, page.special) {
                    *special.entry(name).or_default() += 1;
                }
            }
            for kind in Special::ALL {
                assert_eq!(special[kind.name()], 10, "{}", kind.name());
            }
            let expected = [
                (PageKind::Duplicate, 20),
                (PageKind::Redirect, 20),
                (PageKind::RedirectLoop, 2),
                (PageKind::Missing, 10),
                (PageKind::Product, 1_000),
            ];
            for (kind, number) in expected {
                assert_eq!(kinds[&kind], number, "{}", kind.name());
            }
            assert_eq!(truth.products().count(), 990);
        }
    }

    #[test]
    fn no_address_is_listed_twice() {
        for products in [1, 12, 300, 2_500] {
            let mut seen = BTreeSet::new();
            for page in Truth::new(products, 4).pages() {
                assert!(seen.insert(page.url.clone()), "{}", page.url);
            }
        }
    }

    #[test]
    fn the_names_in_the_json_are_those_of_the_kinds() {
        for kind in PageKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn a_large_shop_is_walked_without_collecting_it() {
        let truth = Truth::new(20_000, 3);
        assert_eq!(truth.pages().filter(|page| page.kind == PageKind::Product).count(), 20_000);
    }
}
