//! The task of a watcher: asks the server again and again what changed.
//!
//! Ends when the watcher is stopped, when its last handle is gone or when the client is closed.

use tokio::time::{Instant, sleep, sleep_until};

use super::TARGET;
use super::core::{Core, Phase, Running};
use super::pacing::{Pace, is_cancelled};
use super::state::Origin;
use crate::spinneret::error::Error;

/// Loads, unless that is done, and polls from then on.
pub(super) async fn run(running: Running) {
    let core = &running.0;
    let mut pace = core.pace();
    // Whoever starts the watcher tells the first items; the task's are told after those.
    let Some(turn) = core.unless_stopped(core.starting.lock()).await else { return };
    while !core.state().is_loaded() {
        let Err(error) = core.load().await else { break };
        if is_over(&running, &error) {
            return;
        }
        let pause = pace.after_failure(&error);
        log(core, &error, "loading", pause);
        if core.unless_stopped(sleep(pause)).await.is_none() {
            return;
        }
    }
    core.tell().await;
    drop(turn);
    while core.phase() != Phase::Stopped {
        let next = poll(&running, &mut pace).await;
        let Some(next) = next else { return };
        if core.unless_stopped(sleep_until(next)).await.is_none() {
            return;
        }
    }
}

/// Asks once; when to ask again, or `None` when that is over.
async fn poll(running: &Running, pace: &mut Pace) -> Option<Instant> {
    let core = &running.0;
    let began = Instant::now();
    let request = core.poll_request();
    match core.unless_stopped(core.wire.call_once(&request)).await? {
        Ok(answer) => {
            let took = began.elapsed();
            core.answers();
            let is_progress = core.absorb(answer.items, Origin::Server);
            core.tell().await;
            Some(began + pace.after_answer(took, is_progress))
        }
        Err(error) if is_over(running, &error) => None,
        Err(error) => {
            let pause = pace.after_failure(&error);
            log(core, &error, "polling", pause);
            Some(Instant::now() + pause)
        }
    }
}

/// Whether there is nothing more to be had: the watcher is stopped, or the client is closed.
fn is_over(running: &Running, error: &Error) -> bool {
    if running.0.phase() == Phase::Stopped {
        return true;
    }
    let is_closed = error.reason() == "client_closed";
    if is_closed {
        tracing::info!(target: TARGET, "the client is closed: the configuration watcher ends");
    }
    is_closed
}

fn log(core: &Core, error: &Error, doing: &str, pause: std::time::Duration) {
    if is_cancelled(error) {
        tracing::debug!(target: TARGET, %error, ?pause, "{doing} was cancelled: the server drains; asking again");
        return;
    }
    let items = core.state().names();
    if !core.fails(error) {
        tracing::debug!(target: TARGET, %error, %items, ?pause, "{doing} the configuration failed again");
    } else if error.is_retry_later() {
        tracing::warn!(target: TARGET, %error, %items, "{doing} the configuration failed; what is known stays, and the server is asked again");
    } else {
        tracing::error!(target: TARGET, %error, %items, "{doing} the configuration failed; what is known stays, and the server is asked again");
    }
}
