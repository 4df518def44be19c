//! Which address of the bookshop answers what, and the little it remembers: transient failures already shown, and counters.
//!
//! It remembers at most two ids per block of products; everything else follows from the request.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, HOST, LOCATION, RETRY_AFTER, SET_COOKIE, VARY};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::dice::mix;
use super::special::Special;
use super::stats::Stats;
use super::truth::Truth;
use super::{Delays, address, feeds, pages};
use crate::http_server::{Answer, Asked, Reply, ReplyBody};

/// Pieces of `/__truth` that wait for a slow reader; the computation waits with them.
const PIECES: usize = 2;
/// The one account of the shop; its login page shows both.
const ACCOUNT: (&str, &str) = ("reader", "bookworm");
const SESSION: &str = "session";
const SESSION_SALT: u64 = 0x10c1;
const SLOW_SALT: u64 = 0x510e;

/// The bookshop as a set of answers.
#[derive(Debug)]
pub(crate) struct Shop {
    truth: Truth,
    delays: Delays,
    /// Products whose transient failure has been shown.
    shown: Mutex<HashSet<u32>>,
    stats: Stats,
}

impl Shop {
    pub(crate) fn new(truth: Truth, delays: Delays) -> Self {
        Self { truth, delays, shown: Mutex::default(), stats: Stats::default() }
    }

    async fn route(&self, asked: &Asked) -> Reply {
        let segments: Vec<&str> = asked.path.split('/').skip(1).take(5).collect();
        let login = segments.as_slice() == ["login"];
        if asked.method == Method::POST && login {
            return self.log_in(asked);
        }
        if asked.method != Method::GET && asked.method != Method::HEAD {
            let text = format!("This address does not take {}.", asked.method);
            let allow = if login { "GET, HEAD, POST" } else { "GET, HEAD" };
            return Reply::html(StatusCode::METHOD_NOT_ALLOWED, pages::error("Not allowed", &text)).with(ALLOW, allow);
        }
        let page = || page_number(asked).unwrap_or(0);
        let catalog = self.truth.catalog();
        match segments.as_slice() {
            [""] => ok(pages::home(catalog)),
            ["category", name] => {
                let found = super::catalog::Catalog::shelf_named(name);
                found.and_then(|(at, shelf)| pages::shelf(catalog, at, shelf, page())).map_or_else(missing, ok)
            }
            ["products", name] => self.product(asked, name).await,
            ["authors", name] => self.author(name),
            ["p", id] => number(id).filter(|id| catalog.sells(*id)).map_or_else(missing, |id| {
                let status = StatusCode::from_u16(catalog.special.moved_status(id)).unwrap_or(StatusCode::FOUND);
                redirect(status, &address::product(&catalog.book(id)))
            }),
            ["moved", name] | ["moved", name, "again"] => {
                number(name).filter(|number| *number < catalog.special.loops()).map_or_else(missing, |number| {
                    let [one, other] = address::redirect_loop(number);
                    redirect(StatusCode::FOUND, if asked.path == one { &other } else { &one })
                })
            }
            ["staff-picks"] => pages::staff_picks(&self.truth, page()).map_or_else(missing, ok),
            ["old-links"] => pages::old_links(&self.truth, page()).map_or_else(missing, ok),
            ["about"] => ok(pages::about()),
            ["contact"] => ok(pages::contact()),
            ["login"] => ok(pages::login(None)),
            ["account"] if self.has_session(asked) => ok(pages::account()).with(CACHE_CONTROL, "private, no-store"),
            ["account"] => redirect(StatusCode::FOUND, "/login"),
            ["cart"] => ok(pages::cart()),
            ["private", ..] => ok(pages::private()),
            ["search"] => self.search(asked).await,
            ["images", file] => {
                let id = file.strip_suffix(".svg").and_then(number).filter(|id| catalog.sells(*id));
                id.map_or_else(missing, |id| svg(pages::cover(&catalog.book(id))))
            }
            ["favicon.svg"] => svg(favicon()),
            _ => self.machine_route(asked, &segments, page()),
        }
    }

    fn machine_route(&self, asked: &Asked, segments: &[&str], page: u32) -> Reply {
        let base = base(&asked.headers);
        match segments {
            ["robots.txt"] => Reply::new(StatusCode::OK, "text/plain; charset=utf-8", feeds::robots(&base)),
            ["sitemap.xml"] => xml(feeds::sitemap(&self.truth, &base)),
            ["api", "products"] => api(feeds::api_products(&self.truth, &base, page)),
            ["api", "products", id] => api(number(id).and_then(|id| feeds::api_product(&self.truth, &base, id))),
            ["__stats"] => json_reply(StatusCode::OK, &self.stats.to_json()),
            ["__truth"] => self.tell_truth(base, &asked.method),
            [file] => {
                let part = file.strip_prefix("sitemap-").and_then(|rest| rest.strip_suffix(".xml")).and_then(number);
                part.and_then(|part| feeds::sitemap_part(&self.truth, &base, part)).map_or_else(missing, xml)
            }
            _ => missing(),
        }
    }

    async fn product(&self, asked: &Asked, name: &str) -> Reply {
        let catalog = self.truth.catalog();
        let Some(id) = leading_number(name).filter(|id| catalog.sells(*id)) else { return missing() };
        let book = catalog.book(id);
        let own = address::product(&book);
        if asked.path != own {
            return redirect(StatusCode::MOVED_PERMANENTLY, &own);
        }
        let special = catalog.special.of(id);
        match special {
            Some(Special::AlwaysFails) => {
                return Reply::html(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    pages::error("Something broke", "The shelf behind this page has collapsed."),
                );
            }
            Some(Special::FailsOnce) if self.first_time(id, asked) => {
                return Reply::html(StatusCode::SERVICE_UNAVAILABLE, pages::error("Just a moment", "The shop is being dusted."));
            }
            Some(Special::RateLimited) if self.first_time(id, asked) => {
                let reply = Reply::html(
                    StatusCode::TOO_MANY_REQUESTS,
                    pages::error("Too many requests", "One reader at a time, please."),
                );
                return reply.with(RETRY_AFTER, "1");
            }
            Some(Special::Slow) => tokio::time::sleep(self.slow_time(id)).await,
            _ => {}
        }
        let page = pages::product(catalog, &book);
        match special {
            Some(Special::BrokenHtml) => ok(pages::broken(&page)),
            Some(Special::Windows1252) => {
                // Half of them are declared in the page alone.
                let content_type = if id.is_multiple_of(2) { "text/html" } else { "text/html; charset=windows-1252" };
                Reply::new(StatusCode::OK, content_type, pages::windows_1252(&page))
            }
            Some(Special::Gzip) => gzip(page, &asked.headers),
            _ => ok(page),
        }
    }

    fn author(&self, name: &str) -> Reply {
        let catalog = self.truth.catalog();
        let Some(id) = leading_number(name) else { return missing() };
        let mut books = catalog.books_of(id);
        if books.is_empty() {
            return missing();
        }
        books.sort_unstable();
        let author = catalog.author(id);
        let own = address::author(&author);
        if own.strip_prefix("/authors/") != Some(name) {
            return redirect(StatusCode::MOVED_PERMANENTLY, &own);
        }
        ok(pages::author(catalog, &author, &books))
    }

    /// Whether this is the first GET for the product since the start. HEAD does not use up the failure.
    fn first_time(&self, id: u32, asked: &Asked) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.method == Method::GET { shown.insert(id) } else { !shown.contains(&id) }
    }

    fn slow_time(&self, id: u32) -> Duration {
        let Delays { slow_from, slow_to, .. } = self.delays;
        let range = u64::try_from(slow_to.saturating_sub(slow_from).as_millis()).unwrap_or(u64::MAX);
        slow_from + Duration::from_millis(mix(self.truth.catalog().seed, SLOW_SALT, u64::from(id)) % range.saturating_add(1))
    }

    async fn search(&self, asked: &Asked) -> Reply {
        let query = asked.parameter("q").unwrap_or_default();
        let catalog = self.truth.catalog().clone();
        // A search walks the whole stock; that must not hold up the pages.
        match tokio::task::spawn_blocking(move || pages::search(&catalog, &query)).await {
            Ok(page) => ok(page),
            Err(_) => Reply::html(StatusCode::SERVICE_UNAVAILABLE, pages::error("Just a moment", "The search is closing.")),
        }
    }

    fn log_in(&self, asked: &Asked) -> Reply {
        let given = (asked.form_field("username"), asked.form_field("password"));
        if given != (Some(ACCOUNT.0.to_owned()), Some(ACCOUNT.1.to_owned())) {
            return Reply::html(StatusCode::FORBIDDEN, pages::login(Some("Name or password is wrong.")));
        }
        redirect(StatusCode::SEE_OTHER, "/account")
            .with(SET_COOKIE, &format!("{SESSION}={}; Path=/; HttpOnly; SameSite=Lax", self.session()))
    }

    fn session(&self) -> String {
        format!("{:016x}", mix(self.truth.catalog().seed, SESSION_SALT, 0))
    }

    fn has_session(&self, asked: &Asked) -> bool {
        asked.cookie(SESSION) == Some(self.session().as_str())
    }

    fn tell_truth(&self, base: String, method: &Method) -> Reply {
        let reply = Reply::new(StatusCode::OK, "application/json", Bytes::new());
        if *method == Method::HEAD {
            return Reply { body: ReplyBody::Pieces(mpsc::channel(1).1), ..reply };
        }
        let (sender, pieces) = mpsc::channel(PIECES);
        tokio::spawn(feeds::stream_truth(self.truth.clone(), base, sender));
        Reply { body: ReplyBody::Pieces(pieces), ..reply }
    }
}

impl Answer for Shop {
    async fn answer(&self, asked: Asked) -> Reply {
        if !self.delays.every.is_zero() && !asked.path.starts_with("/__") {
            tokio::time::sleep(self.delays.every).await;
        }
        let reply = self.route(&asked).await;
        if !asked.path.starts_with("/__") {
            let status = reply.status.as_u16();
            if asked.query.is_empty() {
                self.stats.count(&asked.path, status);
            } else {
                self.stats.count(&format!("{}?{}", asked.path, asked.query), status);
            }
        }
        reply
    }
}

fn ok(page: String) -> Reply {
    Reply::html(StatusCode::OK, page)
}

fn missing() -> Reply {
    Reply::html(StatusCode::NOT_FOUND, pages::error("Not found", "We do not have this page, and nobody here remembers it."))
}

pub(super) fn redirect(status: StatusCode, target: &str) -> Reply {
    Reply::html(status, format!("<!DOCTYPE html>\n<title>Moved</title>\n<p>Moved to {}.</p>\n", super::text::escape(target)))
        .with(LOCATION, target)
}

fn svg(image: String) -> Reply {
    Reply::new(StatusCode::OK, "image/svg+xml", image).with(CACHE_CONTROL, "public, max-age=3600")
}

fn favicon() -> String {
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><rect width=\"32\" height=\"32\" rx=\"6\" fill=\"#8a3b12\"/>\
     <path d=\"M7 8h8v17H7zM17 8h8v17h-8z\" fill=\"#fbf9f5\"/></svg>\n"
        .to_owned()
}

fn xml(text: String) -> Reply {
    Reply::new(StatusCode::OK, "application/xml", text)
}

fn api(value: Option<Value>) -> Reply {
    value.map_or_else(
        || json_reply(StatusCode::NOT_FOUND, &json!({"error": "there is no such product or page"})),
        |value| json_reply(StatusCode::OK, &value),
    )
}

fn json_reply(status: StatusCode, value: &Value) -> Reply {
    Reply::new(status, "application/json", format!("{value}\n"))
}

/// The page as gzip, unless the request names encodings and leaves gzip out.
fn gzip(page: String, headers: &HeaderMap) -> Reply {
    let refused = headers.get(ACCEPT_ENCODING).is_some_and(|value| !takes_gzip(value.to_str().unwrap_or_default()));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(page.as_bytes()).and_then(|()| encoder.finish());
    let reply = match packed {
        Ok(packed) if !refused => Reply::new(StatusCode::OK, "text/html; charset=utf-8", packed).with(CONTENT_ENCODING, "gzip"),
        _ => ok(page),
    };
    reply.with(VARY, "Accept-Encoding")
}

fn takes_gzip(accept: &str) -> bool {
    accept.split(',').any(|part| {
        let mut pieces = part.split(';').map(str::trim);
        let coding = pieces.next().unwrap_or_default();
        let weight =
            pieces.find_map(|piece| piece.strip_prefix("q=")).and_then(|weight| weight.parse::<f32>().ok()).unwrap_or(1.0);
        weight > 0.0 && (coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") || coding == "*")
    })
}

/// Scheme and host as the client sees them. A host that could break out of an attribute or a header is replaced.
fn base(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).filter(|host| !host.is_empty());
    let host =
        host.filter(|host| host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']')));
    format!("http://{}", host.unwrap_or("localhost"))
}

/// The `page` parameter: 1 when there is none, None when it is no page number.
fn page_number(asked: &Asked) -> Option<u32> {
    asked.parameter("page").map_or(Some(1), |text| number(&text))
}

/// A plain decimal number without sign or leading zeros.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

/// The number before the first hyphen, or the whole.
fn leading_number(text: &str) -> Option<u32> {
    number(text.split('-').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn gzip_is_left_out_only_when_the_request_says_so() {
        for (accept, expected) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(accept), expected, "{accept}");
        }
    }

    #[test]
    fn numbers_have_one_spelling() {
        let cases = [
            ("0", Some(0)),
            ("12", Some(12)),
            ("", None),
            ("012", None),
            ("+1", None),
            ("-1", None),
            ("1.5", None),
            ("4294967296", None),
            ("٣", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text), expected, "{text}");
        }
        assert_eq!(leading_number("12-a-title"), Some(12));
        assert_eq!(leading_number("-12"), None);
    }

    #[test]
    fn a_host_that_is_no_host_is_not_echoed() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "a\"><script>".parse().unwrap());
        assert_eq!(base(&headers), "http://localhost");
        headers.insert(HOST, "[::1]:8000".parse().unwrap());
        assert_eq!(base(&headers), "http://[::1]:8000");
    }

    #[test]
    fn a_slow_page_keeps_within_its_limits() {
        let shop = Shop::new(Truth::new(100, 1), Delays::default());
        for id in 1..=100 {
            assert!((Duration::from_millis(300)..=Duration::from_secs(1)).contains(&shop.slow_time(id)));
        }
        let none = Shop::new(Truth::new(100, 1), Delays::none());
        assert_eq!(none.slow_time(7), Duration::ZERO);
    }

    #[tokio::test]
    async fn no_address_and_no_query_makes_the_shop_panic() {
        let shop = Shop::new(Truth::new(60, 1), Delays::none());
        let starts = [
            "",
            "products/",
            "authors/",
            "p/",
            "moved/",
            "category/poetry",
            "images/",
            "api/products/",
            "staff-picks",
            "old-links",
            "search",
            "sitemap-",
            "private/",
            "__stats",
        ];
        let ends = [
            "",
            "0",
            "1",
            "61",
            "4294967295",
            "4294967296",
            "-",
            "1-",
            "1-x",
            "-1",
            "%",
            "%zz",
            "..",
            "é",
            "1.svg",
            "/again",
            "1/again",
            "/////",
            "\0",
            "1.xml",
        ];
        let queries =
            ["", "page=1", "page=0", "page=-1", "page=99999999999999999999", "page=%ff", "&&==&", "q=%00%ff", "page", "q=é&q"];
        for start in starts {
            for path in ends.map(|end| format!("/{start}{end}")) {
                for query in queries {
                    let asked = Asked {
                        peer: std::net::Ipv4Addr::LOCALHOST.into(),
                        method: Method::GET,
                        path: path.clone(),
                        query: query.to_owned(),
                        headers: HeaderMap::new(),
                        body: Bytes::new(),
                    };
                    let status = shop.answer(asked).await.status.as_u16();
                    assert!([200, 301, 302, 307, 308, 404, 429, 500, 503].contains(&status), "{status} for {path}?{query}");
                }
            }
        }
    }
}
