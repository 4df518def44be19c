//! A link checker: visits every page of a site and every address its pages link to, and gives an item for each: what
//! answered, or why nothing did, and on which page the link was found.
//!
//! `dragline crawl links -a urls=https://shop.example/ -o links.jsonl`, then look for items with an `error`.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use dragline::api::Sitemaps;
use dragline::prelude::*;
use dragline::web::media_type::MediaType;

steps! {
    pub(crate) enum Step for Links {
        Sitemap => sitemap,
        Page { found_on: Option<Found> } => page,
    }
}

/// Where a link was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    page: String,
    /// The host of the site that is checked.
    site: String,
}

/// Checks the pages at `urls`, those that `file` lists, one a line, and those of `sitemaps`, which may be addresses of
/// sitemaps, of indexes, or of robots.txt files that name them.
#[derive(Debug, Deserialize)]
pub(crate) struct Links {
    #[serde(default)]
    urls: Vec<String>,
    #[serde(default)]
    file: Option<PathBuf>,
    #[serde(default)]
    sitemaps: Vec<String>,
    #[serde(skip, default = "every_page")]
    reader: Sitemaps<Step>,
    /// Whose links are followed in turn.
    #[serde(default)]
    follow: Follow,
    /// The `Cookie` header of the first requests, `name=value; other=value`.
    #[serde(default)]
    cookies: String,
    /// How many characters of each page's text its item shows.
    #[serde(default)]
    excerpt: usize,
}

fn every_page() -> Sitemaps<Step> {
    Sitemaps::new(Step::Sitemap).rule("", |_| Step::Page { found_on: None })
}

/// Which pages have their links followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Follow {
    /// Pages of the hosts that the first URLs lead to; what they link to elsewhere is checked, but leads no further.
    #[default]
    Site,
    /// Every page.
    All,
    /// None.
    None,
}

/// One address that was checked.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Checked {
    /// The URL that answered, after redirects.
    url: String,
    /// The URL of the link, where a redirect led elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    redirected_from: Option<String>,
    /// The page that links to it; none for the first ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The kind of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    /// Links on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<usize>,
    /// The body ended early and was kept (`DOWNLOAD_FAIL_ON_DATALOSS` off).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    data_loss: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Spider for Links {
    const NAME: &'static str = "links";
    type Step = Step;
    type Item = Checked;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        if self.urls.is_empty() && self.file.is_none() && self.sitemaps.is_empty() {
            let ways = "give -a urls=https://…, -a sitemaps=https://…/robots.txt or -a file=PATH with one URL a line";
            return Err(CallbackError::new(format!("there is nothing to check: {ways}")));
        }
        self.reader.start(&self.sitemaps, out).await?;
        for url in &self.urls {
            out.send(self.first(url)?).await?;
        }
        if let Some(path) = &self.file {
            let named = |error| CallbackError::new(format!("{}: {error}", path.display()));
            for line in BufReader::new(std::fs::File::open(path).map_err(named)?).lines() {
                let line = line.map_err(named)?;
                if !line.trim().is_empty() {
                    out.send(self.first(line.trim())?).await?;
                }
            }
        }
        Ok(())
    }

    async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        self.dispatch(step, response, out).await
    }

    async fn failed(&self, step: Step, failure: Failure, out: &mut Out<Self>) -> CallbackResult {
        let found_on = if let Step::Page { found_on } = step { found_on } else { None };
        out.item(Checked {
            url: failure.request().url().to_string(),
            found_on: found_on.map(|found| found.page),
            status: failure.response().map(|response| response.status().as_u16()),
            error: Some(failure.kind().name()),
            reason: Some(failure.message().to_owned()),
            ..Checked::default()
        });
        Ok(())
    }
}

impl Links {
    fn first(&self, url: &str) -> Result<Request, CallbackError> {
        let mut request = Request::get(url, &Step::Page { found_on: None })?;
        for (name, value) in self.cookies.split(';').filter_map(|cookie| cookie.trim().split_once('=')) {
            request.cookie(name, value);
        }
        Ok(request)
    }

    async fn sitemap(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        self.reader.read(&response, out).await?;
        Ok(())
    }

    async fn page(&self, response: Response, out: &mut Out<Self>, found_on: Option<Found>) -> CallbackResult {
        let url = response.url().to_string();
        let is_html = MediaType::of_headers(response.headers()).is_none_or(|kind| kind.is_html());
        let links = if is_html { response.links() } else { Vec::new() };
        let count = links.len();
        let host = response.url().host_str().unwrap_or_default();
        let site = found_on.as_ref().map_or(host, |found| &found.site).to_owned();
        let follows = match self.follow {
            Follow::All => true,
            Follow::Site => site == host,
            Follow::None => false,
        };
        if follows {
            let step = Step::Page { found_on: Some(Found { page: url.clone(), site }) };
            for link in links {
                out.send(Request::to_url(link.url, &step)?).await?;
            }
        }
        out.item(Checked {
            redirected_from: (response.requested_url() != url).then(|| response.requested_url().to_owned()),
            url,
            found_on: found_on.map(|found| found.page),
            status: Some(response.status().as_u16()),
            title: is_html.then(|| response.css("title::text").get()).flatten(),
            encoding: is_html.then(|| response.encoding()),
            links: is_html.then_some(count),
            data_loss: response.flags().data_loss,
            text: (self.excerpt > 0).then(|| response.text().chars().take(self.excerpt).collect()),
            ..Checked::default()
        });
        Ok(())
    }
}
