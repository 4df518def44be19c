//! How a frontier on disk stands, in numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::error::DiskError;
use super::inspect::{Inspection, Kept};
use super::rows::{self, FORMAT, Space};
use crate::scheduler::job::{Books, Outcome, SlotKey};
use crate::scheduler::record;
use crate::scheduler::store::Cursors;

/// How a frontier stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Its format.
    pub format: u8,
    /// The number of its last commit.
    pub commit: u64,
    /// The books.
    pub books: Books,
    /// Requests that were in flight at the last commit; they are in the queue again.
    pub in_flight: u64,
    /// How many requests of `start()` and `idle` were taken in.
    pub cursors: Cursors,
    /// Slots with queued requests, the fullest first.
    pub slots: Vec<SlotCount>,
    /// URL of the queued request that is longest in the queue, and of the one that came last.
    pub oldest: Option<String>,
    /// The latter.
    pub newest: Option<String>,
    /// Queued requests whose records cannot be read; the next run sets them aside.
    pub unreadable: u64,
    /// Failed requests that are kept, by how they ended.
    pub failed: Vec<(Outcome, u64)>,
    /// Requests kept because their step is unknown.
    pub set_aside: u64,
    /// Requests kept because their records cannot be read.
    pub damaged: u64,
    /// Keys seen.
    pub seen: u64,
    /// Bytes on disk, as far as they are in tables.
    pub bytes: u64,
}

/// A slot of a frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotCount {
    /// Its name.
    pub slot: SlotKey,
    /// Requests in its queue.
    pub queued: u64,
    /// When the first may go, as time since the Unix epoch; zero for at once.
    pub earliest: Duration,
}

/// Looks at the frontier at `dir`; none when there is none.
///
/// # Errors
/// As [`Inspection::open`].
pub fn survey(dir: &Path) -> Result<Option<Survey>, DiskError> {
    Inspection::open(dir)?.map(|inspection| inspection.survey()).transpose()
}

impl Inspection {
    /// Counts what is there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn survey(&self) -> Result<Survey, DiskError> {
        let mut survey = Survey {
            format: FORMAT,
            commit: self.head.commit,
            books: self.head.books,
            in_flight: self.head.out.min(self.head.books.pending),
            cursors: self.head.cursors,
            slots: Vec::new(),
            oldest: None,
            newest: None,
            unreadable: 0,
            failed: Vec::new(),
            set_aside: self.count(Kept::SetAside)?,
            damaged: self.count(Kept::Damaged)?,
            seen: 0,
            bytes: self.base.disk_bytes(),
        };
        self.survey_queue(&mut survey)?;
        let mut failed: BTreeMap<u8, (Outcome, u64)> = BTreeMap::new();
        for record in self.kept(Kept::Failed) {
            if let Some(outcome) = record?.ended {
                failed.entry(crate::scheduler::job::outcome::code(outcome)).or_insert((outcome, 0)).1 += 1;
            }
        }
        survey.failed = failed.into_values().collect();
        survey.failed.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for row in self.base.scan(Space::Seen, &[]) {
            let (key, value) = row?;
            let keys = rows::open_ids(Space::Seen, &key, &value).map_or(0, Iterator::count);
            survey.seen += u64::try_from(keys).unwrap_or(u64::MAX);
        }
        Ok(survey)
    }

    fn survey_queue(&self, survey: &mut Survey) -> Result<(), DiskError> {
        let mut slots: BTreeMap<String, (u64, Duration)> = BTreeMap::new();
        let mut newest = None;
        for row in self.base.scan(Space::Jobs, &[]) {
            let (key, value) = row?;
            let record = rows::open(Space::Jobs, &key, &value);
            let Some(peek) = record.and_then(|record| record::peek(record).ok()) else {
                survey.unreadable += 1;
                continue;
            };
            let (queued, earliest) = match slots.get_mut(peek.host) {
                Some(slot) => slot,
                None => slots.entry(peek.host.to_owned()).or_insert((0, Duration::MAX)),
            };
            *queued += 1;
            *earliest = peek.not_before.min(*earliest);
            if survey.oldest.is_none() {
                survey.oldest = Some(peek.url.to_owned());
            }
            newest = Some(value);
        }
        survey.newest = newest.and_then(|value| Some(record::peek(&value).ok()?.url.to_owned()));
        let slots = slots.into_iter();
        survey.slots =
            slots.map(|(slot, (queued, earliest))| SlotCount { slot: SlotKey(slot.into()), queued, earliest }).collect();
        survey.slots.sort_by_key(|slot| std::cmp::Reverse(slot.queued));
        Ok(())
    }

    fn count(&self, kept: Kept) -> Result<u64, DiskError> {
        let mut count = 0;
        for record in self.kept(kept) {
            record?;
            count += 1;
        }
        Ok(count)
    }
}
