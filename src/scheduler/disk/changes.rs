//! What was done since the last commit: kept until a commit has it on disk, however often that fails.
//!
//! It is also where a job that is not on disk yet is read from. Writing it twice does no harm: a failed commit may have
//! reached the disk all the same, and the next one brings the same rows and more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::base::Batch;
use super::rows::{self, Head, Kept, Space};
use crate::scheduler::job::{Outcome, RequestId, SlotKey};

/// Changes to the rows of the database.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Sealed records by age; none for a row to be removed.
    jobs: BTreeMap<u64, Option<Vec<u8>>>,
    /// Ages of which an older record is on disk.
    replaced: BTreeSet<u64>,
    seen: Vec<u128>,
    /// Children by parent.
    children: BTreeMap<RequestId, Vec<u128>>,
    ended: BTreeMap<(u8, u64), Option<Vec<u8>>>,
    /// Gates and states by key.
    meta: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Rows to be removed, or to be written as they are.
    rows: Vec<(Space, Vec<u8>, Option<Vec<u8>>)>,
    /// The commit that was tried: its rows may be on disk.
    tried: Option<u64>,
    /// Something changed that only the head says.
    head: bool,
}

impl Changes {
    /// The record of a job that is not on disk yet.
    pub(super) fn job(&self, age: u64) -> Option<&[u8]> {
        let sealed = self.jobs.get(&age)?.as_deref()?;
        rows::open(Space::Jobs, &rows::numbered(age), sealed)
    }

    /// Keeps the record that `write` appends.
    pub(super) fn put_job(&mut self, age: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let mut record = Vec::with_capacity(192);
        write(&mut record);
        self.jobs.insert(age, Some(rows::seal(Space::Jobs, &rows::numbered(age), record)));
    }

    /// Keeps another record of a job, which is on disk unless it came after the last commit.
    pub(super) fn replace_job(&mut self, age: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.jobs.contains_key(&age) {
            self.replaced.insert(age);
        }
        self.put_job(age, write);
    }

    pub(super) fn remove_job(&mut self, age: u64) {
        match self.jobs.get(&age) {
            Some(Some(_)) if self.tried.is_none() && !self.replaced.contains(&age) => drop(self.jobs.remove(&age)),
            _ => drop(self.jobs.insert(age, None)),
        }
        self.head = true;
    }

    pub(super) fn see(&mut self, key: u128) {
        self.seen.push(key);
    }

    pub(super) fn add_child(&mut self, parent: RequestId, child: RequestId) {
        self.children.entry(parent).or_default().push(child.0);
    }

    /// Forgets the children of a parent, whose rows were written in these commits.
    pub(super) fn remove_children(&mut self, parent: RequestId, commits: impl IntoIterator<Item = u64>) {
        let tried = self.children.remove(&parent).and(self.tried);
        let commits = commits.into_iter().chain(tried);
        self.rows.extend(commits.map(|commit| (Space::Children, rows::children_key(parent, commit).to_vec(), None)));
    }

    /// Removes a row that cannot be read.
    pub(super) fn remove_row(&mut self, space: Space, key: &[u8]) {
        self.rows.push((space, key.to_vec(), None));
    }

    /// Writes a row of seen keys without any, in the place of one that is gone.
    pub(super) fn empty_seen(&mut self, number: u64) {
        let key = rows::numbered(number);
        self.rows.push((Space::Seen, key.to_vec(), Some(rows::seal_ids(Space::Seen, &key, &[]))));
    }

    /// Parents of which children will be written.
    pub(super) fn parents(&self) -> impl Iterator<Item = RequestId> {
        self.children.keys().copied()
    }

    /// Keeps a job that ended.
    pub(super) fn keep(&mut self, kept: Kept, age: u64, outcome: Outcome, record: &[u8]) {
        self.ended.insert((kept as u8, age), Some(rows::seal_ended(&rows::ended_key(kept, age), outcome, record)));
    }

    pub(super) fn forget(&mut self, kept: Kept, age: u64) {
        self.ended.insert((kept as u8, age), None);
    }

    pub(super) fn gate(&mut self, slot: &SlotKey, until: Option<Duration>) {
        let key = rows::gate_key(&slot.0);
        let value = until.map(|until| rows::seal_gate(&key, until));
        self.meta.insert(key, value);
    }

    pub(super) fn save(&mut self, name: &str, state: Vec<u8>) {
        let key = rows::state_key(name);
        let value = rows::seal(Space::Meta, &key, state);
        self.meta.insert(key, Some(value));
    }

    /// A state that is not on disk yet.
    pub(super) fn saved(&self, name: &str) -> Option<&[u8]> {
        let key = rows::state_key(name);
        rows::open(Space::Meta, &key, self.meta.get(&key)?.as_deref()?)
    }

    /// Something changed that only the head says: books, cursors.
    pub(super) fn touch(&mut self) {
        self.head = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { jobs, replaced: _, seen, children, ended, meta, rows, tried: _, head } = self;
        jobs.is_empty()
            && seen.is_empty()
            && children.is_empty()
            && ended.is_empty()
            && meta.is_empty()
            && rows.is_empty()
            && !head
    }

    /// Whether keys will be written that were seen first.
    pub(super) fn has_seen(&self) -> bool {
        !self.seen.is_empty()
    }

    /// All of it as one batch, as commit `head.commit`.
    pub(super) fn batch(&mut self, head: &Head) -> Batch {
        self.tried = Some(head.commit);
        let mut batch = Batch::default();
        for (age, record) in &self.jobs {
            batch.set(Space::Jobs, rows::numbered(*age), record.as_deref());
        }
        if !self.seen.is_empty() {
            let key = rows::numbered(head.seen_rows);
            batch.set(Space::Seen, key, &*rows::seal_ids(Space::Seen, &key, &self.seen));
        }
        for (parent, children) in &self.children {
            let key = rows::children_key(*parent, head.commit);
            batch.set(Space::Children, key, &*rows::seal_ids(Space::Children, &key, children));
        }
        for (space, key, value) in &self.rows {
            batch.set(*space, key, value.as_deref());
        }
        for ((kept, age), record) in &self.ended {
            let mut key = [*kept; 9];
            if let Some((_, tail)) = key.split_first_mut() {
                tail.copy_from_slice(&rows::numbered(*age));
            }
            batch.set(Space::Ended, key, record.as_deref());
        }
        for (key, value) in &self.meta {
            batch.set(Space::Meta, key.as_slice(), value.as_deref());
        }
        batch.set(Space::Meta, rows::HEAD, &*head.encode());
        batch
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows_of(changes: &mut Changes) -> usize {
        changes.batch(&Head::default()).len() - 1
    }

    #[test]
    fn a_job_that_came_and_went_between_commits_leaves_no_row() {
        let mut changes = Changes::default();
        changes.put_job(1, |into| into.extend_from_slice(b"record"));
        assert_eq!(changes.job(1), Some(&b"record"[..]));
        changes.remove_job(1);
        assert_eq!((changes.job(1), changes.is_empty()), (None, false));
        assert_eq!(rows_of(&mut changes), 0);
    }

    #[test]
    fn after_a_failed_commit_its_row_is_removed_since_it_may_be_there() {
        let mut changes = Changes::default();
        changes.put_job(1, |into| into.extend_from_slice(b"record"));
        assert_eq!(rows_of(&mut changes), 1);
        changes.remove_job(1);
        assert_eq!(rows_of(&mut changes), 1, "the removal");
    }

    #[test]
    fn a_replaced_record_is_removed_from_the_disk_if_it_may_be_there() {
        let mut changes = Changes::default();
        changes.replace_job(1, |into| into.push(2));
        assert_eq!(changes.job(1), Some(&[2][..]));
        changes.remove_job(1);
        assert_eq!(rows_of(&mut changes), 1, "the removal");
        let mut changes = Changes::default();
        changes.put_job(1, |into| into.push(1));
        changes.replace_job(1, |into| into.push(2));
        changes.remove_job(1);
        assert_eq!(rows_of(&mut changes), 0, "it never was there");
    }

    #[test]
    fn children_of_a_parent_that_ended_are_not_written_and_their_rows_removed() {
        let mut changes = Changes::default();
        changes.add_child(RequestId(1), RequestId(2));
        assert_eq!(changes.parents().collect::<Vec<_>>(), [RequestId(1)]);
        assert_eq!(rows_of(&mut changes), 1);
        changes.remove_children(RequestId(1), [7, 8]);
        assert_eq!(rows_of(&mut changes), 3, "those of two commits, and of the one that was tried");
    }

    #[test]
    fn a_saved_state_is_read_before_it_is_written() {
        let mut changes = Changes::default();
        assert!(changes.is_empty());
        changes.save("cookies", b"one".to_vec());
        assert_eq!(changes.saved("cookies"), Some(&b"one"[..]));
        assert!(!changes.is_empty());
    }
}
