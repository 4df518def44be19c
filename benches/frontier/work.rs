//! The requests: URLs of sixty bytes, found by twenty on a page, new ones and known ones.

use std::sync::Arc;

use dragline::api::request::Request;
use dragline::scheduler::job::{Job, RequestId, SlotKey};
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

/// Requests of one offer.
pub(crate) const BATCH: u64 = 20;

/// What a crawl of a made-up web finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Web {
    pub(crate) hosts: u64,
}

impl Web {
    /// The host of a page.
    pub(crate) fn host(self, page: u64) -> String {
        format!("www.shop-{:07}.example", page % self.hosts)
    }

    pub(crate) fn slot(self, page: u64) -> SlotKey {
        SlotKey(Arc::from(self.host(page)))
    }

    pub(crate) fn url(self, page: u64) -> String {
        format!("https://{}/catalogue/products-{page:08}", self.host(page))
    }

    /// The request for a page, as the `index`-th of a callback.
    pub(crate) fn job(self, page: u64, index: u64, parent: &Parent) -> Job {
        let url = self.url(page);
        let key = xxh3_128(url.as_bytes());
        let request = Request::to_url(Url::parse(&url).unwrap(), &"Product").unwrap();
        let id = RequestId::child(Some(parent.id), index);
        Job { parent: Some(parent.id), parent_url: Some(Arc::clone(&parent.url)), depth: 3, ..Job::page(id, key, request) }
    }
}

/// The page that a callback runs for.
#[derive(Debug, Clone)]
pub(crate) struct Parent {
    pub(crate) id: RequestId,
    pub(crate) url: Arc<str>,
    /// Requests it made.
    pub(crate) made: u64,
}

impl Parent {
    pub(crate) fn start(web: Web) -> Self {
        Self { id: RequestId::child(None, 0), url: Arc::from(web.url(0)), made: 0 }
    }

    pub(crate) fn of(job: &Job) -> Self {
        Self { id: job.id, url: Arc::from(job.url().as_str()), made: 0 }
    }
}

/// Which pages an offer names: all new, or one new among those that were found before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    AllNew,
    OneInTwenty,
}

/// The pages of a crawl, in the order in which they are found.
#[derive(Debug)]
pub(crate) struct Finds {
    mix: Mix,
    found: u64,
    dice: u64,
}

impl Finds {
    pub(crate) const fn new(mix: Mix) -> Self {
        Self { mix, found: 0, dice: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The pages of the next offer.
    pub(crate) fn batch(&mut self) -> Vec<u64> {
        let news = if self.mix == Mix::AllNew || self.found < BATCH { BATCH } else { 1 };
        let known: Vec<u64> = (news..BATCH).map(|_| self.known()).collect();
        let new = self.found..self.found + news;
        self.found += news;
        known.into_iter().chain(new).collect()
    }

    fn known(&mut self) -> u64 {
        // xorshift64: any page found before is as likely as any other.
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % self.found
    }

    /// The first pages count as found.
    pub(crate) const fn skip(&mut self, pages: u64) {
        self.found = pages;
    }

    pub(crate) const fn found(&self) -> u64 {
        self.found
    }
}
