//! What machines read: robots.txt, sitemaps, the JSON API, and the streamed `/__truth`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::address;
use super::shelves::SHELVES;
use super::text::{escape, put};
use super::truth::{RULE, Truth};

/// How many addresses one sitemap holds. A shop with more gets an index.
pub(crate) const SITEMAP_PART: u32 = 5_000;
/// Bytes that are gathered before a piece of `/__truth` is sent.
const PIECE: usize = 32 * 1_024;

pub(crate) fn robots(base: &str) -> String {
    format!("User-agent: *\nDisallow: /private/\nDisallow: /cart\n\nSitemap: {base}/sitemap.xml\n")
}

/// `/sitemap.xml`: all addresses, or an index of parts.
pub(crate) fn sitemap(truth: &Truth, base: &str) -> String {
    let parts = sitemap_parts(truth);
    if parts == 1 {
        return urlset(truth, base, 0);
    }
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for part in 1..=parts {
        put!(out, "<sitemap><loc>{base}/sitemap-{part}.xml</loc></sitemap>\n");
    }
    out.push_str("</sitemapindex>\n");
    out
}

/// `/sitemap-N.xml`; None when the shop is small enough for one sitemap, or has no such part.
pub(crate) fn sitemap_part(truth: &Truth, base: &str, part: u32) -> Option<String> {
    let parts = sitemap_parts(truth);
    (parts > 1 && part >= 1 && part <= parts).then(|| urlset(truth, base, part - 1))
}

fn sitemap_parts(truth: &Truth) -> u32 {
    address::pages(fixed_entries() + truth.catalog().products, SITEMAP_PART)
}

fn fixed_entries() -> u32 {
    u32::try_from(SHELVES.len()).unwrap_or(0) + 3
}

fn urlset(truth: &Truth, base: &str, part: u32) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    let fixed = ["/", "/about", "/contact"]
        .into_iter()
        .map(str::to_owned)
        .chain(SHELVES.iter().map(|shelf| address::shelf(shelf.slug, 1)));
    let catalog = truth.catalog();
    let first = part * SITEMAP_PART;
    let last = first + SITEMAP_PART;
    for (_, path) in (0..).zip(fixed).filter(|(at, _): &(u32, String)| (first..last).contains(at)) {
        put!(out, "<url><loc>{base}{}</loc></url>\n", escape(&path));
    }
    let products = first.saturating_sub(fixed_entries())..last.saturating_sub(fixed_entries()).min(catalog.products);
    for id in products.map(|at| at + 1) {
        put!(out, "<url><loc>{base}{}</loc><priority>0.8</priority></url>\n", escape(&address::product(&catalog.book(id))));
    }
    out.push_str("</urlset>\n");
    out
}

/// A page of `/api/products`; None when there is no such page.
pub(crate) fn api_products(truth: &Truth, base: &str, page: u32) -> Option<Value> {
    let products = truth.catalog().products;
    let pages = address::pages(products, address::LISTING);
    if page == 0 || page > pages {
        return None;
    }
    let first = (page - 1) * address::LISTING + 1;
    let list: Vec<_> = (first..=products.min(first + address::LISTING - 1)).map(|id| truth.product(id).on(base)).collect();
    let next = (page < pages).then(|| format!("{base}/api/products?page={}", page + 1));
    Some(json!({"count": products, "page": page, "pages": pages, "next": next, "products": list}))
}

/// `/api/products/ID`; None when the shop does not sell it.
pub(crate) fn api_product(truth: &Truth, base: &str, id: u32) -> Option<Value> {
    truth.catalog().sells(id).then(|| json!(truth.product(id).on(base)))
}

/// Sends `/__truth` piece by piece, and gives up when the reader is gone.
pub(crate) async fn stream_truth(truth: Truth, base: String, pieces: mpsc::Sender<Bytes>) {
    let mut out = String::with_capacity(PIECE + 1_024);
    let catalog = truth.catalog();
    put!(
        out,
        "{{\"base\":{},\"products_sold\":{},\"seed\":{},\"rule\":{},\n\"pages\":[",
        json!(format!("{base}/")),
        catalog.products,
        catalog.seed,
        json!(RULE)
    );
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut special: BTreeMap<&str, u64> = BTreeMap::new();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut pages, mut transient, mut products) = (0_u64, 0_u64, 0_u64);
    for page in truth.pages() {
        out.push_str(if pages == 0 { "\n" } else { ",\n" });
        pages += 1;
        transient += u64::from(page.first_status.is_some());
        *kinds.entry(page.kind.name()).or_default() += 1;
        *statuses.entry(page.status).or_default() += 1;
        if let Some(name) = page.special {
            *special.entry(name).or_default() += 1;
        }
        put!(out, "{}", json!(page.on(&base)));
        if out.len() >= PIECE && pieces.send(Bytes::from(std::mem::take(&mut out))).await.is_err() {
            return;
        }
    }
    out.push_str("\n],\n\"products\":[");
    for product in truth.products() {
        out.push_str(if products == 0 { "\n" } else { ",\n" });
        products += 1;
        put!(out, "{}", json!(product.on(&base)));
        if out.len() >= PIECE && pieces.send(Bytes::from(std::mem::take(&mut out))).await.is_err() {
            return;
        }
    }
    let statuses: BTreeMap<String, u64> = statuses.into_iter().map(|(status, number)| (status.to_string(), number)).collect();
    let counts = json!({"pages": pages, "products": products, "fail_first": transient, "by_kind": kinds, "by_special": special, "by_status": statuses});
    put!(out, "\n],\n\"counts\":{counts}}}\n");
    // Nothing follows the last piece, so a reader that is gone does not matter.
    let _ = pieces.send(Bytes::from(out)).await;
}
