//! Config items followed in process: what the plane says now, and what changes.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::{lock, refusals};
use crate::plane::desk::{Desk, Looked};
use crate::plane::model::config_center::{self, ItemName, WatchedItem};
use crate::plane::model::token::Token;
use crate::plane::{ConfigFeed, Configured, PlaneError};
use crate::spinneret::{ConfigItem, ConfigKey};

/// When to look again after a look that failed.
const AGAIN: Duration = Duration::from_secs(1);
/// The shortest wait for what time brings.
const SHORTEST: Duration = Duration::from_millis(10);

/// Followed items.
pub(super) struct Feed {
    desk: Arc<Desk>,
    token: Arc<Token>,
    told: Mutex<Told>,
}

/// What was told so far.
struct Told {
    /// The version of each item that was told last; 0 for none.
    versions: BTreeMap<ConfigKey, i32>,
    /// Changes that nobody has heard of yet.
    waiting: VecDeque<ConfigItem>,
}

impl Feed {
    /// Begins to follow: what is there now counts as told.
    pub(super) fn begin(desk: Arc<Desk>, token: Arc<Token>, keys: Vec<ConfigKey>) -> Result<Self, PlaneError> {
        let versions = {
            let names: Vec<_> = keys.iter().map(|ConfigKey { group, key }| ItemName { group, key }).collect();
            let batch = desk.with(|plane, _| plane.config_center().batch(&token.scopes, "", &names).map(|batch| batch.items));
            batch.map_err(refusals::failed)?.into_iter().map(|item| (ConfigKey::new(&*item.group, &*item.key), item.version))
        };
        let known: BTreeMap<ConfigKey, i32> = versions.collect();
        let versions = keys.into_iter().map(|key| (key.clone(), known.get(&key).copied().unwrap_or(0))).collect();
        Ok(Self { desk, token, told: Mutex::new(Told { versions, waiting: VecDeque::new() }) })
    }

    async fn next(&self) -> Configured {
        loop {
            if let Some(item) = lock(&self.told).waiting.pop_front() {
                return Configured { item, from_snapshot: false };
            }
            let held: Vec<(ConfigKey, i32)> =
                lock(&self.told).versions.iter().map(|(key, version)| (key.clone(), *version)).collect();
            let watched: Vec<_> = held
                .iter()
                .map(|(ConfigKey { group, key }, version)| WatchedItem { name: ItemName { group, key }, version: *version })
                .collect();
            // Breakers move with time, and time moves nothing here by itself.
            let due = self.desk.with(|plane, now| {
                plane.tick(now);
                plane.next_due().map(|due| Duration::from_millis(due.saturating_sub(now)).max(SHORTEST))
            });
            match self.desk.look(&self.token.scopes, &watched) {
                Ok(Looked::Changed(items)) => self.tell(&items),
                Ok(Looked::Waits(mut watch)) => match due {
                    // Whoever comes first: the next look sees what it was.
                    Some(due) => drop(tokio::time::timeout(due, watch.woken()).await),
                    None => watch.woken().await,
                },
                Err(refusal) => {
                    tracing::warn!(error = %refusal, "followed config items cannot be read");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    fn tell(&self, items: &[config_center::ConfigItem]) {
        let mut told = lock(&self.told);
        for item in items {
            // Another look may have found it too.
            if let Some(version) = told.versions.get_mut(&ConfigKey::new(&*item.group, &*item.key))
                && *version < item.version
            {
                *version = item.version;
                told.waiting.push_back(item.on_the_wire());
            }
        }
    }
}

impl ConfigFeed for Feed {
    fn get(&self, key: &ConfigKey) -> Option<Configured> {
        let name = ItemName { group: &key.group, key: &key.key };
        let found = self.desk.with(|plane, _| plane.config_center().get(&self.token.scopes, "", name));
        found.ok().map(|item| Configured { item: item.on_the_wire(), from_snapshot: false })
    }

    fn changed(&self) -> BoxFuture<'_, Option<Configured>> {
        Box::pin(async move { Some(self.next().await) })
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("items", &lock(&self.told).versions.len()).finish_non_exhaustive()
    }
}
