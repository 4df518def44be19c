//! `Content-Disposition` (RFC 6266): whether a body is meant to be saved, and under which name.
//!
//! As lenient as servers are careless: what is damaged is left out. The names it gives are those of the server and fit for
//! no file system yet; [`super::download_name`] makes them so.

use super::ext_value;

/// Parameters that are read.
const MOST: usize = 64;

/// A parsed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDisposition {
    kind: String,
    params: Vec<(String, String)>,
}

impl ContentDisposition {
    /// Reads the bytes of a field: UTF-8 where they are that, as browsers take them, ISO-8859-1 where not.
    #[must_use]
    pub fn from_bytes(value: &[u8]) -> Self {
        match std::str::from_utf8(value) {
            Ok(text) => Self::parse(text),
            Err(_) => Self::parse(&value.iter().map(|byte| char::from(*byte)).collect::<String>()),
        }
    }

    /// Reads a value. Of parameters with one name the first counts; the extended form of a parameter (`filename*`) goes
    /// before the plain one, wherever it stands, if it can be read.
    #[must_use]
    pub fn parse(value: &str) -> Self {
        let end = value.find(';').unwrap_or(value.len());
        let (kind, mut rest) = value.split_at_checked(end).unwrap_or_default();
        let kind = kind.trim_matches(is_space).to_ascii_lowercase();
        let mut plain: Vec<(String, String)> = Vec::new();
        let mut extended: Vec<(String, Option<String>)> = Vec::new();
        while let Some(after) = rest.strip_prefix(';') {
            let (parameter, beyond) = parameter(after);
            rest = beyond;
            let Some(Parameter { name, value, is_quoted }) = parameter else { continue };
            // Each is compared with those before it.
            if plain.len() + extended.len() >= MOST {
                break;
            }
            match name.strip_suffix('*') {
                Some(name) if extended.iter().all(|(known, _)| known != name) => {
                    // A quoted one is none: its characters stand for themselves (RFC 8187, 3.2).
                    let decoded = if is_quoted { None } else { ext_value::decoded(&value) };
                    extended.push((name.to_owned(), decoded));
                }
                None if plain.iter().all(|(known, _)| *known != name) => plain.push((name, value)),
                _ => {}
            }
        }
        for (name, value) in extended {
            let Some(value) = value else { continue };
            match plain.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => plain.push((name, value)),
            }
        }
        Self { kind, params: plain }
    }

    /// The type in lower case: `attachment`, `inline`, or whatever stands there.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The parameters in order, names in lower case.
    #[must_use]
    pub fn params(&self) -> &[(String, String)] {
        &self.params
    }

    /// The file name as the server says it, which may be any text.
    #[must_use]
    pub fn filename(&self) -> Option<&str> {
        self.params.iter().find(|(name, _)| name == "filename").map(|(_, value)| value.as_str())
    }
}

struct Parameter {
    name: String,
    value: String,
    is_quoted: bool,
}

/// Reads one parameter, if it is one, and answers what comes after it, from the next `;` on.
fn parameter(text: &str) -> (Option<Parameter>, &str) {
    let text = text.trim_start_matches(is_space);
    let name_end = text.find([';', '=']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(name_end).unwrap_or_default();
    let Some(rest) = rest.strip_prefix('=') else { return (None, rest) };
    let name = name.trim_end_matches(is_space).to_ascii_lowercase();
    let rest = rest.trim_start_matches(is_space);
    if let Some(quoted) = rest.strip_prefix('"') {
        let Some((value, after)) = unquoted(quoted) else {
            // Nobody can say where it ends: it is left out, and what follows is read as it stands.
            return (None, from_next(quoted));
        };
        let parameter = (!name.is_empty()).then_some(Parameter { name, value, is_quoted: true });
        return (parameter, from_next(after));
    }
    let after = from_next(rest);
    let value = rest.get(..rest.len() - after.len()).unwrap_or_default().trim_end_matches(is_space).to_owned();
    ((!name.is_empty()).then_some(Parameter { name, value, is_quoted: false }), after)
}

/// Reads to the closing quote; `None` without one.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((out, chars.as_str())),
            '\\' => out.push(chars.next()?),
            other => out.push(other),
        }
    }
}

fn from_next(text: &str) -> &str {
    text.find(';').and_then(|at| text.get(at..)).unwrap_or_default()
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_value_of_the_collection_is_read() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_content_disposition.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 122);
        let mut wrong = Vec::new();
        for case in cases {
            let ours = ContentDisposition::parse(case["value"].as_str().unwrap());
            let params: BTreeMap<_, _> = ours.params().iter().cloned().collect();
            let told = json!({ "type": ours.kind(), "params": params, "filename": ours.filename() });
            if told != case["expected"] {
                wrong.push(format!("{case} {told}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn raw_bytes_are_read_as_utf_8_first() {
        let name = |bytes: &[u8]| ContentDisposition::from_bytes(bytes).filename().map(str::to_owned);
        assert_eq!(name("attachment; filename=\"ä.txt\"".as_bytes()).as_deref(), Some("ä.txt"));
        assert_eq!(name(b"attachment; filename=\"\xe4.txt\"").as_deref(), Some("ä.txt"));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(any in "\\PC{0,60}", like in "[fa;=\"\\\\ *'%ilen-]{0,60}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            for text in [any, like] {
                let found = ContentDisposition::parse(&format!("attachment;{text}"));
                let names: std::collections::HashSet<_> = found.params().iter().map(|(name, _)| name).collect();
                prop_assert_eq!(names.len(), found.params().len(), "each name once");
            }
            let _ = ContentDisposition::from_bytes(&bytes);
        }
    }
}
