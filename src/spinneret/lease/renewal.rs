//! Renews a lease until it is over: one task for each lease that asks for it.
//!
//! Runs on this machine's clock alone. Never renews more often than once a second, whatever the server answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use super::life::{Life, is_at_its_limit};
use crate::dice::Dice;
use crate::spinneret::backoff::Backoff;
use crate::spinneret::error::Error;

/// The shortest time between two renewals.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest rest after failures.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Without advice, a lease is renewed when a quarter of its time is left.
const WITHOUT_ADVICE: u32 = 4;

/// Renews until the lease is lost; its end aborts this.
pub(super) async fn keep(life: Arc<Life>, extend: Duration) {
    let mut backoff = Backoff::new(SHORTEST * 2, LONGEST_REST, Dice::new(getrandom::u64().unwrap_or_default()));
    let mut failures = 0;
    while let Some(ends) = life.ends() {
        let now = Instant::now();
        let before = match life.before() {
            Duration::ZERO => ends.saturating_duration_since(now) / WITHOUT_ADVICE,
            before => before,
        };
        if failures == 0 {
            let due = ends.checked_sub(before).unwrap_or(now);
            sleep_until(due.max(now + SHORTEST)).await;
        }
        match life.renew(extend).await {
            Ok(_) => failures = 0,
            Err(_) if life.is_lost() => return,
            Err(Error::ClientClosed(_) | Error::LeaseReleased(_)) => return,
            Err(error) if error.is_retry_later() && Instant::now() < ends => {
                let hint = error.retry_after().unwrap_or_default().min(LONGEST_REST);
                // The last try is made at the end: who works under a lost lease should know at once.
                let left = ends.saturating_duration_since(Instant::now());
                let wait = backoff.wait(failures).max(hint).min(left).max(SHORTEST);
                failures += 1;
                debug!(target: "spinneret.lease", lease_id = life.id(), %error, ?wait, "renewal failed and is tried again");
                sleep(wait).await;
            }
            Err(error) => {
                if is_at_its_limit(&error) {
                    debug!(target: "spinneret.lease", lease_id = life.id(), "lease has reached the end of its lifetime");
                } else {
                    warn!(target: "spinneret.lease", lease_id = life.id(), %error, "lease cannot be renewed");
                }
                sleep_until(ends).await;
                // By hand it may have been prolonged all the same.
                if life.ends().is_none_or(|ends| ends <= Instant::now()) {
                    life.lose(&error);
                    return;
                }
                failures = 0;
            }
        }
    }
}
