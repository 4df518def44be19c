//! Regular expressions over selected text, with the group rules of Scrapy's `re`.

use regex::Regex;

use super::error::{SelectorError, SelectorKind};

/// Whether a search goes on after a find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Go,
    Stop,
}

/// Compiles a pattern; the error carries its position.
pub(crate) fn compile(text: &str) -> Result<Regex, SelectorError> {
    Regex::new(text).map_err(|error| {
        let shown = error.to_string();
        let reason = shown.lines().last().unwrap_or("unknown").trim_start_matches("error: ");
        SelectorError::new(SelectorKind::Pattern, text, position(text, &shown), reason)
    })
}

/// The byte of a pattern that an error of the regex crate points to. The crate prints the pattern, behind four blanks or, where it
/// has several lines, each behind its number; below is a line of carets, under the characters at fault.
fn position(text: &str, shown: &str) -> usize {
    let lines: Vec<&str> = shown.lines().collect();
    let is_carets = |line: &&str| line.contains('^') && line.chars().all(|c| matches!(c, ' ' | '^'));
    // A line of the pattern can look the same, but stands before.
    let Some((at, carets)) = lines.iter().enumerate().rev().find(|(_, line)| is_carets(line)) else { return 0 };
    let column = carets.chars().take_while(|c| *c == ' ').count();
    let above = at.checked_sub(1).and_then(|at| lines.get(at)).copied().unwrap_or_default();
    let numbered = above.split_once(": ").and_then(|(number, _)| Some((number.trim().parse::<usize>().ok()?, number.len() + 2)));
    let (line, margin) = if text.contains('\n') { numbered.unwrap_or((1, 4)) } else { (1, 4) };
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    before + rest.char_indices().nth(column.saturating_sub(margin)).map_or(rest.len(), |(byte, _)| byte)
}

/// Gives every find of `regex` in `text`: group `extract` of the first match, else all groups, else whole matches.
pub(crate) fn find(regex: &Regex, text: &str, mut give: impl FnMut(&str) -> Next) {
    if regex.capture_names().flatten().any(|name| name == "extract") {
        if let Some(group) = regex.captures(text).and_then(|found| found.name("extract")) {
            give(group.as_str());
        }
        return;
    }
    if regex.captures_len() == 1 {
        for found in regex.find_iter(text) {
            if give(found.as_str()) == Next::Stop {
                return;
            }
        }
        return;
    }
    for found in regex.captures_iter(text) {
        for group in found.iter().skip(1) {
            if give(group.map_or("", |group| group.as_str())) == Next::Stop {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn an_error_points_at_the_place_of_the_pattern_that_is_wrong() {
        for (pattern, position) in [
            ("(a", 0),
            ("^(a", 1),
            ("^", usize::MAX),
            (" ^ (", 3),
            ("é(a", 2),
            (r"a\q", 1),
            ("a{2,1}", 1),
            ("[z-a]", 1),
            ("(?x)\n^\n ^ (\n", 10),
            ("(?x) a\n[é-", 7),
            ("(?x)\n\n\n\n\n\n\n\n\n\n(", 14),
            ("1: (", 3),
            ("a{1000}{1000}{1000}", 0),
        ] {
            let found = compile(pattern).err().map_or(usize::MAX, |error| error.position());
            assert_eq!(found, position, "{pattern:?}: {:?}", compile(pattern));
        }
    }
}
