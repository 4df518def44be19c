//! Feeds that sites offer: XML by element, CSV by row, JSON by line. One broken row or line is an error of its own; the rest of
//! the feed is read.
//!
//! A JSON array is read by [`Response::json_items`](super::response::Response::json_items).

mod csv;
mod json_lines;
mod xml;
mod xml_tree;

pub use self::csv::{CsvError, CsvOptions, CsvRow, CsvRows};
pub use json_lines::{JsonLineError, JsonLines};
pub use xml::{XmlError, XmlItems};
pub use xml_tree::{XmlElement, XmlNode};
