//! The stand: puts a whole engine together from fakes, runs it to its end and shows everything that happened.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use super::fakes::{Gate, Judge, Judged, Plane, Wire};
use super::script::{Do, Notes, Robot, Script};
use crate::actor::{Arbiter, Controls, Place, run_local, run_system};
use crate::apcloudy::Answer as SinkAnswer;
use crate::apcloudy::JobId;
use crate::api::args::Arguments;
use crate::api::context::Context;
use crate::api::extension::Extension;
use crate::api::middleware::Installed;
use crate::api::pipeline::DynPipeline;
use crate::api::spider::DynSpider;
use crate::api::stats::Stats;
use crate::broker::Net;
use crate::broker::rules::Rules;
use crate::collector::leftovers::Holds;
use crate::collector::logring::LogRing;
use crate::collector::{CollectorConfig, Delivery, Ends, Outlets, Seeds, Tidy, open_at};
use crate::courier::MemorySink;
use crate::downloader::transport::Outgoing;
use crate::engine::message::{Control, Ended, StopReason};
use crate::export::Feed;
use crate::parser::stage::{Listeners, Stage};
use crate::plane::embedded::Embedded;
use crate::plane::{Ask, ControlPlane, LeaseId, PlaneError, PlaneLedger, Report};
use crate::run::{Backends, Entry, Job, Keeping, Progress, Running, Threads, assemble, close};
use crate::scheduler::MemoryStore;
#[cfg(feature = "redis")]
use crate::scheduler::fleet::fake::{Fake, World};
#[cfg(feature = "redis")]
use crate::scheduler::fleet::{FleetConfig, SharedFrontier};
use crate::scheduler::store::Store;
use crate::settings::{LeaseRule, OnFatal, Settings, UnmatchedLease};
use crate::testkit::transport::{Answer, ScriptedTransport};

/// A job that is not over by then never ends.
const FOREVER: Duration = Duration::from_secs(3 * 3600);

/// How long a worker of a fleet may give no sign of life, and how long its server may be out of reach.
#[cfg(feature = "redis")]
pub(super) const VISIBILITY: Duration = Duration::from_secs(30);
#[cfg(feature = "redis")]
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A job before it is run.
pub(super) struct Stand {
    pub(super) settings: Settings,
    pub(super) script: Script,
    pub(super) wire: ScriptedTransport,
    pub(super) judge: Judge,
    /// The text of an identities file; without one everybody is anonymous.
    pub(super) identities: Option<String>,
    pub(super) store: Option<Box<dyn Store>>,
    /// The frontier that it shares as a worker of this name, instead of a store.
    #[cfg(feature = "redis")]
    pub(super) fleet: Option<(Arc<Mutex<World>>, &'static str)>,
    pub(super) pipelines: Vec<(String, Box<dyn DynPipeline>)>,
    pub(super) extensions: Vec<Box<dyn Extension>>,
    pub(super) middlewares: Vec<Installed>,
    pub(super) parsers: usize,
    pub(super) sink: MemorySink,
    /// What becomes of a delivery instead of being taken, by the number of the call.
    pub(super) sink_fault: Box<dyn FnMut(u64) -> Option<SinkAnswer> + Send>,
    pub(super) on_fatal: OnFatal,
    pub(super) spool: Option<PathBuf>,
    /// The number of a new record log: each run has its own.
    pub(super) log_id: u64,
    pub(super) ends: Ends,
    pub(super) leases: Vec<LeaseRule>,
    pub(super) feeds: Vec<(String, Box<dyn Feed>)>,
    pub(super) calls: Calls,
    /// Parsers on threads of their own, and a clock that runs.
    pub(super) threads: bool,
    pub(super) tidy_panics: bool,
    pub(super) report_panics: bool,
    pub(super) renew_fails: bool,
    pub(super) is_remote: bool,
    pub(super) life: Option<Duration>,
    pub(super) reports_fail: Option<(Duration, PlaneError)>,
    pub(super) hangs_from: Option<Duration>,
    pub(super) unmatched: UnmatchedLease,
}

/// Where calls to the plane go on that have to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    WithTheirActor,
    /// They outlive the actor that began them.
    Elsewhere,
}

/// A running job, in the hands of a test.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) engine: Controls<Control>,
    pub(super) script: Arc<Script>,
    pub(super) stats: Stats,
    pub(super) sink_open: Arc<AtomicBool>,
    pub(super) wire: Arc<Wire>,
}

/// A job after its end.
pub(super) struct Outcome {
    pub(super) ended: Ended,
    pub(super) ledger: PlaneLedger,
    pub(super) reports: Vec<(Duration, Report)>,
    pub(super) releases: Vec<LeaseId>,
    pub(super) granted: Vec<(Duration, LeaseId, Ask)>,
    pub(super) asked: Vec<Outgoing>,
    pub(super) lines: Vec<(Duration, String)>,
    pub(super) items: Vec<Value>,
    pub(super) records: Vec<Value>,
    pub(super) sent_stats: Vec<Value>,
    pub(super) stats: Stats,
    pub(super) took: Duration,
    pub(super) most_at_once: usize,
    pub(super) spool_left: bool,
    /// Segments of the record log are left.
    pub(super) segments_left: bool,
}

impl Desk {
    pub(super) fn stop(&self) {
        self.engine.tell(Control::Stop(StopReason::Signal));
    }

    pub(super) fn kill(&self) {
        self.engine.tell(Control::Kill);
    }
}

impl Stand {
    pub(super) fn new() -> Self {
        let settings = Settings {
            robotstxt_obey: false,
            randomize_download_delay: false,
            retry_backoff: Duration::ZERO,
            ..Settings::default()
        };
        Self {
            settings,
            script: Script::default(),
            wire: ScriptedTransport::with_default(|_| Answer::html("<html></html>")),
            judge: Box::new(|_, _| Judged::Grant),
            identities: None,
            store: None,
            #[cfg(feature = "redis")]
            fleet: None,
            pipelines: Vec::new(),
            extensions: Vec::new(),
            middlewares: Vec::new(),
            parsers: 1,
            sink: MemorySink::new(),
            sink_fault: Box::new(|_| None),
            on_fatal: OnFatal::Spool,
            spool: None,
            log_id: 7,
            ends: Ends::Skipped,
            leases: Vec::new(),
            feeds: Vec::new(),
            calls: Calls::WithTheirActor,
            threads: false,
            tidy_panics: false,
            report_panics: false,
            renew_fails: false,
            is_remote: false,
            life: None,
            reports_fail: None,
            hangs_from: None,
            unmatched: UnmatchedLease::Anonymous,
        }
    }

    pub(super) fn start(mut self, list: impl IntoIterator<Item = Do>) -> Self {
        self.script.start = list.into_iter().collect();
        self
    }

    pub(super) fn page(mut self, url: &str, list: impl IntoIterator<Item = Do>) -> Self {
        self.script.pages.insert(url.to_owned(), list.into_iter().collect());
        self
    }

    pub(super) fn on_failed(mut self, url: &str, list: impl IntoIterator<Item = Do>) -> Self {
        self.script.failed.insert(url.to_owned(), list.into_iter().collect());
        self
    }

    pub(super) fn answers(self, url: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.wire.get(url, answers);
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub(super) fn judge(mut self, judge: impl FnMut(&Ask, Duration) -> Judged + Send + 'static) -> Self {
        self.judge = Box::new(judge);
        self
    }

    /// Runs the job to its end.
    pub(super) fn run(self) -> Outcome {
        self.run_and(|_| async {})
    }

    /// Runs the job, and `act` beside it.
    pub(super) fn run_and<F: Future<Output = ()> + 'static>(self, act: impl FnOnce(Desk) -> F) -> Outcome {
        if self.threads { run_system(self.play(act)) } else { run_local(self.play(act)) }
    }

    pub(super) async fn play<F: Future<Output = ()> + 'static>(self, act: impl FnOnce(Desk) -> F) -> Outcome {
        let (desk, began, running, rest) = self.put_together();
        tokio::task::spawn_local(act(desk.clone()));
        let Running { ended, releasing, stop_actors, frontier, .. } = running;
        let ended = match tokio::time::timeout(FOREVER, ended).await {
            Ok(ended) => *ended.expect("the engine says how it ended"),
            Err(_) => panic!("the job never ends; the last of what happened: {:#?}", rest.tail()),
        };
        let took = began.elapsed();
        let last = Instant::now() + Duration::from_secs(1);
        while releasing.count() > 0 && Instant::now() < last {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // What is left to the plane and to dropped callbacks.
        tokio::time::sleep(Duration::from_millis(10)).await;
        stop_actors();
        // A disk that refuses to the last is what some tests are about.
        if let Some(frontier) = frontier {
            let _ = close(&frontier, &ended);
        }
        rest.outcome(ended, took, &desk)
    }

    /// Everything up to the running actors; for tests that end them by force, too.
    pub(super) fn put_together(self) -> (Desk, Instant, Running, Rest) {
        let notes = self.script.notes.clone();
        notes.begin();
        let stats = Stats::new();
        stats.set("start_time", crate::api::stats::utc_now());
        let script = Arc::new(self.script);
        let spider: Arc<dyn DynSpider> = Arc::new(Robot { script: script.clone() });
        let settings = Arc::new(self.settings);
        let wire = Arc::new(Wire {
            inner: self.wire,
            notes: notes.clone(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            tidy_panics: AtomicBool::new(self.tidy_panics),
        });
        let plane = Arc::new(Plane {
            inner: self
                .identities
                .map_or_else(Embedded::anonymous, |text| Embedded::parse_with_chance(&text, Path::new("ids.toml"), 5).unwrap()),
            judge: Mutex::new(self.judge),
            notes: notes.clone(),
            reports: Mutex::default(),
            releases: Mutex::default(),
            granted: Mutex::default(),
            renew_fails: self.renew_fails,
            is_remote: self.is_remote,
            life: self.life,
            reports_fail: self.reports_fail,
            hangs_from: self.hangs_from,
            report_panics: AtomicBool::new(self.report_panics),
        });
        let sink_open = Arc::new(AtomicBool::new(true));
        let gate = Gate { inner: self.sink.clone(), open: sink_open.clone(), fault: self.sink_fault, calls: 0 };
        let dir = TempDir::new().unwrap();
        let spool = self.spool.unwrap_or_else(|| dir.path().join("spool"));
        let outlets = Outlets { feeds: self.feeds, ring: Arc::new(LogRing::new(100)), stats: stats.clone(), indexes: None };
        let mut config = CollectorConfig::from_settings(&settings);
        config.ends = self.ends;
        config.on_fatal = self.on_fatal;
        let tidy = if self.ends == Ends::Journaled { Tidy::Keep } else { Tidy::Remove };
        let seeds = Seeds { instance: 1, log_id: self.log_id, jitter: 3 };
        let delivery: Delivery = open_at(config, &spool, tidy, &JobId::from(7), outlets, Box::new(gate), seeds).unwrap();
        let mut store =
            self.store.unwrap_or_else(|| Box::new(MemoryStore::new(usize::try_from(settings.frontier_max_bytes).unwrap())));
        // As the opening of a durable frontier does it: what the record log knows has ended is not fetched again.
        for end in &delivery.ends {
            store.settle(end.request, end.outcome).unwrap();
        }
        store.recover().unwrap();
        store.commit().unwrap();
        let ends: Vec<_> = delivery.ends.iter().map(|end| end.request).collect();
        delivery.collector.lock().unwrap().settle(&ends);
        let entry = Entry::new();
        let stopper = entry.controls();
        let context = Context::new("robot", "7", Arguments::new(), settings.clone(), stats.clone(), move |reason| {
            stopper.tell(Control::Stop(StopReason::Spider(reason)));
        });
        let stage = Stage {
            pipelines: self.pipelines.into(),
            listeners: Listeners { spider: spider.clone(), extensions: self.extensions.into(), context: context.clone() },
        };
        let reach = crate::reach::Reach::of(settings.allow_private_addresses);
        let job = Job {
            spider,
            rules: Rules::new(&self.leases, self.unmatched).unwrap(),
            settings,
            context,
            stage,
            middlewares: self.middlewares,
            stats: stats.clone(),
            progress: Arc::new(Progress::default()),
            seed: 5,
        };
        let frontier = Keeping::Alone(store);
        #[cfg(feature = "redis")]
        let frontier = self.fleet.map_or(frontier, |(world, name)| {
            Keeping::Shared(Box::new(move |config, stats, now| {
                let server = Box::new(Fake::new(&world, name, VISIBILITY));
                let fleet = FleetConfig { wait: Some(PATIENCE), instance: u64::from(name.as_bytes()[0]) };
                Arc::new(Mutex::new(SharedFrontier::new(config, fleet, server, stats, now)))
            }))
        });
        let backends = Backends { plane: plane.clone(), transport: wire.clone(), reach, frontier, delivery };
        let arbiters: Arc<Mutex<Vec<Arbiter>>> = Arc::default();
        let place = {
            let (arbiters, threads) = (arbiters.clone(), self.threads);
            move || {
                if !threads {
                    return Place::Here;
                }
                let arbiter = Arbiter::start("parse").unwrap();
                let place = arbiter.place();
                arbiters.lock().unwrap().push(arbiter);
                place
            }
        };
        let here = tokio::runtime::Handle::current();
        let threads = Threads {
            scheduler: Place::Here,
            collector: Place::Here,
            courier: Place::Here,
            parsers: (0..self.parsers).map(|_| place()).collect(),
            net: here.clone(),
            calls: if self.calls == Calls::Elsewhere { Net::Runtime(here) } else { Net::Here },
            spare: Arc::new(move || Some(place())),
        };
        let began = Instant::now();
        let running = assemble(entry, job, backends, threads);
        let desk = Desk { engine: running.engine.clone(), script, stats, sink_open, wire: wire.clone() };
        (desk, began, running, Rest { notes, wire, plane, sink: self.sink, spool, arbiters, _dir: dir })
    }
}

/// What a run leaves to be looked at.
pub(super) struct Rest {
    notes: Arc<Notes>,
    wire: Arc<Wire>,
    plane: Arc<Plane>,
    sink: MemorySink,
    spool: PathBuf,
    arbiters: Arc<Mutex<Vec<Arbiter>>>,
    _dir: TempDir,
}

impl Rest {
    pub(super) fn tail(&self) -> Vec<(Duration, String)> {
        let lines = self.notes.lines();
        lines[lines.len().saturating_sub(40)..].to_vec()
    }

    fn outcome(self, ended: Ended, took: Duration, desk: &Desk) -> Outcome {
        self.arbiters.lock().unwrap().drain(..).for_each(Arbiter::abandon);
        let bodies = self.sink.bodies();
        Outcome {
            ended,
            ledger: self.plane.inner.ledger().unwrap(),
            reports: self.plane.reports.lock().unwrap().clone(),
            releases: self.plane.releases.lock().unwrap().clone(),
            granted: self.plane.granted.lock().unwrap().clone(),
            asked: self.wire.inner.asked(),
            lines: self.notes.lines(),
            items: list(&bodies, "items"),
            records: list(&bodies, "requests"),
            sent_stats: bodies
                .iter()
                .map(|b| serde_json::from_str::<Value>(b).unwrap()["data"]["stats"].clone())
                .filter(|s| s.as_object().is_some_and(|s| !s.is_empty()))
                .collect(),
            stats: desk.stats.clone(),
            took,
            most_at_once: self.wire.most.load(Ordering::SeqCst),
            spool_left: std::fs::read_dir(&self.spool).is_ok_and(|mut dir| dir.next().is_some()),
            segments_left: Holds::of(&self.spool).unwrap().segments > 0,
        }
    }
}

pub(super) fn list(bodies: &[String], name: &str) -> Vec<Value> {
    let body = |text: &String| serde_json::from_str::<Value>(text).unwrap();
    bodies.iter().flat_map(|text| body(text)["data"][name].as_array().cloned().unwrap_or_default()).collect()
}

impl Outcome {
    /// When lines that begin so were noted.
    pub(super) fn times(&self, begins: &str) -> Vec<Duration> {
        self.lines.iter().filter(|(_, line)| line.starts_with(begins)).map(|(at, _)| *at).collect()
    }

    /// Lines that begin so.
    pub(super) fn said(&self, begins: &str) -> Vec<&str> {
        self.lines.iter().filter(|(_, line)| line.starts_with(begins)).map(|(_, line)| line.as_str()).collect()
    }

    /// The `id`s of the items in the sink, sorted.
    pub(super) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.items.iter().map(|i| i["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Request records by URL: status and error.
    pub(super) fn records_of(&self, url: &str) -> Vec<(u64, Option<&str>)> {
        let own = self.records.iter().filter(|r| r["url"] == url);
        own.map(|r| (r["status_code"].as_u64().unwrap(), r["error"].as_str())).collect()
    }

    pub(super) fn count(&self, key: &str) -> i64 {
        self.stats.count(key)
    }

    /// P1, P2 and P7, as far as a run without a crash can show them. `cut_off`: attempts that a stop took
    /// back before they were sent.
    pub(super) fn assert_sound(&self) {
        let told = format!("{:?}\n{:#?}", self.ended, self.lines.iter().rev().take(30).collect::<Vec<_>>());
        let books = self.ended.books;
        assert_eq!(self.ended.imbalances, Vec::<String>::new(), "{told}");
        assert!(books.balances(), "{told}");
        let ledger = self.ledger;
        assert!(ledger.balances() && ledger.open == 0 && ledger.expired == 0, "{ledger:?} {told}");
        assert_eq!(ledger.acquired, self.granted.len() as u64);
        // Every attempt and hop once, under a lease that was granted and not over.
        assert_eq!(self.reports.len(), self.asked.len(), "{told}");
        assert_eq!(ledger.reports, self.reports.len() as u64, "{told}");
        let mut ends: BTreeMap<&LeaseId, usize> = BTreeMap::new();
        for lease in self.reports.iter().filter(|(_, r)| r.release).map(|(_, r)| &r.lease).chain(&self.releases) {
            *ends.entry(lease).or_default() += 1;
        }
        assert!(ends.values().all(|n| *n == 1), "a lease ended twice: {ends:?}");
        assert_eq!(ends.len(), self.granted.len());
        // The engine's own books of leases say what the plane's ledger does.
        let books = self.ended.leases;
        assert!(books.balances(), "{books:?}");
        // A grant that came when its broker was gone never got here.
        let missed = if self.count("engine/restarts/broker") > 0 { ledger.acquired.saturating_sub(books.acquired) } else { 0 };
        assert_eq!(books.acquired + missed, ledger.acquired, "{told}");
        // Everything kept is in the sink, once.
        let delivery = &self.ended.delivery;
        assert_eq!(self.items.len() as u64, delivery.delivered, "{told}");
        assert_eq!(self.ended.tally.kept, delivery.items, "{told}");
        let tally = self.ended.tally;
        assert!(tally.scraped >= tally.kept + tally.dropped + tally.broken, "{tally:?}");
    }

    /// As `assert_sound`, of a run that came to its end by itself.
    pub(super) fn assert_whole(&self) {
        self.assert_sound();
        assert_eq!(self.ended.reason, "finished");
        assert_eq!(self.ended.books.pending, 0);
        let delivery = &self.ended.delivery;
        assert_eq!((delivery.spooled, delivery.rejected, delivery.undelivered_records), (0, 0, 0));
        let tally = self.ended.tally;
        assert_eq!(tally.scraped, tally.kept + tally.dropped + tally.broken, "{tally:?}");
        assert!(!self.spool_left, "a spool without anything undelivered is removed");
    }
}
