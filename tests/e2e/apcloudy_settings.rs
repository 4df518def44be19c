//! Settings for APCloudy in a whole program: told apart at the start, and no key in anything it says.

use super::harness::{Ended, Folder, Running};
use super::server::{Answer, Server};

const NOWHERE: &str = "url=http://127.0.0.1:1/";

fn run(folder: &Folder, environment: &[(&str, &str)], arguments: &[&str]) -> Ended {
    let mut command = folder.command(arguments);
    command.envs(environment.iter().copied());
    Running::of(command).end()
}

#[test]
fn components_of_a_scrapy_project_are_taken_with_one_line_about_them() {
    let server = Server::start(|_| Answer::html("<title>x</title>"));
    let folder = Folder::new();
    folder.write(
        "dragline.yaml",
        "ITEM_PIPELINES:\n  apcloudy_pipeline.pipelines.APCloudyItemPipeline: 300\n\
         DOWNLOADER_MIDDLEWARES:\n  apcloudy_pipeline.middleware.APCloudyErrorMiddleware: 50\n\
         EXTENSIONS:\n  apcloudy_pipeline.request_logger.APCloudyRequestLogger: 100\n  \
         apcloudy_pipeline.extensions.APCloudyLoggingExtension: 200\n  \
         apcloudy_pipeline.extensions.APCloudyStatsExtension: 500\n",
    );
    let url = format!("url={}", server.url("/"));
    let ended = folder.run(&["crawl", "bench", "-a", &url, "-c", "dragline.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.contains("apcloudy_pipeline.")).collect();
    assert_eq!(lines.len(), 1, "{ended}");
    for part in ["INFO", "built in", "ITEM_PIPELINES (", "DOWNLOADER_MIDDLEWARES (", "EXTENSIONS (", "APCloudyStatsExtension"] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }

    let said = folder.refused(&["crawl", "bench", "-a", &url, "-s", "EXTENSIONS={\"apcloudy_pipeline.extensions.Own\": 1}"]);
    assert!(said.contains("\"apcloudy_pipeline.extensions.Own\" is not registered"), "{said}");
}

#[test]
fn what_is_missing_for_a_backend_is_told_before_anything_starts() {
    let folder = Folder::new();
    let url = ("APCLOUDY_URL", "http://127.0.0.1:1/");
    let keys = [("APCLOUDY_API_KEY", "canary-1"), ("APCLOUDY_SECRET_KEY", "canary-2")];
    for (environment, more, parts) in [
        (&keys[..1], &[][..], &["APCLOUDY_API_KEY (environment variable APCLOUDY_API_KEY)", "APCLOUDY_URL (not set)"][..]),
        (&keys[..], &[], &["APCLOUDY_SECRET_KEY (environment", "without APCLOUDY_URL (not set);"]),
        (&[url], &[], &["APCLOUDY_API_KEY (not set)", "APCLOUDY_SECRET_KEY (not set)"]),
        (&[url, keys[0], keys[1]], &[], &["JOB_ID is not set", "APCLOUDY_URL", "-a JOB_ID=ID"]),
        (&[url, keys[0], keys[1]], &["-a", "JOB_ID="], &["JOB_ID is not set", "APCLOUDY_URL"]),
        (&[("JOB_ID", "")], &[], &["JOB_ID (environment variable JOB_ID)", "whole number other than 0"]),
        (&[], &["-s", "JOB_ID="], &["JOB_ID (-s)", "whole number other than 0"]),
        (&[], &["-s", "APCLOUDY_URL=http://me:canary@a.example"], &["APCLOUDY_URL (-s)", "user or password"]),
        (&[], &["-s", "APCLOUDY_API_KEY=canary key"], &["APCLOUDY_API_KEY (-s)", "white space"]),
    ] {
        let ended = run(&folder, environment, &[&["crawl", "bookshop", "-a", NOWHERE][..], more].concat());
        assert_eq!(ended.code, Some(64), "{ended}");
        assert!(parts.iter().all(|part| ended.err.contains(part)), "{parts:?}: {ended}");
        assert!(!format!("{}{}", ended.out, ended.err).contains("canary"), "{ended}");
    }
    assert!(folder.files().is_empty(), "nothing was started: {:?}", folder.files());
}

#[test]
fn the_settings_in_effect_are_shown_without_the_keys() {
    let folder = Folder::new();
    folder.write("dragline.toml", "APCLOUDY_URL = 'https://a.example/api'\nAPCLOUDY_API_KEY = 'canary-1'\nJOB_ID = 5\n");
    for more in [&[][..], &["--json"], &["--get", "APCLOUDY_API_KEY"], &["--get", "APCLOUDY_SECRET_KEY"]] {
        let call = [&["settings", "-s", "RETRY_TIMES=1"][..], more].concat();
        let ended = run(&folder, &[("APCLOUDY_SECRET_KEY", "canary-2")], &call);
        assert_eq!(ended.code, Some(0), "{ended}");
        assert!(ended.out.contains("[redacted]") && !format!("{}{}", ended.out, ended.err).contains("canary"), "{ended}");
    }
}
