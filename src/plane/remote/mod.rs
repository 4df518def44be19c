//! A Spinneret server as the control plane of a crawl: [`spinneret::Client`](crate::spinneret::Client) behind [`ControlPlane`].
//!
//! Translates: asks and reports into calls, answers into grants, errors into refusals. Keeps no queue and no back-off: the
//! broker and the reporter have theirs. Never lets a lease go that it cannot hand on: it is given back.

mod anonymous;
mod faults;
mod feed;
mod leases;
mod lives;
mod reports;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::time::Instant;

use self::anonymous::Anonymous;
use self::faults::{lease_error, plane_error};
use self::feed::Feed;
use self::lives::Lives;
use super::grants::Grants;
use super::{Ask, ConfigFeed, ControlPlane, Grant, LeaseId, PlaneError, PlaneLedger, Refusal, Report, Taken};
use crate::spinneret::{Client, ConfigKey, Error, WatcherOptions};

/// Where this module logs.
const TARGET: &str = "dragline::plane";

/// The longest the server may wait for an identity (wire contract, 4.1).
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How the server is used.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// How long the server may wait for an identity, at most 5 s.
    pub wait: Duration,
    /// Keep snapshots of followed config items.
    pub snapshots: bool,
    /// Keep encrypted ones of items with secrets.
    pub cache_secrets: bool,
    /// Config groups whose items count as secret.
    pub secret_groups: Vec<String>,
    /// How long the server may hold a question for changes of followed config items, 1 ms to 60 s.
    pub watch_wait: Duration,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            wait: Duration::ZERO,
            snapshots: true,
            cache_secrets: false,
            secret_groups: Vec::new(),
            watch_wait: Duration::from_secs(30),
        }
    }
}

/// The control plane at a URL.
///
/// Acquiring is retried by the client's own policy, and so are releases and renewals; reports are sent once for each
/// [`ControlPlane::report`].
pub struct Remote {
    client: Client,
    options: RemoteOptions,
    grants: Grants,
    lives: Lives,
    anonymous: Anonymous,
    /// What a person was told of leases that cannot be used.
    told: Mutex<HashSet<String>>,
    /// What the ids of this plane's reports begin with: no other run has the same.
    run: String,
}

impl Remote {
    /// Uses this client, whose reporter is not used: a crawl has its own.
    #[must_use]
    pub fn new(client: Client, mut options: RemoteOptions) -> Self {
        options.wait = options.wait.min(LONGEST_WAIT);
        let run = run_name();
        Self {
            client,
            options,
            grants: Grants::new(),
            lives: Lives::default(),
            anonymous: Anonymous::new(&run),
            told: Mutex::default(),
            run,
        }
    }

    /// Ends every feed and every call, those under way too; there is no call afterwards. Waits 1 s at most for feeds to save
    /// what they have, and does not wait for calls: `limit` is for what else the client has to do, which is nothing where
    /// only a crawl uses it. Closing twice is fine.
    pub async fn close(&self, limit: Duration) {
        self.client.close_within(limit).await;
    }

    async fn start_feed(&self, keys: Vec<ConfigKey>) -> Result<Arc<dyn ConfigFeed>, PlaneError> {
        let RemoteOptions { snapshots, cache_secrets, secret_groups, watch_wait, .. } = &self.options;
        let mut options = WatcherOptions::new(keys).poll_timeout(*watch_wait);
        if !snapshots {
            options = options.without_snapshots();
        }
        if *cache_secrets {
            options = options.cache_secrets();
        }
        if !secret_groups.is_empty() {
            let groups = secret_groups.clone();
            options = options.treat_as_secret(move |item| groups.contains(&item.group));
        }
        let watcher = self.client.config_watcher(options).map_err(|error| plane_error(&error))?;
        watcher.start().await.map_err(|error| plane_error(&error))?;
        Ok(Arc::new(Feed::new(watcher)))
    }
}

impl ControlPlane for Remote {
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>> {
        Box::pin(self.acquire_one(ask))
    }

    fn acquire_batch(&self, ask: Ask, count: usize) -> BoxFuture<'_, Result<Vec<Grant>, Refusal>> {
        Box::pin(self.acquire_several(ask, count))
    }

    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<Taken, PlaneError>> {
        Box::pin(self.send_reports(reports))
    }

    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>> {
        Box::pin(async move {
            if Anonymous::owns(&lease) {
                return Ok(());
            }
            match self.client.release(&lease.0).await {
                // The answer says whether it was this call that ended it, which makes no difference.
                Ok(_) | Err(Error::LeaseReleased(_) | Error::LeaseExpired(_)) => {
                    self.lives.over(&lease);
                    Ok(())
                }
                Err(error) => {
                    if error.is_lease_gone() {
                        self.lives.over(&lease);
                    }
                    Err(lease_error(&error, &lease))
                }
            }
        })
    }

    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>> {
        Box::pin(async move {
            if Anonymous::owns(&lease) {
                return Ok(Instant::now() + anonymous::LIFE);
            }
            match self.client.renew(&lease.0, Duration::ZERO).await {
                Ok(answer) => Ok(self.lives.renewed(&lease, answer.expires_at, Timestamp::now(), Instant::now())),
                Err(error) => {
                    if error.is_lease_gone() {
                        self.lives.over(&lease);
                    }
                    Err(lease_error(&error, &lease))
                }
            }
        })
    }

    fn ledger(&self) -> Option<PlaneLedger> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn follow(&self, keys: Vec<ConfigKey>) -> BoxFuture<'_, Result<Arc<dyn ConfigFeed>, PlaneError>> {
        Box::pin(self.start_feed(keys))
    }

    fn secret(&self, path: String) -> BoxFuture<'_, Result<SecretString, PlaneError>> {
        Box::pin(async move {
            match self.client.get_secret(&path).await {
                Ok(secret) => Ok(secret.value.into()),
                Err(Error::NotFound(_)) => Err(PlaneError::NotFound(format!(
                    "the control plane keeps no secret {path}; look up its path, or let an operator create it"
                ))),
                Err(error) => Err(plane_error(&error)),
            }
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("client", &self.client).finish_non_exhaustive()
    }
}

/// 16 hexadecimal digits that no other run has.
fn run_name() -> String {
    let number = getrandom::u64().unwrap_or_else(|_| {
        // Without randomness: the moment, and who lives at it.
        let moment = Timestamp::now().as_nanosecond().unsigned_abs() as u64;
        moment.rotate_left(20) ^ u64::from(std::process::id())
    });
    format!("{number:016x}")
}
