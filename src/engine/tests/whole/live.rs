//! What changes while a job runs: settings and config items.

use std::sync::Arc;
use std::time::Duration;

use super::fakes::Judged;
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

#[test]
fn a_delay_that_is_set_while_the_job_runs_holds_for_leases_that_were_asked_for_ahead() {
    for (is_remote, way) in [(true, 100), (true, 6), (false, 100), (false, 0)] {
        let url = |n: usize| format!("http://a.test/{n}");
        let mut stand = Stand::new()
            .start((0..120).map(|n| follow(&url(n))).collect::<Vec<Do>>())
            .with(|s| s.concurrent_requests_per_domain = 8)
            .judge(move |_, _| if way == 0 { Judged::Grant } else { Judged::GrantAfter(way * MILLI) });
        for n in 0..120 {
            stand = stand.answers(&url(n), [Answer::html("ok").after(60 * MILLI)]);
        }
        stand.is_remote = is_remote;
        let settings = Arc::new(Settings { download_delay: SECOND, ..stand.settings.clone() });
        let change = 505 * MILLI;
        let done = stand.run_and(move |desk| async move { at(&desk, change, Control::Settings(settings)).await });
        done.assert_whole();
        let sent = done.times("GET");
        assert_eq!(sent.len(), 120);
        let after: Vec<Duration> = sent.iter().copied().filter(|at| *at > change).collect();
        assert!(after.len() > 20, "{}", after.len());
        assert!(after[0] >= change + SECOND, "{is_remote} {way}: {after:?}");
        assert!(after.windows(2).all(|pair| pair[1] - pair[0] >= SECOND), "{is_remote} {way}: {after:?}");
    }
}

#[test]
fn fewer_places_that_are_set_while_the_job_runs_hold_for_leases_that_were_asked_for_ahead() {
    let url = |n: usize| format!("http://h{}.test/{n}", n % 2);
    let mut stand = Stand::new()
        .start((0..300).map(|n| follow(&url(n))).collect::<Vec<Do>>())
        .with(|s| {
            s.concurrent_requests = 16;
            s.concurrent_requests_per_domain = 8;
        })
        .judge(|_, _| Judged::GrantAfter(100 * MILLI));
    for n in 0..300 {
        stand = stand.answers(&url(n), [Answer::html("ok").after(60 * MILLI)]);
    }
    stand.is_remote = true;
    let settings = Arc::new(Settings { concurrent_requests: 3, concurrent_requests_per_domain: 2, ..stand.settings.clone() });
    let change = 505 * MILLI;
    let done = stand.run_and(move |desk| async move { at(&desk, change, Control::Settings(settings)).await });
    done.assert_whole();
    assert!(done.most_at_once <= 16, "{}", done.most_at_once);
    // Each page takes 60 ms, so what was sent within any 59 ms was on the wire together.
    let later =
        |begins: &str| -> Vec<Duration> { done.times(begins).into_iter().filter(|at| *at > change + 70 * MILLI).collect() };
    let most = |times: &[Duration]| {
        (0..times.len()).map(|n| times[n..].iter().take_while(|at| **at < times[n] + 59 * MILLI).count()).max().unwrap()
    };
    assert!(most(&later("GET")) <= 3, "{}", most(&later("GET")));
    for host in ["GET http://h0.test", "GET http://h1.test"] {
        assert!(most(&later(host)) <= 2, "{host}: {}", most(&later(host)));
    }
}
