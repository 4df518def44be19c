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
    pub(super) client: Client,
    /// There until the end.
    runtime: Option<Runtime>,
    /// The process that has the runtime's thread.
    process: u32,
    /// How long the last handle waits for reports when it goes.
    limit: Duration,
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
                Ok(Arc::new(Self { client, runtime: Some(runtime), process: std::process::id(), limit }))
            }
            Err(error) => {
                // Dropping it would wait, and that is not allowed everywhere.
                runtime.shutdown_background();
                Err(error)
            }
        }
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
        let runtime = self.runtime.as_ref().filter(|_| self.is_at_home());
        runtime.ok_or_else(|| {
            Error::configuration("the client was made before the process forked; make one in each process, after the fork")
        })
    }

    /// Whether this is the process in which the client was made.
    pub(super) fn is_at_home(&self) -> bool {
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

impl Drop for Background {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if !self.is_at_home() {
            // Its thread is in another process; whatever ends it would wait for that thread.
            std::mem::forget(runtime);
            return;
        }
        let (client, limit) = (self.client.clone(), self.limit);
        let end = move |runtime: Runtime| {
            runtime.block_on(client.close_within(limit));
            runtime.shutdown_background();
        };
        if Place::here() == Place::Plain {
            return end(runtime);
        }
        // Waiting is not possible here; a thread of its own does it. Shared, because a runtime must not be dropped here.
        let shared = Arc::new(Mutex::new(Some(runtime)));
        let take = |shared: &Mutex<Option<Runtime>>| shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let theirs = Arc::clone(&shared);
        let spawned = std::thread::Builder::new().name("spinneret-end".to_owned()).spawn(move || take(&theirs).map(end));
        if let Err(error) = spawned
            && let Some(runtime) = take(&shared)
        {
            tracing::warn!(target: "spinneret", %error, "no thread could be started to close the client: reports may be lost");
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
