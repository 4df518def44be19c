//! Finds the encoding that a page declares in its first bytes.
//!
//! The prescan of the HTML standard ("prescan a byte stream to determine its encoding"), and the XML declaration at the
//! very start. A page that declares nothing in its first 1024 bytes is looked at up to its body: browsers, too, change
//! their mind when a `<meta>` comes late in a long head ("change the encoding"). Never decides by content.

use std::collections::HashSet;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Bytes searched for a declaration wherever it stands (HTML standard, "prescan a byte stream").
const PRESCAN_BYTES: usize = 1024;

/// Bytes of a long head that are searched.
const HEAD_BYTES: usize = 32 * 1024;

/// The encoding declared by a `<meta>` element or the XML declaration.
pub(super) fn declared_encoding(body: &[u8]) -> Option<&'static Encoding> {
    let first = body.get(..PRESCAN_BYTES).unwrap_or(body);
    let early = Scanner { rest: first, reading: Reading::Bytes }.run().or_else(|| xml_declaration(first));
    if early.is_some() || first.len() == body.len() {
        return early;
    }
    Scanner { rest: body.get(..HEAD_BYTES).unwrap_or(body), reading: Reading::Head }.run()
}

struct Scanner<'a> {
    rest: &'a [u8],
    reading: Reading,
}

/// What the scanner makes of the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// All of them may declare something, as in the prescan.
    Bytes,
    /// Scripts and styles are passed over, and the body ends it.
    Head,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> Option<&'static Encoding> {
        loop {
            let at = memchr::memchr(b'<', self.rest)?;
            self.skip(at);
            if self.rest.starts_with(b"<!--") {
                // The dashes of the opening may also be those of the end: `<!-->`.
                self.skip(2);
                let end = memchr::memmem::find(self.rest, b"-->")?;
                self.skip(end + 3);
            } else if self.is_meta() {
                self.skip(5);
                if let Some(encoding) = self.meta() {
                    return Some(encoding);
                }
            } else if self.is_tag() {
                self.skip(1);
                let name_end = self.rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
                let name = self.rest.get(..name_end)?;
                self.skip(name_end);
                while self.attribute()?.is_some() {}
                if self.reading == Reading::Head {
                    if name.eq_ignore_ascii_case(b"body") {
                        return None;
                    }
                    self.skip_raw_text(name);
                }
            } else if matches!(self.rest.get(1), Some(b'!' | b'/' | b'?')) {
                let end = memchr::memchr(b'>', self.rest)?;
                self.skip(end + 1);
            } else {
                self.skip(1);
            }
        }
    }

    /// Passes over what stands in a script or a style.
    fn skip_raw_text(&mut self, name: &[u8]) {
        if !(name.eq_ignore_ascii_case(b"script") || name.eq_ignore_ascii_case(b"style")) {
            return;
        }
        while let Some(at) = memchr::memmem::find(self.rest, b"</") {
            self.skip(at + 2);
            if self.rest.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name)) {
                return;
            }
        }
        self.rest = &[];
    }

    fn is_meta(&self) -> bool {
        let named = self.rest.get(1..5).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"));
        named && self.rest.get(5).is_some_and(|byte| is_space(*byte) || *byte == b'/')
    }

    fn is_tag(&self) -> bool {
        match self.rest.get(1) {
            Some(b'/') => self.rest.get(2).is_some_and(u8::is_ascii_alphabetic),
            Some(byte) => byte.is_ascii_alphabetic(),
            None => false,
        }
    }

    /// Reads the attributes of a `<meta>`; `None` when it declares nothing or the bytes end.
    fn meta(&mut self) -> Option<&'static Encoding> {
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut has_content_type = false;
        let mut from_charset: Option<Option<&'static Encoding>> = None;
        let mut from_content: Option<&'static Encoding> = None;
        while let Some((name, value)) = self.attribute()? {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" => has_content_type = value == b"content-type",
                b"content" => from_content = from_content.or_else(|| charset_in_content(&value)),
                b"charset" => from_charset = Some(Encoding::for_label(&value)),
                _ => {}
            }
            seen.insert(name);
        }
        let encoding = match from_charset {
            Some(named) => named,
            None if has_content_type => from_content,
            None => None,
        };
        encoding.map(as_declared)
    }

    /// Reads one attribute in lower case: the outer `None` when the bytes end, the inner one at the end of the tag.
    fn attribute(&mut self) -> Option<Option<(Vec<u8>, Vec<u8>)>> {
        self.skip_while(|byte| is_space(byte) || byte == b'/');
        if *self.rest.first()? == b'>' {
            return Some(None);
        }
        let mut name = Vec::new();
        loop {
            let byte = *self.rest.first()?;
            match byte {
                b'=' if !name.is_empty() => break,
                b'/' | b'>' => return Some(Some((name, Vec::new()))),
                _ if is_space(byte) => break,
                _ => name.push(byte.to_ascii_lowercase()),
            }
            self.skip(1);
        }
        self.skip_while(is_space);
        if *self.rest.first()? != b'=' {
            return Some(Some((name, Vec::new())));
        }
        self.skip(1);
        self.skip_while(is_space);
        let value = self.value()?;
        Some(Some((name, value)))
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let first = *self.rest.first()?;
        if first == b'"' || first == b'\'' {
            self.skip(1);
            let end = memchr::memchr(first, self.rest)?;
            let value = self.rest.get(..end)?.to_ascii_lowercase();
            self.skip(end + 1);
            return Some(value);
        }
        let end = self.rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
        let value = self.rest.get(..end)?.to_ascii_lowercase();
        self.skip(end);
        Some(value)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn skip_while(&mut self, skipped: impl Fn(u8) -> bool) {
        let count = self.rest.iter().position(|byte| !skipped(*byte)).unwrap_or(self.rest.len());
        self.skip(count);
    }
}

/// The encoding in a `content` value such as `text/html; charset=x` (HTML, "extracting a character encoding").
fn charset_in_content(value: &[u8]) -> Option<&'static Encoding> {
    let mut rest = value;
    loop {
        let at = memchr::memmem::find(rest, b"charset")?;
        rest = rest.get(at + 7..)?.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b"=") {
            rest = after.trim_ascii_start();
            break;
        }
    }
    let label = match rest.first()? {
        quote @ (b'"' | b'\'') => {
            let inner = rest.get(1..)?;
            inner.get(..memchr::memchr(*quote, inner)?)?
        }
        _ => {
            let end = rest.iter().position(|byte| is_space(*byte) || *byte == b';').unwrap_or(rest.len());
            rest.get(..end)?
        }
    };
    Encoding::for_label(label)
}

/// The encoding named by `<?xml ... encoding="x"?>` at the start.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..memchr::memchr(b'>', declaration)?)?;
    let after_name = declaration.get(memchr::memmem::find(declaration, b"encoding")? + 8..)?;
    let value = after_name.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, inner) = value.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    Encoding::for_label(inner.get(..memchr::memchr(*quote, inner)?)?).map(as_declared)
}

/// What a declaration in ASCII can mean: UTF-16 is impossible, the private one stands for Windows-1252.
fn as_declared(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(page: &str) -> Option<&'static str> {
        declared_encoding(page.as_bytes()).map(Encoding::name)
    }

    #[test]
    fn an_xml_declaration_counts_at_the_start_only() {
        assert_eq!(name("<?xml version=\"1.0\" encoding='koi8-r'?><a/>"), Some("KOI8-R"));
        assert_eq!(name(" <?xml version=\"1.0\" encoding='koi8-r'?><a/>"), None);
        assert_eq!(name("<?xml version=\"1.0\"?><a encoding='koi8-r'/>"), None);
    }

    #[test]
    fn a_late_declaration_counts_in_the_head_only() {
        let page = |before: &str, blanks: usize| name(&format!("{before}{}<meta charset=koi8-r>", " ".repeat(blanks)));
        assert_eq!(page("", 900), Some("KOI8-R"));
        assert_eq!(page("<head>", 1020), Some("KOI8-R"));
        assert_eq!(page("<body>", 900), Some("KOI8-R"));
        assert_eq!(page("<body class=x>", 1020), None);
        assert_eq!(page("<script>if (a</b/) '<body>'</script>", 1020), Some("KOI8-R"));
        assert_eq!(page("<script>'", 1020), None);
        assert_eq!(page("", HEAD_BYTES), None);
    }

    #[test]
    fn many_attributes_take_no_square_of_steps() {
        let names: String = (0..HEAD_BYTES / 6).map(|n| format!("a{n} ")).collect();
        assert_eq!(name(&format!("<meta {names}{}", " ".repeat(HEAD_BYTES))), None);
    }

    #[test]
    fn a_closing_tag_or_a_short_comment_does_not_hide_the_meta() {
        assert_eq!(name("<!--><meta charset=koi8-r>"), Some("KOI8-R"));
        assert_eq!(name("</p title='>'><meta charset=koi8-r>"), Some("KOI8-R"));
    }
}
