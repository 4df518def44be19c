//! Examples of the documents that no other test runs.

use dragline::courier::JobStore;

use super::document;

/// What stands between a fence with this name and its end, for each such fence.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0.to_owned())).collect()
}

#[test]
fn the_programs_of_the_readme_are_those_that_are_compiled() {
    let front = document("src/front.md");
    let compiled = [blocks(&front, "rust"), blocks(&document("src/spinneret/front.md"), "rust,no_run")].concat();
    assert_eq!(
        blocks(&document("README.md"), "rust"),
        compiled,
        "a Rust example of the README is compiled only if a front.md has it"
    );
}

#[test]
fn the_questions_of_the_readme_fit_the_job_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    drop(JobStore::open(&path).unwrap());
    let store = rusqlite::Connection::open(&path).unwrap();
    let questions: Vec<String> = blocks(&document("README.md"), "sql")
        .join("\n")
        .split_inclusive(';')
        .map(|q| q.trim().to_owned())
        .filter(|q| !q.is_empty())
        .collect();
    assert!(questions.len() >= 5, "{questions:?}");
    for question in questions {
        let prepared = store.prepare(&question).and_then(|mut q| q.query([]).and_then(|mut rows| rows.next().map(|_| ())));
        assert!(prepared.is_ok(), "{question}: {prepared:?}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut problems = Vec::new();
    for name in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/scrapy.md", "docs/stats.md", "docs/settings.md"] {
        let folder = root.join(name).parent().unwrap().to_owned();
        for rest in document(name).split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                problems.push(format!("{name}: {target}"));
            }
        }
    }
    super::none(&problems, "these links lead nowhere");
}
