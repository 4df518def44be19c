//! Secrets: single values the server keeps for its nodes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bounds::{self, Broken};
use super::{timestamp, tolerant};
use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};

/// Asks for a secret. Made of its path, or of a pair of path and version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GetSecretRequest {
    /// The path, 1 to 256 characters of `a-z 0-9 _ . / -`, beginning with a letter or digit.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub path: String,
    /// The version; 0 means the current one.
    #[serde(deserialize_with = "tolerant::integer")]
    pub version: i32,
}

impl GetSecretRequest {
    /// Asks for the current version of this secret.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), version: 0 }
    }

    /// Asks for this version.
    #[must_use]
    pub const fn version(mut self, version: i32) -> Self {
        self.version = version;
        self
    }
}

impl From<&str> for GetSecretRequest {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<String> for GetSecretRequest {
    fn from(path: String) -> Self {
        Self::new(path)
    }
}

impl From<&String> for GetSecretRequest {
    fn from(path: &String) -> Self {
        Self::new(path)
    }
}

impl<P: Into<String>> From<(P, i32)> for GetSecretRequest {
    fn from((path, version): (P, i32)) -> Self {
        Self::new(path).version(version)
    }
}

/// A secret. `Debug` does not show the value.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// The path.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub path: String,
    /// The version.
    #[serde(deserialize_with = "tolerant::integer")]
    pub version: i32,
    /// The value.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub value: String,
    /// When it ends; an expired one is still delivered.
    #[serde(serialize_with = "timestamp::write_optional", deserialize_with = "timestamp::read_optional")]
    pub expires_at: Option<Timestamp>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("path", &self.path)
            .field("version", &self.version)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl Rpc for GetSecretRequest {
    type Answer = Secret;
    const PROCEDURE: Procedure = Procedure::GetSecret;

    fn validate(&self) -> Result<()> {
        bounds::text("path", &self.path, 1..=256)?;
        check_path(&self.path)?;
        Ok(bounds::number("version", self.version, 0..=i32::MAX)?)
    }
}

fn check_path(path: &str) -> Result<(), Broken> {
    let is_first = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    bounds::alphabet("path", path, |c| is_first(c) || "_./-".contains(c), "a-z 0-9 _ . / -")?;
    match path.chars().next().filter(|first| !is_first(*first)) {
        None => Ok(()),
        Some(first) => Err(Broken::new(format!("path begins with {first:?}, allowed are a-z 0-9 there"))),
    }
}
