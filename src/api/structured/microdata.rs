//! Microdata (WHATWG HTML, 5): items, their properties, and the JSON of section 5.4.
//!
//! References between items can make a small page large without end (`itemref` in circles, or doubling at every step), so the
//! work, the properties and the text are bounded by the size of the page.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::is_of_type;
use crate::api::selector::{NodeKind, NodeRef, Page};

/// Items inside items.
const MAX_DEPTH: usize = 32;
/// Names of one property, each of which copies its value.
const MAX_NAMES: usize = 16;
/// Types of one item.
const MAX_TYPES: usize = 64;

/// One item: a group of properties. Serialises as the standard's JSON does: `type`, `id`, and `properties` with a list for
/// each name.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MicrodataItem {
    /// What kind of thing it is: absolute URLs, mostly.
    pub types: Vec<String>,
    /// Its name as a URL.
    pub id: Option<String>,
    /// Names and values, in document order; a name may stand more than once.
    pub properties: Vec<(String, MicrodataValue)>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq)]
pub enum MicrodataValue {
    /// A text, a URL or a date as it stands; white space around it is taken off.
    Text(String),
    /// Another item.
    Item(MicrodataItem),
}

impl MicrodataItem {
    /// Whether it is of a type, given without its vocabulary: `Product`.
    #[must_use]
    pub fn is_a(&self, name: &str) -> bool {
        self.types.iter().any(|full| is_of_type(full, name))
    }

    /// The first value of a property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&MicrodataValue> {
        self.all(name).next()
    }

    /// The first value of a property that is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.all(name).find_map(|value| if let MicrodataValue::Text(text) = value { Some(text.as_str()) } else { None })
    }

    /// The first value of a property that is an item.
    #[must_use]
    pub fn item(&self, name: &str) -> Option<&MicrodataItem> {
        self.all(name).find_map(|value| if let MicrodataValue::Item(item) = value { Some(item) } else { None })
    }

    /// All values of a property.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a MicrodataValue> {
        self.properties.iter().filter(move |(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Serialize for MicrodataItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut names: Vec<&str> = Vec::new();
        let mut values: HashMap<&str, Vec<&MicrodataValue>> = HashMap::new();
        for (name, value) in &self.properties {
            let list = values.entry(name).or_default();
            if list.is_empty() {
                names.push(name);
            }
            list.push(value);
        }
        let mut map = serializer.serialize_map(None)?;
        if !self.types.is_empty() {
            map.serialize_entry("type", &self.types)?;
        }
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("properties", &InOrder { names, values })?;
        map.end()
    }
}

impl Serialize for MicrodataValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Item(item) => item.serialize(serializer),
        }
    }
}

struct InOrder<'a> {
    names: Vec<&'a str>,
    values: HashMap<&'a str, Vec<&'a MicrodataValue>>,
}

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().filter_map(|name| Some((name, self.values.get(name)?))))
    }
}

/// The items of a page, and whether some of it was left out.
pub(super) fn read(page: &Page, absolute: &dyn Fn(&str) -> Option<String>) -> (Vec<MicrodataItem>, bool) {
    let tops = page.css("[itemscope]:not([itemprop])");
    let document = page.document();
    let bytes = usize::try_from(document.byte_count()).unwrap_or(usize::MAX);
    let mut reader = Reader {
        page,
        absolute,
        ids: OnceCell::new(),
        path: Vec::new(),
        steps: document.node_count().saturating_mul(8),
        values: document.node_count().saturating_mul(2),
        // Addresses grow when they are made absolute.
        bytes: bytes.saturating_mul(16).saturating_add(64 << 10),
        is_cut: false,
    };
    let items = tops.nodes().map_while(|top| if reader.has_room() { reader.item(top) } else { None }).collect();
    (items, reader.is_cut)
}

/// Every item, one that holds another before it.
pub(super) fn every(items: &[MicrodataItem]) -> impl Iterator<Item = &MicrodataItem> {
    let mut open: Vec<&MicrodataItem> = items.iter().rev().collect();
    std::iter::from_fn(move || {
        let item = open.pop()?;
        open.extend(item.properties.iter().rev().filter_map(|(_, value)| match value {
            MicrodataValue::Item(item) => Some(item),
            MicrodataValue::Text(_) => None,
        }));
        Some(item)
    })
}

struct Reader<'p, 'a> {
    page: &'p Page,
    absolute: &'a dyn Fn(&str) -> Option<String>,
    /// The first element with each id; made when an item refers to one.
    ids: OnceCell<HashMap<&'p str, NodeRef<'p>>>,
    /// The items that are being read, from the outside in.
    path: Vec<NodeRef<'p>>,
    /// Elements that may still be looked at.
    steps: usize,
    /// Properties that may still be made.
    values: usize,
    /// Bytes of names and texts that may still be held, or looked through for nothing.
    bytes: usize,
    is_cut: bool,
}

impl<'p> Reader<'p, '_> {
    fn has_room(&mut self) -> bool {
        let has_room = self.steps > 0 && self.values > 0 && self.bytes > 0;
        self.is_cut |= !has_room;
        has_room
    }

    /// Takes this much of the room. What is too much takes all that is left, so that it is not made again and again for nothing.
    fn charge(&mut self, values: usize, bytes: usize) -> bool {
        let has_room = values <= self.values && bytes <= self.bytes;
        self.is_cut |= !has_room;
        self.values = self.values.saturating_sub(values);
        self.bytes = self.bytes.saturating_sub(bytes);
        has_room
    }

    /// Reads an item. What its own attributes hold is charged at every reading: items can be referred to without end.
    fn item(&mut self, root: NodeRef<'p>) -> Option<MicrodataItem> {
        let read = ["itemtype", "itemref"].iter().filter_map(|name| root.attr(name)).map(str::len).sum();
        if !self.charge(0, read) {
            return None;
        }
        let mut types = words(root, "itemtype");
        let mut item = MicrodataItem { types: types.by_ref().take(MAX_TYPES).map(str::to_owned).collect(), ..Default::default() };
        self.is_cut |= types.next().is_some();
        if let Some(id) = root.attr("itemid") {
            item.id = self.address(id).filter(|id| self.charge(0, id.len()));
        }
        self.path.push(root);
        for element in self.properties(root) {
            if !self.has_room() {
                break;
            }
            let Some(value) = self.value(element) else { continue };
            let mut names: Vec<&str> = Vec::new();
            for name in words(element, "itemprop").take(MAX_NAMES) {
                if names.contains(&name) {
                    continue;
                }
                // What an item holds is charged where it is made; for another name it is copied.
                let (mut values, mut bytes) = (1, name.len());
                if !names.is_empty() || matches!(value, MicrodataValue::Text(_)) {
                    weigh(&value, &mut values, &mut bytes);
                }
                if !self.charge(values, bytes) {
                    break;
                }
                names.push(name);
                item.properties.push((name.to_owned(), value.clone()));
            }
        }
        self.path.pop();
        Some(item)
    }

    /// The elements that are properties of an item (5.2.5), in document order.
    fn properties(&mut self, root: NodeRef<'p>) -> Vec<NodeRef<'p>> {
        let mut found = Vec::new();
        let mut known = HashSet::from([root.id.index()]);
        let mut open: Vec<NodeRef<'p>> = root.children().collect();
        open.reverse();
        for id in words(root, "itemref") {
            if self.steps == 0 {
                self.is_cut = true;
                break;
            }
            self.steps -= 1;
            open.extend(self.element_of(id));
        }
        while let Some(node) = open.pop() {
            if self.steps == 0 {
                self.is_cut = true;
                break;
            }
            self.steps -= 1;
            if !node.is_element() || !known.insert(node.id.index()) {
                continue;
            }
            if node.attr("itemscope").is_none() {
                open.extend(node.children());
            }
            let names = node.attr("itemprop").unwrap_or_default();
            if self.charge(0, names.len()) && names.contains(|c: char| !c.is_ascii_whitespace()) {
                found.push(node);
            }
        }
        found.sort_by_key(|node| node.document.place(node.id));
        found
    }

    fn element_of(&mut self, id: &str) -> Option<NodeRef<'p>> {
        let page = self.page;
        let ids = self.ids.get_or_init(|| {
            let mut ids = HashMap::new();
            for element in page.css("[id]").nodes() {
                ids.entry(element.attr("id").unwrap_or_default()).or_insert(element);
            }
            ids
        });
        ids.get(id).copied()
    }

    /// The value of a property (5.2.4). Beyond the standard, an attribute `content` counts on every element: pages of
    /// schema.org use it so.
    fn value(&mut self, element: NodeRef<'p>) -> Option<MicrodataValue> {
        if element.attr("itemscope").is_some() {
            if self.path.contains(&element) || self.path.len() >= MAX_DEPTH {
                self.is_cut = true;
                return None;
            }
            return self.item(element).map(MicrodataValue::Item);
        }
        let mut address = |name: &str| element.attr(name).and_then(|href| self.address(href)).unwrap_or_default();
        let text = match element.name().unwrap_or_default() {
            "meta" => element.attr("content").unwrap_or_default().to_owned(),
            "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => address("src"),
            "a" | "area" | "link" => address("href"),
            "object" => address("data"),
            "data" | "meter" => element.attr("value").unwrap_or_default().to_owned(),
            "time" if element.attr("datetime").is_some() => element.attr("datetime").unwrap_or_default().to_owned(),
            _ => match element.attr("content") {
                Some(content) => content.to_owned(),
                None => self.text_of(element),
            },
        };
        let trimmed = text.trim_ascii();
        // What is kept is charged for each of its names.
        self.charge(0, text.len() - trimmed.len()).then(|| MicrodataValue::Text(trimmed.to_owned()))
    }

    /// An address, made absolute.
    fn address(&mut self, address: &str) -> Option<String> {
        if self.charge(0, address.len()) { (self.absolute)(address) } else { None }
    }

    /// The text below an element, as far as there is room for it.
    fn text_of(&mut self, element: NodeRef<'p>) -> String {
        let mut text = String::new();
        for node in element.descendants() {
            if self.steps == 0 || text.len() > self.bytes {
                self.is_cut = true;
                break;
            }
            self.steps -= 1;
            if node.kind() == NodeKind::Text {
                text.push_str(node.data().unwrap_or_default());
            }
        }
        text
    }
}

/// Adds what a value holds.
fn weigh(value: &MicrodataValue, values: &mut usize, bytes: &mut usize) {
    match value {
        MicrodataValue::Text(text) => *bytes += text.len(),
        MicrodataValue::Item(item) => {
            *bytes += item.types.iter().chain(&item.id).map(String::len).sum::<usize>();
            for (name, value) in &item.properties {
                *values += 1;
                *bytes += name.len();
                weigh(value, values, bytes);
            }
        }
    }
}

fn words<'p>(element: NodeRef<'p>, attribute: &str) -> impl Iterator<Item = &'p str> + use<'p> {
    element.attr(attribute).unwrap_or_default().split_ascii_whitespace()
}
