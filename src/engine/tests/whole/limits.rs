//! Bounds: a slow sink, a full frontier, too many effects, endless seeds; and the watchdog that says so.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

use super::fakes::{Judged, Most, Weighed};
use super::script::Do::{self, Flush, Push, Send, Sleep};
use super::script::{follow, item};
use super::stand::Stand;
use super::{MILLI, SECOND};
use crate::plane::RefusalKind;
use crate::scheduler::MemoryStore;
use crate::testkit::transport::Answer;

fn long(short: usize, long: usize) -> usize {
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { long } else { short }
}

fn weighed(stand: &mut Stand) -> Arc<Most> {
    let most = Arc::new(Most::default());
    let bound = usize::try_from(stand.settings.frontier_max_bytes).unwrap();
    stand.store = Some(Box::new(Weighed { inner: MemoryStore::new(bound), most: most.clone() }));
    most
}

#[test]
fn a_blocked_sink_slows_the_crawl_to_a_stop_and_loses_nothing() {
    let count = 600;
    let mut stand = Stand::new().start([Send(count, "http://a.test/".to_owned())]).with(|s| {
        s.spool_max_bytes = 64 * 1024;
        s.apcloudy_batch_size = 20;
        s.concurrent_requests = 4;
        s.window_requests = 20;
    });
    for n in 0..count {
        stand = stand.page(&format!("http://a.test/{n}"), [item(&format!("{n:04}{}", "x".repeat(500)))]);
    }
    let most = weighed(&mut stand);
    let seen: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    let done = {
        let seen = seen.clone();
        stand.run_and(|desk| async move {
            desk.sink_open.store(false, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::time::sleep(60 * SECOND).await;
                seen.lock().unwrap().push((desk.wire.asked(), desk.script.running.load(Ordering::SeqCst)));
            }
            desk.sink_open.store(true, Ordering::SeqCst);
        })
    };
    done.assert_whole();
    let seen = seen.lock().unwrap().clone();
    let first = seen[0].0;
    assert!(first > 20 && first < 400, "it stops when the spool is full: {seen:?}");
    assert!(seen.iter().all(|(asked, _)| *asked == first), "nothing moves while the sink is closed: {seen:?}");
    assert_eq!(done.items.len(), count);
    assert_eq!(done.records.len(), count);
    assert!(done.count("collector/blocked_count") >= 1);
    assert!(done.count("engine/stalls") >= 1, "the watchdog speaks");
    assert!(most.pending.load(Ordering::SeqCst) <= count);
}

#[test]
fn callbacks_that_flush_all_at_once_make_progress() {
    // More than a parser has slots: each waits in its commit.
    let count = 300;
    let mut stand = Stand::new().start((0..count).map(|n| follow(&format!("http://a.test/{n}")))).with(|s| {
        s.concurrent_requests = 200;
        s.concurrent_requests_per_domain = 200;
    });
    for n in 0..count {
        let id = |part: &str| format!("{n:03}{part}");
        stand = stand.page(&format!("http://a.test/{n}"), [item(&id("a")), Flush, item(&id("b")), Flush, item(&id("c"))]);
    }
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.items.len(), 3 * count);
    assert!(done.took < 10 * SECOND, "{:?}", done.took);
}

#[test]
fn more_effects_than_callback_max_effects_fail_and_name_flush() {
    let page = "http://a.test/page";
    for (list, fails) in [
        (vec![Push(11, "http://b.test/".to_owned())], true),
        ((0..11).map(|n| item(&n.to_string())).collect(), true),
        (vec![Push(10, "http://b.test/".to_owned())], false),
        (vec![Push(10, "http://b.test/".to_owned()), Flush, Push(10, "http://c.test/".to_owned())], false),
        (vec![Send(35, "http://b.test/".to_owned())], false),
    ] {
        let done = Stand::new().start([follow(page)]).page(page, list.clone()).with(|s| s.callback_max_effects = 10).run();
        done.assert_whole();
        let errors = done.said("signal error");
        assert_eq!(errors.len(), usize::from(fails), "{list:?}");
        assert!(errors.iter().all(|e| e.contains("CALLBACK_MAX_EFFECTS") && e.contains("flush")), "{errors:?}");
        assert_eq!(done.ended.books.failed, u64::from(fails));
    }
}

#[test]
fn pages_without_end_fill_the_frontier_to_its_bound_and_the_job_says_so() {
    let few: Vec<Do> = (0..8).map(|n| follow(&format!("http://a.test/{n}"))).collect();
    // With so many `start` itself waits, for a frontier that will never be low again.
    let many = vec![Send(3000, "http://a.test/".to_owned())];
    for (start, bound) in [(few, 512 * 1024), (many, 2 * 1024 * 1024)] {
        let mut stand = Stand::new().start(start).with(|s| {
            s.frontier_max_bytes = bound;
            s.callback_max_effects = 200;
            s.concurrent_requests = 4;
            s.window_requests = 10;
        });
        stand.script.other = vec![Send(100_000, String::new())];
        let most = weighed(&mut stand);
        let script = Arc::new(Mutex::new(None));
        let done = {
            let script = script.clone();
            stand.run_and(move |desk| async move { *script.lock().unwrap() = Some(desk.script) })
        };
        done.assert_sound();
        assert_eq!((done.ended.reason.as_str(), done.ended.code), ("frontier_full", 3), "{:?}", done.ended);
        let (held, bound) = (most.bytes.load(Ordering::SeqCst), usize::try_from(bound).unwrap());
        assert!(held <= bound + 64 * 1024 && held > bound / 2, "{held}");
        let open = script.lock().unwrap().as_ref().unwrap().most.load(Ordering::SeqCst);
        assert!(open <= 14, "{open} callbacks at once");
        assert!(done.took < 30 * SECOND, "{:?}", done.took);
        assert!(done.ended.books.pending > 100);
    }
}

#[test]
fn a_full_frontier_that_empties_goes_on() {
    // The sum of what the pages make is over the bound, what is unfinished at a time is not.
    let mut stand = Stand::new().start((0..6).map(|n| follow(&format!("http://a.test/{n}")))).with(|s| {
        s.frontier_max_bytes = 512 * 1024;
        s.callback_max_effects = 100;
        s.concurrent_requests = 8;
        s.concurrent_requests_per_domain = 8;
    });
    for n in 0..6 {
        stand = stand.page(&format!("http://a.test/{n}"), [Send(600, format!("http://a.test/{n}/"))]);
    }
    let most = weighed(&mut stand);
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 6 + 6 * 600);
    // The table of what is out grows when it is pulled, not when it is offered.
    let held = most.bytes.load(Ordering::SeqCst);
    assert!(held <= (512 + 64) * 1024, "{held}");
}

#[test]
fn start_never_has_more_requests_queued_than_stated() {
    let count = long(10_000, 1_000_000);
    let mut stand = Stand::new().start([Send(count, "http://a.test/".to_owned())]).with(|s| {
        s.concurrent_requests = 50;
        s.concurrent_requests_per_domain = 50;
    });
    let most = weighed(&mut stand);
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.asked.len(), count);
    // A thousand, or four for each download, and what one `send` hands over.
    let pending = most.pending.load(Ordering::SeqCst);
    assert!(pending <= 1000 + 128, "{pending}");
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &tracing::Event<'_>, _: LayerContext<'_, S>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!(" {field}={value:?}"));
            }
        }
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
}

#[test]
fn a_crawl_without_progress_says_what_it_waits_for() {
    let page = "http://a.test/page";
    let site = || Stand::new().start([follow(page)]).answers(page, [Answer::html("ok").after(100 * SECOND)]);
    let callback = || Stand::new().start([follow(page)]).page(page, [Sleep(50 * SECOND)]);
    let lease = || {
        let refuse = Some(40 * SECOND);
        Stand::new()
            .start([follow(page)])
            .judge(move |_, now| if now < 40 * SECOND { Judged::Refuse(RefusalKind::NoIdentity, refuse) } else { Judged::Grant })
    };
    let stands: [(Stand, &str); 3] =
        [(site(), "for the site"), (callback(), "for its callback"), (lease(), "leases of site a.test: ")];
    // With one dispatcher alone, tracing asks the thread that first meets a callsite, and caches its answer for all.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    for (stand, what) in stands {
        let heard = Heard::default();
        let subscriber = tracing_subscriber::registry().with(heard.clone());
        let done = tracing::subscriber::with_default(subscriber, || stand.run());
        done.assert_whole();
        let told = heard.0.lock().unwrap().clone();
        let stalls: Vec<_> = told.iter().filter(|line| line.contains("no progress")).collect();
        assert!(!stalls.is_empty() && stalls[0].contains(what) && stalls[0].starts_with("WARN"), "{what}: {stalls:?}");
        assert_eq!(done.count("engine/stalls"), i64::try_from(stalls.len()).unwrap());
        assert!(stalls.len() <= 3, "once in STALL_WARN: {stalls:?}");
    }
}

#[test]
fn a_window_of_bytes_holds_downloads_back_and_all_arrive() {
    let body = "x".repeat(40_000);
    let mut stand = Stand::new().start((0..40).map(|n| follow(&format!("http://a.test/{n}")))).with(|s| {
        s.window_bytes = 100_000;
        s.concurrent_requests = 20;
        s.concurrent_requests_per_domain = 20;
    });
    for n in 0..40 {
        let url = format!("http://a.test/{n}");
        stand = stand.answers(&url, [Answer::html(body.clone()).after(10 * MILLI)]).page(&url, [Sleep(SECOND)]);
    }
    let done = stand.run();
    done.assert_whole();
    let peak = done.ended.stats["engine/window_bytes_max"].as_u64().unwrap();
    assert!(peak <= 140_000, "{peak}");
    assert!(done.took >= 13 * SECOND, "{:?}", done.took);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if long(0, 1) == 1 { 1000 } else { 32 }))]

    #[test]
    fn a_small_frontier_ends_every_job_and_only_one_that_cannot_go_on_as_full(
        pages in proptest::collection::vec((1_usize..400, any::<bool>()), 1..10),
        effects in 2_usize..300,
        kib in 24_u64..400,
        concurrent in 1_usize..6,
        window in 1_usize..20,
    ) {
        let mut stand = Stand::new().start([Send(pages.len(), "http://a.test/".to_owned())]).with(|s| {
            s.frontier_max_bytes = kib * 1024;
            s.callback_max_effects = effects;
            s.concurrent_requests = concurrent;
            s.window_requests = window;
        });
        let (mut total, mut largest) = (pages.len(), pages.len());
        for (n, (count, sends)) in pages.iter().enumerate() {
            // Pushed ones go in one offer, within the limit with the item, sent ones in offers of half the limit.
            let count = if *sends { *count } else { (*count).min(effects - 1) };
            let prefix = format!("http://a.test/{n}/");
            total += count;
            largest = largest.max(if *sends { count.min(effects / 2 + 1) } else { count });
            let list = if *sends { Send(count, prefix) } else { Push(count, prefix) };
            stand = stand.page(&format!("http://a.test/{n}"), [list, item(&n.to_string())]);
        }
        let done = stand.run();
        done.assert_sound();
        if done.ended.reason == "finished" {
            prop_assert_eq!(done.asked.len(), total);
            prop_assert_eq!(done.items.len(), pages.len());
        } else {
            prop_assert_eq!((done.ended.reason.as_str(), done.ended.code), ("frontier_full", 3));
            // A request takes about half a KiB, a URL that was seen at most 40 bytes, and that table doubles.
            let needs = 16 * 1024 + total * 120 + (largest + pages.len()) * 900;
            // A window with nothing but waiting callbacks in it is full as well: nothing queued can go.
            let fits = kib * 1024 >= needs as u64 && window > pages.len();
            prop_assert!(!fits, "{kib} KiB are enough for {needs} bytes");
        }
    }
}
