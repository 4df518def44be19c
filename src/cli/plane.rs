//! `plane`: what a control plane would do. `plane simulate` runs the policies of a file against reports.
//!
//! Asks no server and changes nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::CliError;
use super::out;
use crate::dice::Dice;
use crate::plane::simulate::{self, Defaults, SimulateError};

/// Tries the policies of a control plane out.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  dragline plane simulate config/identities.toml --reports config/reports.jsonl
  dragline requests 7 | dragline plane simulate plane.toml --reports - --site shop"
)]
pub(crate) struct PlaneArgs {
    #[command(subcommand)]
    action: PlaneAction,
}

/// What to try.
#[derive(Debug, Subcommand)]
pub(crate) enum PlaneAction {
    Simulate(SimulateArgs),
}

/// Shows what the policies of a file would have done to a stream of reports: cooled, banned, quarantined, expired, opened, closed.
///
/// FILE is what the setting IDENTITIES names, or a serve.toml with a part `plane`. Time is simulated: it jumps from report to
/// report, and nothing is sent anywhere.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline plane simulate config/identities.toml --reports config/reports.jsonl
  dragline plane simulate plane.toml --reports monday.jsonl --site shop --json | grep '\"action\":\"ban\"'
  dragline requests 7 | dragline plane simulate plane.toml --reports - --site shop

Reports are JSON Lines, one attempt each, in any order:
  {\"at\": 12.5, \"site\": \"shop\", \"client\": \"web\", \"uri\": \"/list\", \"identity\": \"anna\", \"status\": 429, \"latency_ms\": 80}

  at              when it was over: a moment such as \"2027-01-31T12:00:00Z\", or seconds since the start; all alike
  site, client    left out: the only one of the file, or --site and --client
  uri             the path; or endpoint_group, the group's name; one of them is needed
  identity        whom it was made with; left out, the plane picks (session_key: as a crawl would give it)
  status          0 or left out: no response, and error_kind says why: timeout, conn_reset, conn_refused, proxy_auth,
                  tls, dns, other
  method, markers, business_code, outcome_hint, latency_ms, response_bytes: as a crawl reports them

A lease is taken latency_ms before `at`. An attempt whose identity would not have been leased then (it rests, is banned, is in
use, its breaker is open) counts as withheld and is not reported.

Records of `dragline requests` are read as well. They say neither when nor with whom: each begins when the one before it was
over, the plane picks, and url, method, status_code, response_time and the class of error are used.")]
pub(crate) struct SimulateArgs {
    /// Sites, identities and policies
    #[arg(value_name = "FILE")]
    plane: PathBuf,
    /// The reports; - reads standard input
    #[arg(long, value_name = "FILE")]
    reports: PathBuf,
    /// Site of reports that name none; those of other sites are left out
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Client of reports that name none
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// The same seed picks the same identities
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON object on a line for each effect, and a last one with the summary
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// When a file cannot be read or says what is not allowed, or the output cannot be written.
pub(crate) fn plane(args: &PlaneArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let PlaneAction::Simulate(args) = &args.action;
    run(args, &mut io::stdin().lock(), to)
}

fn run(args: &SimulateArgs, input: &mut dyn BufRead, to: &mut dyn Write) -> Result<(), CliError> {
    let seed = simulate::load(&args.plane).map_err(CliError::usage)?;
    let defaults = Defaults { site: args.site.clone(), client: args.client.clone() };
    let is_input = args.reports == Path::new("-");
    let name = if is_input { "standard input".to_owned() } else { args.reports.display().to_string() };
    let timeline = if is_input {
        simulate::read(input, &name, &seed, &defaults)
    } else {
        let opened = File::open(&args.reports).map_err(|source| SimulateError::Read { name: name.clone(), source });
        opened.and_then(|file| simulate::read(&mut BufReader::new(file), &name, &seed, &defaults))
    };
    let timeline = timeline.map_err(CliError::usage)?;
    let outcomes = simulate::run(seed, &timeline, &name, Dice::new(args.seed)).map_err(CliError::usage)?;
    let text = if args.json { simulate::json_lines(&outcomes, &timeline) } else { simulate::table(&outcomes, &timeline) };
    out(to, &text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn shown(line: &str, input: &str) -> Result<String, CliError> {
        let verb = Cli::try_parse_from(format!("dragline plane simulate {line}").split_whitespace()).unwrap().verb;
        let Verb::Plane(PlaneArgs { action: PlaneAction::Simulate(args) }) = verb else { panic!() };
        let mut to = Vec::new();
        run(&args, &mut input.as_bytes(), &mut to)?;
        Ok(String::from_utf8(to).unwrap())
    }

    #[test]
    fn the_example_of_the_help_runs() {
        let table = shown("config/identities.toml --reports config/reports.jsonl", "").unwrap();
        assert!(table.contains("identity reader-1") && table.contains("left to lease"), "{table}");
        let json = shown("config/identities.toml --reports config/reports.jsonl --json", "").unwrap();
        let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
        assert_eq!(last["summary"]["sites"]["bookshop"]["withheld"]["cooling"], 1);
    }

    #[test]
    fn reports_come_from_standard_input_too() {
        let line = "{\"at\": 1, \"uri\": \"/\", \"identity\": \"reader-1\", \"status\": 429}\n";
        let table = shown("config/identities.toml --reports - --site bookshop", line).unwrap();
        assert!(table.contains("rate_limited"), "{table}");
    }

    #[test]
    fn files_that_cannot_be_used_are_bad_usage_and_named() {
        for (line, input, part) in [
            ("no/such.toml --reports -", "", "no/such.toml"),
            ("config/identities.toml --reports no/such.jsonl", "", "no/such.jsonl"),
            ("config/identities.toml --reports -", "{\"at\": 1}\n", "standard input:1: neither uri nor endpoint_group"),
        ] {
            let error = shown(line, input).unwrap_err();
            assert_eq!(error.code(), 64);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
