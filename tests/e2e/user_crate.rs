//! A crate of a user: built with cargo, run against a small server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::books_of_a_job::{logs_with, stat};
use super::harness::{DRAGLINE, Folder, Running};
use super::server::{Answer, Server};

/// The folder cargo builds this test into, shared with what the tests build.
pub(crate) fn target() -> PathBuf {
    Path::new(DRAGLINE).parent().and_then(Path::parent).unwrap().to_owned()
}

/// Builds a crate without asking a registry; answers its program.
pub(crate) fn build(manifest: &Path, program: &str) -> PathBuf {
    let profile = Path::new(DRAGLINE).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--manifest-path"]).arg(manifest).env("CARGO_TARGET_DIR", target());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    // What cargo tells its children about this package is not about the other one.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR") {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    profile.join(program)
}

/// The program of `tests/user-crate`.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let dragline = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (from, to) = (dragline.join("tests/user-crate"), Path::new(env!("CARGO_TARGET_TMPDIR")).join("user-crate"));
        std::fs::create_dir_all(to.join("src")).unwrap();
        // Built away from the checkout, which stays as it is: the lock file and the path are its own.
        let manifest = std::fs::read_to_string(from.join("Cargo.toml")).unwrap();
        put(&to.join("Cargo.toml"), &manifest.replace("\"../..\"", &format!("{dragline:?}")));
        put(&to.join("Cargo.lock"), &std::fs::read_to_string(dragline.join("Cargo.lock")).unwrap());
        for entry in std::fs::read_dir(from.join("src")).unwrap() {
            let path = entry.unwrap().path();
            put(&to.join("src").join(path.file_name().unwrap()), &std::fs::read_to_string(&path).unwrap());
        }
        build(&to.join("Cargo.toml"), "user-crate")
    })
}

/// Writes a file that has changed; another one keeps its time, so that cargo builds nothing again.
fn put(path: &Path, text: &str) {
    let lock = path.ends_with("Cargo.lock") && path.exists();
    if !lock && std::fs::read_to_string(path).ok().as_deref() != Some(text) {
        std::fs::write(path, text).unwrap();
    }
}

/// Starts the user's program.
pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Running {
    Running::of(folder.command_of(program(), arguments))
}

fn shop() -> Server {
    Server::start(|asked| match asked.path() {
        "/" => Answer::html(
            "<a class=product href=/a>a</a> <a class=product href=/free>b</a> <a class=product href=/gone>c</a>
             <a class=product href=/refused>d</a> <a class=product href=/broken>e</a> <a class=product href=/panic>f</a>
             <a class=next href=/2>next</a>",
        ),
        "/2" => Answer::html("<a class=product href=/busy>g</a>"),
        "/gone" => Answer::status(410),
        "/free" => Answer::html("<p>take it</p>"),
        "/busy" => Answer::html("try again, please"),
        _ => Answer::html("<p class=price>3.50</p>"),
    })
}

#[test]
fn everything_a_user_writes_takes_part_in_a_crawl() {
    let server = shop();
    let folder = Folder::new();
    folder.write_secret(
        "identities.toml",
        "[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"one\"\njson = { pin = 41 }\nheaders = { X-Key = \"k\" }\n",
    );
    let url = format!("url={}", server.url("/"));
    let arguments = [
        "crawl",
        "shop",
        "-a",
        &url,
        "-a",
        "tags=x,y",
        "-s",
        "IDENTITIES=identities.toml",
        "-s",
        "STATS_DUMP=false",
        "-o",
        "items.jsonl",
    ];
    let ended = start(&folder, &arguments).end().with_code(0);

    let asked = server.asked();
    let pages: BTreeMap<&str, &super::server::Asked> = asked.iter().map(|asked| (asked.path(), asked)).collect();
    for (path, asked) in pages.iter().filter(|(path, _)| **path != "/robots.txt") {
        let depth = match *path {
            "/" | "/late" => 0,
            "/busy" => 2,
            _ => 1,
        };
        assert_eq!(asked.header("x-stamp"), Some(format!("user-crate depth {depth}").as_str()), "{asked:?}");
        assert_eq!(asked.header("x-signed"), Some(format!("{path}42").as_str()), "{asked:?}");
        assert_eq!(asked.header("x-key"), Some("k"), "{asked:?}");
        assert_eq!(asked.header("x-first").is_some(), *path == "/", "{asked:?}");
    }
    assert!(!pages.contains_key("/refused"), "the middleware refused it");
    assert_eq!(server.times("/busy"), 3, "the middleware had it repeated");
    assert_eq!(server.times("/late"), 1, "idle added it");

    let items = folder.items("items.jsonl");
    let found: BTreeSet<String> = items
        .iter()
        .map(|item| {
            assert!(item["number"].is_u64(), "numbered: {item}");
            let mut item = item.clone();
            item.as_object_mut().unwrap().remove("number");
            item.to_string()
        })
        .collect();
    let expected: BTreeSet<String> = [
        r#"{"kind":"product","sku":"a","price":"3.50","tags":["x","y"]}"#,
        r#"{"kind":"missing","sku":"gone","why":"http_status","status":410}"#,
        r#"{"kind":"missing","sku":"refused","why":"middleware","status":null}"#,
        r#"{"kind":"missing","sku":"busy","why":"middleware","status":200}"#,
        r#"{"kind":"late","depth":0}"#,
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(found, expected, "{ended}");

    assert_eq!(
        (stat(&folder, "diary/opened"), stat(&folder, "diary/scraped"), stat(&folder, "diary/dropped")),
        (Some(1), Some(5), Some(1))
    );
    assert_eq!(stat(&folder, "diary/error"), Some(2), "one error, one panic");
    assert!(stat(&folder, "diary/idle") >= Some(2));
    ended.says(&[
        "listing 1 has 6 products",
        "diary: closed because finished",
        "this page is beyond repair",
        "a fault of the user",
    ]);
    assert_eq!(logs_with(&folder, "listing 1 has 6 products"), 1, "prints are records of the log");
    assert_eq!(ended.out, "", "standard output is for what was asked for");
}

#[test]
fn a_user_s_program_has_the_same_verbs() {
    let folder = Folder::new();
    let listed = start(&folder, &["list"]).end();
    assert_eq!(
        (listed.code, listed.out.as_str()),
        (Some(0), "bookshop\nchains\nflood\nmyspider\npages\npaths\nseeds\nshop\n"),
        "{listed}"
    );
    let said = start(&folder, &["crawl", "path"]).end();
    assert_eq!(said.code, Some(64), "{said}");
    said.says(&["did you mean \"paths\"?"]);
    let pipeline =
        start(&folder, &["crawl", "shop", "-a", "url=http://127.0.0.1:1/", "-s", "ITEM_PIPELINES={\"prised\": 1}"]).end();
    assert_eq!(pipeline.code, Some(64), "{pipeline}");
    pipeline.says(&["\"prised\" is not registered", "numbered, priced"]);
}

#[test]
fn an_identity_that_cannot_sign_fails_the_request_with_the_reason() {
    let server = shop();
    let folder = Folder::new();
    let ended = start(&folder, &["crawl", "shop", "-a", &format!("url={}", server.url("/"))]).end();
    ended.says(&["the identity has no pin"]);
    assert_eq!(server.times("/"), 0, "{ended}");
}
