//! Options that several verbs share: where settings come from, and spider arguments.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::exit::CliError;
use crate::api::args::Arguments;
use crate::app::{App, SpiderEntry};
use crate::nearest::nearest;
use crate::settings::{Environment, Layers, Settings};

/// How long the end of a few calls may take.
const LAST_CALLS: Duration = Duration::from_millis(500);

/// Where settings come from, besides the environment.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SettingsOptions {
    /// Settings file (TOML, YAML or JSON), instead of config/dragline.toml or dragline.toml
    #[arg(short, long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// One setting, above all other sources; may be repeated
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Least level that is logged: DEBUG, INFO, WARNING, ERROR or CRITICAL (LOG_LEVEL)
    #[arg(short = 'L', long = "loglevel", value_name = "LEVEL")]
    pub(crate) loglevel: Option<String>,
    /// File for the log, instead of standard error (LOG_FILE)
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<String>,
    /// No log: only the first line and the closing summary (LOG_ENABLED)
    #[arg(long)]
    pub(crate) nolog: bool,
    /// Directory that keeps the whole job, so that its next run goes on where this one ends (JOBDIR)
    #[arg(long, value_name = "DIR")]
    pub(crate) jobdir: Option<String>,
}

impl SettingsOptions {
    /// All layers but those that come while a job runs.
    pub(crate) fn layers(&self, spider: Option<&SpiderEntry>, directory: &Path, environment: Environment) -> Layers {
        let mut layers = match &self.config {
            Some(path) => Layers::new().file(path),
            None => Layers::new().default_file(directory),
        };
        if let Some(spider) = spider {
            layers = layers.spider((spider.settings)());
        }
        layers = self.set.iter().fold(layers.env(environment), |layers, pair| layers.set(pair));
        let level = self.loglevel.as_ref().map(|level| format!("LOG_LEVEL={}", level.to_uppercase()));
        let file = self.logfile.as_ref().map(|file| format!("LOG_FILE={file}"));
        let off = self.nolog.then(|| "LOG_ENABLED=false".to_owned());
        let jobdir = self.jobdir.as_ref().map(|dir| format!("JOBDIR={dir}"));
        [level, file, off, jobdir].into_iter().flatten().fold(layers, |layers, pair| layers.set(&pair))
    }
}

/// Which job store.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreOption {
    /// The job store; left out: jobs.db in DATA_DIR of the settings, which is .dragline/jobs.db where nobody sets it
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

impl StoreOption {
    /// The store's file: the named one, or that of the settings in use here.
    ///
    /// # Errors
    /// [`CliError::Usage`] when the settings have to be asked and are wrong.
    pub(crate) fn path(&self) -> Result<PathBuf, CliError> {
        match &self.db {
            Some(path) => Ok(path.clone()),
            None => Ok(crate::run::store_path(&settings_here()?)),
        }
    }
}

/// The settings of file and environment, for verbs that crawl nothing.
///
/// # Errors
/// [`CliError::Usage`] when they are wrong.
pub(crate) fn settings_here() -> Result<Settings, CliError> {
    let layers = SettingsOptions::default().layers(None, Path::new("."), Environment::of(std::env::vars_os()));
    Ok(layers.resolve_without_secrets().map_err(CliError::usage)?.settings)
}

/// The layers with the secrets that their settings refer to, read from the control plane they name. Without references
/// nobody is asked. Not for code that runs in a runtime already.
///
/// # Errors
/// [`CliError::Usage`] for a plane that cannot be made, and for every secret that cannot be read.
pub(crate) fn with_secrets(layers: Layers) -> Result<Layers, CliError> {
    if layers.secret_references().is_empty() {
        return Ok(layers);
    }
    let settings = layers.resolve_without_secrets().map_err(CliError::usage)?.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::internal)?;
    let opened = crate::run::plane::open(&settings)?;
    let read = runtime.block_on(async {
        let read = crate::config::read_secrets(&layers, &*opened.plane).await;
        if let Some(remote) = &opened.remote {
            remote.close(LAST_CALLS).await;
        }
        read
    });
    read.map_err(CliError::usage)
}

/// Reads `-a NAME=VALUE` options; the last one of a name wins.
///
/// # Errors
/// [`CliError::Usage`] for one without a name or `=`.
pub(crate) fn arguments(given: &[String]) -> Result<Arguments, CliError> {
    given
        .iter()
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
            _ => Err(CliError::usage(format!("spider argument {pair:?} is not NAME=VALUE; write it as -a NAME=VALUE"))),
        })
        .collect()
}

/// The spider of this name.
///
/// # Errors
/// [`CliError::Usage`] that names the nearest and the whole list.
pub(crate) fn spider(app: &App, name: &str) -> Result<SpiderEntry, CliError> {
    if let Some(entry) = app.spiders.iter().find(|entry| entry.name == name) {
        return Ok(*entry);
    }
    let names = names(app);
    let guess = nearest(name, names.iter().copied()).map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    let known = if names.is_empty() {
        "there are none yet; add one with `genspider`".to_owned()
    } else {
        format!("known: {}", names.join(", "))
    };
    Err(CliError::usage(format!("spider {name:?} is unknown; {guess}{known}")))
}

/// The spiders' names, sorted.
pub(crate) fn names(app: &App) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = app.spiders.iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::cli::testing::app;
    use crate::settings::LogLevel;

    #[test]
    fn flags_beat_pairs_and_pairs_beat_all_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("dragline.toml"), "LOG_LEVEL = \"ERROR\"\nRETRY_TIMES = 7\nCONCURRENT_REQUESTS = 3\n")
            .unwrap();
        let options = SettingsOptions {
            set: vec!["LOG_LEVEL=WARNING".to_owned(), "DOWNLOAD_DELAY=2".to_owned()],
            loglevel: Some("debug".to_owned()),
            jobdir: Some("job".to_owned()),
            nolog: true,
            ..SettingsOptions::default()
        };
        let app = app();
        let environment = Environment::of([("DRAGLINE_DOWNLOAD_DELAY", "9"), ("DRAGLINE_CONCURRENT_REQUESTS", "4")]);
        let settings = options.layers(Some(&app.spiders[0]), folder.path(), environment).resolve().unwrap().settings;
        assert_eq!(settings.log_level, LogLevel::Debug);
        assert_eq!(settings.download_delay.as_secs(), 2);
        assert_eq!(settings.concurrent_requests, 4);
        assert_eq!(settings.retry_times, 1, "the spider's own beats the file");
        assert_eq!(settings.jobdir.unwrap().to_str(), Some("job"));
        assert!(!settings.log_enabled);
    }

    #[test]
    fn arguments_are_pairs() {
        let read = arguments(&["url=http://x/?a=b".to_owned(), "n=1".to_owned(), "n=2".to_owned()]).unwrap();
        assert_eq!(read["url"], "http://x/?a=b");
        assert_eq!(read["n"], "2");
        for wrong in ["url", "=x"] {
            let error = arguments(&[wrong.to_owned()]).unwrap_err();
            assert!(error.to_string().contains("-a NAME=VALUE"), "{error}");
        }
    }

    #[test]
    fn an_unknown_spider_is_answered_with_the_nearest_and_the_list() {
        let error = spider(&app(), "shpo").unwrap_err();
        assert_eq!(error.code(), 64);
        assert_eq!(error.to_string(), "spider \"shpo\" is unknown; did you mean \"shop\"? known: news, shop");
        assert_eq!(spider(&app(), "elephant").unwrap_err().to_string(), "spider \"elephant\" is unknown; known: news, shop");
        assert!(spider(&App::new(), "x").unwrap_err().to_string().contains("genspider"));
    }
}
