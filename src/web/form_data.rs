//! The three ways a form's entries are written into a request (WHATWG HTML 4.10.21.7 and 4.10.21.8, WHATWG URL 5.2).
//!
//! Characters that an encoding lacks become `&#…;`, as browsers send them. Nothing here is random: the same entries give the same
//! bytes, so that a request asked for twice is known to be the same one.

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The content type of [`url_encoded`].
pub const URL_ENCODED: &str = "application/x-www-form-urlencoded";
/// The content type of [`plain`].
pub const PLAIN: &str = "text/plain";

/// One name with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The value.
    pub value: EntryValue,
}

/// The value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryValue {
    /// A text.
    Text(String),
    /// A file.
    File(Upload),
}

/// A file in a form. The default one is what a browser sends where no file was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its name, without a folder.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// What is in it.
    pub bytes: Bytes,
}

impl Default for Upload {
    fn default() -> Self {
        Self { name: String::new(), media_type: "application/octet-stream".to_owned(), bytes: Bytes::new() }
    }
}

impl Entry {
    /// An entry with a text.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: EntryValue::Text(value.into()) }
    }

    /// What it is where there is no room for a file: of that its name.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.value {
            EntryValue::Text(text) => text,
            EntryValue::File(file) => &file.name,
        }
    }
}

/// The encoding a form is sent in: the first one its `accept-charset` names, else UTF-8; without that attribute the page's.
/// Encodings no text is written in, such as UTF-16, stand for UTF-8.
#[must_use]
pub fn encoding_of(accept_charset: Option<&str>, page: &'static Encoding) -> &'static Encoding {
    let chosen = match accept_charset {
        Some(labels) => labels.split_ascii_whitespace().find_map(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8),
        None => page,
    };
    chosen.output_encoding()
}

/// `a=1&b=2`, for a query or a body.
#[must_use]
pub fn url_encoded(entries: &[Entry], encoding: &'static Encoding) -> String {
    let mut out = String::new();
    for entry in entries {
        if !out.is_empty() {
            out.push('&');
        }
        push_url_encoded(&mut out, &entry.name, encoding);
        out.push('=');
        push_url_encoded(&mut out, entry.text(), encoding);
    }
    out
}

fn push_url_encoded(out: &mut String, text: &str, encoding: &'static Encoding) {
    let text = with_crlf(text);
    out.extend(url::form_urlencoded::byte_serialize(&encoding.encode(&text).0));
}

/// The body `multipart/form-data` (RFC 7578, as WHATWG HTML writes it) and its content type with the boundary. That is made from
/// the entries and stands nowhere in them.
#[must_use]
pub fn multipart(entries: &[Entry], encoding: &'static Encoding) -> (Bytes, String) {
    let parts: Vec<(String, Bytes)> = entries.iter().map(|entry| part(entry, encoding)).collect();
    let boundary = boundary(&parts);
    let mut body = Vec::with_capacity(parts.iter().map(|(_, value)| value.len() + 160).sum::<usize>() + 64);
    for ((head, value), entry) in parts.iter().zip(entries) {
        body.extend_from_slice(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"").as_bytes());
        body.extend_from_slice(&quoted(&with_crlf(&entry.name), encoding));
        body.extend_from_slice(b"\"");
        if let EntryValue::File(file) = &entry.value {
            body.extend_from_slice(b"; filename=\"");
            body.extend_from_slice(&quoted(&file.name, encoding));
            body.extend_from_slice(b"\"");
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (body.into(), format!("multipart/form-data; boundary={boundary}"))
}

/// What follows the names of an entry in its head, and its value.
fn part(entry: &Entry, encoding: &'static Encoding) -> (String, Bytes) {
    match &entry.value {
        EntryValue::Text(text) => (String::new(), Bytes::from(encoding.encode(&with_crlf(text)).0.into_owned())),
        EntryValue::File(file) => {
            let line_ends = file.media_type.contains(['\r', '\n']);
            let kind = if line_ends || file.media_type.is_empty() { "application/octet-stream" } else { &file.media_type };
            (format!("\r\nContent-Type: {kind}"), file.bytes.clone())
        }
    }
}

/// A name in the head of a part: what would end it is escaped.
fn quoted(name: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for &byte in encoding.encode(name).0.iter() {
        match byte {
            b'"' => out.extend_from_slice(b"%22"),
            b'\r' => out.extend_from_slice(b"%0D"),
            b'\n' => out.extend_from_slice(b"%0A"),
            other => out.push(other),
        }
    }
    out
}

fn boundary(parts: &[(String, Bytes)]) -> String {
    let mut seed = 0;
    loop {
        let hash = parts.iter().fold(u128::from(seed), |hash, (head, value)| {
            let head = xxh3_128_with_seed(head.as_bytes(), seed);
            hash.rotate_left(7) ^ head ^ xxh3_128_with_seed(value, seed).rotate_left(1)
        });
        let boundary = format!("----dragline{hash:032x}");
        let stands_in = |value: &Bytes| memchr::memmem::find(value, boundary.as_bytes()).is_some();
        if !parts.iter().any(|(_, value)| stands_in(value)) {
            return boundary;
        }
        seed += 1;
    }
}

/// `a=1` on a line each; nothing is escaped, so that no program can read it back for certain.
#[must_use]
pub fn plain(entries: &[Entry], encoding: &'static Encoding) -> Bytes {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&with_crlf(&entry.name));
        text.push('=');
        text.push_str(&with_crlf(entry.text()));
        text.push_str("\r\n");
    }
    encoding.encode(&text).0.into_owned().into()
}

/// The text with every line end as CR LF.
fn with_crlf(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(['\r', '\n']) {
        return text.into();
    }
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n").into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use encoding_rs::{ISO_2022_JP, SHIFT_JIS, UTF_16LE, WINDOWS_1252};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_encoding_is_chosen_by_the_first_label_that_is_known() {
        for (labels, page, name) in [
            (None, WINDOWS_1252, "windows-1252"),
            (None, UTF_16LE, "UTF-8"),
            (Some("bogus shift_jis utf-8"), WINDOWS_1252, "Shift_JIS"),
            (Some("bogus, utf-8"), WINDOWS_1252, "UTF-8"),
            (Some(""), WINDOWS_1252, "UTF-8"),
            (Some("utf-16"), WINDOWS_1252, "UTF-8"),
        ] {
            assert_eq!(encoding_of(labels, page).name(), name, "{labels:?}");
        }
    }

    #[test]
    fn what_an_encoding_lacks_becomes_a_reference() {
        let entries = [Entry::new("n\u{e9}", "\u{20ac} \u{548c}")];
        assert_eq!(url_encoded(&entries, WINDOWS_1252), "n%E9=%80+%26%2321644%3B");
        assert_eq!(url_encoded(&entries, SHIFT_JIS), "n%26%23233%3B=%26%238364%3B+%98a");
        // Each name and value begins in the encoding's first state.
        assert_eq!(url_encoded(&[Entry::new("\u{3042}", "\u{3042}")], ISO_2022_JP), "%1B%24B%24%22%1B%28B=%1B%24B%24%22%1B%28B");
        assert_eq!(plain(&entries, WINDOWS_1252).as_ref(), b"n\xe9=\x80 &#21644;\r\n");
    }

    #[test]
    fn line_ends_are_cr_lf_everywhere_but_in_files() {
        let entries = [
            Entry::new("a\nb", "1\r2\r\n3\n"),
            Entry {
                name: "f".into(),
                value: EntryValue::File(Upload {
                    name: "x\".txt".into(),
                    media_type: "text/plain".into(),
                    bytes: "1\n2\r".into(),
                }),
            },
        ];
        assert_eq!(url_encoded(&entries, UTF_8), "a%0D%0Ab=1%0D%0A2%0D%0A3%0D%0A&f=x%22.txt");
        let (body, kind) = multipart(&entries, UTF_8);
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"a%0D%0Ab\"\r\n\r\n1\r\n2\r\n3\r\n\r\n--{boundary}\r\n\
             Content-Disposition: form-data; name=\"f\"; filename=\"x%22.txt\"\r\nContent-Type: text/plain\r\n\r\n1\n2\r\r\n--{boundary}--\r\n"
        );
        assert_eq!(std::str::from_utf8(&body).unwrap(), expected);
    }

    #[test]
    fn a_media_type_cannot_add_a_header() {
        let file = Upload { media_type: "text/plain\r\nX: 1".into(), ..Upload::default() };
        let (body, _) = multipart(&[Entry { name: "f".into(), value: EntryValue::File(file) }], UTF_8);
        assert!(memchr::memmem::find(&body, b"X: 1").is_none());
    }

    #[test]
    fn a_boundary_is_that_of_its_entries_and_stands_in_none() {
        let made = |value: &str| multipart(&[Entry::new("a", value)], UTF_8);
        assert_eq!(made("1"), made("1"));
        assert_ne!(made("1").1, made("2").1);
        assert!(multipart(&[], UTF_8).0.ends_with(b"--\r\n"));
    }

    proptest! {
        #[test]
        fn form_encoding_is_read_back_as_it_was(pairs in proptest::collection::vec(("\\PC{0,6}", "\\PC{0,12}"), 0..6)) {
            let entries: Vec<Entry> = pairs.iter().map(|(name, value)| Entry::new(name, value)).collect();
            let text = url_encoded(&entries, UTF_8);
            let read: Vec<(String, String)> = url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
            // What reads them has no nameless entry without a value.
            if pairs.iter().all(|(name, value)| !name.is_empty() || !value.is_empty()) {
                prop_assert_eq!(read, pairs);
            }
        }

        #[test]
        fn no_part_of_a_multipart_body_ends_early(values in proptest::collection::vec("[-a-z\r\n]{0,40}", 0..5)) {
            let entries: Vec<Entry> = values.iter().map(|value| Entry::new("n", value)).collect();
            let (body, kind) = multipart(&entries, UTF_8);
            let boundary = kind.split_once("boundary=").map(|(_, boundary)| boundary.to_owned()).unwrap_or_default();
            let text = String::from_utf8(body.to_vec()).unwrap_or_default();
            prop_assert_eq!(text.matches(&boundary).count(), values.len() + 1);
        }
    }
}
