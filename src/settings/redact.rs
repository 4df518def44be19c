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

/// Whether the value of a header may be shown: only those known to carry no credential.
pub(crate) fn is_public_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["accept", "sec-ch-", "sec-fetch-"].iter().any(|prefix| name.starts_with(prefix))
        || ["user-agent", "cache-control", "pragma", "connection", "content-type", "dnt", "upgrade-insecure-requests"]
            .contains(&name.as_str())
}

/// A copy of a value in which URLs have lost their credentials.
pub(crate) fn redact_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact_text(text)),
        Value::Array(items) => Value::Array(items.iter().map(redact_value).collect()),
        Value::Object(map) => {
            map.iter().map(|(name, value)| (redact_text(name), redact_value(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
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
    fn only_headers_without_credentials_are_public() {
        for name in ["Accept", "accept-language", "User-Agent", "Sec-Fetch-Mode"] {
            assert!(is_public_header(name), "{name}");
        }
        for name in ["Authorization", "Cookie", "X-Api-Key", "X-Anything", "Referer", ""] {
            assert!(!is_public_header(name), "{name}");
        }
    }

    #[test]
    fn urls_are_redacted_in_names_and_values_at_any_depth() {
        let shown = redact_value(&json!({"ftp://u:canary@h/a": {"x": ["b://canary@c", 1]}}));
        assert_eq!(shown, json!({"ftp://[redacted]@h/a": {"x": ["b://[redacted]@c", 1]}}));
    }
}
