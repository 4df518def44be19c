use std::path::PathBuf;
use std::sync::mpsc;

use super::*;

fn file(dir: &Path, name: &str) -> PathBuf {
    let key = key(name);
    dir.join("spinneret.test%3A8080/_token_namespace").join(key.group).join(format!("{}.json", key.key))
}

fn saved(dir: &Path, name: &str) -> Option<Value> {
    let text = std::fs::read(file(dir, name)).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// A watcher that is told so much and then stopped.
async fn through(dir: &Path, options: WatcherOptions, loaded: &[Value], polls: &[Value]) -> Rig {
    let rig = Rig::new();
    rig.load(loaded);
    for poll in polls {
        rig.poll(after(secs(1), items(std::slice::from_ref(poll))));
    }
    let watcher = rig.make(options, Some(dir)).unwrap();
    watcher.start().await.unwrap();
    tokio::time::sleep(secs(1 + polls.len() as u64)).await;
    watcher.stop(None).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn b112_without_the_server_it_starts_from_disk_and_polls_with_the_versions_of_the_disk() {
    let logs = Logs::of_target(TARGET);
    let dir = tempfile::tempdir().unwrap();
    through(dir.path(), keys(&["g/a", "g/b"]), &[item("g/a", 3, "A")], &[item("g/a", 4, "A4")]).await;

    let rig = Rig::new();
    rig.script.always(Procedure::BatchGetConfig, unavailable());
    rig.poll(after(secs(5), items(&[]))).poll(after(secs(5), items(&[item("g/b", 1, "B")])));
    let heard = Heard::default();
    let watcher = rig.make(keys(&["g/a", "g/b"]).on_change(heard.listener()), Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    assert!(watcher.is_from_snapshot() && watcher.is_loaded());
    assert_eq!((heard.all(), watcher.get(key("g/a")).unwrap().content), (vec!["g/a@4=A4".to_owned()], "A4".to_owned()));
    tokio::time::sleep(secs(4)).await;
    assert_eq!((rig.versions(0), watcher.is_from_snapshot()), (vec![4, 0], true));
    tokio::time::sleep(secs(2)).await;
    assert!(!watcher.is_from_snapshot());
    tokio::time::sleep(secs(5)).await;
    assert_eq!(heard.all(), ["g/a@4=A4", "g/b@1=B"]);
    assert_eq!(logs.at("WARN").len(), 1, "{:?}", logs.all());
}

#[tokio::test(start_paused = true)]
async fn b111_what_is_known_already_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 1, "A")]))).poll(after(secs(1), items(&[item("g/a", 1, "other")])));
    let watcher = rig.make(keys(&["g/a"]), Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    std::fs::remove_file(file(dir.path(), "g/a")).unwrap();
    tokio::time::sleep(ms(1_500)).await;
    assert_eq!(saved(dir.path(), "g/a"), None);
    tokio::time::sleep(secs(1)).await;
    watcher.stop(None).await;
    assert_eq!(saved(dir.path(), "g/a").unwrap()["item"]["content"], "other");
}

#[tokio::test(start_paused = true)]
async fn b112_what_comes_from_disk_is_not_written_back() {
    let dir = tempfile::tempdir().unwrap();
    through(dir.path(), keys(&["g/a"]), &[item("g/a", 3, "A")], &[]).await;
    let before = saved(dir.path(), "g/a").unwrap();
    let rig = Rig::new();
    rig.script.always(Procedure::BatchGetConfig, unavailable());
    let watcher = rig.make(keys(&["g/a"]), Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    watcher.stop(None).await;
    assert_eq!((watcher.items().len(), saved(dir.path(), "g/a").unwrap()), (1, before));
}

#[tokio::test(start_paused = true)]
async fn b190_an_item_that_becomes_secret_disappears_from_disk_and_comes_back_when_it_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "plain")]);
    rig.poll(after(secs(10), items(&[secret("g/a", 2, "s3cret")])))
        .poll(after(secs(10), items(&[item("g/a", 3, "plain again")])));
    let watcher = rig.make(keys(&["g/a"]), Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    assert_eq!(saved(dir.path(), "g/a").unwrap()["item"]["version"], 1);
    tokio::time::sleep(secs(11)).await;
    assert_eq!((watcher.get(key("g/a")).unwrap().version, saved(dir.path(), "g/a")), (2, None));
    tokio::time::sleep(secs(10)).await;
    let last = saved(dir.path(), "g/a").unwrap();
    assert_eq!((&last["encrypted"], &last["item"]["content"]), (&json!(false), &json!("plain again")));
}

#[tokio::test(start_paused = true)]
async fn secret_items_are_kept_encrypted_when_that_is_asked_for_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = || keys(&["g/a", "g/b"]).cache_secrets().treat_as_secret(|item| item.key == "b");
    through(dir.path(), options(), &[secret("g/a", 1, "c4n4ry"), item("g/b", 2, "c4n4ry")], &[]).await;
    for name in ["g/a", "g/b"] {
        let document = saved(dir.path(), name).unwrap();
        assert!(document["encrypted"] == json!(true) && !document.to_string().contains("c4n4ry"), "{document}");
    }
    let rig = Rig::new();
    rig.script.always(Procedure::BatchGetConfig, unavailable());
    let watcher = rig.make(options(), Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    assert_eq!(
        watcher.items().iter().map(|item| (item.version, &*item.content)).collect::<Vec<_>>(),
        [(1, "c4n4ry"), (2, "c4n4ry")]
    );
}

#[tokio::test(start_paused = true)]
async fn the_directory_of_the_options_is_taken_before_the_client_s_and_off_means_off() {
    let (client, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    through(client.path(), keys(&["g/a"]).cache_dir(own.path()), &[item("g/a", 1, "A")], &[]).await;
    assert!(saved(own.path(), "g/a").is_some());
    through(client.path(), keys(&["g/a"]).without_snapshots(), &[item("g/a", 1, "A")], &[]).await;
    assert_eq!(std::fs::read_dir(client.path()).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_cannot_be_written_costs_a_warning_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "").unwrap();
    let heard = Heard::default();
    let options = keys(&["g/a"]).on_change(heard.listener());
    through(&path, options, &[item("g/a", 1, "A")], &[item("g/a", 2, "B")]).await;
    assert_eq!(heard.all(), ["g/a@1=A", "g/a@2=B"]);
}

/// The clock cannot be paused here: a thread is held up.
#[tokio::test]
async fn a_disk_that_hangs_delays_listeners_a_little_and_keeps_only_the_newest_version() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "1")]);
    for version in 2..=20 {
        rig.poll(items(&[item("g/a", version, &version.to_string()), item("g/b", version, "")]));
    }
    let (release, hang) = mpsc::channel::<()>();
    let (asked, hang) = (Heard::default(), Mutex::new(hang));
    let ask = asked.clone();
    let heard = Heard::default();
    let options = keys(&["g/a", "g/b"]).on_change(heard.listener()).treat_as_secret(move |item| {
        ask.note(item);
        // Until the sender is gone.
        let _ = hang.lock().unwrap().recv();
        false
    });
    let watcher = rig.make(options, Some(dir.path())).unwrap();
    let began = std::time::Instant::now();
    watcher.start().await.unwrap();
    assert!((ms(190)..secs(5)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(heard.all(), ["g/a@1=1"]);
    while heard.all().len() < 11 {
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(asked.all(), ["g/a@1=1"]);
    let began = std::time::Instant::now();
    watcher.stop(Some(ms(100))).await;
    assert!(began.elapsed() < secs(1), "{:?}", began.elapsed());
    let newest = watcher.get(key("g/a")).unwrap().version;
    drop(release);
    watcher.stop(Some(secs(10))).await;
    assert_eq!(asked.all(), ["g/a@1=1".to_owned(), format!("g/a@{newest}={newest}"), format!("g/b@{newest}=")]);
    for name in ["g/a", "g/b"] {
        assert_eq!(saved(dir.path(), name).unwrap()["item"]["version"], newest);
    }
}
