//! What a response says beyond its markup: data for machines, and text for people.

use super::readable;
use super::response::Response;
use super::structured::StructuredData;

impl Response {
    /// What the page says about itself for machines: JSON-LD, microdata and Open Graph. Reads the whole page each time.
    #[must_use]
    pub fn structured_data(&self) -> StructuredData {
        StructuredData::of(self.page(), |href| self.join(href).ok().map(String::from))
    }

    /// The text of the page without what surrounds its content; see [`readable::readable_text`].
    #[must_use]
    pub fn readable_text(&self) -> String {
        readable::readable_text(self.page())
    }

    /// All text of the page as a browser shows it; see [`readable::visible_text`].
    #[must_use]
    pub fn visible_text(&self) -> String {
        readable::visible_text(self.page())
    }
}
