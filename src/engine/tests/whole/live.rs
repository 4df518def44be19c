//! What changes while a job runs: settings and config items.

use std::sync::Arc;
use std::time::Duration;

use super::script::{Do, follow};
use super::stand::{Desk, Stand};
use super::{MILLI, SECOND};
use crate::api::signal::ConfigChanged;
use crate::engine::message::Control;
use crate::settings::Settings;
use crate::testkit::transport::Answer;

/// Ten pages, one after the other, a second each.
fn slow() -> Stand {
    let urls: Vec<String> = (0..10).map(|n| format!("http://a.test/{n}")).collect();
    let mut stand =
        Stand::new().start(urls.iter().map(|url| follow(url)).collect::<Vec<Do>>()).with(|s| s.concurrent_requests = 1);
    for url in &urls {
        stand = stand.answers(url, [Answer::html("ok").after(SECOND)]);
    }
    stand
}

fn changed(version: i32) -> Control {
    Control::ConfigChanged(ConfigChanged { group: "crawl".to_owned(), key: "limits".to_owned(), version, from_snapshot: false })
}

async fn at(desk: &Desk, after: Duration, control: Control) {
    tokio::time::sleep(after).await;
    desk.engine.tell(control);
}

#[test]
fn a_changed_config_item_is_told_once_however_many_parsers_there_are() {
    let mut stand = slow();
    stand.parsers = 3;
    let done = stand.run_and(|desk| async move {
        at(&desk, SECOND / 2, changed(1)).await;
        at(&desk, SECOND, changed(2)).await;
    });
    done.assert_whole();
    let told: Vec<&str> =
        done.lines.iter().map(|(_, line)| line.as_str()).filter(|line| line.starts_with("signal config")).collect();
    assert_eq!(told, ["signal config crawl/limits 1", "signal config crawl/limits 2"]);
}

#[test]
fn after_the_spider_has_heard_of_the_end_it_hears_of_no_config_item() {
    for after in (9_900..10_100).step_by(10) {
        let done = slow().run_and(move |desk| async move { at(&desk, after * MILLI, changed(1)).await });
        done.assert_whole();
        let signals: Vec<&str> =
            done.lines.iter().map(|(_, line)| line.as_str()).filter(|line| line.starts_with("signal ")).collect();
        assert!(signals.last().unwrap().starts_with("signal closed"), "{after}: {signals:?}");
    }
}

#[test]
fn a_limit_that_is_set_while_the_job_runs_ends_it() {
    let stand = slow();
    let settings = Arc::new(Settings { closespider_pagecount: 3, ..stand.settings.clone() });
    let done = stand.run_and(move |desk| async move { at(&desk, SECOND / 2, Control::Settings(settings)).await });
    done.assert_sound();
    assert_eq!(done.ended.reason, "closespider_pagecount");
    assert!(done.took < 6 * SECOND, "{:?}", done.took);
}

#[test]
fn retries_that_are_switched_off_while_the_job_runs_are_made_no_more() {
    let broken = || {
        let answers = (0..50).map(|_| Answer::new(503, "").after(SECOND));
        Stand::new().start([follow("http://a.test/page")]).answers("http://a.test/page", answers).with(|s| s.retry_times = 20)
    };
    let stand = broken();
    let settings = Arc::new(Settings { retry_enabled: false, ..stand.settings.clone() });
    let done = stand.run_and(move |desk| async move { at(&desk, 2 * SECOND + SECOND / 2, Control::Settings(settings)).await });
    done.assert_sound();
    assert_eq!(done.asked.len(), 3);
    assert_eq!(broken().run().asked.len(), 21);
}
