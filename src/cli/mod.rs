//! The command line of every crawl binary: verbs, settings from all sources, log, progress, summary, exit code.
//!
//! Standard output carries only what was asked for; everything else goes to standard error. Nothing here crawls:
//! a job is handed to `run`.

#[cfg(test)]
mod bundled_tests;
mod crawl;
mod deliver;
mod demo;
mod exit;
mod feeds;
mod frontier;
mod genspider;
mod jobs;
mod lease;
mod line;
mod list;
pub(crate) mod logging;
mod new;
mod options;
mod panics;
mod plane;
mod progress;
mod project;
mod records;
mod serve;
mod session;
mod settings;
mod signals;
mod site;
mod stdout;
mod summary;
mod terminal;
#[cfg(test)]
mod testing;
pub(crate) mod text;
mod version;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::apcloudy::RecordKind;
use crate::app::App;
use exit::CliError;

/// Crawls: every request leased, every attempt reported, every item delivered.
#[derive(Debug, Parser)]
#[command(
    name = "dragline",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  dragline demo                                     see everything at work, without set-up
  dragline list                                     the spiders of this program
  dragline crawl quotes -o quotes.jsonl             run one
  dragline deliver                                  send what an earlier crawl could not deliver
  dragline new my-crawler                           a project of your own
  dragline VERB --help                              options and examples of a verb"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Crawl(crawl::CrawlArgs),
    /// Lists the spiders, one name on a line.
    #[command(after_help = "Examples:\n  dragline list\n  dragline list | grep shop")]
    List,
    Jobs(jobs::JobsArgs),
    /// Writes the items of a job as JSON lines, as they were delivered.
    #[command(
        after_help = "Examples:\n  dragline items                the last job's\n  dragline items 7 > items.jsonl\n  dragline items --db /var/lib/dragline/jobs.db"
    )]
    Items(records::RecordsArgs),
    /// Writes the request records of a job as JSON lines.
    #[command(
        after_help = "Examples:\n  dragline requests             the last job's\n  dragline requests 7 | grep '\"success\": false'"
    )]
    Requests(records::RecordsArgs),
    /// Writes the log records of a job as JSON lines.
    #[command(
        after_help = "Examples:\n  dragline logs                 the last job's\n  dragline logs 7 | grep '\"level\": \"ERROR\"'"
    )]
    Logs(records::RecordsArgs),
    /// Writes the stats of a job as one JSON object.
    #[command(after_help = "Examples:\n  dragline stats                the last job's\n  dragline stats 7")]
    Stats(records::RecordsArgs),
    Frontier(frontier::FrontierArgs),
    Serve(serve::ServeArgs),
    Settings(settings::SettingsArgs),
    Deliver(deliver::DeliverArgs),
    Lease(lease::LeaseArgs),
    Plane(plane::PlaneArgs),
    Demo(demo::DemoArgs),
    Site(site::SiteArgs),
    New(new::NewArgs),
    Genspider(genspider::GenspiderArgs),
    Version(version::VersionArgs),
}

impl App {
    /// Runs the program: reads the command line, does what it asks, and answers the exit code. Errors and help about
    /// the call go to standard error. Never ends the process itself.
    #[must_use]
    pub fn run(self) -> ExitCode {
        panics::report();
        let code = catch_unwind(AssertUnwindSafe(|| self.run_with(std::env::args_os(), &mut io::stdout())));
        // The panic itself is reported already.
        ExitCode::from(code.unwrap_or(exit::INTERNAL))
    }

    fn run_with(self, args: impl IntoIterator<Item = OsString>, to: &mut dyn Write) -> u8 {
        match parse(args) {
            Ok(cli) => self.verb(cli.verb, to).unwrap_or_else(|error| {
                logging::current().fail(&error.to_string());
                error.code()
            }),
            Err(error) => {
                // Help that was asked for goes to standard output.
                let _ = error.print();
                match error.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => exit::FINISHED,
                    _ => exit::USAGE,
                }
            }
        }
    }

    fn verb(self, verb: Verb, to: &mut dyn Write) -> Result<u8, CliError> {
        if let Some(name) = twice(&self) {
            return Err(CliError::usage(format!("two spiders are named {name:?}; change the NAME of one of them")));
        }
        match verb {
            Verb::Crawl(args) => return crawl::crawl(self, &args),
            Verb::List => list::list(&self, to)?,
            Verb::Jobs(args) => jobs::jobs(&args, to)?,
            Verb::Items(args) => records::records(&args, RecordKind::Item, to)?,
            Verb::Requests(args) => records::records(&args, RecordKind::Request, to)?,
            Verb::Logs(args) => records::records(&args, RecordKind::Log, to)?,
            Verb::Stats(args) => records::stats(&args, to)?,
            Verb::Frontier(args) => frontier::frontier(&args, frontier::Reader::of_stdout(), to)?,
            Verb::Serve(args) => serve::serve(&args)?,
            Verb::Settings(args) => settings::settings(&self, &args, to)?,
            Verb::Deliver(args) => return deliver::deliver(&args, to),
            Verb::Lease(args) => return lease::lease(&args, to),
            Verb::Plane(args) => plane::plane(&args, to)?,
            Verb::Demo(args) => return demo::demo(&args, to),
            Verb::Site(args) => site::site(&args)?,
            Verb::New(args) => out(to, &new::new(&args, Path::new("."))?)?,
            Verb::Genspider(args) => out(to, &genspider::genspider(&args, Path::new("."))?)?,
            Verb::Version(args) => version::version(&args, to)?,
        }
        Ok(exit::FINISHED)
    }
}

/// Reads the command line; help and errors call the program by the name it was started with.
fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut args = args.into_iter().peekable();
    let started_as = args.peek().and_then(|first| Path::new(first).file_stem()?.to_str().map(str::to_owned));
    let mut command = Cli::command();
    if let Some(name) = started_as {
        command = command.bin_name(name);
    }
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches)
}

fn twice(app: &App) -> Option<&'static str> {
    let names = options::names(app);
    names.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    })
}

/// Writes to standard output. A reader that has gone away has read enough.
fn out(to: &mut dyn Write, text: &str) -> Result<(), CliError> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::internal(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::cli::testing::app;

    fn run(app: App, line: &str) -> (u8, String) {
        let mut to = Vec::new();
        let code = app.run_with(line.split(' ').map(OsString::from), &mut to);
        (code, String::from_utf8(to).unwrap())
    }

    #[test]
    fn the_exit_code_tells_bad_usage_from_success() {
        for (line, code) in [
            ("dragline list", 0),
            ("dragline settings --get LOG_LEVEL", 0),
            ("dragline --help", 0),
            ("dragline crawl --help", 0),
            ("dragline --version", 0),
            ("dragline", 64),
            ("dragline fly", 64),
            ("dragline crawl", 64),
            ("dragline crawl nobody", 64),
            ("dragline crawl news --bogus", 64),
            ("dragline crawl news -s NO_SUCH_SETTING=1", 64),
            ("dragline settings --get NO_SUCH_SETTING", 64),
        ] {
            assert_eq!(run(app(), line).0, code, "{line}");
        }
    }

    #[test]
    fn every_verb_has_examples() {
        for verb in Cli::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n"), "{}: {help}", verb.get_name());
        }
        Cli::command().debug_assert();
    }

    #[test]
    fn two_spiders_of_one_name_are_refused() {
        let mut twice = app();
        twice.spiders.extend(app().spiders);
        assert_eq!(run(twice, "dragline list").0, 64);
    }

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_leaves_early_is_no_error() {
        assert_eq!(app().run_with(["dragline", "list"].map(OsString::from), &mut Gone), 0);
    }
}
