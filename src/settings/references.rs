//! References to secrets: `${secret:path}` in the text of a setting, read from the control plane when a crawl starts.
//!
//! Only the values that win are read. Nothing here asks a plane by itself, and nothing shows what a secret holds.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::error::SettingsError;
use super::source::Source;
use crate::plane::PlaneError;

/// How a reference begins.
const OPEN: &str = "${secret:";

/// Longest path of a secret (wire contract, 4.4).
const PATH: usize = 256;

/// A secret that a setting in effect asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The setting.
    pub key: &'static str,
    /// The secret's path at the control plane.
    pub path: String,
    /// Where the setting was given.
    pub source: Source,
}

impl Reference {
    /// Why a secret cannot be read, in the words of an error of the settings: it names setting, path and reason.
    #[must_use]
    pub fn unread(&self, why: &PlaneError) -> SettingsError {
        let advice = match why {
            PlaneError::Unavailable(_) => "see that it runs and that this machine reaches it, then start again",
            PlaneError::Unauthorized(_) => "check SPINNERET_TOKEN, and that the token has a scope secret:read for this path",
            _ => "check the path, and that the token of this node may read it",
        };
        let (origin, path, why) = (self.source.clone(), self.path.clone(), why.to_string());
        SettingsError::SecretUnread { origin, key: self.key, path, why, advice }
    }
}

/// A text that begins like a reference and is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A secret that was not handed over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) String);

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Secret(&'a str),
}

/// Whether the control plane must be known before this setting is: then it cannot come from there.
pub(crate) fn is_needed_first(key: &str) -> bool {
    key.starts_with("SPINNERET_") || ["IDENTITIES", "CONFIG_WATCH", "JOB_ID"].contains(&key)
}

/// Whether a value has the beginning of a reference anywhere in it, in names of a table too.
pub(crate) fn has_any(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(OPEN),
        Value::Array(items) => items.iter().any(has_any),
        Value::Object(map) => map.iter().any(|(name, value)| name.contains(OPEN) || has_any(value)),
        _ => false,
    }
}

/// Whether a value is one reference and nothing else.
pub(crate) fn is_whole(value: &Value) -> bool {
    value.as_str().and_then(|text| pieces(text).ok()).is_some_and(|pieces| matches!(pieces.as_slice(), [Piece::Secret(_)]))
}

/// The paths a value refers to, each once, in their order. Names of a table cannot be references.
pub(crate) fn paths(value: &Value) -> Result<Vec<String>, Malformed> {
    let mut found = Vec::new();
    gather(value, &mut found)?;
    Ok(found)
}

fn gather(value: &Value, found: &mut Vec<String>) -> Result<(), Malformed> {
    match value {
        Value::String(text) => {
            for piece in pieces(text)? {
                if let Piece::Secret(path) = piece
                    && !found.iter().any(|known| known == path)
                {
                    found.push(path.to_owned());
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| gather(item, found)),
        Value::Object(map) => map.iter().try_for_each(|(name, value)| match name.contains(OPEN) {
            true => Err(Malformed),
            false => gather(value, found),
        }),
        _ => Ok(()),
    }
}

/// The value with the secrets in their places. A text that is filled in stays a text, whatever the secret looks like.
pub(crate) fn filled(value: &Value, secrets: &BTreeMap<String, SecretString>) -> Result<Value, Missing> {
    Ok(match value {
        Value::String(text) => {
            let mut whole = String::with_capacity(text.len());
            // What is malformed was refused when the layer was read.
            for piece in pieces(text).unwrap_or_default() {
                match piece {
                    Piece::Text(text) => whole.push_str(text),
                    Piece::Secret(path) => {
                        whole.push_str(secrets.get(path).ok_or_else(|| Missing(path.to_owned()))?.expose_secret());
                    }
                }
            }
            Value::String(whole)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| filled(item, secrets)).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            map.iter().map(|(name, value)| Ok((name.clone(), filled(value, secrets)?))).collect::<Result<Map<_, _>, _>>()?.into()
        }
        other => other.clone(),
    })
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Malformed> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let (path, after) = after.split_once('}').filter(|(path, _)| is_path(path)).ok_or(Malformed)?;
        pieces.push(Piece::Secret(path));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Wire contract, 4.4: small letters, digits, `_`, `.`, `/` and `-`, a letter or digit first.
fn is_path(path: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    path.len() <= PATH
        && path.bytes().next().is_some_and(plain)
        && path.bytes().all(|c| plain(c) || matches!(c, b'_' | b'.' | b'/' | b'-'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_found_at_any_depth_and_each_path_once() {
        let value = json!({"a": ["x ${secret:one}${secret:b/two-2.v_3} y", 1], "b": {"c": "${secret:one}"}});
        assert!(has_any(&value) && !is_whole(&value));
        assert_eq!(paths(&value).unwrap(), ["one", "b/two-2.v_3"]);
        assert!(is_whole(&json!("${secret:one}")));
        for other in [json!("a${secret:one}"), json!("${secret:one} "), json!("one"), json!(["${secret:one}"])] {
            assert!(!is_whole(&other), "{other}");
        }
    }

    #[test]
    fn what_only_begins_like_a_reference_is_malformed() {
        let long = "a".repeat(PATH + 1);
        for path in ["", "Upper", "-a", "a b", "a#2", "a${secret:b", &long] {
            assert_eq!(paths(&json!(format!("${{secret:{path}}}"))), Err(Malformed), "{path}");
        }
        assert_eq!(paths(&json!("${secret:a")), Err(Malformed));
        assert_eq!(paths(&json!({"${secret:a}": 1})), Err(Malformed));
        for text in ["$secret:a", "${secret}", "${env:a}", "{secret:a}", ""] {
            assert!(!has_any(&json!(text)), "{text}");
            assert_eq!(paths(&json!(text)), Ok(vec![]), "{text}");
        }
    }

    #[test]
    fn a_secret_is_filled_in_as_it_is_and_not_read_again() {
        let secrets =
            BTreeMap::from([("a".to_owned(), SecretString::from("1 ${secret:b} \"")), ("b".to_owned(), SecretString::from(""))]);
        let value = json!({"k": ["<${secret:a}>${secret:b}", 5], "l": "plain"});
        assert_eq!(filled(&value, &secrets), Ok(json!({"k": ["<1 ${secret:b} \">", 5], "l": "plain"})));
        assert_eq!(filled(&json!("${secret:c}"), &secrets), Err(Missing("c".to_owned())));
    }

    #[test]
    fn a_secret_that_cannot_be_read_is_named_with_its_setting() {
        let reference = Reference { key: "APCLOUDY_API_KEY", path: "apcloudy/key".to_owned(), source: Source::CommandLine };
        assert_eq!(
            reference.unread(&PlaneError::NotFound("there is no secret apcloudy/key".to_owned())).to_string(),
            "setting APCLOUDY_API_KEY (-s): the secret apcloudy/key cannot be read: there is no secret apcloudy/key; \
             check the path, and that the token of this node may read it"
        );
    }
}
