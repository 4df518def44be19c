//! One thing of a selection: a node, an attribute or a value of XPath, and the texts it can be read as.

use std::borrow::Cow;

use super::super::document::NodeRef;
use super::super::hit::Hit;
use super::super::text;
use super::super::xpath::Value;
use super::{Page, State};

/// One thing of a selection.
#[derive(Clone, Copy)]
pub(super) enum Item<'p, 's> {
    Hit(&'p Page, Hit),
    Scalar(&'s Value),
}

impl<'p> Item<'p, '_> {
    pub(super) fn state(self) -> State {
        match self {
            Self::Hit(_, hit) => State::One(hit),
            Self::Scalar(scalar) => State::Scalar(scalar.clone()),
        }
    }

    pub(super) fn node(self) -> Option<NodeRef<'p>> {
        match self {
            Self::Hit(page, Hit::Node(id)) => page.document().node(id),
            Self::Hit(_, Hit::Attr { .. }) | Self::Scalar(_) => None,
        }
    }

    /// The node, or the element that has the attribute.
    pub(super) fn owner(self) -> Option<NodeRef<'p>> {
        match self {
            Self::Hit(page, hit) => page.document().node(hit.node()),
            Self::Scalar(_) => None,
        }
    }

    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Scalar(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn boolean(self) -> Option<bool> {
        match self {
            Self::Scalar(Value::Boolean(boolean)) => Some(*boolean),
            _ => None,
        }
    }

    /// A text or an attribute value, or the named attribute of an element.
    pub(super) fn as_str(self, attribute: Option<&str>) -> Option<&'p str> {
        match self {
            Self::Hit(page, hit) => match hit.attr(page.document().arena()) {
                Some(attr) => Some(page.document().arena().text(attr.value())),
                None => {
                    let node = page.document().node(hit.node())?;
                    if node.is_element() { node.attr(attribute?) } else { node.data() }
                }
            },
            Self::Scalar(_) => None,
        }
    }

    /// As Scrapy's `get` writes it.
    pub(super) fn to_text(self) -> String {
        match self {
            Self::Hit(page, hit) => match self.plain() {
                Some(text) => text.to_owned(),
                None => page.document().node(hit.node()).map(NodeRef::html).unwrap_or_default(),
            },
            Self::Scalar(scalar) => scalar_text(scalar).into_owned(),
        }
    }

    /// What patterns are matched against.
    pub(super) fn pattern_text(self) -> Cow<'p, str>
    where
        Self: 'p,
    {
        match self {
            Self::Hit(page, hit) => match self.plain() {
                Some(text) => text.into(),
                None => text::for_pattern(page.document(), hit.node()).into(),
            },
            Self::Scalar(scalar) => scalar_text(scalar).into_owned().into(),
        }
    }

    /// What a reader sees.
    pub(super) fn visible_text(self) -> String {
        match self {
            Self::Hit(page, hit) => match self.plain() {
                Some(text) => text::words(text),
                None => text::visible(page.document(), hit.node()),
            },
            Self::Scalar(scalar) => text::words(&scalar_text(scalar)),
        }
    }

    /// The text of what is written as it is: texts and attribute values.
    fn plain(self) -> Option<&'p str> {
        let Self::Hit(page, hit) = self else { return None };
        let is_plain = matches!(hit, Hit::Attr { .. }) || page.document().arena().is_text(hit.node());
        is_plain.then(|| self.as_str(None).unwrap_or_default())
    }
}

/// A value as Scrapy writes it: `3.0` for a number, `1` or `0` for a truth value.
fn scalar_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.scrapy_text().unwrap_or_default().into(),
    }
}

/// The things of a selection, in order.
pub(super) struct Items<'p, 's> {
    page: &'p Page,
    rest: Rest<'s>,
}

enum Rest<'s> {
    Hits(std::slice::Iter<'s, Hit>),
    Scalars(std::slice::Iter<'s, Value>),
}

impl<'p, 's> Items<'p, 's> {
    pub(super) fn hits(page: &'p Page, hits: &'s [Hit]) -> Self {
        Self { page, rest: Rest::Hits(hits.iter()) }
    }

    pub(super) fn scalars(page: &'p Page, scalars: &'s [Value]) -> Self {
        Self { page, rest: Rest::Scalars(scalars.iter()) }
    }
}

impl<'p, 's> Iterator for Items<'p, 's> {
    type Item = Item<'p, 's>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rest {
            Rest::Hits(hits) => hits.next().map(|hit| Item::Hit(self.page, *hit)),
            Rest::Scalars(scalars) => scalars.next().map(Item::Scalar),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.rest {
            Rest::Hits(hits) => hits.size_hint(),
            Rest::Scalars(scalars) => scalars.size_hint(),
        }
    }
}

impl ExactSizeIterator for Items<'_, '_> {}
