//! Items over layers: what is taken, what is refused, what is said.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::Duration;

use super::*;
use crate::plane::scripted::configured;
use crate::settings::Environment;

struct Stage {
    state: State,
    stats: Stats,
}

impl Stage {
    /// A state over these layers that follows `crawl/limits` and `crawl/more`.
    fn over(layers: Layers) -> Self {
        let stats = Stats::new();
        let settings = Arc::new(layers.resolve().unwrap().settings);
        let keys = [ConfigKey::new("crawl", "limits"), ConfigKey::new("crawl", "more")];
        Self { state: State::new(layers, settings, None, &keys, stats.clone()), stats }
    }

    fn hear(&mut self, told: impl IntoIterator<Item = Configured>) -> Outcome {
        self.state.hear(told, "2026-01-02T00:00:00Z".parse().unwrap())
    }

    fn json(&mut self, version: i32, content: &str) -> Outcome {
        self.hear([configured("crawl/limits", version, "json", content)])
    }
}

fn lines(outcome: &Outcome) -> Vec<String> {
    outcome.lines.iter().map(|line| format!("{:?} {}", line.level, line.text)).collect()
}

#[test]
fn an_item_goes_over_the_file_and_a_later_item_over_an_earlier_one() {
    let mut stage = Stage::over(Layers::new().with_file(Path::new("s.toml"), "CONCURRENT_REQUESTS = 2\nDOWNLOAD_DELAY = 9"));
    let told = [
        configured("crawl/more", 1, "text", "CONCURRENT_REQUESTS = 5"),
        configured("crawl/limits", 7, "yaml", "CONCURRENT_REQUESTS: 4\nRETRY_TIMES: 6\nown: [1]"),
        configured("other/item", 1, "json", "{\"CONCURRENT_REQUESTS\": 99}"),
    ];
    let outcome = stage.hear(told);
    let settings = outcome.settings.clone().unwrap();
    assert_eq!((settings.concurrent_requests, settings.retry_times, settings.download_delay.as_secs()), (5, 6, 9));
    assert_eq!(outcome.taken.len(), 2);
    assert_eq!(
        lines(&outcome),
        [
            "Info config item crawl/limits, version 7 is in use",
            "Info config item crawl/more, version 1 is in use",
            "Info settings changed: CONCURRENT_REQUESTS, RETRY_TIMES",
        ]
    );
    assert_eq!((stage.stats.count("config/items"), stage.stats.count("config/refused")), (2, 0));

    let outcome = stage.hear([configured("crawl/more", 2, "text", "")]);
    assert_eq!(outcome.settings.unwrap().concurrent_requests, 4, "without the later item the earlier one counts");
    let outcome = stage.json(8, "{}");
    assert_eq!(outcome.settings.unwrap().concurrent_requests, 2, "and without both the file");
}

#[test]
fn a_version_with_one_wrong_value_is_refused_and_the_old_one_stays_whole() {
    let mut stage = Stage::over(Layers::new());
    stage.json(1, r#"{"CONCURRENT_REQUESTS": 4, "RETRY_TIMES": 7}"#);
    let outcome = stage.json(2, r#"{"RETRY_TIMES": 1, "CONCURRENT_REQUESTS": "many"}"#);
    assert!(outcome.settings.is_none() && outcome.taken.is_empty());
    assert_eq!(
        lines(&outcome),
        [
            "Error config item crawl/limits, version 2 is refused, and what was in effect stays: setting CONCURRENT_REQUESTS: found string \
             \"many\"; allowed: a whole number from 1 to 100000"
        ]
    );
    assert_eq!((stage.state.settings().concurrent_requests, stage.state.settings().retry_times), (4, 7));
    assert_eq!(stage.stats.count("config/refused"), 1);
    assert!(lines(&stage.json(2, r#"{"RETRY_TIMES": 1, "CONCURRENT_REQUESTS": "many"}"#)).is_empty(), "a refusal is said once");
    assert_eq!(stage.json(3, r#"{"RETRY_TIMES": 1}"#).settings.unwrap().concurrent_requests, 16);
}

#[test]
fn keys_that_no_item_may_set_are_named_and_counted_and_the_others_count() {
    let mut stage = Stage::over(Layers::new());
    let outcome = stage.json(3, r#"{"SPINNERET_URL": "https://canary.example", "DOWNLOD_DELAY": 3, "DOWNLOAD_DELAY": 3}"#);
    assert_eq!(outcome.settings.as_ref().unwrap().download_delay, Duration::from_secs(3));
    let said = lines(&outcome);
    assert!(
        said[1].starts_with("Warn config item crawl/limits, version 3: setting SPINNERET_URL cannot change while"),
        "{said:?}"
    );
    assert!(
        said[2]
            .starts_with("Warn config item crawl/limits, version 3: unknown setting DOWNLOD_DELAY; did you mean DOWNLOAD_DELAY?")
    );
    assert!(!said.concat().contains("canary"));
    assert_eq!(stage.stats.count("config/refused"), 2);

    let many: Vec<String> = (0..500).map(|n| format!("\"X{n}\": 1")).collect();
    let outcome = stage.json(4, &format!("{{{}}}", many.join(",")));
    assert_eq!(outcome.lines.iter().filter(|line| line.level == Level::Warn).count(), NAMED + 1);
    assert_eq!(stage.stats.count("config/refused"), 502);
}

#[test]
fn what_spider_environment_and_command_line_say_wins_with_a_line_that_says_so() {
    let layers = Layers::new()
        .spider([("DOWNLOAD_DELAY", serde_json::json!(1))])
        .env(Environment::of([("DRAGLINE_RETRY_TIMES", "3")]))
        .set("CONCURRENT_REQUESTS=8");
    let mut stage = Stage::over(layers);
    let outcome = stage.json(1, r#"{"DOWNLOAD_DELAY": 5, "RETRY_TIMES": 5, "CONCURRENT_REQUESTS": 5, "LOG_LEVEL": "ERROR"}"#);
    let settings = outcome.settings.clone().unwrap();
    assert_eq!((settings.download_delay.as_secs(), settings.retry_times, settings.concurrent_requests), (1, 3, 8));
    assert_eq!(settings.log_level, crate::settings::LogLevel::Error);
    let why = "has no effect, as what is given elsewhere goes before it";
    assert_eq!(
        lines(&outcome)[1..],
        [
            format!("Info config item crawl/limits, version 1: DOWNLOAD_DELAY {why}: spider"),
            format!("Info config item crawl/limits, version 1: RETRY_TIMES {why}: environment variable DRAGLINE_RETRY_TIMES"),
            format!("Info config item crawl/limits, version 1: CONCURRENT_REQUESTS {why}: -s"),
            "Info settings changed: LOG_LEVEL".to_owned(),
        ]
    );
}

#[test]
fn settings_that_do_not_fit_together_are_refused_and_fit_when_they_come_together() {
    let mut stage = Stage::over(Layers::new());
    let outcome = stage.json(1, r#"{"RETRY_BACKOFF": 90}"#);
    assert!(outcome.taken.is_empty());
    let said = lines(&outcome).concat();
    assert!(said.contains("version 1 is refused, and what was in effect stays: settings RETRY_BACKOFF (config item crawl/limits, version 1) and RETRY_BACKOFF_MAX (default) do not fit"), "{said}");

    let outcome = stage.hear([
        configured("crawl/limits", 2, "json", r#"{"RETRY_BACKOFF": 91}"#),
        configured("crawl/more", 1, "json", r#"{"RETRY_BACKOFF_MAX": 100}"#),
    ]);
    assert_eq!((outcome.taken.len(), outcome.settings.unwrap().retry_backoff.as_secs()), (2, 91));

    // One that must be refused does not take the other with it, wherever it stands.
    let outcome = stage.hear([
        configured("crawl/limits", 3, "json", r#"{"RETRY_BACKOFF": 2, "CONCURRENT_REQUESTS": 3}"#),
        configured("crawl/more", 2, "json", r#"{"RETRY_BACKOFF_MAX": 1}"#),
    ]);
    assert_eq!(outcome.taken.len(), 1);
    assert_eq!(outcome.settings.unwrap().concurrent_requests, 3);
    assert_eq!(stage.stats.count("config/refused"), 2);
}

#[test]
fn a_snapshot_is_taken_with_a_line_that_says_how_old_it_is() {
    let mut stage = Stage::over(Layers::new());
    let mut old = configured("crawl/limits", 3, "json", r#"{"CONCURRENT_REQUESTS": 3}"#);
    old.from_snapshot = true;
    old.item.updated_at = Some("2026-01-01T22:30:00Z".parse().unwrap());
    let outcome = stage.hear([old]);
    assert_eq!(outcome.settings.as_ref().unwrap().concurrent_requests, 3);
    assert_eq!(
        lines(&outcome)[0],
        "Info config item crawl/limits, version 3 comes from the snapshot of an earlier run, as the control plane cannot be reached; it \
         was published 1h 30m ago"
    );
}

#[test]
fn an_item_with_secrets_is_in_effect_and_shown_nowhere() {
    let mut stage = Stage::over(Layers::new());
    let mut item =
        configured("crawl/limits", 1, "json", r#"{"RETRY_TIMES": 987, "RETRY_BACKOFF": 988, "RETRY_BACKOFF_MAX": 989}"#);
    item.item.has_secret_refs = true;
    let outcome = stage.hear([item.clone()]);
    let settings = outcome.settings.clone().unwrap();
    assert_eq!(settings.retry_times, 987);
    item.item.version = 2;
    item.item.content = r#"{"RETRY_TIMES": "987", "RETRY_BACKOFF": 988}"#.to_owned();
    let refused = stage.hear([item.clone()]);
    item.item.version = 3;
    item.item.content = r#"{"RETRY_BACKOFF": 988, "RETRY_BACKOFF_MAX": 987}"#.to_owned();
    let unfit = stage.hear([item]);
    assert_eq!(stage.stats.count("config/refused"), 2);
    let shown = format!(
        "{:?} {:?} {:?} {settings:?} {}",
        lines(&outcome),
        lines(&refused),
        lines(&unfit),
        stage.state.layers.resolve().unwrap()
    );
    assert!(!shown.contains("98"), "{shown}");
}

#[test]
fn a_table_that_is_none_any_more_is_refused_and_a_text_of_its_own_is_not() {
    let mut stage = Stage::over(Layers::new());
    let told = |version, text: &str| [configured("crawl/limits", version, "text", text)];
    assert_eq!(stage.hear(told(1, "some words")).taken.len(), 1);
    assert_eq!(stage.hear(told(2, "RETRY_TIMES = 5")).settings.unwrap().retry_times, 5);
    let outcome = stage.hear(told(3, "RETRY_TIMES = 5 or so"));
    assert!(outcome.taken.is_empty() && lines(&outcome)[0].contains("found a content that is no table"), "{:?}", lines(&outcome));
    assert_eq!(stage.state.settings().retry_times, 5);
}

#[test]
fn a_changed_file_and_a_changed_item_combine() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dragline.toml");
    std::fs::write(&path, "CONCURRENT_REQUESTS = 2\n").unwrap();
    let mut stage = Stage::over(Layers::new().file(&path));
    stage.json(1, r#"{"CONCURRENT_REQUESTS": 4}"#);

    std::fs::write(&path, "CONCURRENT_REQUESTS = 33\nRETRY_TIMES = 44\nDEPTH_LIMIT = 55\n").unwrap();
    let outcome = stage.state.look(&path);
    let settings = outcome.settings.clone().unwrap();
    assert_eq!((settings.concurrent_requests, settings.retry_times, settings.depth_limit), (4, 44, 0));
    assert_eq!(lines(&outcome)[0], "Warn these settings changed but need a restart: DEPTH_LIMIT");

    let outcome = stage.json(2, r#"{"RETRY_TIMES": 5}"#);
    let settings = outcome.settings.clone().unwrap();
    assert_eq!(
        (settings.concurrent_requests, settings.retry_times),
        (33, 5),
        "the file's newer value is there, under the item's"
    );
    assert!(!lines(&outcome).concat().contains("DEPTH_LIMIT"), "what needs a restart is said when the file changes");

    std::fs::write(&path, "RETRY_BACKOFF_MAX = nonsense\n").unwrap();
    assert!(stage.state.look(&path).settings.is_none());
    assert_eq!(stage.stats.count("config/errors"), 1);
    assert_eq!(stage.json(3, "{}").settings.unwrap().retry_times, 44, "a broken file leaves the last good one in place");
}

#[test]
fn a_plane_that_counts_anew_is_believed() {
    let mut stage = Stage::over(Layers::new());
    stage.json(9, r#"{"RETRY_TIMES": 9}"#);
    assert_eq!(stage.json(1, r#"{"RETRY_TIMES": 1}"#).settings.unwrap().retry_times, 1);
    assert!(stage.json(1, r#"{"RETRY_TIMES": 1}"#).taken.is_empty());
}
