//! `demo`: the whole system on one machine, with nothing to set up: site, control plane, sink and a crawl.
//!
//! It ignores the environment and every settings file, and keeps its data below `.dragline/`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::CliError;
use super::session::Session;
use super::site::site_error;
use super::{logging, out};
use crate::api::args::Arguments;
use crate::app::App;
use crate::demo::truth::Truth;
use crate::demo::{Site, SiteOptions};
use crate::export::{Existing, Format, Place, Target};
use crate::settings::Layers;

#[path = "../../spiders/bookshop.rs"]
pub(super) mod bookshop;

const SETTINGS: &str = include_str!("../../config/demo.toml");
const IDENTITIES: &str = include_str!("../../config/identities.toml");

/// Items that are shown at the end.
const SHOWN: usize = 3;

/// Crawls a demo bookshop on this machine: no network, no set-up, less than a minute.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline demo                   1,000 products; data goes to .dragline/
  dragline demo --products 100")]
pub(crate) struct DemoArgs {
    /// Products of the shop, 1 to 1000000
    #[arg(short = 'n', long, default_value_t = 1_000, value_name = "N")]
    products: u32,
}

/// Runs the verb; answers the exit code.
///
/// # Errors
/// When the folder cannot be written, the site not be started, or the job not start.
pub(crate) fn demo(args: &DemoArgs, to: &mut dyn std::io::Write) -> Result<u8, CliError> {
    let folder = Folder::make(Path::new(".dragline"))?;
    let options = SiteOptions { products: args.products, ..SiteOptions::default() };
    let truth = Truth::new(options.products, options.seed);
    let report = crate::actor::run_system(async {
        let site = Site::start(options).await.map_err(site_error)?;
        let ended = match session(&folder, site.url().as_str()) {
            Ok(session) => session.run().await,
            Err(error) => Err(error),
        };
        site.stop().await;
        ended
    })?;
    let (books, first) = folder.books()?;
    let all = truth.products().count();
    logging::current()
        .show(&format!("  books      {books} crawled, {all} can be seen in the shop; all items: {}", folder.items.display()));
    out(to, &first)?;
    Ok(report.ended.code)
}

/// The demo's files.
#[derive(Debug)]
struct Folder {
    data: PathBuf,
    identities: PathBuf,
    items: PathBuf,
}

impl Folder {
    fn make(data: &Path) -> Result<Self, CliError> {
        let own = data.join("demo");
        let folder = Self { data: data.to_owned(), identities: own.join("identities.toml"), items: own.join("items.jsonl") };
        let made = fs::create_dir_all(&own).and_then(|()| {
            // Written anew, readable by its owner alone: that is what the control plane asks of such a file.
            let _ = fs::remove_file(&folder.identities);
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&folder.identities)?;
            file.write_all(IDENTITIES.as_bytes())
        });
        match made {
            Ok(()) => Ok(folder),
            Err(error) => Err(CliError::usage(format!(
                "the demo cannot write to {}: {error}; start it in a folder that is yours",
                own.display()
            ))),
        }
    }

    /// How many books were crawled, and the first ones as JSON lines.
    fn books(&self) -> Result<(usize, String), CliError> {
        let unreadable = |error: std::io::Error| CliError::internal(format!("{} cannot be read: {error}", self.items.display()));
        let file = match fs::File::open(&self.items) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((0, String::new())),
            Err(error) => return Err(unreadable(error)),
        };
        let (mut books, mut first) = (0, String::new());
        for line in BufReader::new(file).lines() {
            let line = line.map_err(unreadable)?;
            let item: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if item.get("kind").and_then(serde_json::Value::as_str) == Some("product") {
                books += 1;
                if books <= SHOWN {
                    first.push_str(&line);
                    first.push('\n');
                }
            }
        }
        Ok((books, first))
    }
}

fn session(folder: &Folder, url: &str) -> Result<Session, CliError> {
    let app = App::new().spider::<bookshop::Bookshop>();
    let spider = super::options::spider(&app, <bookshop::Bookshop as crate::api::Spider>::NAME)?;
    let layers = Layers::new()
        .with_file(Path::new("config/demo.toml"), SETTINGS)
        .spider((spider.settings)())
        .set(&format!("IDENTITIES={}", folder.identities.display()))
        .set(&format!("DATA_DIR={}", folder.data.display()))
        .set("STATS_DUMP=false");
    let arguments: Arguments = [("url".to_owned(), url.to_owned())].into();
    let feed = Target { place: Place::File(folder.items.clone()), format: Format::JsonLines };
    let mut session = Session::prepare(spider, arguments, app.components, layers, Some(vec![(feed, Existing::Overwrite)]))?;
    // Nothing to watch: these settings are in the program.
    session.layers = None;
    session.settings_name = "built-in (config/demo.toml)".to_owned();
    Ok(session)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_demo_has_settings_of_its_own_and_its_identities_are_private() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        for _ in 0..2 {
            let folder = Folder::make(&data).unwrap();
            assert_eq!(fs::metadata(&folder.identities).unwrap().permissions().mode() & 0o777, 0o600);
            let session = session(&folder, "http://127.0.0.1:1/").unwrap();
            let settings = &session.resolved.settings;
            assert_eq!(settings.bot_name, "dragline-demo");
            assert_eq!(settings.identities.as_ref(), Some(&folder.identities));
            assert_eq!(settings.data_dir, data);
            assert_eq!(settings.leases[0].site, "bookshop");
            assert!(session.layers.is_none());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("taken");
        fs::write(&file, "").unwrap();
        let error = Folder::make(&file).unwrap_err();
        assert_eq!(error.code(), 64);
        assert!(error.to_string().contains("taken"), "{error}");
    }

    #[test]
    fn books_are_counted_and_the_first_ones_shown() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::make(place.path()).unwrap();
        assert_eq!(folder.books().unwrap(), (0, String::new()));
        let book = r#"{"kind": "product", "title": "T"}"#;
        fs::write(&folder.items, format!("{{\"kind\": \"author\"}}\n{book}\n{book}\n{book}\n{book}\n")).unwrap();
        assert_eq!(folder.books().unwrap(), (4, format!("{book}\n{book}\n{book}\n")));
    }
}
