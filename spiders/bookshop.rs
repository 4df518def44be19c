//! The demo bookshop from end to end: every page that robots.txt allows, every product and every author.
//!
//! Start the shop with `dragline site`, then `dragline crawl bookshop -a url=http://127.0.0.1:8000/ -o books.jsonl`.

use dragline::prelude::*;

steps! {
    pub(crate) enum Step for Bookshop {
        Listing => listing,
        Product => product,
        Author => author,
    }
}

/// Crawls the shop at `url`.
#[derive(Debug, Deserialize)]
pub(crate) struct Bookshop {
    #[serde(deserialize_with = "web_address")]
    url: Url,
}

/// What the shop gives: books, and the people who wrote them. A book's `author_url` is its author's `url`.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Found {
    Product(Product),
    Author(Author),
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Product {
    url: String,
    upc: String,
    title: String,
    price: String,
    currency: String,
    availability: String,
    stock: u32,
    rating: u32,
    category: String,
    author: String,
    author_url: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Author {
    url: String,
    name: String,
    birth_date: String,
    birth_year: u32,
    birth_place: String,
}

impl Spider for Bookshop {
    const NAME: &'static str = "bookshop";
    type Step = Step;
    type Item = Found;

    fn allowed_domains(&self) -> Vec<String> {
        self.url.host_str().map(str::to_owned).into_iter().collect()
    }

    fn settings() -> SpiderSettings {
        // Where the shop listens in practice; an address elsewhere needs a rule in the settings file.
        let rule = json!([{"domains": ["127.0.0.1", "localhost", "bookshop.example"], "site": "bookshop", "client": "web"}]);
        vec![("LEASES", rule)]
    }

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        out.get(self.url.as_str(), step_of(&self.url))?;
        Ok(())
    }

    async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        // A full crawl follows every link of every page; what leaves the shop is dropped as offsite.
        out.follow(&response, "a[href]", step_of);
        self.dispatch(step, response, out).await
    }
}

impl Bookshop {
    async fn listing(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.stats().inc("bookshop/listings");
        if response.css("main a[href]").is_empty() {
            response.mark("empty_list");
        }
        Ok(())
    }

    async fn product(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        // The same book has several addresses; each page says which one is its own.
        let own = text(&response, "link[rel=canonical]::attr(href)")?;
        let own = response.join(&own)?;
        if own != *response.url() {
            out.stats().inc("bookshop/second_addresses");
            return Ok(());
        }
        let page = response.css("article.product");
        let price = text(&response, "p.price::text")?;
        let availability = text(&response, "p.availability::text")?;
        let author = page.css("p.author a");
        out.item(Found::Product(Product {
            url: own.to_string(),
            upc: text(&response, "article.product::attr(data-sku)")?,
            title: text(&response, "article.product h1::text")?,
            currency: if price.starts_with('£') { "GBP" } else { "" }.to_owned(),
            price: price.trim_start_matches('£').to_owned(),
            stock: page.css("p.availability::text").re_first(r"\d+").map_or(Ok(0), |copies| copies.parse())?,
            availability,
            rating: text(&response, "p.rating::attr(data-rating)")?.parse()?,
            category: text(&response, "nav.breadcrumb li:nth-child(2) a::text")?,
            author: author.text().ok_or_else(|| CallbackError::new("the page names no author"))?,
            author_url: response.join(author.attr("href").unwrap_or_default())?.to_string(),
        }));
        Ok(())
    }

    async fn author(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        let birth_date = text(&response, "time.author-born-date::attr(datetime)")?;
        out.item(Found::Author(Author {
            url: response.url().to_string(),
            name: text(&response, "h1.author-title::text")?,
            birth_year: birth_date.split('-').next().unwrap_or_default().parse()?,
            birth_date,
            birth_place: text(&response, "span.author-born-location::text")?.trim_start_matches("in ").to_owned(),
        }));
        Ok(())
    }
}

/// The callback an address goes to; `/p/` is where products used to be, and redirects.
fn step_of(url: &Url) -> Step {
    match url.path() {
        path if path.starts_with("/products/") || path.starts_with("/p/") => Step::Product,
        path if path.starts_with("/authors/") => Step::Author,
        _ => Step::Listing,
    }
}

/// Reads `-a url=`, so that a slip in it is told before the crawl starts.
fn web_address<'de, D: serde::Deserializer<'de>>(argument: D) -> Result<Url, D::Error> {
    let text = String::deserialize(argument)?;
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| serde::de::Error::custom(format!("url is {text:?}; write it in full, like http://127.0.0.1:8000/")))
}

/// A field the page must have: a page without it is an error that names the selector, not an item with a hole.
fn text(response: &Response, selector: &str) -> Result<String, CallbackError> {
    let found = response.css(selector).get().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    found.ok_or_else(|| CallbackError::new(format!("nothing at {selector:?}; the page's structure has changed")))
}
