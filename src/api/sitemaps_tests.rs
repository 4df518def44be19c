#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Sitemaps as a spider reads them, without an engine: which requests are made.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::*;
use crate::api::context::Context;
use crate::api::out::{Origin, OutCore, Port, Scraped};
use crate::api::spider::CallbackResult;
use crate::api::stats::Stats;
use crate::downloader::decode::Decoder;
use crate::downloader::transport::{BodyFlags, Reply};
use crate::scheduler::job::{Job, RequestId};
use crate::settings::Settings;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::api) enum To {
    Sitemap,
    Book { id: String },
    Page,
}

#[derive(Deserialize)]
pub(in crate::api) struct Shop;

impl Spider for Shop {
    const NAME: &'static str = "shop";
    type Step = To;
    type Item = Value;

    async fn start(&self, _: &mut Out<Self>) -> CallbackResult {
        Ok(())
    }

    async fn parse(&self, _: To, _: Response, _: &mut Out<Self>) -> CallbackResult {
        Ok(())
    }
}

/// Keeps what is committed, part by part.
#[derive(Default)]
pub(in crate::api) struct Kept(RefCell<Vec<Vec<Job>>>);

impl Port for Rc<Kept> {
    fn begin(&self, jobs: Vec<Job>, _: Vec<Scraped>) {
        self.0.borrow_mut().push(jobs);
    }

    fn answered(&self) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn response(request: Request, body: impl Into<Bytes>) -> Response {
    let reply = Reply {
        status: StatusCode::OK,
        version: Version::HTTP_11,
        headers: HeaderMap::new(),
        wire_bytes: 0,
        body: body.into(),
        flags: BodyFlags::default(),
    };
    Response::new(Arc::new(Job::page(RequestId(1), 1, request)), Arc::new(reply), Duration::ZERO, Rc::default())
}

fn at(url: &str) -> Request {
    Request::get(url, &To::Sitemap).unwrap()
}

struct Read {
    requests: Vec<(String, To)>,
    parts: Vec<usize>,
    stats: Stats,
    levels: Vec<Option<u64>>,
}

impl Read {
    fn count(&self, key: &str) -> i64 {
        self.stats.get(key).and_then(|value| value.as_i64()).unwrap_or(0)
    }

    fn urls(&self) -> Vec<&str> {
        self.requests.iter().map(|(url, _)| url.as_str()).collect()
    }
}

fn read(sitemaps: &Sitemaps<To>, request: Request, body: impl Into<Bytes>) -> Read {
    let stats = Stats::default();
    let context = Context::new("shop", "1", Default::default(), Arc::new(Settings::default()), stats.clone(), |_| {});
    let kept = Rc::new(Kept::default());
    let core = OutCore::new(Origin::Page, None, context, Rc::new(Rc::clone(&kept)), 1_000, 0, Rc::default());
    let mut out = Out::<Shop>::new(core);
    let response = response(request, body);
    let sent = sitemaps.read(&response, &mut out).now_or_never().expect("the port answers at once").unwrap();
    let rest = out.into_core().take().0;
    let mut parts: Vec<Vec<Job>> = kept.0.take();
    parts.push(rest);
    let sizes = parts.iter().map(Vec::len).collect();
    let jobs: Vec<Job> = parts.into_iter().flatten().collect();
    assert_eq!(sent, jobs.len());
    let requests = jobs.iter().map(|job| (job.url().to_string(), job.request.step().decode().unwrap())).collect();
    let levels = jobs.iter().map(|job| job.request.meta_value(LEVEL).and_then(Value::as_u64)).collect();
    Read { requests, parts: sizes, stats, levels }
}

fn rules() -> Sitemaps<To> {
    let id = |url: &Url| url.path_segments().and_then(Iterator::last).unwrap_or_default().to_owned();
    Sitemaps::new(To::Sitemap).rule(r"/book/\d+$", move |url| To::Book { id: id(url) }).rule("/(book|page)", |_| To::Page)
}

const URLS: &str = "<urlset xmlns:x='http://www.w3.org/1999/xhtml'>\
    <url><loc>/book/1</loc><lastmod>2024-05-01</lastmod></url>\
    <url><loc>https://a.test/page/2</loc><lastmod>2023-05-01</lastmod>\
        <x:link rel='alternate' hreflang='de' href='/de/page/2'/><x:link rel='alternate' hreflang='fr' href='/fr/other/2'/></url>\
    <url><loc>https://a.test/about</loc></url>\
    <url><loc>https://a.test/page/3</loc><lastmod>never</lastmod></url>\
    <url><loc>javascript:void(0)</loc></url></urlset>";

#[test]
fn a_page_goes_to_the_first_rule_that_matches() {
    let read = read(&rules(), at("https://a.test/sitemap.xml"), URLS);
    assert_eq!(
        read.requests,
        [
            ("https://a.test/book/1".to_owned(), To::Book { id: "1".to_owned() }),
            ("https://a.test/page/2".to_owned(), To::Page),
            ("https://a.test/page/3".to_owned(), To::Page),
        ]
    );
    let counts = ["documents", "entries", "filtered", "skipped", "invalid", "cut"];
    assert_eq!(counts.map(|key| read.count(&format!("sitemap/{key}"))), [1, 5, 1, 1, 0, 0]);
}

#[test]
fn dates_filters_and_alternates_say_which_entries_count() {
    let since = rules().modified_since("2024-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(read(&since, at("https://a.test/s"), URLS).urls(), ["https://a.test/book/1", "https://a.test/page/3"]);
    let filtered = rules().filter(|entry| entry.lastmod.is_some());
    assert_eq!(read(&filtered, at("https://a.test/s"), URLS).urls().len(), 3);
    assert!(!read(&rules().filter(|entry| !entry.loc.contains("book")), at("https://a.test/s"), URLS).urls()[0].contains("book"));
    let others = read(&rules().alternates(), at("https://a.test/s"), URLS);
    assert!(others.urls().contains(&"https://a.test/de/page/2") && !others.urls().contains(&"https://a.test/fr/other/2"));
}

#[test]
fn indexes_and_robots_txt_lead_to_sitemaps() {
    let index = "<sitemapindex><sitemap><loc>/books.xml.gz</loc></sitemap><sitemap><loc>/news.xml</loc></sitemap></sitemapindex>";
    let all = read(&rules(), at("https://a.test/sitemap.xml"), index);
    assert_eq!(all.requests.iter().filter(|(_, to)| *to == To::Sitemap).count(), 2);
    assert_eq!(all.levels, [Some(1), Some(1)]);
    let books = read(&rules().follow("/books"), at("https://a.test/sitemap.xml"), index);
    assert_eq!((books.urls(), books.count("sitemap/filtered")), (vec!["https://a.test/books.xml.gz"], 1));
    let robots = "User-agent: *\nDisallow: /\nSitemap: https://a.test/books.xml\nsitemap: /news.xml\n";
    let listed = read(&rules(), at("https://a.test/robots.txt"), robots);
    assert_eq!(listed.urls(), ["https://a.test/books.xml", "https://a.test/news.xml"]);
    assert_eq!(read(&rules().follow("books"), at("https://a.test/robots.txt"), robots).urls(), ["https://a.test/books.xml"]);
}

#[test]
fn indexes_in_indexes_end_at_a_depth() {
    let index = "<sitemapindex><sitemap><loc>/more.xml</loc></sitemap></sitemapindex>";
    let mut request = at("https://a.test/sitemap.xml");
    for level in 1..MAX_LEVELS {
        let read = read(&rules(), request, index);
        assert_eq!(read.levels, [Some(level)]);
        request = at("https://a.test/more.xml");
        request.meta(LEVEL, level);
    }
    let last = read(&rules(), request, index);
    assert_eq!((last.requests.len(), last.count("sitemap/too_deep")), (0, 1));
}

#[test]
fn a_long_sitemap_is_committed_in_parts() {
    let urls: String = (0..5_000).map(|n| format!("<url><loc>https://a.test/page/{n}</loc></url>")).collect();
    let read = read(&rules(), at("https://a.test/s"), format!("<urlset>{urls}</urlset>"));
    assert_eq!(read.requests.len(), 5_000);
    assert!(read.parts.len() >= 10 && read.parts.iter().all(|part| *part <= 500), "{:?}", read.parts);
}

#[test]
fn what_is_no_sitemap_or_is_cut_is_counted() {
    let page = read(&rules(), at("https://a.test/s"), "<html><body>Not found</body></html>");
    assert_eq!((page.requests.len(), page.count("sitemap/invalid")), (0, 1));
    let cut = read(&rules(), at("https://a.test/s"), "<urlset><url><loc>https://a.test/book/1</loc></url><url><loc>https");
    assert_eq!((cut.requests.len(), cut.count("sitemap/cut")), (1, 1));
}

#[test]
fn a_pattern_that_cannot_be_read_fails_the_callback() {
    let bad = rules().rule("(", |_| To::Page);
    let response = response(at("https://a.test/s"), URLS);
    let context = Context::new("shop", "1", Default::default(), Arc::new(Settings::default()), Stats::default(), |_| {});
    let core = OutCore::new(Origin::Page, None, context, Rc::new(Rc::new(Kept::default())), 1_000, 0, Rc::default());
    let mut out = Out::<Shop>::new(core);
    assert_eq!(bad.read(&response, &mut out).now_or_never().unwrap().unwrap(), 0);
    assert_eq!(response.take_selector_errors().len(), 1);
    assert!(bad.checked().is_err() && rules().checked().is_ok());
}

/// Transfer coding is undone by the header, file coding by the first bytes.
#[test]
fn case_s01_gzip_is_undone_by_header_and_by_first_bytes() {
    const ONCE: &str = "H4sIAAAAAAAC/3WOwQ6CMBBEf6W3PdkFTmra8i2krtCktKS7WD8fRC4ePM6bN8mY/j1H9aLCIScLrW5AUfL5EdJoYZXn5Qq9M2uJ\
        TKJ2N7GFSWS5I9ZaNQeheVhY5zIi+2kPjCfERt/g2DoTs3fnbNBCLNga/ECDR/9H6n4k/N5wG/j1yBK1AAAA";
    const TWICE: &str = "H4sIAAAAAAAC/wGKAHX/H4sIAAAAAAAC/3WOwQ6CMBBEf6W3PdkFTmra8i2krtCktKS7WD8fRC4ePM6bN8mY/j1H9aLCIScLrW5A\
        UfL5EdJoYZXn5Qq9M2uJTKJ2N7GFSWS5I9ZaNQeheVhY5zIi+2kPjCfERt/g2DoTs3fnbNBCLNga/ECDR/9H6n4k/N5wG/j1yBK1\
        AAAAyjq6mooAAAA=";
    const PLAIN: &str = "<?xml version='1.0' encoding='utf-8'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
        <url><loc>http://a.test/1</loc></url><url><loc>http://a.test/2</loc></url></urlset>";
    let unbased = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    for (url, coding, body) in [
        ("http://a.test/a.xml.gz", Some("gzip"), unbased(ONCE)),
        ("http://a.test/b.xml.gz", None, unbased(ONCE)),
        ("http://a.test/c.xml.gz", Some("gzip"), unbased(TWICE)),
        ("http://a.test/d.xml.gz", None, PLAIN.into()),
        ("http://a.test/e.xml", Some("x-gzip"), unbased(ONCE)),
    ] {
        let coding = coding.map(HeaderValue::from_static);
        let received = match Decoder::new(coding.iter(), 1_000_000) {
            Some(mut decoder) => {
                let mut out = Vec::new();
                decoder.push(&body, &mut out).unwrap();
                decoder.finish(&mut out).unwrap();
                out
            }
            None => body,
        };
        let every = Sitemaps::new(To::Sitemap).rule("", |_| To::Page);
        assert_eq!(read(&every, at(url), received).urls(), ["http://a.test/1", "http://a.test/2"], "{url}");
    }
}
