//! The pages of the shop itself: home, about, contact, login and account, basket, stockroom, errors.

use super::layout::{breadcrumb, card, document};
use crate::demo::address;
use crate::demo::catalog::Catalog;
use crate::demo::shelves::SHELVES;
use crate::demo::text::{escape, put};

pub(crate) fn home(catalog: &Catalog) -> String {
    let mut main = String::from(
        "<h1>Books for every sort of weather</h1>\n<p>Twenty shelves, one patient cat, and a counter where somebody has always read it.</p>\n",
    );
    main.push_str("<section>\n<h2>Categories</h2>\n<ul class=\"grid shelves\">\n");
    for (at, shelf) in SHELVES.iter().enumerate() {
        put!(
            main,
            "<li><a href=\"{}\">{}</a> <span class=\"count\">({})</span><br>{}</li>\n",
            address::shelf(shelf.slug, 1),
            escape(shelf.name),
            catalog.shelf_size(at),
            escape(shelf.blurb)
        );
    }
    main.push_str("</ul>\n</section>\n<section>\n<h2>On the front table</h2>\n<ul class=\"grid\">\n");
    for at in 0..SHELVES.len() {
        if let Some(id) = catalog.on_shelf(at, 0).filter(|_| at % 3 == 0) {
            card(catalog, id, &mut main);
        }
    }
    main.push_str("</ul>\n</section>\n<p>Looking for something older? Try our <a href=\"/old-links\">old links</a>.</p>\n");
    document("Home", "A bookshop with twenty shelves and no real books.", Some("/"), &main)
}

pub(crate) fn about() -> String {
    let mut main = breadcrumb(&[], "About us");
    main.push_str(
        "<h1>About us</h1>\n<p>This shop is a demonstration. Its books, authors, readers and prices are put together by a program from a seed; the same seed \
         opens the same shop on every machine.</p>\n<p>It exists so that crawlers have somewhere to practise: pages that are slow, pages that fail once, pages that \
         fail always, addresses that moved, and the same book under several names.</p>\n<p>Elsewhere on the web: <a href=\"https://www.example.com/bookshops\" \
         rel=\"noopener\">a directory of example shops</a>.</p>\n",
    );
    document("About us", "What this shop is for.", Some("/about"), &main)
}

pub(crate) fn contact() -> String {
    let mut main = breadcrumb(&[], "Contact");
    main.push_str(
        "<h1>Contact</h1>\n<p>Write to <a href=\"mailto:counter@bookshop.example\">counter@bookshop.example</a>, or ring the bell: \
         <a href=\"tel:+441632960123\">01632 960123</a>.</p>\n<p>Open Monday to Saturday, nine to six; on Sundays only when it rains.</p>\n\
         <p><a href=\"javascript:window.print()\">Print this page</a></p>\n",
    );
    document("Contact", "How to reach the counter.", Some("/contact"), &main)
}

/// The login form, with a word about what went wrong.
pub(crate) fn login(problem: Option<&str>) -> String {
    let mut main = breadcrumb(&[], "Log in");
    main.push_str("<h1>Log in</h1>\n");
    if let Some(problem) = problem {
        put!(main, "<p class=\"error\" role=\"alert\">{}</p>\n", escape(problem));
    }
    main.push_str(
        "<form action=\"/login\" method=\"post\">\n<p><label for=\"username\">Name</label><br><input id=\"username\" name=\"username\" autocomplete=\"username\" required></p>\n\
         <p><label for=\"password\">Password</label><br><input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required></p>\n\
         <p><button>Log in</button></p>\n</form>\n<p>The demo account is <kbd>reader</kbd> with the password <kbd>bookworm</kbd>.</p>\n",
    );
    document("Log in", "Log in to the shop.", Some("/login"), &main)
}

pub(crate) fn account() -> String {
    let mut main = breadcrumb(&[], "Your account");
    main.push_str("<h1>Your account</h1>\n<p class=\"greeting\">Welcome back, reader.</p>\n<p>You have no open orders.</p>\n");
    document("Your account", "Your account.", None, &main)
}

pub(crate) fn cart() -> String {
    let mut main = breadcrumb(&[], "Basket");
    main.push_str("<h1>Basket</h1>\n<p>Nothing can be bought here, so the basket is always empty.</p>\n");
    document("Basket", "An empty basket.", None, &main)
}

pub(crate) fn private() -> String {
    let mut main = breadcrumb(&[], "Staff only");
    main.push_str("<h1>Staff only</h1>\n<p>robots.txt asks crawlers to stay out of here.</p>\n<p><a href=\"/private/ledger\">The ledger</a></p>\n");
    document("Staff only", "Please stay out.", None, &main)
}

/// A page for an answer that is no success.
pub(crate) fn error(title: &str, text: &str) -> String {
    let mut main = breadcrumb(&[], title);
    put!(main, "<h1>{}</h1>\n<p>{}</p>\n<p>Try the <a href=\"/\">home page</a>.</p>\n", escape(title), escape(text));
    document(title, text, None, &main)
}
