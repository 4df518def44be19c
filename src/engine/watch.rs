//! Watching: how much to pull, whether the job is idle or over its limits, and whether anything moves.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::act::Act;
use super::hub::Hub;
use super::memory_watch::Seen;
use super::message::StopReason;
use super::ticket::{Kind, State};
use crate::api::signal::Lifecycle;
use crate::parser::message::{Marks, Order as ParserOrder};
use crate::scheduler::message::{Order, Rest};

/// Most asks under way over all sites: those of many sites without an identity must not take the whole memory.
const ASKS: usize = 1024;
/// Sites without a lease that one line has room for.
const SITES_TOLD: usize = 5;

impl Hub {
    /// Grants the scheduler as many jobs as there is room for.
    pub(super) fn pull(&mut self, now: Instant) {
        if !self.phase.pulls() {
            return;
        }
        self.tell_ahead();
        let room = if self.bytes.has_room() && self.reporter_has_room() {
            // A ticket that waits for its lease holds no window: only what is past it counts there.
            let windowed = self.tickets.len().saturating_sub(self.count(State::Leasing));
            let window = self.config.window_requests.saturating_sub(windowed);
            let (most, out) = self.out(now);
            let downloads = most.saturating_sub(out);
            let asks = ASKS.max(self.config.acquire_pending).saturating_sub(self.count(State::Leasing));
            window.min(downloads).min(asks).min(self.room_of_one_site(now))
        } else {
            0
        };
        let upto = self.received + room as u64;
        if upto != self.granted || self.wants_fresh_books() {
            self.granted = upto;
            self.send_pull();
        }
    }

    /// How many more jobs the only site that is asked for has room for: what is beyond would come back at once. Jobs of
    /// other sites are behind that bound too, so it holds only while answers come promptly: they make room soon.
    fn room_of_one_site(&mut self, now: Instant) -> usize {
        let is_prompt = self.ahead.as_mut().is_some_and(|ahead| ahead.are_young(now));
        if !is_prompt || self.asking.len() > 1 {
            return usize::MAX;
        }
        self.config.acquire_pending.max(1).saturating_sub(self.count(State::Leasing))
    }

    /// Asks for the books without granting more.
    pub(super) fn send_pull(&mut self) {
        self.pull_seq += 1;
        self.books_stale = false;
        self.acts.push(Act::Scheduler(Order::Pull { seq: self.pull_seq, upto: self.granted }));
    }

    /// Whether the numbers of the frontier are not the latest, and somebody goes by them: the job, when nothing is in
    /// flight, or `start`, which waits for the frontier to be low. Jobs that end need not change what may be pulled.
    fn wants_fresh_books(&self) -> bool {
        let start_waits = !self.seeds_waiting.is_empty() && self.answered_seq == self.pull_seq;
        self.books_stale && (self.tickets.is_empty() || start_waits)
    }

    pub(super) fn books_are_fresh(&self) -> bool {
        !self.books_stale && self.answered_seq == self.pull_seq
    }

    fn reporter_has_room(&self) -> bool {
        self.reports_made.saturating_sub(self.reports_done) < self.report_limit
    }

    /// Nothing queued, nothing in flight, no seeds to come: the spider may go on or the job is over.
    pub(super) fn look_idle(&mut self, now: Instant) {
        let idle = self.phase.pulls()
            && self.tickets.is_empty()
            && self.seeds_done
            && self.offers.is_empty()
            && self.blocked.is_empty()
            && self.books_are_fresh()
            && self.pending == 0;
        if !idle || self.rest == Rest::Elsewhere {
            return;
        }
        if self.rest == Rest::Over || self.idle_answered || self.start_failed.is_some() {
            self.finish(now);
            return;
        }
        self.idle_stored = 0;
        let tag = self.open(Kind::Idle, State::Parsing, now);
        self.acts.push(Act::Parser(Some(0), ParserOrder::Signal(Lifecycle::Idle)));
        self.acts.push(Act::Parser(Some(0), ParserOrder::Idle { tag, made: self.idle_made }));
    }

    /// Once in a while: holds, limits, stalls.
    pub(super) fn tick(&mut self, now: Instant) {
        self.let_reports_go(now);
        self.check_limits(now);
        self.check_memory(now);
        self.check_stall(now);
    }

    fn check_memory(&mut self, now: Instant) {
        let Some(seen) = self.config.memory.look(now) else { return };
        let (Seen::Fine(bytes) | Seen::Much(bytes, _) | Seen::TooMuch(bytes, _)) = seen;
        self.stats.max("memusage/max", bytes);
        match seen {
            Seen::Fine(_) => {}
            Seen::Much(bytes, warning) => {
                self.stats.set("memusage/warning_reached", 1);
                tracing::warn!(bytes, warning, "this process has more memory than MEMUSAGE_WARNING_MB");
            }
            Seen::TooMuch(bytes, limit) if self.phase.pulls() => {
                self.stats.set("memusage/limit_reached", 1);
                tracing::error!(bytes, limit, "this process has more memory than MEMUSAGE_LIMIT_MB: the crawl is closed");
                self.stop(StopReason::Limit("memusage_exceeded"), now);
            }
            Seen::TooMuch(..) => {}
        }
    }

    /// Reports that have waited long enough for their callbacks go without marks, and without release.
    fn let_reports_go(&mut self, now: Instant) {
        while let Some((due, id)) = self.holds.front().copied() {
            if due > now {
                return;
            }
            self.holds.pop_front();
            if self.tickets.get(&id).is_some_and(|t| t.state == State::Parsing && !t.reported) {
                self.stats.inc("reporter/held_too_long");
                self.report(id, false, Marks::default());
            }
        }
    }

    fn check_limits(&mut self, now: Instant) {
        if !self.phase.pulls() {
            return;
        }
        let close = self.config.close_after;
        let over = |limit: u64, value: u64| limit > 0 && value >= limit;
        let errors = self.tally.callback_errors;
        let reason = if !close.timeout.is_zero() && now.duration_since(self.started) >= close.timeout {
            "closespider_timeout"
        } else if over(close.items, self.tally.kept) {
            "closespider_itemcount"
        } else if over(close.pages, self.tally.pages) {
            "closespider_pagecount"
        } else if over(close.errors, errors) {
            "closespider_errorcount"
        } else if !close.timeout_no_item.is_zero() && now.duration_since(self.last_item_at) >= close.timeout_no_item {
            "closespider_timeout_no_item"
        } else if over(close.pages_no_item, self.dry_pages) {
            "closespider_pagecount_no_item"
        } else {
            return;
        };
        self.stop(StopReason::Limit(reason), now);
    }

    /// Counts limits that are cheap to look at, after every turn.
    pub(super) fn look_at_counts(&mut self, now: Instant) {
        let close = self.config.close_after;
        if close.items > 0 || close.pages > 0 || close.errors > 0 || close.pages_no_item > 0 {
            self.check_limits(now);
        }
    }

    fn check_stall(&mut self, now: Instant) {
        let all_blocked = self.all_wait_for_the_frontier();
        if all_blocked && !self.books_are_fresh() {
            self.send_pull();
        } else if all_blocked && self.has_no_room_for_others() {
            let message = "every callback waits for room in the frontier (FRONTIER_MAX_BYTES) and nothing else can go on; raise it or let the spider follow fewer links";
            self.stop(StopReason::FrontierFull(message.to_owned()), now);
            return;
        }
        if now.duration_since(self.progress_at) < self.config.stall_warn
            || now.duration_since(self.warned_at) < self.config.stall_warn
        {
            return;
        }
        self.warned_at = now;
        self.stats.inc("engine/stalls");
        tracing::warn!(waits_for = self.waits_for(), seconds = now.duration_since(self.progress_at).as_secs(), "no progress");
    }

    /// What the job waits for, in words.
    pub(crate) fn waits_for(&self) -> String {
        let now = Instant::now();
        let mut by: BTreeMap<&str, usize> = BTreeMap::new();
        for ticket in self.tickets.values() {
            *by.entry(ticket.state.waits_for()).or_default() += 1;
        }
        let mut parts: Vec<String> = by.iter().map(|(what, n)| format!("{n} for {what}")).collect();
        if let Some(why) = &self.frontier_blocked {
            parts.push(why.clone());
        }
        if let Some(why) = &self.blocked_by {
            parts.push(format!("the sink: {why}"));
        }
        parts.extend(self.reporter_says.clone());
        if self.tickets.is_empty() && self.rest == Rest::Elsewhere {
            parts.push("other workers of the job".to_owned());
        }
        if !self.patience.is_empty() {
            parts.push(self.sites_without_lease(now));
        }
        if let Some(due) = self.next_due {
            let wait = due.saturating_duration_since(now);
            parts.push(format!("{} queued, the next due in {:.1} s", self.pending, wait.as_secs_f64()));
        }
        if parts.is_empty() { format!("{} queued", self.pending) } else { parts.join("; ") }
    }

    /// The sites whose leases are refused, longest first: why, and for how long.
    fn sites_without_lease(&self, now: Instant) -> String {
        let mut sites: Vec<_> = self.patience.sites().map(|(site, since, why)| (since, site, why.name())).collect();
        sites.sort_unstable();
        let told = sites.iter().take(SITES_TOLD).map(|(since, site, why)| {
            format!("leases of site {site}: {why} for {} s", now.saturating_duration_since(*since).as_secs())
        });
        let told = told.collect::<Vec<_>>().join("; ");
        match sites.len().saturating_sub(SITES_TOLD) {
            0 => told,
            more => format!("{told}; and of {more} more sites"),
        }
    }

    /// Every ticket waits for room in a full frontier, and each was tried since something last left it.
    fn all_wait_for_the_frontier(&self) -> bool {
        // `start` waits for the frontier to be low: that will not come either.
        let start = usize::from(!self.seeds_done && !self.seeds_waiting.is_empty());
        self.phase.pulls()
            && !self.blocked.is_empty()
            && self.offers.is_empty()
            && self.offers_to_try == 0
            && self.tickets.len() == self.blocked.len() + self.unparsed + start
    }

    /// No request is queued that could still go.
    fn has_no_room_for_others(&self) -> bool {
        self.tickets.len() >= self.config.window_requests.min(usize::try_from(self.pending).unwrap_or(usize::MAX))
    }

    /// An actor was restarted or replaced.
    pub(crate) fn note_restart(&mut self, name: &str) {
        self.stats.inc(format!("engine/restarts/{name}"));
    }

    /// Pages, items, queued, in flight, leases, errors.
    pub(crate) fn progress(&self) -> (u64, u64, u64, u64, u64, u64) {
        let leases = self.account.open();
        let in_flight = self.count(State::Fetching) as u64;
        let open = self.tickets.len() as u64;
        (
            self.tally.pages,
            self.tally.kept,
            self.pending.saturating_sub(open),
            in_flight,
            leases,
            self.tally.failed + self.tally.callback_errors,
        )
    }
}
