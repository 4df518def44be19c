//! `new NAME`: a folder with a crawl program of one's own, ready to build.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::CliError;
use super::project::fill;
use crate::settings::template;

/// Where this package was built from, and where its releases are.
const BUILT_FROM: &str = env!("CARGO_MANIFEST_DIR");
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Makes a project: a crawl program of its own with one spider, settings and instructions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline new my-crawler && cd my-crawler && cargo run -- list
  dragline new my-crawler --dragline-path ../dragline")]
pub(crate) struct NewArgs {
    /// Folder to make; its last part names the package
    name: PathBuf,
    /// Checkout of dragline to depend on; unset: the one this program was built from, else the release
    #[arg(long, value_name = "DIR")]
    dragline_path: Option<PathBuf>,
}

/// Runs the verb below `directory`; answers what was done.
///
/// # Errors
/// When the name does not fit, the folder is not empty, dragline is not found, or a file cannot be written.
pub(crate) fn new(args: &NewArgs, directory: &Path) -> Result<String, CliError> {
    let name = package_name(&args.name)?;
    let folder = directory.join(&args.name);
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(CliError::usage(format!("{} exists and is not empty; give another name", folder.display())));
    }
    let source = Source::find(args.dragline_path.as_deref(), directory)?;
    let values = [("name", name), ("dragline", &source.dependency())];
    let mut files = vec![
        ("Cargo.toml", fill(include_str!("templates/Cargo.toml.txt"), &values)),
        ("src/main.rs", include_str!("templates/main.rs.txt").to_owned()),
        ("spiders/mod.rs", include_str!("templates/spiders_mod.rs.txt").to_owned()),
        ("spiders/books.rs", include_str!("templates/books.rs.txt").to_owned()),
        ("config/dragline.toml", template()),
        (".gitignore", include_str!("templates/gitignore.txt").to_owned()),
        ("README.md", fill(include_str!("templates/README.md.txt"), &values)),
    ];
    // With the versions dragline was tested with, the project builds without asking a registry.
    if let Some(lock) = source.lock() {
        files.push(("Cargo.lock", lock));
    }
    for (file, text) in files {
        let path = folder.join(file);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|error| {
            CliError::usage(format!("cannot write {}: {error}; check the folder's permissions", path.display()))
        })?;
    }
    Ok(format!(
        "made {}\nnext: cd {} && cargo run -- list   (README.md goes on from there)\n",
        folder.display(),
        folder.display()
    ))
}

/// A name cargo takes: it names a program, so it must not be dragline's own or that of a standard crate.
fn package_name(path: &Path) -> Result<&str, CliError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !["dragline", "serde", "test", "core", "std", "alloc", "build", "deps", "examples", "incremental"].contains(&name);
    if fits {
        return Ok(name);
    }
    Err(CliError::usage(format!(
        "{name:?} cannot name a project; use letters, digits, `-` and `_`, a letter first, and neither dragline nor a name of the standard library"
    )))
}

/// Where a project gets dragline from.
#[derive(Debug)]
enum Source {
    Checkout(PathBuf),
    Release,
}

impl Source {
    fn find(given: Option<&Path>, directory: &Path) -> Result<Self, CliError> {
        if let Some(path) = given {
            let path = directory.join(path);
            return match path.canonicalize() {
                Ok(path) if is_dragline(&path) => Ok(Self::Checkout(path)),
                _ => Err(CliError::usage(format!(
                    "--dragline-path {} is no checkout of dragline; give the folder with its Cargo.toml",
                    path.display()
                ))),
            };
        }
        if is_dragline(Path::new(BUILT_FROM)) {
            return Ok(Self::Checkout(BUILT_FROM.into()));
        }
        if REPOSITORY.is_empty() {
            return Err(CliError::usage(
                "the sources this program was built from are gone; name a checkout of dragline with --dragline-path DIR",
            ));
        }
        Ok(Self::Release)
    }

    fn dependency(&self) -> String {
        let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
        match self {
            Self::Checkout(path) => format!("{{ path = {} }}", text(&path.to_string_lossy())),
            Self::Release => {
                format!("{{ git = {}, tag = {} }}", text(REPOSITORY), text(&format!("v{}", env!("CARGO_PKG_VERSION"))))
            }
        }
    }

    fn lock(&self) -> Option<String> {
        match self {
            Self::Checkout(path) => fs::read_to_string(path.join("Cargo.lock")).ok(),
            Self::Release => None,
        }
    }
}

fn is_dragline(path: &Path) -> bool {
    fs::read_to_string(path.join("Cargo.toml")).is_ok_and(|text| text.lines().any(|line| line.trim() == "name = \"dragline\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn args(name: &str) -> NewArgs {
        NewArgs { name: name.into(), dragline_path: None }
    }

    #[test]
    fn a_project_has_everything_and_nothing_unfilled() {
        let place = tempfile::tempdir().unwrap();
        new(&args("my-crawler"), place.path()).unwrap();
        let read = |file: &str| fs::read_to_string(place.path().join("my-crawler").join(file)).unwrap();
        let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("my-crawler"));
        assert_eq!(manifest["dependencies"]["dragline"]["path"].as_str(), Some(BUILT_FROM));
        assert!(manifest.contains_key("workspace"));
        for file in ["src/main.rs", "spiders/mod.rs", "spiders/books.rs", "README.md", ".gitignore", "Cargo.lock"] {
            assert!(!read(file).is_empty() && !read(file).contains("{{"), "{file}");
        }
        let settings = crate::settings::Layers::new().default_file(&place.path().join("my-crawler")).resolve().unwrap();
        assert!(settings.settings_file().is_some());

        let again = new(&args("my-crawler"), place.path()).unwrap_err();
        assert!(again.code() == 64 && again.to_string().contains("not empty"), "{again}");
    }

    #[test]
    fn names_that_cargo_refuses_are_refused_here() {
        let place = tempfile::tempdir().unwrap();
        for name in ["dragline", "test", "2x", "a b", "..", "ä"] {
            let error = new(&args(name), place.path()).unwrap_err();
            assert!(error.to_string().contains("cannot name a project"), "{name}: {error}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_path_that_is_no_checkout_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let args = NewArgs { dragline_path: Some(".".into()), ..args("x") };
        let error = new(&args, place.path()).unwrap_err();
        assert!(error.to_string().contains("--dragline-path"), "{error}");
        assert_eq!(Source::Checkout("/a \"b".into()).dependency(), "{ path = '/a \"b' }");
    }
}
