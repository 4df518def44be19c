//! The product page, about 10 KB, and its two mistreated forms.

use encoding_rs::WINDOWS_1252;

use super::layout::{breadcrumb, document, rating, shelf_link};
use crate::demo::address;
use crate::demo::catalog::{Book, Catalog};
use crate::demo::dice::Dice;
use crate::demo::shelves::{SHELVES, Sort};
use crate::demo::text::{capital, escape, pounds, put};
use crate::demo::words;

pub(crate) fn product(catalog: &Catalog, book: &Book) -> String {
    let author = catalog.author(book.author);
    let author_path = address::author(&author);
    let title = escape(&book.title);
    let (shelf_path, shelf_name) = shelf_link(book.shelf);
    let mut dice = catalog.prose(book.id);
    let (lead, paragraphs) = description(catalog, book, &mut dice);

    let mut main = breadcrumb(&[(&shelf_path, shelf_name)], &book.title);
    put!(
        main,
        "<article class=\"product\" data-sku=\"{}\">\n<div><img src=\"/images/{}.svg\" alt=\"Cover of {title}\" width=\"240\" height=\"360\"></div>\n<div>\n",
        book.upc,
        book.id
    );
    put!(
        main,
        "<h1>{title}</h1>\n<p class=\"author\">by <a rel=\"author\" href=\"{author_path}\">{}</a></p>\n",
        escape(&author.name)
    );
    put!(main, "<p class=\"price\">£{}</p>\n<p class=\"availability\">{}</p>\n", pounds(book.pence), book.availability());
    rating(book.rating, &mut main);
    put!(
        main,
        "<p>{}</p>\n<p><a class=\"button\" rel=\"nofollow\" href=\"/cart?add={}\">Add to basket</a></p>\n</div>\n",
        escape(&lead),
        book.id
    );

    main.push_str("<section id=\"description\">\n<h2>Description</h2>\n");
    for paragraph in &paragraphs {
        put!(main, "<p>{}</p>\n", escape(paragraph));
    }
    main.push_str("</section>\n<section>\n<h2>Product information</h2>\n<table class=\"product-info\">\n");
    let rows = [
        ("UPC", book.upc.clone()),
        ("Product type", "Books".to_owned()),
        ("Format", book.binding.to_owned()),
        ("Price (excl. tax)", format!("£{}", pounds(book.pence))),
        ("Price (incl. tax)", format!("£{}", pounds(book.pence))),
        ("Tax", "£0.00".to_owned()),
        ("Availability", book.availability()),
        ("Publisher", book.publisher.to_owned()),
        ("Published", book.year.to_string()),
        ("Pages", book.pages.to_string()),
        ("Language", book.language.to_owned()),
        ("Number of reviews", reviews(book).to_string()),
    ];
    for (name, value) in rows {
        put!(main, "<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", escape(&value));
    }
    main.push_str("</table>\n</section>\n<section id=\"reviews\">\n<h2>What readers say</h2>\n");
    for _ in 0..reviews(book) {
        review(&mut dice, &mut main);
    }
    main.push_str("</section>\n<section>\n<h2>Customers also bought</h2>\n<ul class=\"also-bought\">\n");
    for id in catalog.also_bought(book.id) {
        let other = catalog.book(id);
        put!(
            main,
            "<li><a href=\"{}\">{}</a> <span class=\"amount\">£{}</span></li>\n",
            address::product(&other),
            escape(&other.title),
            pounds(other.pence)
        );
    }
    main.push_str("</ul>\n</section>\n</article>\n");
    document(&book.title, &lead, Some(&address::product(book)), &main)
}

const fn reviews(book: &Book) -> u32 {
    3 + book.rating % 4
}

fn description(catalog: &Catalog, book: &Book, dice: &mut Dice) -> (String, Vec<String>) {
    let sort = SHELVES.get(book.shelf).map_or(Sort::Story, |shelf| shelf.sort);
    let topic = catalog.topic(book.id, book.shelf);
    let opening = match sort {
        Sort::Story => dice.pick(&words::STORY_OPENINGS),
        Sort::Fact => dice.pick(&words::FACT_OPENINGS),
        Sort::Verse => dice.pick(&words::VERSE_OPENINGS),
    };
    let lead = capital(&opening.replace("{}", topic));
    let mut sentences: Vec<&str> = Vec::with_capacity(12);
    while sentences.len() < 12 {
        let sentence = dice.pick(&words::MIDDLES);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let mut paragraphs: Vec<String> = sentences.chunks(4).map(|part| part.join(" ")).collect();
    paragraphs.push(format!(
        "The story of its making took the author to {}. {}",
        dice.pick(&words::TOWNS),
        dice.pick(&words::ENDINGS)
    ));
    (lead, paragraphs)
}

fn review(dice: &mut Dice, out: &mut String) {
    let stars = dice.between(2, 5);
    put!(
        out,
        "<blockquote class=\"review\" data-stars=\"{stars}\"><p>{} {}</p>\n",
        dice.pick(&words::REVIEW_LINES),
        dice.pick(&words::REVIEW_LINES)
    );
    put!(
        out,
        "<footer>{} from {}, {} {} {}</footer></blockquote>\n",
        dice.pick(&words::FIRST_NAMES),
        dice.pick(&words::TOWNS),
        dice.between(1, 28),
        dice.pick(&words::MONTHS),
        dice.between(2021, 2025)
    );
}

/// The page with mistakes that browsers repair: end tags left out, unquoted and doubled attributes, wrong nesting, stray end tags, an
/// unfinished end. No field changes its value.
pub(crate) fn broken(page: &str) -> String {
    let cut = page.find("</body>").unwrap_or(page.len());
    let page = page.get(..cut).unwrap_or(page);
    let mut out = page
        .replace("</li>", "")
        .replace("</td></tr>", "")
        .replace("</th>", "")
        .replace("<div>\n<h1>", "<div></span>\n<h1>")
        .replace("<table class=\"product-info\">", "<table class=product-info class=\"twice\" =odd>")
        .replace("<section id=\"reviews\">", "<section id=reviews></p></b>")
        .replace("<h2>What readers say</h2>", "<h2><b><i>What readers say</b></i></h2>")
        .replace("<ul class=\"also-bought\">", "<ul class='also-bought'<!-- not here -->");
    out.push_str("<p>© The Dragline Bookshop & friends &nbsp <!-- printed by hand --");
    out
}

/// The page as windows-1252; characters it lacks become numeric references.
pub(crate) fn windows_1252(page: &str) -> Vec<u8> {
    let page = page.replace("<meta charset=\"utf-8\">", "<meta charset=\"windows-1252\">");
    WINDOWS_1252.encode(&page).0.into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_product_page_is_about_ten_kilobytes() {
        let catalog = Catalog::new(1_000, 1);
        let sizes: Vec<usize> = (1..=1_000).map(|id| product(&catalog, &catalog.book(id)).len()).collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((9_000..=11_500).contains(&mean), "{mean}");
        assert!(sizes.iter().all(|size| (8_000..=13_500).contains(size)), "{:?} {:?}", sizes.iter().min(), sizes.iter().max());
    }

    #[test]
    fn the_old_charset_is_declared_and_used() {
        let catalog = Catalog::new(10, 1);
        let page = windows_1252(&product(&catalog, &catalog.book(1)));
        assert!(page.windows(2).any(|pair| pair[0] == 0xa3 && pair[1].is_ascii_digit()), "a pound sign in one byte");
        let (text, _, errors) = WINDOWS_1252.decode(&page);
        assert!(!errors && text.contains("<meta charset=\"windows-1252\">") && text.contains("&#9733;"));
    }
}
