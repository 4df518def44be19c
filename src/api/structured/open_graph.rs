//! Open Graph (ogp.me): `meta` elements whose `property` has a prefix, and those of others that are written alike.

use std::collections::HashMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::api::selector::Page;

/// Prefixes that are read.
const PREFIXES: &[&str] =
    &["og", "article", "book", "profile", "video", "music", "product", "place", "business", "fb", "al", "twitter"];

/// Properties and their values, in document order. Serialises to an object; a property that stands more than once is a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenGraph {
    properties: Vec<(String, String)>,
}

impl OpenGraph {
    pub(super) fn read(page: &Page) -> Self {
        let mut properties = Vec::new();
        for meta in page.css("meta[content]").nodes() {
            let content = meta.attr("content").unwrap_or_default().trim_ascii();
            let names = meta.attr("property").or_else(|| meta.attr("name")).unwrap_or_default();
            let names = names.split_ascii_whitespace().filter(|name| is_property(name));
            properties.extend(names.take(MAX_NAMES).map(|name| (name.to_ascii_lowercase(), content.to_owned())));
        }
        Self { properties }
    }

    /// The first value of a property: `og:title`.
    #[must_use]
    pub fn get(&self, property: &str) -> Option<&str> {
        self.all(property).next()
    }

    /// All values of a property.
    pub fn all<'a>(&'a self, property: &str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(name, _)| *name == property).map(|(_, value)| value)
    }

    /// Every property with its value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Each value of a property with what is said of it (`og:image` with `og:image:width`): names without what they have in
    /// common, the value itself as `url`. What comes before the next value belongs to the one before it.
    #[must_use]
    pub fn objects(&self, property: &str) -> Vec<Vec<(&str, &str)>> {
        let mut objects: Vec<Vec<(&str, &str)>> = Vec::new();
        for (name, value) in self.iter() {
            let Some(rest) = name.strip_prefix(property) else { continue };
            match rest.strip_prefix(':') {
                // `og:image:url` says the same as `og:image`, and some pages have only it.
                Some("url") if objects.last().is_some_and(|object| object.contains(&("url", value))) => {}
                Some("url") => objects.push(vec![("url", value)]),
                Some(detail) => {
                    if let Some(object) = objects.last_mut() {
                        object.push((detail, value));
                    }
                }
                None if rest.is_empty() => objects.push(vec![("url", value)]),
                None => {}
            }
        }
        objects
    }

    /// Whether the page says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }
}

/// Names in one element, each of which copies its content.
const MAX_NAMES: usize = 8;

impl Serialize for OpenGraph {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut values: HashMap<&str, Vec<&str>> = HashMap::new();
        for (name, value) in self.iter() {
            values.entry(name).or_default().push(value);
        }
        let mut map = serializer.serialize_map(None)?;
        for (name, _) in self.iter() {
            match values.remove(name).as_deref() {
                Some([value]) => map.serialize_entry(name, value)?,
                Some(list) => map.serialize_entry(name, list)?,
                None => {}
            }
        }
        map.end()
    }
}

fn is_property(name: &str) -> bool {
    name.split_once(':')
        .is_some_and(|(prefix, rest)| !rest.is_empty() && PREFIXES.iter().any(|known| prefix.eq_ignore_ascii_case(known)))
}
