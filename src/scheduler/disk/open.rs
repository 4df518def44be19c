//! Opening a frontier: the index is read back from the rows, what ended meanwhile is settled, and what does not add up is
//! put right and told.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::DiskOptions;
use super::base::Base;
use super::changes::Changes;
use super::error::DiskError;
use super::place::{Contents, Place};
use super::rows::{self, FORMAT, Head, Kept, Space};
use super::salvage;
use super::store::DiskStore;
use super::sync::{self, Syncer};
use crate::scheduler::index::Index;
use crate::scheduler::index::heap::KeyMap;
use crate::scheduler::job::{JobKind, Outcome, RequestId, SlotKey};
use crate::scheduler::record;

/// What was found at the opening.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opened {
    /// Requests in the queue now.
    pub pending: u64,
    /// Requests that had ended, which was known but not yet settled.
    pub settled_from_log: u64,
    /// Requests that were in flight at the last commit and are in the queue again.
    pub returned: u64,
    /// What did not add up and was put right.
    pub repaired: Option<Repaired>,
}

/// Damage that was put right as far as it can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repaired {
    /// Queued requests whose records cannot be read: they are kept as damaged and count as set aside.
    pub damaged: u64,
    /// Queued requests that are gone.
    pub lost: u64,
    /// Requests that are in the queue although they were settled: they are fetched again.
    pub unsettled: u64,
    /// Rows of seen keys that are gone: their pages may be fetched again.
    pub seen_rows: u64,
    /// Commits that had been synced and are gone.
    pub commits: u64,
    /// Rows of children, gates and others that could not be read and were dropped.
    pub rows: u64,
    /// The first damaged ones, by space and key.
    pub named: Vec<String>,
    /// Where the database is kept of which blocks could not be read; it may be deleted.
    pub kept: Option<PathBuf>,
}

impl Repaired {
    /// How many are named.
    const NAMED: usize = 8;

    fn name(&mut self, space: Space, key: &[u8]) {
        if self.named.len() < Self::NAMED {
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            self.named.push(format!("{} {key}", space.name()));
        }
    }
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.commits, "commits that were safe are gone (a journal is damaged)"),
            (self.lost, "queued requests are gone"),
            (self.damaged, "queued requests cannot be read and are set aside as damaged"),
            (self.unsettled, "requests that had ended are fetched again"),
            (self.seen_rows, "rows of seen keys are gone, so that pages may be fetched again"),
            (self.rows, "other rows could not be read and were dropped"),
        ];
        let mut first = true;
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{}{count} {what}", if first { "" } else { "; " })?;
            first = false;
        }
        if !self.named.is_empty() {
            write!(f, " [{}]", self.named.join(", "))?;
        }
        if let Some(kept) = &self.kept {
            let lead = if first { "" } else { "; " };
            write!(
                f,
                "{lead}the database was damaged and what could be read of it was copied, it is kept as {}",
                kept.display()
            )?;
        }
        f.write_str("; check the disk, and begin the job anew if every page must be there")
    }
}

impl DiskStore {
    /// Opens the frontier at `dir`, or begins one there. Requests in `ended` are settled as they ended.
    ///
    /// # Errors
    /// When the directory is not a frontier of this format, in use, or cannot be read or written.
    pub fn open(dir: &Path, options: DiskOptions, ended: &HashMap<RequestId, Outcome>) -> Result<(Self, Opened), DiskError> {
        let (place, contents) = Place::claim(dir)?;
        let mut base = Base::open(place.dir(), &place.database())?;
        if contents == Contents::Nothing {
            let mut changes = Changes::default();
            base.write(&changes.batch(&Head::default()), true)?;
            place.finish()?;
        }
        let mut load = Load::begin(place.dir(), &base, ended)?;
        match load.rows(&base) {
            Err(error) if error.is_damage() => {
                tracing::error!(%error, "what can be read of the frontier is copied to a new database");
                let rescued;
                (base, rescued) = salvage(&place, base)?;
                load = Load::begin(place.dir(), &base, ended)?;
                load.repaired.kept = Some(rescued);
                load.rows(&base)?;
            }
            done => done?,
        }
        load.end();
        let Load { index, changes, head, broods, repaired, settled, .. } = load;
        sync::note(place.dir(), head.commit)?;
        let opened = Opened {
            pending: index.books.pending,
            settled_from_log: settled,
            returned: head.out.min(index.books.pending + settled).saturating_sub(settled),
            repaired: (repaired != Repaired::default()).then_some(repaired),
        };
        let store = Self {
            syncer: Syncer::start(place.dir(), &place.database(), options.sync)?,
            base: Some(base),
            last_age: head.last_age,
            index,
            changes,
            head,
            broods,
            out: HashMap::new(),
            options,
            failed: None,
            broken: false,
            unsynced: false,
            #[cfg(test)]
            fault: None,
            place,
        };
        store.begin(opened)
    }

    /// The first commit: what was settled and put right is on disk before anybody hears of it.
    fn begin(mut self, opened: Opened) -> Result<(Self, Opened), DiskError> {
        self.write()?;
        let patience = self.options.patience;
        self.base()?.set_patience(patience);
        Ok((self, opened))
    }
}

/// Puts a copy of what can be read in the place of a damaged database, and says where that one is now.
fn salvage(place: &Place, damaged: Base) -> Result<(Base, PathBuf), DiskError> {
    let copy = place.new_database()?;
    salvage::copy(place.dir(), &damaged, &copy)?;
    drop(damaged);
    let aside = place.replace_database()?;
    Ok((Base::open(place.dir(), &place.database())?, aside))
}

/// The head row.
pub(super) fn head(dir: &Path, base: &Base) -> Result<Head, DiskError> {
    let damaged = |what: String| DiskError::Damaged { path: dir.to_owned(), what };
    let value = base.get(Space::Meta, rows::HEAD)?.ok_or_else(|| damaged("its head row is missing".to_owned()))?;
    match value.first() {
        Some(found) if *found > FORMAT => {
            Err(DiskError::Newer { path: dir.to_owned(), found: (*found).into(), known: FORMAT.into() })
        }
        _ => Head::decode(&value).map_err(damaged),
    }
}

/// An opening under way.
struct Load<'a> {
    ended: &'a HashMap<RequestId, Outcome>,
    head: Head,
    index: Index,
    changes: Changes,
    broods: KeyMap<Vec<u64>>,
    /// Children by parent, until it is known which parents have not ended.
    children: HashMap<RequestId, Vec<u128>>,
    repaired: Repaired,
    settled: u64,
    queued: u64,
}

impl<'a> Load<'a> {
    fn begin(dir: &Path, base: &Base, ended: &'a HashMap<RequestId, Outcome>) -> Result<Self, DiskError> {
        let head = head(dir, base)?;
        let mut index = Index::new();
        index.books = head.books;
        index.cursors = head.cursors;
        index.skip_to(head.last_age);
        let commits = sync::noted(dir).unwrap_or_default().saturating_sub(head.commit);
        Ok(Self {
            ended,
            head,
            index,
            changes: Changes::default(),
            broods: KeyMap::default(),
            children: HashMap::new(),
            repaired: Repaired { commits, ..Repaired::default() },
            settled: 0,
            queued: 0,
        })
    }

    fn rows(&mut self, base: &Base) -> Result<(), DiskError> {
        self.meta(base)?;
        self.children(base)?;
        self.seen(base)?;
        self.jobs(base)
    }

    fn meta(&mut self, base: &Base) -> Result<(), DiskError> {
        for row in base.scan(Space::Meta, rows::GATE) {
            let (key, value) = row?;
            let Some(slot) = key.strip_prefix(rows::GATE) else { break };
            let slot = std::str::from_utf8(slot).ok().map(|slot| SlotKey(slot.into()));
            match (slot, rows::open_gate(&key, &value)) {
                (Some(slot), Some(until)) => {
                    self.index.gate(&slot, until);
                }
                _ => self.drop_row(Space::Meta, &key),
            }
        }
        Ok(())
    }

    fn children(&mut self, base: &Base) -> Result<(), DiskError> {
        for row in base.scan(Space::Children, &[]) {
            let (key, value) = row?;
            let found = rows::parent_and_commit(&key).zip(rows::open_ids(Space::Children, &key, &value));
            match found {
                Some(((parent, commit), ids)) => {
                    self.children.entry(parent).or_default().extend(ids);
                    self.broods.entry(parent.0).or_default().push(commit);
                }
                None => self.drop_row(Space::Children, &key),
            }
        }
        Ok(())
    }

    fn seen(&mut self, base: &Base) -> Result<(), DiskError> {
        let mut expected = 1;
        for row in base.scan(Space::Seen, &[]) {
            let (key, value) = row?;
            let Some(number) = rows::number(&key) else {
                self.drop_row(Space::Seen, &key);
                continue;
            };
            self.miss_seen(expected..number);
            expected = number + 1;
            match rows::open_ids(Space::Seen, &key, &value) {
                Some(keys) => {
                    for key in keys {
                        self.index.seen.insert(key);
                    }
                }
                None => {
                    self.repaired.name(Space::Seen, &key);
                    self.miss_seen(number..number + 1);
                }
            }
        }
        self.miss_seen(expected..self.head.seen_rows.saturating_add(1));
        // Rows above what the head tells of: a later number would be given twice.
        self.head.seen_rows = self.head.seen_rows.max(expected - 1);
        Ok(())
    }

    /// Rows that are gone are told of once: empty ones take their places.
    fn miss_seen(&mut self, numbers: std::ops::Range<u64>) {
        self.repaired.seen_rows += numbers.end.saturating_sub(numbers.start);
        for number in numbers {
            self.changes.empty_seen(number);
        }
    }

    fn jobs(&mut self, base: &Base) -> Result<(), DiskError> {
        for row in base.scan(Space::Jobs, &[]) {
            let (key, value) = row?;
            let Some(age) = rows::number(&key) else {
                self.drop_row(Space::Jobs, &key);
                continue;
            };
            self.queued += 1;
            self.head.last_age = self.head.last_age.max(age);
            self.index.skip_to(age);
            let record = rows::open(Space::Jobs, &key, &value);
            match record.and_then(|record| Some((record::peek(record).ok()?, record))) {
                Some((peek, record)) => self.job(age, &peek, record),
                None => self.damaged(age, &key, &value),
            }
        }
        Ok(())
    }

    fn job(&mut self, age: u64, peek: &record::Peek<'_>, record: &[u8]) {
        if let Some(outcome) = self.ended.get(&peek.id) {
            self.settled += 1;
            self.index.books.settle(*outcome);
            if let Some(kept) = Kept::of(*outcome)
                && peek.kind == JobKind::Page
            {
                self.changes.keep(kept, age, *outcome, record);
            }
            self.changes.remove_job(age);
            return;
        }
        self.index.restore(peek.host, age, peek.priority, peek.not_before);
        for child in self.children.remove(&peek.id).unwrap_or_default() {
            self.index.children.insert(peek.id, RequestId(child));
        }
    }

    fn damaged(&mut self, age: u64, key: &[u8], value: &[u8]) {
        self.repaired.damaged += 1;
        self.index.books.settle(Outcome::SetAside);
        self.repaired.name(Space::Jobs, key);
        self.changes.keep(Kept::Damaged, age, Outcome::SetAside, value);
        self.changes.remove_job(age);
    }

    fn drop_row(&mut self, space: Space, key: &[u8]) {
        self.repaired.rows += 1;
        self.repaired.name(space, key);
        self.changes.remove_row(space, key);
    }

    /// Counts, and forgets children of parents that have ended.
    fn end(&mut self) {
        let stored = self.head.books.pending;
        self.repaired.lost = stored.saturating_sub(self.queued);
        self.repaired.unsettled = self.queued.saturating_sub(stored);
        let books = &mut self.index.books;
        books.pending = self.queued - self.settled - self.repaired.damaged;
        books.enqueued = books.handled + books.failed + books.dropped + books.set_aside + books.pending;
        if self.repaired.lost > 0 || self.repaired.unsettled > 0 {
            self.changes.touch();
        }
        for parent in self.children.keys() {
            self.changes.remove_children(*parent, self.broods.remove(&parent.0).unwrap_or_default());
        }
    }
}
