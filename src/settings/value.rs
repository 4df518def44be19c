//! Types of settings that are more than a number or a text. Their `Debug` shows no secret.

use std::fmt;

pub use crate::apcloudy::{JobId, LogLevel};
pub use crate::html::Engine as HtmlEngine;

use super::redact::{REDACTED, is_public_header, redact_text};

/// Form of a log line on standard error and in `LOG_FILE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line.
    Text,
    /// One JSON object per line.
    Json,
}

/// How progress is shown on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressStyle {
    /// A bar on a terminal, log lines otherwise.
    Auto,
    /// Always a bar.
    Bar,
    /// Always log lines.
    Lines,
    /// Nothing.
    Off,
}

/// Character encoding of feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEncoding {
    /// UTF-8; JSON formats escape every character outside ASCII.
    AsciiEscaped,
    /// UTF-8 as it is.
    Utf8,
}

/// What becomes of a request that no rule of `LEASES` matches, with a real control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmatchedLease {
    /// Dropped, counted, and named in one log line per host.
    Refuse,
    /// Sent under an anonymous identity of its host.
    Anonymous,
}

/// Which stored answers are used instead of asking the site (`HTTPCACHE_POLICY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// Every one, as it is: for the development of a spider.
    Dummy,
    /// Those that the rules of HTTP allow (RFC 9111).
    Rfc9111,
}

/// Which requests get a record for the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRecords {
    /// One for each failed attempt and one for the outcome of each request.
    Final,
    /// Those, and one for each other attempt, redirect, robots.txt, offsite and forbidden request.
    All,
}

/// What a crawl does when the backend refuses every delivery until somebody changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFatal {
    /// It goes on, and its records stay in the spool.
    Spool,
    /// It is closed.
    Stop,
}

/// Headers in the order they were written; names are unique without regard to case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Name and value of each header.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a header, its name compared without regard to case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(name, value)| {
                let shown = if is_public_header(name) { value } else { REDACTED };
                (name, shown)
            }))
            .finish()
    }
}

/// One entry of `FEEDS`: where items are written and in which form.
#[derive(Clone, PartialEq, Eq)]
pub struct Feed {
    /// A path, a URI, or `-` for standard output; may hold `%(name)s` and `%(time)s`.
    pub uri: String,
    /// Name of the format; none: told from the ending of the URI.
    pub format: Option<String>,
    /// Replace what is there, instead of appending.
    pub overwrite: bool,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("uri", &redact_text(&self.uri))
            .field("format", &self.format)
            .field("overwrite", &self.overwrite)
            .finish()
    }
}

/// One entry of `LEASES`: which requests are leased from which site and client. First match wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRule {
    /// Hosts the rule covers, each with everything below it, on one port (`shop.example:8080`) or on all. Never empty.
    pub domains: Vec<String>,
    /// The control plane's name of the site.
    pub site: String,
    /// The control plane's name of the client kind, for example `web`.
    pub client: String,
    /// The endpoint group; empty: the server matches the path of the request.
    pub endpoint_group: String,
    /// Keeps leases with the same key on one identity; empty: none.
    pub session_key: String,
}

/// One entry of `MARKERS`: what is marked on a report, and when. All conditions that are there must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerRule {
    /// The marker, 1 to 64 characters.
    pub marker: String,
    /// Hosts it is for, each with everything below it; empty: all.
    pub domains: Vec<String>,
    /// Statuses, one of which the answer must have; empty: any.
    pub status: Vec<u16>,
    /// A selector that must find an element in the body.
    pub css: Option<String>,
    /// A pattern that must match the text of the body.
    pub regex: Option<String>,
}
