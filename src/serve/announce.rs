//! What is served, in lines for whoever started it: the sink, the plane, and what a crawl sets to use them. Names, no values.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use url::Url;

use super::file::{Census, DEFAULT};

/// Names that one line has room for.
const NAMES: usize = 10;

/// The lines of a start.
pub(crate) fn lines(address: &Url, db: &Path, place: Option<&Path>, census: &Census) -> Vec<String> {
    let address = address.as_str().trim_end_matches('/');
    let file = place.map_or_else(|| format!("{DEFAULT} as it is shipped"), |place| place.display().to_string());
    let mut lines = Vec::new();
    lines.push(match census.keys {
        0 => format!("sink: takes nothing, since {file} has no [[keys]]"),
        keys => format!(
            "sink: batches go into {}; a crawl sets APCLOUDY_URL={address}, and APCLOUDY_API_KEY and APCLOUDY_SECRET_KEY to {} of {file}",
            db.display(),
            if keys == 1 { "the key".to_owned() } else { format!("one of the {keys} keys") },
        ),
    });
    if census.tokens.is_empty() {
        lines.push(format!("plane: takes no calls, since {file} has no [[plane.tokens]]"));
    } else {
        lines.push(format!(
            "plane: {}; a crawl sets SPINNERET_URL={address}, and SPINNERET_TOKEN to the token {} of {file}",
            sites(census),
            listed(&census.tokens, " or "),
        ));
        lines.push(format!("plane: what was leased and reported, for this machine only: {address}/plane/ledger"));
    }
    lines
}

/// The sites, each with its identities.
fn sites(census: &Census) -> String {
    let mut text = match census.sites.len() {
        0 => return "no sites".to_owned(),
        1 => "site ".to_owned(),
        number => format!("{number} sites: "),
    };
    for (index, (site, identities)) in census.sites.iter().take(NAMES).enumerate() {
        let number = identities.len();
        let comma = if index > 0 { "; " } else { "" };
        let noun = if number == 1 { "identity" } else { "identities" };
        let _ = write!(text, "{comma}{site} with {number} {noun}");
        if number > 0 {
            let _ = write!(text, " ({})", listed(identities, ", "));
        }
    }
    match census.sites.len().checked_sub(NAMES) {
        None | Some(0) => {}
        Some(more) => {
            let _ = write!(text, "; and {more} more");
        }
    }
    text
}

/// What became of the names between two readings of the file; nothing if all are as they were.
pub(crate) fn difference(before: &Census, after: &Census) -> Vec<String> {
    let pairs = |census: &Census| {
        let pairs = census.sites.iter().flat_map(|(site, identities)| identities.iter().map(move |id| format!("{site}/{id}")));
        pairs.map(Arc::from).collect::<Vec<Arc<str>>>()
    };
    let sites = |census: &Census| census.sites.keys().cloned().collect::<Vec<_>>();
    let tokens = |census: &Census| census.tokens.iter().cloned().collect::<Vec<_>>();
    let mut lines = Vec::new();
    for (noun, before, after) in [
        ("sites", sites(before), sites(after)),
        ("identities", pairs(before), pairs(after)),
        ("tokens", tokens(before), tokens(after)),
    ] {
        for (verb, names) in [("added", missing(&after, &before)), ("removed", missing(&before, &after))] {
            if !names.is_empty() {
                lines.push(format!("{noun} {verb}: {}", listed(&names, ", ")));
            }
        }
    }
    if before.keys != after.keys {
        lines.push(format!("keys: {} instead of {}", after.keys, before.keys));
    }
    lines
}

/// Those of `all` that are not among `others`; both are sorted.
fn missing(all: &[Arc<str>], others: &[Arc<str>]) -> Vec<Arc<str>> {
    all.iter().filter(|name| others.binary_search(name).is_err()).cloned().collect()
}

fn listed<'n>(names: impl IntoIterator<Item = &'n Arc<str>>, between: &str) -> String {
    let mut names = names.into_iter();
    let first: Vec<&str> = names.by_ref().take(NAMES).map(|name| &**name).collect();
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", first.join(between))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn census(sites: &[(&str, &[&str])], tokens: &[&str], keys: usize) -> Census {
        let names = |names: &[&str]| names.iter().copied().map(Arc::from).collect();
        let sites = sites.iter().map(|(site, identities)| (Arc::from(*site), names(identities))).collect();
        Census { sites, tokens: names(tokens), keys }
    }

    fn told(census: &Census) -> String {
        let address = Url::parse("http://127.0.0.1:8080/").unwrap();
        lines(&address, Path::new("a.db"), Some(Path::new("own.toml")), census).join("\n")
    }

    #[test]
    fn what_a_crawl_sets_is_told_with_the_names_of_the_file() {
        let told = told(&census(&[("shop", &["a", "b"]), ("wiki", &[])], &["ci", "dev"], 1));
        assert_eq!(
            told,
            "sink: batches go into a.db; a crawl sets APCLOUDY_URL=http://127.0.0.1:8080, and APCLOUDY_API_KEY and \
             APCLOUDY_SECRET_KEY to the key of own.toml\n\
             plane: 2 sites: shop with 2 identities (a, b); wiki with 0 identities; a crawl sets \
             SPINNERET_URL=http://127.0.0.1:8080, and SPINNERET_TOKEN to the token ci or dev of own.toml\n\
             plane: what was leased and reported, for this machine only: http://127.0.0.1:8080/plane/ledger"
        );
    }

    #[test]
    fn what_is_not_there_is_told_and_many_names_are_cut() {
        let nothing = told(&Census::default());
        assert!(nothing.contains("no [[keys]]") && nothing.contains("no [[plane.tokens]]"), "{nothing}");
        let many: Vec<String> = (10..35).map(|number| format!("i{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let told = told(&census(&[("shop", &many)], &["t"], 3));
        assert!(told.contains("i19 and 15 more)") && told.contains("one of the 3 keys"), "{told}");
    }

    #[test]
    fn a_difference_has_names_and_numbers() {
        let before = census(&[("shop", &["a", "b"]), ("wiki", &["w"])], &["ci"], 1);
        let after = census(&[("shop", &["b", "c"]), ("blog", &[])], &["ci", "dev"], 2);
        assert_eq!(
            difference(&before, &after),
            [
                "sites added: blog",
                "sites removed: wiki",
                "identities added: shop/c",
                "identities removed: shop/a, wiki/w",
                "tokens added: dev",
                "keys: 2 instead of 1"
            ]
        );
        assert_eq!(difference(&before, &before), Vec::<String>::new());
    }
}
