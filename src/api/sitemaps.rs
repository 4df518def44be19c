//! Crawling from sitemaps: where they are found, which of their entries become requests, and to which step each goes.
//!
//! A building block for any spider, no spider of its own: a step receives the sitemaps, its callback calls
//! [`Sitemaps::read`]. Sitemaps are ordinary requests, so they are leased, paced, retried and recorded as any.

use std::fmt;

use jiff::Timestamp;
use regex::Regex;
use url::Url;

use super::out::{Out, OutError};
use super::request::Request;
use super::response::Response;
use super::selector::{SelectorError, compile_pattern};
use super::spider::Spider;
use super::step::Step;
use crate::web::reference::join_url;
use crate::web::robots::Robots;
use crate::web::sitemap::{Entry, Kind, Limits, Sitemap, Target};

/// How deep indexes may lie in indexes. The protocol allows one in none; some sites nest two.
const MAX_LEVELS: u64 = 5;

/// In the meta of a request for a sitemap: how many documents led to it.
const LEVEL: &str = "sitemap_level";

/// How a spider crawls from sitemaps.
///
/// ```
/// use dragline::api::Sitemaps;
/// use dragline::prelude::*;
///
/// steps! { enum Step for Shop { Sitemap => sitemap, Book { id: String } => book } }
///
/// #[derive(Deserialize)]
/// struct Shop {
///     #[serde(skip, default = "sitemaps")]
///     sitemaps: Sitemaps<Step>,
/// }
///
/// fn sitemaps() -> Sitemaps<Step> {
///     let id = |url: &Url| url.path_segments().and_then(Iterator::last).unwrap_or_default().to_owned();
///     Sitemaps::new(Step::Sitemap)
///         .follow("/sitemap-(books|authors)")
///         .rule(r"/book/\d+$", move |url| Step::Book { id: id(url) })
///         .modified_since("2024-01-01T00:00:00Z".parse().unwrap_or_default())
/// }
///
/// impl Spider for Shop {
///     const NAME: &'static str = "shop";
///     type Step = Step;
///     type Item = Value;
///     async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
///         self.sitemaps.start(["https://shop.example/robots.txt"], out).await?;
///         Ok(())
///     }
///     async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
///         self.dispatch(step, response, out).await
///     }
/// }
///
/// impl Shop {
///     async fn sitemap(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
///         self.sitemaps.read(&response, out).await?;
///         Ok(())
///     }
///     async fn book(&self, response: Response, out: &mut Out<Self>, id: String) -> CallbackResult {
///         out.item(json!({ "id": id, "title": response.css("h1::text").get() }));
///         Ok(())
///     }
/// }
/// ```
///
/// A pattern that cannot be read makes rules that follow nothing; its error fails the callback when that ends. Use
/// [`Sitemaps::checked`] where patterns come from outside.
pub struct Sitemaps<T> {
    sitemap: T,
    rules: Vec<Rule<T>>,
    follow: Vec<Regex>,
    since: Option<Timestamp>,
    filter: Option<Wanted>,
    alternates: Alternates,
    limits: Limits,
    error: Option<SelectorError>,
}

type Wanted = Box<dyn Fn(&Entry) -> bool + Send + Sync>;
type StepOf<T> = Box<dyn Fn(&Url) -> T + Send + Sync>;

struct Rule<T> {
    pattern: Regex,
    step: StepOf<T>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alternates {
    Ignored,
    Followed,
}

impl<T: Step> Sitemaps<T> {
    /// Sitemaps go to this step. Without a rule no page is followed, only sitemaps.
    #[must_use]
    pub fn new(sitemap: T) -> Self {
        Self {
            sitemap,
            rules: Vec::new(),
            follow: Vec::new(),
            since: None,
            filter: None,
            alternates: Alternates::Ignored,
            limits: Limits::default(),
            error: None,
        }
    }

    /// Pages whose URL matches this regular expression go to the step that `step` makes of it. The first rule that matches
    /// counts; a page that none matches is not followed. An empty pattern matches every page.
    #[must_use]
    pub fn rule(mut self, pattern: &str, step: impl Fn(&Url) -> T + Send + Sync + 'static) -> Self {
        let pattern = self.compiled(pattern);
        self.rules.extend(pattern.map(|pattern| Rule { pattern, step: Box::new(step) }));
        self
    }

    /// Of the sitemaps that an index or robots.txt lists, only those whose URL matches this regular expression, or another
    /// one given so, are read; without one, all.
    #[must_use]
    pub fn follow(mut self, pattern: &str) -> Self {
        let pattern = self.compiled(pattern);
        self.follow.extend(pattern);
        self
    }

    /// Leaves out pages and sitemaps that say they have not changed since. What has no date, or none that can be read, passes.
    #[must_use]
    pub fn modified_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Leaves out entries, of pages and of sitemaps, for which `filter` answers false.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&Entry) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Box::new(filter));
        self
    }

    /// Follows the alternates of a page (other languages) as well, by the same rules.
    #[must_use]
    pub fn alternates(mut self) -> Self {
        self.alternates = Alternates::Followed;
        self
    }

    /// Replaces the bounds of one document.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The rules, if all patterns can be used.
    ///
    /// # Errors
    /// The first one that cannot.
    pub fn checked(self) -> Result<Self, SelectorError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// Asks for sitemaps, indexes, or robots.txt files that list them; for `start`.
    ///
    /// # Errors
    /// When an address is not absolute, or the job stops meanwhile.
    pub async fn start<S: Spider<Step = T>>(
        &self,
        urls: impl IntoIterator<Item = impl AsRef<str>>,
        out: &mut Out<S>,
    ) -> Result<(), OutError> {
        for url in urls {
            out.send(Request::get(url.as_ref(), &self.sitemap)?).await?;
        }
        Ok(())
    }

    /// Makes requests of what a response lists: the sitemaps of a robots.txt, the entries of a sitemap or feed. Waits for
    /// room in the queue, so that a long sitemap never stands in memory. Answers how many requests were made.
    ///
    /// What is no sitemap, is damaged or longer than its bounds is logged and counted (`sitemap/invalid`, `sitemap/cut`).
    ///
    /// # Errors
    /// When the job stops meanwhile.
    pub async fn read<S: Spider<Step = T>>(&self, response: &Response, out: &mut Out<S>) -> Result<usize, OutError> {
        if let Some(error) = &self.error {
            response.note(error.clone());
            return Ok(0);
        }
        let level = response.request().meta_value(LEVEL).and_then(serde_json::Value::as_u64).unwrap_or(0) + 1;
        if is_robots(response) {
            return self.read_robots(response, level, out).await;
        }
        out.stats().inc("sitemap/documents");
        let mut sitemap = response.sitemap_within(self.limits);
        if sitemap.kind() == Kind::Invalid {
            out.stats().inc("sitemap/invalid");
            tracing::warn!(url = response.url().as_str(), "this is no sitemap and no feed: it is passed over");
        }
        let mut sent = 0;
        for entry in sitemap.by_ref() {
            out.stats().inc("sitemap/entries");
            if !self.is_wanted(&entry) {
                out.stats().inc("sitemap/filtered");
                continue;
            }
            let address = entry.url(response.url());
            sent += match entry.target {
                Target::Sitemap => self.send_sitemap(address, level, out).await?,
                Target::Page => self.send_page(address, out).await?,
            };
            if self.alternates == Alternates::Followed {
                for alternate in &entry.alternates {
                    sent += self.send_page(alternate.url(response.url()), out).await?;
                }
            }
        }
        if let Some(cut) = sitemap.cut() {
            out.stats().inc("sitemap/cut");
            tracing::warn!(url = response.url().as_str(), ?cut, "the sitemap was not read to its end");
        }
        Ok(sent)
    }

    async fn read_robots<S: Spider<Step = T>>(
        &self,
        response: &Response,
        level: u64,
        out: &mut Out<S>,
    ) -> Result<usize, OutError> {
        let robots = Robots::parse(response.body());
        if robots.sitemaps().is_empty() {
            tracing::warn!(url = response.url().as_str(), "this robots.txt lists no sitemap");
        }
        let mut sent = 0;
        for address in robots.sitemaps() {
            sent += self.send_sitemap(join_url(response.url(), address).ok(), level, out).await?;
        }
        Ok(sent)
    }

    fn is_wanted(&self, entry: &Entry) -> bool {
        let is_new = self.since.is_none_or(|since| entry.modified().is_none_or(|modified| modified >= since));
        is_new && self.filter.as_ref().is_none_or(|filter| filter(entry))
    }

    async fn send_sitemap<S: Spider<Step = T>>(
        &self,
        address: Option<Url>,
        level: u64,
        out: &mut Out<S>,
    ) -> Result<usize, OutError> {
        let Some(url) = address.filter(|url| matches!(url.scheme(), "http" | "https")) else {
            out.stats().inc("sitemap/skipped");
            return Ok(0);
        };
        if level >= MAX_LEVELS {
            out.stats().inc("sitemap/too_deep");
            tracing::warn!(
                url = url.as_str(),
                levels = MAX_LEVELS,
                "sitemaps that list sitemaps go too deep: this one is left out"
            );
            return Ok(0);
        }
        if !self.follow.is_empty() && !self.follow.iter().any(|pattern| pattern.is_match(url.as_str())) {
            out.stats().inc("sitemap/filtered");
            return Ok(0);
        }
        let mut request = Request::to_url(url, &self.sitemap)?;
        request.meta(LEVEL, level);
        out.send(request).await?;
        Ok(1)
    }

    async fn send_page<S: Spider<Step = T>>(&self, address: Option<Url>, out: &mut Out<S>) -> Result<usize, OutError> {
        let Some(url) = address else {
            out.stats().inc("sitemap/skipped");
            return Ok(0);
        };
        let Some(rule) = self.rules.iter().find(|rule| rule.pattern.is_match(url.as_str())) else {
            out.stats().inc("sitemap/filtered");
            return Ok(0);
        };
        let step = (rule.step)(&url);
        out.send(Request::to_url(url, &step)?).await?;
        Ok(1)
    }

    fn compiled(&mut self, pattern: &str) -> Option<Regex> {
        compile_pattern(pattern).map_err(|error| self.error.get_or_insert(error).clone()).ok()
    }
}

impl<T> fmt::Debug for Sitemaps<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sitemaps")
            .field("rules", &self.rules.iter().map(|rule| rule.pattern.as_str()).collect::<Vec<_>>())
            .field("follow", &self.follow)
            .field("since", &self.since)
            .field("alternates", &self.alternates)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// The body as a sitemap or feed: an iterator over its entries. See [`Sitemaps`] for a crawl by them.
    #[must_use]
    pub fn sitemap(&self) -> Sitemap<'_> {
        self.sitemap_within(Limits::default())
    }

    fn sitemap_within(&self, limits: Limits) -> Sitemap<'_> {
        Sitemap::new(self.body(), self.header("content-type"), self.url(), limits)
    }
}

/// Whether a response is that of a robots.txt, wherever redirects have led it.
fn is_robots(response: &Response) -> bool {
    let is_named = |url: &Url| url.path() == "/robots.txt";
    is_named(response.url()) || Url::parse(response.requested_url()).is_ok_and(|url| is_named(&url))
}

#[cfg(test)]
#[path = "sitemaps_tests.rs"]
pub(super) mod tests;
