//! Who may deliver batches: the `[[keys]]` of the file of `serve`.
//!
//! TOML, checked whole. Secrets go straight into redacting types; no message quotes a value, since any value may be one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::file::SAMPLE;
use crate::apcloudy::Signer;

/// Keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {reason}", path.display())]
pub(crate) struct KeysError {
    path: PathBuf,
    line: usize,
    reason: String,
}

/// The keys a webhook accepts.
pub(crate) struct Keys {
    keys: Vec<Key>,
}

struct Key {
    api_key: SecretString,
    signer: Signer,
    is_sample: bool,
}

/// The keys of now: another reading of the file replaces them.
#[derive(Debug)]
pub(crate) struct KeyRing(RwLock<Arc<Keys>>);

impl KeyRing {
    pub(crate) fn new(keys: Keys) -> Self {
        Self(RwLock::new(Arc::new(keys)))
    }

    pub(crate) fn current(&self) -> Arc<Keys> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, keys: Keys) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }
}

impl Keys {
    /// Reads the text of the file at `path`. It may have no key if it has a plane.
    ///
    /// # Errors
    /// When it says something that is not allowed.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, KeysError> {
        let sample = raw(SAMPLE, path)?.keys;
        Ok(Self { keys: parse(text, path, &sample)? })
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether a key is among them that everybody knows.
    pub(crate) fn has_sample(&self) -> bool {
        self.keys.iter().any(|key| key.is_sample)
    }

    /// What checks the signatures of this key.
    pub(crate) fn signer(&self, api_key: &str) -> Option<&Signer> {
        self.keys.iter().find(|key| key.api_key.expose_secret() == api_key).map(|key| &key.signer)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    keys: Vec<Spanned<Written>>,
    /// Somebody else's.
    plane: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    api_key: SecretString,
    secret_key: SecretString,
}

fn raw(text: &str, path: &Path) -> Result<File, KeysError> {
    // The error's own `Display` quotes the line, which may hold a secret.
    toml::from_str(text)
        .map_err(|e: toml::de::Error| content(text, path, e.span().map_or(0, |span| span.start), without_values(e.message())))
}

fn parse(text: &str, path: &Path, sample: &[Spanned<Written>]) -> Result<Vec<Key>, KeysError> {
    let File { keys: written, plane } = raw(text, path)?;
    if written.is_empty() && plane.is_none() {
        let reason = "the file has no key and no plane; write one [[keys]] table with api_key and secret_key for each who may \
                      deliver, or [plane] with tokens and sites";
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
        let is_sample = sample.iter().any(is_known);
        keys.push(Key { api_key, signer: Signer::new(secret_key), is_sample });
    }
    Ok(keys)
}

fn content(text: &str, path: &Path, at: usize, reason: String) -> KeysError {
    let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
    KeysError { path: path.to_owned(), line, reason }
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

    use super::*;

    fn load(text: &str) -> Result<Keys, KeysError> {
        Keys::parse(text, Path::new("keys.toml"))
    }

    #[test]
    fn the_shipped_file_has_the_sample_keys_and_nothing_else() {
        {
            let keys = load(SAMPLE).unwrap();
            assert!(keys.has_sample() && keys.len() == 1);
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
            assert!(error.line == line, "{error}");
            let said = error.to_string();
            assert!(said.contains(reason) && !said.contains("canary") && !said.contains("4711"), "{said}");
        }
    }

    #[test]
    fn a_plane_may_stand_beside_the_keys_and_alone_and_other_things_may_not() {
        let plane = "[[plane.sites]]\nname = \"canary\"\nwhatever = [1, { x = 2026-01-01 }]\n";
        assert_eq!(load(plane).unwrap().len(), 0);
        let keys = load(&format!("[[keys]]\napi_key = \"a\"\nsecret_key = \"s\"\n{plane}")).unwrap();
        assert!(keys.signer("a").is_some() && keys.signer("canary").is_none());
        let error = load("[[keys]]\napi_key = \"a\"\nsecret_key = \"s\"\n[plain]\n").unwrap_err().to_string();
        assert!(error.starts_with("keys.toml:4: unknown field `plain`") && error.contains("plane"), "{error}");
    }

    #[test]
    fn a_ring_gives_the_keys_of_now() {
        let one = |name: &str| load(&format!("[[keys]]\napi_key = \"{name}\"\nsecret_key = \"canary\"\n")).unwrap();
        let ring = KeyRing::new(one("a"));
        let before = ring.current();
        ring.replace(one("b"));
        assert!(before.signer("a").is_some() && ring.current().signer("a").is_none() && ring.current().signer("b").is_some());
        assert!(!format!("{ring:?} {before:?}").contains("canary"));
    }
}
