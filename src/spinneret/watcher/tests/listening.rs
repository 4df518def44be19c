use super::*;

async fn started(rig: &Rig, options: WatcherOptions) -> ConfigWatcher {
    let watcher = rig.watcher(options);
    watcher.start().await.unwrap();
    watcher
}

#[tokio::test(start_paused = true)]
async fn b110_a_publication_wakes_who_waits_for_that_key_and_nobody_else() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A"), item("g/b", 1, "B"), item("h/a", 1, "H")]);
    rig.poll(after(secs(5), items(&[item("g/a", 2, "A2")])));
    let heard = Heard::default();
    let watcher = started(&rig, keys(&["g/a", "g/b", "h/a"])).await;
    watcher.on_change(heard.listener());
    let wait = |filter: ChangeFilter| watcher.wait_for_change(filter, Some(secs(10)));
    let began = Instant::now();
    let timed = async |filter| wait(filter).await.map(|item| (item.content, began.elapsed().as_secs()));
    let all = tokio::join!(
        timed(ChangeFilter::from(key("g/a"))),
        timed(ChangeFilter::any()),
        timed(ChangeFilter::any().group("g")),
        timed(ChangeFilter::any().key("a")),
        timed(ChangeFilter::from(&key("g/b"))),
        timed(ChangeFilter::any().group("h")),
        timed(ChangeFilter::any().key("b")),
    );
    let hit = Some(("A2".to_owned(), 5));
    assert_eq!(all, (hit.clone(), hit.clone(), hit.clone(), hit, None, None, None));
    assert_eq!(heard.all(), ["g/a@2=A2"]);
}

#[tokio::test(start_paused = true)]
async fn b110_of_several_changes_the_first_is_given() {
    let rig = Rig::new();
    rig.poll(after(secs(1), items(&[item("g/c", 1, "C"), item("g/a", 1, "A"), item("g/b", 1, "B")])));
    let watcher = started(&rig, keys(&["g/a", "g/b", "g/c"])).await;
    let (any, other) = tokio::join!(
        watcher.wait_for_change(ChangeFilter::any(), None),
        watcher.wait_for_change(ChangeFilter::any().key("b"), None)
    );
    assert_eq!((any.unwrap().key, other.unwrap().key), ("c".to_owned(), "b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_counts_from_its_call_and_not_from_its_first_poll() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 2, "B")])));
    let watcher = started(&rig, keys(&["g/a"])).await;
    let early = watcher.wait_for_change(ChangeFilter::any(), Some(secs(5)));
    tokio::time::sleep(secs(2)).await;
    let late = watcher.wait_for_change(ChangeFilter::any(), Some(secs(5)));
    assert_eq!(early.await.unwrap().version, 2);
    assert_eq!(late.await, None);
    let expired = watcher.wait_for_change(ChangeFilter::any(), Some(secs(1)));
    tokio::time::sleep(secs(2)).await;
    let began = Instant::now();
    assert_eq!((expired.await, began.elapsed()), (None, ms(0)));
}

#[tokio::test(start_paused = true)]
async fn b118_a_wait_ends_with_its_time_with_the_watcher_and_at_once_when_that_is_stopped() {
    let rig = Rig::new();
    let watcher = started(&rig, keys(&["g/a"])).await;
    let began = Instant::now();
    assert_eq!(watcher.wait_for_change(ChangeFilter::any(), Some(secs(3))).await, None);
    assert!(began.elapsed() >= secs(3) && began.elapsed() < ms(3_002));

    let waiting = tokio::spawn(watcher.wait_for_change(ChangeFilter::any(), None));
    tokio::time::sleep(secs(1)).await;
    assert!(!waiting.is_finished());
    watcher.stop(None).await;
    assert_eq!(tokio::time::timeout(ms(1), waiting).await.unwrap().unwrap(), None);

    let began = Instant::now();
    assert_eq!(watcher.wait_for_change(ChangeFilter::any(), Some(secs(60))).await, None);
    assert_eq!(watcher.changes(ChangeFilter::any()).next().await, None);
    assert_eq!(began.elapsed(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_any_clock_is_one_without_end() {
    let rig = Rig::new();
    rig.poll(after(secs(1), items(&[item("g/a", 1, "A")])));
    let watcher = started(&rig, keys(&["g/a"])).await;
    assert!(watcher.wait_for_change(ChangeFilter::any(), Some(Duration::MAX)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_changes_misses_nothing_between_two_looks_and_ends_with_the_watcher() {
    let rig = Rig::new();
    rig.poll(after(secs(1), items(&[item("g/a", 1, "A1"), item("g/b", 1, "B1")])));
    rig.poll(after(secs(1), items(&[item("g/c", 1, "C1"), item("g/a", 2, "A2")])));
    let watcher = started(&rig, keys(&["g/a", "g/b", "g/c"])).await;
    let mut changes = watcher.changes(ChangeFilter::any());
    assert!(tokio::time::timeout(ms(500), changes.next()).await.is_err());
    tokio::time::sleep(secs(5)).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(changes.next().await.unwrap().content);
    }
    assert_eq!(seen, ["B1", "C1", "A2"]);
    watcher.stop(None).await;
    assert_eq!(changes.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn b111_what_is_known_already_is_told_to_nobody() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 1, "A")]))).poll(after(secs(1), items(&[item("g/a", 1, "other")])));
    let heard = Heard::default();
    let watcher = started(&rig, keys(&["g/a"]).on_change(heard.listener())).await;
    assert_eq!(watcher.wait_for_change(ChangeFilter::any(), Some(secs(5))).await.unwrap().content, "other");
    tokio::time::sleep(ms(1)).await;
    assert_eq!(heard.all(), ["g/a@1=A", "g/a@1=other"]);
}

#[tokio::test(start_paused = true)]
async fn b117_a_listener_that_panics_is_logged_and_the_others_are_still_called() {
    let logs = Logs::of_target(TARGET);
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 2, "B")])));
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]).on_change(|_| panic!("at the call")));
    watcher.on_change_async(|_| -> std::future::Ready<()> { panic!("while the future is made") });
    watcher.on_change_async(async |_| panic!("while it is awaited"));
    watcher.on_change(heard.listener());
    watcher.start().await.unwrap();
    tokio::time::sleep(secs(2)).await;
    assert_eq!(heard.all(), ["g/a@1=A", "g/a@2=B"]);
    let errors = logs.at("ERROR");
    assert_eq!(errors.len(), 6, "{errors:?}");
    assert!(watcher.is_running());
}

#[tokio::test(start_paused = true)]
async fn b117_a_removed_listener_is_not_called_and_removing_it_twice_is_harmless() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 2, "B")])));
    let (gone, kept) = (Heard::default(), Heard::default());
    let watcher = rig.watcher(keys(&["g/a"]));
    let id = watcher.on_change(gone.listener());
    watcher.on_change(kept.listener());
    watcher.start().await.unwrap();
    assert!(watcher.remove(id));
    assert!(!watcher.remove(id));
    tokio::time::sleep(secs(2)).await;
    assert_eq!((gone.all().len(), kept.all().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn b117_a_listener_removed_by_an_earlier_one_is_not_called_for_the_same_item() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]));
    let second = Arc::new(Mutex::new(None));
    let (remover, id) = (Arc::downgrade(&watcher.handle), Arc::clone(&second));
    watcher.on_change(move |_| {
        let handle = remover.upgrade().unwrap();
        assert!(ConfigWatcher { handle }.remove(id.lock().unwrap().unwrap()));
    });
    *second.lock().unwrap() = Some(watcher.on_change(heard.listener()));
    watcher.start().await.unwrap();
    assert!(heard.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b188_listeners_may_wait_and_the_changes_of_an_item_reach_them_in_order() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, ""), item("g/b", 1, "")]);
    rig.poll(items(&[item("g/a", 2, "")]))
        .poll(items(&[item("g/a", 3, ""), item("g/b", 2, "")]))
        .poll(items(&[item("g/a", 4, "")]));
    let heard = Heard::default();
    let (slow, quick) = (heard.clone(), heard.clone());
    // The older the item, the longer the listener takes.
    let options = keys(&["g/a", "g/b"])
        .on_change_async(move |item| {
            let slow = slow.clone();
            async move {
                tokio::time::sleep(ms(1_000 / u64::try_from(item.version).unwrap())).await;
                slow.say(format!("slow {}{}", item.key, item.version));
            }
        })
        .on_change(move |item| quick.say(format!("quick {}{}", item.key, item.version)));
    let _watcher = started(&rig, options).await;
    tokio::time::sleep(secs(10)).await;
    let expected: Vec<String> =
        ["a1", "b1", "a2", "a3", "b2", "a4"].iter().flat_map(|name| [format!("slow {name}"), format!("quick {name}")]).collect();
    assert_eq!(heard.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn listeners_that_use_the_watcher_do_not_block_it() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 2, "B")])));
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]));
    let (weak, note) = (Arc::downgrade(&watcher.handle), heard.clone());
    watcher.on_change(move |item| {
        let watcher = ConfigWatcher { handle: weak.upgrade().unwrap() };
        let id = watcher.on_change(|_| ());
        assert_eq!(watcher.get(key("g/a")).as_ref(), Some(item));
        watcher.remove(id);
        note.say(format!("{} {}", item.version, watcher.is_running()));
    });
    let weak = Arc::downgrade(&watcher.handle);
    watcher.on_change_async(move |_| {
        let watcher = ConfigWatcher { handle: weak.upgrade().unwrap() };
        async move { watcher.start().await.unwrap() }
    });
    tokio::time::timeout(secs(1), watcher.start()).await.unwrap().unwrap();
    tokio::time::sleep(secs(2)).await;
    assert_eq!(heard.all(), ["1 true", "2 true"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_threads_everyone_sees_the_versions_rise_to_the_last() {
    let rig = Rig::new();
    for version in 1..=500 {
        rig.poll(items(&[item("g/a", version, "")]));
    }
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]).on_change(heard.listener()));
    let look = |mut changes: Changes| async move {
        let mut last = 0;
        while last < 500 {
            let version = changes.next().await.unwrap().version;
            assert!(version > last, "{version} after {last}");
            last = version;
        }
    };
    let looks: Vec<_> = (0..8).map(|_| tokio::spawn(look(watcher.changes(ChangeFilter::any())))).collect();
    watcher.start().await.unwrap();
    for look in looks {
        tokio::time::timeout(secs(20), look).await.unwrap().unwrap();
    }
    watcher.stop(None).await;
    let told = heard.all();
    assert!(told.len() <= 500 && told.iter().enumerate().all(|(n, line)| *line == format!("g/a@{}=", n + 1)));
}
