//! Sitemaps as they are served: the XML of sitemaps.org, their text form, RSS and Atom feeds, gzipped once or twice.
//!
//! A reader that gives one entry after the other and never holds more than one: bytes are unpacked and decoded as they
//! are needed, within stated bounds. What is damaged ends early and says so; nothing is expanded, fetched or judged here.
//! Where the protocol is broken and only one thing can be meant (upper-case tags, bare `&`, unclosed elements), that is read.

mod lastmod;
mod markup;
mod role;
mod source;
#[cfg(test)]
mod tests;
mod xml;

use std::iter::FusedIterator;

use jiff::Timestamp;
use url::Url;

use source::Source;
use xml::Machine;

use super::reference::join_url;

pub use lastmod::parse_lastmod;

/// Longest text of one field that is kept, in bytes. An address beyond it is no entry.
pub const MAX_FIELD_BYTES: usize = 16 * 1024;

/// Alternates, images and videos kept of one entry, each.
pub const MAX_PER_ENTRY: usize = 1_000;

/// How far a sitemap is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes after unpacking, for each layer of gzip; 64 MiB. sitemaps.org allows 50 MiB.
    pub bytes: u64,
    /// Entries; 200,000. sitemaps.org allows 50,000.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 * 1024 * 1024, entries: 200_000 }
    }
}

/// What a document turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A list of pages (`<urlset>`).
    UrlSet,
    /// A list of sitemaps (`<sitemapindex>`).
    Index,
    /// One address a line.
    Text,
    /// An RSS feed, also RSS 1.0.
    Rss,
    /// An Atom feed.
    Atom,
    /// None of these: an error page, JSON, nothing. It has no entries.
    Invalid,
}

/// What an entry leads to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// A page.
    #[default]
    Page,
    /// Another sitemap.
    Sitemap,
}

/// Why reading ended before the document did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// The gzip stream or the XML is damaged or breaks off.
    Damaged,
    /// [`Limits::bytes`], or a single piece of markup of more than a mebibyte.
    Bytes,
    /// [`Limits::entries`].
    Entries,
}

/// One address of a sitemap with what is said about it. Texts are trimmed and their references resolved, else as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Whether it leads to a page or to another sitemap.
    pub target: Target,
    /// The address, not empty, possibly relative: [`Entry::url`] resolves it.
    pub loc: String,
    /// When it changed; [`Entry::modified`] reads it. In feeds the date of the entry.
    pub lastmod: Option<String>,
    /// How often it changes, in the words of the site.
    pub changefreq: Option<String>,
    /// How important the site thinks it is; [`Entry::priority_value`] reads it.
    pub priority: Option<String>,
    /// The page in other languages or for other devices.
    pub alternates: Vec<Alternate>,
    /// Addresses of images on the page.
    pub images: Vec<String>,
    /// Videos on the page.
    pub videos: Vec<Video>,
    /// What a news sitemap says about it.
    pub news: Option<News>,
}

/// The same page for somebody else (`<xhtml:link rel="alternate">`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternate {
    /// The language, such as `de-ch` or `x-default`.
    pub hreflang: Option<String>,
    /// The address as written.
    pub href: String,
}

/// A video of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Video {
    /// Address of a still image.
    pub thumbnail_loc: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Address of the video file.
    pub content_loc: Option<String>,
    /// Address of a player for it.
    pub player_loc: Option<String>,
}

/// An article of a news sitemap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct News {
    /// Name of the publication.
    pub name: Option<String>,
    /// Its language.
    pub language: Option<String>,
    /// When the article appeared, as written.
    pub publication_date: Option<String>,
    /// Its headline.
    pub title: Option<String>,
}

/// The entries of one sitemap document, in document order.
///
/// ```
/// use dragline::web::sitemap::{Kind, Limits, Sitemap};
///
/// let body = b"<urlset><url><loc>https://shop.example/a?x=1&amp;y=2</loc><lastmod>2024-02-03</lastmod></url></urlset>";
/// let url = "https://shop.example/sitemap.xml".parse().unwrap();
/// let mut sitemap = Sitemap::new(body, Some("text/xml"), &url, Limits::default());
/// assert_eq!(sitemap.kind(), Kind::UrlSet);
/// let entry = sitemap.next().unwrap();
/// assert_eq!(entry.url(&url).unwrap().as_str(), "https://shop.example/a?x=1&y=2");
/// assert_eq!(entry.modified().unwrap().to_string(), "2024-02-03T00:00:00Z");
/// assert!(sitemap.next().is_none() && sitemap.cut().is_none());
/// ```
#[derive(Debug)]
pub struct Sitemap<'a> {
    form: Form<'a>,
    kind: Kind,
    /// An entry that was met while finding out the kind.
    first: Option<Entry>,
    left: u64,
    cut: Option<Cut>,
}

#[derive(Debug)]
enum Form<'a> {
    Xml(Box<Machine<'a>>),
    Text(Box<Source<'a>>),
    Over,
}

impl<'a> Sitemap<'a> {
    /// Begins to read a document that came from `url`: as far as its first element or first address.
    ///
    /// `content_type` is the header's value; only its charset counts. The kind is found in the bytes, never in names or types.
    #[must_use]
    pub fn new(body: &'a [u8], content_type: Option<&str>, url: &Url, limits: Limits) -> Self {
        let mut source = Source::new(body, content_type, limits.bytes);
        let mut sitemap = Self { form: Form::Over, kind: Kind::Invalid, first: None, left: limits.entries, cut: None };
        match source.first_character() {
            Some(b'<') => {
                let mut machine = Machine::new(source, url);
                sitemap.kind = machine.open();
                sitemap.form = Form::Xml(Box::new(machine));
            }
            Some(_) => {
                sitemap.first = next_line(&mut source);
                sitemap.kind = if sitemap.first.is_some() { Kind::Text } else { Kind::Invalid };
                sitemap.form = Form::Text(Box::new(source));
            }
            None => sitemap.form = Form::Text(Box::new(source)),
        }
        if sitemap.kind == Kind::Invalid {
            sitemap.close();
        }
        sitemap
    }

    /// What the document is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Why the entries ended before the document did; `None` before the last entry was given.
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    fn close(&mut self) {
        self.cut = self.cut.or(match std::mem::replace(&mut self.form, Form::Over) {
            Form::Xml(machine) => machine.cut(),
            Form::Text(source) => source.cut(),
            Form::Over => None,
        });
    }
}

impl Iterator for Sitemap<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let entry = self.first.take().or_else(|| match &mut self.form {
            Form::Xml(machine) => machine.next_entry(),
            Form::Text(source) => next_line(source),
            Form::Over => None,
        });
        if entry.is_none() {
            self.close();
            return None;
        }
        if self.left == 0 {
            self.cut = Some(Cut::Entries);
            self.form = Form::Over;
            return None;
        }
        self.left -= 1;
        entry
    }
}

impl FusedIterator for Sitemap<'_> {}

impl Entry {
    /// The absolute address, when it is one of http or https. `sitemap` is the URL of the document.
    #[must_use]
    pub fn url(&self, sitemap: &Url) -> Option<Url> {
        resolve(&self.loc, sitemap)
    }

    /// The instant that `lastmod` means; a time without a zone is in UTC. `None` for what is no date.
    #[must_use]
    pub fn modified(&self) -> Option<Timestamp> {
        parse_lastmod(self.lastmod.as_deref()?)
    }

    /// The priority, from 0 to 1. `None` for what is no such number; the protocol's default is 0.5.
    #[must_use]
    pub fn priority_value(&self) -> Option<f32> {
        self.priority.as_deref()?.parse().ok().filter(|value| (0.0..=1.0).contains(value))
    }
}

impl Alternate {
    /// The absolute address, when it is one of http or https. `sitemap` is the URL of the document.
    #[must_use]
    pub fn url(&self, sitemap: &Url) -> Option<Url> {
        resolve(&self.href, sitemap)
    }
}

fn resolve(address: &str, sitemap: &Url) -> Option<Url> {
    join_url(sitemap, address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// The next line that is an absolute address of http or https; all others are passed over.
fn next_line(source: &mut Source<'_>) -> Option<Entry> {
    while let Some(line) = source.line() {
        let line = line.trim();
        let is_address = Url::parse(line).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if is_address && !line.contains(char::is_whitespace) {
            return Some(Entry { loc: line.to_owned(), ..Entry::default() });
        }
    }
    None
}
