//! Who may deliver: the keys file, and the sample keys when there is none.
//!
//! TOML, read once at start and checked whole. Secrets go straight into redacting types; no message quotes a value, since any
//! value may be one.

use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use toml::Spanned;

use crate::apcloudy::Signer;
use crate::permissions::is_open_to_others;

/// The file as shipped; also what counts when there is none.
const SAMPLE: &str = include_str!("../../config/serve.toml");

/// A keys file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum KeysError {
    /// It cannot be read.
    #[error("the keys file {} cannot be read: {source}; check the path in --keys", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// It says something that is not allowed.
    #[error("{}:{line}: {reason}", path.display())]
    Content { path: PathBuf, line: usize, reason: String },
}

/// The keys a webhook accepts.
pub(crate) struct Keys {
    keys: Vec<Key>,
    place: Option<PathBuf>,
}

struct Key {
    api_key: SecretString,
    signer: Signer,
    is_sample: bool,
}

impl Keys {
    /// The keys everybody knows.
    ///
    /// # Errors
    /// None, while the shipped file is one that can be read.
    pub(crate) fn sample() -> Result<Self, KeysError> {
        let keys = parse(SAMPLE, Path::new("config/serve.toml"), &[])?;
        Ok(Self { keys, place: None })
    }

    /// Reads a keys file.
    ///
    /// # Errors
    /// When it cannot be read or says something that is not allowed.
    pub(crate) fn load(path: &Path) -> Result<Self, KeysError> {
        let text = std::fs::read_to_string(path).map_err(|source| KeysError::Read { path: path.to_owned(), source })?;
        let sample = raw(SAMPLE, path)?;
        Ok(Self { keys: parse(&text, path, &sample)?, place: Some(path.to_owned()) })
    }

    /// The file they are from; none for the built-in ones.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// Whether a key is among them that everybody knows.
    pub(crate) fn has_sample(&self) -> bool {
        self.keys.iter().any(|key| key.is_sample)
    }

    /// Whether the file holds secrets and others than its owner may read it.
    pub(crate) fn is_open_to_others(&self) -> bool {
        let holds_secrets = self.keys.iter().any(|key| !key.is_sample);
        holds_secrets && self.place.as_deref().is_some_and(is_open_to_others)
    }

    /// What checks the signatures of this key.
    pub(crate) fn signer(&self, api_key: &str) -> Option<&Signer> {
        self.keys.iter().find(|key| key.api_key.expose_secret() == api_key).map(|key| &key.signer)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("keys", &self.keys.len()).field("place", &self.place).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    keys: Vec<Spanned<Written>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    api_key: SecretString,
    secret_key: SecretString,
}

fn raw(text: &str, path: &Path) -> Result<Vec<Spanned<Written>>, KeysError> {
    // The error's own `Display` quotes the line, which may hold a secret.
    toml::from_str::<File>(text)
        .map(|file| file.keys)
        .map_err(|e| content(text, path, e.span().map_or(0, |span| span.start), without_values(e.message())))
}

fn parse(text: &str, path: &Path, sample: &[Spanned<Written>]) -> Result<Vec<Key>, KeysError> {
    let written = raw(text, path)?;
    if written.is_empty() {
        let reason = "the file has no key; write one [[keys]] table with api_key and secret_key for each";
        return Err(content(text, path, 0, reason.to_owned()));
    }
    let mut keys: Vec<Key> = Vec::with_capacity(written.len());
    for table in written {
        let at = table.span().start;
        let wrong = |reason: &str| Err(content(text, path, at, reason.to_owned()));
        let Written { api_key, secret_key } = table.into_inner();
        let shown = api_key.expose_secret();
        if shown.is_empty() || !shown.bytes().all(|b| b.is_ascii_graphic()) {
            return wrong("api_key must be visible ASCII without spaces, at least one character: it is sent in a header");
        }
        if secret_key.expose_secret().is_empty() {
            return wrong("secret_key is empty; anybody could sign with it, so write a long random text");
        }
        if keys.iter().any(|key| key.api_key.expose_secret() == shown) {
            return wrong("another key of the file has this api_key; they are told apart by it");
        }
        let is_known = |known: &Spanned<Written>| {
            let known = known.get_ref();
            known.api_key.expose_secret() == shown || known.secret_key.expose_secret() == secret_key.expose_secret()
        };
        // Read as the sample itself, everything is one.
        let is_sample = sample.is_empty() || sample.iter().any(is_known);
        keys.push(Key { api_key, signer: Signer::new(secret_key), is_sample });
    }
    Ok(keys)
}

fn content(text: &str, path: &Path, at: usize, reason: String) -> KeysError {
    let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
    KeysError::Content { path: path.to_owned(), line, reason }
}

/// The parser's words without what it found.
fn without_values(message: &str) -> String {
    if let Some((_, allowed)) = message.strip_prefix("invalid type: ").and_then(|found| found.rsplit_once(", expected ")) {
        return format!("a wrong type; expected {allowed}");
    }
    if message.starts_with("unknown field `") || message.starts_with("missing field `") || message.starts_with("duplicate") {
        return message.trim_end().to_owned();
    }
    // Syntax: the parser's words name characters and structures, but may quote what it stopped at.
    let plain: String = message.lines().next().unwrap_or_default().split(['`', '"']).step_by(2).collect();
    format!("not valid TOML: {}", plain.trim())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn load(text: &str) -> Result<Keys, KeysError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Keys::load(file.path())
    }

    #[test]
    fn the_shipped_file_has_the_sample_keys_and_nothing_else() {
        for keys in [Keys::sample().unwrap(), load(SAMPLE).unwrap()] {
            assert!(keys.has_sample() && !keys.is_open_to_others());
            let signer = keys.signer("sample-key").unwrap();
            assert!(signer.verify("1", b"{}", &Signer::new("sample-secret".into()).sign("1", b"{}")));
            assert!(keys.signer("other").is_none());
        }
    }

    #[test]
    fn several_keys_have_a_secret_each_and_a_known_one_is_noticed() {
        let keys =
            load("[[keys]]\napi_key = \"a\"\nsecret_key = \"s\"\n[[keys]]\napi_key = \"b\"\nsecret_key = \"t\"\n").unwrap();
        assert!(!keys.has_sample());
        let signature = Signer::new("t".into()).sign("1", b"{}");
        assert!(keys.signer("b").unwrap().verify("1", b"{}", &signature));
        assert!(!keys.signer("a").unwrap().verify("1", b"{}", &signature));
        for half in ["api_key = \"sample-key\"\nsecret_key = \"s\"", "api_key = \"a\"\nsecret_key = \"sample-secret\""] {
            assert!(load(&format!("[[keys]]\n{half}\n")).unwrap().has_sample(), "{half}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_without_a_value() {
        for (text, line, reason) in [
            ("", 1, "no key"),
            ("[[keys]]\napi_key = \"canary\"\n", 1, "secret_key"),
            ("[[keys]]\napi_key = \"a\"\nsecret_key = \"canary\"\nname = \"canary\"\n", 4, "unknown field `name`"),
            ("[[keys]]\napi_key = \"a\"\nsecret_key = 4711\n", 3, "wrong type"),
            ("[[keys]]\napi_key = \"a\"\nsecret_key = \"canary\n", 3, "not valid TOML"),
            ("[[keys]]\napi_key = \"can ary\"\nsecret_key = \"canary\"\n", 1, "visible ASCII"),
            ("[[keys]]\napi_key = \"a\"\nsecret_key = \"\"\n", 1, "secret_key is empty"),
            (
                "[[keys]]\napi_key = \"a\"\nsecret_key = \"canary\"\n[[keys]]\napi_key = \"a\"\nsecret_key = \"t\"\n",
                4,
                "another key",
            ),
            ("[keys]\napi_key = \"a\"\n", 1, "wrong type"),
        ] {
            let error = load(text).unwrap_err();
            assert!(matches!(error, KeysError::Content { line: found, .. } if found == line), "{error}");
            let said = error.to_string();
            assert!(said.contains(reason) && !said.contains("canary") && !said.contains("4711"), "{said}");
        }
        let said = Keys::load(Path::new("/nowhere/keys.toml")).unwrap_err().to_string();
        assert!(said.contains("/nowhere/keys.toml") && said.contains("--keys"), "{said}");
    }

    #[test]
    fn real_keys_that_others_may_read_are_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[[keys]]\napi_key = \"a\"\nsecret_key = \"s\"\n").unwrap();
        for (mode, is_open) in [(0o600, false), (0o644, true)] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Keys::load(file.path()).unwrap().is_open_to_others(), is_open);
        }
        std::fs::write(file.path(), "[[keys]]\napi_key = \"canary-1\"\nsecret_key = \"canary-2\"\n").unwrap();
        assert!(!format!("{:?}", Keys::load(file.path()).unwrap()).contains("canary"));
    }
}
