//! Config items and secrets of the server's model, over a socket.

use futures_util::FutureExt as _;
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::*;
use crate::plane::Configured;

fn key(name: &str) -> ConfigKey {
    ConfigKey::new("crawler", name)
}

/// A plane that keeps snapshots in a folder, and asks for changes every tenth of a second.
fn keeping(url: &str, folder: &Path, options: RemoteOptions) -> Remote {
    let timeouts = Timeouts { connect: SECOND, read: SECOND / 2, ..Timeouts::default() };
    let builder = Client::builder().url(url).token(token(ALL)).node("test").proxy(ProxyChoice::None).timeouts(timeouts);
    let client = builder.retry(RetryPolicy::NO_RETRY).cache_dir(folder).environment(|_| None).build().unwrap();
    Remote::new(client, options)
}

fn often() -> RemoteOptions {
    RemoteOptions { watch_wait: SECOND / 10, ..RemoteOptions::default() }
}

async fn next(feed: &Arc<dyn ConfigFeed>) -> (String, String, bool) {
    let Configured { item, from_snapshot } = timeout(10 * SECOND, feed.changed()).await.unwrap().unwrap();
    (item.key, item.content, from_snapshot)
}

fn content(feed: &Arc<dyn ConfigFeed>, name: &str) -> Option<(String, bool)> {
    feed.get(&key(name)).map(|Configured { item, from_snapshot }| (item.content, from_snapshot))
}

fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                names.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    names.sort();
    names
}

#[tokio::test]
async fn items_are_there_from_the_start_and_each_change_is_told_once() {
    let stage = Stage::new(1).await;
    stage.publish("a", "one");
    let remote = stage.remote(ALL);
    let feed = remote.follow(vec![key("a"), key("b"), key("a")]).await.unwrap();
    assert_eq!(content(&feed, "a"), Some(("one".to_owned(), false)));
    assert_eq!((content(&feed, "b"), content(&feed, "unwatched")), (None, None));
    assert!(timeout(SECOND / 5, feed.changed()).await.is_err(), "what is there from the start is no change");

    stage.publish("unwatched", "x");
    stage.publish("b", "first");
    assert_eq!(next(&feed).await, ("b".to_owned(), "first".to_owned(), false));
    assert_eq!(content(&feed, "b"), Some(("first".to_owned(), false)));

    // Nobody waits while these come, and somebody who waited has given up.
    stage.publish("a", "two");
    assert_eq!(feed.changed().now_or_never(), None);
    for content in ["three", "four"] {
        stage.publish("a", content);
    }
    stage.publish("b", "second");
    let mut told = Vec::new();
    while !(told.contains(&"four".to_owned()) && told.contains(&"second".to_owned())) {
        told.push(next(&feed).await.1);
    }
    assert_eq!(content(&feed, "a"), Some(("four".to_owned(), false)));
    assert!(timeout(SECOND / 5, feed.changed()).await.is_err(), "each change is told once: {told:?}");
    stage.end().await;
}

#[tokio::test]
async fn two_who_wait_hear_of_one_change_each() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    let feed = remote.follow(vec![key("a"), key("b")]).await.unwrap();
    let (first, second, ()) = tokio::join!(next(&feed), next(&feed), async {
        tokio::time::sleep(SECOND / 10).await;
        stage.publish("a", "1");
        stage.publish("b", "2");
    });
    let mut told = [first.0, second.0];
    told.sort();
    assert_eq!(told, ["a", "b"]);
    stage.end().await;
}

#[tokio::test]
async fn a_feed_ends_with_the_client_and_a_dropped_one_asks_no_more() {
    let stage = Stage::new(1).await;
    stage.publish("a", "one");
    let remote = stage.remote_with(ALL, RemoteOptions { snapshots: false, ..often() });
    let feed = remote.follow(vec![key("a")]).await.unwrap();
    let dropped = remote.follow(vec![key("a")]).await.unwrap();
    assert!(format!("{feed:?}").contains("is_running: true"), "{feed:?}");
    drop(dropped);
    let (end, ()) = tokio::join!(feed.changed(), async {
        tokio::time::sleep(SECOND / 10).await;
        remote.close(SECOND).await;
    });
    assert_eq!(end, None);
    assert_eq!(feed.changed().await, None);
    assert_eq!(content(&feed, "a"), Some(("one".to_owned(), false)), "what was known stays known");
    stage.end().await;
}

#[tokio::test]
async fn a_dropped_feed_lets_its_watch_go() {
    use crate::spinneret::testing::loopback::{Act, Loopback, answer};
    let server = Loopback::start(vec![Act::Answer(answer(200, "", b"{}")); 2]).await;
    let remote = Remote::new(client(&server.url(), "spn_x"), RemoteOptions { snapshots: false, ..often() });
    let feed = remote.follow(vec![key("a")]).await.unwrap();
    while server.got().len() < 3 {
        tokio::time::sleep(SECOND / 100).await;
    }
    drop(feed);
    tokio::time::sleep(SECOND / 10).await;
    let asked = server.got().len();
    tokio::time::sleep(SECOND).await;
    assert_eq!(server.got().len(), asked);
}

#[tokio::test]
async fn who_may_not_read_an_item_cannot_follow_it() {
    let stage = Stage::new(1).await;
    stage.publish("a", "one");
    for number in [OTHER, UNKNOWN] {
        let error = stage.remote(number).follow(vec![key("a")]).await.unwrap_err();
        assert!(matches!(&error, PlaneError::Unauthorized(_)), "{number}: {error:?}");
    }
    let none = stage.remote(ALL).follow(Vec::new()).await.unwrap_err();
    assert!(matches!(&none, PlaneError::Invalid(text) if text.contains("1 to 200")), "{none:?}");
    stage.end().await;
}

#[tokio::test]
async fn a_run_begins_with_snapshots_while_the_plane_is_away_and_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::new(1).await;
    stage.publish("a", "one");
    let url = stage.url();
    let remote = keeping(&url, folder.path(), often());
    let feed = remote.follow(vec![key("a"), key("b")]).await.unwrap();
    assert_eq!(content(&feed, "a"), Some(("one".to_owned(), false)));
    remote.close(SECOND).await;
    let address = stage.server.addr();
    stage.end().await;

    let remote = keeping(&url, folder.path(), often());
    let feed = remote.follow(vec![key("a"), key("b")]).await.unwrap();
    assert_eq!((content(&feed, "a"), content(&feed, "b")), (Some(("one".to_owned(), true)), None));
    assert!(timeout(SECOND / 5, feed.changed()).await.is_err());

    let back = plane(1, "");
    let stage = Stage::at(back, address).await;
    stage.publish("b", "new");
    assert_eq!(next(&feed).await, ("b".to_owned(), "new".to_owned(), false));
    assert_eq!(content(&feed, "a"), Some(("one".to_owned(), false)));

    let without = keeping(&url, folder.path(), RemoteOptions { snapshots: false, ..often() });
    stage.end().await;
    let feed = without.follow(vec![key("a")]).await.unwrap();
    assert_eq!(content(&feed, "a"), None);
}

#[tokio::test]
async fn items_of_secret_groups_are_kept_encrypted_or_not_at_all() {
    let stage = Stage::new(1).await;
    stage.publish("a", "c4n4ry-content");
    let kept = |secret_groups: &[&str], cache_secrets| {
        let secret_groups = secret_groups.iter().map(|group| (*group).to_owned()).collect();
        RemoteOptions { secret_groups, cache_secrets, ..often() }
    };
    for (options, expected, is_plain) in [
        (kept(&["other"], false), vec!["a.json"], true),
        (kept(&["crawler"], false), vec![], false),
        (kept(&["other", "crawler"], true), vec!["a.json"], false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let remote = keeping(&stage.url(), folder.path(), options.clone());
        let feed = remote.follow(vec![key("a")]).await.unwrap();
        assert_eq!(content(&feed, "a"), Some(("c4n4ry-content".to_owned(), false)));
        remote.close(SECOND).await;
        assert_eq!(files(folder.path()), expected, "{options:?}");
        let text: String = walk(folder.path());
        assert_eq!(text.contains("c4n4ry"), is_plain, "{options:?}");
        assert!(!format!("{feed:?}").contains("c4n4ry"));
    }
    stage.end().await;
}

/// The content of all files.
fn walk(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        text += &if path.is_dir() { walk(&path) } else { std::fs::read_to_string(path).unwrap() };
    }
    text
}

#[tokio::test]
async fn a_secret_is_read_or_it_is_said_why_not() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    let secret = remote.secret("signing/key".to_owned()).await.unwrap();
    assert_eq!(secret.expose_secret(), "c4n4ry-secret");
    let missing = remote.secret("signing/other".to_owned()).await.unwrap_err();
    assert!(matches!(&missing, PlaneError::NotFound(text) if text.contains("signing/other")), "{missing:?}");
    let wrong = remote.secret("/Signing".to_owned()).await.unwrap_err();
    assert!(matches!(&wrong, PlaneError::Invalid(text) if text.contains("path")), "{wrong:?}");
    let denied = stage.remote(OTHER).secret("signing/key".to_owned()).await.unwrap_err();
    assert!(matches!(&denied, PlaneError::Unauthorized(_)), "{denied:?}");
    stage.end().await;
    let gone = remote.secret("signing/key".to_owned()).await.unwrap_err();
    assert!(matches!(&gone, PlaneError::Unavailable(_)), "{gone:?}");
    for error in [missing, wrong, denied, gone] {
        assert!(!format!("{error} {error:?}").contains("c4n4ry"));
    }
}
