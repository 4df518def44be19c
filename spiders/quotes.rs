//! Quotations and their authors from quotes.toscrape.com, a public site made for practice.
//!
//! `-a url=http://…` crawls a copy of it instead.

use dragline::prelude::*;

steps! {
    pub(crate) enum Step for Quotes {
        Page => page,
        Author => author,
    }
}

/// Crawls the site at `url`.
#[derive(Debug, Deserialize)]
pub(crate) struct Quotes {
    #[serde(default = "practice_site")]
    url: String,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Found {
    Quote { text: String, author: String, tags: Vec<String> },
    Author { name: String, born: String, birthplace: String, description: String },
}

fn practice_site() -> String {
    "https://quotes.toscrape.com/".to_owned()
}

impl Spider for Quotes {
    const NAME: &'static str = "quotes";
    type Step = Step;
    type Item = Found;

    fn allowed_domains(&self) -> Vec<String> {
        Url::parse(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned)).into_iter().collect()
    }

    fn settings() -> SpiderSettings {
        vec![("DOWNLOAD_DELAY", json!(0.1)), ("CONCURRENT_REQUESTS_PER_DOMAIN", json!(4))]
    }

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        out.get(&self.url, Step::Page)?;
        Ok(())
    }

    async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        self.dispatch(step, response, out).await
    }
}

impl Quotes {
    async fn page(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        for quote in response.css("div.quote").iter() {
            out.item(Found::Quote {
                text: quote.css("span.text::text").get().unwrap_or_default(),
                author: quote.css("small.author::text").get().unwrap_or_default(),
                tags: quote.css("a.tag::text").getall(),
            });
        }
        out.follow(&response, "small.author + a", |_| Step::Author);
        out.follow(&response, "li.next > a", |_| Step::Page);
        Ok(())
    }

    async fn author(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        let field = |selector: &str| response.css(selector).text().unwrap_or_default();
        out.item(Found::Author {
            name: field("h3.author-title"),
            born: field("span.author-born-date"),
            birthplace: field("span.author-born-location").trim_start_matches("in ").to_owned(),
            description: field("div.author-description"),
        });
        Ok(())
    }
}
