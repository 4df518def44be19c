//! The counters that the code writes, against the table in `docs/stats.md`.

use std::collections::BTreeSet;

use super::source::{Source, sources};
use super::{document, none};

/// Writers of a counter.
const WRITERS: &[&str] = &[".inc(", ".add(", ".set(", ".set_float(", ".max("];

/// The keys of the table, `<…>` as `*`.
fn documented() -> Vec<String> {
    document("docs/stats.md")
        .lines()
        .filter_map(|line| Some(stars(line.strip_prefix("| `")?.split_once('`')?.0, '<', '>')))
        .collect()
}

/// Replaces what stands between `open` and `close` by a star.
fn stars(key: &str, open: char, close: char) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in key.chars() {
        if c == open && !inside {
            inside = true;
            out.push('*');
        } else if c == close && inside {
            inside = false;
        } else if !inside {
            out.push(c);
        }
    }
    out
}

fn covers(documented: &str, key: &str) -> bool {
    match documented.split_once('*') {
        Some((prefix, suffix)) => key.len() > prefix.len() + suffix.len() && key.starts_with(prefix) && key.ends_with(suffix),
        None => documented == key,
    }
}

/// The keys a file writes, with their lines: texts given to a writer of `stats`, and texts that look like a key.
fn written(source: &Source, families: &BTreeSet<String>) -> Vec<(usize, String)> {
    let mut keys = Vec::new();
    for writer in WRITERS {
        for (at, _) in source.code.match_indices(writer) {
            let receiver = source.code[..at].trim_end();
            if !(receiver.ends_with("stats")
                || receiver.ends_with("stats()")
                || (source.path == "scheduler/counters.rs" && receiver.ends_with("self")))
            {
                continue;
            }
            let argument = at + writer.len();
            let formatted =
                source.code[argument..].trim_start().strip_prefix("format!(").map(|rest| source.code.len() - rest.len());
            if let Some(text) = source.text_at(formatted.unwrap_or(argument)) {
                keys.push((source.line_of(at), stars(text, '{', '}')));
            }
        }
    }
    // Keys that go through a constant, a table or a match.
    for (at, text) in &source.texts {
        let is_key = text.split_once('/').is_some_and(|(family, rest)| families.contains(family) && !rest.is_empty())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/{}".contains(&b));
        if is_key && !source.path.starts_with("cli/") {
            keys.push((source.line_of(*at), stars(text, '{', '}')));
        }
    }
    keys
}

fn families() -> BTreeSet<String> {
    documented()
        .iter()
        .filter_map(|key| key.split_once('/'))
        .map(|(family, _)| family.to_owned())
        .filter(|f| !f.contains('*'))
        .collect()
}

#[test]
fn every_counter_is_in_the_table() {
    let (documented, families) = (documented(), families());
    assert!(documented.len() > 50, "docs/stats.md has only {} keys", documented.len());
    let mut problems = BTreeSet::new();
    let mut found = 0;
    for source in sources() {
        for (line, key) in written(&source, &families) {
            found += 1;
            if !documented.iter().any(|d| covers(d, &key)) {
                problems.insert(format!("src/{}:{line}: {key}", source.path));
            }
        }
    }
    assert!(found > 40, "only {found} counters were found in src");
    none(&problems.into_iter().collect::<Vec<_>>(), "these counters are not in docs/stats.md");
}

#[test]
fn every_counter_of_the_table_is_written_somewhere() {
    let families = families();
    let keys: BTreeSet<String> = sources().iter().flat_map(|s| written(s, &families)).map(|(_, key)| key).collect();
    let unwritten: Vec<String> = documented().into_iter().filter(|d| !keys.iter().any(|key| covers(d, key))).collect();
    none(&unwritten, "docs/stats.md has counters that no code writes");
}

#[test]
fn placeholders_cover_what_stands_in_their_place() {
    for (documented, key, fits) in [
        ("a/*", "a/b", true),
        ("a/*", "a/*", true),
        ("a/*", "a/", false),
        ("a/*/c", "a/b/c", true),
        ("a/b", "a/b", true),
        ("a/b", "a/c", false),
        ("*/x", "a/x", true),
    ] {
        assert_eq!(covers(documented, key), fits, "{documented} {key}");
    }
    assert_eq!(stars("lease/refused/<why>", '<', '>'), "lease/refused/*");
    assert_eq!(stars("a/{}/b/{x}", '{', '}'), "a/*/b/*");
}
