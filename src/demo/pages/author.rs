//! The author page: born when and where, a short life, and the books.

use super::layout::{breadcrumb, document};
use crate::demo::catalog::{Author, Catalog};
use crate::demo::text::{escape, pounds, put};
use crate::demo::{address, words};

pub(crate) fn author(catalog: &Catalog, author: &Author, books: &[u32]) -> String {
    let name = escape(&author.name);
    let month = words::MONTHS.get((author.month as usize).wrapping_sub(1)).copied().unwrap_or("January");
    let mut dice = catalog.bio(author.id);
    let mut main = breadcrumb(&[], &author.name);
    put!(
        main,
        "<article class=\"author-details\">\n<h1 class=\"author-title\">{name}</h1>\n<p>Born: <time class=\"author-born-date\" datetime=\"{}-{:02}-{:02}\">{} {month} {}</time> ",
        author.year,
        author.month,
        author.day,
        author.day,
        author.year
    );
    put!(main, "<span class=\"author-born-location\">in {}</span></p>\n<div class=\"author-description\">\n", author.town);
    let mut lines: Vec<&str> = Vec::with_capacity(5);
    while lines.len() < 5 {
        let line = dice.pick(&words::BIO_LINES);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    put!(main, "<p>{name} was born in {} and has lived by one coast or another ever since. ", author.town);
    for line in lines {
        put!(main, "{} ", escape(line));
    }
    put!(main, "</p>\n</div>\n<h2>Books by {name}</h2>\n<ul class=\"books\">\n");
    for id in books {
        let book = catalog.book(*id);
        put!(
            main,
            "<li><a href=\"{}\">{}</a> ({}), £{}</li>\n",
            address::product(&book),
            escape(&book.title),
            book.year,
            pounds(book.pence)
        );
    }
    main.push_str("</ul>\n</article>\n");
    let about = format!("{} and {} of their books.", author.name, books.len());
    document(&author.name, &about, Some(&address::author(author)), &main)
}
