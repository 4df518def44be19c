//! The actor and its downloads: one answer for each order, whatever happens.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::chain::ChainParts;
use super::message::{Control, Fetched, Order, Verdict};
use super::middleware::jars::Jars;
use super::running::Downloads;
use super::{Downloader, DownloaderConfig};
use crate::actor::{Inbox, Place, Policy, Tap, run_local, supervise};
use crate::api::failure::FailureKind;
use crate::api::request::Request;
use crate::api::stats::Stats;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::plane::{About, Grant, IdentityKey, LeaseId};
use crate::scheduler::job::{Job, RequestId};
use crate::settings::Settings;
use crate::testkit::{Answer, Free, ScriptedTransport};

struct Stage {
    inbox: Inbox<Downloader>,
    engine: Tap<Fact>,
    downloads: Arc<Downloads>,
}

impl Stage {
    fn new(bound: usize) -> Self {
        let wire = ScriptedTransport::with_default(|outgoing| match outgoing.url.path() {
            "/panic" => panic!("a bug"),
            "/slow" => Answer::html("slow").after(Duration::from_secs(60)),
            _ => Answer::html("hello"),
        });
        let engine = Tap::new("engine", 1);
        let parts = ChainParts {
            config: DownloaderConfig::from_settings(&Settings::default()),
            transport: Arc::new(wire),
            stats: Stats::new(),
            jars: Arc::new(Jars::new(&Stats::new())),
            middlewares: vec![],
            authorizer: None,
            cache: None,
            seed: 1,
        };
        let downloads = Downloads::new(parts, Handle::current(), engine.facts());
        let inbox = Inbox::new("downloader", bound);
        let shared = Arc::clone(&downloads);
        supervise(Place::Here, &inbox, Policy::default(), move |_| Downloader::new(Arc::clone(&shared)), |_| {});
        Self { inbox, engine, downloads }
    }

    fn fetch(&self, ticket: u64, path: &str, wants_sent: bool) {
        let request = Request::get(&format!("https://shop.example/{path}"), &()).unwrap();
        let grant = Grant {
            lease: LeaseId("lease".into()),
            identity: IdentityKey { site: "shop".into(), name: "a".into() },
            credential: Arc::default(),
            proxy: None,
            about: About::default(),
            expires_at: tokio::time::Instant::now(),
            renew_before: Duration::ZERO,
        };
        let job = Arc::new(Job::page(RequestId(1), 1, request));
        self.inbox.link().offer(Order::Fetch { tag: tag(ticket), job, grant, wants_sent, meter: Arc::new(Free) }).unwrap();
    }

    async fn fetched(&self) -> Fetched {
        match self.engine.next().await.0 {
            Fact::Fetched(fetched) => *fetched,
            other => panic!("{other:?}"),
        }
    }

    async fn failed(&self) -> (u64, FailureKind) {
        let fetched = self.fetched().await;
        match fetched.verdict {
            Verdict::Fail(fault, _) => (fetched.tag.ticket, fault.kind),
            other => panic!("{other:?}"),
        }
    }

    /// Nothing more comes, and nothing is left behind.
    async fn is_quiet(&self) -> bool {
        tokio::time::sleep(Duration::from_secs(600)).await;
        self.engine.take_all().is_empty() && self.downloads.count() == 0 && self.inbox.link().free() == self.inbox.link().bound()
    }
}

fn tag(ticket: u64) -> Tag {
    Tag { ticket, epoch: 1 }
}

#[test]
fn an_order_is_answered_by_sent_and_fetched() {
    run_local(async {
        let stage = Stage::new(4);
        stage.fetch(1, "", true);
        assert!(matches!(stage.engine.next().await.0, Fact::Sent(sent) if sent.tag == tag(1)));
        let fetched = stage.fetched().await;
        assert!(matches!(fetched.verdict, Verdict::Deliver(reply) if reply.body == "hello"));
        assert_eq!(fetched.attempt.charged, 5);
        stage.fetch(2, "", false);
        assert_eq!(stage.fetched().await.tag, tag(2));
        assert!(stage.is_quiet().await);
    });
}

#[test]
fn a_slot_is_held_until_the_answer() {
    run_local(async {
        let stage = Stage::new(2);
        stage.fetch(1, "slow", false);
        stage.fetch(2, "slow", false);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((stage.inbox.link().free(), stage.downloads.count()), (0, 2));
        stage.fetched().await;
        assert!(stage.inbox.link().free() > 0);
        stage.fetched().await;
        assert!(stage.is_quiet().await);
    });
}

#[test]
fn a_cancelled_download_is_answered_once() {
    run_local(async {
        let stage = Stage::new(4);
        stage.fetch(1, "slow", false);
        stage.fetch(2, "slow", false);
        tokio::time::sleep(Duration::from_secs(5)).await;
        stage.inbox.controls().tell(Control::Cancel(tag(1)));
        stage.inbox.controls().tell(Control::Cancel(tag(1)));
        let fetched = stage.fetched().await;
        assert_eq!((fetched.tag, fetched.attempt.latency), (tag(1), Duration::from_secs(5)));
        assert!(matches!(fetched.verdict, Verdict::Fail(fault, None) if fault.kind == FailureKind::Cancelled));
        assert!(matches!(stage.fetched().await.verdict, Verdict::Deliver(_)));
        assert!(stage.is_quiet().await);
    });
}

#[test]
fn a_cancel_that_overtakes_its_order_still_counts() {
    run_local(async {
        let stage = Stage::new(4);
        stage.fetch(1, "", false);
        stage.fetch(2, "", false);
        stage.inbox.controls().tell(Control::Cancel(tag(1)));
        assert_eq!(stage.failed().await, (1, FailureKind::Cancelled));
        assert!(matches!(stage.fetched().await.verdict, Verdict::Deliver(_)));
        assert!(stage.is_quiet().await);
    });
}

#[test]
fn cancelling_all_ends_what_runs_and_what_is_queued_but_nothing_later() {
    run_local(async {
        let stage = Stage::new(8);
        stage.fetch(1, "slow", false);
        tokio::time::sleep(Duration::from_secs(1)).await;
        stage.fetch(2, "", false);
        stage.fetch(3, "", false);
        stage.inbox.controls().tell(Control::CancelAll);
        let mut ended = [stage.failed().await, stage.failed().await, stage.failed().await];
        ended.sort_by_key(|(ticket, _)| *ticket);
        assert_eq!(ended, [1, 2, 3].map(|ticket| (ticket, FailureKind::Cancelled)));
        stage.fetch(4, "", false);
        assert!(matches!(stage.fetched().await.verdict, Verdict::Deliver(_)));
        assert!(stage.is_quiet().await);
    });
}

#[test]
fn a_panic_in_a_download_is_answered_as_internal() {
    run_local(async {
        let stage = Stage::new(4);
        stage.fetch(1, "panic", false);
        assert_eq!(stage.failed().await, (1, FailureKind::Internal));
        assert!(stage.is_quiet().await);
    });
}
