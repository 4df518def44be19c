//! The running sites, asked over real HTTP. Shared here: a client, a site without delays, and reading a page as a browser would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod crawl;
mod quotations;
mod serving;

use std::io::Read as _;
use std::sync::Once;

use reqwest::{Client, Response};
use serde_json::Value;
use url::Url;

use super::{Delays, RunningSite, Site, SiteOptions};
use crate::html::{Page, Selection};

fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another test of this binary may have been first; any ring provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Client::builder().no_proxy().tls_backend_preconfigured(tls).redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

async fn site(products: u32, seed: u64) -> RunningSite {
    Site::start(SiteOptions { products, seed, delays: Delays::none(), ..SiteOptions::default() }).await.unwrap()
}

async fn json_at(client: &Client, url: Url) -> Value {
    serde_json::from_slice(&client.get(url).send().await.unwrap().bytes().await.unwrap()).unwrap()
}

/// The text of a page: content encoding undone, charset from the header, then from a meta element, then UTF-8.
async fn text(response: Response) -> String {
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let (content_type, encoding) = (header("content-type"), header("content-encoding"));
    let mut bytes = response.bytes().await.unwrap().to_vec();
    if encoding == "gzip" {
        let packed = std::mem::take(&mut bytes);
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).into_owned();
    let declared = content_type.split_once("charset=").map(|(_, name)| name.to_owned());
    let declared = declared.or_else(|| Some(head.split_once("<meta charset=\"")?.1.split('"').next()?.to_owned()));
    let charset = encoding_rs::Encoding::for_label(declared.unwrap_or_default().as_bytes()).unwrap_or(encoding_rs::UTF_8);
    let (text, _, errors) = charset.decode(&bytes);
    assert!(!errors, "a page is not in the charset it declares");
    text.into_owned()
}

fn links(page: &str, base: &Url) -> Vec<Url> {
    Page::parse(page).css("a[href]::attr(href)").strs().filter_map(|href| base.join(href.trim()).ok()).collect()
}

/// All text in the first element that a selector finds in a selection, trimmed.
fn first_text(page: &Selection<'_>, selector: &str) -> String {
    let found = page.css(selector);
    let node = found.nodes().next().unwrap_or_else(|| panic!("no {selector}"));
    node.text().trim().to_owned()
}
