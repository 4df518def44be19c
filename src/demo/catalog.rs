//! The shop's stock: books, authors and shelves as functions of `(seed, id)`.
//!
//! Which books stand on a shelf and which ones an author wrote is decided by shuffles that work in both directions, so that
//! listings can be cut into pages without a table. Ids of books and authors start at 1.

use super::dice::{Dice, Shuffle, mix};
use super::shelves::{SHELF_WEIGHTS, SHELVES, Shelf, Sort};
use super::special::SpecialPlan;
use super::text::{capital, slug, title_case, with_article};
use super::words;

const PERIOD: u32 = 100;
const AUTHORS_SHARE: u32 = 10;

/// What each stream of choices is for; the numbers only have to differ.
mod stream {
    pub(super) const SHELF: u64 = 1;
    pub(super) const DESK: u64 = 2;
    pub(super) const SPLIT: u64 = 3;
    pub(super) const BOOK: u64 = 4;
    pub(super) const TITLE: u64 = 5;
    pub(super) const AUTHOR: u64 = 6;
    pub(super) const UPC: u64 = 7;
    pub(super) const ALSO: u64 = 8;
    pub(super) const PROSE: u64 = 9;
    pub(super) const BIO: u64 = 10;
    pub(super) const TOPIC: u64 = 11;
    pub(super) const BORN: u64 = 12;
}

/// One book, computed on demand.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    pub(crate) id: u32,
    pub(crate) title: String,
    pub(crate) slug: String,
    pub(crate) shelf: usize,
    pub(crate) author: u32,
    pub(crate) upc: String,
    pub(crate) pence: u32,
    pub(crate) stock: u32,
    pub(crate) rating: u32,
    pub(crate) pages: u32,
    pub(crate) year: u32,
    pub(crate) publisher: &'static str,
    pub(crate) language: &'static str,
    pub(crate) binding: &'static str,
}

impl Book {
    /// The words a page shows for the stock.
    pub(crate) fn availability(&self) -> String {
        if self.stock == 0 { "Out of stock".to_owned() } else { format!("In stock ({} available)", self.stock) }
    }

    pub(crate) fn shelf_name(&self) -> &'static str {
        SHELVES.get(self.shelf).map_or("", |shelf| shelf.name)
    }
}

/// One author, computed on demand.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
    pub(crate) town: &'static str,
}

/// The stock of one shop.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    pub(crate) seed: u64,
    pub(crate) products: u32,
    pub(crate) special: SpecialPlan,
    by_shelf: Shuffle,
    by_author: Shuffle,
    /// Which places of each hundred belong to a shelf, in rising order.
    places: Vec<Vec<u32>>,
    /// The shelf of each place of a hundred.
    shelf_at: Vec<usize>,
}

impl Catalog {
    pub(crate) fn new(products: u32, seed: u64) -> Self {
        let mut places: Vec<Vec<u32>> = (0..20).map(|first| vec![first]).collect();
        let mut next = 20;
        for (own, weight) in places.iter_mut().zip(SHELF_WEIGHTS) {
            own.extend(next..next + weight);
            next += weight;
        }
        let shelf_at = (0..PERIOD).map(|place| places.iter().position(|own| own.contains(&place)).unwrap_or(0)).collect();
        Self {
            seed,
            products,
            shelf_at,
            special: SpecialPlan::new(seed, products),
            by_shelf: Shuffle::new(seed, stream::SHELF, products),
            by_author: Shuffle::new(seed, stream::DESK, products),
            places,
        }
    }

    /// Whether the shop sells it.
    pub(crate) const fn sells(&self, id: u32) -> bool {
        id >= 1 && id <= self.products
    }

    /// The book with this id. Ids beyond the stock give a book too: one that is no longer sold.
    pub(crate) fn book(&self, id: u32) -> Book {
        let shelf = self.shelf_of(id);
        let title = self.title(id, shelf);
        let author = self.author_of(id);
        let born = self.birth_year(author);
        let mut dice = Dice::new(self.seed, stream::BOOK, u64::from(id));
        let pence =
            (dice.between(4, 18) + dice.below(12)) * 100 + [99, 49, 95, 0].get(dice.below(4) as usize).copied().unwrap_or(0);
        let stock = if dice.below(12) == 0 { 0 } else { dice.between(1, 40) };
        Book {
            id,
            slug: slug(&title),
            title,
            shelf,
            author,
            upc: format!("{:016x}", mix(self.seed, stream::UPC, u64::from(id))),
            pence,
            stock,
            rating: dice.between(1, 5),
            pages: dice.between(64, 720),
            year: dice.between(born + 22, 2_025.min(born + 80)),
            publisher: dice.pick(&words::PUBLISHERS),
            language: dice.pick(&words::LANGUAGES),
            binding: dice.pick(&words::BINDINGS),
        }
    }

    /// The title alone, for searching.
    pub(crate) fn title_of(&self, id: u32) -> String {
        self.title(id, self.shelf_of(id))
    }

    pub(crate) fn shelf_named(name: &str) -> Option<(usize, &'static Shelf)> {
        SHELVES.iter().enumerate().find(|(_, shelf)| shelf.slug == name)
    }

    /// How many books stand on the shelf.
    pub(crate) fn shelf_size(&self, shelf: usize) -> u32 {
        let Some(own) = self.places.get(shelf) else { return 0 };
        let rest = own.iter().filter(|place| **place < self.products % PERIOD).count();
        self.products / PERIOD * count(own.len()) + count(rest)
    }

    /// The book at this place of the shelf, counted from 0.
    pub(crate) fn on_shelf(&self, shelf: usize, at: u32) -> Option<u32> {
        let own = self.places.get(shelf)?;
        let width = count(own.len());
        let place = own.get((at % width) as usize)?;
        let place = (at / width).checked_mul(PERIOD)?.checked_add(*place)?;
        (place < self.products).then(|| self.by_shelf.back(place) + 1)
    }

    fn shelf_of(&self, id: u32) -> usize {
        let place = self.by_shelf.forward(id.saturating_sub(1)) % PERIOD;
        self.shelf_at.get(place as usize).copied().unwrap_or(0)
    }

    /// The highest author id that can exist; not all below do.
    pub(crate) const fn last_author(&self) -> u32 {
        self.products.div_ceil(AUTHORS_SHARE) * 2
    }

    /// The books of an author, in no particular order. None when there is no such author.
    pub(crate) fn books_of(&self, author: u32) -> Vec<u32> {
        if author == 0 || author > self.last_author() {
            return Vec::new();
        }
        let group = (author - 1) / 2;
        let split = self.split(group);
        let within = if author % 2 == 1 { 0..split } else { split..AUTHORS_SHARE };
        within
            .map(|at| group * AUTHORS_SHARE + at)
            .filter(|at| *at < self.products)
            .map(|at| self.by_author.back(at) + 1)
            .collect()
    }

    fn author_of(&self, id: u32) -> u32 {
        let place = self.by_author.forward(id.saturating_sub(1));
        let (group, at) = (place / AUTHORS_SHARE, place % AUTHORS_SHARE);
        group * 2 + 1 + u32::from(at >= self.split(group))
    }

    /// Ten books are shared by two authors; the first one gets this many, 2 to 8.
    fn split(&self, group: u32) -> u32 {
        Dice::new(self.seed, stream::SPLIT, u64::from(group)).between(2, 8)
    }

    pub(crate) fn author(&self, id: u32) -> Author {
        let mut dice = Dice::new(self.seed, stream::AUTHOR, u64::from(id));
        let first = dice.pick(&words::FIRST_NAMES);
        let last = dice.pick(&words::LAST_NAMES);
        let name = match dice.below(5) {
            0 => format!("{first} {}. {last}", char::from(b'A' + u8::try_from(dice.below(26)).unwrap_or(0))),
            1 => {
                let second = dice.pick(&words::FIRST_NAMES);
                if second == first { format!("{first} {last}") } else { format!("{first} {second} {last}") }
            }
            _ => format!("{first} {last}"),
        };
        Author {
            id,
            slug: slug(&name),
            name,
            year: self.birth_year(id),
            month: dice.between(1, 12),
            day: dice.between(1, 28),
            town: dice.pick(&words::TOWNS),
        }
    }

    fn birth_year(&self, author: u32) -> u32 {
        Dice::new(self.seed, stream::BORN, u64::from(author)).between(1_921, 1_997)
    }

    /// What the book is about, as a noun phrase.
    pub(crate) fn topic(&self, id: u32, shelf: usize) -> &'static str {
        let mut dice = Dice::new(self.seed, stream::TOPIC, u64::from(id));
        SHELVES.get(shelf).map_or("", |shelf| dice.pick(&shelf.topics))
    }

    /// Up to four other books that are bought together with this one.
    pub(crate) fn also_bought(&self, id: u32) -> Vec<u32> {
        let mut dice = Dice::new(self.seed, stream::ALSO, u64::from(id));
        let mut others = Vec::with_capacity(4);
        for _ in 0..6 {
            let other = dice.below(self.products) + 1;
            if other != id && !others.contains(&other) && others.len() < 4 {
                others.push(other);
            }
        }
        others
    }

    /// The choices behind the description and the reviews of a book.
    pub(crate) fn prose(&self, id: u32) -> Dice {
        Dice::new(self.seed, stream::PROSE, u64::from(id))
    }

    /// The choices behind the life of an author.
    pub(crate) fn bio(&self, id: u32) -> Dice {
        Dice::new(self.seed, stream::BIO, u64::from(id))
    }

    fn title(&self, id: u32, shelf: usize) -> String {
        let mut dice = Dice::new(self.seed, stream::TITLE, u64::from(id));
        let adjective = dice.pick(&words::ADJECTIVES);
        let noun = dice.pick(&words::NOUNS);
        let mut other = dice.pick(&words::NOUNS);
        while other == noun {
            other = dice.pick(&words::NOUNS);
        }
        let town = dice.pick(&words::TOWNS);
        let first = dice.pick(&words::FIRST_NAMES);
        let sort = SHELVES.get(shelf).map_or(Sort::Story, |shelf| shelf.sort);
        let topic = title_case(self.topic(id, shelf));
        match (sort, dice.below(7)) {
            (Sort::Story | Sort::Verse, 0) => format!("The {adjective} {noun}"),
            (Sort::Story | Sort::Verse, 1) => format!("The {noun} of {town}"),
            (Sort::Story, 2) => format!("{first} and the {adjective} {noun}"),
            (Sort::Story, 3) => format!("The {noun}’s {other}"),
            (Sort::Story, 4) => format!("{} for {first}", with_article(noun)),
            (Sort::Story, 5) => format!("{noun} & {other}"),
            (Sort::Story, _) => format!("The Last {noun} Before {town}"),
            (Sort::Verse, 2) => format!("{noun}, {other}: Poems"),
            (Sort::Verse, 3) => format!("{} and Other Poems", capital(&topic)),
            (Sort::Verse, 4) => format!("Notes from {}", with_article(noun).replacen('A', "a", 1)),
            (Sort::Verse, _) => format!("{adjective} {noun}"),
            (Sort::Fact, 0) => format!("A Short History of {topic}"),
            (Sort::Fact, 1) => format!("{}: A Beginner’s Guide", capital(&topic)),
            (Sort::Fact, 2) => format!("The {adjective} {noun}: Notes on {topic}"),
            (Sort::Fact, 3) => format!("On {topic}"),
            (Sort::Fact, 4) => format!("{}, {noun}, {other}: Essays from {town}", capital(&topic)),
            (Sort::Fact, 5) => format!("Thinking About {topic}"),
            (Sort::Fact, _) => format!("The {noun} Book of {topic}"),
        }
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_book_stands_on_exactly_one_shelf() {
        for products in [1, 19, 60, 300, 1_050] {
            let catalog = Catalog::new(products, 8);
            let mut seen = BTreeSet::new();
            for shelf in 0..SHELVES.len() {
                let size = catalog.shelf_size(shelf);
                for at in 0..size {
                    let id = catalog.on_shelf(shelf, at).unwrap();
                    assert_eq!(catalog.book(id).shelf, shelf);
                    assert!(seen.insert(id));
                }
                assert_eq!(catalog.on_shelf(shelf, size), None);
            }
            assert_eq!(seen.len(), products as usize);
        }
    }

    #[test]
    fn every_book_belongs_to_its_author_and_to_no_other() {
        for products in [1, 7, 60, 304] {
            let catalog = Catalog::new(products, 5);
            let mut seen = BTreeSet::new();
            for author in 1..=catalog.last_author() {
                for id in catalog.books_of(author) {
                    assert_eq!(catalog.book(id).author, author);
                    assert!(seen.insert(id));
                }
            }
            assert_eq!(seen.into_iter().collect::<Vec<_>>(), (1..=products).collect::<Vec<_>>());
            assert!(catalog.books_of(0).is_empty() && catalog.books_of(u32::MAX).is_empty());
        }
    }

    #[test]
    fn the_shelf_weights_fill_a_hundred_places() {
        assert_eq!(SHELF_WEIGHTS.iter().sum::<u32>(), PERIOD - 20);
    }

    #[test]
    fn product_codes_are_unique_and_titles_are_never_empty() {
        let catalog = Catalog::new(5_000, 1);
        let books: Vec<Book> = (1..=5_000).map(|id| catalog.book(id)).collect();
        assert_eq!(books.iter().map(|book| &book.upc).collect::<BTreeSet<_>>().len(), 5_000);
        assert!(books.iter().all(|book| book.slug.len() > 3 && !book.title.contains("  ")));
        assert!(books.iter().map(|book| &book.title).collect::<BTreeSet<_>>().len() > 3_000);
    }

    #[test]
    fn nobody_publishes_before_growing_up() {
        let catalog = Catalog::new(500, 2);
        for id in 1..=500 {
            let book = catalog.book(id);
            let author = catalog.author(book.author);
            assert!(book.year >= author.year + 22 && book.year <= 2_025, "{} by {}", book.title, author.name);
        }
    }

    #[test]
    fn a_book_is_not_bought_together_with_itself() {
        let catalog = Catalog::new(60, 1);
        for id in 1..=60 {
            let also = catalog.also_bought(id);
            assert!(also.len() <= 4 && !also.contains(&id) && also.iter().all(|other| catalog.sells(*other)));
        }
        assert!(Catalog::new(1, 1).also_bought(1).is_empty());
    }
}
