//! Rules of the source that no compiler checks. A message says what to do.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cases;
mod documents;
mod guide;
mod source;
mod stats;

use std::path::Path;

use dragline::settings::Settings;
use source::sources;

/// Folders that know no actor and no engine.
const NO_ACTOR: &[&str] = &["api/", "html/", "web/", "settings/", "apcloudy/", "spinneret/", "plane/", "export/"];

/// Places in them that may: file, and what it may name.
const ACTOR_ALLOWED: &[(&str, &str)] = &[];

/// What those folders may take from the folders of actors: plain data that a job is made of.
const SHARED: &[&str] = &["crate::scheduler::job", "crate::downloader::transport", "crate::parser::message::Marks"];

/// Most lines of a file.
const LONGEST: usize = 520;

/// Files above that, with their length at most; to be split.
const LONG: &[(&str, usize)] = &[("engine/tests/world.rs", 580)];

fn none(problems: &[String], advice: &str) {
    assert!(problems.is_empty(), "{advice}:\n  {}", problems.join("\n  "));
}

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn only_the_actor_folder_knows_actix() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| !s.path.starts_with("actor/")) {
        for needle in ["actix::", "actix_rt::", "use actix", ".do_send(", "Addr<", "Recipient<"] {
            problems.extend(source.places_of(needle).into_iter().map(|place| format!("{place}: {needle}")));
        }
    }
    none(&problems, "actix is named outside src/actor; send through actor::Link, Facts or Controls");
}

#[test]
fn rules_settings_and_wire_formats_know_no_actor_and_no_engine() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| NO_ACTOR.iter().any(|folder| s.path.starts_with(folder))) {
        for needle in ["crate::actor", "crate::engine", "crate::run", "crate::app", "crate::cli"] {
            if !ACTOR_ALLOWED.contains(&(source.path.as_str(), needle)) {
                problems.extend(source.places_of(needle).into_iter().map(|place| format!("{place}: {needle}")));
            }
        }
        for folder in ["scheduler", "broker", "downloader", "parser", "reporter", "collector", "courier", "config"] {
            let needle = format!("crate::{folder}::");
            for (at, _) in source.code.match_indices(&needle) {
                if !SHARED.iter().any(|shared| source.code[at..].starts_with(shared)) {
                    problems.push(format!("src/{}:{}: {needle}", source.path, source.line_of(at)));
                }
            }
        }
    }
    none(&problems, "these folders may not name an actor or the engine; pass what they need as a value or a trait");
}

#[test]
fn the_html_engine_knows_no_other_folder() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| s.path.starts_with("html/")) {
        for (at, _) in source.code.match_indices("crate::") {
            if !["crate::html::", "crate::html)"].iter().any(|own| source.code[at..].starts_with(own)) {
                problems.push(format!("src/{}:{}", source.path, source.line_of(at)));
            }
        }
    }
    none(&problems, "src/html is usable alone; give it what it needs as a value");
}

#[test]
fn no_file_is_too_long() {
    let mut problems = Vec::new();
    let lengths: Vec<(String, usize)> = source::files().into_iter().map(|(path, text)| (path, text.lines().count())).collect();
    for (path, lines) in &lengths {
        let most = LONG.iter().find(|(long, _)| long == path).map_or(LONGEST, |(_, most)| *most);
        if *lines > most {
            problems.push(format!("src/{path}: {lines} lines, allowed {most}"));
        }
    }
    for (path, _) in LONG {
        if !lengths.iter().any(|(long, lines)| long == path && *lines > LONGEST) {
            problems.push(format!("src/{path}: no longer too long, remove it from LONG in tests/conventions/main.rs"));
        }
    }
    none(&problems, "a file holds one concept; split it by responsibility");
}

#[test]
fn nothing_is_left_to_do_and_nothing_panics_on_purpose() {
    let mut problems = Vec::new();
    for source in sources() {
        for needle in ["todo!", "unimplemented!", "dbg!", ".unwrap()", ".unwrap_err()", "panic!("] {
            for (at, _) in source.code.match_indices(needle) {
                let before = source.code[..at].chars().next_back().unwrap_or(' ');
                if needle.starts_with('.') || !(before.is_alphanumeric() || before == '_') {
                    problems.push(format!("src/{}:{}: {needle}", source.path, source.line_of(at)));
                }
            }
        }
    }
    none(&problems, "code outside tests returns errors; state an invariant with expect and a reason, or handle the case");
}

#[test]
fn an_ignored_test_is_a_measurement_or_a_child_of_another_test() {
    let mut problems = Vec::new();
    for (path, text) in source::files() {
        for (before, rest) in text.match_indices("#[ignore").map(|(at, _)| text.split_at(at)) {
            let is_child = rest.lines().next().is_some_and(|line| line.contains("run by the test"));
            let name = rest.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map_or("", |(name, _)| name);
            if !is_child && !name.contains("costs_less_than") {
                problems.push(format!("src/{path}:{}: {name}", before.lines().count() + 1));
            }
        }
    }
    none(
        &problems,
        "tests/run --long finds measurements by `costs_less_than` in their name; a child of a test says `run by the test …`",
    );
}

#[test]
fn docs_settings_lists_every_key_as_the_program_knows_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let wanted = settings_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = wanted.lines().zip(found.lines().chain(std::iter::repeat(""))).find(|(w, f)| w != f);
    assert!(
        wanted == found,
        "docs/settings.md is out of date, write it with UPDATE_DOCS=1 cargo test --test conventions; first difference: {differing:?}"
    );
}

#[test]
fn keys_named_in_the_documents_exist() {
    let names: Vec<&str> = Settings::keys().iter().map(dragline::settings::Key::name).collect();
    // Spelled like settings, but something else.
    let others = [
        "JOB_ID",
        "LONG_TESTS_OF_DRAGLINE",
        "SPINNERET_URL",
        "SPINNERET_TOKEN",
        "APCLOUDY_URL",
        "UPDATE_DOCS",
        "HTTPS_PROXY",
        "RUSTDOCFLAGS",
        "SQL",
        "NAME=VALUE",
        "REPORT_QUEUE",
        "UNIQUE_ID",
    ];
    let mut problems = Vec::new();
    for document_name in ["README.md", "ARCHITECTURE.md", "src/front.md", "docs/stats.md"] {
        let text = document(document_name);
        for word in text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')) {
            let is_key = word.contains('_') && word.len() > 5 && !word.starts_with('_') && !word.ends_with('_');
            if is_key && !names.contains(&word) && !others.contains(&word) && !word.starts_with("DRAGLINE_") {
                problems.push(format!("{document_name}: {word}"));
            }
        }
    }
    none(&problems, "no setting has these names");
}

fn settings_page() -> String {
    use std::fmt::Write as _;
    let mut page = String::from(
        "# Settings\n\nEvery key, with its type, its default and what it means. Written from the program's own table; \
         the same keys with\ntheir ranges stand in `config/dragline.toml`. *Live* keys of a settings file take effect while a \
         crawl runs, the others\nat its next start. How the sources are layered is in the README.\n",
    );
    let mut section = "";
    for key in Settings::keys() {
        if key.section() != section {
            section = key.section();
            let _ = write!(page, "\n## {section}\n\n| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n");
        }
        let live = if key.reload() == dragline::settings::Reload::Live { " *Live.*" } else { "" };
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(
            page,
            "| `{}` | {} | `{}` | {}{live} |",
            key.name(),
            key.type_text(),
            cell(&key.default_text()),
            cell(key.doc())
        );
    }
    page
}

#[test]
fn every_setting_is_in_the_documents() {
    let documents = document("README.md") + &document("docs/settings.md");
    let missing: Vec<String> = Settings::keys()
        .iter()
        .filter(|k| !documents.contains(&format!("`{}`", k.name())))
        .map(|k| k.name().to_owned())
        .collect();
    none(&missing, "these settings are in no document");
}

/// The client's part of the numbered behaviours of the control plane's wire contract.
fn behaviours_of_the_client() -> impl Iterator<Item = u32> {
    (1..=22).chain([27]).chain(29..=57).chain(59..=130).chain(181..=192)
}

#[test]
fn every_numbered_behaviour_of_the_client_has_a_test_of_its_number() {
    let tests: String =
        source::files().into_iter().filter(|(path, _)| path.starts_with("spinneret/")).map(|(_, text)| text).collect();
    let missing: Vec<String> =
        behaviours_of_the_client().filter(|n| !tests.contains(&format!("fn b{n:03}_"))).map(|n| format!("b{n:03}")).collect();
    none(&missing, "these have no test in src/spinneret whose name begins with the number");
}
