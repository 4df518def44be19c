//! What is done with each kind of input, and what must hold whatever it is.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use jiff::Timestamp;
use url::Url;

use super::corpus::Rng;
use crate::html::{Document, Limits as PageLimits, ParseOptions};
use crate::web::canonical::{canonicalize, wire_fingerprint};
use crate::web::charset;
use crate::web::cookies::{Jar, MAX_PER_DOMAIN, registrable_domain};
use crate::web::key::seen_key;
use crate::web::location::resolve_location;
use crate::web::media_type::MediaType;
use crate::web::reference::{join_url, parse_url};
use crate::web::retry_after::{parse_http_date, retry_after};
use crate::web::robots::Robots;
use crate::web::sitemap::{Limits, MAX_FIELD_BYTES, MAX_PER_ENTRY, Sitemap, parse_lastmod};

fn url(text: &str) -> Url {
    parse_url(text).unwrap()
}

pub(super) fn robots(bytes: &[u8], rng: &mut Rng) {
    let robots = Robots::parse(bytes);
    let agent = rng.pick(&["bot", "Dragline/1.0", "", "*", "Foo Bot", "é"]);
    for path in ["/", "/robots.txt", "/a/b.html?x=%2A", "/%e3%83%84/*$", "/fish/salmon.php"] {
        let page = url(&format!("http://h.test{path}"));
        let answer = robots.allowed(agent, &page);
        assert_eq!(answer, robots.allowed(agent, &page));
        assert!(answer || path != "/robots.txt", "robots.txt itself is always allowed");
    }
    // Against a path that makes every asterisk try everything.
    let _ = robots.allowed(agent, &url(&format!("http://h.test/{}", "a/".repeat(1_000))));
    for wait in [robots.delay(agent), robots.crawl_delay(agent)].into_iter().flatten() {
        assert!(wait.as_secs_f64().is_finite());
    }
    let _ = (robots.request_rate(agent), robots.visit_time(agent));
    assert!(robots.sitemaps().iter().map(String::len).sum::<usize>() <= 4 * bytes.len());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The bytes as they are, or for a quarter of the inputs packed once or twice.
fn packed<'b>(bytes: &'b [u8], rng: &mut Rng) -> Cow<'b, [u8]> {
    match rng.below(8) {
        0 => gzip(bytes).into(),
        1 => gzip(&gzip(bytes)).into(),
        _ => bytes.into(),
    }
}

pub(super) fn sitemap(bytes: &[u8], rng: &mut Rng) {
    let bytes = &*packed(bytes, rng);
    let mut limits = Limits::default();
    if rng.one_in(2) {
        limits.bytes = 1 << rng.below(21);
        limits.entries = u64::try_from(rng.below(100)).unwrap();
    }
    let kinds = [None, Some("text/xml; charset=utf-16"), Some("application/x-gzip"), Some("text/plain; charset=gbk")];
    let document = url("http://h.test/sitemap.xml");
    let mut sitemap = Sitemap::new(bytes, kinds[rng.below(kinds.len())], &document, limits);
    let mut entries = 0;
    for entry in sitemap.by_ref() {
        entries += 1;
        assert!(entries <= limits.entries, "more entries than allowed");
        assert!(!entry.loc.is_empty() && entry.loc.len() <= MAX_FIELD_BYTES, "{} bytes of loc", entry.loc.len());
        assert!(entry.alternates.len() <= MAX_PER_ENTRY && entry.images.len() <= MAX_PER_ENTRY);
        assert!(entry.url(&document).is_none_or(|url| matches!(url.scheme(), "http" | "https")));
        let _ = (entry.modified(), entry.priority_value());
    }
    let _ = (sitemap.cut(), parse_lastmod(&String::from_utf8_lossy(bytes.get(..64).unwrap_or(bytes))));
}

pub(super) fn set_cookie(bytes: &[u8], rng: &mut Rng) {
    let hosts =
        ["http://home.example.org/a/b", "https://shop.co.uk/", "http://127.0.0.1/", "https://[::1]/x", "http://localhost/"];
    let from = url(rng.pick(&hosts));
    let mut jar = Jar::new();
    // A line of the input is a field; what cannot be in a field never arrives.
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            jar.set(&from, [&value].into_iter());
        }
    }
    assert!(jar.len() <= 2 * MAX_PER_DOMAIN, "{} cookies of one page", jar.len());
    let again = Jar::from_json(&jar.to_json()).unwrap();
    for host in hosts.into_iter().chain(["http://example.org/", "https://other.co.uk/", "http://1.0.0.1/", "http://h.test/"]) {
        let to = url(host);
        let sent = jar.header(&to);
        assert_eq!(sent, again.header(&to), "saved and read again");
        let site = |url: &Url| registrable_domain(url.host_str().unwrap()).unwrap_or_else(|| url.host_str().unwrap().to_owned());
        assert!(sent.is_none() || site(&from) == site(&to), "a cookie of {from} goes to {to}");
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = (retry_after(&text, Timestamp::UNIX_EPOCH), parse_http_date(&text, Timestamp::UNIX_EPOCH));
}

pub(super) fn location(bytes: &[u8], rng: &mut Rng) {
    let bases = ["http://h.test/a/b?c#d", "https://u:p@h.test:8443/", "http://[::1]/x/", "file:///a/b", "data:text/plain,x"];
    let base = url(rng.pick(&bases));
    let _ = join_url(&base, &String::from_utf8_lossy(bytes));
    let text = String::from_utf8_lossy(bytes);
    let _ = (canonicalize(&text), wire_fingerprint("GET", &text));
    let Ok(target) = resolve_location(&base, bytes) else { return };
    assert_eq!(parse_url(target.as_str()).ok().as_ref(), Some(&target), "what is stored is read as itself");
    assert!(target.as_str().is_ascii() || !matches!(target.scheme(), "http" | "https"), "{target}");
    if matches!(target.scheme(), "http" | "https") {
        let once = canonicalize(target.as_str()).unwrap();
        assert_eq!(canonicalize(&once).unwrap(), once);
        assert_eq!(seen_key(&http::Method::GET, &target, b""), seen_key(&http::Method::GET, &url(target.as_str()), b""));
    }
}

pub(super) fn content_type(bytes: &[u8], rng: &mut Rng) {
    let text: String =
        if rng.one_in(2) { String::from_utf8_lossy(bytes).into_owned() } else { bytes.iter().copied().map(char::from).collect() };
    if let Some(media_type) = MediaType::parse(&text) {
        assert_eq!(MediaType::parse(&media_type.to_string()), Some(media_type), "{text:?}");
    }
    let _ = MediaType::from_fields([text.as_str(), "text/html; charset=utf-8"].into_iter());
    let (decoded, _) = charset::decode(bytes, Some(&text), Some(&text));
    assert!(decoded.len() <= 3 * bytes.len());
}

pub(super) fn html(bytes: &[u8], rng: &mut Rng) {
    let declared = [None, Some("text/html"), Some("text/html; charset=utf-16be"), Some("text/html; charset=iso-2022-jp")];
    let (text, _) = charset::decode(bytes, declared[rng.below(declared.len())], Some("test"));
    assert!(text.len() <= 3 * bytes.len(), "{} characters of {} bytes", text.len(), bytes.len());
    let limits = PageLimits::default();
    let document = Document::parse_with(&text, &ParseOptions::default().limits(limits));
    let allowed = limits.steps_for(text.len()).saturating_add(2 * 1_024);
    assert!(document.steps() <= allowed, "{} steps for {} bytes", document.steps(), text.len());
}
