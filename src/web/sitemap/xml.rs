//! The XML forms: elements in, entries out.
//!
//! Keeps the open elements (a bounded number) and at most one entry. End tags are matched by name, as far out as one is
//! open; an entry that begins ends the one before it. Only the five references of XML and those by number are resolved.

use std::mem;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use url::Url;

use super::markup::{attribute, attributes, resolved, value};
use super::role::{Field, Role, Space};
use super::source::Source;
use super::{Alternate, Cut, Entry, Kind, MAX_FIELD_BYTES, MAX_PER_ENTRY, Target, Video};
use crate::web::reference::join_url;

/// Open elements that are told apart; deeper ones are only counted.
const MAX_DEPTH: usize = 64;
/// Namespaces that are remembered.
const MAX_NAMESPACES: usize = 64;
/// Errors of the markup that are passed over.
const MAX_ERRORS: u32 = 1_000;

pub(super) struct Machine<'a> {
    reader: Reader<Source<'a>>,
    buffer: Vec<u8>,
    document: Url,
    kind: Kind,
    open: Vec<Open>,
    /// Open elements beyond [`MAX_DEPTH`].
    deeper: u32,
    namespaces: Vec<(String, String)>,
    /// Prefix of the elements that count: that of the root.
    own_prefix: String,
    entry: Option<Building>,
    /// What the innermost field holds so far.
    text: String,
    is_over: bool,
    cut: Option<Cut>,
    errors: u32,
}

struct Open {
    /// In lower case, with prefix.
    name: String,
    role: Role,
}

#[derive(Default)]
struct Building {
    entry: Entry,
    guid: Option<String>,
    published: Option<String>,
    /// `xml:base` of the entry.
    base: Option<Url>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(source: Source<'a>, document: &Url) -> Self {
        let mut reader = Reader::from_reader(source);
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        config.expand_empty_elements = true;
        Self {
            reader,
            buffer: Vec::new(),
            document: document.clone(),
            kind: Kind::Invalid,
            open: Vec::new(),
            deeper: 0,
            namespaces: Vec::new(),
            own_prefix: String::new(),
            entry: None,
            text: String::new(),
            is_over: false,
            cut: None,
            errors: 0,
        }
    }

    /// Reads up to the root element.
    pub(super) fn open(&mut self) -> Kind {
        while self.open.is_empty() && !self.is_over {
            self.step();
        }
        if self.kind == Kind::Invalid {
            self.is_over = true;
        }
        self.kind
    }

    pub(super) fn next_entry(&mut self) -> Option<Entry> {
        while !self.is_over {
            if let Some(entry) = self.step() {
                return Some(entry);
            }
        }
        self.finish_entry()
    }

    pub(super) fn cut(&self) -> Option<Cut> {
        self.reader.get_ref().cut().or(self.cut)
    }

    /// Takes the next piece of markup; gives an entry that it completes.
    fn step(&mut self) -> Option<Entry> {
        self.reader.get_mut().next_piece();
        let mut buffer = mem::take(&mut self.buffer);
        buffer.clear();
        let before = self.reader.buffer_position();
        let done = match self.reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => self.start(&start),
            Ok(Event::End(end)) => self.end(end.name().0),
            Ok(Event::Text(text)) => {
                self.characters(&text.into_inner());
                None
            }
            Ok(Event::CData(text)) => {
                self.characters(&text.into_inner());
                None
            }
            Ok(Event::GeneralRef(name)) => {
                if self.is_in_field() {
                    let name = name.into_inner();
                    match resolved(&name) {
                        Some(character) => self.characters(character.encode_utf8(&mut [0; 4])),
                        None => self.characters(&format!("&{name};")),
                    }
                }
                None
            }
            Ok(Event::Eof) => {
                self.is_over = true;
                // The root is not closed. What is inside a field that has no end is not certain.
                if !self.open.is_empty() {
                    self.cut = Some(Cut::Damaged);
                }
                None
            }
            Ok(_) => None,
            Err(_) => {
                self.errors += 1;
                if self.errors > MAX_ERRORS || self.reader.buffer_position() == before {
                    self.is_over = true;
                    self.cut = Some(Cut::Damaged);
                }
                None
            }
        };
        self.buffer = buffer;
        done
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Option<Entry> {
        let name = start.name().0.to_ascii_lowercase();
        let (prefix, local) = name.split_once(':').unwrap_or(("", &name));
        if self.open.is_empty() {
            self.root(prefix, local, start);
            self.open.push(Open { role: Role::Root, name });
            return None;
        }
        let is_foreign = prefix.is_empty() && self.declare(start) && self.space("", start) != Space::Own;
        let space = self.space(prefix, start);
        let target = self.entry_target(space, local).filter(|_| !is_foreign);
        let target = target.filter(|_| self.open.iter().all(|open| open.role != Role::Foreign));
        if target.is_none() && self.open.len() >= MAX_DEPTH {
            self.deeper = self.deeper.saturating_add(1);
            return None;
        }
        let mut done = None;
        let mut role = if is_foreign { Role::Foreign } else { Role::Other };
        if let Some(target) = target {
            // It begins wherever it stands: the one before it, and all that is open in that, may lack its end.
            done = self.finish_entry();
            self.open.retain(|open| matches!(open.role, Role::Root | Role::Channel));
            self.deeper = 0;
            self.entry = Some(Building { entry: Entry { target, ..Entry::default() }, ..Building::default() });
            role = Role::Entry(target);
            self.take_base(start);
        } else if !is_foreign {
            // A field without an end ends where the next one begins.
            if let Some(parent) = self.open.iter().rev().nth(1).map(|open| open.role)
                && matches!(self.open.last().map(|open| open.role), Some(Role::Field(_)))
                && self.role_in(parent, space, local, start) != Role::Other
            {
                self.pop();
            }
            let parent = self.open.last().map_or(Role::Root, |open| open.role);
            role = self.role_in(parent, space, local, start);
            self.take_attributes(parent, local, space, start);
        }
        // It has no content, and sites write it as in HTML, without an end; one that comes all the same closes nothing.
        if self.kind == Kind::UrlSet && local == "link" {
            return done;
        }
        if let (Role::Video, Some(building)) = (role, &mut self.entry)
            && building.entry.videos.len() < MAX_PER_ENTRY
        {
            building.entry.videos.push(Video::default());
        }
        if matches!(role, Role::Field(_)) {
            self.text.clear();
        }
        self.open.push(Open { name, role });
        done
    }

    fn root(&mut self, prefix: &str, local: &str, start: &BytesStart<'_>) {
        self.declare(start);
        self.kind = match local {
            "urlset" => Kind::UrlSet,
            "sitemapindex" => Kind::Index,
            "rss" | "rdf" => Kind::Rss,
            "feed" => Kind::Atom,
            _ => Kind::Invalid,
        };
        // The items of RSS 1.0 have no prefix, its root has one.
        prefix.clone_into(&mut self.own_prefix);
        if local == "rdf" {
            self.own_prefix.clear();
        }
        if let Some(base) = attribute(start, "xml:base").and_then(|base| join_url(&self.document, &base).ok()) {
            self.document = base;
        }
    }

    fn entry_target(&self, space: Space, local: &str) -> Option<Target> {
        match (self.kind, local) {
            _ if space != Space::Own => None,
            (Kind::UrlSet | Kind::Index, "url") => Some(Target::Page),
            (Kind::UrlSet | Kind::Index, "sitemap") => Some(Target::Sitemap),
            (Kind::Rss, "item") | (Kind::Atom, "entry") => Some(Target::Page),
            _ => None,
        }
    }

    fn role_in(&self, parent: Role, space: Space, local: &str, start: &BytesStart<'_>) -> Role {
        let field = match (parent, self.kind, space, local) {
            (Role::Root, Kind::Rss, Space::Own, "channel") => return Role::Channel,
            (Role::Entry(_), Kind::UrlSet | Kind::Index, Space::Own, _) => match local {
                "loc" => Field::Loc,
                "lastmod" => Field::Lastmod,
                "changefreq" => Field::Changefreq,
                "priority" => Field::Priority,
                _ => return Role::Other,
            },
            (Role::Entry(_), Kind::UrlSet, Space::Image, "image") => return Role::Image,
            (Role::Entry(_), Kind::UrlSet, Space::Video, "video") => return Role::Video,
            (Role::Entry(_), Kind::UrlSet, Space::News, "news") => return Role::News,
            (Role::Image, _, Space::Image, "loc") => Field::ImageLoc,
            (Role::Video, _, Space::Video, "thumbnail_loc") => Field::VideoThumbnail,
            (Role::Video, _, Space::Video, "title") => Field::VideoTitle,
            (Role::Video, _, Space::Video, "content_loc") => Field::VideoContent,
            (Role::Video, _, Space::Video, "player_loc") => Field::VideoPlayer,
            (Role::News, _, Space::News, "publication") => return Role::Publication,
            (Role::Publication, _, Space::News, "name") => Field::NewsName,
            (Role::Publication, _, Space::News, "language") => Field::NewsLanguage,
            (Role::News, _, Space::News, "publication_date") => Field::NewsDate,
            (Role::News, _, Space::News, "title") => Field::NewsTitle,
            (Role::Entry(_), Kind::Rss, Space::Own, "link") => Field::Loc,
            (Role::Entry(_), Kind::Rss, Space::Own, "pubdate") => Field::Lastmod,
            (Role::Entry(_), Kind::Rss, Space::Other, "date") => Field::Published,
            (Role::Entry(_), Kind::Rss, Space::Own, "guid") => {
                let is_address = attribute(start, "ispermalink").is_none_or(|value| !value.eq_ignore_ascii_case("false"));
                if is_address { Field::Guid } else { return Role::Other }
            }
            (Role::Entry(_), Kind::Atom, Space::Own, "updated" | "modified") => Field::Lastmod,
            (Role::Entry(_), Kind::Atom, Space::Own, "published" | "issued") => Field::Published,
            _ => return Role::Other,
        };
        Role::Field(field)
    }

    /// Takes what an element of an entry says in its attributes: the links.
    fn take_attributes(&mut self, parent: Role, local: &str, space: Space, start: &BytesStart<'_>) {
        if local != "link" || !matches!(parent, Role::Entry(_)) {
            return;
        }
        let is_feed = self.kind == Kind::Atom && space == Space::Own;
        if !is_feed && self.kind != Kind::UrlSet {
            return;
        }
        let rel = attribute(start, "rel");
        let is_alternate = match &rel {
            Some(rel) => rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("alternate")),
            None => is_feed,
        };
        let Some(href) = attribute(start, "href").filter(|href| is_alternate && !href.is_empty()) else { return };
        let Some(building) = &mut self.entry else { return };
        if !is_feed {
            if building.entry.alternates.len() < MAX_PER_ENTRY {
                let hreflang = attribute(start, "hreflang").filter(|language| !language.is_empty());
                building.entry.alternates.push(Alternate { hreflang, href });
            }
        } else if building.entry.loc.is_empty() {
            let outer = building.base.as_ref().unwrap_or(&self.document);
            let base = attribute(start, "xml:base").and_then(|base| join_url(outer, &base).ok());
            let base = base.as_ref().unwrap_or(outer);
            // An address that its base cannot complete stays as it is written.
            building.entry.loc = join_url(base, &href).map_or(href, String::from);
        }
    }

    fn take_base(&mut self, start: &BytesStart<'_>) {
        if self.kind == Kind::Atom
            && let Some(base) = attribute(start, "xml:base").and_then(|base| join_url(&self.document, &base).ok())
            && let Some(building) = &mut self.entry
        {
            building.base = Some(base);
        }
    }

    fn end(&mut self, name: &str) -> Option<Entry> {
        if self.deeper > 0 {
            self.deeper -= 1;
            return None;
        }
        let name = name.trim_end().to_ascii_lowercase();
        let at = self.open.iter().rposition(|open| open.name == name)?;
        let mut done = None;
        while self.open.len() > at {
            done = self.pop().or(done);
        }
        self.is_over = self.open.is_empty();
        done
    }

    /// Closes the innermost element.
    fn pop(&mut self) -> Option<Entry> {
        match self.open.pop()?.role {
            Role::Field(field) => {
                self.take_field(field);
                None
            }
            Role::Entry(_) => self.finish_entry(),
            _ => None,
        }
    }

    fn take_field(&mut self, field: Field) {
        let text = mem::take(&mut self.text);
        let Some(building) = &mut self.entry else { return };
        if text.len() > MAX_FIELD_BYTES {
            return;
        }
        let text = text.trim().to_owned();
        let entry = &mut building.entry;
        let video = entry.videos.last_mut();
        let slot = match field {
            Field::Loc => {
                if entry.loc.is_empty() {
                    entry.loc = text;
                }
                return;
            }
            Field::ImageLoc => {
                if !text.is_empty() && entry.images.len() < MAX_PER_ENTRY {
                    entry.images.push(text);
                }
                return;
            }
            Field::Lastmod => Some(&mut entry.lastmod),
            Field::Published => Some(&mut building.published),
            Field::Changefreq => Some(&mut entry.changefreq),
            Field::Priority => Some(&mut entry.priority),
            Field::Guid => Some(&mut building.guid),
            Field::VideoThumbnail => video.map(|video| &mut video.thumbnail_loc),
            Field::VideoTitle => video.map(|video| &mut video.title),
            Field::VideoContent => video.map(|video| &mut video.content_loc),
            Field::VideoPlayer => video.map(|video| &mut video.player_loc),
            Field::NewsName => Some(&mut entry.news.get_or_insert_default().name),
            Field::NewsLanguage => Some(&mut entry.news.get_or_insert_default().language),
            Field::NewsDate => Some(&mut entry.news.get_or_insert_default().publication_date),
            Field::NewsTitle => Some(&mut entry.news.get_or_insert_default().title),
        };
        if let Some(slot) = slot {
            // Of two, the first counts.
            slot.get_or_insert(text);
        }
    }

    /// The entry that was being built, if it has an address.
    fn finish_entry(&mut self) -> Option<Entry> {
        let Building { mut entry, guid, published, .. } = self.entry.take()?;
        if entry.loc.is_empty() {
            entry.loc = guid.filter(|guid| guid.starts_with("http://") || guid.starts_with("https://")).unwrap_or_default();
        }
        entry.lastmod = entry.lastmod.or(published);
        (!entry.loc.is_empty()).then_some(entry)
    }

    fn is_in_field(&self) -> bool {
        self.deeper == 0 && matches!(self.open.last().map(|open| open.role), Some(Role::Field(_)))
    }

    fn characters(&mut self, text: &str) {
        // One byte too many is kept, so that the field is known to be too long.
        if self.is_in_field() && self.text.len() <= MAX_FIELD_BYTES {
            let text = if self.text.is_empty() { text.trim_start() } else { text };
            let room = text.floor_char_boundary(MAX_FIELD_BYTES + 4 - self.text.len().min(MAX_FIELD_BYTES));
            self.text.push_str(text.get(..room).unwrap_or_default());
        }
    }

    /// Remembers the namespaces that an element declares. Whether one of them is the default one.
    fn declare(&mut self, start: &BytesStart<'_>) -> bool {
        let mut is_default = false;
        for attribute in attributes(start) {
            let key = attribute.key.0.to_ascii_lowercase();
            let prefix = match key.split_once(':') {
                Some(("xmlns", prefix)) => prefix,
                None if key == "xmlns" => {
                    is_default = true;
                    // That of an inner element is looked up in its own attributes.
                    if !self.open.is_empty() {
                        continue;
                    }
                    ""
                }
                _ => continue,
            };
            let known = self.namespaces.iter().any(|(known, _)| known == prefix);
            if !known && self.namespaces.len() < MAX_NAMESPACES {
                self.namespaces.push((prefix.to_owned(), value(&attribute)));
            }
        }
        is_default
    }

    fn space(&self, prefix: &str, start: &BytesStart<'_>) -> Space {
        let declared = |prefix: &str| self.namespaces.iter().find(|(known, _)| known == prefix).map(|(_, uri)| uri.as_str());
        let own = if prefix.is_empty() { attribute(start, "xmlns") } else { None };
        let Some(uri) = own.as_deref().or_else(|| declared(prefix)) else {
            return if prefix == self.own_prefix { Space::Own } else { Space::Other };
        };
        match uri {
            _ if uri.contains("schemas/sitemap-image") => Space::Image,
            _ if uri.contains("schemas/sitemap-video") => Space::Video,
            _ if uri.contains("schemas/sitemap-news") => Space::News,
            _ if uri.contains("sitemaps.org/schemas/sitemap") || uri.contains("purl.org/rss/") => Space::Own,
            _ if prefix == self.own_prefix && own.is_none() => Space::Own,
            _ if declared(&self.own_prefix) == Some(uri) => Space::Own,
            _ => Space::Other,
        }
    }
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("kind", &self.kind).field("depth", &self.open.len()).finish_non_exhaustive()
    }
}
