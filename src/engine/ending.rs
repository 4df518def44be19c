//! What a job's end comes to: what does not balance, the reason, the exit code, and the closing stats.

use tokio::time::Instant;

use super::act::Act;
use super::fleet::SHUTDOWN;
use super::hub::Hub;
use super::message::{Ended, StopReason};
use super::shutdown::Phase;
use crate::api::stats::utc_now;

impl Hub {
    pub(super) fn done(&mut self) {
        let Phase::Stopping(stopping) = std::mem::replace(&mut self.phase, Phase::Done) else { return };
        let delivery = self.closed.take().unwrap_or_default();
        if !self.books.balances() {
            let b = self.books;
            self.imbalances.push(format!(
                "{} requests enqueued, but {} handled + {} failed + {} dropped + {} set aside + {} pending",
                b.enqueued, b.handled, b.failed, b.dropped, b.set_aside, b.pending
            ));
        }
        if (self.tally.kept..=self.tally.kept + self.unanswered_items).contains(&delivery.items) {
            self.tally.kept = delivery.items;
        } else {
            self.imbalances.push(format!("{} items were kept, but the collector counts {}", self.tally.kept, delivery.items));
        }
        let accounted = delivery.delivered + delivery.spooled + delivery.rejected;
        if delivery.items != accounted {
            self.imbalances.push(format!(
                "{} items kept, but {} delivered + {} spooled + {} rejected",
                delivery.items, delivery.delivered, delivery.spooled, delivery.rejected
            ));
        }
        let leases = self.account.close(&self.stats);
        if !leases.balances() {
            self.imbalances.push(format!(
                "{} leases acquired, but {} ended by a report + {} released + {} lost",
                leases.acquired, leases.reported, leases.released, leases.lost
            ));
        }
        let reason = stopping.reason;
        // Requests failed and not one was answered: whatever was meant to be crawled was not.
        let answered = self.tally.pages > 0 || self.received_before > 0;
        let unanswered = reason == StopReason::Finished && !answered && self.tally.failed > 0;
        let mut code = exit_code(&reason);
        if unanswered || self.start_failed.is_some() {
            code = worse(code, 3);
        }
        if delivery.spooled > 0 || delivery.undelivered_records > 0 || !delivery.feed_errors.is_empty() {
            code = worse(code, 4);
        }
        if !self.imbalances.is_empty() {
            code = worse(code, 5);
        }
        let ended = Ended {
            reason: self.reason_of(&reason),
            code,
            leases,
            books: self.books,
            delivery,
            stats: self.stats.snapshot(),
            failures: self.failures.top(),
            imbalances: std::mem::take(&mut self.imbalances),
            tally: self.tally,
            note: match &reason {
                StopReason::Unauthorized(m)
                | StopReason::PlaneLost(m)
                | StopReason::Misconfigured(m)
                | StopReason::DiskFull(m)
                | StopReason::DeliveryRefused(m)
                | StopReason::FrontierFull(m)
                | StopReason::FrontierLost(m)
                | StopReason::Internal(m) => Some(m.clone()),
                _ if unanswered && self.tally.failed == self.tally.unreachable => Some("no target could be reached".to_owned()),
                _ if unanswered => Some("no page could be fetched".to_owned()),
                _ => self.start_failed.clone().map(|e| format!("start failed: {e}")),
            },
        };
        self.acts.push(Act::Done(Box::new(ended)));
    }

    pub(super) fn reason(&self) -> String {
        match &self.phase {
            Phase::Stopping(stopping) => self.reason_of(&stopping.reason),
            _ => "finished".to_owned(),
        }
    }

    pub(super) fn reason_of(&self, reason: &StopReason) -> String {
        if *reason == StopReason::Finished && self.start_failed.is_some() {
            "start_failed".to_owned()
        } else {
            reason_text(reason)
        }
    }

    /// Stats that are known at the end only, in Scrapy's names.
    pub(super) fn finish_stats(&mut self, now: Instant) {
        let took = now.duration_since(self.started);
        self.stats.set("finish_time", utc_now());
        self.stats.set_float("elapsed_time_seconds", took.as_secs_f64());
        if let Some(bytes) = (self.config.memory_peak)() {
            self.stats.max("memusage/max", bytes);
        }
        // Over whole seconds, as Scrapy counts them; none is no speed, which JSON calls null.
        let minutes = took.as_secs() as f64 / 60.0;
        let per_minute = |n: u64| if minutes > 0.0 { n as f64 / minutes } else { f64::NAN };
        self.stats.set_float("items_per_minute", per_minute(self.tally.kept));
        let received = self.stats.count("response_received_count") - self.received_before;
        let received = u64::try_from(received).unwrap_or(0);
        self.stats.set_float("responses_per_minute", per_minute(received));
        self.stats.set("engine/window_bytes_max", self.bytes.peak());
        let leases = i64::try_from(self.tally.leased).unwrap_or(i64::MAX);
        self.stats.set("engine/leases", self.leases_before.saturating_add(leases));
        for (key, value) in [
            ("books/enqueued", self.books.enqueued),
            ("books/handled", self.books.handled),
            ("books/failed", self.books.failed),
            ("books/dropped", self.books.dropped),
            ("books/set_aside", self.books.set_aside),
            ("books/pending", self.books.pending),
        ] {
            self.stats.set(key, value);
        }
    }
}

/// The finish reason, as stats and records carry it.
fn reason_text(reason: &StopReason) -> String {
    match reason {
        StopReason::Finished => "finished".to_owned(),
        StopReason::Signal => SHUTDOWN.to_owned(),
        StopReason::Limit(name) => (*name).to_owned(),
        StopReason::Spider(text) | StopReason::Fleet(text) => text.clone(),
        StopReason::Unauthorized(_) => "control_plane_unauthorized".to_owned(),
        StopReason::PlaneLost(_) => "control_plane_unavailable".to_owned(),
        StopReason::Misconfigured(_) => "control_plane_misconfigured".to_owned(),
        StopReason::DiskFull(_) => "disk_full".to_owned(),
        StopReason::DeliveryRefused(_) => "delivery_refused".to_owned(),
        StopReason::FrontierFull(_) => "frontier_full".to_owned(),
        StopReason::FrontierLost(_) => "frontier_unavailable".to_owned(),
        StopReason::Internal(_) => "internal_error".to_owned(),
    }
}

/// The exit code a reason alone gives.
pub(super) fn exit_code(reason: &StopReason) -> u8 {
    match reason {
        StopReason::Finished | StopReason::Limit(_) | StopReason::Spider(_) => 0,
        StopReason::Signal => 2,
        StopReason::Fleet(text) if text == SHUTDOWN => 2,
        StopReason::Fleet(_) => 0,
        StopReason::Unauthorized(_)
        | StopReason::PlaneLost(_)
        | StopReason::Misconfigured(_)
        | StopReason::DiskFull(_)
        | StopReason::DeliveryRefused(_)
        | StopReason::FrontierFull(_)
        | StopReason::FrontierLost(_) => 3,
        StopReason::Internal(_) => 70,
    }
}

/// Where several apply: 70 > 5 > 4 > 3 > 2 > 0, which is the order of the numbers.
fn worse(a: u8, b: u8) -> u8 {
    a.max(b)
}
