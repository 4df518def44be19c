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
    /// Does it; answers what came of it, and what was done in words.
    pub(super) fn act(&self, deed: Deed, body: &[u8]) -> Result<(Value, String), Refusal> {
        let changed = |changed: bool, done: String, else_: &str| {
            (json!({ "changed": changed }), if changed { done } else { format!("{done}: {else_}") })
        };
        match deed {
            Deed::Pause => {
                let Pause { site, reason } = asked(body)?;
                let is_new = self.desk.with(|plane, now| plane.pause(&site, &reason, now))?;
                Ok(changed(is_new, format!("pause site {site}{}", because(&reason)), "it was paused"))
            }
            Deed::Resume => {
                let Resume { site } = asked(body)?;
                let is_new = self.desk.with(|plane, _| plane.resume(&site))?;
                Ok(changed(is_new, format!("resume site {site}"), "it was not paused"))
            }
            Deed::OpenBreaker => {
                let OpenBreaker { site, client, endpoint_group, duration_ms, reason } = asked(body)?;
                self.desk.with(|plane, now| plane.open_breaker(&site, &client, &endpoint_group, duration_ms, &reason, now))?;
                let until = duration_ms.map_or_else(|| "until it is closed".to_owned(), |ms| format!("for {ms} ms"));
                Ok((
                    json!({ "changed": true }),
                    format!("open the breaker of {site}/{client}/{endpoint_group} {until}{}", because(&reason)),
                ))
            }
            Deed::CloseBreaker => {
                let CloseBreaker { site, client, endpoint_group, reason } = asked(body)?;
                let is_new = self.desk.with(|plane, now| plane.close_breaker(&site, &client, &endpoint_group, &reason, now))?;
                let done = format!("close the breaker of {site}/{client}/{endpoint_group}{}", because(&reason));
                Ok(changed(is_new, done, "it was closed"))
            }
            Deed::Publish => {
                let Publish { group, key, format, content } = asked(body)?;
                let format = Format::of(&format)
                    .ok_or_else(|| Refusal::invalid_argument("format is json, yaml or text; the one given is none of them"))?;
                let name = ItemName { group: &group, key: &key };
                let version = self.desk.with(|plane, now| plane.publish(name, format, &content, now))?;
                Ok((json!({ "version": version }), format!("publish {group}/{key}, now version {version}")))
            }
            Deed::RollBack => {
                let RollBack { group, key, version } = asked(body)?;
                let name = ItemName { group: &group, key: &key };
                let published = self.desk.with(|plane, now| plane.config_center().roll_back(name, version, now))?;
                self.desk.wake(published.woken);
                let done = format!("roll {group}/{key} back to version {version}, now version {}", published.version);
                Ok((json!({ "version": published.version }), done))
            }
        }
    }

    /// What was leased and reported.
    pub(super) fn ledger(&self) -> Ledger {
        self.desk.with(|plane, _| plane.ledger())
    }
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// Unlike a node's message, a mistyped field is an error: who types is a person.
fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    read::message(body)
}
