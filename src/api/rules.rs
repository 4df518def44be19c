//! Crawling by rules: which links of a page are followed, and to which step each goes.
//!
//! A building block for any spider, no spider of its own: it holds rules and makes requests of a page's links.

use std::fmt;

use super::links::{Link, LinkExtractor};
use super::out::Out;
use super::request::Request;
use super::response::Response;
use super::robots_directives::MayFollow;
use super::spider::Spider;
use super::step::Step;
use crate::web::media_type::MediaType;

/// The rules of a crawl, in order: a link goes to the first rule whose extractor takes it.
///
/// A callback that calls [`CrawlRules::follow`] goes on from its page; the callback of a page that leads nowhere does not (in
/// Scrapy's words, its rule has `follow=False`).
///
/// ```
/// use dragline::api::{CrawlRules, LinkExtractor, Rule};
/// use dragline::prelude::*;
///
/// steps! { enum Step for Shop { Listing => listing, Book { id: String } => book } }
///
/// #[derive(Debug, Deserialize)]
/// struct Shop {
///     url: String,
///     #[serde(skip, default = "rules")]
///     rules: CrawlRules<Step>,
/// }
///
/// fn rules() -> CrawlRules<Step> {
///     let id = |link: &Link| link.url.path_segments().and_then(Iterator::last).unwrap_or_default().to_owned();
///     CrawlRules::new()
///         .rule(Rule::new(LinkExtractor::new().allow(r"/book/\d+$"), move |link| Step::Book { id: id(link) }))
///         .rule(Rule::new(LinkExtractor::new().restrict_css("nav").deny("/account"), |_| Step::Listing))
/// }
///
/// impl Spider for Shop {
///     const NAME: &'static str = "shop";
///     type Step = Step;
///     type Item = Value;
///     async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
///         out.get(&self.url, Step::Listing)?;
///         Ok(())
///     }
///     async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
///         self.dispatch(step, response, out).await
///     }
/// }
///
/// impl Shop {
///     async fn listing(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
///         self.rules.follow(&response, out);
///         Ok(())
///     }
///     async fn book(&self, response: Response, out: &mut Out<Self>, id: String) -> CallbackResult {
///         out.item(json!({ "id": id, "title": response.css("h1::text").get() }));
///         Ok(())
///     }
/// }
/// ```
pub struct CrawlRules<T> {
    rules: Vec<Rule<T>>,
}

/// Which links go to which step.
pub struct Rule<T> {
    extractor: LinkExtractor,
    step: Box<dyn Fn(&Link) -> T + Send + Sync>,
    links: Option<ProcessLinks>,
    request: Option<ProcessRequest>,
}

type ProcessLinks = Box<dyn Fn(&mut Vec<Link>) + Send + Sync>;
type ProcessRequest = Box<dyn Fn(&mut Request, &str) + Send + Sync>;

impl<T> CrawlRules<T> {
    /// No rules: nothing is followed.
    #[must_use]
    pub fn new() -> Self {
        Self { rules: Vec::new() }
    }

    /// Adds a rule behind the others.
    #[must_use]
    pub fn rule(mut self, rule: Rule<T>) -> Self {
        self.rules.push(rule);
        self
    }

    /// Makes requests of the links of a page. A URL goes to the first rule that takes it, once; a URL that no rule takes is
    /// not followed. Addresses that are not `http` or `https`, or do not parse, are counted (`links/skipped`). A response
    /// whose `Content-Type` is neither HTML nor XML has no links. Answers how many requests were added.
    pub fn follow<S: Spider<Step = T>>(&self, response: &Response, out: &mut Out<S>) -> usize
    where
        T: Step,
    {
        if !is_page(response) {
            return 0;
        }
        let may = out.core.may_follow(response);
        if may == MayFollow::None {
            return 0;
        }
        let extractors = self.rules.iter().map(|rule| &rule.extractor);
        let (shares, skipped) = response.with_source(|source| LinkExtractor::share_out(extractors, source));
        out.core.count_skipped(skipped);
        let mut added = 0;
        for (rule, mut links) in self.rules.iter().zip(shares) {
            if let Some(change) = &rule.links {
                change(&mut links);
            }
            for link in links {
                if !out.core.lets(may, link.nofollow) {
                    continue;
                }
                let step = (rule.step)(&link);
                let Link { url, text, .. } = link;
                if let Some(request) = out.core.follow(url, &step) {
                    added += 1;
                    if let Some(change) = &rule.request {
                        change(request, &text);
                    }
                }
            }
        }
        added
    }
}

impl<T> Rule<T> {
    /// Links that `extractor` takes go to the step that `step` makes of them.
    #[must_use]
    pub fn new(extractor: LinkExtractor, step: impl Fn(&Link) -> T + Send + Sync + 'static) -> Self {
        Self { extractor, step: Box::new(step), links: None, request: None }
    }

    /// Changes the links this rule takes from a page, before requests are made of them (Scrapy's `process_links`).
    #[must_use]
    pub fn process_links(mut self, change: impl Fn(&mut Vec<Link>) + Send + Sync + 'static) -> Self {
        self.links = Some(Box::new(change));
        self
    }

    /// Completes each request of this rule, given the text of its link (Scrapy's `process_request`).
    #[must_use]
    pub fn process_request(mut self, change: impl Fn(&mut Request, &str) + Send + Sync + 'static) -> Self {
        self.request = Some(Box::new(change));
        self
    }
}

impl<T> Default for CrawlRules<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for CrawlRules<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.rules).finish()
    }
}

impl<T> fmt::Debug for Rule<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("extractor", &self.extractor).finish_non_exhaustive()
    }
}

/// Whether the body may hold links: what has no type is a page to browsers as well.
fn is_page(response: &Response) -> bool {
    let fields = response.headers().get_all(http::header::CONTENT_TYPE).iter().filter_map(|value| value.to_str().ok());
    MediaType::from_fields(fields).is_none_or(|kind| kind.is_html() || kind.is_xml())
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
