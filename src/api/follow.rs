//! From the links that an extractor finds in a response to requests.

use super::links::{Link, LinkExtractor};
use super::out::Out;
use super::response::Response;
use super::robots_directives::MayFollow;
use super::spider::Spider;

impl LinkExtractor {
    /// The links of a response that it takes, absolute, in document order, each once. Without the query parameters of the
    /// lease, where the page repeats them.
    #[must_use]
    pub fn links(&self, response: &Response) -> Vec<Link> {
        response.with_source(|source| self.extract(source)).links
    }
}

impl<S: Spider> Out<S> {
    /// Follows the links that an extractor takes. Addresses at its places that are not `http` or `https`, or do not parse,
    /// are left out and counted (`links/skipped`). Answers how many requests were added.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// use dragline::api::LinkExtractor;
    ///
    /// # steps! { enum Step for Shop { Book => book } }
    /// # impl Spider for Shop {
    /// #     const NAME: &'static str = "shop"; type Step = Step; type Item = Value;
    /// #     async fn start(&self, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
    /// #     async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
    /// #         self.dispatch(step, response, out).await
    /// #     }
    /// # }
    /// fn books() -> LinkExtractor {
    ///     LinkExtractor::new().allow(r"/book/\d+").deny("/reviews").skip_nofollow()
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Shop {
    ///     #[serde(skip, default = "books")]
    ///     books: LinkExtractor,
    /// }
    ///
    /// impl Shop {
    ///     async fn book(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
    ///         out.follow_links(&response, &self.books, |_| Step::Book);
    ///         Ok(())
    ///     }
    /// }
    /// ```
    pub fn follow_links(
        &mut self,
        response: &Response,
        extractor: &LinkExtractor,
        mut step: impl FnMut(&Link) -> S::Step,
    ) -> usize {
        let may = self.core.may_follow(response);
        if may == MayFollow::None {
            return 0;
        }
        let extracted = response.with_source(|source| extractor.extract(source));
        self.core.count_skipped(extracted.skipped);
        let mut added = 0;
        for link in extracted.links {
            if !self.core.lets(may, link.nofollow) {
                continue;
            }
            let step = step(&link);
            added += usize::from(self.core.follow(link.url, &step).is_some());
        }
        added
    }
}
