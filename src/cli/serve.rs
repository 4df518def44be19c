//! `serve`: the webhook into a job store and the control plane over HTTP, until it is stopped.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::exit::CliError;
use super::logging::{self, LogOptions, LogPlace};
use super::options::{StoreOption, settings_here};
use super::signals;
use crate::serve::{ServeError, ServeOptions, serve as run};
use crate::settings::{LogFormat, LogLevel};

/// Serves what crawls need, on this machine: the APCloudy webhook into a job store, and a Spinneret control plane.
///
/// Batches go to /api/webhook/consume below the address that the first line names, signed with a key of the file; a 200 means that
/// the batch is on disk. Leases, reports, config and secrets are at /spinneret.v1.… there, for who has a token of the file. The file
/// is read again within two seconds of a change; one that cannot be used changes nothing. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline serve                          http://127.0.0.1:8080, config/serve.toml if it is there
  dragline serve --listen 127.0.0.1:0     any free port; the first line names it
  dragline serve --listen 0.0.0.0:8080 --file own.toml --db /var/lib/dragline/jobs.db
  dragline jobs                           what has come in
  SPINNERET_URL=http://127.0.0.1:8080 SPINNERET_TOKEN=spn_… dragline crawl quotes

By hand, from the same machine only, at the address of the first line:
  GET  /plane/ledger           leases and reports by site and identity
  POST /plane/pause            {\"site\", \"reason\"?}
  POST /plane/resume           {\"site\"}
  POST /plane/breaker/open     {\"site\", \"client\", \"endpoint_group\", \"duration_ms\"?, \"reason\"?}
  POST /plane/breaker/close    {\"site\", \"client\", \"endpoint_group\", \"reason\"?}
  POST /plane/config/publish   {\"group\", \"key\", \"format\": \"json\", \"yaml\" or \"text\", \"content\"}
  POST /plane/config/roll_back {\"group\", \"key\", \"version\"}
  GET  /healthz, /readyz       200 while it lives, and while it takes calls

  curl -H 'content-type: application/json' -d '{\"site\": \"bookshop\"}' http://127.0.0.1:8080/plane/pause")]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0 takes any free one
    #[arg(short, long, default_value = "127.0.0.1:8080", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreOption,
    /// Keys of those who may deliver, and the plane with its tokens, sites and identities; instead of config/serve.toml
    #[arg(long, visible_alias = "keys", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Bytes of the largest batch, 1024 to 268435456
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1_024..=256 << 20))]
    max_body: u32,
    /// Connections open at one time, 1 to 65536: each crawl holds one for every call that waits
    #[arg(long, default_value_t = 4_096, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    connections: u32,
    /// Deletes finished jobs beyond the newest N at the start; 0 keeps all. Left out: JOBS_KEEP of the settings
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
}

/// Runs the verb.
///
/// # Errors
/// When file, store or address cannot be used.
pub(crate) fn serve(args: &ServeArgs) -> Result<(), CliError> {
    let log = LogOptions { level: LogLevel::Info, format: LogFormat::Text, place: LogPlace::Stderr };
    logging::install(&log).map_err(CliError::internal)?;
    let options = args.options()?;
    crate::actor::run_system(async {
        let until = signals::first()?;
        run(options, &mut std::io::stdout(), until).await.map_err(serve_error)
    })
}

/// What the user can mend in the call is usage: file, address and store.
fn serve_error(error: ServeError) -> CliError {
    match error {
        ServeError::Thread(_) | ServeError::Output(_) | ServeError::Ended => CliError::internal(error),
        _ => CliError::usage(error),
    }
}

impl ServeArgs {
    fn options(&self) -> Result<ServeOptions, CliError> {
        Ok(ServeOptions {
            listen: self.listen,
            db: self.store.path()?,
            file: self.file.clone(),
            max_body: usize::try_from(self.max_body).unwrap_or(usize::MAX),
            connections: usize::try_from(self.connections).unwrap_or(usize::MAX),
            keep: match self.keep {
                Some(keep) => keep,
                None => settings_here()?.jobs_keep,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn args(line: &str) -> Result<ServeArgs, clap::Error> {
        match Cli::try_parse_from(format!("dragline serve {line}").split_whitespace())?.verb {
            Verb::Serve(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_reach_the_server() {
        for name in ["file", "keys"] {
            let line = format!("--listen 127.0.0.1:0 --db a/b.db --{name} k.toml --max-body 2048 --keep 3 --connections 7");
            let options = args(&line).unwrap().options().unwrap();
            assert_eq!((options.listen.port(), options.max_body, options.keep, options.connections), (0, 2_048, 3, 7));
            assert_eq!((options.db, options.file), (PathBuf::from("a/b.db"), Some(PathBuf::from("k.toml"))));
        }
        let plain = args("").unwrap().options().unwrap();
        assert_eq!((plain.db, plain.file, plain.max_body), (PathBuf::from(".dragline/jobs.db"), None, 16 * 1024 * 1024));
        assert_eq!(plain.connections, 4_096);
        assert!(args("--max-body 1").is_err() && args("--listen nowhere").is_err());
    }
}
