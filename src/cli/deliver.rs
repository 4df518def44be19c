//! `deliver`: sends what spools still hold to the sink of the settings, without a crawl.
//!
//! One line for each spool goes to standard output; progress and what the sink answers go to standard error.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use super::exit::{self, CliError};
use super::logging::{self, LogOptions};
use super::options::SettingsOptions;
use super::out;
use super::signals::Signals;
use super::text::grouped;
use crate::actor::Place;
use crate::apcloudy::JobId;
use crate::api::stats::Stats;
use crate::collector::leftovers::{self as spools, Holds};
use crate::collector::{CollectorConfig, Seeds};
use crate::run::StopSwitch;
use crate::run::deliver::{Outcome, deliver_spool};
use crate::run::leftovers::{Spool, below};
use crate::run::rejected::{Resent, resend};
use crate::run::sink::{Sink, kind, way_to};
use crate::settings::{Environment, Settings};

/// Not everything was delivered.
const INCOMPLETE: u8 = 4;
/// Stopped by a signal.
const STOPPED: u8 = 2;
/// How long a delivery goes on after a signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(100);
/// Between two lines about how far it is.
const REMIND: Duration = Duration::from_secs(5);

/// Sends what earlier crawls could not deliver.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline deliver                                   everything below DATA_DIR, and of the JOBDIR if one is set
  dragline deliver --spool .dragline/spool/7-00ab    one spool, as a crawl named it when it ended
  dragline deliver --jobdir job -s APCLOUDY_URL=https://apcloudy.example
  dragline deliver --rejected                        also what the sink refused, once more

Exit codes:
  0 everything is delivered, or there was nothing   2 stopped by a signal   4 something is left   64 bad usage or settings")]
pub(crate) struct DeliverArgs {
    /// Only this spool, or the spool of this JOBDIR; may be repeated
    #[arg(long, value_name = "DIR")]
    spool: Vec<PathBuf>,
    /// Id of the job, for a spool without job.json; checked against what the spool holds
    #[arg(long, value_name = "ID", requires = "spool")]
    job: Option<String>,
    /// Send the records in `rejected/` again, one file at a time; what is taken is removed
    #[arg(long)]
    rejected: bool,
    /// Send also what was meant for the other kind of sink: for APCloudy into the local job store, or the other way round
    #[arg(long)]
    any_sink: bool,
    /// How long a sink that takes nothing is tried again, for each spool, and each file of --rejected
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,
    #[command(flatten)]
    settings: SettingsOptions,
}

/// Runs the verb; answers the exit code.
///
/// # Errors
/// When the call or the settings are wrong, or the sink cannot be used.
pub(crate) fn deliver(args: &DeliverArgs, to: &mut dyn Write) -> Result<u8, CliError> {
    let layers = args.settings.layers(None, Path::new("."), Environment::of(std::env::vars_os()));
    let settings = super::options::with_secrets(layers)?.resolve().map_err(CliError::usage)?.settings;
    logging::install(&LogOptions::of(&settings)).map_err(CliError::usage)?;
    crate::actor::run_system(send_all(args, &settings, to))
}

async fn send_all(args: &DeliverArgs, settings: &Settings, to: &mut dyn Write) -> Result<u8, CliError> {
    let found = find(args, settings)?;
    if !found.iter().any(holds_anything) {
        out(to, &format!("nothing is left to deliver in {}\n", places(args, settings)))?;
        return Ok(exit::FINISHED);
    }
    let sink = Sink::of(settings)?;
    let stop = Arc::new(StopSwitch::default());
    let _signals = Signals::listen(Arc::clone(&stop), AFTER_SIGNAL)
        .map_err(|error| CliError::internal(format!("signals cannot be handled: {error}")))?;
    let errand = Errand { args, settings, sink: &sink, stop: &stop };
    let mut code = exit::FINISHED;
    for spool in found.iter().filter(|spool| holds_anything(spool)) {
        let sent = errand.spool(spool).await?;
        out(to, &format!("{}: {}\n", spool.dir.display(), sent.text))?;
        if !sent.clear {
            code = INCOMPLETE;
        }
        if stop.times() > 0 {
            return Ok(STOPPED);
        }
    }
    Ok(code)
}

/// The spools that were named, else all there are.
fn find(args: &DeliverArgs, settings: &Settings) -> Result<Vec<Spool>, CliError> {
    let named = |dir: &PathBuf| Spool::named(dir).map_err(CliError::usage);
    let mut found = if args.spool.is_empty() {
        below(&settings.data_dir, None)
    } else {
        args.spool.iter().map(named).collect::<Result<_, _>>()?
    };
    // A JOBDIR that no crawl has used yet has nothing left.
    if let Some(jobdir) = settings.jobdir.as_ref().filter(|dir| dir.join("spool").is_dir()) {
        found.push(Spool::look(&jobdir.join("spool")).map_err(CliError::usage)?);
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|spool| seen.insert(spool.dir.canonicalize().unwrap_or_else(|_| spool.dir.clone())));
    Ok(found)
}

fn holds_anything(spool: &Spool) -> bool {
    if spool.in_use { spool.holds.segments > 0 } else { !spool.holds.is_empty() }
}

/// Where was looked.
fn places(args: &DeliverArgs, settings: &Settings) -> String {
    let mut dirs: Vec<_> = args.spool.iter().map(|dir| dir.display().to_string()).collect();
    if dirs.is_empty() {
        dirs.push(settings.data_dir.join("spool").display().to_string());
    }
    dirs.extend(settings.jobdir.as_ref().map(|dir| dir.display().to_string()));
    dirs.join(", ")
}

/// What came of one spool: its line, and whether nothing is left in it.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    text: String,
    clear: bool,
}

impl Sent {
    fn not(why: impl Into<String>) -> Self {
        Self { text: why.into(), clear: false }
    }
}

struct Errand<'a> {
    args: &'a DeliverArgs,
    settings: &'a Settings,
    sink: &'a Sink,
    stop: &'a StopSwitch,
}

impl Errand<'_> {
    async fn spool(&self, spool: &Spool) -> Result<Sent, CliError> {
        if spool.in_use {
            let text = "a running process has it and delivers it itself".to_owned();
            return Ok(Sent { text, clear: true });
        }
        let job = match job(spool, self.args.job.as_deref(), self.settings) {
            Ok(job) => job,
            Err(why) => return Ok(Sent::not(why)),
        };
        if let Some(meant) = meant(spool).filter(|meant| !self.args.any_sink && kind(meant) != kind(self.sink.place())) {
            return Ok(Sent::not(elsewhere(&job, &meant, self.sink.place())));
        }
        self.announce(spool, &job);
        let resent = if self.args.rejected && spool.holds.rejected > 0 { Some(self.resend(spool).await?) } else { None };
        let stats = Stats::new();
        let config = CollectorConfig::from_settings(self.settings);
        let ending = self.patience(spool, &stats);
        let sent = deliver_spool(spool, &job, self.sink.open()?, config, Place::Here, stats.clone(), ending).await;
        let holds = Holds::of(&spool.dir).unwrap_or(spool.holds);
        Ok(match sent {
            Ok(outcome) => line(&job, &because(outcome, self.stop.times()), resent.as_ref(), holds),
            Err(error) => Sent::not(format!("job {job}, not sent: {error}")),
        })
    }

    /// Says what is about to happen, and where it was meant to go if that was elsewhere.
    fn announce(&self, spool: &Spool, job: &JobId) {
        let (dir, place) = (spool.dir.display(), self.sink.place());
        let meant = meant(spool).filter(|meant| meant != place);
        let meant = meant.map_or_else(String::new, |meant| format!("; the crawl meant it for {meant}"));
        logging::current().say(&format!("sending {dir}, job {job}, to {place}{meant}"));
    }

    async fn resend(&self, spool: &Spool) -> Result<Resent, CliError> {
        let io = |error: std::io::Error| CliError::internal(format!("{}: {error}", spool.dir.display()));
        let Some(_lock) = spools::lock(&spool.dir).map_err(io)? else {
            return Ok(Resent { stopped: Some("a process has just taken the spool".to_owned()), ..Resent::default() });
        };
        let seed = Seeds::draw().map_err(CliError::internal)?.jitter;
        let mut sink = self.sink.open()?;
        let stopped = async {
            self.stop.pressed(0).await;
        };
        resend(&spool.dir, sink.as_mut(), seed, Duration::from_secs(self.args.wait), stopped).await.map_err(io)
    }

    /// Waits until the sink took nothing for too long, or a signal came; tells how far it is meanwhile.
    async fn patience(&self, spool: &Spool, stats: &Stats) -> Duration {
        let wait = Duration::from_secs(self.args.wait);
        let (mut seen, mut moved, mut told) = (0, Instant::now(), Instant::now());
        loop {
            tokio::select! {
                _ = self.stop.pressed(0) => return AFTER_SIGNAL,
                () = tokio::time::sleep(LOOK) => {}
            }
            let settled = stats.count("courier/delivered") + stats.count("courier/rejected");
            if settled != seen {
                (seen, moved) = (settled, Instant::now());
            }
            if told.elapsed() >= REMIND {
                told = Instant::now();
                let records = grouped(u64::try_from(settled).unwrap_or(0));
                logging::current().say(&format!("{}: {records} records so far", spool.dir.display()));
            }
            if moved.elapsed() >= wait {
                return Duration::ZERO;
            }
        }
    }
}

/// Where the crawl meant its records to go, if its card says so.
fn meant(spool: &Spool) -> Option<String> {
    spool.card.as_ref().ok()?.as_ref()?.sink.clone()
}

/// Why records stay that were meant for another kind of sink: who forgot a variable must not empty a spool into the wrong one.
fn elsewhere(job: &JobId, meant: &str, place: &str) -> String {
    let how = way_to(meant);
    format!("job {job}, not sent: it was meant for {meant}, and these settings deliver to {place}; {how}, or add --any-sink")
}

/// Whose records these are. An id that is given is a text, unless the settings have the same one as a number.
fn job(spool: &Spool, given: Option<&str>, settings: &Settings) -> Result<JobId, String> {
    let given = given.map(|id| {
        let number = settings.job_id.clone().filter(|of| of.to_string() == id);
        number.unwrap_or_else(|| JobId::from(id))
    });
    match (&spool.card, given) {
        (Ok(Some(card)), Some(given)) if card.job_id.to_string() != given.to_string() => {
            Err(format!("not sent: its card says job {}, --job says {given}; leave --job out", card.job_id))
        }
        (Ok(Some(card)), _) => Ok(card.job_id.clone()),
        (_, Some(given)) => Ok(given),
        (Ok(None), None) => Err("not sent: it has no job.json that says whose it is; give the job's id with --job ID".to_owned()),
        (Err(why), None) => Err(format!("not sent: {why}; --job ID stands in for the card")),
    }
}

/// What is left after a signal is left for that reason, unless there was another one before.
fn because(mut outcome: Outcome, signals: u64) -> Outcome {
    if signals > 0 && outcome.left > 0 {
        outcome.stopped.get_or_insert_with(|| "a signal came first".to_owned());
    }
    outcome
}

/// The line of a spool that was sent, and whether nothing is left in it. `holds` is what it holds now.
fn line(job: &JobId, outcome: &Outcome, resent: Option<&Resent>, holds: Holds) -> Sent {
    let again = resent.map_or(0, |resent| resent.delivered);
    // The spool of a JOBDIR keeps segments for its next run whose records are all delivered.
    if again == 0 && *outcome == Outcome::default() && holds.rejected == 0 && holds.damaged == 0 {
        return Sent { text: format!("job {job}, nothing is left to deliver"), clear: true };
    }
    let mut text = format!(
        "job {job}, {} records delivered, {} refused{}, {} left",
        grouped(outcome.delivered.saturating_add(again)),
        grouped(outcome.refused),
        if outcome.refused > 0 { " (rejected/)" } else { "" },
        grouped(outcome.left)
    );
    if let Some(why) = &outcome.stopped {
        let _ = write!(text, " ({why})");
    } else if outcome.left > 0 {
        text.push_str(" (the sink took nothing for too long)");
    }
    if holds.rejected > 0 {
        let _ = write!(text, "; {} files of refused records in rejected/", holds.rejected);
        match resent {
            None => text.push_str(", --rejected sends them again"),
            Some(resent) => {
                for (file, why) in &resent.refused {
                    let _ = write!(text, ", {}: {why}", file.file_name().unwrap_or_default().display());
                }
                if let Some(why) = &resent.stopped {
                    let _ = write!(text, ", {} of them without an answer: {why}", resent.left);
                }
            }
        }
    }
    if holds.damaged > 0 {
        let _ = write!(
            text,
            "; {} segments that did not read are kept as *.damaged, remove them when they are of no use",
            holds.damaged
        );
    }
    if outcome.lost > 0 {
        let _ = write!(text, "; {} records are lost with damaged or missing segments", grouped(outcome.lost));
    }
    Sent { text, clear: outcome.left == 0 && outcome.lost == 0 && holds.rejected == 0 && holds.damaged == 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::collector::Tidy;
    use crate::run::jobdir::JobCard;

    fn spool(card: Result<Option<JobCard>, String>) -> Spool {
        Spool { dir: "s".into(), card, holds: Holds::default(), tidy: Tidy::Remove, in_use: false }
    }

    #[test]
    fn the_job_is_that_of_the_card_or_the_given_one() {
        let settings = Settings { job_id: Some(JobId::Number(7)), ..Settings::default() };
        let card = || Ok(Some(JobCard::new(JobId::Number(9), "x")));
        assert_eq!(job(&spool(card()), None, &settings).unwrap(), JobId::Number(9));
        assert_eq!(job(&spool(card()), Some("9"), &settings).unwrap(), JobId::Number(9));
        assert!(job(&spool(card()), Some("8"), &settings).unwrap_err().contains("its card says job 9"));
        assert_eq!(job(&spool(Ok(None)), Some("7"), &settings).unwrap(), JobId::Number(7));
        assert_eq!(job(&spool(Ok(None)), Some("8"), &settings).unwrap(), JobId::from("8"));
        assert!(job(&spool(Ok(None)), None, &settings).unwrap_err().contains("--job ID"));
        assert_eq!(job(&spool(Err("torn".into())), Some("8"), &settings).unwrap(), JobId::from("8"));
        assert!(job(&spool(Err("torn".into())), None, &settings).unwrap_err().contains("torn"));
    }

    #[test]
    fn what_was_meant_for_another_kind_of_sink_is_not_sent_by_chance() {
        let to_cloud = JobCard::new(JobId::Number(9), "x").for_run("apcloudy https://a.example", 0);
        assert_eq!(meant(&spool(Ok(Some(to_cloud)))).as_deref(), Some("apcloudy https://a.example"));
        assert_eq!(meant(&spool(Ok(None))), None);
        let job = JobId::from("9");
        let text = elsewhere(&job, "apcloudy https://a.example", "embedded /d/jobs.db");
        assert!(text.contains("set APCLOUDY_URL and its keys, or add --any-sink"), "{text}");
        assert!(elsewhere(&job, "embedded /d/jobs.db", "apcloudy https://a.example").contains("leave APCLOUDY_URL out"));
    }

    #[test]
    fn a_line_counts_and_says_what_is_left_and_why() {
        let id = JobId::from("7");
        let done = Outcome { delivered: 1_234, batches: 30, ..Outcome::default() };
        let clear = line(&id, &done, None, Holds::default());
        assert_eq!(clear, Sent { text: "job 7, 1,234 records delivered, 0 refused, 0 left".to_owned(), clear: true });
        let some = Outcome { refused: 2, left: 9, stopped: Some("401".to_owned()), ..done.clone() };
        let sent = line(&id, &some, None, Holds { rejected: 2, damaged: 1, segments: 1 });
        assert!(!sent.clear);
        for part in [
            "2 refused (rejected/), 9 left (401)",
            "2 files of refused records",
            "--rejected sends",
            "1 segments that did not read",
        ] {
            assert!(sent.text.contains(part), "{part}: {}", sent.text);
        }
        for (signals, left, expected) in [(0, 3, "too long)"), (1, 3, "3 left (a signal came first)"), (1, 0, "0 left")] {
            let outcome = because(Outcome { left, ..done.clone() }, signals);
            let sent = line(&id, &outcome, None, Holds::default());
            assert!(sent.text.ends_with(expected), "{}", sent.text);
        }
        assert_eq!(line(&id, &Outcome::default(), None, Holds::default()).text, "job 7, nothing is left to deliver");
        let sent = line(&id, &Outcome { lost: 418, ..done.clone() }, None, Holds::default());
        assert!(
            sent.text.ends_with("0 left; 418 records are lost with damaged or missing segments") && !sent.clear,
            "{}",
            sent.text
        );
        let resent =
            Resent { delivered: 6, refused: vec![("s/rejected/ab.json".into(), "still 422".to_owned())], ..Resent::default() };
        let sent = line(&id, &done, Some(&resent), Holds { rejected: 1, ..Holds::default() });
        assert!(sent.text.starts_with("job 7, 1,240 records delivered"), "{}", sent.text);
        assert!(sent.text.contains("ab.json: still 422") && !sent.clear, "{}", sent.text);
        assert!(line(&id, &Outcome { left: 1, ..done }, None, Holds::default()).text.contains("took nothing for too long"));
    }
}
