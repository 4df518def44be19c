//! What is done by hand from the same machine: pause a site, open a breaker, publish an item; and the ledger to look at.
//!
//! No token is asked for: who can open a socket on this machine can do it. [`Route::check`](super::route::Route::check) keeps
//! everybody else out.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Face, read};
use crate::plane::model::Ms;
use crate::plane::model::authority::Ledger;
use crate::plane::model::config_center::{Format, ItemName};
use crate::plane::model::refusal::Refusal;

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Pause,
    Resume,
    OpenBreaker,
    CloseBreaker,
    Publish,
    RollBack,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    site: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    site: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenBreaker {
    site: String,
    client: String,
    endpoint_group: String,
    /// Without it until it is closed by hand.
    duration_ms: Option<Ms>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CloseBreaker {
    site: String,
    client: String,
    endpoint_group: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publish {
    group: String,
    key: String,
    format: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RollBack {
    group: String,
    key: String,
    version: i32,
}

impl Deed {
    /// The one at this path below `/plane/`.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path.split_once('/').filter(|(_, rest)| !rest.is_empty()).unwrap_or((path, "")) {
            ("pause", "") => Some(Self::Pause),
            ("resume", "") => Some(Self::Resume),
            ("breaker", "open") => Some(Self::OpenBreaker),
            ("breaker", "close") => Some(Self::CloseBreaker),
            ("config", "publish") => Some(Self::Publish),
            ("config", "roll_back") => Some(Self::RollBack),
            _ => None,
        }
    }
}

impl Face {
    /// Does it; answers what came of it.
    pub(super) fn act(&self, deed: Deed, body: &[u8]) -> Result<Value, Refusal> {
        match deed {
            Deed::Pause => {
                let Pause { site, reason } = asked(body)?;
                let changed = self.desk.with(|plane, now| plane.pause(&site, &reason, now))?;
                Ok(json!({ "changed": changed }))
            }
            Deed::Resume => {
                let Resume { site } = asked(body)?;
                let changed = self.desk.with(|plane, _| plane.resume(&site))?;
                Ok(json!({ "changed": changed }))
            }
            Deed::OpenBreaker => {
                let OpenBreaker { site, client, endpoint_group, duration_ms, reason } = asked(body)?;
                self.desk.with(|plane, now| plane.open_breaker(&site, &client, &endpoint_group, duration_ms, &reason, now))?;
                Ok(json!({ "changed": true }))
            }
            Deed::CloseBreaker => {
                let CloseBreaker { site, client, endpoint_group, reason } = asked(body)?;
                let changed = self.desk.with(|plane, now| plane.close_breaker(&site, &client, &endpoint_group, &reason, now))?;
                Ok(json!({ "changed": changed }))
            }
            Deed::Publish => {
                let Publish { group, key, format, content } = asked(body)?;
                let format = Format::of(&format)
                    .ok_or_else(|| Refusal::invalid_argument("format is json, yaml or text; the one given is none of them"))?;
                let name = ItemName { group: &group, key: &key };
                let version = self.desk.with(|plane, now| plane.publish(name, format, &content, now))?;
                Ok(json!({ "version": version }))
            }
            Deed::RollBack => {
                let RollBack { group, key, version } = asked(body)?;
                let name = ItemName { group: &group, key: &key };
                let published = self.desk.with(|plane, now| plane.config_center().roll_back(name, version, now))?;
                self.desk.wake(published.woken);
                Ok(json!({ "version": published.version }))
            }
        }
    }

    /// What was leased and reported.
    pub(super) fn ledger(&self) -> Ledger {
        self.desk.with(|plane, _| plane.ledger())
    }
}

/// Unlike a node's message, a mistyped field is an error: who types is a person.
fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    read::message(body)
}
