//! The whole actor on a paused clock: a settings file on disk, a feed by script, a tap in the engine's place.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::*;
use crate::actor::{Inbox, Place, Policy, Supervised, Tap, run_local, supervise};
use crate::api::args::Arguments;
use crate::plane::scripted::{ScriptedFeed, configured};

const SECOND: Duration = Duration::from_secs(1);

struct Stage {
    dir: tempfile::TempDir,
    engine: Tap<(), EngineControl>,
    told: Arc<Mutex<usize>>,
    stats: Stats,
    context: Context,
    feed: Arc<ScriptedFeed>,
    actor: Supervised<ConfigCenter>,
    began: Arc<Settings>,
}

impl Stage {
    /// Over this file and these overrides, following `crawl/limits` and `crawl/more`.
    fn start(text: &str, overrides: &str, feed: Arc<ScriptedFeed>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dragline.toml");
        std::fs::write(&path, text).unwrap();
        let layers = Layers::new().file(&path).set(overrides).set("CONFIG_WATCH=crawl/limits,crawl/more");
        let settings = Arc::new(layers.resolve().unwrap().settings);
        let engine: Tap<(), EngineControl> = Tap::new("engine", 4);
        let told = Arc::new(Mutex::new(0));
        let counter = told.clone();
        let stats = Stats::new();
        let context = Context::new("shop", "1", Arguments::default(), settings.clone(), stats.clone(), |_| {});
        let following = Following::begin(Parts {
            layers,
            file: Some(FollowedFile { seen: stamp(&path), path, poll: SECOND }),
            settings,
            feed: Some(feed.clone()),
            items: vec![ConfigKey::new("crawl", "limits"), ConfigKey::new("crawl", "more")],
            context: context.clone(),
            engine: engine.controls(),
            on_change: Arc::new(move |_| *counter.lock().unwrap() += 1),
            stats: stats.clone(),
        });
        let began = following.settings();
        let inbox = Inbox::new("config", 1);
        let make = move |_| ConfigCenter::new(following.clone());
        let actor = supervise(Place::Here, &inbox, Policy::default(), make, |_| {});
        Self { dir, engine, told, stats, context, feed, actor, began }
    }

    fn write(&self, text: &str) {
        std::fs::write(self.dir.path().join("dragline.toml"), text).unwrap();
    }

    fn publish(&self, version: i32, content: &str) {
        self.feed.publish(configured("crawl/limits", version, "json", content));
    }

    /// What the engine was told within this time: settings as their concurrency, changed items as their version.
    async fn hears(&self, within: Duration) -> Vec<String> {
        tokio::time::sleep(within).await;
        std::iter::from_fn(|| self.engine.take_control())
            .map(|control| match control {
                EngineControl::Settings(settings) => format!("concurrency {}", settings.concurrent_requests),
                EngineControl::ConfigChanged(change) => {
                    // Who is told can read it already.
                    let seen = self.context.config(&change.group, &change.key).unwrap();
                    assert!(seen.version() >= change.version);
                    format!("{}/{} {}", change.group, change.key, change.version)
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

#[test]
fn a_changed_file_changes_live_settings_and_nothing_above_its_layer() {
    run_local(async {
        let stage = Stage::start("CONCURRENT_REQUESTS = 4\nDOWNLOAD_DELAY = 1\n", "DOWNLOAD_DELAY=3", ScriptedFeed::new());
        assert!(stage.hears(5 * SECOND).await.is_empty());
        stage.write("CONCURRENT_REQUESTS = 40\nDOWNLOAD_DELAY = 2\nDEPTH_LIMIT = 9\n");
        tokio::time::sleep(SECOND + SECOND / 2).await;
        let Some(EngineControl::Settings(settings)) = stage.engine.take_control() else { panic!() };
        assert_eq!(settings.concurrent_requests, 40);
        assert_eq!(settings.download_delay, 3 * SECOND, "the command line stays above the file");
        assert_eq!(settings.depth_limit, 0, "not a live key");
        assert_eq!(*stage.told.lock().unwrap(), 1);
        assert_eq!(stage.stats.count("config/reloads"), 1);
    });
}

#[test]
fn a_broken_file_changes_nothing_and_the_next_good_one_does() {
    run_local(async {
        let stage = Stage::start("CONCURRENT_REQUESTS = 4\n", "LOG_LEVEL=INFO", ScriptedFeed::new());
        stage.write("CONCURRENT_REQUESTS = \"many\"\n");
        assert!(stage.hears(2 * SECOND).await.is_empty());
        assert_eq!(stage.stats.count("config/errors"), 1);
        stage.write("CONCURRENT_REQUESTS = 12345\n");
        assert_eq!(stage.hears(2 * SECOND).await, ["concurrency 12345"]);
    });
}

#[test]
fn what_the_items_say_at_the_start_is_in_effect_before_anything_begins() {
    run_local(async {
        let feed = ScriptedFeed::new();
        feed.keep(configured("crawl/limits", 3, "json", r#"{"CONCURRENT_REQUESTS": 7, "own": "words"}"#));
        let stage = Stage::start("CONCURRENT_REQUESTS = 4\n", "LOG_LEVEL=INFO", feed);
        assert_eq!(stage.began.concurrent_requests, 7);
        assert_eq!(stage.context.settings().concurrent_requests, 7);
        let value = stage.context.config("crawl", "limits").unwrap();
        assert_eq!((value.version(), value.json().unwrap()["own"].as_str()), (3, Some("words")));
        assert!(stage.context.config("crawl", "more").is_none());
        assert!(stage.hears(5 * SECOND).await.is_empty(), "no signal tells of what was there");
        assert_eq!((*stage.told.lock().unwrap(), stage.stats.count("config/items")), (1, 1));
    });
}

#[test]
fn a_published_item_is_in_effect_within_a_second_and_told_after_the_settings() {
    run_local(async {
        let stage = Stage::start("CONCURRENT_REQUESTS = 4\n", "LOG_LEVEL=INFO", ScriptedFeed::new());
        assert!(stage.hears(10 * SECOND).await.is_empty());
        stage.publish(1, r#"{"CONCURRENT_REQUESTS": 9}"#);
        assert_eq!(stage.hears(SECOND).await, ["concurrency 9", "crawl/limits 1"]);
        stage.publish(2, r#"{"CONCURRENT_REQUESTS": 9, "own": 1}"#);
        assert_eq!(stage.hears(SECOND).await, ["crawl/limits 2"], "settings that did not change are not told");
        assert_eq!(stage.stats.count("config/changes"), 2);
    });
}

#[test]
fn a_refused_version_is_told_to_nobody_and_the_old_one_stays_readable() {
    run_local(async {
        let stage = Stage::start("", "LOG_LEVEL=INFO", ScriptedFeed::new());
        stage.publish(1, r#"{"CONCURRENT_REQUESTS": 9, "own": "a"}"#);
        stage.hears(SECOND).await;
        stage.publish(2, r#"{"CONCURRENT_REQUESTS": -1, "own": "b"}"#);
        assert!(stage.hears(SECOND).await.is_empty());
        let value = stage.context.config("crawl", "limits").unwrap();
        assert_eq!((value.version(), value.json().unwrap()["own"].as_str()), (1, Some("a")));
        assert_eq!(stage.stats.count("config/refused"), 1);
    });
}

#[test]
fn of_a_burst_the_newest_version_counts() {
    run_local(async {
        let stage = Stage::start("", "LOG_LEVEL=INFO", ScriptedFeed::new());
        for version in 1..=1000 {
            stage.publish(version, &format!("{{\"CONCURRENT_REQUESTS\": {version}}}"));
        }
        stage.feed.publish(configured("crawl/more", 1, "text", "hello"));
        stage.feed.publish(configured("not/followed", 1, "text", "hello"));
        assert_eq!(stage.hears(SECOND).await, ["concurrency 1000", "crawl/limits 1000", "crawl/more 1"]);
        assert_eq!((stage.stats.count("config/changes"), stage.stats.count("config/reloads")), (2, 1));
    });
}

#[test]
fn a_changed_file_and_a_changed_item_meet_in_the_settings() {
    run_local(async {
        let stage = Stage::start("CONCURRENT_REQUESTS = 4\n", "LOG_LEVEL=INFO", ScriptedFeed::new());
        stage.publish(1, r#"{"DOWNLOAD_DELAY": 5}"#);
        stage.hears(SECOND / 4).await;
        stage.write("CONCURRENT_REQUESTS = 40\nDOWNLOAD_DELAY = 1\n");
        tokio::time::sleep(2 * SECOND).await;
        let Some(EngineControl::Settings(settings)) = stage.engine.take_control() else { panic!() };
        assert_eq!((settings.concurrent_requests, settings.download_delay), (40, 5 * SECOND));
    });
}

#[test]
fn a_feed_that_ends_is_said_once_and_what_it_said_stays() {
    run_local(async {
        let stage = Stage::start("", "LOG_LEVEL=INFO", ScriptedFeed::new());
        stage.publish(1, r#"{"CONCURRENT_REQUESTS": 9}"#);
        stage.hears(SECOND).await;
        stage.feed.end();
        assert!(stage.hears(60 * SECOND).await.is_empty());
        assert_eq!(stage.stats.count("config/errors"), 1);
        assert_eq!(stage.context.config("crawl", "limits").unwrap().version(), 1);
        stage.write("RETRY_TIMES = 77\n");
        assert_eq!(stage.hears(2 * SECOND).await, ["concurrency 9"], "the file is still followed");
    });
}

#[test]
fn after_a_panic_the_items_are_still_over_the_file_and_nothing_told_meanwhile_is_lost() {
    run_local(async {
        let stage = Stage::start("CONCURRENT_REQUESTS = 4\n", "LOG_LEVEL=INFO", ScriptedFeed::new());
        stage.publish(1, r#"{"CONCURRENT_REQUESTS": 9, "RETRY_TIMES": 5}"#);
        stage.hears(SECOND).await;
        let before = stage.actor.epoch();
        stage.publish(2, r#"{"CONCURRENT_REQUESTS": 10, "RETRY_TIMES": 5}"#);
        stage.feed.panic();
        assert_eq!(stage.hears(SECOND).await, ["concurrency 10", "crawl/limits 2"]);
        assert_eq!(stage.actor.epoch(), before.next());
        stage.write("CONCURRENT_REQUESTS = 5\nRETRY_TIMES = 66\nDOWNLOAD_DELAY = 2\n");
        tokio::time::sleep(2 * SECOND).await;
        let Some(EngineControl::Settings(settings)) = stage.engine.take_control() else { panic!() };
        assert_eq!((settings.concurrent_requests, settings.retry_times, settings.download_delay), (10, 5, 2 * SECOND));
        stage.publish(3, r#"{"CONCURRENT_REQUESTS": 11}"#);
        assert_eq!(stage.hears(SECOND).await, ["concurrency 11", "crawl/limits 3"]);
    });
}
