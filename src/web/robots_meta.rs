//! What a page says to crawlers: the `X-Robots-Tag` header and `<meta name="robots">`.
//!
//! No standard has them; the rules are those that the big search engines state: what is said to everyone and what is said
//! to one crawler add up, and of two directives the stricter one counts. Reads any text and decides nothing.

use jiff::Timestamp;

use super::retry_after::parse_http_date;
use super::robots::product_token;
use super::sitemap::parse_lastmod;

/// Directives kept of one page.
const MAX_DIRECTIVES: usize = 64;

/// Longest header or attribute value that is read, in bytes.
const MAX_VALUE_BYTES: usize = 4 * 1024;

/// Decides the century of a two-digit year: up to fifty years ahead of 2000.
const YEAR_2000: i64 = 946_684_800;

/// The directives of one page for one crawler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RobotsDirectives {
    /// In lower case, in order, each name once; the value behind the colon as written.
    found: Vec<(String, Option<String>)>,
}

impl RobotsDirectives {
    /// Adds what a value of `X-Robots-Tag` says to `agent`.
    ///
    /// `agent` is a product token or a whole `User-Agent` value. A name before a directive (`otherbot: noindex`) holds up to
    /// the next name.
    pub fn add_header(&mut self, value: &str, agent: &str) {
        if value.len() > MAX_VALUE_BYTES {
            return;
        }
        let mut applies = true;
        let mut pieces = value.split(',').map(str::trim).filter(|piece| !piece.is_empty()).peekable();
        while let Some(mut piece) = pieces.next() {
            while let Some((name, rest)) = piece.split_once(':')
                && !takes_value(name)
            {
                let name = name.trim();
                applies = name == "*" || is_same_agent(name, agent);
                piece = rest.trim_start();
            }
            let mut text = piece.to_owned();
            if is_date(piece) {
                // The only value that may hold a comma.
                while let Some(more) = pieces.next_if(|piece| piece.starts_with(|first: char| first.is_ascii_digit())) {
                    text.push_str(", ");
                    text.push_str(more);
                }
            }
            if applies {
                self.add(&text);
            }
        }
    }

    /// Adds what a `<meta>` element with this `name` and `content` says to `agent`.
    pub fn add_meta(&mut self, name: &str, content: &str, agent: &str) {
        let name = name.trim();
        let applies = name.eq_ignore_ascii_case("robots") || is_same_agent(name, agent);
        if !applies || content.len() > MAX_VALUE_BYTES {
            return;
        }
        let mut pieces = content.split(',').map(str::trim).filter(|piece| !piece.is_empty()).peekable();
        while let Some(piece) = pieces.next() {
            match pieces.next_if(|more| is_date(piece) && more.starts_with(|first: char| first.is_ascii_digit())) {
                Some(more) => self.add(&format!("{piece}, {more}")),
                None => self.add(piece),
            }
        }
    }

    /// Whether the links of the page should not be followed (`nofollow`, `none`).
    #[must_use]
    pub fn is_nofollow(&self) -> bool {
        self.has("nofollow") || self.has("none")
    }

    /// Whether the page should not be shown in results (`noindex`, `none`).
    #[must_use]
    pub fn is_noindex(&self) -> bool {
        self.has("noindex") || self.has("none")
    }

    /// Whether a directive was given, such as `noarchive`; in any case.
    #[must_use]
    pub fn has(&self, directive: &str) -> bool {
        self.found.iter().any(|(name, _)| name.eq_ignore_ascii_case(directive))
    }

    /// The value of a directive that has one, such as `max-snippet`; as written, the first that was given.
    #[must_use]
    pub fn value(&self, directive: &str) -> Option<&str> {
        self.found.iter().find(|(name, _)| name.eq_ignore_ascii_case(directive))?.1.as_deref()
    }

    /// When the page should no longer be shown (`unavailable_after`), if that is a date.
    #[must_use]
    pub fn unavailable_after(&self) -> Option<Timestamp> {
        let text = self.value("unavailable_after")?;
        parse_lastmod(text).or_else(|| parse_http_date(text, Timestamp::from_second(YEAR_2000).ok()?))
    }

    /// Whether nothing was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Adds a directive, or several that only blanks separate.
    fn add(&mut self, text: &str) {
        match text.split_once(':').filter(|(name, _)| takes_value(name)) {
            Some((name, value)) => self.note(name.trim(), Some(value.trim())),
            None => text.split_ascii_whitespace().for_each(|word| self.note(word, None)),
        }
    }

    fn note(&mut self, name: &str, value: Option<&str>) {
        if self.found.len() < MAX_DIRECTIVES && !self.has(name) {
            self.found.push((name.to_ascii_lowercase(), value.map(str::to_owned)));
        }
    }
}

fn takes_value(name: &str) -> bool {
    let name = name.trim();
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

fn is_date(piece: &str) -> bool {
    piece.split_once(':').is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case("unavailable_after"))
}

fn is_same_agent(name: &str, agent: &str) -> bool {
    let token = product_token(agent);
    !token.is_empty() && product_token(name).eq_ignore_ascii_case(token)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const AGENT: &str = "MyBot/2.1 (+http://a.test)";

    fn header(value: &str) -> RobotsDirectives {
        let mut directives = RobotsDirectives::default();
        directives.add_header(value, AGENT);
        directives
    }

    fn meta(name: &str, content: &str) -> RobotsDirectives {
        let mut directives = RobotsDirectives::default();
        directives.add_meta(name, content, AGENT);
        directives
    }

    #[test]
    fn a_header_says_it_to_everyone_or_to_one_crawler() {
        for (value, nofollow, noindex) in [
            ("nofollow", true, false),
            ("NoIndex , NOFOLLOW", true, true),
            ("none", true, true),
            ("all", false, false),
            ("index, follow", false, false),
            ("follow, nofollow", true, false),
            ("mybot: nofollow", true, false),
            ("MYBOT : noindex, nofollow", true, true),
            ("otherbot: nofollow", false, false),
            ("otherbot: noindex, nofollow", false, false),
            ("noindex, otherbot: nofollow", false, true),
            ("otherbot: noindex, mybot: nofollow", true, false),
            ("*: nofollow", true, false),
            ("mybots: nofollow", false, false),
            ("max-snippet: 20, nofollow", true, false),
            ("mybot: max-snippet:20, nofollow", true, false),
            ("unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", true, false),
            ("", false, false),
            (",:,:nofollow,", false, false),
        ] {
            let said = header(value);
            assert_eq!((said.is_nofollow(), said.is_noindex()), (nofollow, noindex), "{value}");
        }
    }

    #[test]
    fn values_and_dates_are_read() {
        let said = header("unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, max-snippet:-1, max-image-preview: large");
        assert_eq!(said.unavailable_after().unwrap().to_string(), "2010-06-25T15:00:00Z");
        assert_eq!((said.value("Max-Snippet"), said.value("max-image-preview")), (Some("-1"), Some("large")));
        let said = meta("robots", "unavailable_after: 2010-06-25, noarchive");
        assert_eq!(said.unavailable_after().unwrap().to_string(), "2010-06-25T00:00:00Z");
        assert!(said.has("noarchive") && !said.has("noindex"));
        assert_eq!(header("unavailable_after: soon").unavailable_after(), None);
    }

    #[test]
    fn a_meta_element_counts_by_its_name() {
        assert!(meta("ROBOTS", "noindex,nofollow").is_nofollow());
        assert!(meta(" mybot ", "nofollow").is_nofollow());
        assert!(meta("robots", "noindex nofollow").is_nofollow());
        assert!(!meta("otherbot", "nofollow").is_nofollow());
        assert!(!meta("description", "nofollow").is_nofollow());
        assert!(meta("robots", "").is_empty());
        let mut said = meta("robots", "noindex");
        said.add_meta("mybot", "index, nofollow", AGENT);
        assert!(said.is_noindex() && said.is_nofollow(), "what is said to everyone and to one adds up");
    }

    proptest! {
        #[test]
        fn any_text_is_read(value in "[a-z:, *\u{e9}0-9-]{0,60}", many in "(no[a-z]{2},){0,100}") {
            let mut said = header(&value);
            said.add_header(&many, AGENT);
            said.add_meta("robots", &value, AGENT);
            let _ = said.unavailable_after();
            prop_assert!(said.found.len() <= MAX_DIRECTIVES);
        }
    }
}
