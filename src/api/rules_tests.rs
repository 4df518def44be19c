#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Rules on pages, without an engine: which requests are made.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::*;
use crate::api::context::Context;
use crate::api::out::{Origin, OutCore, Port, Scraped};
use crate::api::spider::CallbackResult;
use crate::api::stats::Stats;
use crate::downloader::transport::{BodyFlags, Reply};
use crate::scheduler::job::{Job, RequestId};
use crate::settings::Settings;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum To {
    Listing,
    Book { id: String },
    Author,
}

#[derive(Deserialize)]
struct Shop;

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

struct Nowhere;

impl Port for Nowhere {
    fn begin(&self, _: Vec<Job>, _: Vec<Scraped>) {}

    fn answered(&self) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The page at `url`, reached from `first` where that is given.
fn page(url: &str, first: Option<&str>, content_type: &str, body: &str) -> Response {
    let mut job = Job::page(RequestId(1), 1, Request::get(url, &To::Listing).unwrap());
    job.first_url = first.map(Arc::from);
    let reply = Reply {
        status: StatusCode::OK,
        version: Version::HTTP_11,
        headers: HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap())]),
        wire_bytes: 0,
        body: body.to_owned().into(),
        flags: BodyFlags::default(),
    };
    Response::new(Arc::new(job), Arc::new(reply), Duration::ZERO, Rc::default())
}

fn out(limit: usize, stats: &Stats) -> Out<Shop> {
    let context = Context::new("x", "1", BTreeMap::new(), Arc::new(Settings::default()), stats.clone(), |_| {});
    Out::new(OutCore::new(Origin::Page, None, context, Rc::new(Nowhere), limit, 0, Rc::default()))
}

/// What is followed: URL, step and priority.
fn made(out: Out<Shop>) -> Vec<(String, To, i32)> {
    let jobs = out.into_core().take().0;
    let one = |job: Job| (job.url().to_string(), job.request.step().decode().unwrap(), job.request.priority_value());
    jobs.into_iter().map(one).collect()
}

fn rules() -> CrawlRules<To> {
    let book = |link: &Link| To::Book { id: link.url.path().rsplit('/').next().unwrap_or_default().to_owned() };
    CrawlRules::new()
        .rule(Rule::new(LinkExtractor::new().allow(r"/book/\d+$"), book).process_request(|request, text| {
            request.priority(text.len() as i32);
        }))
        .rule(Rule::new(LinkExtractor::new().restrict_css("nav"), |_| To::Listing).process_links(|links| links.truncate(2)))
        .rule(Rule::new(LinkExtractor::new().allow("/author/"), |_| To::Author))
}

const SHOP: &str = "<nav><a href=/c/1>1</a><a href=/book/7>seven</a><a href=/c/2>2</a><a href=/c/3>3</a></nav>
    <a href=/author/a>A</a><a href=book/8>8</a><a href=/help>?</a><a href=/book/7>again</a><a href=mailto:x>m</a>";

#[test]
fn a_link_goes_to_the_first_rule_that_takes_it_once() {
    let stats = Stats::new();
    let mut to = out(100, &stats);
    assert_eq!(rules().follow(&page("http://a.test/d/p", None, "text/html; charset=utf-8", SHOP), &mut to), 5);
    let book = |id: &str| To::Book { id: id.to_owned() };
    assert_eq!(
        made(to),
        [
            ("http://a.test/book/7".to_owned(), book("7"), 5),
            ("http://a.test/d/book/8".to_owned(), book("8"), 1),
            ("http://a.test/c/1".to_owned(), To::Listing, 0),
            ("http://a.test/c/2".to_owned(), To::Listing, 0),
            ("http://a.test/author/a".to_owned(), To::Author, 0),
        ]
    );
    assert_eq!(stats.get("links/skipped"), Some(1.into()));
}

#[test]
fn only_pages_have_links_to_follow() {
    for (content_type, expected) in [
        ("application/json", 0),
        ("text/plain", 0),
        ("image/png", 0),
        ("application/xhtml+xml", 5),
        ("text/xml", 5),
        ("nonsense", 5),
    ] {
        let mut to = out(100, &Stats::new());
        assert_eq!(rules().follow(&page("http://a.test/", None, content_type, SHOP), &mut to), expected, "{content_type}");
    }
}

#[test]
fn what_a_callback_may_not_hold_is_an_error_of_the_callback() {
    let mut to = out(2, &Stats::new());
    assert_eq!(rules().follow(&page("http://a.test/", None, "text/html", SHOP), &mut to), 2);
    assert!(to.into_core().take_refused().unwrap().to_string().contains("CALLBACK_MAX_EFFECTS"));
}

#[test]
fn a_base_as_long_as_its_page_is_not_repeated_without_end() {
    let base = "b".repeat(50_000);
    let links: String = (0..5_000).map(|n| format!("<a href={n}>y</a>")).collect();
    let html = format!("<base href='/{base}/'>{links}");
    let response = page("http://a.test/", None, "text/html", &html);
    let room = 32 * html.len() + (1 << 20);
    for with_extractor in [false, true] {
        let stats = Stats::new();
        let mut to = out(10_000, &stats);
        let added = if with_extractor {
            to.follow_links(&response, &LinkExtractor::new(), |_| To::Listing)
        } else {
            to.follow(&response, "a", |_| To::Listing)
        };
        let made = made(to);
        let bytes: usize = made.iter().map(|(url, ..)| url.len()).sum();
        assert!(bytes > room - 2 * base.len() && bytes < room + 2 * base.len(), "{bytes} of {room}");
        assert_eq!(made.len(), added);
        assert_eq!(stats.get("links/skipped"), Some((5_000 - i64::try_from(added).unwrap()).into()));
    }
}

#[test]
fn case_r05_links_after_a_redirect() {
    let response = page(
        "http://b.test/dir/home.html",
        Some("http://a.test/start"),
        "text/html; charset=utf-8",
        "<a href='next.html'>n</a><a href='/top'>t</a>",
    );
    let expected = ["http://b.test/dir/next.html", "http://b.test/top"];
    assert_eq!((response.url().as_str(), response.requested_url()), ("http://b.test/dir/home.html", "http://a.test/start"));
    assert_eq!(response.links().iter().map(|link| link.url.as_str()).collect::<Vec<_>>(), expected);
    let urls = |to: Out<Shop>| made(to).into_iter().map(|(url, ..)| url).collect::<Vec<_>>();
    let mut to = out(100, &Stats::new());
    assert_eq!(to.follow(&response, "a", |_| To::Listing), 2);
    assert_eq!(urls(to), expected);
    let mut to = out(100, &Stats::new());
    assert_eq!(to.follow_links(&response, &LinkExtractor::new(), |_| To::Listing), 2);
    to.link(&response, "next.html", To::Listing).unwrap();
    assert_eq!(urls(to), [expected[0], expected[1], expected[0]]);
}
