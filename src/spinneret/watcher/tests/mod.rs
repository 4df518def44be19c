#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod disk;
mod ending;
mod listening;
mod loading;
mod polling;

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::spinneret::procedure::Procedure;
use crate::spinneret::retry::{RetryPolicy, Timeouts};
use crate::spinneret::testing::{Logs, Script, Seen, Step};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// `g/a`, `g/b` and so on.
fn key(name: &str) -> ConfigKey {
    let (group, key) = name.split_once('/').unwrap();
    ConfigKey { group: group.to_owned(), key: key.to_owned() }
}

fn keys(names: &[&str]) -> WatcherOptions {
    WatcherOptions::new(names.iter().map(|name| key(name)))
}

/// An item as the server writes it.
fn item(name: &str, version: i32, content: &str) -> Value {
    let key = key(name);
    json!({
        "namespace": "prod", "group": key.group, "key": key.key, "format": "text", "version": version,
        "content": content, "updated_at": "2026-09-16T08:30:00Z", "has_secret_refs": false
    })
}

fn secret(name: &str, version: i32, content: &str) -> Value {
    let mut item = item(name, version, content);
    item["has_secret_refs"] = json!(true);
    item
}

fn items(items: &[Value]) -> Step {
    Step::Answer(json!({ "items": items }))
}

fn after(wait: Duration, step: Step) -> Step {
    Step::After(wait, Box::new(step))
}

fn refuse(status: u16, code: &'static str, reason: &'static str) -> Step {
    Step::Refuse { status, code, reason, hint: None }
}

fn unavailable() -> Step {
    refuse(503, "unavailable", "internal")
}

fn forbidden() -> Step {
    refuse(403, "permission_denied", "scope_missing")
}

/// A server and what a client has of it. A call is made once, so that scripts say what they mean.
struct Rig {
    script: Arc<Script>,
    wire: Arc<Wire>,
    registry: Registry,
}

impl Rig {
    fn new() -> Self {
        let script = Script::new();
        let timeouts = Timeouts { read: secs(100), ..Timeouts::default() };
        let wire = Arc::new(Wire::new(Arc::clone(&script) as _, timeouts, RetryPolicy::NO_RETRY));
        Self { script, wire, registry: Registry::default() }
    }

    fn make(&self, options: WatcherOptions, dir: Option<&Path>) -> Result<ConfigWatcher> {
        let context = WatcherContext {
            wire: Arc::clone(&self.wire),
            registry: self.registry.clone(),
            default_cache_dir: dir.map(Path::to_owned),
            host: "spinneret.test:8080".to_owned(),
            token: SecretString::from("c4n4ry-token"),
        };
        ConfigWatcher::new(context, options)
    }

    fn watcher(&self, options: WatcherOptions) -> ConfigWatcher {
        self.make(options, None).unwrap()
    }

    /// The next load is answered with these.
    fn load(&self, loaded: &[Value]) -> &Self {
        self.script.next(Procedure::BatchGetConfig, items(loaded));
        self
    }

    /// The next poll is answered so.
    fn poll(&self, step: Step) -> &Self {
        self.script.next(Procedure::WatchConfig, step);
        self
    }

    fn calls(&self, procedure: Procedure) -> Vec<Seen> {
        self.script.seen().into_iter().filter(|seen| seen.procedure == procedure).collect()
    }

    fn polls(&self) -> Vec<Seen> {
        self.calls(Procedure::WatchConfig)
    }

    fn loads(&self) -> Vec<Seen> {
        self.calls(Procedure::BatchGetConfig)
    }

    /// The versions a poll was made with.
    fn versions(&self, poll: usize) -> Vec<i64> {
        let list = self.polls()[poll].body["items"].as_array().unwrap().clone();
        list.iter().map(|item| item["version"].as_i64().unwrap_or_default()).collect()
    }

    /// The times between the starts of polls.
    fn gaps(&self) -> Vec<Duration> {
        self.polls().windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    }
}

/// What listeners heard, as `g/a@1=content`.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, item: &ConfigItem) {
        self.say(format!("{}/{}@{}={}", item.group, item.key, item.version, item.content));
    }

    fn say(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn listener(&self) -> impl Fn(&ConfigItem) + Send + Sync + 'static {
        let heard = self.clone();
        move |item| heard.note(item)
    }
}
