//! robots.txt as RFC 9309 reads it: groups, longest match, crawl delay, sitemaps.
//!
//! Parses any bytes without failing and never fetches anything. Typing errors that big crawlers accept are accepted
//! (a missing colon, `Useragent`, `Dissallow`); an HTML page in place of the file simply holds no rule.

mod rates;
#[cfg(test)]
mod tests;

use std::time::Duration;

use url::{Position, Url};

use super::robots_match::{Pattern, normalized_target};

pub use rates::{RequestRate, Window};

/// Bytes of a robots.txt that are read; the rest is ignored (RFC 9309 2.5 asks for at least 500 KiB).
pub const MAX_BYTES: usize = 512 * 1024;

/// Sitemaps kept from one file.
const MAX_SITEMAPS: usize = 10_000;

/// Longest crawl delay that is believed.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(24 * 3600);

/// What to do with a robots.txt answer, by its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPolicy {
    /// Read the body.
    Parse,
    /// The file does not exist: everything is allowed (RFC 9309 2.3.1.3).
    AllowAll,
    /// The server cannot answer: everything is forbidden until a later try (RFC 9309 2.3.1.4; 429 is no answer either).
    DenyForNow,
}

/// Says what the status of a robots.txt answer means, after redirects were followed.
///
/// A redirect that was not followed to its end counts as a missing file (RFC 9309 2.3.1.2).
#[must_use]
pub fn policy_for_status(status: u16) -> StatusPolicy {
    match status {
        200..=299 => StatusPolicy::Parse,
        429 => StatusPolicy::DenyForNow,
        300..=499 => StatusPolicy::AllowAll,
        _ => StatusPolicy::DenyForNow,
    }
}

/// The rules of one origin.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    groups: Vec<Group>,
    sitemaps: Vec<String>,
    fallback: Fallback,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Fallback {
    #[default]
    Allow,
    Deny,
}

#[derive(Debug, Clone, Default)]
struct Group {
    /// Product tokens in lower case; `*` for everyone.
    agents: Vec<String>,
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
    request_rate: Option<RequestRate>,
    visit_time: Option<Window>,
}

#[derive(Debug, Clone)]
struct Rule {
    verdict: Verdict,
    pattern: Pattern,
}

/// Ordered so that the better verdict wins a tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Disallow,
    Allow,
}

impl Robots {
    /// Reads the first [`MAX_BYTES`] of a file. A line that the bound cuts is dropped.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let read = match bytes.get(..MAX_BYTES) {
            Some(head) if bytes.len() > MAX_BYTES => {
                let end = head.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(0);
                head.get(..end).unwrap_or_default()
            }
            _ => bytes,
        };
        let mut parser = Parser::default();
        for line in lines(without_bom(read)) {
            parser.line(&String::from_utf8_lossy(line), line);
        }
        parser.finish()
    }

    /// Rules of an origin that has no robots.txt.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Rules of an origin whose robots.txt cannot be had now.
    #[must_use]
    pub fn deny_all() -> Self {
        Self { fallback: Fallback::Deny, ..Self::default() }
    }

    /// Whether `agent` may fetch `url`. The origin of the URL is not looked at.
    ///
    /// `agent` is a product token or a whole User-Agent value, of which the first token counts. The longest matching
    /// pattern decides, Allow wins a tie, no match allows; `/robots.txt` itself is always allowed (RFC 9309 2.2.2).
    #[must_use]
    pub fn allowed(&self, agent: &str, url: &Url) -> bool {
        if url.path() == "/robots.txt" {
            return true;
        }
        if self.fallback == Fallback::Deny {
            return false;
        }
        if self.groups.is_empty() {
            return true;
        }
        let target = normalized_target(target_of(url));
        self.groups_for(agent)
            .flat_map(|group| &group.rules)
            .filter(|rule| rule.pattern.matches(&target))
            .map(|rule| (rule.pattern.octets(), rule.verdict))
            .max()
            .is_none_or(|(_, verdict)| verdict == Verdict::Allow)
    }

    /// The delay between two requests that the groups of `agent` ask for, at most a day; the longest one counts.
    ///
    /// Not part of RFC 9309, but written by many sites.
    #[must_use]
    pub fn crawl_delay(&self, agent: &str) -> Option<Duration> {
        self.groups_for(agent).filter_map(|group| group.crawl_delay).max()
    }

    /// How many requests in how much time the first group of `agent` with such a line asks for (`Request-rate`).
    ///
    /// Not part of RFC 9309 either, and rare.
    #[must_use]
    pub fn request_rate(&self, agent: &str) -> Option<RequestRate> {
        self.groups_for(agent).find_map(|group| group.request_rate)
    }

    /// The hours, in UTC, in which the first group of `agent` with such a line wants to be visited (`Visit-time`).
    #[must_use]
    pub fn visit_time(&self, agent: &str) -> Option<Window> {
        self.groups_for(agent).find_map(|group| group.visit_time)
    }

    /// The longest time between two requests that follows from [`Robots::crawl_delay`] and from a
    /// [`Robots::request_rate`] that is not bound to hours; at most a day.
    #[must_use]
    pub fn delay(&self, agent: &str) -> Option<Duration> {
        let rate = self.request_rate(agent).filter(|rate| rate.window.is_none());
        let between = rate.map(|rate| rate.interval().min(MAX_CRAWL_DELAY));
        self.crawl_delay(agent).max(between)
    }

    /// The sitemap addresses of the file in their order, as written. They belong to no group.
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// All groups that name the agent, else all groups for everyone (RFC 9309 2.2.1).
    fn groups_for(&self, agent: &str) -> impl Iterator<Item = &Group> {
        let token = product_token(agent);
        let names = |group: &Group, wanted: &str| group.agents.iter().any(|name| name.eq_ignore_ascii_case(wanted));
        let own = !token.is_empty() && self.groups.iter().any(|group| names(group, token));
        let wanted = if own { token } else { "*" };
        self.groups.iter().filter(move |group| names(group, wanted))
    }
}

#[derive(Default)]
struct Parser {
    robots: Robots,
    current: Option<Group>,
    /// Whether the current group already has a rule, so that the next agent line starts a new one.
    has_rules: bool,
}

impl Parser {
    fn line(&mut self, text: &str, raw: &[u8]) {
        let Some((field, value)) = field_and_value(text) else {
            return;
        };
        match field {
            Field::UserAgent => self.user_agent(value),
            Field::Allow => self.rule(Verdict::Allow, raw_value(raw)),
            Field::Disallow => self.rule(Verdict::Disallow, raw_value(raw)),
            Field::CrawlDelay => self.crawl_delay(value),
            Field::RequestRate => self.of_group(|group| group.request_rate = RequestRate::parse(value).or(group.request_rate)),
            Field::VisitTime => self.of_group(|group| group.visit_time = Window::parse(value).or(group.visit_time)),
            Field::Sitemap => {
                if !value.is_empty() && self.robots.sitemaps.len() < MAX_SITEMAPS {
                    self.robots.sitemaps.push(value.to_owned());
                }
            }
        }
    }

    fn user_agent(&mut self, value: &str) {
        if self.has_rules {
            self.close_group();
        }
        let token = if value.starts_with('*') { "*" } else { product_token(value) };
        self.current.get_or_insert_default().agents.push(token.to_ascii_lowercase());
    }

    fn rule(&mut self, verdict: Verdict, pattern: &[u8]) {
        // Rules before any agent line belong to nobody.
        let Some(group) = &mut self.current else {
            return;
        };
        self.has_rules = true;
        if !pattern.is_empty() {
            group.rules.push(Rule { verdict, pattern: Pattern::new(pattern) });
        }
    }

    fn crawl_delay(&mut self, value: &str) {
        let delay = value.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        self.of_group(|group| group.crawl_delay = delay.map(|delay| delay.min(MAX_CRAWL_DELAY)).or(group.crawl_delay));
    }

    /// Notes something about the current group, which ends its agent lines.
    fn of_group(&mut self, note: impl FnOnce(&mut Group)) {
        if let Some(group) = &mut self.current {
            self.has_rules = true;
            note(group);
        }
    }

    fn close_group(&mut self) {
        self.robots.groups.extend(self.current.take());
        self.has_rules = false;
    }

    fn finish(mut self) -> Robots {
        self.close_group();
        self.robots
    }
}

#[derive(Clone, Copy)]
enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    RequestRate,
    VisitTime,
    Sitemap,
}

/// Field names in lower case, with the spellings that occur on real sites.
const FIELDS: [(&str, Field); 18] = [
    ("user-agent", Field::UserAgent),
    ("useragent", Field::UserAgent),
    ("user agent", Field::UserAgent),
    ("allow", Field::Allow),
    ("disallow", Field::Disallow),
    ("dissallow", Field::Disallow),
    ("dissalow", Field::Disallow),
    ("disalow", Field::Disallow),
    ("diasllow", Field::Disallow),
    ("disallaw", Field::Disallow),
    ("crawl-delay", Field::CrawlDelay),
    ("crawldelay", Field::CrawlDelay),
    ("request-rate", Field::RequestRate),
    ("request rate", Field::RequestRate),
    ("visit-time", Field::VisitTime),
    ("visit time", Field::VisitTime),
    ("sitemap", Field::Sitemap),
    ("site-map", Field::Sitemap),
];

fn field_and_value(line: &str) -> Option<(Field, &str)> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if let Some((name, value)) = line.split_once(':')
        && let Some(field) = field_named(name.trim())
    {
        return Some((field, value.trim()));
    }
    // A missing colon: the name, white space, one more word.
    FIELDS.iter().find_map(|(name, field)| {
        let head = line.get(..name.len())?;
        let value = line.get(name.len()..)?;
        (head.eq_ignore_ascii_case(name) && value.starts_with([' ', '\t'])).then_some((*field, value.trim()))
    })
}

fn field_named(name: &str) -> Option<Field> {
    FIELDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, field)| *field)
}

/// The value of a rule line in its own bytes, since a pattern need not be UTF-8.
fn raw_value(line: &[u8]) -> &[u8] {
    let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
    let is_separator = |byte: &u8| matches!(byte, b':' | b' ' | b'\t');
    let name_end = line.iter().position(is_separator).unwrap_or(line.len());
    let value = line.get(name_end..).unwrap_or_default().trim_ascii_start();
    value.strip_prefix(b":").unwrap_or(value).trim_ascii()
}

/// The part of a User-Agent value that names the crawler.
pub(super) fn product_token(value: &str) -> &str {
    let value = value.trim();
    let end = value.find(|c: char| c.is_whitespace() || matches!(c, '/' | '(' | ';' | ',' | '*'));
    value.get(..end.unwrap_or(value.len())).unwrap_or(value)
}

/// The lines of a file without their ends: CR, LF, or both.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at_checked(end)?;
        rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..)).unwrap_or_default();
        Some(line)
    })
}

/// The origin of a URL, for which one robots.txt counts: scheme, host and port (RFC 9309 2.3). `None` for schemes other
/// than http and https.
#[must_use]
pub fn origin_of(url: &Url) -> Option<String> {
    matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())
}

/// The address of the robots.txt that counts for a URL of http or https.
#[must_use]
pub fn robots_url(url: &Url) -> Url {
    let mut robots = url.clone();
    robots.set_path("/robots.txt");
    robots.set_query(None);
    robots.set_fragment(None);
    // Both fail for URLs without a host only, which have no robots.txt.
    let _ = robots.set_username("");
    let _ = robots.set_password(None);
    robots
}

/// Path and query as they stand in the URL.
#[allow(clippy::indexing_slicing, reason = "a URL can be cut at each of its positions")]
fn target_of(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// Drops a UTF-8 byte order mark, also one that lost its last bytes.
fn without_bom(bytes: &[u8]) -> &[u8] {
    for mark in [&b"\xef\xbb\xbf"[..], b"\xef\xbb", b"\xef"] {
        if let Some(rest) = bytes.strip_prefix(mark) {
            return rest;
        }
    }
    bytes
}
