//! `frontier stat`: how a frontier stands.

use std::fmt::Write as _;
use std::io::Write;

use clap::Args;

use super::entry::plain;
use super::place::PlaceArgs;
use super::source::Stat;
use crate::cli::exit::CliError;
use crate::cli::out;
use crate::cli::text::grouped;
use crate::scheduler::job::Books;

/// Hosts that are named.
const NAMED: usize = 20;

/// Counts what is queued, by host, and what failed, by reason.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline frontier stat job                        the frontier of JOBDIR job
  dragline frontier stat job --json | jq .books.pending
  dragline frontier stat redis://127.0.0.1/ --job 7

Exit codes:
  0 shown   3 the server is not to be reached   64 bad usage, no such frontier, or a crawl is using it   70 it cannot be read")]
pub(super) struct StatArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// As one JSON object, with all hosts
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub(super) fn stat(args: &StatArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let stat = args.place.find()?.open()?.stat()?;
    if args.json { out(to, &format!("{}\n", stat.to_json())) } else { out(to, &text(&stat)) }
}

fn text(stat: &Stat) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: &str| {
        let _ = writeln!(text, "{name:<10}  {what}");
    };
    let format = stat.format.map_or_else(String::new, |format| format!(", format {format}"));
    let bytes = stat.bytes.map_or_else(String::new, |bytes| format!(", {} bytes", grouped(bytes)));
    line("frontier", &format!("{}{format}{bytes}", stat.place));
    if let (Some(job), Some(spider)) = (&stat.job, &stat.spider) {
        line("job", &format!("{} of spider {}", plain(job), plain(spider)));
    }
    let Books { enqueued, handled, failed, dropped, set_aside, pending } = stat.books;
    line(
        "requests",
        &format!(
            "{} taken in: {} handled, {} failed, {} dropped, {} set aside, {} pending",
            grouped(enqueued),
            grouped(handled),
            grouped(failed),
            grouped(dropped),
            grouped(set_aside),
            grouped(pending)
        ),
    );
    if stat.in_flight > 0 {
        let now =
            if stat.fleet.is_some() { "with workers now" } else { "were in flight when the crawl ended; they are queued again" };
        line("", &format!("{} of the pending {now}", grouped(stat.in_flight)));
    }
    line(
        "start",
        &format!("{} requests of start() taken in, {} of idle", grouped(stat.cursors.start), grouped(stat.cursors.idle)),
    );
    line("seen", &format!("{} URLs", grouped(stat.seen)));
    if let Some(fleet) = &stat.fleet {
        let start = if fleet.start_finished { "start() is finished" } else { "start() is not finished" };
        let returned = grouped(fleet.returned);
        line("fleet", &format!("{}; {start}; {returned} requests came back from workers that were gone", fleet.state));
        for (name, silent, held) in &fleet.workers {
            let seconds = *silent as f64 / 1000.0;
            line("", &format!("{} holds {}, heard of {seconds:.1} s ago", plain(name), grouped(*held)));
        }
    }
    let queued: u64 = stat.hosts.iter().map(|(_, queued)| queued).sum();
    line("queued", &format!("{} for {} hosts", grouped(queued), grouped(stat.hosts.len() as u64)));
    counts(&mut line, stat.hosts.get(..NAMED.min(stat.hosts.len())).unwrap_or_default());
    let rest = stat.hosts.get(NAMED..).unwrap_or_default();
    if !rest.is_empty() {
        let queued: u64 = rest.iter().map(|(_, queued)| queued).sum();
        line("", &format!("{:>9}  {} other hosts", grouped(queued), grouped(rest.len() as u64)));
    }
    for (name, url) in [("oldest", &stat.oldest), ("newest", &stat.newest)] {
        if let Some(url) = url {
            line(name, url);
        }
    }
    for (name, all) in [("failed", &stat.failed), ("set aside", &stat.set_aside)] {
        if !all.is_empty() {
            line(name, &grouped(all.iter().map(|(_, count)| count).sum()));
            counts(&mut line, all);
        }
    }
    if stat.damaged > 0 {
        line("damaged", &format!("{}: their records cannot be read", grouped(stat.damaged)));
    }
    text
}

fn counts(line: &mut impl FnMut(&str, &str), counts: &[(String, u64)]) {
    for (name, count) in counts {
        let name = if name.is_empty() { "-" } else { name };
        line("", &format!("{:>9}  {}", grouped(*count), plain(name)));
    }
}
