//! A source file as the rules look at it: comments, texts and test code blanked out, texts kept aside.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One file of `src/`.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path within `src/`, with slashes.
    pub(crate) path: String,
    /// The code without comments, without the contents of texts, without test items; lines are where they were.
    pub(crate) code: String,
    /// Texts outside test items: where they begin in `code`, and what they hold.
    pub(crate) texts: Vec<(usize, String)>,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let (mut code, mut texts) = blank(text);
        for (from, to) in test_items(&code) {
            code = blank_range(&code, from, to);
            texts.retain(|(at, _)| !(from..to).contains(at));
        }
        Self { path: path.to_owned(), code, texts }
    }

    /// The number of the line with this place of `code`, from 1.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// `path:line` of every place where `needle` stands in the code.
    pub(crate) fn places_of(&self, needle: &str) -> Vec<String> {
        self.code.match_indices(needle).map(|(at, _)| format!("src/{}:{}", self.path, self.line_of(at))).collect()
    }

    /// The text that begins at this place of the code, which may be preceded by white space.
    pub(crate) fn text_at(&self, at: usize) -> Option<&str> {
        let at = at + self.code[at..].len() - self.code[at..].trim_start().len();
        self.texts.iter().find(|(start, _)| *start == at).map(|(_, text)| text.as_str())
    }
}

/// Every file of `src/`: its path within it, and its text.
pub(crate) fn files() -> Vec<(String, String)> {
    files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

/// Every Rust file below a folder: its path within it, and its text.
pub(crate) fn files_below(root: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    walk(root, &mut files);
    files.sort();
    let path = |file: &Path| file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
    files.iter().map(|file| (path(file), std::fs::read_to_string(file).unwrap())).collect()
}

/// Every file of `src/` that is not test code as a whole.
pub(crate) fn sources() -> Vec<Source> {
    let all = files();
    let tests: BTreeSet<String> = all.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    let is_test = |path: &str| {
        let stem = path.strip_suffix(".rs").unwrap_or(path);
        let is_in = |module: &String| stem == module || stem.starts_with(&format!("{module}/"));
        path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/") || tests.iter().any(is_in)
    };
    all.iter().filter(|(path, _)| !is_test(path)).map(|(path, text)| Source::parse(path, text)).collect()
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Modules that only exist in tests, as paths without `.rs`.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let (code, _) = blank(text);
    let folder = match path.rsplit_once('/') {
        Some((folder, "mod.rs")) => folder.to_owned(),
        None if matches!(path, "lib.rs" | "main.rs") => String::new(),
        _ => path.strip_suffix(".rs").unwrap_or(path).to_owned(),
    };
    test_items(&code)
        .into_iter()
        .filter_map(|(from, to)| {
            let item = code[from..to].trim_end().strip_suffix(';')?;
            let name = item.rsplit_once("mod ")?.1.trim();
            Some(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") })
        })
        .collect()
}

/// Where items under `#[cfg(test)]` begin and end.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|a| code[at..].find(a)).min().map(|i| at + i) {
        let end = end_of_item(code, start);
        found.push((start, end));
        at = end.max(start + 1);
    }
    found
}

/// The end of the item, field or arm whose first attribute begins here.
fn end_of_item(code: &str, start: usize) -> usize {
    let (mut depth, mut angle, mut in_attribute) = (0_i32, 0_i32, false);
    let mut before = ' ';
    for (i, c) in code[start..].char_indices() {
        match c {
            '#' if depth == 0 => in_attribute = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth < 0 {
                    return start + i;
                }
                if depth == 0 && c == '}' {
                    return start + i + 1;
                }
                if depth == 0 && c == ']' && in_attribute {
                    in_attribute = false;
                    angle = 0;
                }
            }
            '<' if depth == 0 => angle += 1,
            '>' if depth == 0 && before != '-' && before != '=' => angle -= 1,
            ';' if depth == 0 => return start + i + 1,
            ',' if depth == 0 && angle <= 0 => return start + i + 1,
            _ => {}
        }
        before = c;
    }
    code.len()
}

fn blank_range(code: &str, from: usize, to: usize) -> String {
    let blanked: String = code[from..to].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
    format!("{}{blanked}{}", &code[..from], &code[to..])
}

/// Replaces comments and the contents of texts by spaces, and gives the texts. One byte stays one byte.
fn blank(text: &str) -> (String, Vec<(usize, String)>) {
    let bytes = text.as_bytes();
    let mut code: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut texts = Vec::new();
    let mut i = 0;
    let hide = |code: &mut Vec<u8>, range: &[u8]| code.extend(range.iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' }));
    while i < bytes.len() {
        let rest = &bytes[i..];
        let end = if rest.starts_with(b"//") {
            i + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            i + end_of_block_comment(rest)
        } else if let Some((open, close)) = text_here(rest, code.last().copied()) {
            texts.push((i, String::from_utf8_lossy(&rest[open..close]).into_owned()));
            let whole = close + (open - rest.iter().position(|b| *b == b'"').unwrap_or(0));
            // A quote stays where the text begins.
            code.push(b'"');
            hide(&mut code, &rest[1..whole.min(rest.len())]);
            i += whole.min(rest.len());
            continue;
        } else if let Some(length) = character_here(rest) {
            i + length
        } else {
            code.push(if bytes[i].is_ascii() { bytes[i] } else { b' ' });
            i += 1;
            continue;
        };
        hide(&mut code, &bytes[i..end]);
        i = end;
    }
    (String::from_utf8(code).unwrap(), texts)
}

fn end_of_block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < rest.len() {
        if rest[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if rest[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    i
}

/// The contents of the text that begins here, plain, byte or raw: from and to.
fn text_here(rest: &[u8], before: Option<u8>) -> Option<(usize, usize)> {
    let in_word = before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    let mut i = 0;
    if !in_word && matches!(rest.first(), Some(b'b' | b'c')) {
        i += 1;
    }
    let raw = !in_word && rest.get(i) == Some(&b'r');
    if raw {
        i += 1;
        let hashes = rest[i..].iter().take_while(|b| **b == b'#').count();
        i += hashes;
        if rest.get(i) != Some(&b'"') {
            return None;
        }
        let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
        let end = rest[i + 1..].windows(close.len()).position(|w| w == close).map_or(rest.len(), |p| i + 1 + p);
        return Some((i + 1, end));
    }
    if rest.get(i) != Some(&b'"') {
        return None;
    }
    let mut end = i + 1;
    while end < rest.len() && rest[end] != b'"' {
        end += if rest[end] == b'\\' { 2 } else { 1 };
    }
    Some((i + 1, end.min(rest.len())))
}

/// The length of the character that begins here; `None` for a lifetime.
fn character_here(rest: &[u8]) -> Option<usize> {
    if rest.first() != Some(&b'\'') {
        return None;
    }
    if rest.get(1) == Some(&b'\\') {
        return rest[2..].iter().skip(1).position(|b| *b == b'\'').map(|p| p + 4);
    }
    let text =
        std::str::from_utf8(&rest[1..rest.len().min(6)]).or_else(|e| std::str::from_utf8(&rest[1..1 + e.valid_up_to()])).ok()?;
    let length = text.chars().next()?.len_utf8();
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

#[test]
fn comments_texts_and_test_code_are_blanked() {
    let source = Source::parse(
        "x.rs",
        r##"//! .unwrap() here
fn f<'a>(x: &'a str) -> char { let quote = '"'; g("a \" .unwrap()"); /* dbg! /* todo! */ */ '\'' }
#[cfg(test)]
#[allow(clippy::unwrap_used)]
fn only() -> Map<u8, u8> { x.unwrap() }
struct S { #[cfg(test)] fault: Option<Box<dyn Fn(u8) -> u8>>, kept: u8 }
fn h() { stats.inc(r#"raw "key""#); b"bytes"; x.expect("why") }
#[cfg(test)]
mod tests { fn t() { y.unwrap(); "in a test" } }
fn last() { z.unwrap() }
"##,
    );
    assert_eq!(source.places_of(".unwrap()"), ["src/x.rs:10"]);
    assert_eq!(source.places_of("dbg!"), [""; 0]);
    assert_eq!(source.places_of("kept"), ["src/x.rs:6"]);
    assert_eq!(source.places_of("fault"), [""; 0]);
    let texts: Vec<_> = source.texts.iter().map(|(_, t)| t.as_str()).collect();
    assert_eq!(texts, [r#"a \" .unwrap()"#, r#"raw "key""#, "bytes", "why"]);
    let at = source.code.find(".inc(").unwrap() + 5;
    assert_eq!(source.text_at(at), Some(r#"raw "key""#));
}

#[test]
fn modules_of_tests_are_known_by_their_declaration() {
    let text = "#[cfg(test)]\npub(crate) mod testing;\nmod real;\n#[cfg(test)]\nmod tests;";
    assert_eq!(test_modules("scheduler/mod.rs", text), ["scheduler/testing", "scheduler/tests"]);
    assert_eq!(test_modules("api/links.rs", text), ["api/links/testing", "api/links/tests"]);
    assert_eq!(test_modules("lib.rs", text), ["testing", "tests"]);
}
