//! What a seed may say, and how mistakes are told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod any;
mod errors;
mod examples;
mod files;
mod keys;
mod quiet;

use std::io;
use std::path::Path;

use super::{Part, Seed, parse};

/// One site with one identity, whose table ends the text; the next line is the fifth.
const SITE: &str = "[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"a\"\n";

/// Reads a text beside which these files are.
fn read_beside(text: &str, files: &[(&str, &str)]) -> Result<Seed, String> {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new("dir").join(name) == path);
        found.map(|(_, content)| content.as_bytes().to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    parse(text, Path::new("dir/ids.toml"), Part::Whole, &read).map_err(|e| e.to_string())
}

fn read(text: &str) -> Result<Seed, String> {
    read_beside(text, &[])
}

/// Every text gives an error with all of its parts.
fn all_wrong(table: &[(&str, &[&str])]) {
    for (text, parts) in table {
        let error = read_beside(text, FILES).map(|_| ()).expect_err(text);
        for part in *parts {
            assert!(error.contains(part), "{text}\n  {error}\n  lacks {part}");
        }
    }
}

/// Files with mistakes, and one without.
const FILES: &[(&str, &str)] = &[
    (
        "good.jsonl",
        "{\"user\":\"anna\",\"_account\":\"a1\"}\n{\"payload\":{\"user\":\"bert\"},\"labels\":{\"name\":\"second\"}}\n",
    ),
    ("bad.jsonl", "{\"user\":\"anna\"}\n{\"usr\":\"bert\"}\nx\n"),
    ("twice.jsonl", "{\"user\":\"a\",\"_labels\":{\"name\":\"n\"}}\n{\"user\":\"b\",\"_labels\":{\"name\":\"n\"}}\n"),
    ("bad.csv", "user,,x\n1,2,3\n"),
    ("bad.txt", "http://10.0.0.1:1\n\nftp://10.0.0.1:1\n"),
    ("session.yaml", "name: session\nclient: web\nfields:\n  user: {type: string, required: true}\n"),
    ("bad.yaml", "name: session\nclient: web\nfields:\n  user: {type: strin}\n"),
    ("broken.yaml", "name: [\n"),
    ("bad.json", "{\"a\": 1,}\n"),
];
