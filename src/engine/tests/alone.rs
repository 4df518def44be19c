//! The hub alone: what it orders after single facts, for what the whole engine cannot be brought to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::args::Arguments;
use crate::api::context::Context;
use crate::api::request::Request;
use crate::api::stats::Stats;
use crate::broker::message::{Leased, Order as BrokerOrder, Refused};
use crate::downloader::message::{Attempt, Fetched, Hop, Order as DownloaderOrder, Sent, Verdict as Made};
use crate::engine::act::Act;
use crate::engine::hub::{CloseAfter, Hub, HubConfig};
use crate::engine::message::{Fact, StopReason};
use crate::engine::shutdown::Phase;
use crate::engine::ticket::Tag;
use crate::engine::window::Bytes;
use crate::plane::{About, Ask, Credential, Grant, IdentityKey, LeaseId, Refusal, RefusalKind, Report};
use crate::reporter::message::Order as ReporterOrder;
use crate::scheduler::job::{Books, Job, RequestId, SlotKey};
use crate::scheduler::message::{Control, Due, Order, Paced, Ready, Rest, Verdict};
use crate::scheduler::store::Cursors;
use crate::settings::{RequestRecords, Settings};

struct Alone {
    hub: Hub,
    stats: Stats,
    now: Instant,
    released: Arc<Mutex<Vec<LeaseId>>>,
    /// Whether hosts have a delay.
    is_paced: bool,
}

impl Alone {
    /// Hosts of `shop.test` are under rule 2, `free.test` under none.
    fn new() -> Self {
        Self::of(false)
    }

    fn of(is_shared: bool) -> Self {
        let (now, stats, released) = (Instant::now(), Stats::new(), Arc::<Mutex<Vec<LeaseId>>>::default());
        let context = Context::new("alone", "1", Arguments::new(), Arc::new(Settings::default()), stats.clone(), |_| {});
        let list = released.clone();
        let config = HubConfig {
            concurrent: 16,
            window_requests: 64,
            report_queue: 1000,
            report_hold: Duration::from_secs(2),
            seeds_wait_at: 10,
            acquire_pending: 64,
            is_remote: false,
            lease_give_up: Duration::from_secs(1800),
            grace: Duration::from_secs(10),
            close_timeout: Duration::from_secs(12),
            stall_warn: Duration::from_secs(30),
            parse_stall: Duration::from_secs(30),
            callback_timeout: Duration::from_secs(60),
            close_after: CloseAfter::default(),
            cursors: Cursors::default(),
            is_finished: false,
            is_shared,
            may_differ: Box::new(|_| false),
            stays: Box::new(|_, to| to.host_str().is_some_and(|host| host.ends_with("shop.test"))),
            ask: Box::new(|job| {
                let host = job.url().host_str()?;
                (host != "free.test").then(|| Ask {
                    site: "shop".into(),
                    client: "web".into(),
                    group: "".into(),
                    path: job.url().path().into(),
                    session_key: None,
                    anonymous: false,
                    rule: host.ends_with("shop.test").then(|| "LEASES rule 2".into()),
                })
            }),
            releaser: Arc::new(move |lease| list.lock().unwrap().push(lease)),
            context,
            robots_again: Duration::from_secs(600),
            request_records: RequestRecords::Final,
            stats_dump: false,
            memory_peak: || None,
            memory: crate::engine::memory_watch::MemoryWatch::of(&crate::settings::Settings::default(), || None),
        };
        Self { hub: Hub::new(config, Bytes::new(1 << 20), now), stats, now, released, is_paced: false }
    }

    fn acts(&mut self) -> Vec<Act> {
        self.hub.take_acts()
    }

    /// A job of this URL may go; its ask.
    fn ask(&mut self, url: &str, change: impl FnOnce(&mut Request)) -> Option<(Tag, Ask)> {
        let mut request = Request::get(url, &()).unwrap();
        change(&mut request);
        let slot = SlotKey::of(request.url());
        let job = Box::new(Job::page(RequestId::child(None, 1), 1, request));
        let due = Due { job, slot, wants_sent: self.is_paced, verdict: Verdict::Go };
        let ready = Ready { jobs: vec![due], books: Books::default(), next_due: None, after_offer: 0, seq: 1, rest: Rest::Ours };
        self.hub.fact(Fact::Ready(ready), self.now);
        self.acts().into_iter().find_map(|act| match act {
            Act::Broker(BrokerOrder::Acquire { tag, ask }) => Some((tag, ask)),
            _ => None,
        })
    }

    fn refuse(&mut self, tag: Tag, why: RefusalKind) {
        let refusal = Refusal { why, retry_after: None, message: "no such thing".into() };
        self.hub.fact(Fact::Refused(Refused { tag, refusal, wait: Duration::from_secs(1), is_held: false }), self.now);
    }

    fn grant(&mut self, tag: Tag) {
        let grant = Grant {
            lease: LeaseId("lease".into()),
            identity: IdentityKey { site: "shop".into(), name: "one".into() },
            credential: Arc::new(Credential::default()),
            proxy: None,
            about: About::default(),
            expires_at: self.now + Duration::from_secs(3600),
            renew_before: Duration::from_secs(30),
        };
        self.hub.fact(Fact::Leased(Leased { tag, grant }), self.now);
    }

    fn fetched(&mut self, tag: Tag, verdict: Made, attempt: Attempt) {
        let attempt = Attempt { sent_at: Some(self.now), ..attempt };
        self.hub.fact(Fact::Fetched(Box::new(Fetched { tag, verdict, attempt })), self.now);
    }
}

fn report(acts: &[Act]) -> Vec<&Report> {
    let of = |act| match act {
        &Act::Reporter(ReporterOrder::Report(ref report)) => Some(report),
        _ => None,
    };
    acts.iter().filter_map(of).collect()
}

#[test]
fn a_site_or_client_that_a_rule_names_and_the_plane_does_not_know_stops_the_job_and_keeps_the_request() {
    for why in [RefusalKind::SiteUnknown, RefusalKind::ClientUnknown] {
        let mut alone = Alone::new();
        let (tag, _) = alone.ask("http://www.shop.test/a", |_| {}).unwrap();
        alone.refuse(tag, why);
        let Phase::Stopping(stopping) = &alone.hub.phase else { panic!("it goes on") };
        let StopReason::Misconfigured(text) = &stopping.reason else { panic!("{stopping:?}") };
        assert!(text.contains("LEASES rule 2") && text.contains("no such thing"), "{text}");
        assert!(alone.acts().iter().any(|act| matches!(act, Act::Scheduler(Order::PutBack { .. }))));
    }
}

#[test]
fn the_same_of_a_request_without_rule_fails_that_request() {
    let mut alone = Alone::new();
    let (tag, _) = alone.ask("http://other.test/a", |_| {}).unwrap();
    alone.refuse(tag, RefusalKind::SiteUnknown);
    assert!(alone.hub.phase.pulls());
    assert_eq!(alone.hub.tally.failed, 0, "failed has the word first");
    assert!(!alone.acts().iter().any(|act| matches!(act, Act::Scheduler(Order::PutBack { .. }))));
}

#[test]
fn a_host_without_rule_is_asked_for_nothing() {
    let mut alone = Alone::new();
    assert!(alone.ask("http://free.test/a", |_| {}).is_none());
    assert_eq!(alone.stats.count("lease/unmatched"), 1);
}

#[test]
fn a_hop_within_the_rule_to_another_host_keeps_the_lease_but_not_what_the_request_brought_along() {
    let mut alone = Alone::new();
    let change = |request: &mut Request| {
        request.header("authorization", "canary").unwrap().header("x-own", "stays").unwrap().cookie("session", "canary");
    };
    let (tag, _) = alone.ask("http://www.shop.test/a", change).unwrap();
    alone.grant(tag);
    let to = "http://cdn.shop.test/b".parse().unwrap();
    alone.fetched(tag, Made::Redirect(Hop::to(to)), Attempt::answered(302));
    let acts = alone.acts();
    let reports = report(&acts);
    assert_eq!((reports.len(), reports[0].release), (1, false));
    let hop = acts.into_iter().find_map(|act| match act {
        Act::Scheduler(Order::Hop { tag, job }) => Some((tag, job)),
        _ => None,
    });
    let (tag, job) = hop.unwrap();
    let headers = job.request.headers().unwrap();
    assert!(headers.get("authorization").is_none() && headers.get("x-own").is_some() && job.request.cookies().is_empty());
    let slot = SlotKey::of(job.url());
    alone.hub.fact(Fact::Paced(Box::new(Paced { tag, job, slot, wants_sent: false, verdict: Verdict::Go })), alone.now);
    let fetch = alone.acts().into_iter().find_map(|act| match act {
        Act::Downloader(DownloaderOrder::Fetch { tag, grant, .. }) => Some((tag, grant.lease)),
        _ => None,
    });
    assert_eq!(fetch, Some((tag, LeaseId("lease".into()))));
}

#[test]
fn a_report_without_callback_carries_the_marks_of_rules() {
    let retry = || Made::Retry { reason: "again".into(), after: Duration::ZERO };
    let redirect = || Made::Redirect(Hop::to("http://far.test/".parse().unwrap()));
    for verdict in [retry(), redirect()] {
        let mut alone = Alone::new();
        let (tag, _) = alone.ask("http://www.shop.test/a", |_| {}).unwrap();
        alone.grant(tag);
        let markers = vec!["captcha_page".to_owned(), "captcha_page".to_owned()];
        alone.fetched(tag, verdict, Attempt { markers, ..Attempt::answered(503) });
        let acts = alone.acts();
        let reports = report(&acts);
        assert_eq!((reports.len(), reports[0].markers.as_slice()), (1, &["captcha_page".to_owned()][..]));
        assert!(reports[0].release && reports[0].sent_at == alone.now);
        assert!(alone.released.lock().unwrap().is_empty(), "the report ends the lease");
    }
}

#[test]
fn a_limit_that_concerns_one_worker_stops_no_other() {
    for (limit, is_of_all) in [
        ("closespider_itemcount", true),
        ("closespider_timeout", true),
        ("memusage_exceeded", false),
        ("closespider_timeout_no_item", false),
        ("closespider_pagecount_no_item", false),
    ] {
        let mut alone = Alone::of(true);
        alone.hub.stop(StopReason::Limit(limit), alone.now);
        let acts = alone.acts();
        let stops_all = acts.iter().any(|act| matches!(act, Act::SchedulerControl(Control::StopAll { .. })));
        assert_eq!(stops_all, is_of_all, "{limit}");
        assert!(acts.iter().any(|act| matches!(act, Act::SchedulerControl(Control::Stop))), "{limit}: this one leaves");
    }
}

#[test]
fn a_place_that_comes_back_tells_whether_its_sending_is_still_waited_for() {
    let freed = |acts: Vec<Act>| {
        acts.into_iter().find_map(|act| match act {
            Act::Scheduler(Order::Freed { unsent, .. }) => Some(unsent),
            _ => None,
        })
    };
    let redirect = || Made::Redirect(Hop::to("http://far.test/".parse().unwrap()));
    for (is_paced, is_sent, unsent) in [(true, true, false), (true, false, true), (false, false, false)] {
        let mut alone = Alone { is_paced, ..Alone::new() };
        let (tag, _) = alone.ask("http://www.shop.test/a", |_| {}).unwrap();
        alone.grant(tag);
        let fetch = alone.acts().into_iter().find_map(|act| match act {
            Act::Downloader(DownloaderOrder::Fetch { tag, wants_sent, .. }) => Some((tag, wants_sent)),
            _ => None,
        });
        let (tag, wants_sent) = fetch.unwrap();
        assert_eq!(wants_sent, is_paced);
        if is_sent {
            alone.hub.fact(Fact::Sent(Sent { tag, at: alone.now }), alone.now);
        }
        alone.fetched(tag, redirect(), Attempt::answered(302));
        assert_eq!(freed(alone.acts()), Some(unsent), "paced {is_paced}, sent {is_sent}");
    }
    let mut alone = Alone { is_paced: true, ..Alone::new() };
    let (tag, _) = alone.ask("http://www.shop.test/a", |_| {}).unwrap();
    alone.refuse(tag, RefusalKind::Invalid);
    assert_eq!(freed(alone.acts()), Some(true));
}
