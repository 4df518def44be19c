//! The hub: every decision about the life of a request, as a plain struct.
//!
//! Facts and commands go in, acts come out; time is an argument. No actor, no clock, no I/O: a test can
//! drive any interleaving. The parts of its behaviour are in `lease`, `kept` (leases for what follows), `places` (who goes on
//! the wire), `flow` (downloads, redirects, retries), `callback` (how callbacks end), `commit` (the commit order), `watch`
//! (pulling, idleness, limits, stalls) and `shutdown`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::act::Act;
use super::ahead::Ahead;
use super::guard::LeaseGuard;
use super::kept::Kept;
use super::lease::Asking;
use super::lease_books::Account;
use super::memory_watch::MemoryWatch;
use super::message::{Control, Fact, StopReason};
use super::pacing::{Pauses, pacing};
use super::patience::Patience;
use super::record::Failures;
use super::refused_reports::RefusedReports;
use super::shared::SharedHosts;
use super::shutdown::Phase;
pub(crate) use super::tally::CloseAfter;
pub use super::tally::Tally;
use super::ticket::{Kind, Releaser, Serial, State, Tag, Ticket};
use super::window::Bytes;
use crate::api::context::Context;
use crate::api::signal::{ConfigChanged, Lifecycle};
use crate::api::stats::Stats;
use crate::collector;
use crate::plane::Ask;
use crate::scheduler::job::{Books, Job, RequestId, SlotKey};
use crate::scheduler::message::Rest;
use crate::scheduler::pacing::Pacing;
use crate::scheduler::store::Cursors;
use crate::settings::RequestRecords;

/// Decides under which site and client a request is leased; `None`: no rule covers it.
pub(crate) type AskFor = Box<dyn Fn(&Job) -> Option<Ask> + Send>;

/// Whether a request may be leased for something else than others of its host.
pub(crate) type DiffersFor = Box<dyn Fn(&Job) -> bool + Send>;

/// Whether a redirect of a request to this URL may go on under the same lease.
pub(crate) type StaysFor = Box<dyn Fn(&Job, &url::Url) -> bool + Send>;

/// The hub's settings; what `live` takes from newer ones can change while it runs.
pub(crate) struct HubConfig {
    /// `CONCURRENT_REQUESTS`.
    pub concurrent: usize,
    /// Requests from download to kept record.
    pub window_requests: usize,
    /// `REPORT_QUEUE`.
    pub report_queue: usize,
    /// `REPORT_HOLD`.
    pub report_hold: Duration,
    /// Requests queued above which `start` waits.
    pub seeds_wait_at: u64,
    /// `ACQUIRE_PENDING_PER_SITE`.
    pub acquire_pending: usize,
    /// Whether leases come over a network, and are asked for ahead.
    pub is_remote: bool,
    /// `LEASE_GIVE_UP`.
    pub lease_give_up: Duration,
    /// `GRACE`.
    pub grace: Duration,
    /// `CLOSE_TIMEOUT`.
    pub close_timeout: Duration,
    /// `STALL_WARN`.
    pub stall_warn: Duration,
    /// `PARSE_STALL`.
    pub parse_stall: Duration,
    /// `CALLBACK_TIMEOUT`, for messages.
    pub callback_timeout: Duration,
    /// `CLOSESPIDER_TIMEOUT`, `_ITEMCOUNT`, `_PAGECOUNT`, `_ERRORCOUNT`, `_TIMEOUT_NO_ITEM`, `_PAGECOUNT_NO_ITEM`; 0 is off.
    pub close_after: CloseAfter,
    /// How many requests of `start` and of `idle` earlier runs have.
    pub cursors: Cursors,
    /// An earlier run came to the end of the job: what it left is delivered, and nothing begins.
    pub is_finished: bool,
    /// Other workers of the job have the same frontier: one of them runs `start`, and none ends the job alone.
    pub is_shared: bool,
    /// The lease rules.
    pub ask: AskFor,
    /// Which requests speak for themselves only.
    pub may_differ: DiffersFor,
    /// How far a lease reaches.
    pub stays: StaysFor,
    /// Gives a lease back.
    pub releaser: Releaser,
    /// The job's surroundings.
    pub context: Context,
    /// Where requests of an unread robots.txt wait.
    pub robots_again: Duration,
    /// `APCLOUDY_REQUEST_RECORDS`.
    pub request_records: RequestRecords,
    /// `STATS_DUMP`.
    pub stats_dump: bool,
    /// The most memory this process had, in bytes, where that can be known.
    pub memory_peak: fn() -> Option<i64>,
    /// `MEMUSAGE_*`.
    pub memory: MemoryWatch,
}

/// The hub.
pub(crate) struct Hub {
    pub(super) config: HubConfig,
    pub(super) stats: Stats,
    pub(super) tickets: HashMap<u64, Ticket, Serial>,
    pub(super) by_state: [usize; State::COUNT],
    pub(super) next_ticket: u64,
    pub(super) next_offer: u64,
    pub(super) next_report: u64,
    /// Offers not accepted yet, with their tickets.
    pub(super) offers: HashMap<u64, u64, Serial>,
    /// Offers the frontier has no room for: ticket, jobs, whether they are seeds.
    pub(super) blocked: VecDeque<(u64, Vec<Job>, bool)>,
    /// Pages in no parser's hands, since all have as many suspended callbacks as they take.
    pub(super) unparsed: usize,
    pub(super) bytes: Arc<Bytes>,
    pub(super) acts: Vec<Act>,
    /// Jobs received in all, and up to which number they may be handed out.
    pub(super) received: u64,
    pub(super) granted: u64,
    pub(super) pull_seq: u64,
    pub(super) answered_seq: u64,
    /// Whether an order went to the scheduler after the last pull: its numbers do not count it.
    pub(super) books_stale: bool,
    /// As the frontier told them last: they balance.
    pub(super) books: Books,
    /// Requests that have not ended, with those of offers that were taken since.
    pub(super) pending: u64,
    pub(super) next_due: Option<Instant>,
    pub(super) seeds_done: bool,
    pub(super) start_failed: Option<String>,
    /// Parts of `start` that are kept and wait for room.
    pub(super) seeds_waiting: Vec<oneshot::Sender<Result<(), String>>>,
    /// Start requests the frontier has taken, those of earlier runs included.
    pub(super) seeds_taken: u64,
    /// `start` committed items: run again it would give them twice.
    pub(super) start_gave_items: bool,
    pub(super) idle_made: u64,
    /// Requests of the present `idle` that the frontier took and did not know.
    pub(super) idle_stored: u64,
    /// Sites that refused, since when; and the slots that wait for them.
    pub(super) patience: Patience,
    /// What was told of reports that were refused.
    pub(super) refused_reports: RefusedReports,
    pub(super) waiting_slots: HashMap<Arc<str>, HashSet<SlotKey>>,
    pub(super) shared_hosts: SharedHosts,
    /// Asks under way, by site.
    pub(super) asking: HashMap<Arc<str>, Asking>,
    /// Hosts that no rule covers.
    pub(super) unmatched: HashSet<Box<str>>,
    pub(super) pacing: Pacing,
    /// Hosts that asked for a pause.
    pub(super) pauses: Pauses,
    /// Proxies of which a failure was told.
    pub(super) bad_proxies: HashSet<Arc<str>>,
    /// Leases asked for ahead, where they come over a network.
    pub(super) ahead: Option<Ahead>,
    /// Leases that queued requests are to go under.
    pub(super) kept: Kept,
    pub(super) account: Account,
    /// The plane does not take this node: no report will be taken any more.
    pub(super) plane_refuses: bool,
    /// Attempts whose report waits for the callback, oldest first.
    pub(super) holds: VecDeque<(Instant, u64)>,
    pub(super) reports_made: u64,
    pub(super) reports_done: u64,
    /// The first so many reports are done, all of them.
    pub(super) reports_through: u64,
    /// Leases that are over as soon as the plane has the reports up to this one, by their sites.
    pub(super) ending: VecDeque<(u64, Arc<str>)>,
    /// Leases to be released without a report, once the plane has those that were made under them.
    pub(super) late: Vec<LeaseGuard>,
    pub(super) failures: Failures,
    pub(super) tally: Tally,
    pub(super) settled: Vec<RequestId>,
    pub(super) phase: Phase,
    pub(super) started: Instant,
    /// When an item was kept last, and pages without one that have ended since.
    pub(super) last_item_at: Instant,
    pub(super) dry_pages: u64,
    pub(super) progress_at: Instant,
    pub(super) warned_at: Instant,
    /// What the collector says it cannot do now.
    pub(super) blocked_by: Option<String>,
    /// What the frontier says it cannot do now.
    pub(super) frontier_blocked: Option<String>,
    /// Responses and leases of earlier runs.
    pub(super) received_before: i64,
    pub(super) leases_before: i64,
    pub(super) closed: Option<collector::message::Closed>,
    /// Spider and extensions have heard that the job is over.
    pub(super) farewell: bool,
    pub(super) reporter_says: Option<String>,
    /// Whose word it is that the job is over.
    pub(super) rest: Rest,
    /// Offers without room to be tried again, since something has left the frontier.
    pub(super) offers_to_try: usize,
    /// The spider's last `idle` made nothing new.
    pub(super) idle_answered: bool,
    /// Reports that may wait for the control plane before nothing more is pulled.
    pub(super) report_limit: u64,
    pub(super) imbalances: Vec<String>,
    /// Items in groups that were given up before the collector answered.
    pub(super) unanswered_items: u64,
    /// Records of answers on which more was to follow, for requests that wait in the frontier and have no other record.
    pub(super) owed: HashMap<RequestId, String>,
}

impl Hub {
    pub(crate) fn new(config: HubConfig, bytes: Arc<Bytes>, now: Instant) -> Self {
        let stats = config.context.stats().clone();
        // Four fifths of the queue: in a crawl no report is ever dropped.
        let Cursors { start: _, idle: idle_made } = config.cursors;
        let report_limit = (config.report_queue as u64 * 4 / 5).max(1);
        let (received_before, leases_before) = (stats.count("response_received_count"), stats.count("engine/leases"));
        let account = Account::begin(&stats);
        let ahead = config.is_remote.then(Ahead::default);
        let pacing = pacing(&config.context.settings());
        Self {
            config,
            stats,
            tickets: HashMap::default(),
            by_state: [0; State::COUNT],
            next_ticket: 0,
            next_offer: 0,
            next_report: 0,
            offers: HashMap::default(),
            blocked: VecDeque::new(),
            unparsed: 0,
            bytes,
            acts: Vec::new(),
            received: 0,
            granted: 0,
            pull_seq: 0,
            answered_seq: 0,
            books_stale: true,
            books: Books::default(),
            pending: 0,
            next_due: None,
            seeds_done: false,
            start_failed: None,
            seeds_waiting: Vec::new(),
            seeds_taken: 0,
            start_gave_items: false,
            idle_made,
            idle_stored: 0,
            patience: Patience::default(),
            refused_reports: RefusedReports::default(),
            waiting_slots: HashMap::new(),
            shared_hosts: SharedHosts::default(),
            asking: HashMap::new(),
            bad_proxies: HashSet::new(),
            unmatched: HashSet::new(),
            pacing,
            pauses: Pauses::default(),
            ahead,
            kept: Kept::default(),
            account,
            plane_refuses: false,
            holds: VecDeque::new(),
            reports_made: 0,
            reports_done: 0,
            reports_through: 0,
            ending: VecDeque::new(),
            late: Vec::new(),
            failures: Failures::default(),
            tally: Tally::default(),
            settled: Vec::new(),
            phase: Phase::Running,
            started: now,
            last_item_at: now,
            dry_pages: 0,
            progress_at: now,
            warned_at: now,
            blocked_by: None,
            frontier_blocked: None,
            received_before,
            leases_before,
            closed: None,
            farewell: false,
            reporter_says: None,
            rest: Rest::Ours,
            offers_to_try: 0,
            idle_answered: false,
            report_limit,
            imbalances: Vec::new(),
            unanswered_items: 0,
            owed: HashMap::new(),
        }
    }

    /// Begins the job: signal, then `start`.
    pub(crate) fn begin(&mut self, now: Instant) {
        use crate::parser::message::Order;
        tracing::info!(target: "dragline::engine", "Spider opened");
        self.acts.push(Act::Parser(Some(0), Order::Signal(Lifecycle::Opened)));
        if self.config.is_finished {
            self.seeds_done = true;
            self.idle_answered = true;
            return;
        }
        self.begin_start(now);
    }

    /// Takes one fact.
    pub(crate) fn fact(&mut self, fact: Fact, now: Instant) {
        match fact {
            Fact::Accepted(accepted) => self.accepted(accepted, now),
            Fact::Ready(ready) => self.ready(ready, now),
            Fact::Paced(paced) => self.paced(*paced, now),
            Fact::Fleet(news) => self.fleet(news, now),
            Fact::Settled(ids) => self.settled.extend(ids),
            Fact::FrontierBlocked { why } => self.frontier_blocked = Some(why),
            Fact::FrontierUnblocked => {
                self.frontier_blocked = None;
                self.progress_at = now;
            }
            Fact::FrontierGaveUp(why) => self.stop(StopReason::DiskFull(why), now),
            Fact::Leased(leased) => self.leased(leased, now),
            Fact::Refused(refused) => self.refused(refused, now),
            Fact::RenewFailed(failed) => self.renew_failed(&failed),
            Fact::PlaneLost(why) => self.stop(StopReason::PlaneLost(why), now),
            Fact::Sent(sent) => self.sent(&sent),
            Fact::Fetched(fetched) => self.fetched(*fetched, now),
            Fact::Part(part) => self.part(part, now),
            Fact::Parsed(parsed) => self.parsed(*parsed, now),
            Fact::Farewell => self.farewell = true,
            Fact::Collector(fact) => self.collector(fact, now),
            Fact::Reporter(fact) => self.reporter(fact, now),
        }
    }

    /// Takes one command that concerns the hub's own decisions.
    pub(crate) fn control(&mut self, control: Control, now: Instant) {
        match control {
            Control::Stop(reason) => self.stop(reason, now),
            Control::Kill => self.kill(now),
            Control::Settings(settings) => self.live(&settings),
            Control::ConfigChanged(change) => self.config_changed(change),
            Control::StepOver(step) => self.step_over(step, now),
            Control::Tick => self.tick(now),
            // The engine's own affairs: links and restarts.
            Control::Died(_) | Control::Room(_) => {}
        }
    }

    /// After the facts of one turn: pulls, idleness, shutdown.
    pub(crate) fn turn_end(&mut self, now: Instant) {
        self.unblock();
        self.resume_seeds();
        self.go_on(now);
        self.pull(now);
        self.look_idle(now);
        self.advance(now);
        if !self.settled.is_empty() {
            let settled = std::mem::take(&mut self.settled);
            self.acts.push(Act::CollectorControl(collector::message::Control::Settled(settled)));
        }
    }

    /// What has to be done now.
    pub(crate) fn take_acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }

    pub(super) fn open(&mut self, kind: Kind, state: State, now: Instant) -> Tag {
        self.next_ticket += 1;
        let ticket = Ticket::new(self.next_ticket, kind, state, now);
        let tag = ticket.tag;
        self.counted(state, 1);
        self.tickets.insert(tag.ticket, ticket);
        tag
    }

    /// The ticket a fact is about; a stale fact is counted and gives none.
    pub(super) fn current(&mut self, tag: Tag) -> Option<&mut Ticket> {
        match self.tickets.get_mut(&tag.ticket) {
            Some(ticket) if ticket.tag == tag => Some(ticket),
            _ => {
                self.tally.stale += 1;
                self.stats.inc("engine/stale_facts");
                None
            }
        }
    }

    pub(super) fn enter(&mut self, ticket: u64, state: State, now: Instant) {
        let Some(present) = self.tickets.get(&ticket) else { return };
        let (is_on_wire, asks) = (present.on_wire.is_some(), present.asks.is_some());
        if is_on_wire {
            self.leaves_place(ticket, now);
        }
        if asks {
            self.asked(ticket, false, now);
        }
        if let Some(ticket) = self.tickets.get_mut(&ticket) {
            let before = ticket.state;
            ticket.enter(state, now);
            if before != state {
                self.counted(before, -1);
                self.counted(state, 1);
            }
        }
    }

    /// Ends a ticket: its lease is released unless it was handed over, its share of the window is freed.
    pub(super) fn close(&mut self, ticket: u64, now: Instant) -> Option<Ticket> {
        self.leaves_place(ticket, now);
        self.asked(ticket, false, now);
        let mut ticket = self.tickets.remove(&ticket)?;
        if let Some(guard) = ticket.lease.take() {
            self.end_share(guard);
        }
        self.counted(ticket.state, -1);
        Some(ticket)
    }

    /// Tells how many pages wait for a parser.
    pub(crate) fn note_unparsed(&mut self, pages: usize) {
        self.unparsed = pages;
    }

    pub(super) fn count(&self, state: State) -> usize {
        self.by_state.get(state as usize).copied().unwrap_or(0)
    }

    fn counted(&mut self, state: State, by: isize) {
        if let Some(count) = self.by_state.get_mut(state as usize) {
            *count = count.saturating_add_signed(by);
        }
    }

    /// Requests on their way to an answer.
    pub(super) fn downloading(&self) -> usize {
        [State::Leasing, State::Ready, State::Pacing, State::Fetching].into_iter().map(|state| self.count(state)).sum()
    }

    pub(super) fn scheduler(&mut self, order: crate::scheduler::message::Order) {
        self.books_stale = true;
        self.acts.push(Act::Scheduler(order));
    }

    /// One parser tells spider and extensions, as of the job's other events; none after they have heard of the end.
    fn config_changed(&mut self, change: ConfigChanged) {
        if self.phase.commits() {
            self.acts.push(Act::Parser(Some(0), crate::parser::message::Order::Signal(Lifecycle::ConfigChanged(change))));
        }
    }

    fn live(&mut self, settings: &Arc<crate::settings::Settings>) {
        self.config.concurrent = settings.concurrent_requests;
        self.config.window_requests = settings.window_limit();
        self.config.close_after = CloseAfter::of(settings);
        self.config.lease_give_up = settings.lease_give_up;
        self.config.stall_warn = settings.stall_warn;
        self.config.context.replace_settings(settings.clone());
        self.pacing = pacing(settings);
        self.acts.push(Act::SchedulerControl(crate::scheduler::message::Control::Pacing(self.pacing.clone())));
        self.acts.push(Act::DownloaderControl(crate::downloader::message::Control::Settings(settings.clone())));
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("phase", &self.phase)
            .field("tickets", &self.by_state)
            .field("books", &self.books)
            .field("owed", &self.owed.len())
            .finish_non_exhaustive()
    }
}
