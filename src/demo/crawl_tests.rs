//! The running bookshop against its own truth, over real HTTP, with a crawler small enough to be trusted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Once;

use http::Method;
use reqwest::{Client, Response};
use scraper::{Html, Selector};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use url::Url;

use super::quotes::{self, QuotesOptions};
use super::{Delays, RunningSite, Site, SiteOptions};

const WORKERS: usize = 8;

fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another test of this binary may have been first; any ring provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Client::builder().no_proxy().tls_backend_preconfigured(tls).redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

async fn site(products: u32, seed: u64) -> RunningSite {
    Site::start(SiteOptions { products, seed, delays: Delays::none(), ..SiteOptions::default() }).await.unwrap()
}

async fn json_at(client: &Client, url: Url) -> Value {
    serde_json::from_slice(&client.get(url).send().await.unwrap().bytes().await.unwrap()).unwrap()
}

/// The text of a page: content encoding undone, charset from the header, then from a meta element, then UTF-8.
async fn text(response: Response) -> String {
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let (content_type, encoding) = (header("content-type"), header("content-encoding"));
    let mut bytes = response.bytes().await.unwrap().to_vec();
    if encoding == "gzip" {
        let packed = std::mem::take(&mut bytes);
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).into_owned();
    let declared = content_type.split_once("charset=").map(|(_, name)| name.to_owned());
    let declared = declared.or_else(|| Some(head.split_once("<meta charset=\"")?.1.split('"').next()?.to_owned()));
    let charset = encoding_rs::Encoding::for_label(declared.unwrap_or_default().as_bytes()).unwrap_or(encoding_rs::UTF_8);
    let (text, _, errors) = charset.decode(&bytes);
    assert!(!errors, "a page is not in the charset it declares");
    text.into_owned()
}

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

fn links(page: &str, base: &Url) -> Vec<Url> {
    let anchors = Selector::parse("a[href]").unwrap();
    Html::parse_document(page).select(&anchors).filter_map(|a| base.join(a.value().attr("href").unwrap().trim()).ok()).collect()
}

/// Follows everything from the start page, `WORKERS` at a time.
async fn crawl(start: Url) -> BTreeMap<String, Seen> {
    let client = client();
    let mut known = BTreeSet::from([start.clone()]);
    let mut waiting = vec![start.clone()];
    let mut done = BTreeMap::new();
    let mut running = JoinSet::new();
    loop {
        while running.len() < WORKERS && let Some(url) = waiting.pop() {
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

fn first_text(page: &Html, selector: &str) -> String {
    let found = page.select(&Selector::parse(selector).unwrap()).next().unwrap_or_else(|| panic!("no {selector}"));
    found.text().collect::<String>().trim().to_owned()
}

/// The fields of a product page, taken from the HTML alone.
fn product(page: &str, url: &str, authors: &BTreeMap<String, u64>) -> Value {
    let page = Html::parse_document(page);
    let attribute = |selector: &str, name: &str| page.select(&Selector::parse(selector).unwrap()).next().unwrap().value().attr(name).unwrap().to_owned();
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

async fn the_crawl_equals_the_truth(products: u32, seed: u64) {
    let site = site(products, seed).await;
    let crawled = crawl(site.url()).await;
    let truth = json_at(&client(), site.url().join("__truth").unwrap()).await;

    let found: BTreeMap<String, Value> = crawled
        .iter()
        .map(|(url, seen)| (url.clone(), json!({"status": seen.status, "first": seen.first, "target": seen.target.as_ref().map(Url::to_string)})))
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

    let mut authors = BTreeMap::new();
    for (url, seen) in crawled.iter().filter(|(url, _)| url.contains("/authors/")) {
        let date = first_text(&Html::parse_document(&seen.page), ".author-born-date");
        authors.insert(url.clone(), date.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    }
    let shown = |url: &&String| url.contains("/products/") && !url.contains('?');
    let items: Vec<Value> = crawled.iter().filter(|(url, seen)| shown(url) && seen.status == 200).map(|(url, seen)| product(&seen.page, url, &authors)).collect();
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
    for (kind, least) in [("slow", 5), ("fails_once", 10), ("always_fails", 3), ("rate_limited", 5), ("broken_html", 2), ("windows_1252", 2), ("gzip", 2)] {
        assert!(special[kind].as_u64().unwrap() >= least, "{kind}");
    }
    for (kind, least) in [("missing", 5), ("redirect", 10), ("redirect_loop", 2), ("duplicate", 20)] {
        assert!(truth["counts"]["by_kind"][kind].as_u64().unwrap() >= least, "{kind}");
    }
    site.stop().await;
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (one, two, other) = (site(60, 5).await, site(60, 5).await, site(60, 6).await);
    let client = client();
    for path in ["", "category/poetry", "staff-picks", "old-links", "products/7", "images/7.svg"] {
        let mut bodies = Vec::new();
        for site in [&one, &two, &other] {
            let mut response = client.get(site.url().join(path).unwrap()).send().await.unwrap();
            while let Some(target) = response.headers().get("location") {
                response = client.get(site.url().join(target.to_str().unwrap()).unwrap()).send().await.unwrap();
            }
            bodies.push(response.bytes().await.unwrap());
        }
        assert_eq!(bodies[0], bodies[1], "{path}");
        assert_ne!(bodies[0], bodies[2], "{path}");
    }
}

#[tokio::test]
async fn odd_requests_get_the_status_they_deserve() {
    let site = site(60, 1).await;
    let client = client();
    let long = format!("/search?q={}", "x".repeat(9_000));
    let cases = [
        (Method::GET, "/nowhere", 404),
        (Method::GET, "/products/99999", 404),
        (Method::GET, "/products/", 404),
        (Method::GET, "/category/poetry?page=0", 404),
        (Method::GET, "/category/poetry?page=99999999999999", 404),
        (Method::GET, "/category/poetry?page=%ff%00&&==", 404),
        (Method::GET, "/staff-picks?page=4294967295", 404),
        (Method::GET, "/api/products?page=4294967295", 404),
        (Method::GET, "/api/products/4294967295", 404),
        (Method::GET, "/authors/4294967295-x", 404),
        (Method::GET, "/moved/4294967295/again", 404),
        (Method::GET, "/p/0", 404),
        (Method::GET, "/sitemap-1.xml", 404),
        (Method::GET, "/images/1.png", 404),
        (Method::GET, "/search", 200),
        (Method::GET, "/search?q=%3Cscript%3E&q=b", 200),
        (Method::GET, "//////////", 404),
        (Method::GET, "/cart?add=1", 200),
        (Method::GET, "/private/stockroom", 200),
        (Method::GET, &long, 414),
        (Method::HEAD, "/", 200),
        (Method::HEAD, "/__truth", 200),
        (Method::POST, "/", 405),
        (Method::DELETE, "/products/1", 405),
        (Method::OPTIONS, "/login", 405),
        (Method::from_bytes(b"BREW").unwrap(), "/about", 405),
    ];
    for (method, path, status) in cases {
        let url = format!("http://{}{path}", site.addr());
        let response = client.request(method.clone(), url).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{method} {path:.60}");
        assert_eq!(response.headers().contains_key("allow"), status == 405);
        assert!(!text(response).await.contains("<script>"));
    }
    let body = client.post(site.url().join("login").unwrap()).body("x".repeat(20_000)).send().await.unwrap();
    assert_eq!(body.status().as_u16(), 413);
    site.stop().await;
}

#[tokio::test]
async fn one_connection_serves_many_requests_and_garbage_ends_only_its_own() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let site = site(20, 1).await;
    let request = |path: &str, last: bool| format!("GET {path} HTTP/1.1\r\nhost: shop\r\n{}\r\n", if last { "connection: close\r\n" } else { "" });
    let ask = async |bytes: Vec<u8>| {
        let mut stream = tokio::net::TcpStream::connect(site.addr()).await.unwrap();
        // The server may close before it has read everything; what it answered is what counts.
        let _ = stream.write_all(&bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let three = [request("/about", false), request("/nowhere", false), request("/robots.txt", true)].concat();
    let answer = ask(three.into_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    assert!(answer.contains("HTTP/1.1 404 Not Found") && answer.ends_with("Sitemap: http://shop/sitemap.xml\n"));
    assert!(ask(b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec()).await.starts_with("HTTP/1.1 400"));
    assert!(ask(request(&format!("/{}", "a".repeat(70_000)), true).into_bytes()).await.starts_with("HTTP/1.1 414"));
    assert!(ask(request("/about", true).into_bytes()).await.starts_with("HTTP/1.1 200 OK"));
    site.stop().await;
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let site = site(60, 1).await;
    let client = client();
    let url = site.url().join("category/poetry").unwrap();
    let get = client.get(url.clone()).send().await.unwrap();
    let head = client.head(url).send().await.unwrap();
    for name in ["content-type", "content-length"] {
        assert_eq!(get.headers()[name], head.headers()[name]);
    }
    assert!(head.bytes().await.unwrap().is_empty());
    site.stop().await;
}

#[tokio::test]
async fn the_login_opens_the_account_only_with_the_right_password() {
    let site = site(20, 1).await;
    let client = client();
    let (login, account) = (site.url().join("login").unwrap(), site.url().join("account").unwrap());
    let send = |body: &'static str| client.post(login.clone()).header("content-type", "application/x-www-form-urlencoded").body(body).send();
    assert_eq!(send("username=reader&password=wrong").await.unwrap().status().as_u16(), 403);
    assert_eq!(client.get(account.clone()).send().await.unwrap().headers()["location"], "/login");
    let entered = send("username=reader&password=bookworm").await.unwrap();
    assert_eq!((entered.status().as_u16(), &entered.headers()["location"]), (303, &"/account".parse().unwrap()));
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = client.get(account.clone()).header("cookie", format!("a=b; {cookie}")).send().await.unwrap();
    assert!(text(page).await.contains("Welcome back, reader."));
    assert_eq!(client.get(account).header("cookie", "session=guess").send().await.unwrap().status().as_u16(), 302);
    site.stop().await;
}

#[tokio::test]
async fn search_links_to_every_title_that_holds_the_words() {
    let site = site(60, 1).await;
    let client = client();
    let api = json_at(&client, site.url().join("api/products").unwrap()).await;
    let wanted = &api["products"][4];
    let mut url = site.url().join("search").unwrap();
    url.query_pairs_mut().append_pair("q", &wanted["title"].as_str().unwrap().to_uppercase());
    let page = text(client.get(url.clone()).send().await.unwrap()).await;
    assert!(links(&page, &url).iter().any(|link| link.as_str() == wanted["url"]));
    site.stop().await;
}

#[tokio::test]
async fn the_api_pages_through_all_products() {
    let site = site(45, 2).await;
    let client = client();
    let mut url = site.url().join("api/products").unwrap().to_string();
    let mut products = Vec::new();
    loop {
        let page = json_at(&client, Url::parse(&url).unwrap()).await;
        products.extend(page["products"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        url = next.to_owned();
    }
    assert_eq!(products.len(), 45);
    let one = json_at(&client, site.url().join("api/products/45").unwrap()).await;
    assert_eq!(one, products[44]);
    site.stop().await;
}

#[tokio::test]
async fn a_large_shop_has_a_sitemap_index_whose_parts_hold_every_product() {
    let site = site(12_000, 1).await;
    let client = client();
    let locations = |xml: String| xml.split("<loc>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>();
    let robots = text(client.get(site.url().join("robots.txt").unwrap()).send().await.unwrap()).await;
    let index = robots.split("Sitemap: ").nth(1).unwrap().trim().to_owned();
    let parts = locations(text(client.get(index).send().await.unwrap()).await);
    assert_eq!(parts.len(), 3);
    let mut all = BTreeSet::new();
    for part in parts {
        all.extend(locations(text(client.get(part).send().await.unwrap()).await));
    }
    assert_eq!(all.len(), 12_000 + 23);
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

#[tokio::test]
async fn a_slow_page_is_slow_and_the_others_are_not() {
    let options = SiteOptions { products: 60, ..SiteOptions::default() };
    let site = Site::start(options).await.unwrap();
    let client = client();
    let truth = json_at(&client, site.url().join("__truth").unwrap()).await;
    let slow = truth["pages"].as_array().unwrap().iter().find(|page| page["special"] == "slow").unwrap();
    let start = std::time::Instant::now();
    client.get(slow["url"].as_str().unwrap()).send().await.unwrap();
    assert!(start.elapsed() >= Delays::default().slow_from);
    site.stop().await;
}

#[tokio::test]
async fn the_quotations_have_the_structure_of_the_tutorials() {
    let options = QuotesOptions::default();
    let site = quotes::start(options.clone()).await.unwrap();
    let client = client();
    let mut url = site.url();
    let (mut found, mut about) = (Vec::new(), BTreeSet::new());
    loop {
        let page = text(client.get(url.clone()).send().await.unwrap()).await;
        let html = Html::parse_document(&page);
        for quote in html.select(&Selector::parse("div.quote").unwrap()) {
            let inner = Html::parse_fragment(&quote.html());
            let tags: Vec<String> = inner.select(&Selector::parse("div.tags a.tag").unwrap()).map(|a| a.text().collect()).collect();
            found.push((first_text(&inner, "span.text"), first_text(&inner, "small.author"), tags));
        }
        let next = html.select(&Selector::parse("li.next > a").unwrap()).next().map(|a| a.value().attr("href").unwrap().to_owned());
        about.extend(html.select(&Selector::parse(".author + a").unwrap()).map(|a| url.join(a.value().attr("href").unwrap()).unwrap()));
        let Some(next) = next else { break };
        url = url.join(&next).unwrap();
    }
    let expected: Vec<_> = quotes::all(&options).into_iter().map(|q| (q.text, q.author, q.tags.into_iter().map(str::to_owned).collect::<Vec<_>>())).collect();
    assert_eq!(found.len(), 100);
    assert_eq!(found, expected);
    assert_eq!(found.iter().map(|(text, ..)| text).collect::<BTreeSet<_>>().len(), 100, "every quotation is different");

    let mut people = BTreeSet::new();
    for link in about {
        let moved = client.get(link.clone()).send().await.unwrap();
        assert_eq!(moved.status().as_u16(), 308);
        let page = text(client.get(link.join(moved.headers()["location"].to_str().unwrap()).unwrap()).send().await.unwrap()).await;
        let html = Html::parse_document(&page);
        people.insert((first_text(&html, "h3.author-title"), first_text(&html, "span.author-born-date"), first_text(&html, "span.author-born-location")));
    }
    let expected: BTreeSet<_> = quotes::authors(&options).into_iter().map(|a| (a.name, a.born_date, a.born_location)).collect();
    assert_eq!(people, expected);
    site.stop().await;
}

#[tokio::test]
async fn the_quotations_let_in_only_those_who_send_their_token() {
    let site = quotes::start(QuotesOptions::default()).await.unwrap();
    let client = client();
    let login = site.url().join("login").unwrap();
    let form = client.get(login.clone()).send().await.unwrap();
    let cookie = form.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = text(form).await;
    let token = Html::parse_document(&page).select(&Selector::parse("input[name=csrf_token]").unwrap()).next().unwrap().value().attr("value").unwrap().to_owned();
    let send = |body: String, cookie: String| client.post(login.clone()).header("content-type", "application/x-www-form-urlencoded").header("cookie", cookie).body(body).send();
    assert_eq!(send("username=a&password=b".into(), cookie.clone()).await.unwrap().status().as_u16(), 403);
    assert_eq!(send(format!("csrf_token={token}&username=a&password=b"), "session=7".into()).await.unwrap().status().as_u16(), 403);
    let entered = send(format!("csrf_token={token}&username=a&password=b"), cookie).await.unwrap();
    assert_eq!((entered.status().as_u16(), &entered.headers()["location"]), (302, &"/".parse().unwrap()));
    let session = entered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let home = text(client.get(site.url()).header("cookie", session).send().await.unwrap()).await;
    assert!(home.contains("Logout"));
    site.stop().await;
}
