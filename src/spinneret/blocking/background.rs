//! The runtime of a client, with its thread, and who may wait for it.
//!
//! Never waits inside another runtime, and never after a fork.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

use crate::spinneret::error::Error;
use crate::spinneret::{Client, Result};

/// The longest that the last handle waits for reports, as it goes.
const LAST: Duration = Duration::from_secs(2);

/// The async client with the runtime it lives on. Whoever holds one keeps both alive; the last one closes the client.
pub(super) struct Background {
    /// There until the end.
    live: Option<Live>,
    /// The process that has the runtime's thread.
    process: u32,
    /// How long the last handle waits for reports when it goes.
    limit: Duration,
}

struct Live {
    client: Client,
    runtime: Runtime,
}

impl Background {
    pub(super) fn new(make: impl FnOnce() -> Result<Client>) -> Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("spinneret").enable_all().build();
        let runtime = runtime
            .map_err(|error| Error::configuration(format!("the thread of the client cannot be started ({error}); free some")))?;
        let made = {
            let _inside = runtime.enter();
            make()
        };
        match made {
            Ok(client) => {
                let limit = LAST.min(client.reporter().close_timeout());
                Ok(Arc::new(Self { live: Some(Live { client, runtime }), process: std::process::id(), limit }))
            }
            Err(error) => {
                // Dropping it would wait, and that is not allowed everywhere.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.live().client
    }

    /// Waits for a call on this thread.
    pub(super) fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.wait_for(future)?
    }

    /// Waits for anything.
    pub(super) fn wait_for<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let runtime = self.runtime()?;
        match Place::here() {
            Place::Plain => Ok(runtime.block_on(future)),
            Place::Inside => Err(Error::configuration(
                "a blocking call was made inside a tokio runtime, whose thread it would hold; \
                 use dragline::spinneret::Client there, or make the call on a thread of std::thread",
            )),
            Place::Ending => Err(ending()),
        }
    }

    /// Lets what is called now start its tasks on this client's runtime.
    pub(super) fn enter(&self) -> Result<EnterGuard<'_>> {
        let runtime = self.runtime()?;
        if Place::here() == Place::Ending { Err(ending()) } else { Ok(runtime.enter()) }
    }

    fn runtime(&self) -> Result<&Runtime> {
        if self.is_at_home() {
            return Ok(&self.live().runtime);
        }
        Err(Error::configuration("the client was made before the process forked; make one in each process, after the fork"))
    }

    #[allow(clippy::expect_used, reason = "only Drop takes it out")]
    const fn live(&self) -> &Live {
        self.live.as_ref().expect("a client is there until it is dropped")
    }

    /// Drops what belongs to this client, so that its tasks are started on this client's runtime.
    pub(super) fn let_go<T: Send + 'static>(self: &Arc<Self>, value: T) {
        if !self.is_at_home() {
            // The parent has it too, and lets it go.
            return std::mem::forget(value);
        }
        let inside = |background: &Self, value: T| {
            let _inside = background.enter();
            drop(value);
        };
        if Place::here() != Place::Ending {
            return inside(self, value);
        }
        let background = Arc::clone(self);
        if let Some(value) = on_a_thread(value, move |value| inside(&background, value)) {
            std::mem::forget(value);
        }
    }

    /// Whether this is the process in which the client was made.
    fn is_at_home(&self) -> bool {
        self.process == std::process::id()
    }

    /// A client as a child of the process sees it.
    #[cfg(test)]
    pub(super) fn in_child(client: Client) -> Arc<Self> {
        let mut background = Arc::into_inner(Self::new(|| Ok(client)).unwrap_or_else(|error| panic!("{error}")))
            .unwrap_or_else(|| panic!("nobody else has it"));
        background.process = 0;
        Arc::new(background)
    }
}

/// Where a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On a thread that may wait.
    Plain,
    /// In a runtime.
    Inside,
    /// On a thread that ends, and drops what was local to it.
    Ending,
}

impl Place {
    fn here() -> Self {
        match Handle::try_current() {
            Ok(_) => Self::Inside,
            Err(error) if error.is_missing_context() => Self::Plain,
            Err(_) => Self::Ending,
        }
    }
}

fn ending() -> Error {
    Error::configuration("a call was made while its thread ended; make it before, not in what is dropped with the thread")
}

/// Does something on a thread of its own; gives the value back if there can be none.
fn on_a_thread<T: Send + 'static>(value: T, work: impl FnOnce(T) + Send + 'static) -> Option<T> {
    let take = |shared: &Mutex<Option<T>>| shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let shared = Arc::new(Mutex::new(Some(value)));
    let theirs = Arc::clone(&shared);
    let spawned = std::thread::Builder::new().name("spinneret-end".to_owned()).spawn(move || take(&theirs).map(work));
    let error = spawned.err()?;
    tracing::warn!(target: "spinneret", %error, "no thread could be started to end something: reports may be lost");
    take(&shared)
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some(live) = self.live.take() else { return };
        if !self.is_at_home() {
            // Its thread is in another process; whatever ends it would wait for that thread.
            return std::mem::forget(live);
        }
        let limit = self.limit;
        let end = move |Live { client, runtime }: Live| {
            runtime.block_on(client.close_within(limit));
            runtime.shutdown_background();
        };
        if Place::here() == Place::Plain {
            return end(live);
        }
        // Waiting is not possible here.
        if let Some(Live { runtime, .. }) = on_a_thread(live, end) {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client().fmt(f)
    }
}
