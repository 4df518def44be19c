//! Changes pages at random: pieces are taken out, doubled, swapped, brought in from others, cut, and letters changed.

use super::soup::{self, Rng};

/// A page in pieces: tags and what is between them.
pub(super) fn pieces(page: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = page;
    while !rest.is_empty() {
        let at = match rest.strip_prefix('<') {
            Some(tag) => tag.find(['<', '>']).map_or(rest.len(), |at| at + 1 + usize::from(tag.as_bytes()[at] == b'>')),
            None => rest.find('<').unwrap_or(rest.len()),
        };
        let (piece, behind) = rest.split_at(at);
        pieces.push(piece.to_owned());
        rest = behind;
    }
    pieces
}

/// One of the first `first` pages of the corpus with one to six changes.
pub(super) fn changed(rng: &mut Rng, corpus: &[Vec<String>], first: usize) -> Vec<String> {
    let mut page = corpus[rng.below(first.min(corpus.len()))].clone();
    for _ in 0..=rng.below(6) {
        change(rng, &mut page, corpus);
    }
    page
}

fn change(rng: &mut Rng, page: &mut Vec<String>, corpus: &[Vec<String>]) {
    let at = rng.below(page.len());
    match rng.below(9) {
        0 if !page.is_empty() => {
            let end = (at + 1 + rng.below(4)).min(page.len());
            page.drain(at..end);
        }
        1 if !page.is_empty() => {
            let (piece, to) = (page[at].clone(), rng.below(page.len()));
            page.insert(to, piece);
        }
        2 if !page.is_empty() => {
            let other = rng.below(page.len());
            page.swap(at, other);
        }
        3 | 4 => {
            let other = &corpus[rng.below(corpus.len())];
            let start = rng.below(other.len());
            let end = (start + 1 + rng.below(8)).min(other.len());
            page.splice(at..at, other[start..end].iter().cloned());
        }
        5 | 6 if !page.is_empty() => {
            let piece = letters(rng, &page[at]);
            page[at] = piece;
        }
        7 if rng.one_in(4) => page.truncate(at),
        _ => page.insert(at, soup::piece(rng)),
    }
}

/// A letter is taken out, put in, or exchanged.
fn letters(rng: &mut Rng, piece: &str) -> String {
    let mut letters: Vec<char> = piece.chars().collect();
    let at = rng.below(letters.len());
    let new =
        rng.pick(&['<', '>', '/', '!', '-', '"', '\'', '=', '&', '#', ';', ' ', '\n', '\r', '\0', 'a', 'X', '?', '[', ']', 'é']);
    match rng.below(4) {
        0 if !letters.is_empty() => {
            letters.remove(at);
        }
        1 if !letters.is_empty() => letters[at] = new,
        2 if !letters.is_empty() => {
            let other = rng.below(letters.len());
            letters.swap(at, other);
        }
        _ => letters.insert(at, new),
    }
    letters.into_iter().collect()
}
