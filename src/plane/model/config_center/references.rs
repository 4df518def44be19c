//! References to secrets in an item's content: `${secret:<path>}` for the current version, `${secret:<path>#<version>}` for one.
//!
//! The value takes the reference's place as it is, and is not looked through again.

use super::super::refusal::Refusal;
use super::super::secrets::is_secret_path;
use super::ItemName;

const OPENING: &str = "${secret:";

/// Why a content cannot be delivered.
#[derive(Debug)]
pub(super) enum Fault {
    /// A reference is wrong, or its secret cannot be had.
    Refused(Refusal),
    /// With its secrets it is longer than the limit.
    TooLong,
}

/// A part of a content.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Secret { path: &'a str, version: i32 },
}

/// Whether the content refers to secrets, for one that is about to be published.
///
/// # Errors
/// `invalid_argument` when something opens like a reference and is none: better one refused publishing than a refusal for
/// everybody who reads.
pub(super) fn has_references(name: ItemName<'_>, content: &str) -> Result<bool, Refusal> {
    let mut found = false;
    for part in parts(content) {
        let part = part.ok_or_else(|| Refusal::invalid_argument(malformed(name)))?;
        found |= matches!(part, Part::Secret { .. });
    }
    Ok(found)
}

/// The content with every reference replaced by what `secret` answers for its path and version (0: the current one), unless
/// it gets longer than `limit` bytes.
pub(super) fn resolve<'s>(
    name: ItemName<'_>,
    content: &str,
    limit: usize,
    secret: impl Fn(&str, i32) -> Result<&'s str, Refusal>,
) -> Result<String, Fault> {
    let mut resolved = String::with_capacity(content.len().min(limit));
    for part in parts(content) {
        let text = match part.ok_or_else(|| Fault::Refused(Refusal::failed_precondition(malformed(name))))? {
            Part::Text(text) => text,
            Part::Secret { path, version } => secret(path, version).map_err(Fault::Refused)?,
        };
        if text.len() > limit.saturating_sub(resolved.len()) {
            return Err(Fault::TooLong);
        }
        resolved.push_str(text);
    }
    Ok(resolved)
}

/// The parts of a content in order; the last is `None` where something opens like a reference and is none.
fn parts(content: &str) -> impl Iterator<Item = Option<Part<'_>>> {
    let mut rest = Some(content);
    std::iter::from_fn(move || {
        let content = rest.take().filter(|content| !content.is_empty())?;
        let Some(inside) = content.strip_prefix(OPENING) else {
            let (text, after) = content.split_at(content.find(OPENING).unwrap_or(content.len()));
            rest = Some(after);
            return Some(Some(Part::Text(text)));
        };
        let (reference, after) = inside.split_once('}').unzip();
        rest = after;
        Some(reference.and_then(parse))
    })
}

fn parse(reference: &str) -> Option<Part<'_>> {
    let (path, version) = match reference.split_once('#') {
        None => (reference, 0),
        Some((path, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => (path, digits.parse().ok()?),
        Some(_) => return None,
    };
    is_secret_path(path).then_some(Part::Secret { path, version })
}

fn malformed(name: ItemName<'_>) -> String {
    format!("the config item {name} has a malformed reference to a secret; write ${{secret:path}} or ${{secret:path#version}}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::super::super::refusal::Reason;
    use super::*;

    const NAME: ItemName<'_> = ItemName { group: "crawler", key: "search.json" };

    fn secret(path: &str, version: i32) -> Result<&'static str, Refusal> {
        match (path, version) {
            ("a", 0) => Ok("alpha"),
            ("a", 1) => Ok("older"),
            ("b/c.d-e_f", 0) => Ok("${secret:a}"),
            _ => Err(Refusal::failed_precondition("missing")),
        }
    }

    fn resolved(content: &str, limit: usize) -> Result<String, Option<Reason>> {
        resolve(NAME, content, limit, secret).map_err(|fault| match fault {
            Fault::Refused(refusal) => refusal.reason,
            Fault::TooLong => None,
        })
    }

    #[test]
    fn references_are_replaced_and_all_else_stays() {
        for (content, expected) in [
            ("", ""),
            ("no $ {secret} ${other:a} }", "no $ {secret} ${other:a} }"),
            (r#"{"key": "${secret:a}"}"#, r#"{"key": "alpha"}"#),
            ("${secret:a}${secret:a#1}${secret:a#0}", "alphaolderalpha"),
            ("<${secret:b/c.d-e_f}>", "<${secret:a}>"),
            ("$${secret:a}}", "$alpha}"),
        ] {
            assert_eq!(resolved(content, 100).as_deref(), Ok(expected), "{content}");
            assert_eq!(has_references(NAME, content), Ok(content != expected), "{content}");
        }
    }

    #[test]
    fn what_opens_like_a_reference_must_be_one() {
        for content in
            ["${secret:a", "${secret:}", "${secret:A}", "${secret:a#}", "${secret:a#x}", "${secret:a#-1}", "${secret:a#+1}"]
        {
            assert_eq!(has_references(NAME, content).unwrap_err().reason, Some(Reason::InvalidArgument), "{content}");
            assert_eq!(resolved(content, 100), Err(Some(Reason::FailedPrecondition)), "{content}");
        }
        assert_eq!(resolved("${secret:a#99999999999}", 100), Err(Some(Reason::FailedPrecondition)));
        assert_eq!(resolved("${secret:missing}", 100), Err(Some(Reason::FailedPrecondition)));
    }

    #[test]
    fn secrets_cannot_blow_an_item_up() {
        assert_eq!(resolved("xx${secret:a}", 7), Ok("xxalpha".into()));
        assert_eq!(resolved("xx${secret:a}", 6), Err(None));
        assert_eq!(resolved("xx${secret:a}x", 7), Err(None));
    }
}
