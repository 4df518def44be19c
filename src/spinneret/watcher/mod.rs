//! Configuration that follows the server.

use std::time::Duration;

/// The watchers of a client.
#[derive(Debug, Default)]
pub(crate) struct Registry;

impl Registry {
    /// Stops all of them, at most this long.
    pub(crate) async fn stop_all(&self, _limit: Duration) {}
}
