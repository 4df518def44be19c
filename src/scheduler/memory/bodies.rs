//! The records of jobs by age: in pages in memory, and in a file when there is no more room.
//!
//! Neighbouring ages share a page, so that a record costs five bytes beside itself. A page of which much was dropped is
//! packed; of one with few left the records become strays, as are those that are large. The youngest page is the first
//! to be spilled: most crawls come to it last.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::page::{Page, Text};
use super::spill::{Place, Spill};
use crate::scheduler::index::heap::allocation;

/// A record of more bytes is kept by itself.
const LARGE: usize = 4_096;

/// A page of at most so many records is given up.
const FEW: usize = 4;

/// Bytes of an entry in an ordered map, whose nodes are two thirds full.
const fn entry(bytes: usize) -> usize {
    (size_of::<u64>() + bytes) * 3 / 2
}

/// Bytes of a page beside what it holds.
const PAGE: usize = allocation(size_of::<Page>()) + entry(size_of::<Box<Page>>()) + entry(0);

/// Records by age.
#[derive(Debug)]
pub(super) struct Bodies {
    /// The page that is being filled.
    open: Page,
    /// Pages by their first age.
    pages: BTreeMap<u64, Box<Page>>,
    /// Those of them that are in memory.
    in_memory: BTreeSet<u64>,
    /// Large records, and what was left of pages.
    strays: BTreeMap<u64, Box<[u8]>>,
    spilled_strays: BTreeMap<u64, Place>,
    /// Bytes of all but the open page.
    bytes: usize,
    spill: Option<Spill>,
}

impl Bodies {
    pub(super) const fn new(spill: Option<Spill>) -> Self {
        Self {
            open: Page::new(),
            pages: BTreeMap::new(),
            in_memory: BTreeSet::new(),
            strays: BTreeMap::new(),
            spilled_strays: BTreeMap::new(),
            bytes: 0,
            spill,
        }
    }

    /// Keeps the record of an age that is younger than all before.
    pub(super) fn keep(&mut self, age: u64, record: &[u8]) {
        if record.len() > LARGE {
            self.stray(age, record.into());
            return;
        }
        if !self.open.push(age, record) {
            self.seal();
            self.open.clear();
            self.open.push(age, record);
        }
    }

    /// Appends the record of an age to `into`; false when there is none.
    ///
    /// # Errors
    /// When it was spilled and cannot be read.
    pub(super) fn read(&self, age: u64, into: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(record) = self.strays.get(&age) {
            into.extend_from_slice(record);
            return Ok(true);
        }
        if let Some(place) = self.spilled_strays.get(&age) {
            return self.read_file(*place, 0, place.len, into).map(|()| true);
        }
        let in_page = |page| Page::span(page, age).map(|span| (page, span));
        let Some((page, span)) = in_page(&self.open).or_else(|| in_page(self.page_of(age)?)) else {
            return Ok(false);
        };
        match page.text() {
            Text::Memory(bytes) => into.extend_from_slice(bytes.get(span).unwrap_or_default()),
            Text::Spilled(place) => self.read_file(*place, span.start, span.len(), into)?,
        }
        Ok(true)
    }

    /// Drops the record of an age.
    pub(super) fn drop_record(&mut self, age: u64) {
        if self.open.drop_record(age) {
            if self.open.live() == 0 {
                self.open = Page::new();
            } else if self.open.is_loose()
                && let Some(packed) = self.open.packed()
            {
                self.open = packed;
            }
        } else if let Some(record) = self.strays.remove(&age) {
            self.bytes -= stray_bytes(record.len());
        } else if let Some(place) = self.spilled_strays.remove(&age) {
            self.bytes -= entry(size_of::<Place>());
            self.release(place);
        } else {
            self.drop_of_page(age);
        }
    }

    /// Moves a page or stray to the file; false when nothing is left in memory that could be moved.
    ///
    /// # Errors
    /// When it cannot be written; then it is where it was.
    pub(super) fn spill_one(&mut self) -> io::Result<bool> {
        if self.in_memory.is_empty() && self.open.live() > 0 {
            self.seal();
            self.open = Page::new();
        }
        let Some(spill) = &mut self.spill else {
            return Ok(false);
        };
        if let Some(first) = self.in_memory.last().copied()
            && let Some(page) = self.pages.get_mut(&first)
            && let Some(mut packed) = page.packed()
            && let Text::Memory(bytes) = packed.text()
        {
            let place = spill.write(bytes)?;
            self.bytes -= page.heap();
            packed.spilled(place);
            **page = packed;
            self.bytes += page.heap();
            self.in_memory.remove(&first);
            return Ok(true);
        }
        if let Some(stray) = self.strays.last_entry() {
            let place = spill.write(stray.get())?;
            let (age, record) = stray.remove_entry();
            self.bytes = self.bytes + entry(size_of::<Place>()) - stray_bytes(record.len());
            self.spilled_strays.insert(age, place);
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether there is a file to move records to when room is wanted.
    pub(super) const fn spills(&self) -> bool {
        self.spill.is_some()
    }

    /// Where records are spilled to.
    pub(super) const fn spill(&self) -> Option<&Spill> {
        self.spill.as_ref()
    }

    /// Bytes held in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.open.heap()
    }

    /// Bytes by which [`Bodies::bytes`] may grow, and hold for a moment, when so many records of so many bytes in all
    /// are kept.
    pub(super) fn growth(&self, records: usize, bytes: usize) -> usize {
        let pages = records / 512 + 1;
        let sealed = if self.open.is_full_with(records) { self.open.heap() + bytes } else { 0 };
        self.open.growth(records, bytes) + sealed + pages * PAGE
    }

    /// Whether nothing is kept.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.live() == 0 && self.pages.is_empty() && self.strays.is_empty() && self.spilled_strays.is_empty()
    }

    /// The page that may hold the record of an age.
    fn page_of(&self, age: u64) -> Option<&Page> {
        self.pages.range(..=age).next_back().map(|(_, page)| &**page)
    }

    /// Puts the open page to the others; it must be cleared then.
    fn seal(&mut self) {
        if self.open.live() <= FEW {
            let records: Vec<(u64, Box<[u8]>)> =
                self.open.records().into_iter().flatten().map(|(age, record)| (age, record.into())).collect();
            records.into_iter().for_each(|(age, record)| self.stray(age, record));
        } else if let Some(page) = self.open.packed() {
            self.bytes += PAGE + page.heap();
            self.in_memory.insert(page.first());
            self.pages.insert(page.first(), Box::new(page));
        }
    }

    fn stray(&mut self, age: u64, record: Box<[u8]>) {
        self.bytes += stray_bytes(record.len());
        self.strays.insert(age, record);
    }

    fn drop_of_page(&mut self, age: u64) {
        let Some((first, page)) = self.pages.range_mut(..=age).next_back() else { return };
        let first = *first;
        if !page.drop_record(age) {
            return;
        }
        match page.text() {
            Text::Spilled(place) if page.live() == 0 => {
                let place = *place;
                self.remove_page(first);
                self.release(place);
            }
            Text::Spilled(_) => {}
            Text::Memory(_) if page.live() <= FEW => {
                let left = page.records().into_iter().flatten().map(|(age, record)| (age, Box::<[u8]>::from(record)));
                let left: Vec<_> = left.collect();
                self.remove_page(first);
                left.into_iter().for_each(|(age, record)| self.stray(age, record));
            }
            Text::Memory(_) if page.is_loose() => {
                if let Some(packed) = page.packed() {
                    self.bytes = self.bytes + packed.heap() - page.heap();
                    **page = packed;
                }
            }
            Text::Memory(_) => {}
        }
    }

    fn remove_page(&mut self, first: u64) {
        self.in_memory.remove(&first);
        if let Some(page) = self.pages.remove(&first) {
            self.bytes -= PAGE + page.heap();
        }
    }

    fn read_file(&self, place: Place, from: usize, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
        match &self.spill {
            Some(spill) => spill.read(place, from, len, into),
            None => Err(io::Error::other("there is no file of spilled jobs")),
        }
    }

    fn release(&mut self, place: Place) {
        if let Some(spill) = &mut self.spill {
            spill.release(place);
        }
    }
}

const fn stray_bytes(len: usize) -> usize {
    allocation(len) + entry(size_of::<Box<[u8]>>())
}

#[cfg(test)]
mod tests;
