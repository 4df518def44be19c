//! The bookshop against its own truth, with a crawler small enough to be trusted.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use url::Url;

use super::{client, first_text, json_at, links, site, text};
use crate::html::{Engine, Page, PageOptions};

const WORKERS: usize = 8;

/// The canonical form of the truth's rule.
fn canonical(mut url: Url) -> Url {
    url.set_fragment(None);
    if url.query().is_some() {
        let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        pairs.sort();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url
}

fn allowed(url: &Url) -> bool {
    !url.path().starts_with("/private/") && !url.path().starts_with("/cart")
}

#[derive(Debug)]
struct Seen {
    status: u16,
    first: Option<u16>,
    target: Option<Url>,
    links: Vec<Url>,
    page: String,
}

async fn fetch(client: Client, url: Url) -> Seen {
    let mut first = None;
    for attempt in 0..3 {
        let response = client.get(url.clone()).header("accept-encoding", "gzip").send().await.unwrap();
        let status = response.status().as_u16();
        if attempt < 2 && matches!(status, 429 | 500 | 503) {
            first = first.or(Some(status));
            if status == 429 {
                assert_eq!(response.headers()["retry-after"], "1");
            }
            continue;
        }
        let target = response.headers().get("location").map(|value| url.join(value.to_str().unwrap()).unwrap());
        let html = response.headers().get("content-type").is_some_and(|value| value.to_str().unwrap().starts_with("text/html"));
        let page = text(response).await;
        let links = if status == 200 && html { links(&page, &url) } else { Vec::new() };
        return Seen { status, first: first.filter(|first| *first != status), target, links, page };
    }
    unreachable!("the last attempt returns")
}

/// Follows everything from the start page, `WORKERS` at a time.
async fn crawl(start: Url) -> BTreeMap<String, Seen> {
    let client = client();
    let mut known = BTreeSet::from([start.clone()]);
    let mut waiting = vec![start.clone()];
    let mut done = BTreeMap::new();
    let mut running = JoinSet::new();
    loop {
        while running.len() < WORKERS
            && let Some(url) = waiting.pop()
        {
            let client = client.clone();
            running.spawn(async move { (url.clone(), fetch(client, url).await) });
        }
        let Some(finished) = running.join_next().await else { return done };
        let (url, seen) = finished.unwrap();
        for link in seen.links.iter().chain(&seen.target) {
            let link = canonical(link.clone());
            if link.origin() == start.origin() && allowed(&link) && known.insert(link.clone()) {
                waiting.push(link);
            }
        }
        done.insert(url.to_string(), seen);
    }
}

/// The fields of a product page, taken from the HTML alone.
fn product(page: &str, url: &str, authors: &BTreeMap<String, u64>) -> Value {
    let page = Page::parse(page);
    let page = page.root();
    let attribute = |selector: &str, name: &str| page.css(selector).attr(name).unwrap().to_owned();
    let author_url = Url::parse(url).unwrap().join(&attribute(".product .author a", "href")).unwrap().to_string();
    let sku = attribute("article.product", "data-sku");
    assert_eq!(first_text(&page, "table.product-info tr:first-child td"), sku);
    let availability = first_text(&page, ".product p.availability");
    let stock: u64 = availability.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    let price = first_text(&page, ".product p.price");
    json!({
        "id": url.rsplit('/').next().unwrap().split('-').next().unwrap().parse::<u64>().unwrap(),
        "url": url,
        "upc": sku,
        "title": first_text(&page, "h1"),
        "price": price.strip_prefix('£').unwrap(),
        "currency": "GBP",
        "availability": availability,
        "stock": stock,
        "rating": attribute(".product p.rating", "data-rating").parse::<u64>().unwrap(),
        "category": first_text(&page, ".breadcrumb li:nth-child(2) a"),
        "author": {"name": first_text(&page, ".product .author a"), "birth_year": authors[&author_url], "url": author_url},
    })
}

/// Both engines build the same tree of a page and select the same in it.
fn engines_agree(text: &str) {
    let page = Page::parse_with(text, &PageOptions::default().engine(Engine::Compare));
    let selectors = [
        "h1::text",
        "a[href]::attr(href)",
        ".product p.price, .product p.availability::text",
        "table.product-info tr:first-child td",
        ".breadcrumb li:nth-child(2) > a",
        "li:not(:last-child) ::text",
        "article:has(img) a, head > *",
    ];
    for selector in selectors {
        let _ = page.css(selector).getall();
        let _ = page.css("body, main").css(selector).getall();
    }
    let compared = page.take_compared();
    assert_eq!((compared.differing, compared.first), (0, Vec::new()), "{text}");
    assert_eq!(compared.answers, 1 + 3 * selectors.len() as u64);
}

async fn the_crawl_equals_the_truth(products: u32, seed: u64) {
    let site = site(products, seed).await;
    let crawled = crawl(site.url()).await;
    let truth = json_at(&client(), site.url().join("__truth").unwrap()).await;

    let found: BTreeMap<String, Value> = crawled
        .iter()
        .map(|(url, seen)| {
            (url.clone(), json!({"status": seen.status, "first": seen.first, "target": seen.target.as_ref().map(Url::to_string)}))
        })
        .collect();
    let mut expected = BTreeMap::new();
    let mut twins = BTreeMap::new();
    for page in truth["pages"].as_array().unwrap() {
        let url = page["url"].as_str().unwrap().to_owned();
        if let Some(own) = page["same_as"].as_str() {
            twins.insert(url.clone(), own.to_owned());
        }
        let entry = json!({"status": page["status"], "first": page.get("first_status"), "target": page.get("target")});
        assert!(expected.insert(url, entry).is_none());
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert_eq!(found, expected);

    let pages = crawled.values().filter(|seen| seen.status == 200 && seen.page.starts_with("<!"));
    assert!(pages.map(|seen| engines_agree(&seen.page)).count() > expected.len() / 2);

    let mut authors = BTreeMap::new();
    for (url, seen) in crawled.iter().filter(|(url, _)| url.contains("/authors/")) {
        let date = first_text(&Page::parse(&seen.page).root(), ".author-born-date");
        authors.insert(url.clone(), date.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    }
    let shown = |url: &&String| url.contains("/products/") && !url.contains('?');
    let items: Vec<Value> = crawled
        .iter()
        .filter(|(url, seen)| shown(url) && seen.status == 200)
        .map(|(url, seen)| product(&seen.page, url, &authors))
        .collect();
    let by_id = |list: &[Value]| list.iter().map(|item| (item["id"].as_u64().unwrap(), item.clone())).collect::<BTreeMap<_, _>>();
    assert_eq!(by_id(&items), by_id(truth["products"].as_array().unwrap()));
    for (twin, own) in &twins {
        assert_eq!(crawled[twin].page, crawled[own].page);
    }
    assert_eq!(truth["counts"]["pages"].as_u64(), Some(expected.len() as u64));
    assert_eq!(truth["counts"]["products"].as_u64(), Some(items.len() as u64));

    let stats = json_at(&client(), site.url().join("__stats").unwrap()).await;
    let transient = truth["counts"]["fail_first"].as_u64().unwrap();
    let failing = truth["counts"]["by_status"]["500"].as_u64().unwrap_or(0);
    assert_eq!(stats["requests"].as_u64(), Some(expected.len() as u64 + transient + 2 * failing));
    assert_eq!(stats["elsewhere"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_crawl_of_sixty_products_equals_the_truth() {
    the_crawl_equals_the_truth(60, 1).await;
    the_crawl_equals_the_truth(60, 4_242).await;
}

#[tokio::test]
async fn a_crawl_of_three_hundred_products_equals_the_truth() {
    the_crawl_equals_the_truth(300, 1).await;
    the_crawl_equals_the_truth(300, 4_242).await;
}

#[tokio::test]
async fn a_crawl_of_a_tiny_shop_equals_the_truth() {
    the_crawl_equals_the_truth(1, 9).await;
    the_crawl_equals_the_truth(13, 9).await;
}

#[tokio::test]
async fn a_thousand_products_keep_the_promised_counts_in_the_json() {
    let site = site(1_000, 3).await;
    let truth = json_at(&client(), site.url().join("__truth").unwrap()).await;
    let special = &truth["counts"]["by_special"];
    for (kind, least) in [
        ("slow", 5),
        ("fails_once", 10),
        ("always_fails", 3),
        ("rate_limited", 5),
        ("broken_html", 2),
        ("windows_1252", 2),
        ("gzip", 2),
    ] {
        assert!(special[kind].as_u64().unwrap() >= least, "{kind}");
    }
    for (kind, least) in [("missing", 5), ("redirect", 10), ("redirect_loop", 2), ("duplicate", 20)] {
        assert!(truth["counts"]["by_kind"][kind].as_u64().unwrap() >= least, "{kind}");
    }
    site.stop().await;
}

#[tokio::test]
async fn the_truth_of_a_large_shop_comes_in_pieces() {
    let site = site(20_000, 1).await;
    let mut response = client().get(site.url().join("__truth").unwrap()).send().await.unwrap();
    assert!(!response.headers().contains_key("content-length"));
    let mut all = Vec::new();
    while let Some(piece) = response.chunk().await.unwrap() {
        all.extend_from_slice(&piece);
    }
    let truth: Value = serde_json::from_slice(&all).unwrap();
    assert_eq!(truth["counts"]["by_kind"]["product"], 20_000);
    assert_eq!(truth["products"].as_array().unwrap().len(), 19_800);
    site.stop().await;
}
