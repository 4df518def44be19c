//! `site`: the demo bookshop alone, until it is stopped.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::exit::CliError;
use super::signals;
use crate::demo::{self, Delays, SiteError, SiteOptions};

/// Serves the demo bookshop on this machine until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline site                                      http://127.0.0.1:8000/ with 1,000 products
  dragline site --listen 127.0.0.1:0 --products 50   any free port; the first line names it
  dragline crawl bookshop -a url=http://127.0.0.1:8000/ -o books.jsonl")]
pub(crate) struct SiteArgs {
    /// Address and port to listen on; port 0 takes any free one
    #[arg(short, long, default_value = "127.0.0.1:8000", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Products on sale, 1 to 1000000
    #[arg(short = 'n', long, default_value_t = 1_000, value_name = "N")]
    products: u32,
    /// The same seed gives the same shop
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Milliseconds added to every answer
    #[arg(long, default_value_t = 0, value_name = "MS")]
    latency: u64,
    /// No slow pages
    #[arg(long)]
    fast: bool,
}

/// Runs the verb.
///
/// # Errors
/// When the address cannot be listened on or the line that names it cannot be written.
pub(crate) fn site(args: &SiteArgs) -> Result<(), CliError> {
    crate::actor::run_system(async {
        let until = signals::first()?;
        demo::serve(args.options(), &mut std::io::stdout(), until).await.map_err(site_error)
    })
}

/// What the user can mend in the call is usage: address, port and number of products.
pub(crate) fn site_error(error: SiteError) -> CliError {
    match error {
        SiteError::Output(_) => CliError::internal(error),
        _ => CliError::usage(error),
    }
}

impl SiteArgs {
    fn options(&self) -> SiteOptions {
        let delays = if self.fast { Delays::none() } else { Delays::default() };
        SiteOptions {
            listen: self.listen,
            products: self.products,
            seed: self.seed,
            delays: Delays { every: Duration::from_millis(self.latency), ..delays },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn args(line: &str) -> SiteArgs {
        match Cli::try_parse_from(format!("dragline site {line}").split_whitespace()).unwrap().verb {
            Verb::Site(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_reach_the_shop() {
        let options = args("--listen 127.0.0.1:0 -n 7 --seed 3 --latency 20 --fast").options();
        assert_eq!((options.listen.port(), options.products, options.seed), (0, 7, 3));
        assert_eq!(options.delays, Delays { every: Duration::from_millis(20), ..Delays::none() });
        assert_eq!(args("").options().listen.to_string(), "127.0.0.1:8000");
    }

    #[test]
    fn a_taken_port_is_bad_usage_and_says_what_to_do() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = site(&args(&format!("--listen 127.0.0.1:{port}"))).unwrap_err();
        assert_eq!(error.code(), 64);
        assert!(error.to_string().contains(&format!("port {port}")) && error.to_string().contains("port 0"), "{error}");
        assert_eq!(site(&args("--listen 127.0.0.1:0 -n 0")).unwrap_err().code(), 64);
    }
}
