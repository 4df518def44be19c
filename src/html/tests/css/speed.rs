//! How long ordinary selectors take, and how few of their steps they use.

use super::*;

/// Ten selectors of a spider.
const TEN: [&str; 10] = [
    "h1",
    "a[href]",
    ".price",
    "div > p a",
    ".product-card .price, .content cite",
    "div:has(> h1)",
    "#main",
    "li:nth-child(2) a",
    "article h2 + p",
    "meta[name=description]",
];

/// A shop page of about 10 KB.
fn shop() -> String {
    let mut text = String::from(
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Tea</title><meta name=description content='All teas'><link rel=stylesheet href=/s.css></head><body><header class='top bar'><nav><ul class=menu>",
    );
    for n in 0..12 {
        text.push_str(&format!("<li class='menu-item level-1'><a class=link href='/c/{n}?sort=price&amp;page=1' title='Category {n}'>Category {n}</a></li>"));
    }
    text.push_str("</ul></nav></header><main id=main class='content wide'><div class=intro><h1>All teas</h1><p>From <a href=/about>small gardens</a>, <cite>freshly picked</cite>.</p></div><div class=grid>");
    for n in 0..24 {
        text.push_str(&format!("<article class='product-card card' data-sku='T-{n}'><a class=image href='/p/{n}'><img src='/i/{n}.jpg' alt='Tea {n}' width=200 height=200></a><h2 class=name>Tea {n}</h2><p class=text>Leaf of garden {n}, first flush.</p><span class='price now'>{n}.90</span><button class=buy type=button>Buy</button></article>\n"));
    }
    text.push_str("</div></main><footer><p>Imprint</p></footer></body></html>");
    text
}

#[test]
fn ordinary_selectors_use_little_of_what_they_may() {
    let page = page(&shop());
    for selector in TEN.into_iter().chain([
        "body ::text",
        "body div a::attr(href)",
        "* * *",
        ".grid > :nth-last-child(2)",
        "p:contains('flush')",
    ]) {
        let compiled = Compiled::parse(selector).unwrap();
        let found = compiled.select(&page, &[root(&page)], Reach::Document);
        assert!(!found.exceeded);
        assert!(found.steps < 20 * page.node_count() as u64, "{selector}: {} steps for {} nodes", found.steps, page.node_count());
    }
}

#[test]
#[ignore = "measures; run in release with --nocapture"]
fn ten_selectors_on_ten_kilobytes_costs_less_than_60_microseconds() {
    let text = shop();
    let page = page(&text);
    println!("{} bytes, {} nodes, in order: {}", text.len(), page.node_count(), page.arena().is_in_order());
    let best = |run: &dyn Fn()| {
        let rounds = 500;
        (0..15)
            .map(|_| {
                let start = std::time::Instant::now();
                (0..rounds).for_each(|_| run());
                start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
            })
            .fold(f64::MAX, f64::min)
    };
    let root = [root(&page)];
    let html = Html::parse_document(&text);
    let (mut sum, mut of_scraper) = (0.0, 0.0);
    for selector in TEN {
        let compiled = Compiled::parse(selector).unwrap();
        let found = compiled.select(&page, &root, Reach::Document);
        let select = best(&|| drop(std::hint::black_box(compiled.select(&page, &root, Reach::Document))));
        let first = best(&|| drop(std::hint::black_box(compiled.first(&page, &root, Reach::Document))));
        let parse = best(&|| drop(std::hint::black_box(Compiled::parse(selector))));
        let theirs = scraper::Selector::parse(selector).unwrap();
        let scraper = best(&|| drop(std::hint::black_box(html.select(&theirs).collect::<Vec<_>>())));
        sum += select;
        of_scraper += scraper;
        let (hits, steps) = (found.hits.len(), found.steps);
        println!(
            "{selector:36} scraper {scraper:5.2} us, all {select:5.2}, first {first:5.2}, parse {parse:5.2}; {hits} hits, {steps} steps"
        );
    }
    println!("ten: {sum:.2} us, scraper {of_scraper:.2} us");
    assert!(sum < 60.0, "{sum:.2} us");
    for selector in [".price::text", "a::attr(href)", "body ::text", "::text"] {
        let compiled = Compiled::parse(selector).unwrap();
        println!(
            "{selector:40} all {:6.2} us",
            best(&|| drop(std::hint::black_box(compiled.select(&page, &root, Reach::Document))))
        );
    }
}
