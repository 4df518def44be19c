//! `frontier list`: the requests of a frontier, one on a line.

use std::io::Write;

use clap::Args;

use super::Reader;
use super::entry::{COLUMNS, Entry};
use super::place::PlaceArgs;
use super::reasons::Filter;
use super::source::{Halt, Kind, lines};
use crate::cli::exit::CliError;
use crate::cli::{logging, text};

/// Lists queued requests, those that failed for good, or those that were set aside.
///
/// Those of a directory come with the oldest first, those of a server in no order. On a terminal it is a table; elsewhere columns
/// end with a tab: priority, depth, attempts, not before, reason, step, URL.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline frontier list job                        the first hundred in the queue
  dragline frontier list job --failed --reason timeout --limit 0
  dragline frontier list job --set-aside --json     with everything that is known of them
  dragline frontier list redis://127.0.0.1/ --job 7 --failed | cut -f 7

Exit codes:
  0 shown   3 the server is not to be reached   64 bad usage, no such frontier, or a crawl is using it   70 it cannot be read")]
pub(super) struct ListArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Those that failed for good, with the reason
    #[arg(long, conflicts_with_all = ["set_aside", "damaged"])]
    failed: bool,
    /// Those whose step the spider does not know
    #[arg(long, conflicts_with = "damaged")]
    set_aside: bool,
    /// Those whose records cannot be read
    #[arg(long)]
    damaged: bool,
    #[command(flatten)]
    filter: Filter,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Without the first N
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// As JSON objects
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub(super) fn list(args: &ListArgs, reader: Reader, to: &mut dyn Write) -> Result<(), CliError> {
    args.filter.check()?;
    let kind = match args {
        ListArgs { failed: true, .. } => Kind::Failed,
        ListArgs { set_aside: true, .. } => Kind::SetAside,
        ListArgs { damaged: true, .. } => Kind::Damaged,
        _ => Kind::Queued,
    };
    if args.filter.is_by_reason() && kind != Kind::Failed {
        return Err(CliError::usage("only requests that failed have a reason: add --failed, or leave --reason out"));
    }
    let mut source = args.place.find()?.open()?;
    let end = if args.limit == 0 { u64::MAX } else { args.offset.saturating_add(args.limit) };
    let mut at = 0;
    let mut has_more = false;
    lines(to, "standard output", |to| {
        if reader == Reader::Person && !args.json {
            row(to, COLUMNS.map(|(title, _)| title.to_owned()))?;
        }
        source.each(kind, &mut |entry| {
            if !is_wanted(entry, &args.filter) {
                return Ok(());
            }
            at += 1;
            if at > end {
                has_more = true;
                return Err(Halt::Enough);
            }
            if at > args.offset {
                show(entry, args.json, reader, to)?;
            }
            Ok(())
        })
    })?;
    if has_more {
        let (limit, next) = (text::grouped(args.limit), end);
        logging::current().show(&format!("these are {limit}, there are more: --offset {next} shows the next, --limit 0 all"));
    }
    Ok(())
}

fn is_wanted(entry: &Entry, filter: &Filter) -> bool {
    filter.takes_all() || entry.job.as_ref().is_ok_and(|job| filter.takes(&entry.reason, job))
}

fn show(entry: &Entry, as_json: bool, reader: Reader, to: &mut dyn Write) -> Result<(), Halt> {
    if as_json {
        writeln!(to, "{}", entry.to_json())?;
    } else if reader == Reader::Person {
        row(to, entry.columns())?;
    } else {
        writeln!(to, "{}", entry.columns().join("\t"))?;
    }
    Ok(())
}

/// A line of the table. What is wider than its column pushes the others on, and is never cut.
fn row(to: &mut dyn Write, columns: [String; 7]) -> Result<(), Halt> {
    let cells = columns.iter().zip(COLUMNS).map(|(text, (_, width))| format!("{text:<width$}"));
    Ok(writeln!(to, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?)
}
