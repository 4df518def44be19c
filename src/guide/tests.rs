//! What the guide says about settings, against the table of settings.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use crate::settings::{Name, Settings};

const FROM_SCRAPY: &str = include_str!("../../docs/scrapy.md");

/// The names in the first cells of the table below a heading.
fn named_below(heading: &str) -> Vec<&'static str> {
    let section = FROM_SCRAPY.split("\n## ").find(|section| section.starts_with(heading)).expect(heading);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names: Vec<_> = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 10, "{heading}: {names:?}");
    names
}

#[test]
fn settings_that_are_said_to_be_the_same_are_there() {
    let missing: Vec<_> =
        named_below("Settings that are the same").into_iter().filter(|name| Settings::key(name).is_none()).collect();
    assert!(missing.is_empty(), "docs/scrapy.md names settings that there are not: {missing:?}");
}

#[test]
fn settings_that_are_said_to_be_missing_are_refused_with_a_word_of_advice() {
    for name in named_below("Settings that are not there") {
        assert!(matches!(Name::of(name), Name::Unsupported(_)), "{name} is not refused with advice");
    }
}

#[test]
fn every_setting_that_the_guide_mentions_is_known_in_one_way_or_the_other() {
    let words = FROM_SCRAPY.split('`').skip(1).step_by(2);
    let is_name =
        |word: &&str| word.contains('_') && word.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !word.starts_with('_');
    for name in words.filter(is_name) {
        assert!(!matches!(Name::of(name), Name::Unknown(_)), "{name}");
    }
}
