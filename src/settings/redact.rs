//! What may be shown of a value: credentials in URLs and in header values are replaced.
//!
//! Applied to everything that leaves the settings as text: errors, tables, JSON and `Debug`.

use serde_json::{Map, Value};

/// Stands where a secret was.
pub(crate) const REDACTED: &str = "[redacted]";

/// Replaces the user part and the query of a URL; other text stays as it is.
pub(crate) fn redact_text(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    // The last `@` counts, wherever it stands: an unescaped `/` or `?` in a password hides nothing.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("[redacted]@", rest),
        None => ("", rest),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?[redacted]"),
        None => (rest, ""),
    };
    format!("{scheme}://{user}{rest}{query}")
}

/// Whether a header or option of this name usually carries a credential.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "auth", "cookie", "token", "secret", "password", "api-key", "api_key", "apikey",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// A copy of the value that may be shown: secret names lose their value, URLs their credentials.
pub(crate) fn redact_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact_text(text)),
        Value::Array(items) => Value::Array(items.iter().map(redact_value).collect()),
        Value::Object(map) => Value::Object(redact_map(map)),
        other => other.clone(),
    }
}

fn redact_map(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .map(|(name, value)| {
            let shown = match value {
                Value::String(_) if is_secret_name(name) => Value::from(REDACTED),
                other => redact_value(other),
            };
            (redact_text(name), shown)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use serde_json::json;

    #[test]
    fn a_url_loses_its_user_and_its_query_and_keeps_the_rest() {
        for (given, shown) in [
            ("items.jsonl", "items.jsonl"),
            ("ftp://u:canary@host/a.csv", "ftp://[redacted]@host/a.csv"),
            ("redis://:canary@host:1", "redis://[redacted]@host:1"),
            ("s3://b/k?sig=canary", "s3://b/k?[redacted]"),
            ("ftp://u:p/ca?nary@host/x", "ftp://[redacted]@host/x"),
        ] {
            assert_eq!(redact_text(given), shown);
        }
    }

    #[test]
    fn a_header_that_carries_a_credential_is_not_shown() {
        let shown =
            redact_value(&json!({"Authorization": "canary", "Accept": "a/b", "Cookie": "canary"}));
        assert_eq!(
            shown,
            json!({"Authorization": REDACTED, "Accept": "a/b", "Cookie": REDACTED})
        );
    }
}
