//! A page: the records of up to 512 neighbouring ages, one after the other, in memory or in a file.

use std::ops::Range;

use super::spill::Place;
use crate::scheduler::index::heap::allocation;

/// Ages of a page.
pub(super) const AGES: u64 = 512;

/// Records of ages from `first` on.
#[derive(Debug)]
pub(super) struct Page {
    first: u64,
    text: Text,
    /// Where each present record starts.
    starts: Vec<u32>,
    /// Ages whose record was written, and those whose record was not dropped since.
    present: Ages,
    alive: Ages,
    count: usize,
    live: usize,
    live_bytes: usize,
}

/// Where the records are.
#[derive(Debug)]
pub(super) enum Text {
    Memory(Vec<u8>),
    Spilled(Place),
}

/// A set of ages of a page.
#[derive(Debug, Clone, Copy, Default)]
struct Ages([u64; 8]);

impl Page {
    /// A page that starts with the first age it gets.
    pub(super) const fn new() -> Self {
        let (present, alive) = (Ages([0; 8]), Ages([0; 8]));
        Self { first: 0, text: Text::Memory(Vec::new()), starts: Vec::new(), present, alive, count: 0, live: 0, live_bytes: 0 }
    }

    /// Starts anew with the buffers as they are.
    pub(super) fn clear(&mut self) {
        let Self { text, starts, .. } = self;
        let text = match text {
            Text::Memory(bytes) => std::mem::take(bytes),
            Text::Spilled(_) => Vec::new(),
        };
        let mut starts = std::mem::take(starts);
        starts.clear();
        *self = Self { text: Text::Memory(text), starts, ..Self::new() };
        if let Text::Memory(bytes) = &mut self.text {
            bytes.clear();
        }
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Whether the page goes as far as this age.
    pub(super) const fn covers(&self, age: u64) -> bool {
        age.wrapping_sub(self.first) < AGES
    }

    /// Whether so many ages more, and no gaps, are more than it takes.
    pub(super) const fn is_full_with(&self, ages: usize) -> bool {
        self.count + ages > AGES as usize
    }

    /// Adds the record of an age that is younger than all before. False when the page does not go that far, or is
    /// not in memory.
    pub(super) fn push(&mut self, age: u64, record: &[u8]) -> bool {
        if self.count == 0 {
            self.first = age;
        }
        let (true, Ok(start)) = (self.covers(age), u32::try_from(self.end())) else {
            return false;
        };
        let Text::Memory(bytes) = &mut self.text else {
            return false;
        };
        bytes.extend_from_slice(record);
        self.starts.push(start);
        self.present.set(age - self.first);
        self.alive.set(age - self.first);
        self.count += 1;
        self.live += 1;
        self.live_bytes += record.len();
        true
    }

    /// Where in the page the record of an age is.
    pub(super) fn span(&self, age: u64) -> Option<Range<usize>> {
        let nr = age.wrapping_sub(self.first);
        if nr >= AGES || !self.alive.has(nr) {
            return None;
        }
        let at = self.present.below(nr);
        let start = *self.starts.get(at)? as usize;
        let end = self.starts.get(at + 1).map_or(self.end(), |next| *next as usize);
        Some(start..end)
    }

    /// Drops the record of an age; false when there is none.
    pub(super) fn drop_record(&mut self, age: u64) -> bool {
        let Some(span) = self.span(age) else {
            return false;
        };
        self.alive.unset(age - self.first);
        self.live -= 1;
        self.live_bytes -= span.len();
        true
    }

    /// Records that were not dropped.
    pub(super) const fn live(&self) -> usize {
        self.live
    }

    /// Whether more than a quarter of its bytes belongs to dropped records.
    pub(super) fn is_loose(&self) -> bool {
        self.live_bytes * 4 < self.end() * 3
    }

    /// The same without what was dropped, in as much memory as it needs; none when it is spilled.
    pub(super) fn packed(&self) -> Option<Self> {
        let mut packed = Self::new();
        packed.text = Text::Memory(Vec::with_capacity(self.live_bytes));
        packed.starts = Vec::with_capacity(self.live);
        for (age, record) in self.records()? {
            packed.push(age, record);
        }
        Some(packed)
    }

    /// What is live, in the order of ages; none when it is spilled.
    pub(super) fn records(&self) -> Option<impl Iterator<Item = (u64, &[u8])>> {
        let Text::Memory(bytes) = &self.text else {
            return None;
        };
        let ages = self.first..self.first.saturating_add(AGES);
        Some(ages.filter_map(|age| Some((age, bytes.get(self.span(age)?)?))))
    }

    pub(super) const fn text(&self) -> &Text {
        &self.text
    }

    /// Its records were written to a file, at `place`.
    pub(super) fn spilled(&mut self, place: Place) {
        self.text = Text::Spilled(place);
    }

    /// Bytes held beside itself.
    pub(super) fn heap(&self) -> usize {
        let text = match &self.text {
            Text::Memory(bytes) => allocation(bytes.capacity()),
            Text::Spilled(_) => 0,
        };
        text + allocation(self.starts.capacity() * size_of::<u32>())
    }

    /// Bytes by which [`Page::heap`] may grow, and hold for a moment, when so much is added.
    pub(super) fn growth(&self, records: usize, bytes: usize) -> usize {
        let grown = |len: usize, capacity: usize| if len > capacity { len.max(2 * capacity) + 64 } else { 0 };
        let text = match &self.text {
            Text::Memory(text) => grown(text.len() + bytes, text.capacity()),
            Text::Spilled(_) => 0,
        };
        text + size_of::<u32>() * grown(self.starts.len() + records, self.starts.capacity())
    }

    fn end(&self) -> usize {
        match &self.text {
            Text::Memory(bytes) => bytes.len(),
            Text::Spilled(place) => place.len,
        }
    }
}

impl Ages {
    fn set(&mut self, nr: u64) {
        if let Some(word) = self.word(nr) {
            *word |= 1 << (nr % 64);
        }
    }

    fn unset(&mut self, nr: u64) {
        if let Some(word) = self.word(nr) {
            *word &= !(1 << (nr % 64));
        }
    }

    fn has(&self, nr: u64) -> bool {
        self.0.get(Self::at(nr)).is_some_and(|word| word >> (nr % 64) & 1 == 1)
    }

    /// How many smaller ones are in it.
    fn below(&self, nr: u64) -> usize {
        let whole: u32 = self.0.iter().take(Self::at(nr)).map(|word| word.count_ones()).sum();
        let part = self.0.get(Self::at(nr)).map_or(0, |word| (word & ((1 << (nr % 64)) - 1)).count_ones());
        (whole + part) as usize
    }

    fn word(&mut self, nr: u64) -> Option<&mut u64> {
        self.0.get_mut(Self::at(nr))
    }

    fn at(nr: u64) -> usize {
        usize::try_from(nr / 64).unwrap_or(usize::MAX)
    }
}
