//! Config items and secrets.

use futures_util::FutureExt;
use secrecy::ExposeSecret as _;
use tokio::time::{advance, timeout};

use super::*;
use crate::plane::embedded::Operation;
use crate::spinneret::ConfigKey;

const CONFIG: &str = "[secrets]\n\"shop/key\" = \"sesame\"\n\
    [[config]]\ngroup = \"crawl\"\nkey = \"limits\"\nformat = \"text\"\ncontent = \"one ${secret:shop/key}\"\n\
    [[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"a\"\n";

fn publish<'a>(key: &'a str, content: &'a str) -> Operation<'a> {
    Operation::Publish { group: "crawl", key, format: "text", content }
}

#[tokio::test(start_paused = true)]
async fn a_followed_item_is_there_at_once_and_each_change_is_told_once() {
    let plane = plane(CONFIG);
    let (limits, other) = (ConfigKey::new("crawl", "limits"), ConfigKey::new("crawl", "other"));
    let feed = plane.follow(vec![limits.clone(), other.clone()]).await.unwrap();
    let now = feed.get(&limits).unwrap();
    assert_eq!((&*now.item.content, now.item.has_secret_refs, now.from_snapshot), ("one sesame", true, false));
    assert_eq!(feed.get(&other), None);
    assert!(feed.changed().now_or_never().is_none(), "what was there at the start is no change");
    plane.operate(publish("limits", "two")).unwrap();
    plane.operate(publish("other", "new")).unwrap();
    let mut told = Vec::new();
    for _ in 0..2 {
        let changed = feed.changed().now_or_never().unwrap().unwrap();
        told.push((changed.item.key, changed.item.content));
    }
    told.sort();
    assert_eq!(told, [("limits".to_owned(), "two".to_owned()), ("other".to_owned(), "new".to_owned())]);
    assert!(feed.changed().now_or_never().is_none());
    assert_eq!(feed.get(&other).unwrap().item.content, "new");
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_by_the_change_and_who_went_away_misses_nothing() {
    let plane = Arc::new(plane(CONFIG));
    let feed = plane.follow_now(vec![ConfigKey::new("crawl", "limits")]).unwrap();
    assert!(timeout(seconds(5), feed.changed()).await.is_err());
    let changer = tokio::spawn({
        let plane = Arc::clone(&plane);
        async move {
            tokio::time::sleep(seconds(3)).await;
            plane.operate(publish("limits", "two"))
        }
    });
    let begin = Instant::now();
    let changed = feed.changed().await.unwrap();
    assert_eq!((&*changed.item.content, begin.elapsed()), ("two", seconds(3)));
    changer.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_runtime_items_tell_of_pauses_and_breakers_and_of_what_time_does_to_them() {
    let plane = plane(CONFIG);
    let breakers = ConfigKey::new("_runtime", "breakers");
    let feed = plane.follow_now(vec![breakers.clone(), ConfigKey::new("_runtime", "site_switches")]).unwrap();
    plane.operate(Operation::Pause { site: "shop", reason: "moving" }).unwrap();
    let mut told = [feed.changed().await.unwrap().item, feed.changed().await.unwrap().item];
    told.sort_by(|one, other| one.key.cmp(&other.key));
    assert!(told[1].key == "site_switches" && told[1].content.contains("moving"), "{}", told[1].content);
    plane.operate(Operation::Resume { site: "shop" }).unwrap();
    let open = Operation::OpenBreaker { site: "shop", client: "web", group: "_default", time: Some(seconds(20)) };
    plane.operate(open).unwrap();
    while !feed.get(&breakers).unwrap().item.content.contains("open") {
        feed.changed().await.unwrap();
    }
    while feed.changed().now_or_never().is_some() {}
    let begin = Instant::now();
    // Nobody asks for anything: the breaker is half-open all the same.
    let changed = timeout(seconds(60), feed.changed()).await.unwrap().unwrap();
    assert!(changed.item.content.contains("half_open"), "{}", changed.item.content);
    assert!((seconds(20)..=seconds(26)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    advance(seconds(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_read_by_its_path() {
    let plane = plane(CONFIG);
    assert_eq!(plane.secret("shop/key".into()).await.unwrap().expose_secret(), "sesame");
    assert!(matches!(plane.secret("shop/none".into()).await, Err(PlaneError::NotFound(_))));
    assert!(matches!(plane.secret("Shop Key".into()).await, Err(PlaneError::Invalid(_))));
    assert!(matches!(Embedded::anonymous().secret_now("shop/key"), Err(PlaneError::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn none_and_too_many_items_cannot_be_followed() {
    let plane = plane(CONFIG);
    for many in [0, 201] {
        let keys = (0..many).map(|n| ConfigKey::new("g", n.to_string())).collect();
        assert!(matches!(plane.follow_now(keys), Err(PlaneError::Invalid(_))), "{many}");
    }
}
