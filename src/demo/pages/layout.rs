//! The frame around every page: head, style, navigation, footer, and small parts that several pages show.

use crate::demo::catalog::{Book, Catalog};
use crate::demo::text::{escape, pounds, put};
use crate::demo::{address, shelves};

const STYLE: &str = "\
:root{--ink:#22303c;--soft:#5b6b78;--line:#d9dfe3;--paper:#fbf9f5;--card:#fff;--accent:#8a3b12}\
*{box-sizing:border-box}body{margin:0;font:16px/1.6 Georgia,'Times New Roman',serif;color:var(--ink);background:var(--paper)}\
a{color:var(--accent)}a:focus-visible,button:focus-visible,input:focus-visible{outline:3px solid #1f6feb;outline-offset:2px}\
.skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:.5rem;background:#fff;padding:.5rem}\
header,footer{background:var(--card);border-bottom:1px solid var(--line);padding:1rem}footer{border:0;border-top:1px solid var(--line);margin-top:3rem;color:var(--soft)}\
.wide{max-width:68rem;margin:0 auto;display:flex;flex-wrap:wrap;gap:.5rem 1.25rem;align-items:center}\
.brand{font-size:1.4rem;font-weight:bold;text-decoration:none;margin-right:auto}main{max-width:68rem;margin:0 auto;padding:1rem}\
form.search{display:flex;gap:.5rem}input{font:inherit;padding:.35rem .5rem;border:1px solid #8795a0;border-radius:4px}\
button,.button{font:inherit;background:var(--accent);color:#fff;border:0;border-radius:4px;padding:.4rem .9rem;text-decoration:none;display:inline-block}\
.grid{list-style:none;padding:0;display:grid;gap:1.25rem;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr))}\
.card,.shelves li{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:1rem}.card h2,.card h3{font-size:1.05rem;line-height:1.3;margin:.5rem 0}\
.card img,.product img{width:100%;max-width:15rem;height:auto;border-radius:3px}.price{font-weight:bold}.availability,.author{color:var(--soft);margin:.2rem 0}\
.rating{color:#9a6700;margin:.2rem 0}.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\
.breadcrumb ol,.pager ul{list-style:none;display:flex;flex-wrap:wrap;gap:.4rem 1rem;padding:0}.breadcrumb li+li::before{content:'› ';color:var(--soft)}\
.product{display:grid;gap:0 2rem;grid-template-columns:minmax(0,15rem) minmax(0,1fr)}.product>section{grid-column:1/-1}@media(max-width:40rem){.product{display:block}}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid var(--line)}th{width:12rem;font-weight:normal;color:var(--soft)}\
.shelf-links{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}footer h2{font-size:1rem;margin:0}\
blockquote{margin:0 0 1rem;padding:.2rem 1rem;border-left:3px solid var(--line)}";

/// A whole document around `main`. `canonical` is the page's own address, when it has one.
pub(super) fn document(title: &str, description: &str, canonical: Option<&str>, main: &str) -> String {
    let mut out = String::with_capacity(main.len() + 4_096);
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put!(out, "<title>{} | The Dragline Bookshop</title>\n", escape(title));
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put!(out, "<meta name=\"description\" content=\"{}\">\n", escape(description));
    if let Some(path) = canonical {
        put!(out, "<link rel=\"canonical\" href=\"{}\">\n", escape(path));
    }
    out.push_str("<link rel=\"icon\" href=\"/favicon.svg\" type=\"image/svg+xml\">\n");
    put!(out, "<style>{STYLE}</style>\n</head>\n<body>\n");
    out.push_str(
        "<a class=\"skip\" href=\"#main\">Skip to content</a>\n<header><div class=\"wide\">\n<a class=\"brand\" href=\"/\">The Dragline Bookshop</a>\n\
         <nav aria-label=\"Main\"><a href=\"/staff-picks\">Staff picks</a> · <a href=\"/login\">Log in</a> · <a href=\"/cart\" rel=\"nofollow\">Basket</a></nav>\n\
         <form class=\"search\" action=\"/search\" role=\"search\"><label class=\"hidden\" for=\"q\">Search the shop</label>\
         <input id=\"q\" name=\"q\" type=\"search\" placeholder=\"Title\"><button>Search</button></form>\n</div></header>\n",
    );
    put!(out, "<main id=\"main\">\n{main}</main>\n");
    out.push_str(
        "<footer><div class=\"wide\"><nav aria-label=\"Categories\"><h2>Browse the shelves</h2><ul class=\"shelf-links\">\n",
    );
    for shelf in &shelves::SHELVES {
        put!(out, "<li><a href=\"/category/{}\">{}</a></li>\n", shelf.slug, escape(shelf.name));
    }
    out.push_str(
        "</ul></nav>\n<span>A demo shop: nothing here can be bought, and no book or person in it exists.</span>\n\
         <a href=\"/about\">About us</a> <a href=\"/contact\">Contact</a> <a href=\"/old-links\">Old links</a> \
         <a href=\"/private/stockroom\" rel=\"nofollow\">Staff only</a> <a href=\"#main\">Back to top</a></div></footer>\n</body>\n</html>\n",
    );
    out
}

/// A book as a card of a listing.
pub(super) fn card(catalog: &Catalog, id: u32, out: &mut String) {
    let book = catalog.book(id);
    let author = catalog.author(book.author);
    let path = address::product(&book);
    put!(
        out,
        "<li class=\"card\"><article>\n<img src=\"/images/{id}.svg\" alt=\"\" width=\"120\" height=\"180\" loading=\"lazy\">\n"
    );
    put!(out, "<h2><a class=\"title\" href=\"{path}\">{}</a></h2>\n", escape(&book.title));
    put!(out, "<p class=\"author\">by <a href=\"{}\">{}</a></p>\n", address::author(&author), escape(&author.name));
    rating(book.rating, out);
    put!(
        out,
        "<p class=\"price\">£{}</p>\n<p class=\"availability\">{}</p>\n</article></li>\n",
        pounds(book.pence),
        book.availability()
    );
}

pub(super) fn rating(stars: u32, out: &mut String) {
    put!(out, "<p class=\"rating\" data-rating=\"{stars}\"><span aria-hidden=\"true\">");
    for star in 0..5 {
        out.push(if star < stars { '★' } else { '☆' });
    }
    put!(out, "</span> <span class=\"hidden\">{stars} out of 5 stars</span></p>\n");
}

/// The way from the home page to here; the last step is the page itself.
pub(super) fn breadcrumb(steps: &[(&str, &str)], here: &str) -> String {
    let mut out = String::from("<nav class=\"breadcrumb\" aria-label=\"Breadcrumb\"><ol>\n<li><a href=\"/\">Home</a></li>\n");
    for (path, name) in steps {
        put!(out, "<li><a href=\"{path}\">{}</a></li>\n", escape(name));
    }
    put!(out, "<li aria-current=\"page\">{}</li>\n</ol></nav>\n", escape(here));
    out
}

/// Links to the pages before and after, and the first and last one.
pub(super) fn pager(path: &str, page: u32, pages: u32) -> String {
    if pages <= 1 {
        return String::new();
    }
    let mut out = String::from("<nav class=\"pager\" aria-label=\"Pages\"><ul>\n");
    if page > 1 {
        put!(
            out,
            "<li class=\"first\"><a href=\"{path}\">First</a></li>\n<li class=\"previous\"><a rel=\"prev\" href=\"{}\">Previous</a></li>\n",
            address::page(path, page - 1)
        );
    }
    put!(out, "<li class=\"current\" aria-current=\"page\">Page {page} of {pages}</li>\n");
    if page < pages {
        // A relative reference of the query alone: shops write them, crawlers must resolve them.
        put!(
            out,
            "<li class=\"next\"><a rel=\"next\" href=\"?page={}\">Next</a></li>\n<li class=\"last\"><a href=\"{}\">Last</a></li>\n",
            page + 1,
            address::page(path, pages)
        );
    }
    out.push_str("</ul></nav>\n");
    out
}

/// The cover of a book as an SVG image.
pub(crate) fn cover(book: &Book) -> String {
    let colours = ["#274060", "#5b2a3c", "#2f5d50", "#7a4b1e", "#3d3a5c", "#1f5f78", "#6b3f2a", "#40512b"];
    let colour = colours.get(book.id as usize % colours.len()).copied().unwrap_or("#274060");
    let mut out = String::with_capacity(900);
    out.push_str(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 120 180\" width=\"120\" height=\"180\" role=\"img\">\n",
    );
    put!(out, "<title>{}</title>\n<rect width=\"120\" height=\"180\" fill=\"{colour}\"/>\n", escape(&book.title));
    put!(
        out,
        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"#fff\" opacity=\".18\"/>\n",
        20 + book.pence % 80,
        90 + book.year % 60,
        18 + book.pages % 30
    );
    out.push_str("<rect x=\"8\" y=\"8\" width=\"104\" height=\"164\" fill=\"none\" stroke=\"#fff\" opacity=\".5\"/>\n<g fill=\"#fff\" font-family=\"Georgia,serif\" font-size=\"11\">\n");
    let mut line = String::new();
    let mut y = 34;
    for word in book.title.split(' ') {
        if !line.is_empty() && line.chars().count() + word.chars().count() > 15 {
            put!(out, "<text x=\"16\" y=\"{y}\">{}</text>\n", escape(&line));
            line.clear();
            y += 15;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    put!(out, "<text x=\"16\" y=\"{y}\">{}</text>\n</g>\n</svg>\n", escape(&line));
    out
}

/// The name of a shelf with a link to it.
pub(super) fn shelf_link(shelf: usize) -> (String, &'static str) {
    shelves::SHELVES.get(shelf).map_or_else(|| ("/".to_owned(), "Home"), |shelf| (address::shelf(shelf.slug, 1), shelf.name))
}
