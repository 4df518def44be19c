//! `version`: of this program, and with `-v` of the libraries under it.

use std::fmt::Write as _;
use std::io::Write;

use clap::Args;

use super::exit::CliError;
use super::out;

/// The lock file dragline is tested with; a project of its own may have locked others.
const LOCK: &str = include_str!("../../Cargo.lock");

/// Libraries that decide how a crawl behaves.
const LIBRARIES: [&str; 13] = [
    "actix",
    "clap",
    "encoding_rs",
    "html5ever",
    "hyper",
    "reqwest",
    "rusqlite",
    "rustls",
    "scraper",
    "selectors",
    "serde_json",
    "tokio",
    "url",
];

/// Shows the version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dragline version\n  dragline version -v      with the libraries, for a bug report")]
pub(crate) struct VersionArgs {
    /// With libraries, system and architecture
    #[arg(short, long)]
    verbose: bool,
}

/// Runs the verb.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn version(args: &VersionArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let mut text = format!("dragline {}\n", env!("CARGO_PKG_VERSION"));
    if args.verbose {
        let _ = writeln!(text, "{:<12} {}-{}", "system", std::env::consts::ARCH, std::env::consts::OS);
        for name in LIBRARIES {
            if let Some(version) = locked(LOCK, name) {
                let _ = writeln!(text, "{name:<12} {version}");
            }
        }
        let _ = writeln!(text, "{:<12} {}", "sqlite", rusqlite::version());
    }
    out(to, &text)
}

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
    after.split_once('"').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_library_is_in_the_lock_file() {
        for name in LIBRARIES {
            assert!(locked(LOCK, name).is_some(), "{name}");
        }
        assert_eq!(locked(LOCK, "dragline"), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(locked(LOCK, "no-such-package"), None);
    }

    #[test]
    fn libraries_are_shown_when_asked_for() {
        for (verbose, lines) in [(false, 1), (true, LIBRARIES.len() + 3)] {
            let mut to = Vec::new();
            version(&VersionArgs { verbose }, &mut to).unwrap();
            assert_eq!(String::from_utf8(to).unwrap().lines().count(), lines);
        }
    }
}
