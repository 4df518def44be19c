//! A small site of quotations with the page structure that crawling tutorials use: `div.quote` with `span.text`, `small.author` and
//! `a.tag`, `li.next > a`, author pages with `h3.author-title` and `span.author-born-date`, tag pages, a login with a CSRF token.
//!
//! Every quotation is put together from word lists of ours; nobody said any of them. It keeps nothing but a counter of sessions.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{ALLOW, SET_COOKIE};
use http::{Method, StatusCode};

use super::dice::{Dice, Shuffle, mix};
use super::routes::redirect;
use super::text::{capital, escape, put, slug};
use super::{BOUNDS, RunningSite, SiteError, words};
use crate::http_server::{self, Answer, Asked, Reply};

/// Quotations on one page.
pub const PER_PAGE: u32 = 10;
/// The most pages the site can have; every quotation is different.
pub const MAX_PAGES: u32 = 100;
const AUTHORS: u32 = 24;
const SESSION: &str = "session";

mod stream {
    pub(super) const ORDER: u64 = 0x9001;
    pub(super) const AUTHOR: u64 = 0x9002;
    pub(super) const TAGS: u64 = 0x9003;
    pub(super) const TOKEN: u64 = 0x9004;
    pub(super) const LOGGED_IN: u64 = 0x9005;
    pub(super) const NAMES: u64 = 0x9006;
}

const THINGS: [&str; 24] = [
    "patience",
    "a good map",
    "silence",
    "courage",
    "an open window",
    "memory",
    "a long walk",
    "doubt",
    "kindness",
    "a borrowed book",
    "luck",
    "hunger",
    "the first draft",
    "a slow train",
    "friendship",
    "curiosity",
    "an honest mistake",
    "rain",
    "work",
    "an empty page",
    "a clear question",
    "habit",
    "hope",
    "a locked door",
];

const CLAIMS: [&str; 20] = [
    "is the shortest way home",
    "asks for nothing and keeps everything",
    "is a teacher who never raises its voice",
    "makes a poor master and a fine companion",
    "arrives late and stays for supper",
    "is worth two good excuses",
    "never fits in the suitcase",
    "is only visible from behind",
    "grows when nobody measures it",
    "is half of every answer",
    "costs least when given early",
    "has no use for applause",
    "forgives everything but hurry",
    "is louder at night",
    "cannot be lent twice",
    "knows the way but not the hour",
    "is best shared with a stranger",
    "is the one thing we pack last",
    "begins where advice ends",
    "wears out every pair of shoes",
];

const FRAMES: [&str; 4] = ["{} {}.", "People forget that {} {}.", "My grandmother was right: {} {}.", "In the end, {} {}."];

const TAGS: [&str; 20] = [
    "life",
    "work",
    "books",
    "humour",
    "travel",
    "friendship",
    "courage",
    "time",
    "weather",
    "home",
    "learning",
    "silence",
    "hope",
    "change",
    "luck",
    "truth",
    "patience",
    "writing",
    "night",
    "advice",
];

/// How the quotations site is set up.
#[derive(Debug, Clone)]
pub struct QuotesOptions {
    /// Where to listen. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// How many pages of [`PER_PAGE`] quotations, 1 to [`MAX_PAGES`]; values outside are moved to the nearest bound.
    pub pages: u32,
    /// The same seed gives the same site.
    pub seed: u64,
}

impl Default for QuotesOptions {
    /// Ten pages on any free port of 127.0.0.1, seed 1.
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), pages: 10, seed: 1 }
    }
}

/// One quotation as the pages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The text with its quotation marks.
    pub text: String,
    /// The author's name.
    pub author: String,
    /// One to four tags.
    pub tags: Vec<&'static str>,
    author_number: u32,
}

/// One author as the author page shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteAuthor {
    /// The name.
    pub name: String,
    /// The last part of the page's path, such as `Orla-Kestrel`.
    pub slug: String,
    /// Such as `March 4, 1931`.
    pub born_date: String,
    /// Such as `in Port Ellery`.
    pub born_location: String,
}

/// Starts the quotations site and answers as soon as it listens.
///
/// # Errors
/// [`SiteError::PortInUse`], [`SiteError::Listen`] and [`SiteError::Address`], as for the bookshop.
pub async fn start(options: QuotesOptions) -> Result<RunningSite, SiteError> {
    let listen = options.listen;
    Ok(http_server::start(listen, BOUNDS, Arc::new(Quotes::new(&options))).await?)
}

/// All quotations of a site, in the order of its pages.
#[must_use]
pub fn all(options: &QuotesOptions) -> Vec<Quote> {
    let site = Quotes::new(options);
    (0..site.quotes).map(|at| site.quote(at)).collect()
}

/// The authors that at least one quotation of the site names.
#[must_use]
pub fn authors(options: &QuotesOptions) -> Vec<QuoteAuthor> {
    let site = Quotes::new(options);
    let named: std::collections::BTreeSet<u32> = (0..site.quotes).map(|at| site.quote(at).author_number).collect();
    named.into_iter().map(|number| site.author(number)).collect()
}

#[derive(Debug, Clone, Copy)]
enum Visitor {
    Guest,
    LoggedIn,
}

#[derive(Debug)]
struct Quotes {
    seed: u64,
    quotes: u32,
    order: Shuffle,
    sessions: AtomicU64,
}

impl Quotes {
    fn new(options: &QuotesOptions) -> Self {
        let kinds = u32::try_from(THINGS.len() * CLAIMS.len() * FRAMES.len()).unwrap_or(1);
        let quotes = options.pages.clamp(1, MAX_PAGES) * PER_PAGE;
        Self { seed: options.seed, quotes, order: Shuffle::new(options.seed, stream::ORDER, kinds), sessions: AtomicU64::new(1) }
    }

    fn quote(&self, at: u32) -> Quote {
        let choice = self.order.forward(at) as usize;
        let thing = THINGS.get(choice % THINGS.len()).copied().unwrap_or_default();
        let rest = choice / THINGS.len();
        let claim = CLAIMS.get(rest % CLAIMS.len()).copied().unwrap_or_default();
        let frame = FRAMES.get(rest / CLAIMS.len()).copied().unwrap_or_default();
        let text = frame.replacen("{}", thing, 1).replacen("{}", claim, 1);
        let mut dice = Dice::new(self.seed, stream::TAGS, u64::from(at));
        let author_number = dice.below(AUTHORS);
        let mut tags = Vec::with_capacity(4);
        for _ in 0..dice.between(1, 4) {
            let tag = dice.pick(&TAGS);
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Quote { text: format!("“{}”", capital(&text)), author: self.author(author_number).name, tags, author_number }
    }

    fn author(&self, number: u32) -> QuoteAuthor {
        let mut dice = Dice::new(self.seed, stream::AUTHOR, u64::from(number));
        let last = Shuffle::new(self.seed, stream::NAMES, 64).forward(number);
        let last = words::LAST_NAMES.get(last as usize).copied().unwrap_or_default();
        let first = dice.pick(&words::FIRST_NAMES);
        let name = format!("{first} {last}");
        let slug = name.split(' ').map(|part| capital(&slug(part))).collect::<Vec<_>>().join("-");
        let born_date = format!("{} {}, {}", dice.pick(&words::MONTHS), dice.between(1, 28), dice.between(1871, 1969));
        QuoteAuthor { name, slug, born_date, born_location: format!("in {}", dice.pick(&words::TOWNS)) }
    }

    fn page(&self, number: u32, visitor: Visitor) -> String {
        let first = number.saturating_sub(1).saturating_mul(PER_PAGE);
        let quotes: Vec<Quote> = (first..self.quotes.min(first.saturating_add(PER_PAGE))).map(|at| self.quote(at)).collect();
        let next = (first.saturating_add(PER_PAGE) < self.quotes).then_some(number + 1);
        self.list("", &quotes, "", number, next, visitor)
    }

    fn tag_page(&self, tag: &str, number: u32, visitor: Visitor) -> String {
        let tagged = (0..self.quotes).map(|at| self.quote(at)).filter(|quote| quote.tags.contains(&tag));
        let skipped = number.saturating_sub(1).saturating_mul(PER_PAGE) as usize;
        let mut quotes: Vec<Quote> = tagged.skip(skipped).take(PER_PAGE as usize + 1).collect();
        let next = (quotes.len() > PER_PAGE as usize).then_some(number + 1);
        quotes.truncate(PER_PAGE as usize);
        let title = format!("<h3>Viewing tag: <a href=\"/tag/{0}/page/1/\">{0}</a></h3>\n", escape(tag));
        self.list(&title, &quotes, &format!("/tag/{tag}"), number, next, visitor)
    }

    fn list(&self, title: &str, quotes: &[Quote], path: &str, number: u32, next: Option<u32>, visitor: Visitor) -> String {
        let mut main = format!("{title}<div class=\"row\">\n<div class=\"col-md-8\">\n");
        if quotes.is_empty() {
            main.push_str("No quotes found!\n");
        }
        for quote in quotes {
            put!(
                main,
                "<div class=\"quote\" itemscope itemtype=\"http://schema.org/CreativeWork\">\n<span class=\"text\" itemprop=\"text\">{}</span>\n",
                escape(&quote.text)
            );
            put!(
                main,
                "<span>by <small class=\"author\" itemprop=\"author\">{}</small>\n<a href=\"/author/{}\">(about)</a>\n</span>\n",
                escape(&quote.author),
                self.author(quote.author_number).slug
            );
            put!(
                main,
                "<div class=\"tags\">\nTags:\n<meta class=\"keywords\" itemprop=\"keywords\" content=\"{}\">\n",
                quote.tags.join(",")
            );
            for tag in &quote.tags {
                put!(main, "<a class=\"tag\" href=\"/tag/{tag}/page/1/\">{tag}</a>\n");
            }
            main.push_str("</div>\n</div>\n");
        }
        main.push_str("<nav>\n<ul class=\"pager\">\n");
        if number > 1 {
            put!(
                main,
                "<li class=\"previous\">\n<a href=\"{path}/page/{}/\"><span aria-hidden=\"true\">&larr;</span> Previous</a>\n</li>\n",
                number - 1
            );
        }
        if let Some(next) = next {
            put!(
                main,
                "<li class=\"next\">\n<a href=\"{path}/page/{next}/\">Next <span aria-hidden=\"true\">&rarr;</span></a>\n</li>\n"
            );
        }
        main.push_str("</ul>\n</nav>\n</div>\n<div class=\"col-md-4 tags-box\">\n<h2>Top Ten tags</h2>\n");
        for (at, tag) in TAGS.iter().take(10).enumerate() {
            put!(
                main,
                "<span class=\"tag-item\">\n<a class=\"tag\" style=\"font-size: {}px\" href=\"/tag/{tag}/\">{tag}</a>\n</span>\n",
                28 - at * 2
            );
        }
        main.push_str("</div>\n</div>\n");
        document(&main, visitor)
    }

    fn author_page(author: &QuoteAuthor, visitor: Visitor) -> String {
        let name = escape(&author.name);
        let main = format!(
            "<div class=\"author-details\">\n<h3 class=\"author-title\">{name}</h3>\n<p><strong>Born:</strong> <span class=\"author-born-date\">{}</span> \
             <span class=\"author-born-location\">{}</span></p>\n<p><strong>Description:</strong></p>\n<div class=\"author-description\">\n{name} never lived. The name, \
             the birthday and every word on these pages were put together by a program.\n</div>\n</div>\n",
            author.born_date, author.born_location
        );
        document(&main, visitor)
    }

    fn login_page(&self, nonce: u64, problem: Option<&str>) -> String {
        let mut main = String::new();
        if let Some(problem) = problem {
            put!(main, "<p class=\"error\">{problem}</p>\n");
        }
        put!(
            main,
            "<form action=\"/login\" method=\"post\" accept-charset=\"utf-8\">\n<input type=\"hidden\" name=\"csrf_token\" value=\"{}\">\n",
            self.token(nonce)
        );
        main.push_str(
            "<div class=\"form-group\">\n<label for=\"username\">Username</label>\n<input type=\"text\" class=\"form-control\" id=\"username\" name=\"username\">\n</div>\n\
             <div class=\"form-group\">\n<label for=\"password\">Password</label>\n<input type=\"password\" class=\"form-control\" id=\"password\" name=\"password\">\n</div>\n\
             <input type=\"submit\" value=\"Login\" class=\"btn btn-primary\">\n</form>\n",
        );
        document(&main, Visitor::Guest)
    }

    fn ask_login(&self, status: StatusCode, problem: Option<&str>) -> Reply {
        let nonce = self.sessions.fetch_add(1, Ordering::Relaxed);
        Reply::html(status, self.login_page(nonce, problem)).with(SET_COOKIE, &format!("{SESSION}={nonce}; Path=/; HttpOnly"))
    }

    fn log_in(&self, asked: &Asked) -> Reply {
        let nonce = asked.cookie(SESSION).and_then(|value| value.parse::<u64>().ok());
        let Some(nonce) = nonce.filter(|nonce| asked.form_field("csrf_token") == Some(self.token(*nonce))) else {
            return self.ask_login(StatusCode::FORBIDDEN, Some("The CSRF token is missing or not that of your session."));
        };
        if asked.form_field("username").is_none_or(|name| name.is_empty())
            || asked.form_field("password").is_none_or(|word| word.is_empty())
        {
            return self.ask_login(StatusCode::OK, Some("Error while logging in: please, provide your username and password."));
        }
        redirect(StatusCode::FOUND, "/")
            .with(SET_COOKIE, &format!("{SESSION}={nonce}.{:016x}; Path=/; HttpOnly", mix(self.seed, stream::LOGGED_IN, nonce)))
    }

    fn visitor(&self, asked: &Asked) -> Visitor {
        let parts = asked.cookie(SESSION).and_then(|value| value.split_once('.'));
        let proven = parts.is_some_and(|(nonce, proof)| {
            nonce.parse().is_ok_and(|nonce| proof == format!("{:016x}", mix(self.seed, stream::LOGGED_IN, nonce)))
        });
        if proven { Visitor::LoggedIn } else { Visitor::Guest }
    }

    fn token(&self, nonce: u64) -> String {
        format!("{:016x}", mix(self.seed, stream::TOKEN, nonce))
    }

    fn known_tag(name: &str) -> Option<&'static str> {
        TAGS.iter().find(|tag| **tag == name).copied()
    }
}

impl Answer for Quotes {
    async fn answer(&self, asked: Asked) -> Reply {
        let segments: Vec<&str> = asked.path.split('/').skip(1).take(6).collect();
        let login = segments.as_slice() == ["login"];
        if asked.method == Method::POST && login {
            return self.log_in(&asked);
        }
        if asked.method != Method::GET && asked.method != Method::HEAD {
            let allow = if login { "GET, HEAD, POST" } else { "GET, HEAD" };
            return Reply::html(StatusCode::METHOD_NOT_ALLOWED, document("<h1>Method Not Allowed</h1>\n", Visitor::Guest))
                .with(ALLOW, allow);
        }
        let visitor = self.visitor(&asked);
        let page = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let found = match segments.as_slice() {
            [""] => Some(self.page(1, visitor)),
            ["page", number, ""] => page(number).map(|number| self.page(number, visitor)),
            ["tag", tag, ""] => Self::known_tag(tag).map(|tag| self.tag_page(tag, 1, visitor)),
            ["tag", tag, "page", number, ""] => {
                Self::known_tag(tag).zip(page(number)).map(|(tag, number)| self.tag_page(tag, number, visitor))
            }
            ["author", name, ""] => (0..AUTHORS)
                .map(|number| self.author(number))
                .find(|author| author.slug == *name)
                .map(|author| Self::author_page(&author, visitor)),
            ["login"] => return self.ask_login(StatusCode::OK, None),
            ["logout"] => {
                return redirect(StatusCode::FOUND, "/").with(SET_COOKIE, &format!("{SESSION}=; Path=/; Max-Age=0; HttpOnly"));
            }
            ["page", _] | ["tag", _] | ["tag", _, "page", _] | ["author", _] if asked.path.is_ascii() => {
                return redirect(StatusCode::PERMANENT_REDIRECT, &format!("{}/", asked.path));
            }
            _ => None,
        };
        found.map_or_else(
            || Reply::html(StatusCode::NOT_FOUND, document("<h1>Not Found</h1>\n", visitor)),
            |page| Reply::html(StatusCode::OK, page),
        )
    }
}

fn document(main: &str, visitor: Visitor) -> String {
    let door = match visitor {
        Visitor::LoggedIn => "<a href=\"/logout\">Logout</a>",
        Visitor::Guest => "<a href=\"/login\">Login</a>",
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n<title>Quotes to Scrape</title>\n</head>\n<body>\n<div class=\"container\">\n\
         <div class=\"row header-box\">\n<div class=\"col-md-8\">\n<h1><a href=\"/\" style=\"text-decoration: none\">Quotes to Scrape</a></h1>\n</div>\n\
         <div class=\"col-md-4\">\n<p>{door}</p>\n</div>\n</div>\n{main}</div>\n<footer class=\"footer\">\n<div class=\"container\">\n\
         <p class=\"text-muted\">Generated quotations, free to use.</p>\n</div>\n</footer>\n</body>\n</html>\n"
    )
}
