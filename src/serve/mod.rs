//! The webhook as a program of its own: `POST …/api/webhook/consume` into a job store.
//!
//! `gate` checks what stands around a body, `body` looks into it, `writer` commits it, `webhook` ties them to the HTTP server. A
//! batch is stored once and whole, or refused with a reason and not at all. It knows no crawl.

mod body;
mod gate;
mod keys;
mod refusal;
mod webhook;
mod writer;

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::courier::{JobStore, StoreError};
use crate::http_server::{self, Bounds, ListenError};
use keys::{Keys, KeysError};
use webhook::Webhook;
use writer::Writer;

/// Where the keys are when nobody says so.
pub(crate) const KEYS_FILE: &str = "config/serve.toml";
/// Connections open at one time; each has at most one body.
const CONNECTIONS: usize = 128;
/// Largest bodies that are held at one time.
const BODIES: usize = 8;
/// Bytes of path and query.
const TARGET: usize = 8_192;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// How the webhook is set up.
#[derive(Debug, Clone)]
pub(crate) struct ServeOptions {
    /// Where to listen; port 0 takes any free one.
    pub(crate) listen: SocketAddr,
    /// The job store's file.
    pub(crate) db: PathBuf,
    /// The keys file; without one [`KEYS_FILE`] if it is there, else the sample keys.
    pub(crate) keys: Option<PathBuf>,
    /// Bytes of the largest body.
    pub(crate) max_body: usize,
    /// Finished jobs to keep at the start; 0 keeps all.
    pub(crate) keep: u64,
}

/// Why the webhook does not start or does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ServeError {
    /// The keys file.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// Everybody could deliver.
    #[error(
        "{addr} can be reached from other machines, and the sample keys are known to everybody; write keys of your own into {} \
         or another file (--keys FILE), or listen on 127.0.0.1", place.display()
    )]
    SampleKeys { addr: SocketAddr, place: PathBuf },
    /// The job store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system gives no thread.
    #[error("the thread that writes to the job store cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The line that tells the address could not be written.
    #[error("cannot write the address of the webhook to the output: {0}")]
    Output(#[source] std::io::Error),
    /// The thread that writes ended by itself.
    #[error("the thread that writes to the job store ended by itself; what was confirmed is stored")]
    Ended,
}

/// Takes batches until `until` is done, then ends what it has begun. The first line written to `out` is `listening on ` and the
/// address; it is flushed as soon as batches are taken. Must be called inside a tokio runtime.
///
/// # Errors
/// [`ServeError`]: keys, store or address cannot be used, or writing ends by itself.
pub(crate) async fn serve(
    options: ServeOptions,
    out: &mut impl Write,
    until: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let keys = keys(options.keys.as_deref())?;
    if keys.has_sample() && !options.listen.ip().to_canonical().is_loopback() {
        let place = keys.place().unwrap_or(Path::new(KEYS_FILE)).to_owned();
        return Err(ServeError::SampleKeys { addr: options.listen, place });
    }
    let store = JobStore::open(&options.db)?;
    store.survive_power_loss()?;
    prune(&store, options.keep)?;
    let (writer, mut thread) = Writer::start(store).map_err(ServeError::Thread)?;
    let webhook = Webhook { keys: Arc::new(keys), writer, now: || jiff::Timestamp::now().as_second() };
    let bounds = Bounds {
        connections: CONNECTIONS,
        target: TARGET,
        body: options.max_body,
        bodies: options.max_body.saturating_mul(BODIES),
        body_time: BODY_TIME,
    };
    let server = http_server::start(options.listen, bounds, Arc::new(webhook)).await?;
    let address = server.url();
    let told = writeln!(out, "listening on {}", address.as_str().trim_end_matches('/')).and_then(|()| out.flush());
    let ended = match told {
        Err(error) => Err(ServeError::Output(error)),
        Ok(()) => tokio::select! {
            () = until => Ok(()),
            () = thread.ended() => Err(ServeError::Ended),
        },
    };
    server.stop().await;
    // The last connection took the last writer with it: what is queued is written, then the thread ends.
    if !matches!(ended, Err(ServeError::Ended)) {
        thread.join().await;
    }
    ended
}

fn keys(given: Option<&Path>) -> Result<Keys, ServeError> {
    let default = Path::new(KEYS_FILE);
    let keys = match given {
        Some(path) => Keys::load(path)?,
        None if default.exists() => Keys::load(default)?,
        None => {
            tracing::warn!(
                target: "dragline::serve",
                "there is no {KEYS_FILE}: the sample keys count, which everybody knows (api_key \"sample-key\", secret_key \"sample-secret\")"
            );
            Keys::sample()?
        }
    };
    if keys.is_open_to_others() {
        let path = keys.place().unwrap_or(default).display();
        tracing::warn!(target: "dragline::serve", "{path} can be read by other users; run chmod 600 on it");
    }
    Ok(keys)
}

fn prune(store: &JobStore, keep: u64) -> Result<(), ServeError> {
    let pruned = store.prune(keep)?;
    if !pruned.is_empty() {
        let (jobs, bytes) = (pruned.len(), pruned.iter().map(|job| job.bytes).sum::<u64>());
        tracing::info!(target: "dragline::serve", "deleted {jobs} finished jobs beyond the newest {keep}: {bytes} bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
