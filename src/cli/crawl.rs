//! `crawl SPIDER`: runs a spider to its end.

use std::path::Path;

use clap::Args;

use super::exit::CliError;
use super::options::{SettingsOptions, arguments, spider};
use super::session::Session;
use crate::app::App;
use crate::export::{Existing, Target};
use crate::settings::Environment;

/// Runs a spider.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline crawl quotes -o quotes.jsonl              append items to a file
  dragline crawl quotes -O quotes.csv -s DOWNLOAD_DELAY=1
  dragline crawl bookshop -a url=http://127.0.0.1:8000/ -o -:csv
  dragline crawl bookshop -a url=http://127.0.0.1:8000/ --jobdir job   killed or stopped, it goes on where it was

Exit codes:
  0 finished   2 stopped by a signal   3 gave up   4 delivery incomplete
  5 books do not balance   64 bad usage or settings   70 internal error")]
pub(crate) struct CrawlArgs {
    /// Name of the spider; `list` shows them
    spider: String,
    /// One spider argument; may be repeated
    #[arg(short = 'a', long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Append items to FILE (formats: jsonl, json, csv, xml; `-` is standard output); may be repeated. Stands in for FEEDS
    #[arg(short = 'o', long = "output", value_name = "FILE[:FORMAT]", allow_hyphen_values = true, conflicts_with = "overwrite")]
    output: Vec<String>,
    /// The same, replacing what FILE holds
    #[arg(short = 'O', long = "overwrite-output", value_name = "FILE[:FORMAT]", allow_hyphen_values = true)]
    overwrite: Vec<String>,
    #[command(flatten)]
    settings: SettingsOptions,
}

/// Runs the verb; answers the exit code.
///
/// # Errors
/// When the job could not start.
pub(crate) fn crawl(app: App, args: &CrawlArgs) -> Result<u8, CliError> {
    let session = prepare(app, args, Path::new("."), Environment::of(std::env::vars_os()))?;
    let report = crate::actor::run_system(session.run())?;
    Ok(report.ended.code)
}

fn prepare(app: App, args: &CrawlArgs, directory: &Path, environment: Environment) -> Result<Session, CliError> {
    let entry = spider(&app, &args.spider)?;
    let layers = args.settings.layers(Some(&entry), directory, environment);
    Session::prepare(entry, arguments(&args.arguments)?, app.components, layers, targets(args)?)
}

fn targets(args: &CrawlArgs) -> Result<Option<Vec<(Target, Existing)>>, CliError> {
    let given = |texts: &[String], existing| -> Result<Vec<_>, CliError> {
        texts.iter().map(|text| Ok((Target::parse(text).map_err(CliError::usage)?, existing))).collect()
    };
    let mut targets = given(&args.output, Existing::Append)?;
    targets.extend(given(&args.overwrite, Existing::Overwrite)?);
    Ok((!targets.is_empty()).then_some(targets))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use clap::Parser as _;

    use super::*;
    use crate::apcloudy::JobId;
    use crate::cli::testing::app;
    use crate::cli::{Cli, Verb};
    use crate::export::{Format, Place};

    fn parse(line: &str) -> CrawlArgs {
        match Cli::try_parse_from(format!("dragline crawl {line}").split(' ')).unwrap().verb {
            Verb::Crawl(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn session(line: &str) -> Result<Session, CliError> {
        let empty = tempfile::tempdir().unwrap();
        prepare(app(), &parse(line), empty.path(), Environment::Ignore)
    }

    #[test]
    fn a_whole_call_becomes_a_job() {
        let session =
            session("shop -a url=http://x/ -a JOB_ID=7 -o - -o items.csv:json -s RETRY_TIMES=5 -L DEBUG --jobdir d").unwrap();
        assert_eq!(session.spider.name, "shop");
        assert_eq!(session.job_id, JobId::Text("7".to_owned()));
        assert_eq!(session.arguments.len(), 1, "JOB_ID is no argument of the spider");
        let places: Vec<_> = session.feeds.iter().map(|(target, _)| target.clone()).collect();
        assert_eq!(places[0], Target { place: Place::Stdout, format: Format::JsonLines });
        assert_eq!(places[1], Target { place: Place::File("items.csv".into()), format: Format::Json });
        assert_eq!(session.resolved.settings.retry_times, 5);
        assert_eq!(session.feeds[0].1.existing, Existing::Append);
    }

    #[test]
    fn what_is_wrong_in_the_call_is_named_before_anything_starts() {
        for (line, parts) in [
            ("shp", &["\"shp\"", "\"shop\"", "news, shop"][..]),
            ("shop", &["shop", "\"url\" is missing", "-a url=VALUE"]),
            ("shop -a url=x -a page=2", &["\"page\"", "url"]),
            ("news -s LOG_LEVL=DEBUG", &["LOG_LEVL", "did you mean LOG_LEVEL?"]),
            ("news -s CONCURRENT_REQUESTS=none", &["CONCURRENT_REQUESTS", "-s", "none", "whole number"]),
            ("news -L LOUD", &["LOG_LEVEL", "LOUD", "DEBUG"]),
            ("news -c nowhere.toml", &["nowhere.toml", "cannot be read", "-c"]),
            ("news -o items.parquet", &["parquet", "jsonl"]),
            ("news -o a.csv -o a.csv:json", &["two feeds go to a.csv"]),
            ("news -s JOB_ID=", &["JOB_ID (-s)", "found string \"\"", "leave it out"]),
            ("news -s APCLOUDY_URL=http://a", &["APCLOUDY_URL (-s)", "APCLOUDY_API_KEY (not set)"]),
            ("news -s APCLOUDY_URL=http://a -s APCLOUDY_API_KEY=a -s APCLOUDY_SECRET_KEY=b", &["JOB_ID", "APCLOUDY_URL"]),
        ] {
            let error = session(line).unwrap_err();
            assert_eq!(error.code(), 64, "{line}");
            assert!(parts.iter().all(|part| error.to_string().contains(part)), "{line}: {error}");
        }
    }

    #[test]
    fn append_and_overwrite_exclude_each_other() {
        assert!(Cli::try_parse_from(["dragline", "crawl", "news", "-o", "a.csv", "-O", "b.csv"]).is_err());
        assert_eq!(session("news -O a.csv").unwrap().feeds[0].1.existing, Existing::Overwrite);
    }

    #[test]
    fn a_spider_of_the_settings_file_and_its_id_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("dragline.toml"), "JOB_ID = 12\n").unwrap();
        let session = prepare(app(), &parse("news"), folder.path(), Environment::Ignore).unwrap();
        assert_eq!(session.job_id, JobId::Number(12));
        assert!(session.settings_name.ends_with("dragline.toml"));
        let changed = prepare(app(), &parse("news"), folder.path(), Environment::of([("JOB_ID", "13")])).unwrap();
        assert_eq!(changed.job_id, JobId::Text("13".to_owned()));
    }
}
