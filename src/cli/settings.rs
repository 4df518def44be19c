//! `settings`: every effective value and where it came from, secrets redacted, references to secrets as they are written.

use std::io::Write;
use std::path::Path;

use clap::Args;

use super::exit::CliError;
use super::options::{SettingsOptions, spider};
use super::out;
use crate::app::App;
use crate::settings::{Environment, Layers, Settings};

/// Shows the settings in effect.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline settings                          a table: name, value, where it comes from
  dragline settings --get CONCURRENT_REQUESTS
  dragline settings --json -c production.toml
  dragline settings --spider bookshop        with the spider's own settings")]
pub(crate) struct SettingsArgs {
    /// Only the value of this setting
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    get: Option<String>,
    /// As JSON: value, source, default and type of each
    #[arg(long)]
    json: bool,
    /// With the own settings of this spider
    #[arg(long, value_name = "SPIDER")]
    spider: Option<String>,
    #[command(flatten)]
    settings: SettingsOptions,
}

/// Runs the verb.
///
/// # Errors
/// When a setting is wrong or unknown, or the output cannot be written.
pub(crate) fn settings(app: &App, args: &SettingsArgs, to: &mut dyn Write) -> Result<(), CliError> {
    show(app, args, Path::new("."), Environment::of(std::env::vars_os()), to)
}

fn show(app: &App, args: &SettingsArgs, directory: &Path, environment: Environment, to: &mut dyn Write) -> Result<(), CliError> {
    let entry = args.spider.as_deref().map(|name| spider(app, name)).transpose()?;
    if let Some(name) = &args.get
        && Settings::key(name).is_none()
    {
        // The layers know the nearest name, and those that mean something elsewhere.
        let error = Layers::new().set(&format!("{name}=")).resolve().err();
        return Err(CliError::usage(
            error.map_or_else(|| format!("unknown setting {name}"), |error| error.to_string().replace(" (-s)", "")),
        ));
    }
    // Shown as they are written: no control plane is asked for a secret.
    let layers = args.settings.layers(entry.as_ref(), directory, environment);
    let resolved = layers.resolve_without_secrets().map_err(CliError::usage)?;
    match &args.get {
        Some(name) => {
            let value = resolved.origin(name).map(|origin| origin.value_text()).unwrap_or_default();
            // A text goes out bare, ready for a shell.
            let bare = serde_json::from_str::<String>(&value).unwrap_or(value);
            out(to, &format!("{bare}\n"))
        }
        None if args.json => out(to, &format!("{:#}\n", resolved.to_json())),
        None => out(to, &resolved.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use clap::Parser as _;

    use super::*;
    use crate::cli::testing::app;
    use crate::cli::{Cli, Verb};

    fn shown(line: &str) -> Result<String, CliError> {
        let Verb::Settings(args) = Cli::try_parse_from(format!("dragline settings {line}").split_whitespace()).unwrap().verb
        else {
            panic!()
        };
        let empty = tempfile::tempdir().unwrap();
        let mut to = Vec::new();
        show(&app(), &args, empty.path(), Environment::of([("DRAGLINE_LOG_LEVEL", "ERROR")]), &mut to)?;
        Ok(String::from_utf8(to).unwrap())
    }

    #[test]
    fn one_value_goes_out_bare() {
        assert_eq!(shown("--get CONCURRENT_REQUESTS -s CONCURRENT_REQUESTS=3").unwrap(), "3\n");
        assert_eq!(shown("--get LOG_LEVEL").unwrap(), "ERROR\n");
    }

    #[test]
    fn the_table_and_the_json_name_the_source() {
        let table = shown("--spider shop").unwrap();
        let row = |name: &str| table.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
        assert!(row("LOG_LEVEL").ends_with("environment variable DRAGLINE_LOG_LEVEL"));
        assert!(row("RETRY_TIMES").ends_with("spider"));
        assert!(row("GRACE").ends_with("default"));
        let json: serde_json::Value = serde_json::from_str(&shown("--json").unwrap()).unwrap();
        assert_eq!(json["LOG_LEVEL"]["value"], "ERROR");
    }

    #[test]
    fn a_reference_to_a_secret_is_shown_and_not_followed() {
        let given =
            "-s APCLOUDY_URL=https://a.example -s APCLOUDY_API_KEY=${secret:a/key} -s APCLOUDY_SECRET_KEY=${secret:a/sign}";
        assert_eq!(shown(&format!("--get APCLOUDY_API_KEY {given}")).unwrap(), "${secret:a/key}\n");
        let table = shown(given).unwrap();
        assert!(
            table.lines().any(|line| line.starts_with("APCLOUDY_SECRET_KEY ") && line.contains("\"${secret:a/sign}\"")),
            "{table}"
        );
        let error = shown("-s SPINNERET_TOKEN=${secret:a/key} -s SPINNERET_URL=https://a.example").unwrap_err();
        assert_eq!(error.code(), 64);
        assert!(error.to_string().starts_with("setting SPINNERET_TOKEN (-s): found a reference to a secret;"), "{error}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = shown("--get LOG_LEVL").unwrap_err();
        assert_eq!(error.code(), 64);
        assert_eq!(error.to_string(), "unknown setting LOG_LEVL; did you mean LOG_LEVEL? `dragline settings` lists all");
        assert_eq!(shown("--spider shp").unwrap_err().code(), 64);
    }
}
