//! Tag soup by a grammar, and pages changed at random: the same for the same seed.
//!
//! A page is a list of pieces, so that the shrinker can take out whole tags.

use std::collections::VecDeque;

use super::markup::{ATTRIBUTES, COMMENTS, DOCTYPES, JUNK, REFERENCES, TEXTS, VALUES};
use super::mutate;
use super::words::{BODY, EVERY, FOREIGN, FORMATTING, FRAMES, HEAD, RAW, SELECT, TABLE};

/// Numbers by splitmix64.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `most`; 0 if that is 0.
    #[allow(clippy::cast_possible_truncation, reason = "less than a length")]
    pub(super) fn below(&mut self, most: usize) -> usize {
        (self.next() >> 11) as usize % most.max(1)
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Pages to be changed: inputs of the conformance tests and small pages of the test kit.
pub(super) fn corpus() -> Vec<Vec<String>> {
    let tests: serde_json::Value = serde_json::from_str(include_str!("../../../tests/data/html_tree.json")).unwrap();
    let inputs = tests["cases"].as_array().unwrap().iter().map(|case| case["data"].as_str().unwrap().to_owned());
    let pages = crate::testkit::pages::PageKind::ALL.into_iter().map(|kind| kind.page(900));
    pages.chain(inputs).map(|page| mutate::pieces(&page)).collect()
}

/// The page of a seed: soup, or one of the corpus with changes.
pub(super) fn case(seed: u64, corpus: &[Vec<String>]) -> Vec<String> {
    let mut rng = Rng::new(seed);
    match rng.below(20) {
        // The first pages of the corpus are long.
        0 => mutate::changed(&mut rng, corpus, 6),
        1..=5 => mutate::changed(&mut rng, corpus, corpus.len()),
        _ => soup(&mut rng),
    }
}

/// A page of random tags and texts, most of them from one part of the language.
pub(super) fn soup(rng: &mut Rng) -> Vec<String> {
    let mut soup = Soup { themes: [theme(rng), theme(rng)], open: VecDeque::new() };
    let count = match rng.below(20) {
        0 => 120,
        1..=4 => 40,
        _ => 16,
    };
    let mut pieces = Vec::new();
    if rng.one_in(3) {
        pieces.push("<!DOCTYPE html>".to_owned());
    }
    if rng.one_in(2) {
        // Straight into the part of the language, which random tags seldom get to.
        pieces.push(
            rng.pick(&["<table>", "<select>", "<svg>", "<math>", "<template>", "<frameset>", "<p>", "<table><tr>"]).to_string(),
        );
    }
    for _ in 0..=rng.below(count) {
        pieces.push(soup.piece(rng));
    }
    pieces
}

/// One more piece, of any part of the language.
pub(super) fn piece(rng: &mut Rng) -> String {
    Soup { themes: [theme(rng), EVERY], open: VecDeque::new() }.piece(rng)
}

fn theme(rng: &mut Rng) -> &'static [&'static str] {
    rng.pick(&[BODY, BODY, FORMATTING, FORMATTING, TABLE, TABLE, SELECT, FOREIGN, FOREIGN, HEAD, FRAMES, RAW, EVERY])
}

struct Soup {
    themes: [&'static [&'static str]; 2],
    /// Names of the last start tags: end tags mostly end one of them.
    open: VecDeque<&'static str>,
}

impl Soup {
    fn name(&self, rng: &mut Rng) -> &'static str {
        match rng.below(10) {
            0 => rng.pick(EVERY),
            1..=3 => rng.pick(self.themes[1]),
            _ => rng.pick(self.themes[0]),
        }
    }

    fn piece(&mut self, rng: &mut Rng) -> String {
        match rng.below(40) {
            0..=18 => self.start_tag(rng),
            19..=27 => self.end_tag(rng),
            28..=33 => rng.pick(TEXTS).to_owned(),
            34 => rng.pick(REFERENCES).to_owned(),
            35 => rng.pick(COMMENTS).to_owned(),
            36 => rng.pick(DOCTYPES).to_owned(),
            37 => rng.pick(&["<![CDATA[x]]>", "<![CDATA[", "]]>", "<![CDATA[a]]b\0]]]>", "<![cdata[x]]>"]).to_string(),
            38 => {
                rng.pick(&["<?php x ?>", "<?xml version=1?>", "<?", "<?a", "<?x y>", "<?>", "<?xml-stylesheet a?>"]).to_string()
            }
            _ => rng.pick(JUNK).to_owned(),
        }
    }

    fn start_tag(&mut self, rng: &mut Rng) -> String {
        let name = self.name(rng);
        if self.open.len() == 12 {
            self.open.pop_front();
        }
        self.open.push_back(name);
        let mut tag = format!("<{}", cased(rng, name));
        if rng.one_in(3) {
            for _ in 0..=rng.below(3) {
                attribute(rng, &mut tag);
            }
        }
        if rng.one_in(10) {
            tag.push('/');
        }
        tag.push('>');
        tag
    }

    fn end_tag(&mut self, rng: &mut Rng) -> String {
        let name = match rng.below(3) {
            0 => self.name(rng),
            _ => self.open.get(rng.below(self.open.len())).copied().unwrap_or("p"),
        };
        let behind = if rng.one_in(12) { rng.pick(&[" ", " x=y", "/", "\n", "\0"]) } else { "" };
        format!("</{}{behind}>", cased(rng, name))
    }
}

fn cased(rng: &mut Rng, name: &str) -> String {
    match rng.below(24) {
        0 => name.to_ascii_uppercase(),
        1 => name.to_ascii_lowercase(),
        _ => name.to_owned(),
    }
}

fn attribute(rng: &mut Rng, tag: &mut String) {
    let (name, value) = (rng.pick(ATTRIBUTES), rng.pick(VALUES));
    tag.push_str(rng.pick(&[" ", " ", " ", "\n", "/", "\t ", "\r\n", ""]));
    tag.push_str(name);
    match rng.below(6) {
        0 => {}
        1 if !value.is_empty() && !value.contains([' ', '>']) => tag.push_str(&format!("={value}")),
        2 => tag.push_str(&format!(" = '{value}'")),
        3 => tag.push_str(&format!("='{value}'")),
        _ => tag.push_str(&format!("=\"{value}\"")),
    }
}
