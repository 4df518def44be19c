//! Which frontier is meant.

use std::path::{Path, PathBuf};

use clap::Args;

use super::disk::Directory;
#[cfg(feature = "redis")]
use super::server::{self, Server};
use super::source::Source;
use crate::cli::exit::CliError;
use crate::cli::options::settings_here;
use crate::collector::CARD;
#[cfg(feature = "redis")]
use crate::scheduler::redis::{RedisAdmin, RedisOptions, RedisUrl};
use crate::settings::FrontierStore;

/// The frontier's directory in a JOBDIR.
const FRONTIER: &str = "frontier";

/// Where a frontier is.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PlaceArgs {
    /// A JOBDIR, or redis://[user:password@]host[:port][/database]; left out: JOBDIR or FRONTIER of the settings in use here
    #[arg(value_name = "DIR|URL")]
    place: Option<String>,
    /// The job's id, for a frontier at a Redis server
    #[arg(long, value_name = "ID")]
    job: Option<String>,
}

/// A frontier, found.
#[derive(Debug)]
pub(super) enum Place {
    Directory {
        frontier: PathBuf,
        jobdir: PathBuf,
    },
    #[cfg(feature = "redis")]
    Server {
        url: RedisUrl,
        job: Option<String>,
    },
}

impl PlaceArgs {
    /// The frontier that is meant.
    ///
    /// # Errors
    /// [`CliError::Usage`] when nothing says which, or it cannot be.
    pub(super) fn find(&self) -> Result<Place, CliError> {
        match &self.place {
            Some(text) if text.contains("://") => Self::server(text, self.job.clone()),
            Some(dir) => self.directory(Path::new(dir)),
            None => {
                let settings = settings_here()?;
                match (&settings.frontier, &settings.jobdir) {
                    (FrontierStore::Redis(url), _) => {
                        let job = settings.job_id.as_ref().map(ToString::to_string);
                        Self::server(url.expose(), self.job.clone().or(job))
                    }
                    (FrontierStore::Memory, Some(dir)) => self.directory(dir),
                    (FrontierStore::Memory, None) => Err(CliError::usage(
                        "nothing says which frontier: give its JOBDIR, or redis://HOST with --job ID; the settings here have neither JOBDIR nor a shared FRONTIER",
                    )),
                }
            }
        }
    }

    #[cfg(feature = "redis")]
    fn server(text: &str, job: Option<String>) -> Result<Place, CliError> {
        Ok(Place::Server { url: text.parse().map_err(CliError::usage)?, job })
    }

    #[cfg(not(feature = "redis"))]
    fn server(_: &str, _: Option<String>) -> Result<Place, CliError> {
        Err(CliError::usage("this program was built without the feature `redis`: it reaches no frontier at a server"))
    }

    fn directory(&self, dir: &Path) -> Result<Place, CliError> {
        let shown = dir.display();
        if self.job.is_some() {
            return Err(CliError::usage(format!(
                "--job is for a frontier at a Redis server, and {shown} is a directory: leave it out"
            )));
        }
        let below = dir.join(FRONTIER);
        if below.is_dir() {
            return Ok(Place::Directory { frontier: below, jobdir: dir.to_owned() });
        }
        if !dir.exists() {
            return Err(CliError::usage(format!("{shown} does not exist: give the JOBDIR of a crawl")));
        }
        if dir.join(CARD).exists() {
            return Err(CliError::usage(format!(
                "{shown} is a JOBDIR without a frontier: no crawl has used it for its queue yet"
            )));
        }
        Ok(Place::Directory { frontier: dir.to_owned(), jobdir: dir.parent().unwrap_or(dir).to_owned() })
    }
}

impl Place {
    /// Opens it.
    ///
    /// # Errors
    /// When it is not there, a crawl has it, or it cannot be read.
    pub(super) fn open(self) -> Result<Box<dyn Source>, CliError> {
        Ok(match self {
            Self::Directory { frontier, jobdir } => Box::new(Directory::open(frontier, &jobdir)?),
            #[cfg(feature = "redis")]
            Self::Server { .. } => Box::new(Server::open(self.admin()?)),
        })
    }

    /// Opens a job at a server.
    ///
    /// # Errors
    /// [`CliError::Usage`] for a directory; else when the server cannot be used, or has no such job.
    #[cfg(feature = "redis")]
    pub(super) fn admin(self) -> Result<server::Job, CliError> {
        let (url, job) = match self {
            Self::Server { url, job } => (url, job),
            Self::Directory { jobdir, .. } => {
                return Err(CliError::usage(format!(
                    "{} is a directory, which one process uses: end that with Ctrl-C or SIGTERM; this verb is for the fleet of a \
                     frontier at redis://HOST",
                    jobdir.display()
                )));
            }
        };
        let Some(job) = job else {
            let jobs = RedisAdmin::jobs(&url, RedisOptions::default()).map_err(server::error)?;
            let known = if jobs.is_empty() { "it holds none".to_owned() } else { format!("it holds {}", jobs.join(", ")) };
            return Err(CliError::usage(format!("--job ID says which job at {url} is meant; {known}")));
        };
        let admin = RedisAdmin::open(&url, &job, RedisOptions::default()).map_err(server::error)?;
        Ok(server::Job { admin, id: job, place: url.to_string() })
    }
}
