//! `frontier`: what a job's queue holds, and what failed, without a crawl; for a frontier in a directory and for one at a Redis
//! server.
//!
//! Shows no value that may be a secret: of headers and cookies the names, of bodies the size, of URLs no password.

mod disk;
mod entry;
mod export;
#[cfg(feature = "redis")]
mod fleet;
mod list;
mod place;
mod reasons;
mod retry;
#[cfg(feature = "redis")]
mod server;
mod source;
mod stat;
#[cfg(all(test, feature = "redis"))]
mod tests;

use std::io::Write;

use clap::{Args, Subcommand};

use super::exit::CliError;

/// Shows and changes the queue of a job: what waits, what failed, what was set aside.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline frontier stat job                        how much is queued, for which hosts, and what failed why
  dragline frontier list job --failed               the requests that failed for good, with the reason
  dragline frontier retry-failed job --reason timeout
  dragline frontier export job -o frontier.jsonl    everything, as JSON lines
  dragline frontier pause redis://127.0.0.1/ --job 7    the whole fleet of a job

The frontier is that of a JOBDIR (or its directory `frontier` itself), or with --job that of a job at a Redis server. Left out, it
is that of the settings in use here. A directory is free once its crawl has ended; a server can be asked at any time.")]
pub(crate) struct FrontierArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Stat(stat::StatArgs),
    List(list::ListArgs),
    RetryFailed(retry::RetryArgs),
    Export(export::ExportArgs),
    #[cfg(feature = "redis")]
    Pause(fleet::PauseArgs),
    #[cfg(feature = "redis")]
    Resume(fleet::ResumeArgs),
    #[cfg(feature = "redis")]
    Stop(fleet::StopArgs),
    #[cfg(feature = "redis")]
    Forget(fleet::ForgetArgs),
}

/// Who reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person at a terminal.
    Person,
    /// A file or another program.
    Program,
}

impl Reader {
    /// Who reads that of this process.
    pub(crate) fn of_stdout() -> Self {
        if std::io::IsTerminal::is_terminal(&std::io::stdout()) { Self::Person } else { Self::Program }
    }
}

/// Runs the verb.
///
/// # Errors
/// When there is no such frontier, or it cannot be used, or the output cannot be written.
pub(crate) fn frontier(args: &FrontierArgs, reader: Reader, to: &mut dyn Write) -> Result<(), CliError> {
    match &args.action {
        Action::Stat(args) => stat::stat(args, to),
        Action::List(args) => list::list(args, reader, to),
        Action::RetryFailed(args) => retry::retry(args, to),
        Action::Export(args) => export::export(args, to),
        #[cfg(feature = "redis")]
        Action::Pause(args) => fleet::pause(args, to),
        #[cfg(feature = "redis")]
        Action::Resume(args) => fleet::resume(args, to),
        #[cfg(feature = "redis")]
        Action::Stop(args) => fleet::stop(args, to),
        #[cfg(feature = "redis")]
        Action::Forget(args) => fleet::forget(args, to),
    }
}
