//! The page about middlewares, against the settings, the counters and the methods there are.

use dragline::settings::Settings;

use super::source::sources;
use super::{document, none};

/// The cells of the rows of all tables of the page, without their heads.
fn rows() -> Vec<Vec<String>> {
    let page = document("docs/middlewares.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Place") && !line.starts_with("| ---"));
    let rows: Vec<Vec<String>> = rows
        .map(|row| {
            let inner = row.strip_prefix('|').and_then(|row| row.strip_suffix('|')).unwrap_or(row);
            inner.split('|').map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(rows.len() > 20, "the tables have {} rows", rows.len());
    rows
}

/// What a text has in code.
fn in_code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_setting(word: &str) -> bool {
    word.contains('_') && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

#[test]
fn a_row_has_a_place_a_step_settings_counters_and_methods() {
    let wrong: Vec<String> = rows().into_iter().filter(|row| row.len() != 5).map(|row| format!("{row:?}")).collect();
    none(&wrong, "docs/middlewares.md: a row has five cells");
}

#[test]
fn the_settings_that_the_page_names_are_there() {
    let page = document("docs/middlewares.md");
    let names = in_code(&page).map(|code| code.split(' ').next().unwrap_or_default()).filter(|word| is_setting(word));
    let mut missing: Vec<String> = names.filter(|name| Settings::key(name).is_none()).map(str::to_owned).collect();
    for row in rows() {
        let others = in_code(&row[2]).filter(|word| Settings::key(word).is_none());
        missing.extend(others.map(str::to_owned));
    }
    none(&missing, "docs/middlewares.md names settings that there are not");
}

#[test]
fn the_counters_that_the_page_names_are_in_their_table() {
    let known = document("docs/stats.md");
    let is_known = |counter: &str| known.contains(&format!("\n| `{counter}` |"));
    let wrong: Vec<String> =
        rows().iter().flat_map(|row| in_code(&row[3])).filter(|counter| !is_known(counter)).map(str::to_owned).collect();
    none(&wrong, "docs/middlewares.md names counters that are not in docs/stats.md");
}

#[test]
fn the_methods_that_the_page_names_are_those_of_a_request() {
    let code: String = sources()
        .iter()
        .filter(|source| source.path == "api/request.rs" || source.path.starts_with("api/request/"))
        .map(|source| source.code.as_str())
        .collect();
    let name = |method: &str| method.split('(').next().unwrap_or_default().to_owned();
    let methods: Vec<String> = rows().iter().flat_map(|row| in_code(&row[4])).map(name).collect();
    assert!(methods.len() > 10, "{methods:?}");
    let missing: Vec<String> = methods.into_iter().filter(|method| !code.contains(&format!("pub fn {method}("))).collect();
    none(&missing, "docs/middlewares.md names methods that a request has not");
}

#[test]
fn every_setting_of_a_step_is_on_the_page() {
    let page = document("docs/middlewares.md");
    let families = [
        "REDIRECT_",
        "METAREFRESH_",
        "RETRY_",
        "HTTPAUTH_",
        "REFERER_",
        "REFERRER_",
        "HTTPERROR_",
        "ROBOTSTXT_",
        "ROBOTS_",
        "HTTPCACHE_",
        "AUTOTHROTTLE_",
        "COOKIES_",
        "DEPTH_",
        "URL",
        "DNS",
    ];
    let missing: Vec<String> = Settings::keys()
        .iter()
        .map(|key| key.name())
        .filter(|name| families.iter().any(|family| name.starts_with(family)) && !page.contains(&format!("`{name}`")))
        .map(str::to_owned)
        .collect();
    none(&missing, "docs/middlewares.md leaves out settings of a step it tells of");
}
