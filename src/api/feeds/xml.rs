//! XML by element: one item at a time, whatever stands around it.
//!
//! As feeds are, not as they should be: end tags that fit nothing are passed over, names of HTML (`&nbsp;`) are known, an ampersand
//! may stand alone. No entity of the document is expanded and nothing outside of it is fetched.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::super::response::Response;
use super::super::selector::Page;
use super::xml_tree::{XmlElement, XmlNode, is_named};

/// Most elements an element of an item is in.
const DEEPEST: usize = 128;
/// Longest name of a reference that is looked up.
const LONGEST_NAME: usize = 40;

/// A feed that cannot be read on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    /// What stands there is no XML.
    #[error("{url} is no XML at byte {at}: {reason}; the items before it were read")]
    Syntax {
        /// The feed.
        url: String,
        /// Where.
        at: u64,
        /// What is wrong.
        reason: String,
    },
    /// The feed ends within an item.
    #[error("{url} ends within <{name}>; the items before it were read")]
    Cut {
        /// The feed.
        url: String,
        /// The item.
        name: String,
    },
    /// Elements are nested deeper than any feed's.
    #[error("{url} nests elements more than {DEEPEST} deep at byte {at}; the items before it were read")]
    TooDeep {
        /// The feed.
        url: String,
        /// Where.
        at: u64,
    },
}

/// The elements of a name in a feed, in order; after an error there are no more. One in another is a part of that.
#[derive(Debug)]
pub struct XmlItems<'r> {
    url: String,
    tag: String,
    reader: Reader<&'r [u8]>,
    /// The item that is read, and the open elements in it.
    open: Vec<XmlElement>,
    is_over: bool,
}

impl Response {
    /// The elements of this name in an XML feed, wherever they stand: `item`, `entry`, `g:item`, or `*:item` for any prefix.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # fn read(response: &Response) -> Result<(), CallbackError> {
    /// for item in response.xml_items("item") {
    ///     let item = item?;
    ///     println!("{:?} {:?} {:?}", item.text_of("title"), item.attr_of("enclosure", "url"), item.texts_of("category"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn xml_items(&self, tag: &str) -> XmlItems<'_> {
        XmlItems::read(self.url().as_str(), self.text(), tag)
    }
}

impl<'r> XmlItems<'r> {
    pub(super) fn read(url: &str, text: &'r str, tag: &str) -> Self {
        let mut reader = Reader::from_reader(text.as_bytes());
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        Self { url: url.to_owned(), tag: tag.to_owned(), reader, open: Vec::new(), is_over: false }
    }

    fn end(&mut self, error: Option<XmlError>) -> Option<Result<XmlElement, XmlError>> {
        self.is_over = true;
        self.open.clear();
        error.map(Err)
    }

    /// Closes the innermost open element of this name and those in it; gives the item if it was that.
    fn close(&mut self, name: &str) -> Option<XmlElement> {
        let place = self.open.iter().rposition(|open| open.name == name)?;
        while self.open.len() > place {
            let closed = self.open.pop()?;
            match self.open.last_mut() {
                Some(around) => around.nodes.push(XmlNode::Element(closed)),
                None => return Some(closed),
            }
        }
        None
    }

    fn add_text(&mut self, text: &str) {
        let Some(open) = self.open.last_mut().filter(|_| !text.is_empty()) else { return };
        match open.nodes.last_mut() {
            Some(XmlNode::Text(before)) => before.push_str(text),
            _ => open.nodes.push(XmlNode::Text(text.to_owned())),
        }
    }
}

impl Iterator for XmlItems<'_> {
    type Item = Result<XmlElement, XmlError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            let at = self.reader.buffer_position();
            match self.reader.read_event() {
                Ok(Event::Start(start)) => {
                    let name = start.name().as_ref().to_owned();
                    if self.open.is_empty() && !is_named(&name, &self.tag) {
                        continue;
                    }
                    if self.open.len() >= DEEPEST {
                        return self.end(Some(XmlError::TooDeep { url: self.url.clone(), at }));
                    }
                    self.open.push(XmlElement { attrs: attributes(&start), name, nodes: Vec::new() });
                }
                Ok(Event::End(end)) => {
                    let name = end.name();
                    if let Some(item) = self.close(name.as_ref()) {
                        return Some(Ok(item));
                    }
                }
                Ok(Event::Text(text)) => self.add_text(&with_line_feeds(&text)),
                Ok(Event::CData(text)) => self.add_text(&with_line_feeds(&text)),
                Ok(Event::GeneralRef(reference)) => {
                    let name: &str = &reference;
                    match referred(name) {
                        Some(text) => self.add_text(&text),
                        None => self.add_text(&format!("&{name};")),
                    }
                }
                Ok(Event::Eof) => {
                    let cut = self.open.first().map(|item| item.name.clone());
                    let error = cut.map(|name| XmlError::Cut { url: self.url.clone(), name });
                    return self.end(error);
                }
                Ok(_) => {}
                Err(error) => {
                    let reason = error.to_string();
                    return self.end(Some(XmlError::Syntax { url: self.url.clone(), at: self.reader.error_position(), reason }));
                }
            }
        }
        None
    }
}

/// Line ends as XML 1.0 2.11 has them.
fn with_line_feeds(text: &str) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() }
}

fn attributes(start: &BytesStart<'_>) -> Vec<(String, String)> {
    let mut attrs = start.html_attributes();
    attrs.with_checks(false).flatten().map(|attr| (attr.key.as_ref().to_owned(), attribute_value(&attr.value))).collect()
}

/// The value of an attribute: references decoded, each white space a blank (XML 1.0 3.3.3).
fn attribute_value(raw: &str) -> String {
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('&') {
        value.push_str(&before.replace(['\t', '\n', '\r'], " "));
        let end = behind.bytes().take(LONGEST_NAME).position(|byte| byte == b';');
        let reference = end.and_then(|end| behind.split_at_checked(end)).and_then(|(name, _)| Some((name, referred(name)?)));
        match reference {
            Some((name, text)) => {
                value.push_str(&text);
                rest = behind.get(name.len() + 1..).unwrap_or_default();
            }
            None => {
                value.push('&');
                rest = behind;
            }
        }
    }
    value.push_str(&rest.replace(['\t', '\n', '\r'], " "));
    value
}

/// What a reference stands for, its text between `&` and `;`: those of XML, numbers, and the names of HTML.
fn referred(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return number.ok().map(|number| char::from_u32(number).filter(|c| *c != '\0').unwrap_or('\u{fffd}').to_string());
    }
    let known = match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        "nbsp" => "\u{a0}",
        _ => return html_reference(name),
    };
    Some(known.to_owned())
}

/// A name that only HTML knows, by the parser that does. Feeds have few of them.
fn html_reference(name: &str) -> Option<String> {
    let is_name = name.len() <= LONGEST_NAME && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_name {
        return None;
    }
    let page = Page::parse(&format!("<title>&{name};</title>"));
    let text = page.css("title").nodes().next()?.text();
    // What is no name, or begins with one, keeps its semicolon.
    (!text.ends_with(';') || name == "semi").then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    fn items(text: &str, tag: &str) -> Vec<Result<XmlElement, XmlError>> {
        XmlItems::read("https://a.test/f.xml", text, tag).collect()
    }

    const RSS: &str = r#"<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x "no">]>
        <rss xmlns:media="m"><channel><title>All</title>
        <item id="1"><title>A &amp; B</title><media:title>M</media:title><link>http://a.test/?a=1&amp;b=2</link>
          <description><![CDATA[<b>bold</b> & more]]></description><category>x</category><category> y </category>
          <enclosure url="http://a.test/1.mp3?a&amp;b" length='3'/><author><name>N<i>n</i></name></author></item>
        <item id="2"><title>caf&eacute;&nbsp;&#x20AC;&#8364; AT&T &x; &nothing;</title></item>
        </channel></rss>"#;

    #[test]
    fn items_are_read_with_all_that_is_in_them() {
        let read: Vec<XmlElement> = items(RSS, "item").into_iter().map(Result::unwrap).collect();
        assert_eq!(read.len(), 2);
        let first = &read[0];
        assert_eq!((first.attr("id"), first.text_of("title").as_deref()), (Some("1"), Some("A & B")));
        assert_eq!(first.text_of("description").as_deref(), Some("<b>bold</b> & more"));
        assert_eq!(first.text_of("link").as_deref(), Some("http://a.test/?a=1&b=2"));
        assert_eq!(first.texts_of("category"), ["x", "y"]);
        assert_eq!(
            (first.attr_of("enclosure", "url"), first.attr_of("enclosure", "length")),
            (Some("http://a.test/1.mp3?a&b"), Some("3"))
        );
        assert_eq!((first.text_of("author/name").as_deref(), first.text_of("author/none")), (Some("Nn"), None));
        assert_eq!(
            (first.text_of("media:title").as_deref(), first.texts_of("*:title")),
            (Some("M"), vec!["A & B".to_owned(), "M".to_owned()])
        );
        // A name the document declares is not expanded.
        assert_eq!(read[1].text_of("title").as_deref(), Some("caf\u{e9}\u{a0}\u{20ac}\u{20ac} AT&T &x; &nothing;"));
    }

    #[test]
    fn a_name_is_asked_for_with_its_prefix() {
        let feed = "<f><g:item>1</g:item><item>2</item><Item>3</Item><h:item/></f>";
        let texts = |tag: &str| items(feed, tag).into_iter().map(|item| item.unwrap().text()).collect::<Vec<_>>();
        assert_eq!(
            (texts("item"), texts("g:item"), texts("*:item")),
            (vec!["2".into()], vec!["1".into()], vec!["1".into(), "2".into(), String::new()])
        );
        // One in another is a part of it.
        assert_eq!(items("<a>1<a>2</a></a><a>3</a>", "a").len(), 2);
    }

    #[test]
    fn a_feed_with_faults_is_read_as_far_as_it_goes() {
        let unclosed = items("<f><item><p>1<br></p></item></x><item>2</item>", "item");
        assert_eq!(unclosed.iter().map(|item| item.as_ref().unwrap().text()).collect::<Vec<_>>(), ["1", "2"]);
        for (feed, good, part) in [
            ("<f><item>1</item><item>2", 1, "ends within <item>"),
            ("<f><item>1</item><item a='", 1, "no XML at byte"),
            ("<f><item>1</item><!-- ", 1, "no XML at byte"),
        ] {
            let read = items(feed, "item");
            assert_eq!(read.len(), good + 1, "{feed}");
            assert!(read[good].as_ref().unwrap_err().to_string().contains(part), "{:?}", read[good]);
        }
        assert!(items("not xml at all", "item").is_empty());
        assert!(items("", "item").is_empty());
    }

    #[test]
    fn elements_nested_without_end_are_an_error() {
        let read = items(&format!("<item>1</item><item>{}", "<a>".repeat(100_000)), "item");
        assert!(read.len() == 2 && read[1].as_ref().unwrap_err().to_string().contains("128 deep"), "{:?}", read[1]);
    }

    proptest! {
        #[test]
        fn any_text_ends_and_gives_no_more_than_it_has(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "<item>", "</item>", "<item/>", "<a b='&lt;' c>", "</a>", "&amp;", "&", "<", ">", "<![CDATA[", "]]>", "<!--", "-->", "<?x", "?>",
                "text", "\u{e9}", "\r\n", "\"", "&#0;", "&#xD800;", "<!DOCTYPE ", "]",
            ]), 0..40)
        ) {
            let text = parts.concat();
            let read = items(&text, "item");
            prop_assert!(read.iter().filter(|item| item.is_ok()).count() <= text.matches("<item").count());
            prop_assert!(read.iter().filter(|item| item.is_err()).count() <= 1);
        }
    }
}
