//! One job from resolved settings to its exit code: log, captured prints, signals, progress, run, summary.
//!
//! Shared by every verb that crawls. What can be wrong in the call is settled before anything starts.

use std::sync::Arc;

use super::exit::CliError;
use super::logging::{self, LogOptions};
use super::signals::Signals;
use super::stdout::Stdout;
use super::{feeds, progress, summary};
use crate::apcloudy::JobId;
use crate::api::args::Arguments;
use crate::app::{Components, SpiderEntry};
use crate::export::{FeedOptions, Target};
use crate::run::{self, JobSpec, Logs, Report};
use crate::settings::{Layers, Resolved, Settings};

/// A job that is ready to start.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) spider: SpiderEntry,
    pub(crate) arguments: Arguments,
    pub(crate) components: Components,
    pub(crate) resolved: Resolved,
    /// For reloads; `None`: nothing is watched.
    pub(crate) layers: Option<Layers>,
    pub(crate) feeds: Vec<(Target, FeedOptions)>,
    pub(crate) job_id: JobId,
    /// What the first line calls the settings.
    pub(crate) settings_name: String,
}

impl Session {
    /// Checks everything the call can get wrong.
    ///
    /// # Errors
    /// [`CliError::Usage`] that names the setting, argument or feed.
    pub(crate) fn prepare(
        spider: SpiderEntry,
        mut arguments: Arguments,
        components: Components,
        layers: Layers,
        targets: Option<Vec<(Target, crate::export::Existing)>>,
    ) -> Result<Self, CliError> {
        let layers = super::options::with_secrets(layers)?;
        let resolved = layers.resolve().map_err(CliError::usage)?;
        let job_id = job_id(arguments.remove("JOB_ID"), &resolved.settings)?;
        (spider.build)(&arguments).map_err(|error| CliError::usage(format!("spider {}: {error}", spider.name)))?;
        let feeds = feeds::feeds(&resolved.settings, targets, spider.name, &arguments)?;
        let settings_name =
            resolved.settings_file().map_or_else(|| "defaults (no file)".to_owned(), |path| path.display().to_string());
        Ok(Self { spider, arguments, components, resolved, layers: Some(layers), feeds, job_id, settings_name })
    }

    /// Runs the job to its end and shows the summary.
    ///
    /// # Errors
    /// When the job could not start.
    pub(crate) async fn run(self) -> Result<Report, CliError> {
        let settings = &self.resolved.settings;
        let log = logging::install(&LogOptions::of(settings)).map_err(CliError::usage)?;
        // From here on every line is a record of the job as well.
        let logs = Logs::begin(settings.log_level);
        log.attach(Box::new(logs.layer()));
        log.say(&self.first_line());
        let ended = self.run_logged(logs).await;
        log.detach();
        let report = ended?;
        log.show(&summary::summary(&report));
        Ok(report)
    }

    async fn run_logged(self, logs: Logs) -> Result<Report, CliError> {
        let settings = &self.resolved.settings;
        let captured = if settings.log_stdout { Stdout::capture() } else { Stdout::plain() };
        let stdout = captured.map_err(|error| {
            CliError::internal(format!("standard output cannot be captured: {error}; try -s LOG_STDOUT=false"))
        })?;
        let (progress, stop) = (Arc::default(), Arc::default());
        let signals = Signals::listen(Arc::clone(&stop), settings.grace)
            .map_err(|error| CliError::internal(format!("signals cannot be handled: {error}")))?;
        let shown = progress::show(settings, Arc::clone(&progress));
        let ended = run::run(JobSpec {
            spider: self.spider,
            arguments: self.arguments,
            settings: Arc::new(self.resolved.settings),
            layers: self.layers,
            components: self.components,
            feeds: self.feeds,
            job_id: self.job_id,
            logs,
            progress,
            stop,
            stdout: stdout.source(),
            printed: stdout.printed(),
        })
        .await;
        drop(shown);
        stdout.close();
        drop(signals);
        Ok(ended?)
    }

    /// Names settings file, control plane, sink and job id in use.
    fn first_line(&self) -> String {
        let settings = &self.resolved.settings;
        format!(
            "dragline {}: spider {}, settings {}, control plane {}, sink {}, job {}",
            env!("CARGO_PKG_VERSION"),
            self.spider.name,
            self.settings_name,
            run::plane::name(settings),
            run::place(settings),
            self.job_id
        )
    }
}

/// The job's id: the argument beats the setting; without either that of the `JOBDIR`, else a new UUID, sortable
/// by time. A backend knows its jobs, so for it no id is made up.
fn job_id(argument: Option<String>, settings: &Settings) -> Result<JobId, CliError> {
    if let Some(text) = argument.filter(|text| !text.is_empty()) {
        return Ok(JobId::Text(text));
    }
    if let Some(id) = &settings.job_id {
        return Ok(id.clone());
    }
    let card = settings.jobdir.as_deref().map(crate::run::jobdir::read).transpose().map_err(CliError::usage)?.flatten();
    match card {
        Some(card) => Ok(card.job_id),
        None if settings.apcloudy_url.is_some() => Err(CliError::usage(
            "JOB_ID is not set, and with APCLOUDY_URL there must be one: the backend takes records only for a job it \
             knows; give that job's id with -a JOB_ID=ID, -s JOB_ID=ID, or in a settings file or the environment",
        )),
        None if settings.frontier.is_shared() => Err(CliError::usage(
            "JOB_ID is not set, and with a shared FRONTIER there must be one: it says which job of the server the worker is at; \
             give all workers of the job the same id with -a JOB_ID=ID, -s JOB_ID=ID, or in a settings file or the environment",
        )),
        None => Ok(JobId::Text(uuid::Uuid::now_v7().to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_argument_beats_the_setting_and_a_number_stays_one() {
        let with = |value| Settings { job_id: Some(value), ..Settings::default() };
        let number = with(JobId::Number(7));
        assert_eq!(job_id(Some("9".to_owned()), &number).unwrap(), JobId::Text("9".to_owned()));
        assert_eq!(job_id(None, &number).unwrap(), JobId::Number(7));
        assert_eq!(job_id(None, &with(JobId::Text("x".to_owned()))).unwrap(), JobId::Text("x".to_owned()));
        assert_eq!(job_id(Some("0".to_owned()), &number).unwrap(), JobId::Text("0".to_owned()));
    }

    #[test]
    fn an_empty_argument_falls_back_to_the_setting_then_to_the_jobdir() {
        let dir = tempfile::tempdir().unwrap();
        crate::run::jobdir::claim(dir.path(), &JobId::Number(5), "shop").unwrap();
        let kept = Settings { jobdir: Some(dir.path().to_owned()), ..Settings::default() };
        let both = Settings { job_id: Some(JobId::Number(7)), ..kept.clone() };
        for argument in [None, Some(String::new())] {
            assert_eq!(job_id(argument.clone(), &both).unwrap(), JobId::Number(7));
            assert_eq!(job_id(argument.clone(), &kept).unwrap(), JobId::Number(5));
            assert_eq!(job_id(argument, &Settings::default()).unwrap().to_string().len(), 36);
        }
    }

    #[test]
    fn no_id_is_made_up_for_a_backend() {
        let dir = tempfile::tempdir().unwrap();
        let url = Settings { apcloudy_url: Some("https://a.example".to_owned()), ..Settings::default() };
        let kept = Settings { jobdir: Some(dir.path().to_owned()), ..url.clone() };
        for (argument, settings) in [(None, &url), (Some(String::new()), &url), (None, &kept)] {
            let error = job_id(argument, settings).unwrap_err();
            assert_eq!(error.code(), 64);
            assert_eq!(
                error.to_string(),
                "JOB_ID is not set, and with APCLOUDY_URL there must be one: the backend takes records only for a job it \
                 knows; give that job's id with -a JOB_ID=ID, -s JOB_ID=ID, or in a settings file or the environment"
            );
        }
        assert_eq!(job_id(Some("a".to_owned()), &url).unwrap(), JobId::from("a"));
        assert_eq!(job_id(None, &Settings { job_id: Some(JobId::Number(-1)), ..url.clone() }).unwrap(), JobId::Number(-1));
        crate::run::jobdir::claim(dir.path(), &JobId::Number(5), "shop").unwrap();
        assert_eq!(job_id(None, &kept).unwrap(), JobId::Number(5));
    }

    #[test]
    fn without_an_id_each_job_gets_a_new_one_in_order_of_time() {
        let [one, other] = [(); 2].map(|()| job_id(None, &Settings::default()).unwrap().to_string());
        assert_eq!(one.len(), 36);
        assert_eq!(one.as_bytes()[14], b'7');
        assert!(one < other);
    }
}
