//! The file of `serve` read again when it changes: keys and plane take over what it says, or all stays as it was.
//!
//! Files are looked at, not listened to: that works on every file system, and a second late is early enough.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

use super::announce;
use super::file::{Census, FileError, ServeFile};
use super::keys::KeyRing;
use crate::plane::face::Face;
use crate::plane::model::authority::{BuildError, Changes};

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// How long a file that changes is left alone, and how often: who writes it may not be done.
const SETTLE: Duration = Duration::from_millis(100);
const SETTLES: u32 = 20;

/// What a new reading may not do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} of {} are known to everybody, and this server can be reached from other machines", what, place.display())]
    Samples { what: &'static str, place: PathBuf },
    #[error("{}: plane.namespace is {found:?} and was {had:?}; another namespace needs a new start", place.display())]
    Namespace { place: PathBuf, found: Arc<str>, had: Arc<str> },
    #[error("{}: {source}", place.display())]
    Plane { place: PathBuf, source: Box<BuildError> },
}

/// When a file was changed last, and how long it is; `None` for one that is not there.
type Mark = Option<(SystemTime, u64)>;

/// Watches a file and those it refers to.
#[derive(Debug)]
pub(crate) struct Reloader {
    path: PathBuf,
    /// Whether other machines reach this server.
    is_reachable: bool,
    keys: Arc<KeyRing>,
    face: Arc<Face>,
    census: Census,
    watched: Vec<PathBuf>,
    seen: Vec<Mark>,
}

impl Reloader {
    /// Watches the file at `path`, which was, or was not, there and read as this; `mark` is from before that.
    pub(crate) fn new(
        path: PathBuf,
        mark: Mark,
        file: (Census, Vec<PathBuf>),
        is_reachable: bool,
        keys: Arc<KeyRing>,
        face: Arc<Face>,
    ) -> Self {
        let (census, files) = file;
        let mut reloader = Self { watched: Vec::new(), seen: Vec::new(), path, is_reachable, keys, face, census };
        reloader.watch(files);
        if let Some(first) = reloader.seen.first_mut() {
            *first = mark;
        }
        reloader
    }

    /// Reads again whenever there is something new. Never ends.
    pub(crate) async fn run(mut self) {
        loop {
            sleep(EVERY).await;
            self.look().await;
        }
    }

    /// Looks once.
    async fn look(&mut self) {
        let mut marks = self.marks().await;
        if marks == self.seen {
            return;
        }
        for _ in 0..SETTLES {
            sleep(SETTLE).await;
            let again = self.marks().await;
            if again == marks {
                break;
            }
            marks = again;
        }
        self.seen = marks;
        match self.read().await {
            Ok((changes, names)) => {
                let mut news = names;
                news.extend(counts(&changes));
                let news =
                    if news.is_empty() { "names, credentials and tokens are as they were".to_owned() } else { news.join("; ") };
                tracing::info!(target: "dragline::serve", "read {} again: {news}", self.path.display());
            }
            Err(error) => {
                tracing::error!(target: "dragline::serve", "{error}; what was read before stays in effect");
                if let ReloadError::File(error) = &error
                    && let Some(unread) = error.unread()
                {
                    // It may come.
                    let watched = self.watched.iter().cloned().chain([unread.to_owned()]).collect();
                    self.watch_more(watched);
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(Changes, Vec<String>), ReloadError> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || ServeFile::load(&path)).await;
        // Only a runtime that goes down loses it.
        let Ok(read) = read else { return Ok((Changes::default(), Vec::new())) };
        self.take(read?)
    }

    /// Lets the new reading count.
    fn take(&mut self, file: ServeFile) -> Result<(Changes, Vec<String>), ReloadError> {
        let place = self.path.clone();
        if let Some(what) = file.samples().filter(|_| self.is_reachable) {
            return Err(ReloadError::Samples { what, place });
        }
        warn_of_readers(&file);
        let census = file.census();
        let ServeFile { keys, mut seed, .. } = file;
        let files = std::mem::take(&mut seed.files);
        let changes = self.face.with_plane(|plane, now| {
            let had = Arc::clone(plane.namespace());
            if *seed.namespace != *had {
                return Err(ReloadError::Namespace { place: place.clone(), found: Arc::clone(&seed.namespace), had });
            }
            plane.reload(seed, now).map_err(|source| ReloadError::Plane { place: place.clone(), source: Box::new(source) })
        })?;
        self.keys.replace(keys);
        let names = announce::difference(&self.census, &census);
        self.census = census;
        self.watch_more(files);
        Ok((changes, names))
    }

    /// Watches these and no others.
    fn watch(&mut self, files: Vec<PathBuf>) {
        self.watched = vec![self.path.clone()];
        for file in files {
            if !self.watched.contains(&file) {
                self.watched.push(file);
            }
        }
        self.seen = self.watched.iter().map(|file| mark(file)).collect();
    }

    /// The same; what was seen of those that were watched before stays, so that nothing is missed meanwhile.
    fn watch_more(&mut self, files: Vec<PathBuf>) {
        let before: Vec<_> = self.watched.drain(..).zip(self.seen.drain(..)).collect();
        self.watch(files);
        for (file, seen) in self.watched.iter().zip(self.seen.iter_mut()) {
            if let Some((_, mark)) = before.iter().find(|(before, _)| before == file) {
                *seen = *mark;
            }
        }
    }

    async fn marks(&self) -> Vec<Mark> {
        let watched = self.watched.clone();
        let marks = tokio::task::spawn_blocking(move || watched.iter().map(|file| mark(file)).collect()).await;
        // Only a runtime that goes down loses them.
        marks.unwrap_or_else(|_| self.seen.clone())
    }
}

/// What tells that a file is another one now.
pub(crate) fn mark(path: &Path) -> Mark {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Tells of files with secrets that others may read.
pub(crate) fn warn_of_readers(file: &ServeFile) {
    for path in file.open_to_others() {
        let path = path.display();
        tracing::warn!(target: "dragline::serve", "{path} can be read by other users; run chmod 600 on it");
    }
}

/// What changed besides names.
fn counts(changes: &Changes) -> Vec<String> {
    let told = [
        (changes.sites_switched, "sites paused or resumed"),
        (changes.identities_changed, "identities with another credential"),
        (changes.proxies_added, "proxies added"),
        (changes.proxies_removed, "proxies removed"),
        (changes.items_published, "config items published"),
        (changes.items_deleted, "config items deleted"),
        (changes.secrets_changed, "secrets changed"),
    ];
    let mut lines: Vec<_> =
        told.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}")).collect();
    if changes.tokens_changed {
        lines.push("tokens have other texts or rights".to_owned());
    }
    lines
}
