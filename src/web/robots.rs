//! robots.txt as RFC 9309 reads it: groups, longest match, crawl delay, sitemaps.
//!
//! Parses any bytes without failing and never fetches anything. Typing errors that big crawlers accept are accepted
//! (a missing colon, `Useragent`, `Dissallow`); an HTML page in place of the file simply holds no rule.

use std::time::Duration;

use url::{Position, Url};

use super::robots_match::{Pattern, normalized_target};

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
        for line in without_bom(read).split(|byte| matches!(byte, b'\n' | b'\r')) {
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
        let token = if value.starts_with('*') && value.chars().nth(1).is_none_or(char::is_whitespace) {
            "*"
        } else {
            product_token(value)
        };
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
        let Some(group) = &mut self.current else {
            return;
        };
        self.has_rules = true;
        let delay = value.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        group.crawl_delay = delay.map(|delay| delay.min(MAX_CRAWL_DELAY)).or(group.crawl_delay);
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
    Sitemap,
}

/// Field names in lower case, with the spellings that occur on real sites.
const FIELDS: [(&str, Field); 14] = [
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
fn product_token(value: &str) -> &str {
    let value = value.trim();
    let end = value.find(|c: char| c.is_whitespace() || matches!(c, '/' | '(' | ';' | ','));
    value.get(..end.unwrap_or(value.len())).unwrap_or(value)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use base64::Engine as _;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Cases in which the source departs from RFC 9309, with the reason.
    const EXCEPTIONS: &[(&str, &str)] = &[];

    fn body(case: &Value) -> Vec<u8> {
        if let Some(encoded) = case["robots_b64"].as_str() {
            return base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        }
        if let Some(template) = case["robots_template"].as_str() {
            return template.replace("{A}", &filler(case)).into_bytes();
        }
        case["robots"].as_str().unwrap_or_default().as_bytes().to_vec()
    }

    fn filler(case: &Value) -> String {
        case["A"][0].as_str().unwrap_or_default().repeat(usize::try_from(case["A"][1].as_u64().unwrap_or(0)).unwrap())
    }

    fn absolute(url: &str) -> Url {
        Url::parse("http://example.com/").unwrap().join(url).unwrap()
    }

    fn rules(case: &Value) -> Robots {
        match case["status"].as_u64().map(|status| policy_for_status(u16::try_from(status).unwrap())) {
            Some(StatusPolicy::AllowAll) => Robots::allow_all(),
            Some(StatusPolicy::DenyForNow) => Robots::deny_all(),
            Some(StatusPolicy::Parse) | None => Robots::parse(&body(case)),
        }
    }

    fn failures(case: &Value) -> Vec<String> {
        let robots = rules(case);
        let mut wrong = Vec::new();
        for check in case["checks"].as_array().into_iter().flatten() {
            let agent = check["agent"].as_str().unwrap();
            let url = check["url"].as_str().unwrap().replace("{A}", &filler(case));
            let expected = check["allowed"].as_bool().unwrap();
            if robots.allowed(agent, &absolute(&url)) != expected {
                wrong.push(format!("{agent:?} {url:?} should be {expected}, protego {}", check["protego"]));
            }
        }
        for delay in case["crawl_delay"].as_array().into_iter().flatten() {
            let agent = delay["agent"].as_str().unwrap();
            let ours = robots.crawl_delay(agent).map(|delay| delay.as_secs_f64());
            if ours != delay["seconds"].as_f64() {
                wrong.push(format!("delay of {agent:?} is {ours:?}, should be {}", delay["seconds"]));
            }
        }
        if let Some(sitemaps) = case["sitemaps"].as_array() {
            let expected: Vec<&str> = sitemaps.iter().map(|url| url.as_str().unwrap()).collect();
            if robots.sitemaps() != expected {
                wrong.push(format!("sitemaps {:?}", robots.sitemaps()));
            }
        }
        wrong
    }

    #[test]
    fn every_case_of_the_collection_is_answered_as_rfc_9309_says() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/robots.json")).unwrap();
        let mut report = Vec::new();
        let mut run = 0;
        for case in data["cases"].as_array().unwrap() {
            let id = case["id"].as_str().unwrap();
            run += usize::from(["checks", "crawl_delay", "sitemaps"].iter().any(|key| !case[*key].is_null()));
            let wrong = failures(case);
            let excepted = EXCEPTIONS.iter().any(|(known, _)| *known == id);
            if wrong.is_empty() == excepted {
                report.push(format!("{id} excepted={excepted}\n  {:?}\n  {}", case["robots"], wrong.join("\n  ")));
            }
        }
        assert!(run > 280, "{run}");
        assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
    }

    fn answers(text: &str, paths: &[(&str, bool)]) {
        let robots = Robots::parse(text.as_bytes());
        for (path, expected) in paths {
            assert_eq!(robots.allowed("mybot", &absolute(path)), *expected, "{text:?} {path}");
        }
    }

    #[test]
    fn groups_that_name_the_agent_are_merged_and_exclude_everyone() {
        answers(
            "User-agent: mybot\nDisallow: /secret\n\nUser-agent: *\nDisallow: /public\n",
            &[("/public", true), ("/secret", false), ("/", true)],
        );
        answers("User-agent: *\nUser-agent: mybot\nDisallow: /private\n", &[("/private", false), ("/p", true)]);
        answers(
            "User-agent: mybot\nDisallow: /1\n\nUser-agent: other\nDisallow: /\n\nUser-agent: mybot\nDisallow: /2\n",
            &[("/1", false), ("/2", false), ("/3", true)],
        );
        answers("User-agent: mybot\n\nUser-agent: zzz\n\nDisallow: /x\n", &[("/x", false)]);
        answers("user-AGENT:MyBot # c\r\ndisallow : /y # c\r\n", &[("/y", false), ("/z", true)]);
    }

    #[test]
    fn the_longest_match_decides() {
        answers(
            "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n",
            &[("/wp-admin/", false), ("/wp-admin/admin-ajax.php", true)],
        );
        answers(
            "User-agent: *\nDisallow: /*.json$\nDisallow: /*/private\nDisallow: /*?\nAllow: /ok?\n",
            &[("/data.json", false), ("/data.json5", true), ("/uk/private", false), ("/x?y=1", false), ("/ok?y=1", true)],
        );
        answers("User-agent: *\nDisallow: /page\nAllow: /page\n", &[("/page", true)]);
        answers("User-agent: *\nDisallow: */test\n", &[("/test", false), ("/a/test", false), ("/tes", true)]);
        answers("User-agent: *\nDisallow: /a%3Cd\nDisallow: /é\n", &[("/a%3cd", false), ("/%C3%A9", false)]);
        answers("User-agent: *\nDisallow:\n", &[("/anything", true)]);
    }

    #[test]
    fn the_status_decides_before_the_body() {
        for status in [200, 204] {
            assert_eq!(policy_for_status(status), StatusPolicy::Parse);
        }
        for status in [302, 401, 403, 404, 410] {
            assert_eq!(policy_for_status(status), StatusPolicy::AllowAll);
        }
        for status in [429, 500, 503, 599] {
            assert_eq!(policy_for_status(status), StatusPolicy::DenyForNow);
        }
        assert!(!Robots::deny_all().allowed("mybot", &absolute("/x")));
        assert!(Robots::allow_all().allowed("mybot", &absolute("/x")));
    }

    #[test]
    fn an_html_page_holds_no_rule_and_a_huge_file_is_cut() {
        answers("<!DOCTYPE html>\n<html><body><p>Not found</p></body></html>\n", &[("/x", true)]);
        let mut huge = b"User-agent: *\nDisallow: /no\n".to_vec();
        huge.resize(MAX_BYTES + 5, b'#');
        huge.extend(b"\nDisallow: /late\n");
        answers(&String::from_utf8(huge).unwrap(), &[("/no", false), ("/late", true)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), path in "[a-z*$%?]{0,20}") {
            let mut text = b"user-agent: *\ndisallow: ".to_vec();
            text.extend(bytes);
            let robots = Robots::parse(&text);
            let _ = robots.allowed("mybot", &absolute(&format!("/{path}")));
            let _ = robots.crawl_delay("mybot");
        }
    }
}
