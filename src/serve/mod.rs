//! The program of `dragline serve`: a webhook into a job store, and a control plane, at one address.
//!
//! `gate` checks what stands around a batch, `body` looks into it, `writer` commits it, `webhook` ties them to the HTTP server: a
//! batch is stored once and whole, or refused with a reason and not at all. The plane is `plane::face`; `file` reads what both
//! are made of, `reload` reads it again. It knows no crawl.

mod announce;
mod body;
mod descriptors;
mod file;
mod gate;
mod keys;
mod refusal;
mod reload;
#[cfg(test)]
mod tests;
mod webhook;
mod writer;

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::file::{DEFAULT, FileError, ServeFile};
use self::keys::KeyRing;
use self::reload::{Reloader, mark, warn_of_readers};
use self::webhook::Webhook;
use self::writer::Writer;
use crate::courier::{JobStore, StoreError};
use crate::dice::Dice;
use crate::http_server::{self, Bounds, ListenError, Patience, WhenFull};
use crate::plane::face::{Clock, Face, FaceOptions, LARGEST_BODY, Mounted};
use crate::plane::model::Plane;
use crate::plane::model::authority::BuildError;

/// Largest bodies that are held at one time.
const BODIES: usize = 8;
/// Bytes of path and query.
const TARGET: usize = 8_192;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// How it is set up.
#[derive(Debug, Clone)]
pub(crate) struct ServeOptions {
    /// Where to listen; port 0 takes any free one.
    pub(crate) listen: SocketAddr,
    /// The job store's file.
    pub(crate) db: PathBuf,
    /// The file with keys and plane; without one `config/serve.toml` if it is there, else what is shipped as that.
    pub(crate) file: Option<PathBuf>,
    /// Bytes of the largest batch.
    pub(crate) max_body: usize,
    /// Connections open at one time; who comes when all of them are answered is told to come again.
    pub(crate) connections: usize,
    /// Finished jobs to keep at the start; 0 keeps all.
    pub(crate) keep: u64,
}

/// Why it does not start or does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ServeError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// What the file says of the plane.
    #[error("{}: {source}", place.display())]
    Plane { place: PathBuf, source: Box<BuildError> },
    /// Everybody could deliver, or take leases.
    #[error(
        "{addr} can be reached from other machines, and {what} are known to everybody; write your own into {} or another file \
         (--file FILE), or listen on 127.0.0.1", place.display()
    )]
    Samples { addr: SocketAddr, what: &'static str, place: PathBuf },
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
    #[error("cannot write the address to the output: {0}")]
    Output(#[source] std::io::Error),
    /// The thread that writes ended by itself.
    #[error("the thread that writes to the job store ended by itself; what was confirmed is stored")]
    Ended,
}

/// Serves until `until` is done, then ends what it has begun: watches and waiting acquires are cut short, everything else is
/// answered. The first line written to `out` is `listening on ` and the address; it is flushed as soon as calls are taken. Must be
/// called inside a tokio runtime.
///
/// # Errors
/// [`ServeError`]: file, store or address cannot be used, or writing ends by itself.
pub(crate) async fn serve(
    options: ServeOptions,
    out: &mut impl Write,
    until: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let ServeOptions { listen, db, file, max_body, connections, keep } = options;
    let path = file.clone().unwrap_or_else(|| DEFAULT.into());
    let first = mark(&path);
    let file = read(file.as_deref())?;
    let is_reachable = !listen.ip().to_canonical().is_loopback();
    if let Some(what) = file.samples().filter(|_| is_reachable) {
        return Err(ServeError::Samples { addr: listen, what, place: path });
    }
    let (census, place) = (file.census(), file.place().map(Path::to_owned));
    let ServeFile { keys, mut seed, .. } = file;
    let files = std::mem::take(&mut seed.files);
    let (clock, mut dice) = (Clock::default(), Dice::new(getrandom::u64().unwrap_or_default()));
    let options = FaceOptions { seed: dice.roll(), clock: clock.clone(), ..FaceOptions::default() };
    let plane = Plane::new(seed, (clock.0)(), dice)
        .map_err(|source| ServeError::Plane { place: path.clone(), source: Box::new(source) })?;
    let store = JobStore::open(&db)?;
    store.survive_power_loss()?;
    prune(&store, keep)?;
    let (writer, mut thread) = Writer::start(store).map_err(ServeError::Thread)?;
    let keys = Arc::new(KeyRing::new(keys));
    let face = Arc::new(Face::new(plane, options));
    let webhook = Webhook { keys: Arc::clone(&keys), writer, now: || jiff::Timestamp::now().as_second() };
    let mounted = Mounted { face: Arc::clone(&face), rest: webhook, rest_body: max_body };
    let server = http_server::start_with(listen, bounds(connections, max_body), PATIENCE, Arc::new(mounted)).await?;
    let address = server.url();
    let told = writeln!(out, "listening on {}", address.as_str().trim_end_matches('/')).and_then(|()| out.flush());
    for line in announce::lines(&address, &db, place.as_deref(), &census) {
        tracing::info!(target: "dragline::serve", "{line}");
    }
    let time = tokio::spawn(Arc::clone(&face).keep_time());
    let reloader = Reloader::new(path, first, (census, files), is_reachable, keys, Arc::clone(&face));
    let reloading = tokio::spawn(reloader.run());
    let ended = match told {
        Err(error) => Err(ServeError::Output(error)),
        Ok(()) => tokio::select! {
            () = until => Ok(()),
            () = thread.ended() => Err(ServeError::Ended),
        },
    };
    reloading.abort();
    face.shut_down();
    server.stop().await;
    // It ends with the waiting.
    let _ = time.await;
    // The last connection took the last writer with it: what is queued is written, then the thread ends.
    if !matches!(ended, Err(ServeError::Ended)) {
        thread.join().await;
    }
    ended
}

/// Long calls hold many connections; one that asks for nothing gives way.
const PATIENCE: Patience =
    Patience { head_time: Duration::from_secs(10), idle_time: Duration::from_secs(120), when_full: WhenFull::MakeRoom };

fn bounds(connections: usize, max_body: usize) -> Bounds {
    let body = max_body.max(LARGEST_BODY);
    let enough = descriptors::enough_for(connections);
    if enough < connections {
        tracing::warn!(
            target: "dragline::serve",
            "the system gives this process files for {enough} connections, not for {connections}; raise the limit (ulimit -n) for more"
        );
    }
    Bounds { connections: enough, target: TARGET, body, bodies: body.saturating_mul(BODIES), body_time: BODY_TIME }
}

fn read(given: Option<&Path>) -> Result<ServeFile, FileError> {
    let file = match given {
        Some(path) => ServeFile::load(path)?,
        None if Path::new(DEFAULT).exists() => ServeFile::load(Path::new(DEFAULT))?,
        None => {
            tracing::warn!(
                target: "dragline::serve",
                "there is no {DEFAULT}: the sample keys and the sample token count, which everybody knows (api_key \"sample-key\", \
                 secret_key \"sample-secret\", token \"{SAMPLE_TOKEN}\")"
            );
            ServeFile::sample()?
        }
    };
    warn_of_readers(&file);
    Ok(file)
}

/// The token of the shipped file.
const SAMPLE_TOKEN: &str = "spn_samplesamplesamplesamplesamplesamplesample0";

fn prune(store: &JobStore, keep: u64) -> Result<(), ServeError> {
    let pruned = store.prune(keep)?;
    if !pruned.is_empty() {
        let (jobs, bytes) = (pruned.len(), pruned.iter().map(|job| job.bytes).sum::<u64>());
        tracing::info!(target: "dragline::serve", "deleted {jobs} finished jobs beyond the newest {keep}: {bytes} bytes");
    }
    Ok(())
}
