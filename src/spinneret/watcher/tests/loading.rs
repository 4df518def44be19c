use super::*;
use crate::spinneret::error_kind::ErrorKind;
use crate::spinneret::transport::Phase as Sent;

#[tokio::test(start_paused = true)]
async fn b109_the_start_loads_once_tells_the_initial_values_and_polls_with_their_versions() {
    let rig = Rig::new();
    rig.load(&[item("g/b", 4, "B"), item("g/a", 7, "A")]);
    let heard = Heard::default();
    let options = keys(&["g/a", "g/b", "g/a", "h/c"]).namespace("prod").on_change(heard.listener());
    let watcher = rig.watcher(options);
    assert!(!watcher.is_loaded() && !watcher.is_running());
    watcher.start().await.unwrap();
    assert!(watcher.is_loaded() && watcher.is_running() && !watcher.is_from_snapshot());
    assert_eq!(heard.all(), ["g/b@4=B", "g/a@7=A"]);
    tokio::time::sleep(ms(1)).await;
    let (loads, polls) = (rig.loads(), rig.polls());
    assert_eq!((loads.len(), polls.len()), (1, 1));
    let asked = json!([{"group": "g", "key": "a"}, {"group": "g", "key": "b"}, {"group": "h", "key": "c"}]);
    assert_eq!((&loads[0].body["items"], &loads[0].body["namespace"]), (&asked, &json!("prod")));
    assert_eq!(rig.versions(0), [7, 4, 0]);
    assert_eq!((&polls[0].body["timeout_ms"], &polls[0].body["namespace"]), (&json!(30_000), &json!("prod")));
    assert_eq!(watcher.get(key("g/a")).unwrap().content, "A");
    assert_eq!(watcher.get(key("h/c")), None);
    assert_eq!(watcher.items().iter().map(|item| item.version).collect::<Vec<_>>(), [7, 4]);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_poll_is_the_one_of_the_options() {
    let rig = Rig::new();
    let watcher = rig.watcher(keys(&["g/a"]).poll_timeout(ms(1_500)));
    watcher.start().await.unwrap();
    tokio::time::sleep(ms(1)).await;
    assert_eq!(rig.polls()[0].body["timeout_ms"], json!(1_500));
}

#[tokio::test(start_paused = true)]
async fn b112_without_the_server_and_snapshots_off_it_starts_empty_and_an_answer_ends_that() {
    for step in [unavailable(), Step::Fault(ErrorKind::ConnRefused, Sent::Unsent), Step::Bare { status: 200, body: "<html>" }] {
        let rig = Rig::new();
        rig.script.next(Procedure::BatchGetConfig, step);
        rig.poll(after(secs(2), items(&[])));
        let watcher = rig.watcher(keys(&["g/a"]).without_snapshots());
        watcher.start().await.unwrap();
        assert!(watcher.is_from_snapshot() && watcher.is_loaded() && watcher.is_running());
        tokio::time::sleep(ms(1_999)).await;
        assert!(watcher.is_from_snapshot());
        tokio::time::sleep(ms(2)).await;
        assert!(!watcher.is_from_snapshot());
    }
}

#[tokio::test(start_paused = true)]
async fn b116_it_counts_as_from_disk_even_if_the_disk_has_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    rig.script.always(Procedure::BatchGetConfig, unavailable());
    let watcher = rig.make(keys(&["g/a"]), Some(dir.path())).unwrap();
    watcher.start().await.unwrap();
    assert!(watcher.is_from_snapshot() && watcher.items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b113_a_refusal_for_good_is_returned_and_the_watcher_may_be_started_again() {
    let rig = Rig::new();
    rig.script.next(Procedure::BatchGetConfig, forbidden());
    let watcher = rig.watcher(keys(&["g/a"]));
    let error = watcher.start().await.unwrap_err();
    assert!(matches!(error, Error::PermissionDenied(_)), "{error}");
    assert!(!watcher.is_running() && !watcher.is_loaded());
    tokio::time::sleep(secs(60)).await;
    assert!(rig.polls().is_empty());
    rig.load(&[item("g/a", 1, "A")]);
    watcher.start().await.unwrap();
    assert!(watcher.is_running());
    assert_eq!(watcher.get(key("g/a")).unwrap().version, 1);
}

#[tokio::test(start_paused = true)]
async fn b113_in_the_background_a_refusal_for_good_is_tried_again() {
    let rig = Rig::new();
    rig.script.next(Procedure::BatchGetConfig, forbidden()).next(Procedure::BatchGetConfig, forbidden());
    rig.load(&[item("g/a", 1, "A")]);
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]).on_change(heard.listener()));
    watcher.start_in_background().unwrap();
    assert!(watcher.is_running() && !watcher.is_loaded());
    let change = watcher.wait_for_change(ChangeFilter::any(), Some(secs(10))).await.unwrap();
    assert_eq!((change.version, watcher.is_loaded()), (1, true));
    let loads = rig.loads();
    let gaps: Vec<Duration> = loads.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!((ms(500)..=ms(1_001)).contains(&gaps[0]) && (ms(1_000)..=ms(2_001)).contains(&gaps[1]), "{gaps:?}");
    tokio::time::sleep(ms(1)).await;
    assert_eq!((heard.all(), rig.versions(0)), (vec!["g/a@1=A".to_owned()], vec![1]));
}

#[tokio::test(start_paused = true)]
async fn b115_missing_items_are_logged_as_information() {
    let logs = Logs::of_target(TARGET);
    let rig = Rig::new();
    let watcher = rig.watcher(keys(&["g/a", "g/b"]));
    watcher.start().await.unwrap();
    let lines = logs.all();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("INFO spinneret.config:") && lines[0].contains(r#"["g/a", "g/b"]"#), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn b119_starting_twice_changes_nothing_and_a_stopped_watcher_never_starts_again() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A")]);
    let watcher = rig.watcher(keys(&["g/a"]));
    watcher.start().await.unwrap();
    watcher.start().await.unwrap();
    watcher.start_in_background().unwrap();
    tokio::time::sleep(ms(1)).await;
    assert_eq!((rig.loads().len(), rig.polls().len()), (1, 1));
    watcher.stop(None).await;
    assert!(!watcher.is_running());
    for error in [watcher.start().await.unwrap_err(), watcher.start_in_background().unwrap_err()] {
        assert!(matches!(error, Error::FailedPrecondition(_)) && error.reason() == "watcher_stopped", "{error}");
    }
    assert_eq!(watcher.get(key("g/a")).unwrap().version, 1);
}

#[tokio::test(start_paused = true)]
async fn b119_two_starts_at_the_same_time_load_once() {
    let rig = Rig::new();
    rig.script.next(Procedure::BatchGetConfig, after(secs(1), items(&[item("g/a", 1, "A")])));
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a"]).on_change(heard.listener()));
    let (one, two) = tokio::join!(watcher.start(), watcher.start());
    assert!(one.is_ok() && two.is_ok());
    assert_eq!((rig.loads().len(), heard.all().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_start_while_another_one_fails_tries_by_itself() {
    let rig = Rig::new();
    rig.script.next(Procedure::BatchGetConfig, after(secs(1), forbidden()));
    let watcher = rig.watcher(keys(&["g/a"]));
    let (one, two) = tokio::join!(watcher.start(), watcher.start());
    assert!(one.is_err() && two.is_ok() && watcher.is_running());
    assert_eq!(rig.loads().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_start_given_up_while_it_loads_can_be_made_again() {
    let rig = Rig::new();
    rig.script.next(Procedure::BatchGetConfig, Step::Hang);
    rig.load(&[item("g/a", 1, "A")]);
    let watcher = rig.watcher(keys(&["g/a"]));
    assert!(tokio::time::timeout(secs(1), watcher.start()).await.is_err());
    assert!(!watcher.is_running());
    watcher.start().await.unwrap();
    assert_eq!((watcher.is_running(), watcher.items().len()), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn a_start_given_up_while_it_tells_leaves_the_rest_to_the_task() {
    let rig = Rig::new();
    rig.load(&[item("g/a", 1, "A"), item("g/b", 1, "B"), item("g/c", 1, "C")]);
    let heard = Heard::default();
    let watcher = rig.watcher(keys(&["g/a", "g/b", "g/c"]));
    let note = heard.clone();
    watcher.on_change_async(move |item| {
        let note = note.clone();
        async move {
            note.note(&item);
            tokio::time::sleep(secs(1)).await;
        }
    });
    assert!(tokio::time::timeout(ms(1_500), watcher.start()).await.is_err());
    assert!(watcher.is_running());
    assert_eq!(heard.all(), ["g/a@1=A", "g/b@1=B"]);
    tokio::time::sleep(secs(2)).await;
    assert_eq!(heard.all(), ["g/a@1=A", "g/b@1=B", "g/c@1=C"]);
    assert_eq!(rig.polls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_during_one_in_the_background_does_nothing() {
    let rig = Rig::new();
    rig.script.next(Procedure::BatchGetConfig, after(secs(1), items(&[item("g/a", 1, "A")])));
    let watcher = rig.watcher(keys(&["g/a"]));
    watcher.start_in_background().unwrap();
    watcher.start().await.unwrap();
    assert!(!watcher.is_loaded());
    tokio::time::sleep(secs(2)).await;
    assert_eq!((rig.loads().len(), watcher.is_loaded()), (1, true));
}

#[test]
fn a_start_in_the_background_without_a_runtime_is_an_error() {
    let watcher = Rig::new().watcher(keys(&["g/a"]));
    let error = watcher.start_in_background().unwrap_err();
    assert!(error.reason() == "no_runtime" && !watcher.is_running(), "{error}");
}

#[test]
fn options_out_of_their_range_make_no_watcher() {
    let error = Rig::new().make(keys(&[]), None).unwrap_err();
    assert_eq!(error.to_string(), "invalid_argument: config watcher: keys has 0 keys, 1 to 200 are allowed");
}
