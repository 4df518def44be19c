//! Rules of `MARKERS`: what is marked on the report of an attempt, by the status and the body of its answer.
//!
//! They look at every answer, delivered or not, before any hook; cheap conditions first, and a tree is built only when
//! nothing but a selector can decide. Of a body the first [`LOOKED_AT`] bytes are looked at, and only of one that is text.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

use http::HeaderMap;
use regex::{Regex, RegexBuilder};
use url::Url;

use super::transport::Reply;
use crate::html::{Page, PageOptions};
use crate::settings::MarkerRule;
use crate::web::charset;
use crate::web::media_type::{MediaType, content_type};

/// Bytes of a body that rules look at: what a marker stands for is in the head of a page.
pub const LOOKED_AT: usize = 1024 * 1024;

/// Largest compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1024 * 1024;

/// Most markers of one attempt (wire contract, 4.2).
const MOST: usize = 32;

/// Bytes searched for what no text has.
const SNIFFED: usize = 1024;

/// Why a rule of `MARKERS` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MARKERS rule {rule}: {field} = {value:?} cannot be used: {why}; {allowed}")]
pub struct MarkerError {
    rule: usize,
    field: &'static str,
    value: String,
    why: String,
    allowed: &'static str,
}

/// The compiled rules.
#[derive(Default)]
pub struct Markers {
    rules: Vec<Compiled>,
    html: PageOptions,
}

struct Compiled {
    marker: String,
    domains: Vec<String>,
    status: Vec<u16>,
    css: Option<String>,
    regex: Option<Regex>,
}

impl MarkerError {
    /// Which rule, from 1.
    #[must_use]
    pub fn rule(&self) -> usize {
        self.rule
    }

    /// Which of its fields: `css` or `regex`.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl Markers {
    /// Compiles the rules. Patterns run in time linear to the text (the syntax of the `regex` crate).
    ///
    /// # Errors
    /// [`MarkerError`] for the first rule whose selector or pattern cannot be used.
    pub fn compile(rules: &[MarkerRule]) -> Result<Self, MarkerError> {
        let numbered = rules.iter().zip(1..);
        let rules = numbered.map(|(rule, number)| compiled(number, rule)).collect::<Result<_, _>>()?;
        Ok(Self { rules, html: PageOptions::default() })
    }

    /// The rules that can be used; the others are errors in the log.
    pub(crate) fn of_good(rules: &[MarkerRule]) -> Self {
        let mut good = Vec::with_capacity(rules.len());
        for (rule, number) in rules.iter().zip(1..) {
            match compiled(number, rule) {
                Ok(rule) => good.push(rule),
                Err(error) => tracing::error!(%error, "a rule of MARKERS marks nothing"),
            }
        }
        Self { rules: good, html: PageOptions::default() }
    }

    /// The same, with an engine and bounds for the pages that are looked at.
    pub(crate) fn read_with(mut self, html: PageOptions) -> Self {
        self.html = html;
        self
    }

    /// The markers of an answer from `url`, each once, at most 32.
    pub(crate) fn of(&self, url: &Url, look: &Look<'_>) -> Vec<String> {
        let mut found: Vec<&str> = Vec::new();
        if self.rules.is_empty() {
            return Vec::new();
        }
        let host = url.host_str().unwrap_or_default();
        let applies = |rule: &&Compiled| rule.is_for(host) && (rule.status.is_empty() || rule.status.contains(&look.status));
        let (by_body, by_head): (Vec<_>, Vec<_>) = self.rules.iter().filter(applies).partition(|rule| rule.reads_body());
        found.extend(by_head.iter().map(|rule| rule.marker.as_str()));
        let mut by_css = Vec::new();
        for rule in by_body {
            if found.contains(&rule.marker.as_str()) {
                continue;
            }
            let matches = rule.regex.as_ref().is_none_or(|regex| look.text(url).is_some_and(|text| regex.is_match(text)));
            match &rule.css {
                Some(css) if matches => by_css.push((rule, css)),
                None if matches => found.push(&rule.marker),
                _ => {}
            }
        }
        by_css.retain(|(rule, _)| !found.contains(&rule.marker.as_str()));
        if !by_css.is_empty()
            && let Some(text) = look.text(url)
        {
            let page = Page::parse_with(text, &self.html);
            let hits = by_css.iter().filter(|(_, css)| !page.css(css).is_empty());
            found.extend(hits.map(|(rule, _)| rule.marker.as_str()));
        }
        let mut markers: Vec<String> = Vec::with_capacity(found.len());
        for marker in found {
            if markers.len() < MOST && !markers.iter().any(|known| known == marker) {
                markers.push(marker.to_owned());
            }
        }
        markers
    }
}

impl fmt::Debug for Markers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.marker)).finish()
    }
}

impl Compiled {
    fn is_for(&self, host: &str) -> bool {
        let covers =
            |domain: &String| host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        self.domains.is_empty() || self.domains.iter().any(covers)
    }

    fn reads_body(&self) -> bool {
        self.css.is_some() || self.regex.is_some()
    }
}

/// An answer as rules see it; decoded at most once.
pub(crate) struct Look<'a> {
    status: u16,
    body: Option<(&'a HeaderMap, &'a [u8])>,
    text: OnceCell<Option<Cow<'a, str>>>,
}

impl<'a> Look<'a> {
    /// A whole answer.
    pub(crate) fn at(reply: &'a Reply) -> Self {
        Self { status: reply.status.as_u16(), body: Some((&reply.headers, &reply.body)), text: OnceCell::new() }
    }

    /// An answer whose body was not kept.
    pub(crate) fn at_status(status: u16) -> Self {
        Self { status, body: None, text: OnceCell::new() }
    }

    fn text(&self, url: &Url) -> Option<&str> {
        self.text.get_or_init(|| self.body.and_then(|(headers, body)| text_of(url, headers, body))).as_deref()
    }
}

fn text_of<'a>(url: &Url, headers: &HeaderMap, body: &'a [u8]) -> Option<Cow<'a, str>> {
    let content_type = content_type(headers);
    if MediaType::of_headers(headers).is_some_and(|media_type| !media_type.is_textual()) {
        return None;
    }
    let tld = url.domain().and_then(|domain| domain.rsplit('.').next());
    let (text, encoding) = charset::decode(head(body), content_type.as_deref(), tld);
    let is_wide = encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
    let is_binary = !is_wide && body.get(..SNIFFED).unwrap_or(body).contains(&0);
    (!is_binary).then_some(text)
}

/// The part of a body that is looked at, not cut within a character of UTF-8.
fn head(body: &[u8]) -> &[u8] {
    let Some((head, _)) = body.split_at_checked(LOOKED_AT) else { return body };
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => head.get(..error.valid_up_to()).unwrap_or(head),
        _ => head,
    }
}

fn compiled(number: usize, rule: &MarkerRule) -> Result<Compiled, MarkerError> {
    let error =
        |field, value: &str, why: String, allowed| MarkerError { rule: number, field, value: value.to_owned(), why, allowed };
    let regex = match &rule.regex {
        Some(pattern) => {
            let made = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build();
            Some(made.map_err(|found| {
                error("regex", pattern, reason(&found), "a pattern of the regex crate, without look-around and back-references")
            })?)
        }
        None => None,
    };
    if let Some(css) = &rule.css {
        let found = Page::parse("").try_css(css).err();
        if let Some(found) = found {
            return Err(error("css", css, found.reason().to_owned(), "a CSS selector"));
        }
    }
    Ok(Compiled {
        marker: rule.marker.clone(),
        domains: rule.domains.clone(),
        status: rule.status.clone(),
        css: rule.css.clone(),
        regex,
    })
}

/// The last line of a pattern's error says why; the others draw where.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => format!("compiled it is larger than {limit} bytes"),
        error => {
            let shown = error.to_string();
            shown.lines().last().unwrap_or("unknown").trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
