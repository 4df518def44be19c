//! Configuration: read, watched, published by hand.

use super::*;
use crate::spinneret::{
    BatchGetConfigRequest, ConfigKey, Error, GetConfigRequest, WatchConfigRequest, WatchItem, WatcherOptions,
};

const SECOND: Duration = Duration::from_secs(1);

impl Stage {
    async fn publish(&self, key: &str, content: &str) -> i32 {
        let body = json!({"group": "crawler", "key": key, "format": "text", "content": content});
        let answer = self.act("config/publish", &body).await;
        let version = answer.json()["version"].as_i64().unwrap_or_else(|| panic!("{answer:?}"));
        i32::try_from(version).unwrap()
    }
}

fn watch(version: i32) -> WatchConfigRequest {
    WatchConfigRequest::new([WatchItem::new(("crawler", "a"), version)])
}

#[tokio::test]
async fn b173_a_watch_answers_at_once_blocks_until_its_time_and_is_woken_by_a_change() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let one = stage.publish("a", "one").await;
    let begin = Instant::now();
    let items = client.watch_config(watch(0)).await.unwrap();
    assert_eq!((items.len(), items[0].version, &*items[0].content), (1, one, "one"));
    assert!(begin.elapsed() < SECOND);

    let begin = Instant::now();
    assert_eq!(client.watch_config(watch(one).timeout(SECOND / 5)).await.unwrap(), []);
    assert!(begin.elapsed() >= SECOND / 5 && begin.elapsed() < SECOND);

    let (items, (two, told)) = tokio::join!(client.watch_config(watch(one)), async {
        tokio::time::sleep(SECOND / 5).await;
        stage.publish("b", "other").await;
        (stage.publish("a", "two").await, Instant::now())
    });
    assert!(told.elapsed() < SECOND / 2, "{:?}", told.elapsed());
    let items = items.unwrap();
    assert_eq!((items.len(), items[0].version, two > one), (1, two, true));
    stage.end().await;
}

#[tokio::test]
async fn b174_a_roll_back_wakes_with_a_higher_version_and_a_deletion_does_not() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let one = stage.publish("a", "one").await;
    let two = stage.publish("a", "two").await;
    let name = crate::plane::model::config_center::ItemName { group: "crawler", key: "a" };
    let (items, ()) = tokio::join!(client.watch_config(watch(two)), async {
        tokio::time::sleep(SECOND / 5).await;
        let answer = stage.act("config/roll_back", &json!({"group": "crawler", "key": "a", "version": one})).await;
        assert_eq!(answer.json(), json!({"version": two + 1}));
    });
    let items = items.unwrap();
    assert_eq!((items[0].version, &*items[0].content), (two + 1, "one"));
    let (items, ()) = tokio::join!(client.watch_config(watch(two + 1).timeout(SECOND / 2)), async {
        tokio::time::sleep(SECOND / 10).await;
        assert!(stage.face.with_plane(|plane, _| plane.config_center().delete(name)));
    });
    assert_eq!(items.unwrap(), []);
    assert_eq!(stage.publish("a", "three").await, two + 2);
    stage.end().await;
}

#[tokio::test]
async fn b175_another_namespace_is_refused() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    stage.publish("a", "one").await;
    let request = GetConfigRequest::new(("crawler", "a"));
    assert!(client.get_config(request.clone().namespace("prod")).await.is_ok());
    let error = client.get_config(request.namespace("test")).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (403, "scope_missing"));
    let error = client.watch_config(watch(0).namespace("test")).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (403, "scope_missing"));
    stage.end().await;
}

#[tokio::test]
async fn b176_references_to_secrets_are_resolved_for_who_may_read_them() {
    let stage = Stage::new(1).await;
    stage.publish("a", "key=${secret:signing/key#1}").await;
    let item = stage.client(ALL).get_config("crawler/a").await.unwrap();
    assert_eq!((&*item.content, item.has_secret_refs), ("key=s3cret-1", true));
    let error = stage.client(OTHER).get_config("crawler/a").await.unwrap_err();
    assert_eq!((error.http_status(), error.code().as_str()), (403, "permission_denied"));
    stage.publish("b", "${secret:signing/none}").await;
    let error = stage.client(ALL).get_config("crawler/b").await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (400, "failed_precondition"));
    stage.end().await;
}

#[tokio::test]
async fn b177_a_missing_item_is_listed_and_an_unreadable_group_spoils_the_call() {
    let stage = Stage::new(1).await;
    stage.publish("a", "one").await;
    let keys = |keys: &[&str]| BatchGetConfigRequest::new(keys.iter().copied()).unwrap();
    let batch = stage.client(OTHER).batch_get_config(keys(&["crawler/none", "crawler/a"])).await.unwrap();
    assert_eq!((batch.items.len(), batch.missing), (1, vec![ConfigKey::new("crawler", "none")]));
    let error = stage.client(OTHER).batch_get_config(keys(&["crawler/a", "_runtime/breakers"])).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason()), (403, "scope_missing"));
    stage.end().await;
}

#[tokio::test]
async fn b178_an_item_is_watched_once_and_served_once() {
    let stage = Stage::new(1).await;
    stage.publish("a", "one").await;
    let item = json!({"group": "crawler", "key": "a"});
    let twice = json!({"items": [item, item]});
    let watched = stage.ask("ConfigService/WatchConfig", ALL, &twice).await;
    assert_eq!(watched.refused(), refused(400, "invalid_argument", "invalid_argument"));
    let served = stage.ask("ConfigService/BatchGetConfig", ALL, &twice).await.json();
    assert_eq!(served["items"].as_array().unwrap().len(), 1);
    stage.end().await;
}

#[tokio::test]
async fn b180_a_stop_ends_held_polls_with_canceled_and_the_client_comes_again() {
    let stage = Stage::new(1).await;
    let one = stage.publish("a", "one").await;
    let address = stage.server.addr();
    let folder = tempfile::tempdir().unwrap();
    let options = WatcherOptions::new([("crawler", "a")]).cache_dir(folder.path());
    let watcher_client = stage.client(ALL);
    let watcher = watcher_client.config_watcher(options).unwrap();
    watcher.start().await.unwrap();
    assert_eq!(watcher.get(("crawler", "a")).unwrap().version, one);

    let client = stage.client(ALL);
    let (polled, ()) = tokio::join!(client.watch_config(watch(one)), async {
        tokio::time::sleep(SECOND / 5).await;
        stage.end().await;
    });
    let error = polled.unwrap_err();
    assert_eq!((error.http_status(), error.code().as_str(), error.reason()), (499, "canceled", ""));

    let stage = Stage::at(1, FaceOptions::default(), address).await;
    stage.publish("a", "one").await;
    let two = stage.publish("a", "two").await;
    let begin = Instant::now();
    while watcher.get(("crawler", "a")).unwrap().version != two {
        assert!(begin.elapsed() < 10 * SECOND, "the watcher does not come again");
        tokio::time::sleep(SECOND / 20).await;
    }
    watcher_client.close().await;
    stage.end().await;
}

#[tokio::test]
async fn b187_closing_a_client_ends_its_poll_and_the_plane_forgets_it() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let polling = tokio::spawn({
        let client = client.clone();
        async move { client.watch_config(watch(0)).await }
    });
    let waiting = || stage.face.with_plane(|plane, _| plane.config_center().waiting());
    until(|| waiting() == 1).await;
    let begin = Instant::now();
    client.close().await;
    assert!(matches!(polling.await.unwrap(), Err(Error::ClientClosed(_))));
    assert!(begin.elapsed() < 3 * SECOND);
    until(|| waiting() == 0).await;
    stage.end().await;
}

#[tokio::test]
async fn a_pause_wakes_who_watches_the_switches_and_is_obeyed() {
    let stage = Stage::new(1).await;
    let client = stage.client(ALL);
    let switches = |version| WatchConfigRequest::new([WatchItem::new(("_runtime", "site_switches"), version)]);
    let first = client.watch_config(switches(0)).await.unwrap().remove(0);
    let (items, paused) = tokio::join!(client.watch_config(switches(first.version)), async {
        tokio::time::sleep(SECOND / 10).await;
        stage.act("pause", &json!({"site": "shop", "reason": "maintenance"})).await
    });
    assert_eq!(paused.status, 200, "{paused:?}");
    let item = items.unwrap().remove(0);
    let content: Value = item.json_as().unwrap();
    assert_eq!((&content["sites"]["shop"]["paused"], &content["sites"]["shop"]["reason"]), (&json!(true), &json!("maintenance")));
    let error = client.acquire(shop()).await.unwrap_err();
    assert_eq!((error.http_status(), error.reason(), error.retry_after()), (503, "site_paused", Some(30 * SECOND)));
    assert_eq!(stage.act("resume", &json!({"site": "shop"})).await.status, 200);
    client.acquire(shop()).await.unwrap();
    stage.end().await;
}

#[tokio::test]
async fn deeds_by_hand_are_checked() {
    let stage = Stage::new(1).await;
    for (deed, body) in [
        ("pause", json!({})),
        ("pause", json!({"site": "shop", "reson": "typo"})),
        ("breaker/open", json!({"site": "shop"})),
        ("config/publish", json!({"group": "g", "key": "k", "format": "xml", "content": ""})),
        ("config/publish", json!({"group": "_runtime", "key": "k", "format": "json", "content": "{}"})),
    ] {
        let answer = stage.act(deed, &body).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (400, Some("invalid_argument")), "{deed} {body}");
    }
    assert_eq!(stage.act("explode", &json!({})).await.status, 404);
    stage.end().await;
}

async fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < 5 * SECOND, "it does not come about");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
