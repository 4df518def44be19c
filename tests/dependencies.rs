//! What the package may depend on: permissive licences, one TLS provider, nothing that needs more than a C compiler,
//! nothing from a git repository, and no text that sends a reader to a package registry.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Licences (SPDX) that ask for no more than a notice.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates under a licence that binds changes to their own files (MPL-2.0) and nothing else. They come with the CSS
/// selector engine, and are used unchanged.
const FILE_LEVEL: &[(&str, &str)] =
    &[("cssparser", "MPL-2.0"), ("cssparser-macros", "MPL-2.0"), ("dtoa-short", "MPL-2.0"), ("selectors", "MPL-2.0")];

/// Crates that must never come in, and why.
const REFUSED: &[(&str, &str)] = &[
    ("aws-lc-rs", "ring is the one TLS provider; choose features without aws-lc"),
    ("aws-lc-sys", "ring is the one TLS provider; it would need cmake"),
    ("boring", "ring is the one TLS provider"),
    ("cmake", "a C compiler is all a build may need"),
    ("native-tls", "TLS is rustls everywhere; choose its feature instead"),
    ("openssl", "TLS is rustls everywhere; choose its feature instead"),
    ("openssl-sys", "a build would need OpenSSL's headers; choose a rustls feature"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "cargo {} failed:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The packages of the lock file, with all features and for all platforms.
fn packages() -> Vec<Value> {
    let text = cargo(&["metadata", "--locked", "--all-features", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The crates that a build with all features uses, with those that only build scripts and tests need.
fn used() -> BTreeSet<String> {
    let tree =
        cargo(&["tree", "--locked", "--all-features", "--target", "all", "-e", "all", "--prefix", "none", "--format", "{p}"]);
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn is_met(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    // Before SPDX expressions, a slash meant a choice.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed)?;
    if at == words.len() { Ok(met) } else { Err(format!("unexpected {:?}", words[at])) }
}

fn either(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut met = all(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at, allowed)?;
    }
    Ok(met)
}

fn all(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut met = one(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed)?;
    }
    Ok(met)
}

fn one(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let word = *words.get(*at).ok_or("it ends too early")?;
    *at += 1;
    match word {
        "(" => {
            let met = either(words, at, allowed)?;
            if words.get(*at) != Some(&")") {
                return Err("a parenthesis is not closed".to_owned());
            }
            *at += 1;
            Ok(met)
        }
        ")" | "OR" | "AND" | "WITH" => Err(format!("unexpected {word:?}")),
        id if words.get(*at) == Some(&"WITH") => {
            let exception = words.get(*at + 1).ok_or("it ends too early")?;
            *at += 2;
            Ok(allowed(&format!("{id} WITH {exception}")) || allowed(id))
        }
        id => Ok(allowed(id)),
    }
}

#[test]
fn licence_expressions_are_read_with_their_precedence() {
    let allowed = |id: &str| matches!(id, "MIT" | "ISC");
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 / MIT", true),
        ("MIT AND GPL-3.0", false),
        ("MIT AND ISC", true),
        ("GPL-3.0 OR MIT AND ISC", true),
        ("MIT OR GPL-3.0 AND GPL-2.0", true),
        ("(MIT OR GPL-3.0) AND GPL-2.0", false),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("GPL-3.0 WITH Classpath-exception-2.0", false),
        ("MIT WITH some-exception OR GPL-3.0", true),
    ] {
        assert_eq!(is_met(expression, &allowed), Ok(met), "{expression}");
    }
    for broken in ["", "MIT OR", "(MIT", "MIT)", "OR MIT", "MIT ISC", "MIT WITH"] {
        assert!(is_met(broken, &allowed).is_err(), "{broken:?}");
    }
}

#[test]
fn every_dependency_has_a_permissive_licence() {
    let mut problems = Vec::new();
    let mut exceptions: BTreeMap<&str, bool> = FILE_LEVEL.iter().map(|(name, _)| (*name, false)).collect();
    for package in packages() {
        let (name, licence) = (text(&package, "name"), text(&package, "license"));
        let allowed = |id: &str| PERMISSIVE.contains(&id) || FILE_LEVEL.contains(&(name, id));
        if let Some(used) = exceptions.get_mut(name) {
            *used = true;
        }
        match is_met(licence, &allowed) {
            Ok(true) => {}
            Ok(false) => problems.push(format!("{name}: {licence}")),
            Err(why) => problems.push(format!("{name}: {licence:?} is no SPDX expression ({why})")),
        }
    }
    assert!(
        problems.is_empty(),
        "these dependencies are not under a permissive licence; choose another crate, or, if the licence asks for no more than a \
         notice, add it to PERMISSIVE in tests/dependencies.rs:\n  {}",
        problems.join("\n  ")
    );
    let unused: Vec<_> = exceptions.into_iter().filter(|(_, used)| !used).map(|(name, _)| name).collect();
    assert!(unused.is_empty(), "no dependency any more, remove it from FILE_LEVEL: {}", unused.join(", "));
}

#[test]
fn there_is_one_tls_provider_and_a_build_needs_no_more_than_a_c_compiler() {
    let used = used();
    assert!(used.contains("ring"), "ring, the TLS provider, is not in the tree");
    let refused: Vec<String> = REFUSED
        .iter()
        .filter(|(name, _)| used.contains(*name))
        .map(|(name, why)| format!("{name}: {why}; see cargo tree -i {name} --all-features"))
        .collect();
    assert!(refused.is_empty(), "refused dependencies:\n  {}", refused.join("\n  "));
}

#[test]
fn nothing_comes_from_a_git_repository_or_a_folder() {
    let mut problems = Vec::new();
    for package in packages() {
        let is_ours = text(&package, "name") == "dragline" && package["source"].is_null();
        if !is_ours && !text(&package, "source").starts_with("registry+") {
            problems.push(format!("{} from {}", text(&package, "name"), package["source"]));
        }
    }
    assert!(problems.is_empty(), "dependencies must have a released version:\n  {}", problems.join("\n  "));
}

#[test]
fn the_package_cannot_be_published_by_accident() {
    let ours = packages().into_iter().find(|p| text(p, "name") == "dragline").expect("the package is in its own metadata");
    assert_eq!(ours["publish"], Value::Array(Vec::new()), "Cargo.toml must say publish = false");
}

#[test]
fn no_text_sends_a_reader_to_a_package_registry() {
    // Another project has this name there. Written in two parts, so that this file is not found.
    let hosts = [("crates", ".io"), ("pypi", ".org"), ("npmjs", ".com"), ("npmjs", ".org"), ("lib", ".rs/crates")]
        .map(|(a, b)| format!("{a}{b}"));
    let mut problems = Vec::new();
    let files = tracked_files();
    assert!(files.len() > 50, "only {} files were found", files.len());
    for file in files.into_iter().filter(|f| !f.ends_with("Cargo.lock")) {
        let Ok(bytes) = std::fs::read(root().join(&file)) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            if let Some(host) = hosts.iter().find(|host| line.contains(host.as_str())) {
                problems.push(format!("{}:{}: {host}", file.display(), number + 1));
            }
        }
    }
    assert!(problems.is_empty(), "package registries are mentioned:\n  {}", problems.join("\n  "));
}

/// The files under version control; without git, all but build output.
fn tracked_files() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    if let Ok(output) = listed
        && output.status.success()
    {
        return output
            .stdout
            .split(|b| *b == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(name).into_owned().into())
            .collect();
    }
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                if !matches!(path.to_str(), Some("target" | ".git" | ".dragline")) {
                    folders.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found
}
