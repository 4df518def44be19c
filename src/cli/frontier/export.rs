//! `frontier export`: everything a frontier holds, as JSON lines.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::place::PlaceArgs;
use super::source::{Kind, lines};
use crate::cli::exit::CliError;
use crate::cli::logging;
use crate::cli::text::grouped;

/// Writes all requests of a frontier as JSON lines: queued, failed, set aside.
///
/// Each line has a `state`. Values that may be secret are left out: of headers and cookies there are the names, of a body the size.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline frontier export job > frontier.jsonl
  dragline frontier export job -o frontier.jsonl
  dragline frontier export redis://127.0.0.1/ --job 7 | jq -r 'select(.state == \"failed\") | .url'

Exit codes:
  0 written   3 the server is not to be reached   64 bad usage, no such frontier, or a crawl is using it   70 it cannot be read")]
pub(super) struct ExportArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// A file, instead of standard output; what it held before is replaced
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub(super) fn export(args: &ExportArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let mut source = args.place.find()?.open()?;
    let mut file;
    let (to, what): (&mut dyn Write, String) = match &args.output {
        None => (to, "standard output".to_owned()),
        Some(path) => {
            let what = path.display().to_string();
            file = File::create(path).map_err(|error| CliError::usage(format!("{what} cannot be written: {error}")))?;
            (&mut file, what)
        }
    };
    let mut count = 0;
    lines(to, &what, |to| {
        for kind in [Kind::Queued, Kind::Failed, Kind::SetAside, Kind::Damaged] {
            source.each(kind, &mut |entry| {
                count += 1;
                Ok(writeln!(to, "{}", entry.to_json())?)
            })?;
        }
        Ok(())
    })?;
    if args.output.is_some() {
        logging::current().show(&format!("{what}: {} requests of {}", grouped(count), source.place()));
    }
    Ok(())
}
