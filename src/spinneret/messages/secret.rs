//! Secrets: single values the server keeps for its nodes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};

/// Asks for a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GetSecretRequest {
    /// The path, 1 to 256 characters of `a-z 0-9 _ . / -`, beginning with a letter or digit.
    pub path: String,
    /// The version; 0 means the current one.
    pub version: i32,
}

/// A secret. `Debug` does not show the value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// The path.
    pub path: String,
    /// The version.
    pub version: i32,
    /// The value.
    pub value: String,
    /// When it ends; an expired one is still delivered.
    pub expires_at: Option<Timestamp>,
}

impl Rpc for GetSecretRequest {
    type Answer = Secret;
    const PROCEDURE: Procedure = Procedure::GetSecret;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}
