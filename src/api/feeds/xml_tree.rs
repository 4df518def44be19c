//! An element of an XML feed with all that is in it.

/// An element: its name, its attributes, and what it holds.
///
/// A name is asked for as the feed writes it, with its prefix: `title` is not `media:title`. `*:title` is both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XmlElement {
    pub(super) name: String,
    pub(super) attrs: Vec<(String, String)>,
    pub(super) nodes: Vec<XmlNode>,
}

/// What an element holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlNode {
    /// Text, references decoded, of CDATA sections as well.
    Text(String),
    /// An element.
    Element(XmlElement),
}

impl XmlElement {
    /// The name as written, with its prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An attribute by its name as written.
    #[must_use]
    pub fn attr(&self, name: &str) -> Option<&str> {
        self.attrs.iter().find(|(attr, _)| attr == name).map(|(_, value)| value.as_str())
    }

    /// Its attributes, in order.
    pub fn attrs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attrs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What it holds, in order.
    #[must_use]
    pub fn nodes(&self) -> &[XmlNode] {
        &self.nodes
    }

    /// The elements in it, in order.
    pub fn children(&self) -> impl Iterator<Item = &XmlElement> {
        self.nodes.iter().filter_map(|node| if let XmlNode::Element(element) = node { Some(element) } else { None })
    }

    /// The elements at the end of a path of names: `author/name`. An empty path is the element itself.
    #[must_use]
    pub fn find_all(&self, path: &str) -> Vec<&XmlElement> {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.fold(vec![self], |found, name| {
            found.into_iter().flat_map(XmlElement::children).filter(|child| is_named(&child.name, name)).collect()
        })
    }

    /// The first element at the end of a path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&XmlElement> {
        self.find_all(path).into_iter().next()
    }

    /// All text in it, that of elements in it as well, without white space around it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.add_text(&mut text);
        text.trim_ascii().to_owned()
    }

    /// The text of the first element at the end of a path.
    #[must_use]
    pub fn text_of(&self, path: &str) -> Option<String> {
        self.find(path).map(XmlElement::text)
    }

    /// The texts of all elements at the end of a path.
    #[must_use]
    pub fn texts_of(&self, path: &str) -> Vec<String> {
        self.find_all(path).into_iter().map(XmlElement::text).collect()
    }

    /// An attribute of the first element at the end of a path that has it.
    #[must_use]
    pub fn attr_of(&self, path: &str, name: &str) -> Option<&str> {
        self.find_all(path).into_iter().find_map(|element| element.attr(name))
    }

    /// The depth is bounded where elements are read.
    fn add_text(&self, text: &mut String) {
        for node in &self.nodes {
            match node {
                XmlNode::Text(data) => text.push_str(data),
                XmlNode::Element(element) => element.add_text(text),
            }
        }
    }
}

/// Whether a name as written is the one that is asked for.
pub(super) fn is_named(name: &str, asked: &str) -> bool {
    match asked.strip_prefix("*:") {
        Some(local) => name.rsplit(':').next() == Some(local),
        None => asked == "*" || name == asked,
    }
}
