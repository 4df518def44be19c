//! The work every contender of the benchmark does: from one page, all pages, one item each.

use dragline::api::links::hrefs;
use dragline::prelude::*;

/// Crawls everything reachable from `url`.
#[derive(Debug, Deserialize)]
pub(crate) struct Bench {
    url: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Page {
    url: String,
    title: Option<String>,
    price: Option<String>,
    /// How many `a[href]` the page has.
    links: usize,
}

impl Spider for Bench {
    const NAME: &'static str = "bench";
    type Step = ();
    type Item = Page;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        out.get(&self.url, ())?;
        Ok(())
    }

    async fn parse(&self, (): (), response: Response, out: &mut Out<Self>) -> CallbackResult {
        let anchors = response.css("a[href]");
        for href in hrefs(&anchors) {
            if let Ok(url) = response.join(href)
                && matches!(url.scheme(), "http" | "https")
            {
                out.request(Request::to_url(url, &())?)?;
            }
        }
        out.item(Page {
            url: response.url().to_string(),
            title: response.css("title::text").get(),
            price: response.css("span.price::text").get(),
            links: anchors.len(),
        });
        Ok(())
    }
}
