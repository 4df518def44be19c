//! What a turn appends to the record log: groups, log records, and the closing stats.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::closing::Phase;
use super::config::Ends;
use super::log::{End, Entry, LogError};
use super::message::Group;
use super::outbox::Origin;
use super::stamp::stamp_into;
use super::state::CollectorState;
use crate::scheduler::job::outcome;

/// Log records that share one atomic group.
const LOGS_PER_GROUP: usize = 64;
/// Log records that wait at the close for the stats, to be in one batch with them: their dump and the job's last line.
const LAST_LOGS: usize = 2;
/// The longest time log records wait in their ring while nothing else happens.
const RING_EVERY: Duration = Duration::from_millis(500);
/// The same at the close, which waits for them.
const RING_AT_CLOSE: Duration = Duration::from_millis(20);

impl CollectorState {
    /// Appends waiting groups while there is room in the spool.
    pub(super) fn append_groups(&mut self, now: Instant, unix_seconds: u64) -> Result<(), LogError> {
        let (mut groups, mut requests, mut items) = (0, 0, 0);
        let mut result = Ok(());
        while let Some((group, _)) = self.waiting.front() {
            let Some(log) = &mut self.log else { break };
            if self.hold.is_full(log.held_bytes()) && !self.phase.is_closing() {
                break;
            }
            let name = (group.tag, group.part);
            if !self.written.contains(name) {
                let group = Arc::clone(group);
                if let Err(error) = self.append_group(&group, now, unix_seconds) {
                    result = Err(error);
                    break;
                }
                groups += 1;
                requests += group.records.len();
                items += group.items.len();
                self.items += group.items.len() as u64;
                self.written.note(name);
            }
            self.kept.push(name);
            self.slots.extend(self.waiting.pop_front().map(|(_, slot)| slot));
        }
        if groups > 0 {
            for (name, count) in
                [("collector/groups", groups), ("collector/records/request", requests), ("collector/records/item", items)]
            {
                self.stats.add(name, i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        result
    }

    fn append_group(&mut self, group: &Group, now: Instant, unix_seconds: u64) -> Result<(), LogError> {
        let mut texts = std::mem::take(&mut self.texts);
        texts.clear();
        let mut ends_at = Vec::with_capacity(group.items.len());
        for item in &group.items {
            stamp_into(item, unix_seconds, &mut texts);
            ends_at.push(texts.len());
        }
        let mut entries = Vec::with_capacity(group.items.len() + group.records.len() + 1);
        let mut start = 0;
        for end in ends_at {
            entries.push(Entry::Item(texts.get(start..end).unwrap_or_default().into()));
            start = end;
        }
        entries.extend(group.records.iter().map(|text| Entry::Request(text.as_str().into())));
        let end = group.end.filter(|_| self.config.ends == Ends::Journaled);
        entries.extend(
            end.map(|end| Entry::End(End { request: end.request.0, attempt: end.attempt, outcome: outcome::code(end.outcome) })),
        );
        let result = self.append(&entries, now);
        drop(entries);
        self.texts = texts;
        result?;
        for item in &group.items {
            self.feeds.add(item);
        }
        Ok(())
    }

    /// Appends one atomic group and counts it into its batch.
    fn append(&mut self, entries: &[Entry<'_>], now: Instant) -> Result<(), LogError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if entries.is_empty() {
            return Ok(());
        }
        if log.writes_before(entries) {
            // An end that survives a kill is not fetched again: the feeds must have its items by then.
            self.feeds.write();
        }
        let range = match log.append_group(entries) {
            Ok(range) => range,
            Err(LogError::TooLarge { limit, .. }) => {
                // It can never be written: it costs only itself.
                let fits = |entry: &&Entry<'_>| entry.record().is_none_or(|(_, text)| text.len() <= limit);
                let fitting: Vec<_> = entries.iter().filter(fits).cloned().collect();
                let dropped = entries.len() - fitting.len();
                tracing::error!(dropped, limit, "records are too large for the record log and are dropped");
                self.stats.add("collector/too_large", i64::try_from(dropped).unwrap_or(i64::MAX));
                return self.append(&fitting, now);
            }
            Err(error) => return Err(error),
        };
        for (seq, entry) in (range.first..).zip(entries) {
            if let Entry::End(end) = entry
                && let Some(older) = self.ends.insert(end.request, seq)
            {
                // The newer one stands for both.
                log.mark_settled(older);
            }
            if let Some((_, text)) = entry.record() {
                self.watched.note(seq, text);
            }
            self.batcher.add(seq, entry, now, &mut self.full);
        }
        // At once, and not when the turn is through: a panic must not forget a cut.
        self.full.drain(..).for_each(|cut| self.outbox.push(cut, Origin::Present));
        Ok(())
    }

    pub(super) fn append_logs(&mut self, now: Instant) -> Result<(), LogError> {
        self.next_ring = now + if self.phase.is_closing() { RING_AT_CLOSE } else { RING_EVERY };
        let Some(log) = &self.log else { return Ok(()) };
        if self.hold.is_full(log.held_bytes()) && !self.phase.is_closing() {
            return Ok(());
        }
        // Once the stats are in the open batch, only its size in bytes can cut it.
        let keep = if matches!(&self.phase, Phase::Closing(close) if !close.stats_in) { LAST_LOGS } else { 0 };
        if self.logs.len() <= keep && !self.ring.is_empty() {
            let mut drained = Vec::new();
            self.ring.drain(&mut drained);
            self.logs.extend(drained);
        }
        if self.logs.len() > keep {
            self.numbers.reserve(self.ring.next_index())?;
        }
        while self.logs.len() > keep {
            let count = (self.logs.len() - keep).min(LOGS_PER_GROUP);
            // A record's text cannot fail; if it did, the record would go without a trace but its index.
            let texts = self.logs.iter().take(count).filter_map(|record| record.to_text().ok());
            let entries: Vec<_> = texts.map(|text| Entry::Log(text.into())).collect();
            self.append(&entries, now)?;
            self.logs.drain(..count);
            self.stats.add("collector/records/log", i64::try_from(count).unwrap_or(i64::MAX));
        }
        let dropped = i64::try_from(self.ring.dropped()).unwrap_or(i64::MAX);
        if dropped > 0 {
            if self.stats.count("collector/log_dropped") == 0 {
                tracing::warn!(
                    "log records come faster than they can be written: what is over is dropped and not delivered; collector/log_dropped counts it"
                );
            }
            self.stats.max("collector/log_dropped", dropped);
        }
        let own = i64::try_from(self.ring.own_dropped()).unwrap_or(i64::MAX);
        if own > 0 {
            self.stats.max("collector/log_own_dropped", own);
        }
        Ok(())
    }

    /// At the close, when all groups are written: the stats, and the last batch.
    pub(super) fn append_stats(&mut self, now: Instant, queued: usize) -> Result<(), LogError> {
        let Phase::Closing(close) = &self.phase else { return Ok(()) };
        if queued > 0 || !self.waiting.is_empty() {
            return Ok(());
        }
        let stats = if !close.stats_in { close.stats_text() } else { None };
        if let Some(text) = stats {
            self.append(&[Entry::Stats(text.into())], now)?;
            self.stats.inc("collector/records/stats");
        }
        if let Phase::Closing(close) = &mut self.phase {
            close.stats_in = true;
        }
        self.append_logs(now)?;
        // Again for what comes after the last batch all the same.
        self.full.extend(self.batcher.close());
        self.ring.closing();
        if let Phase::Closing(close) = &mut self.phase {
            close.cut = true;
        }
        Ok(())
    }
}
