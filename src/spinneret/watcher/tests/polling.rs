use super::*;

async fn started(rig: &Rig, options: WatcherOptions) -> ConfigWatcher {
    let watcher = rig.watcher(options);
    watcher.start().await.unwrap();
    watcher
}

#[tokio::test(start_paused = true)]
async fn b114_failures_while_polling_are_followed_by_a_pause_and_by_recovery() {
    let logs = Logs::of_target(TARGET);
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(unavailable())
        .poll(Step::Bare { status: 200, body: "not json" })
        .poll(forbidden())
        .poll(refuse(500, "internal", ""));
    rig.poll(items(&[item("g/a", 2, "B")])).poll(unavailable());
    let watcher = started(&rig, keys(&["g/a"])).await;
    let change = watcher.wait_for_change(ChangeFilter::any(), Some(secs(60))).await.unwrap();
    assert_eq!(change.version, 2);
    tokio::time::sleep(secs(3)).await;
    let gaps = rig.gaps();
    let ranges = [(500, 1_001), (1_000, 2_001), (2_000, 4_001), (4_000, 8_001), (0, 2), (500, 1_001)];
    assert_eq!(gaps.len(), ranges.len());
    for (gap, (low, high)) in gaps.iter().zip(ranges) {
        assert!((ms(low)..ms(high)).contains(gap), "{gaps:?}");
    }
    assert_eq!((logs.at("WARN").len(), logs.at("ERROR").len()), (4, 1), "{:?}", logs.all());
    assert!(logs.at("ERROR")[0].contains("scope_missing"));
}

#[tokio::test(start_paused = true)]
async fn b114_a_refusal_for_good_is_retried_for_ever_every_thirty_seconds_at_most() {
    let rig = Rig::new();
    rig.script.always(Procedure::WatchConfig, forbidden());
    let watcher = started(&rig, keys(&["g/a"])).await;
    tokio::time::sleep(secs(3_600)).await;
    assert!(watcher.is_running());
    let late = rig.gaps().split_off(6);
    assert!(late.len() > 100 && late.iter().all(|gap| (secs(15)..=ms(30_001)).contains(gap)));
}

#[tokio::test(start_paused = true)]
async fn b191_an_answer_that_cannot_be_read_is_followed_by_a_pause_and_another_poll() {
    let rig = Rig::new();
    rig.poll(Step::Bare { status: 200, body: r#"{"items": 7}"# }).poll(items(&[item("g/a", 1, "A")]));
    let watcher = started(&rig, keys(&["g/a"])).await;
    let change = watcher.wait_for_change(ChangeFilter::any(), Some(secs(2))).await.unwrap();
    assert_eq!(change.content, "A");
    let gap = rig.gaps()[0];
    assert!((ms(500)..ms(1_001)).contains(&gap), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_the_server_lengthens_the_pause_to_thirty_seconds_at_most() {
    let hint = |hint| Step::Refuse { status: 429, code: "resource_exhausted", reason: "rate_limited", hint: Some(hint) };
    let rig = Rig::new();
    rig.poll(hint(12_000)).poll(hint(900_000)).poll(items(&[]));
    let _watcher = started(&rig, keys(&["g/a"])).await;
    tokio::time::sleep(secs(60)).await;
    let near = |gap: Duration, expected: Duration| gap >= expected && gap <= expected + ms(1);
    assert!(near(rig.gaps()[0], secs(12)) && near(rig.gaps()[1], secs(30)), "{:?}", rig.gaps());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drains_is_asked_again_soon_and_raises_no_alarm() {
    let logs = Logs::of_target(TARGET);
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    rig.poll(after(secs(5), refuse(499, "canceled", ""))).poll(refuse(499, "canceled", ""));
    rig.poll(Step::Bare { status: 499, body: "" }).poll(items(&[item("g/a", 2, "B")]));
    let watcher = started(&rig, keys(&["g/a"])).await;
    let change = watcher.wait_for_change(ChangeFilter::any(), Some(secs(10))).await.unwrap();
    assert_eq!(change.version, 2);
    let gaps = rig.gaps();
    assert!((ms(5_100)..ms(5_202)).contains(&gaps[0]) && (ms(200)..ms(402)).contains(&gaps[1]), "{gaps:?}");
    assert!((ms(400)..ms(802)).contains(&gaps[2]), "{gaps:?}");
    assert_eq!((logs.at("WARN").len(), logs.at("ERROR").len(), logs.at("DEBUG").len()), (0, 0, 3), "{:?}", logs.all());
}

#[tokio::test(start_paused = true)]
async fn useless_answers_that_come_at_once_never_make_it_spin() {
    let useless = [
        items(&[]),
        items(&[item("g/other", 9, "X")]),
        items(&[item("g/a", 3, "A")]),
        items(&[item("g/a", 2, "older")]),
        Step::Answer(json!({})),
    ];
    for step in useless {
        let rig = Rig::new();
        rig.load(&[item("g/a", 3, "A")]);
        rig.script.always(Procedure::WatchConfig, step.clone());
        let _watcher = started(&rig, keys(&["g/a"])).await;
        tokio::time::sleep(secs(60)).await;
        let gaps = rig.gaps();
        let expected = [200, 400, 800, 1_600, 3_200, 5_000, 5_000];
        for (gap, expected) in gaps.iter().zip(expected.map(ms)) {
            assert!(*gap >= expected && *gap <= expected + ms(1), "{step:?}: {gaps:?}");
        }
        assert!((13..=16).contains(&gaps.len()), "{step:?}: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn content_that_differs_with_every_answer_of_one_version_never_makes_it_spin() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 3, "A")]);
    for n in 0..10 {
        rig.poll(items(&[item("g/a", 3, &n.to_string())]));
    }
    let heard = Heard::default();
    let watcher = started(&rig, keys(&["g/a"])).await;
    watcher.on_change(heard.listener());
    tokio::time::sleep(secs(3)).await;
    assert_eq!(heard.all(), ["g/a@3=0", "g/a@3=1", "g/a@3=2", "g/a@3=3"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_after_a_while_is_followed_at_once_and_a_quick_one_at_the_floor() {
    let rig = Rig::new();
    rig.poll(after(ms(300), items(&[]))).poll(after(ms(150), items(&[]))).poll(after(ms(30_000), items(&[])));
    let _watcher = started(&rig, keys(&["g/a"])).await;
    tokio::time::sleep(secs(40)).await;
    let gaps = rig.gaps();
    for (gap, expected) in gaps.iter().zip([300, 200, 30_000].map(ms)) {
        assert!(*gap >= expected && *gap <= expected + ms(2), "{gaps:?}");
    }
    assert_eq!(gaps.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn news_that_come_at_once_are_followed_at_once() {
    let rig = Rig::new();
    for version in 1..=50 {
        rig.poll(items(&[item("g/a", version, "")]));
    }
    let watcher = started(&rig, keys(&["g/a"])).await;
    tokio::time::sleep(ms(150)).await;
    assert_eq!((watcher.get(key("g/a")).unwrap().version, rig.polls().len()), (50, 51));
    assert_eq!(rig.versions(50), [50]);
}

#[tokio::test(start_paused = true)]
async fn nothing_logged_or_shown_for_debugging_holds_content_or_the_token() {
    let logs = Logs::of_target(TARGET);
    let rig = Rig::new();
    rig.load(&[secret("g/a", 1, "c4n4ry-one")]);
    rig.poll(items(&[item("g/a", 2, "c4n4ry-two")])).poll(unavailable()).poll(Step::Bare { status: 502, body: "c4n4ry-page" });
    let options = keys(&["g/a", "g/b"]).on_change(|item| assert!(item.content.is_empty(), "{}", item.content)).cache_secrets();
    assert!(!format!("{options:?}").contains("c4n4ry"));
    let dir = tempfile::tempdir().unwrap();
    let watcher = rig.make(options, Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    tokio::time::sleep(secs(10)).await;
    let changes = watcher.changes(ChangeFilter::any());
    let shown = format!("{watcher:?} {changes:?} {:?}", rig.registry);
    assert!(shown.contains("is_running: true") && !shown.contains("c4n4ry"), "{shown}");
    let lines = logs.all();
    assert!(
        lines.len() == 4 && lines.iter().all(|line| line.contains(" spinneret.config:") && !line.contains("c4n4ry")),
        "{lines:?}"
    );
}
