//! "Did you mean": the most similar of a few names, for settings and spiders alike.

/// The name that takes the fewest edits (insert, delete, replace a character, swap two), if they are few enough to be a slip:
/// at most a third of the longer name, and two at least.
pub(crate) fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(&given.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(edits, name)| *edits <= (given.chars().count().max(name.chars().count()) / 3).max(2))
        .min()
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, left) in one.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut column_before = None;
        for (column, right) in other.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut least =
                (at(&last, column) + usize::from(left != *right)).min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if previous == Some(*right) && column_before == Some(left) {
                least = least.min(at(&before_last, column.wrapping_sub(1)) + 1);
            }
            current.push(least);
            column_before = Some(*right);
        }
        before_last = std::mem::replace(&mut last, current);
        previous = Some(left);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_edits() {
        for (one, other, edits) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("", "ab", 2),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("über", "uber", 1),
        ] {
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
