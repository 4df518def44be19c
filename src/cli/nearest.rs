//! "Did you mean": the most similar of a few names.

/// The name that takes the fewest edits (insert, delete, replace a character), if they are few enough to be a slip:
/// at most a third of the longer name, and two at least.
pub(crate) fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(&given.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(edits, name)| *edits <= (given.chars().count().max(name.chars().count()) / 3).max(2))
        .min()
        .map(|(_, name)| name)
}

fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, c) in one.chars().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        let mut next = vec![left];
        for (above, d) in row.iter().skip(1).zip(&other) {
            left = (diagonal + usize::from(c != *d)).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_edits() {
        for (one, other, edits) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("über", "uber", 1)]
        {
            assert_eq!(distance(one, other), edits, "{one} {other}");
            assert_eq!(distance(other, one), edits, "{other} {one}");
        }
    }

    #[test]
    fn only_a_slip_is_guessed() {
        let names = ["bookshop", "quotes", "bench"];
        assert_eq!(nearest("bookshp", names), Some("bookshop"));
        assert_eq!(nearest("Quote", names), Some("quotes"));
        assert_eq!(nearest("something", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
