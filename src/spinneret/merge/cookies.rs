//! The text of a `Cookie` header: taken apart, put together, changed by name.
//!
//! Parts without a name or without a `=` are no cookies, but a text that somebody wrote keeps them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Whether a header of this name has cookies.
pub(super) fn is_cookie(header: &str) -> bool {
    header.eq_ignore_ascii_case("cookie")
}

/// Name and value of each cookie, in order: parts between semicolons with a `=` and a name before it, trimmed.
pub(crate) fn parse(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(';').filter_map(pair)
}

/// The text of these cookies.
pub(super) fn join(cookies: &BTreeMap<String, String>) -> String {
    append(String::new(), cookies.iter())
}

/// This text with those of the cookies whose names it does not have.
pub(super) fn complete(text: &str, cookies: &BTreeMap<String, String>) -> String {
    let present: BTreeSet<&str> = parse(text).map(|(name, _)| name).collect();
    append(text.to_owned(), cookies.iter().filter(|(name, _)| !present.contains(name.as_str())))
}

/// This text with all of the cookies, in place of those it has of the same names.
pub(super) fn overrule(text: &str, cookies: &BTreeMap<String, String>) -> String {
    if !parse(text).any(|(name, _)| cookies.contains_key(name)) {
        return append(text.to_owned(), cookies.iter());
    }
    let is_kept = |part: &&str| pair(part).is_none_or(|(name, _)| !cookies.contains_key(name));
    let kept: Vec<&str> = text.split(';').filter(is_kept).map(str::trim).collect();
    append(kept.join("; "), cookies.iter())
}

fn pair(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty()).then_some((name, value))
}

fn append<'a>(mut text: String, cookies: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    for (name, value) in cookies {
        let end = text.trim_end().trim_end_matches(';').trim_end().len();
        text.truncate(end);
        let separator = if text.is_empty() { "" } else { "; " };
        // Writing to a text cannot fail.
        let _ = write!(text, "{separator}{name}={value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn b084_a_cookie_header_is_taken_apart_at_semicolons_and_the_first_equals_sign() {
        let found: Vec<_> = parse("a=1; b = 2 ;flag; =x; c=").collect();
        assert_eq!(found, [("a", "1"), ("b", "2"), ("c", "")]);
        assert_eq!(parse("t=a=b==; u=\"x y\"").collect::<Vec<_>>(), [("t", "a=b=="), ("u", "\"x y\"")]);
        assert_eq!(parse("").count() + parse(" ; ;=; = ;flag").count(), 0);
    }

    #[test]
    fn a_text_is_completed_by_the_names_it_lacks() {
        let own = cookies(&[("a", "other"), ("b", "2"), ("c", "3")]);
        assert_eq!(complete("a=1; flag", &own), "a=1; flag; b=2; c=3");
        assert_eq!(complete("a=1 ; ", &own), "a=1; b=2; c=3");
        assert_eq!(complete("", &own), "a=other; b=2; c=3");
        assert_eq!(complete("a=1 ;b=2;c= ", &own), "a=1 ;b=2;c= ", "nothing is missing: not a byte changes");
    }

    #[test]
    fn a_text_is_overruled_name_by_name() {
        let own = cookies(&[("b", "new")]);
        assert_eq!(overrule("a=1; b=2; flag; b = 3; c=4", &own), "a=1; flag; c=4; b=new");
        assert_eq!(overrule("b=2", &own), "b=new");
        assert_eq!(overrule("a=1;x=2", &own), "a=1;x=2; b=new");
        assert_eq!(overrule("a=1;", &BTreeMap::new()), "a=1;");
    }
}
