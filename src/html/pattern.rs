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
        // The crate prints the pattern with a caret line under the place, then a last line with the reason.
        let position = shown
            .lines()
            .find(|line| line.trim_start().starts_with('^'))
            .and_then(|line| line.find('^'))
            .map_or(0, |column| column.saturating_sub(4));
        let reason = shown.lines().last().unwrap_or("unknown").trim_start_matches("error: ");
        SelectorError::new(SelectorKind::Pattern, text, position.min(text.len()), reason)
    })
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
