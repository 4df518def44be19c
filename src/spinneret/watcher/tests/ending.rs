use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

async fn started(rig: &Rig, options: WatcherOptions) -> ConfigWatcher {
    let watcher = rig.watcher(options);
    watcher.start().await.unwrap();
    tokio::time::sleep(ms(1)).await;
    watcher
}

/// A listener that says when it begins and when it ends, much later.
fn sleeper(heard: &Heard, sleep: Duration) -> impl Fn(ConfigItem) -> futures_util::future::BoxFuture<'static, ()> + use<> {
    let heard = heard.clone();
    move |_| {
        let heard = heard.clone();
        Box::pin(async move {
            heard.say("begins");
            tokio::time::sleep(sleep).await;
            heard.say("ends");
        })
    }
}

#[tokio::test(start_paused = true)]
async fn b187_stopping_cancels_a_poll_that_hangs() {
    let rig = Rig::new();
    rig.script.always(Procedure::WatchConfig, Step::Hang);
    let watcher = started(&rig, keys(&["g/a"])).await;
    let began = Instant::now();
    watcher.stop(Some(secs(60))).await;
    assert_eq!(began.elapsed(), ms(0));
    assert!(!watcher.is_running());
    tokio::time::sleep(secs(600)).await;
    assert_eq!(rig.polls().len(), 1);
    watcher.stop(None).await;
    watcher.stop(Some(Duration::MAX)).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_a_pause_and_a_load() {
    let rig = Rig::new();
    rig.script.always(Procedure::WatchConfig, forbidden());
    let pausing = started(&rig, keys(&["g/a"])).await;
    rig.script.next(Procedure::BatchGetConfig, Step::Hang);
    let loading = rig.watcher(keys(&["g/a"]));
    let start = {
        let loading = loading.clone();
        tokio::spawn(async move { loading.start().await })
    };
    tokio::time::sleep(ms(1)).await;
    let began = Instant::now();
    pausing.stop(None).await;
    loading.stop(None).await;
    let error = start.await.unwrap().unwrap_err();
    assert_eq!((began.elapsed(), error.reason()), (ms(0), "watcher_stopped"));
}

#[tokio::test(start_paused = true)]
async fn b120_closing_stops_every_watcher_within_one_second_in_total() {
    let rig = Rig::new();
    rig.script.always(Procedure::WatchConfig, Step::Hang);
    let heard = Heard::default();
    let mut watchers = vec![started(&rig, keys(&["g/a"])).await];
    for _ in 0..2 {
        let watcher = rig.watcher(keys(&["g/a"]).on_change_async(sleeper(&heard, secs(3_600))));
        rig.load(&[item("g/a", 1, "A")]);
        watcher.start_in_background().unwrap();
        watchers.push(watcher);
    }
    tokio::time::sleep(secs(1)).await;
    let waiting = tokio::spawn(watchers[0].wait_for_change(ChangeFilter::any(), None));
    let began = Instant::now();
    rig.registry.stop_all(secs(1)).await;
    assert!((ms(1_000)..ms(1_003)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(watchers.iter().all(|watcher| !watcher.is_running()));
    assert_eq!(waiting.await.unwrap(), None);
    assert_eq!(heard.all(), ["begins", "begins"]);
    // The tasks are gone, not only marked.
    tokio::time::sleep(ms(1)).await;
    for watcher in &watchers {
        assert_eq!(Arc::strong_count(watcher.core()), 1);
    }
    assert!(matches!(rig.make(keys(&["g/a"]), None).unwrap_err(), Error::ClientClosed(_)));
}

#[tokio::test(start_paused = true)]
async fn closing_again_waits_for_what_an_abandoned_closing_left() {
    let rig = Rig::new();
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]).on_change_async(sleeper(&heard, ms(500))));
    rig.load(&[item("g/a", 1, "A")]);
    watcher.start_in_background().unwrap();
    tokio::time::sleep(ms(1)).await;
    assert!(tokio::time::timeout(ms(100), rig.registry.stop_all(secs(1))).await.is_err());
    rig.registry.stop_all(secs(1)).await;
    assert_eq!(heard.all(), ["begins", "ends"]);
}

#[tokio::test(start_paused = true)]
async fn b187_closing_with_a_hanging_poll_takes_no_time() {
    let rig = Rig::new();
    rig.script.always(Procedure::WatchConfig, Step::Hang);
    let watcher = started(&rig, keys(&["g/a"])).await;
    let began = Instant::now();
    rig.registry.stop_all(secs(1)).await;
    assert_eq!((began.elapsed(), watcher.is_running()), (ms(0), false));
}

#[tokio::test(start_paused = true)]
async fn b120_a_poll_of_a_closed_client_ends_the_watcher_with_an_information() {
    let logs = Logs::of_target(TARGET);
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(5), items(&[])));
    let watcher = started(&rig, keys(&["g/a"])).await;
    let waiting = tokio::spawn(watcher.wait_for_change(ChangeFilter::any(), None));
    rig.wire.close();
    tokio::time::sleep(secs(6)).await;
    assert!(!watcher.is_running() && waiting.is_finished());
    assert_eq!(Arc::strong_count(watcher.core()), 1 + usize::from(!waiting.is_finished()));
    assert_eq!(logs.all().len(), 1, "{:?}", logs.all());
    assert!(logs.all()[0].starts_with("INFO spinneret.config:") && logs.all()[0].contains("closed"));
    assert_eq!(watcher.start().await.unwrap_err().reason(), "watcher_stopped");
}

#[tokio::test(start_paused = true)]
async fn b120_a_load_of_a_closed_client_fails_or_ends_the_watcher() {
    let rig = Rig::new();
    let (waited, background) = (rig.watcher(keys(&["g/a"])), rig.watcher(keys(&["g/a"])));
    rig.wire.close();
    assert!(matches!(waited.start().await.unwrap_err(), Error::ClientClosed(_)));
    background.start_in_background().unwrap();
    tokio::time::sleep(ms(1)).await;
    assert!(!background.is_running() && rig.script.seen().is_empty());
    assert!(matches!(rig.make(keys(&["g/a"]), None).unwrap_err(), Error::ClientClosed(_)));
}

#[tokio::test(start_paused = true)]
async fn no_listener_is_called_after_the_stop() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(1), items(&[item("g/a", 2, "B"), item("g/b", 1, "B")])));
    let (slow, last) = (Heard::default(), Heard::default());
    let watcher = started(&rig, keys(&["g/a", "g/b"])).await;
    watcher.on_change_async(sleeper(&slow, ms(500)));
    watcher.on_change(last.listener());
    tokio::time::sleep(ms(1_200)).await;
    assert_eq!(slow.all(), ["begins"]);
    let began = Instant::now();
    watcher.stop(None).await;
    assert!(began.elapsed() <= ms(302), "{:?}", began.elapsed());
    assert_eq!(slow.all(), ["begins", "ends"]);
    watcher.on_change(last.listener());
    tokio::time::sleep(secs(60)).await;
    assert!(last.all().is_empty() && slow.all().len() == 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_initial_values_that_are_being_told() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A"), item("g/b", 1, "B")]);
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a", "g/b"]).on_change_async(sleeper(&heard, ms(500))));
    let starting = watcher.clone();
    let start = tokio::spawn(async move { starting.start().await });
    tokio::time::sleep(ms(100)).await;
    watcher.stop(None).await;
    assert_eq!(heard.all(), ["begins", "ends"]);
    start.await.unwrap().unwrap();
    tokio::time::sleep(secs(5)).await;
    assert_eq!((heard.all().len(), rig.polls().len()), (2, 0));
}

#[test]
fn a_stop_of_one_thread_waits_for_what_another_one_is_being_told() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]).on_change_async(sleeper(&heard, ms(300))));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| runtime.block_on(watcher.start()).unwrap());
        while heard.all().is_empty() {
            std::thread::yield_now();
        }
        runtime.block_on(watcher.stop(Some(secs(30))));
        assert_eq!(heard.all(), ["begins", "ends"]);
    });
}

#[tokio::test(start_paused = true)]
async fn a_listener_may_stop_its_watcher() {
    for changes_first in [false, true] {
        let rig = Rig::new();
        let heard = Heard::default();
        let watcher = rig.watcher(keys(&["g/a", "g/b"]));
        let (weak, note) = (Arc::downgrade(&watcher.handle), heard.clone());
        watcher.on_change_async(move |item| {
            let (watcher, note) = (ConfigWatcher { handle: weak.upgrade().unwrap() }, note.clone());
            async move {
                let began = Instant::now();
                watcher.stop(Some(secs(30))).await;
                note.say(format!("{} {:?}", item.key, began.elapsed()));
            }
        });
        let both = [item("g/a", 1, "A"), item("g/b", 1, "B")];
        if changes_first {
            rig.poll(after(secs(1), items(&both)));
        } else {
            rig.load(&both);
        }
        watcher.start().await.unwrap();
        tokio::time::sleep(secs(5)).await;
        assert_eq!((heard.all(), watcher.is_running()), (vec!["a 0ns".to_owned()], false));
        assert_eq!(Arc::strong_count(watcher.core()), 1);
    }
}

/// Says when it goes.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_last_handle_and_leaves_nothing_behind() {
    let rig = Rig::new();
    rig.script.always(Procedure::WatchConfig, Step::Hang);
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Flag(Arc::clone(&gone));
    let watcher = started(&rig, keys(&["g/a"]).on_change(move |_| assert!(!flag.0.load(Ordering::SeqCst)))).await;
    let core = Arc::downgrade(watcher.core());
    let (clone, waiting) = (watcher.clone(), watcher.wait_for_change(ChangeFilter::any(), None));
    drop(watcher);
    tokio::time::sleep(secs(1)).await;
    assert!(clone.is_running());
    drop(clone);
    tokio::time::sleep(secs(1)).await;
    assert!(core.upgrade().is_some_and(|core| core.phase() == Phase::Running));
    drop(waiting);
    tokio::time::sleep(ms(1)).await;
    assert!(core.upgrade().is_none() && gone.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_holds_the_watcher_is_let_go_by_the_stop() {
    let rig = Rig::new();
    let watcher = started(&rig, keys(&["g/a"])).await;
    let core = Arc::downgrade(watcher.core());
    let held = watcher.clone();
    watcher.on_change(move |_| assert!(held.is_running()));
    drop(watcher);
    tokio::time::sleep(secs(1)).await;
    assert!(core.upgrade().is_some());
    rig.registry.stop_all(secs(1)).await;
    tokio::time::sleep(ms(1)).await;
    assert!(core.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_registry_keeps_no_watcher_alive() {
    let rig = Rig::new();
    let core = Arc::downgrade(rig.watcher(keys(&["g/a"])).core());
    assert!(core.upgrade().is_none());
    rig.registry.stop_all(secs(1)).await;
}

#[test]
fn the_end_of_the_runtime_wakes_who_waits_elsewhere() {
    let rig = Rig::new();
    let watcher = rig.watcher(keys(&["g/a"]));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(watcher.start()).unwrap();
    assert!(watcher.is_running());
    let waiting = watcher.wait_for_change(ChangeFilter::any(), None);
    runtime.shutdown_timeout(secs(5));
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(other.block_on(waiting), None);
    assert!(!watcher.is_running());
}
