//! Media types: one `Content-Type` value, or several of one response, by the WHATWG MIME sniffing standard.
//!
//! Reads only what the header says; never looks at the body.

use std::fmt;

use encoding_rs::Encoding;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// A parsed media type with its parameters in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType {
    essence: String,
    parameters: Vec<(String, String)>,
}

impl MediaType {
    /// Reads one `Content-Type` value. `None` when it is no media type.
    ///
    /// Parameters that the standard does not allow are dropped, of repeated ones the first is kept.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim_matches(is_http_whitespace);
        let (essence, mut rest) = value.split_once(';').map_or((value, ""), |(essence, rest)| (essence, rest));
        let (kind, subtype) = essence.split_once('/')?;
        let subtype = subtype.trim_end_matches(is_http_whitespace);
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut media_type = Self { essence: format!("{kind}/{subtype}").to_ascii_lowercase(), parameters: Vec::new() };
        while !rest.is_empty() {
            let (name, value, after) = next_parameter(rest);
            rest = after;
            let Some(value) = value else { continue };
            if is_token(&name) && value.chars().all(is_quoted_char) && media_type.parameter(&name).is_none() {
                media_type.parameters.push((name, value));
            }
        }
        Some(media_type)
    }

    /// Combines all `Content-Type` fields of one response (Fetch, "extract a MIME type"): the last valid one counts
    /// and inherits the charset of an earlier one with the same essence.
    #[must_use]
    pub fn from_fields<'a>(fields: impl Iterator<Item = &'a str>) -> Option<Self> {
        let combined = fields.collect::<Vec<_>>().join(", ");
        let mut found: Option<Self> = None;
        let mut charset: Option<String> = None;
        for value in split_outside_quotes(&combined) {
            let Some(mut next) = Self::parse(value).filter(|next| next.essence != "*/*") else {
                continue;
            };
            if found.as_ref().is_none_or(|earlier| earlier.essence != next.essence) {
                charset = next.parameter("charset").map(str::to_owned);
            } else if let (None, Some(inherited)) = (next.parameter("charset"), &charset) {
                next.parameters.push(("charset".to_owned(), inherited.clone()));
            }
            found = Some(next);
        }
        found
    }

    /// What the `Content-Type` fields of an answer say together.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        content_type(headers).and_then(|value| Self::from_fields([value.as_str()].into_iter()))
    }

    /// Type and subtype in lower case, as `text/html`.
    #[must_use]
    pub fn essence(&self) -> &str {
        &self.essence
    }

    /// The value of a parameter, given by its lower-case name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The encoding that the `charset` parameter names, if it is a label of the WHATWG Encoding standard.
    #[must_use]
    pub fn charset(&self) -> Option<&'static Encoding> {
        Encoding::for_label(self.parameter("charset")?.as_bytes())
    }

    /// Whether the body is an HTML or XHTML page.
    #[must_use]
    pub fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml" | "application/vnd.wap.xhtml+xml")
    }

    /// Whether the body is XML of any kind.
    #[must_use]
    pub fn is_xml(&self) -> bool {
        self.essence.ends_with("+xml") || matches!(self.essence.as_str(), "text/xml" | "application/xml")
    }

    /// Whether the body is text of any kind: HTML, XML, JSON, scripts, style sheets, plain text.
    #[must_use]
    pub fn is_textual(&self) -> bool {
        let textual = [
            "application/json",
            "application/javascript",
            "application/x-javascript",
            "application/ecmascript",
            "application/x-json",
            "application/x-ndjson",
            "application/x-www-form-urlencoded",
            "application/yaml",
            "application/toml",
            "application/graphql",
        ];
        self.essence.starts_with("text/")
            || self.essence.ends_with("+json")
            || self.is_xml()
            || self.is_html()
            || textual.contains(&self.essence.as_str())
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.essence)?;
        for (name, value) in &self.parameters {
            write!(f, ";{name}=")?;
            if is_token(value) {
                f.write_str(value)?;
            } else {
                write!(f, "\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))?;
            }
        }
        Ok(())
    }
}

/// The `Content-Type` fields of an answer, joined by commas; bytes outside ASCII as the first characters of Unicode.
#[must_use]
pub fn content_type(headers: &HeaderMap) -> Option<String> {
    let mut fields = headers.get_all(CONTENT_TYPE).iter();
    let mut joined: String = fields.next()?.as_bytes().iter().copied().map(char::from).collect();
    for field in fields {
        joined.push_str(", ");
        joined.extend(field.as_bytes().iter().copied().map(char::from));
    }
    Some(joined)
}

/// Reads one parameter: its name, its value unless it has none, and the text after its `;`.
fn next_parameter(text: &str) -> (String, Option<String>, &str) {
    let text = text.trim_start_matches(is_http_whitespace);
    let name_end = text.find([';', '=']).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let name = name.to_ascii_lowercase();
    let Some(rest) = rest.strip_prefix('=') else {
        return (name, None, rest.strip_prefix(';').unwrap_or_default());
    };
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, after) = unquoted(quoted);
        let after = after.split_once(';').map_or("", |(_, after)| after);
        return (name, Some(value), after);
    }
    let (value, after) = rest.split_once(';').unwrap_or((rest, ""));
    let value = value.trim_end_matches(is_http_whitespace);
    (name, (!value.is_empty()).then(|| value.to_owned()), after)
}

/// Reads to the closing quote; a lone backslash at the end is kept.
fn unquoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => out.push(chars.next().unwrap_or('\\')),
            other => out.push(other),
        }
    }
    (out, chars.as_str())
}

fn split_outside_quotes(text: &str) -> Vec<&str> {
    let mut values = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                values.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    values.extend(text.get(start..));
    values
}

fn is_http_whitespace(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_token(text: &str) -> bool {
    let is_token_char = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_char)
}

fn is_quoted_char(c: char) -> bool {
    c == '\t' || (' '..='~').contains(&c) || ('\u{80}'..='\u{ff}').contains(&c)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_value_of_the_collection_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_content_type.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 200);
        let mut wrong = Vec::new();
        for case in cases {
            let ours = match case["input"].as_str() {
                Some(value) => MediaType::parse(value),
                None => {
                    let fields = case["headers"].as_array().unwrap();
                    MediaType::from_fields(fields.iter().map(|field| field.as_str().unwrap()))
                }
            };
            let text = ours.as_ref().map(ToString::to_string);
            let encoding = ours.as_ref().and_then(MediaType::charset).map(Encoding::name);
            if text.as_deref() != case["expected"].as_str() || encoding != case["encoding"].as_str() {
                wrong.push(format!("{case} {text:?} {encoding:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn pages_and_texts_are_told_from_files() {
        let of = |value| MediaType::parse(value).unwrap();
        assert!(of("Text/HTML; charset=x").is_html());
        assert!(of("application/xhtml+xml").is_html());
        assert!(!of("text/plain").is_html());
        for value in ["text/css", "application/json", "application/ld+json", "application/rss+xml", "image/svg+xml"] {
            assert!(of(value).is_textual(), "{value}");
        }
        for value in ["image/png", "application/pdf", "application/octet-stream", "video/mp4"] {
            assert!(!of(value).is_textual(), "{value}");
        }
    }

    #[test]
    fn all_fields_of_an_answer_count_and_none_is_lost_for_its_bytes() {
        let mut headers = HeaderMap::new();
        assert_eq!(MediaType::of_headers(&headers), None);
        for field in [&b"text/html; title=\xe9; charset=gbk"[..], b"text/html"] {
            headers.append(CONTENT_TYPE, http::HeaderValue::from_bytes(field).unwrap());
        }
        let media_type = MediaType::of_headers(&headers).unwrap();
        assert_eq!((media_type.essence(), media_type.charset().map(Encoding::name)), ("text/html", Some("GBK")));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in "[a-z/]{1,8};[a-z=\";\\\\ ,é]{0,30}") {
            if let Some(media_type) = MediaType::parse(&value) {
                prop_assert_eq!(MediaType::parse(&media_type.to_string()), Some(media_type));
            }
            let _ = MediaType::from_fields([value.as_str(), "text/html"].into_iter());
        }
    }
}
