//! `frontier retry-failed`: dead letters go back into the queue.

use std::io::Write;

use clap::Args;

use super::place::PlaceArgs;
use super::reasons::Filter;
use super::source::Kind;
use crate::cli::exit::CliError;
use crate::cli::out;
use crate::cli::text::grouped;

/// Puts requests that failed for good back into the queue, as if they were new; the next crawl with the JOBDIR fetches them.
///
/// They pass the duplicate filter and get all their attempts again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline frontier retry-failed job                        all that failed
  dragline frontier retry-failed job --reason timeout --reason http_status
  dragline frontier retry-failed job --set-aside            those of steps the spider did not know, once it knows them
  dragline frontier retry-failed redis://127.0.0.1/ --job 7 --host shop.example

Exit codes:
  0 done, also when there was nothing   3 the server is not to be reached   64 bad usage, no such frontier, or a crawl is using it
  70 it cannot be read or written")]
pub(super) struct RetryArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    filter: Filter,
    /// Those that were set aside, instead of those that failed
    #[arg(long, conflicts_with = "reason")]
    set_aside: bool,
}

/// Runs the verb.
pub(super) fn retry(args: &RetryArgs, to: &mut dyn Write) -> Result<(), CliError> {
    args.filter.check()?;
    let mut source = args.place.find()?.open()?;
    let (kind, what) = if args.set_aside { (Kind::SetAside, "were set aside") } else { (Kind::Failed, "had failed") };
    let count = source.requeue(kind, &mut |reason, job| args.filter.takes(reason, job))?;
    out(to, &format!("{}: {} requests that {what} are queued again\n", source.place(), grouped(count)))
}
