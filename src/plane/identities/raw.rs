//! The identities file as it is written: keys and types, nothing else checked.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) sites: Vec<Spanned<Site>>,
    #[serde(default)]
    pub(super) proxies: Vec<Spanned<Proxy>>,
}

/// `[[sites]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Site {
    pub(super) name: String,
    #[serde(default)]
    pub(super) clients: Vec<String>,
    pub(super) concurrency: Option<u32>,
    pub(super) reuse_interval: Option<f64>,
    pub(super) reuse_anchor: Option<String>,
    pub(super) ttl: Option<f64>,
    pub(super) cooldown_429: Option<f64>,
    pub(super) cooldown_403: Option<f64>,
    pub(super) cooldown_proxy: Option<f64>,
    pub(super) sticky_ttl: Option<f64>,
    pub(super) proxy_pool: Option<String>,
    #[serde(default)]
    pub(super) groups: Vec<Spanned<Group>>,
    #[serde(default)]
    pub(super) identities: Vec<Spanned<Identity>>,
    #[serde(default)]
    pub(super) proxies: Vec<Spanned<Proxy>>,
}

/// `[[sites.groups]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) prefixes: Vec<String>,
}

/// `[[sites.identities]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    pub(super) name: String,
    #[serde(default)]
    pub(super) clients: Vec<String>,
    pub(super) concurrency: Option<u32>,
    pub(super) reuse_interval: Option<f64>,
    pub(super) proxy: Option<Secret>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Secret>,
    #[serde(default)]
    pub(super) cookies: BTreeMap<String, Secret>,
    #[serde(default)]
    pub(super) query: BTreeMap<String, Secret>,
    #[serde(default)]
    pub(super) json: serde_json::Map<String, serde_json::Value>,
}

/// `[[proxies]]` and `[[sites.proxies]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Proxy {
    pub(super) name: String,
    pub(super) url: Secret,
    pub(super) concurrency: Option<u32>,
}

/// A text that is never shown. A number or a truth value counts as its text: `pin = 1234` is what it looks like.
pub(super) struct Secret(pub(super) SecretString);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret(text.into()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Secret, E> {
                Ok(Secret(number.to_string().into()))
            }

            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Secret, E> {
                Ok(Secret(truth.to_string().into()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// What is wrong with the shape.
pub(super) struct Wrong {
    /// The byte it is at.
    pub(super) at: usize,
    pub(super) key: Option<String>,
    pub(super) reason: String,
}

/// Reads the text.
pub(super) fn read(text: &str) -> Result<File, Wrong> {
    // The error's own `Display` quotes the line, which may hold a secret.
    toml::from_str(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        Wrong { at, key: key_at(text, at), reason: without_values(e.message()) }
    })
}

/// The key of the line at `at`, if it is one of ours: any other text there may be part of a value.
fn key_at(text: &str, at: usize) -> Option<String> {
    const KEYS: [&str; 20] = [
        "name",
        "clients",
        "concurrency",
        "reuse_interval",
        "reuse_anchor",
        "ttl",
        "cooldown_429",
        "cooldown_403",
        "cooldown_proxy",
        "sticky_ttl",
        "proxy_pool",
        "groups",
        "identities",
        "proxies",
        "prefixes",
        "proxy",
        "headers",
        "cookies",
        "query",
        "json",
    ];
    let start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..)?.lines().next()?;
    let key = line.split_once('=')?.0.trim();
    KEYS.iter().chain(&["url", "sites"]).any(|known| *known == key).then(|| key.to_owned())
}

/// The parser's words without the value it found.
fn without_values(message: &str) -> String {
    for (start, kind) in [("invalid type: ", "a wrong type"), ("invalid value: ", "a value that is not allowed")] {
        if let Some(found) = message.strip_prefix(start) {
            let allowed = found.rsplit_once(", expected ").map_or("another", |(_, allowed)| allowed);
            return format!("{kind}; expected {allowed}");
        }
    }
    if message.starts_with("unknown field `") || message.starts_with("missing field `") || message.starts_with("duplicate") {
        return message.trim_end().to_owned();
    }
    // Syntax: the parser's words name characters and structures, but may quote what it stopped at.
    let plain: String = message.lines().next().unwrap_or_default().split(['`', '"']).step_by(2).collect();
    format!("not valid TOML: {}", plain.trim())
}
