//! Patience with a store that cannot be used: when to try again, what to tell, and when to give up.
//!
//! Pure: it is told what failed and what went well, and never touches the store.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::message::Fact;

/// Wait after the first failed try; each further one waits twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(100);

/// Longest wait between two tries.
const LONGEST: Duration = Duration::from_secs(1);

/// What is known of a store's troubles.
#[derive(Debug)]
pub(super) struct Patience {
    /// How long it may last (`DISK_WAIT`).
    wait: Duration,
    /// Commits fail.
    writing: Option<Trouble>,
    /// Since when nothing could be read.
    reading: Option<Instant>,
    gave_up: bool,
    /// Whether the store outlives its process.
    is_durable: bool,
}

#[derive(Debug)]
struct Trouble {
    since: Instant,
    next: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) const fn new(wait: Duration, is_durable: bool) -> Self {
        Self { wait, writing: None, reading: None, gave_up: false, is_durable }
    }

    /// Whether the last commit failed.
    pub(super) const fn is_blocked(&self) -> bool {
        self.writing.is_some()
    }

    /// Whether a commit may be tried now.
    pub(super) fn may_commit(&self, now: Instant) -> bool {
        self.writing.as_ref().is_none_or(|trouble| trouble.next <= now)
    }

    /// When to look again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.writing.as_ref().map(|trouble| trouble.next)
    }

    /// A commit went well; what is to be told, if it is the first in a while.
    pub(super) fn wrote(&mut self, now: Instant) -> Option<Fact> {
        let trouble = self.writing.take()?;
        tracing::info!(seconds = (now - trouble.since).as_secs(), "the frontier is written again: the crawl goes on");
        Some(Fact::FrontierUnblocked)
    }

    /// A commit failed; what is to be told.
    pub(super) fn refused(&mut self, why: &str, now: Instant) -> Option<Fact> {
        if let Some(trouble) = &mut self.writing {
            trouble.pause = (trouble.pause * 2).min(LONGEST);
            trouble.next = now + trouble.pause;
            let since = trouble.since;
            return self.give_up("written", why, since, now);
        }
        self.writing = Some(Trouble { since: now, next: now + FIRST, pause: FIRST });
        let why = format!("the frontier cannot be written: {why}");
        tracing::warn!(reason = why, wait = ?self.wait, "nothing more is fetched until the frontier can be written (DISK_WAIT)");
        // Without any patience the first failure is the last.
        Some(if self.wait.is_zero() { self.last_word(&why) } else { Fact::FrontierBlocked { why } })
    }

    /// Something was read.
    pub(super) fn read(&mut self) {
        self.reading = None;
    }

    /// Something could not be read; what is to be told. One slot that reads ends the trouble.
    pub(super) fn unread(&mut self, why: &str, now: Instant) -> Option<Fact> {
        let since = *self.reading.get_or_insert(now);
        self.give_up("read", why, since, now)
    }

    fn give_up(&mut self, what: &str, why: &str, since: Instant, now: Instant) -> Option<Fact> {
        if self.gave_up || now.saturating_duration_since(since) < self.wait {
            return None;
        }
        Some(self.last_word(&format!("the frontier cannot be {what}: {why}")))
    }

    fn last_word(&mut self, why: &str) -> Fact {
        self.gave_up = true;
        let next = if self.is_durable {
            "and start again with the same JOBDIR: the next run goes on from here"
        } else {
            "or set DATA_DIR to another disk, and start again: without a JOBDIR the crawl begins anew"
        };
        Fact::FrontierGaveUp(format!("{why}; waited {:?} (DISK_WAIT). Make room or mend that, {next}", self.wait))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn patience(wait: Duration) -> Patience {
        Patience::new(wait, true)
    }

    #[test]
    fn a_store_that_cannot_write_is_told_once_and_tried_ever_less_often() {
        let mut now = Instant::now();
        let mut patience = patience(60 * SECOND);
        let Some(Fact::FrontierBlocked { why }) = patience.refused("/jobs/7: no space", now) else { panic!("not told") };
        assert_eq!(why, "the frontier cannot be written: /jobs/7: no space");
        let mut pauses = Vec::new();
        for _ in 0..5 {
            assert!(patience.is_blocked() && !patience.may_commit(now));
            let next = patience.due().unwrap_or(now);
            pauses.push((next - now).as_millis());
            now = next;
            assert!(patience.may_commit(now));
            assert!(patience.refused("no space", now).is_none());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1000]);
        assert!(matches!(patience.wrote(now), Some(Fact::FrontierUnblocked)));
        assert!(patience.wrote(now).is_none() && patience.due().is_none() && !patience.is_blocked());
    }

    #[test]
    fn patience_ends_once_with_the_directory_the_reason_and_what_to_do() {
        let now = Instant::now();
        let mut patience = patience(60 * SECOND);
        let _ = patience.refused("no space", now);
        assert!(patience.refused("no space", now + 59 * SECOND).is_none());
        let Some(Fact::FrontierGaveUp(text)) = patience.refused("read-only file system", now + 60 * SECOND) else {
            panic!("not told")
        };
        for part in ["read-only file system", "DISK_WAIT", "60s", "start again"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(patience.refused("no space", now + 99 * SECOND).is_none());
        assert!(matches!(patience.wrote(now + 99 * SECOND), Some(Fact::FrontierUnblocked)), "room may come while it stops");
    }

    #[test]
    fn a_queue_that_ends_with_its_process_promises_no_next_run() {
        let now = Instant::now();
        let told = Patience::new(Duration::ZERO, false).unread("bad segment", now);
        let Some(Fact::FrontierGaveUp(text)) = told else { panic!("not told") };
        assert!(text.contains("DATA_DIR") && text.contains("begins anew") && !text.contains("same JOBDIR"), "{text}");
    }

    #[test]
    fn without_any_patience_the_first_failure_ends_the_job() {
        assert!(matches!(patience(Duration::ZERO).refused("no space", Instant::now()), Some(Fact::FrontierGaveUp(_))));
    }

    #[test]
    fn a_store_that_cannot_be_read_at_all_is_given_up() {
        let now = Instant::now();
        let mut patience = patience(60 * SECOND);
        assert!(patience.unread("bad sum", now).is_none());
        patience.read();
        assert!(patience.unread("bad sum", now + 70 * SECOND).is_none(), "others could be read meanwhile");
        let told = patience.unread("bad sum", now + 130 * SECOND);
        assert!(matches!(told, Some(Fact::FrontierGaveUp(text)) if text.contains("cannot be read: bad sum")));
    }
}
