//! `genspider NAME DOMAIN_OR_URL`: a new spider in a project, registered.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use url::Url;

use super::exit::CliError;
use super::project::{SpiderName, fill, register};

/// What a new spider is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Template {
    /// Follows every link and makes an item of every page
    #[default]
    Basic,
    /// Follows links by rules: the first that takes a link says where it goes
    Crawl,
    /// Makes an item of every page that the sitemaps of a site list
    Sitemap,
    /// Makes an item of every row of a CSV feed
    Csvfeed,
    /// Makes an item of every element of a name in an XML feed
    Xmlfeed,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Basic => include_str!("templates/spider.rs.txt"),
            Self::Crawl => include_str!("templates/crawl.rs.txt"),
            Self::Sitemap => include_str!("templates/sitemap.rs.txt"),
            Self::Csvfeed => include_str!("templates/csvfeed.rs.txt"),
            Self::Xmlfeed => include_str!("templates/xmlfeed.rs.txt"),
        }
    }
}

/// Adds a spider to this project: a file in spiders/, and a line in spiders/mod.rs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline genspider news example.org
  dragline genspider my-shop https://shop.example/books --force
  dragline genspider -t crawl library example.org
  dragline genspider -t sitemap archive example.org
  dragline genspider -t xmlfeed blog https://example.org/rss.xml")]
pub(crate) struct GenspiderArgs {
    /// Name of the spider: letters, digits, `-` and `_`
    name: String,
    /// Where it starts: a domain (https is used) or a whole URL
    #[arg(value_name = "DOMAIN_OR_URL")]
    target: String,
    /// What kind of spider
    #[arg(short, long, value_enum, default_value_t)]
    template: Template,
    /// Replace a spider file that is there
    #[arg(long)]
    force: bool,
}

/// Runs the verb in the project around `directory`; answers what was done.
///
/// # Errors
/// When there is no project, the name or address does not fit, or a file is in the way.
pub(crate) fn genspider(args: &GenspiderArgs, directory: &Path) -> Result<String, CliError> {
    let name = SpiderName::parse(&args.name).map_err(CliError::usage)?;
    let url = address(&args.target)?;
    let project = project(directory)?;
    let list = project.join("spiders/mod.rs");
    let file = project.join(format!("spiders/{}.rs", name.module));
    if file.exists() && !args.force {
        return Err(CliError::usage(format!("{} exists; give another name, or --force to replace it", file.display())));
    }
    let cannot = |doing: &str, path: &Path| {
        let text = format!("cannot {doing} {}", path.display());
        move |error: std::io::Error| CliError::usage(format!("{text}: {error}; check the folder's permissions"))
    };
    let text = fs::read_to_string(&list).map_err(cannot("read", &list))?;
    let registered = register(&text, &name).map_err(|why| CliError::usage(format!("{}: {why}", list.display())))?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let spider =
        fill(args.template.text(), &[("name", &name.name), ("type", &name.type_name), ("url", url.as_str()), ("host", &host)]);
    fs::write(&file, spider).map_err(cannot("write", &file))?;
    if registered != text {
        fs::write(&list, registered).map_err(cannot("write", &list))?;
    }
    Ok(format!(
        "wrote spiders/{}.rs and registered it in spiders/mod.rs\nnext: cargo run -- crawl {} -o {}.jsonl\n",
        name.module, name.name, name.name
    ))
}

/// The nearest folder upwards that has both a manifest and a list of spiders.
fn project(directory: &Path) -> Result<PathBuf, CliError> {
    let from = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let found = from.ancestors().find(|folder| folder.join("Cargo.toml").is_file() && folder.join("spiders/mod.rs").is_file());
    found.map(Path::to_owned).ok_or_else(|| {
        CliError::usage(format!(
            "{} is in no project: there is no spiders/mod.rs beside a Cargo.toml here or above; make one with `new NAME`, or go to its folder",
            from.display()
        ))
    })
}

fn address(target: &str) -> Result<Url, CliError> {
    let text = if target.contains("://") { target.to_owned() } else { format!("https://{target}/") };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
    // A quote would end the text it is written into; the URL parser escapes it everywhere but in a fragment.
    let url = url.filter(|url| !url.as_str().contains(['"', '\\', '{', '}']));
    url.ok_or_else(|| {
        CliError::usage(format!("{target:?} is neither a domain nor a URL; write example.org or https://example.org/start"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn args(name: &str, target: &str, force: bool) -> GenspiderArgs {
        GenspiderArgs { name: name.to_owned(), target: target.to_owned(), template: Template::Basic, force }
    }

    #[test]
    fn every_template_is_filled_and_names_its_spider() {
        let project = a_project();
        for template in Template::value_variants() {
            let args = GenspiderArgs { template: *template, ..args("my-news", "example.org", true) };
            genspider(&args, project.path()).unwrap();
            let spider = fs::read_to_string(project.path().join("spiders/my_news.rs")).unwrap();
            for part in
                ["const NAME: &'static str = \"my-news\";", "impl Spider for MyNews {", "\"https://example.org/\"", "example.org"]
            {
                assert!(spider.contains(part), "{template:?} {part}: {spider}");
            }
            assert!(!spider.contains("{{"), "{template:?}: {spider}");
        }
    }

    fn a_project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("spiders/deep")).unwrap();
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        fs::write(folder.path().join("spiders/mod.rs"), include_str!("templates/spiders_mod.rs.txt")).unwrap();
        folder
    }

    #[test]
    fn a_spider_is_written_and_registered_once() {
        let project = a_project();
        genspider(&args("my-news", "example.org", false), &project.path().join("spiders/deep")).unwrap();
        let read = |file: &str| fs::read_to_string(project.path().join("spiders").join(file)).unwrap();
        let (spider, list) = (read("my_news.rs"), read("mod.rs"));
        assert!(
            spider.contains("const NAME: &'static str = \"my-news\";") && spider.contains("\"https://example.org/\""),
            "{spider}"
        );
        assert!(!spider.contains("{{"), "{spider}");
        assert!(list.contains("mod my_news;\n") && list.contains(".spider::<my_news::MyNews>()"), "{list}");

        let again = genspider(&args("my-news", "http://example.org/x", false), project.path()).unwrap_err();
        assert!(again.code() == 64 && again.to_string().contains("--force"), "{again}");
        genspider(&args("my-news", "http://example.org/x", true), project.path()).unwrap();
        assert_eq!(read("mod.rs"), list, "registered once");
        assert!(read("my_news.rs").contains("\"http://example.org/x\""));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let project = a_project();
        for (name, target, part) in [
            ("mod", "example.org", "word of Rust"),
            ("news", "ftp://example.org", "domain"),
            ("news", "two words", "domain"),
            ("news", "https://x/#\"{", "domain"),
        ] {
            let error = genspider(&args(name, target, false), project.path()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(fs::read_dir(project.path().join("spiders")).unwrap().count(), 2);
        let error = genspider(&args("news", "example.org", false), tempfile::tempdir().unwrap().path()).unwrap_err();
        assert!(error.to_string().contains("new NAME"), "{error}");
    }
}
