//! The bundled spiders against the demo sites, page by page, without the engine: what they follow and what they scrape.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::demo::bookshop;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read as _;
use std::rc::Rc;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, StatusCode, Version};
use serde_json::Value;
use url::Url;

use crate::api::Response;
use crate::api::args::from_arguments;
use crate::api::context::Context;
use crate::api::out::{Origin, OutCore, Port, Scraped};
use crate::api::spider::{DynSpider, Spider};
use crate::api::stats::Stats;
use crate::demo::quotes::{self, QuotesOptions};
use crate::demo::truth::Truth;
use crate::demo::{Delays, Site, SiteOptions};
use crate::downloader::transport::{BodyFlags, Reply};
use crate::scheduler::job::Job;
use crate::settings::Settings;
use crate::web::key::seen_key;

#[path = "../../spiders/bench.rs"]
mod bench;
#[path = "../../spiders/quotes.rs"]
mod quotes_spider;

struct Nowhere;

impl Port for Nowhere {
    fn begin(&self, _: Vec<Job>, _: Vec<Scraped>) {}

    fn answered(&self) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn core(origin: Origin, parent: Option<Arc<Job>>) -> OutCore {
    let context = Context::new("x", "1", BTreeMap::new(), Arc::new(Settings::default()), Stats::new(), |_| {});
    OutCore::new(origin, parent, context, Rc::new(Nowhere), 100_000, 0, Rc::default())
}

fn spider<S: Spider>(url: &str) -> S {
    from_arguments(&[("url".to_owned(), url.to_owned())].into()).unwrap()
}

async fn start(spider: &impl Spider) -> Vec<Job> {
    let (mut out, result) = DynSpider::start(spider, core(Origin::Start { skip: 0 }, None)).await;
    result.unwrap();
    out.take().0
}

async fn parse(spider: &impl Spider, job: &Arc<Job>, reply: Reply) -> (Vec<Job>, Vec<Value>) {
    let response = Response::new(Arc::clone(job), Arc::new(reply), Duration::ZERO, Rc::default());
    let step = job.request.step().clone();
    let running = DynSpider::parse(spider, &step, response.clone(), core(Origin::Page, Some(Arc::clone(job)))).ok().unwrap();
    let (mut out, result) = running.await;
    result.unwrap_or_else(|error| panic!("{}: {error}", job.url()));
    assert!(response.take_selector_errors().is_empty() && out.take_refused().is_none());
    let (jobs, items) = out.take();
    let items = items.into_iter().map(|item| match item {
        Scraped::Object(text) => serde_json::from_str(&text).unwrap(),
        Scraped::Broken(why) => panic!("{why}"),
    });
    (jobs, items.collect())
}

fn client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

async fn fetch(client: &reqwest::Client, url: &Url) -> Reply {
    let response = client.get(url.clone()).send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = response.bytes().await.unwrap().to_vec();
    if headers.get("content-encoding").is_some_and(|coding| coding == "gzip") {
        let packed = std::mem::take(&mut body);
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut body).unwrap();
    }
    reply(status, headers, body)
}

fn reply(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Reply {
    let wire_bytes = body.len() as u64;
    Reply { status, version: Version::HTTP_11, headers, body: body.into(), wire_bytes, flags: BodyFlags::default() }
}

/// Everything a spider asked for on its own host, and everything it scraped; failing pages are asked for twice.
async fn crawl(spider: &impl Spider, base: &Url) -> (BTreeSet<u128>, Vec<Value>) {
    let client = client();
    let mut queue: VecDeque<Job> = start(spider).await.into();
    let (mut asked, mut items) = (BTreeSet::new(), Vec::new());
    while let Some(job) = queue.pop_front() {
        let url = job.url().clone();
        let forbidden = url.path().starts_with("/private/") || url.path().starts_with("/cart");
        if forbidden || url.host() != base.host() || !asked.insert(job.key) {
            continue;
        }
        let mut answer = fetch(&client, &url).await;
        if matches!(answer.status.as_u16(), 429 | 500..) {
            answer = fetch(&client, &url).await;
        }
        if answer.status.is_redirection() {
            let target = url.join(answer.headers["location"].to_str().unwrap()).unwrap();
            let mut moved = job;
            moved.key = seen_key(&http::Method::GET, &target, b"");
            moved.request = crate::api::Request::from_parts(target, moved.request.step().clone());
            queue.push_back(moved);
        } else if answer.status.is_success() {
            let (jobs, found) = parse(spider, &Arc::new(job), answer).await;
            queue.extend(jobs);
            items.extend(found);
        }
    }
    (asked, items)
}

#[tokio::test]
async fn the_bookshop_is_crawled_whole_and_every_book_is_right() {
    let options = SiteOptions { products: 230, delays: Delays::none(), ..SiteOptions::default() };
    let truth = Truth::new(options.products, options.seed);
    let site = Site::start(options).await.unwrap();
    let base = site.url();
    let (asked, items) = crawl(&spider::<bookshop::Bookshop>(base.as_str()), &base).await;
    site.stop().await;

    let on = base.as_str().trim_end_matches('/');
    let expected: BTreeMap<u128, String> = truth
        .pages()
        .map(|page| Url::parse(&page.on(on).url).unwrap())
        .map(|url| (seen_key(&http::Method::GET, &url, b""), url.to_string()))
        .collect();
    let missed: Vec<&String> = expected.iter().filter(|(key, _)| !asked.contains(key)).map(|(_, url)| url).collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert_eq!(asked.len(), expected.len(), "nothing else was asked for");

    let mut products: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut authors: BTreeMap<&str, &Value> = BTreeMap::new();
    for item in &items {
        let (into, key) = match item["kind"].as_str().unwrap() {
            "product" => (&mut products, "upc"),
            _ => (&mut authors, "url"),
        };
        assert!(into.insert(item[key].as_str().unwrap(), item).is_none(), "twice: {item}");
    }
    for book in truth.products().map(|book| book.on(on)) {
        let item = products.remove(book.upc.as_str()).unwrap_or_else(|| panic!("no item for {book:?}"));
        for (field, value) in [
            ("url", Value::from(book.url)),
            ("title", book.title.into()),
            ("price", book.price.into()),
            ("currency", book.currency.into()),
            ("availability", book.availability.into()),
            ("stock", book.stock.into()),
            ("rating", book.rating.into()),
            ("category", book.category.into()),
            ("author", book.author.name.clone().into()),
            ("author_url", book.author.url.clone().into()),
        ] {
            assert_eq!(item[field], value, "{field} of {item}");
        }
        let author = authors[book.author.url.as_str()];
        assert_eq!((&author["name"], &author["birth_year"]), (&book.author.name.into(), &book.author.birth_year.into()));
    }
    assert!(products.is_empty(), "{products:?}");
}

#[tokio::test]
async fn quotes_come_with_their_authors() {
    let options = QuotesOptions::default();
    let site = quotes::start(options.clone()).await.unwrap();
    let base = site.url();
    let (_, items) = crawl(&spider::<quotes_spider::Quotes>(base.as_str()), &base).await;
    site.stop().await;
    let of = |kind: &str| items.iter().filter(|item| item["kind"] == kind).cloned().collect::<Vec<_>>();
    let expected: BTreeSet<String> =
        quotes::all(&options).into_iter().map(|q| format!("{} {} {:?}", q.text, q.author, q.tags)).collect();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found: BTreeSet<String> = of("quote")
        .iter()
        .map(|q| {
            let tags: Vec<&str> = q["tags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            format!("{} {} {tags:?}", text(&q["text"]), text(&q["author"]))
        })
        .collect();
    assert_eq!(found, expected);
    let expected: BTreeSet<_> = quotes::authors(&options)
        .into_iter()
        .map(|a| (a.name, a.born_date, format!("in {}", a.born_location.trim_start_matches("in "))))
        .collect();
    let found: BTreeSet<_> =
        of("author").iter().map(|a| (text(&a["name"]), text(&a["born"]), format!("in {}", text(&a["birthplace"])))).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn the_benchmark_counts_every_link_and_follows_those_of_the_web() {
    let spider = spider::<bench::Bench>("http://127.0.0.1:1/0");
    let job = Arc::new(start(&spider).await.remove(0));
    let page = "<title>Product 0</title><span class=price>$1.05</span><a href='/1'>1</a><a href='2?x'>2</a><a>no</a><a href='mailto:a@b'>m</a>";
    let (jobs, items) = parse(&spider, &job, reply(StatusCode::OK, HeaderMap::new(), page.as_bytes().to_vec())).await;
    let urls: Vec<&str> = jobs.iter().map(|job| job.url().as_str()).collect();
    assert_eq!(urls, ["http://127.0.0.1:1/1", "http://127.0.0.1:1/2?x"]);
    assert_eq!(items, [serde_json::json!({"url": "http://127.0.0.1:1/0", "title": "Product 0", "price": "$1.05", "links": 3})]);
}
