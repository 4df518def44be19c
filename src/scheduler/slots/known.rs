//! What the throttle knows of hosts, also while they have no slot and after the job was started again.
//!
//! Bounded: of more than [`MOST`] hosts those go that answered longest ago, which then begin at
//! `AUTOTHROTTLE_START_DELAY` again.
//!
//! On disk: version 1, the number of hosts (u32), and for each the length of its name (u16), the name, delay and floor
//! in microseconds (u64 each); numbers are big-endian.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::throttle::Throttled;

/// The version of the saved form.
const VERSION: u8 = 1;
/// Hosts that are remembered: about a megabyte.
const MOST: usize = 10_000;
/// A delay that moved by less than this part of it since it was saved is not worth saving again.
const WORTH: u32 = 8;

/// The table, shared by the slots and by who saves it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    hosts: HashMap<Box<str>, Entry>,
    turn: u64,
    is_changed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    throttled: Throttled,
    /// The delay as it was last taken for saving.
    saved: Duration,
    turn: u64,
}

impl Known {
    /// The table as an earlier run saved it.
    ///
    /// # Errors
    /// When the bytes are not of this form: why.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Self, String> {
        let mut hosts = HashMap::new();
        let mut left = Reader(bytes);
        match left.take(1).and_then(|byte| byte.first().copied()) {
            Some(VERSION) => {}
            other => return Err(format!("delays of hosts in version {other:?}, where {VERSION} is known")),
        }
        let cut = || "delays of hosts that are cut off".to_owned();
        let count = left.number(4).ok_or_else(cut)?;
        for turn in 1..=count {
            let length = left.number(2).and_then(|length| usize::try_from(length).ok()).ok_or_else(cut)?;
            let name = left.take(length).ok_or_else(cut)?;
            let name = std::str::from_utf8(name).map_err(|_| "the delay of a host whose name is no text".to_owned())?;
            let delay = Duration::from_micros(left.number(8).ok_or_else(cut)?);
            let floor = Duration::from_micros(left.number(8).ok_or_else(cut)?);
            hosts.insert(name.into(), Entry { throttled: Throttled { delay, floor }, saved: delay, turn });
        }
        let table = Table { hosts, turn: count, is_changed: false };
        Ok(Self(Arc::new(Mutex::new(table))))
    }

    /// What is known of the host.
    pub(crate) fn get(&self, host: &str) -> Option<Throttled> {
        self.lock().hosts.get(host).map(|entry| entry.throttled)
    }

    /// Remembers what a host's answer came to.
    pub(crate) fn set(&self, host: &str, throttled: Throttled) {
        let table = &mut *self.lock();
        table.turn += 1;
        let turn = table.turn;
        if let Some(entry) = table.hosts.get_mut(host) {
            let moved = entry.saved.abs_diff(throttled.delay) > entry.saved / WORTH;
            *entry = Entry { throttled, turn, ..*entry };
            table.is_changed |= moved;
            return;
        }
        if table.hosts.len() >= MOST {
            table.forget_oldest();
        }
        table.hosts.insert(host.into(), Entry { throttled, saved: throttled.delay, turn });
        table.is_changed = true;
    }

    /// The table to be saved, if there is anything new worth it.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        let table = &mut *self.lock();
        if !std::mem::take(&mut table.is_changed) {
            return None;
        }
        let mut entries: Vec<(&Box<str>, &mut Entry)> = table.hosts.iter_mut().collect();
        // Whoever reads it knows who answered last.
        entries.sort_unstable_by_key(|(_, entry)| entry.turn);
        let mut bytes = vec![VERSION];
        bytes.extend(u32::try_from(entries.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (name, entry) in entries {
            entry.saved = entry.throttled.delay;
            bytes.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
            bytes.extend(name.as_bytes().iter().take(usize::from(u16::MAX)));
            for time in [entry.throttled.delay, entry.throttled.floor] {
                bytes.extend(u64::try_from(time.as_micros()).unwrap_or(u64::MAX).to_be_bytes());
            }
        }
        Some(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Each change is one insertion: a panic in between leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Makes room by a quarter.
    fn forget_oldest(&mut self) {
        let mut turns: Vec<u64> = self.hosts.values().map(|entry| entry.turn).collect();
        let quarter = turns.len() / 4;
        let (_, last, _) = turns.select_nth_unstable(quarter);
        let last = *last;
        self.hosts.retain(|_, entry| entry.turn > last);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    /// A number of so many bytes.
    fn number(&mut self, bytes: usize) -> Option<u64> {
        self.take(bytes).map(|bytes| bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn throttled(delay: u64, floor: u64) -> Throttled {
        Throttled { delay: Duration::from_micros(delay), floor: Duration::from_micros(floor) }
    }

    #[test]
    fn the_saved_form_is_the_one_of_version_1() {
        let known = Known::default();
        known.set("a.test", throttled(800_000, 0));
        known.set("b", throttled(65_536, 255));
        known.set("a.test", throttled(800_001, 7));
        let golden: &[u8] = b"\x01\0\0\0\x02\0\x01b\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\xff\
            \0\x06a.test\0\0\0\0\0\x0c\x35\x01\0\0\0\0\0\0\0\x07";
        assert_eq!(known.take().unwrap(), golden);
        let again = Known::restore(golden).unwrap();
        assert_eq!((again.get("a.test"), again.get("b")), (known.get("a.test"), known.get("b")));
        assert_eq!((again.get("c"), again.take()), (None, None));
        for cut in 0..golden.len() {
            assert!(Known::restore(&golden[..cut]).is_err(), "{cut}");
        }
        assert!(Known::restore(&[2, 0, 0, 0, 0]).unwrap_err().contains("version"));
        assert!(Known::restore(b"\x01\0\0\0\x01\0\x01\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").is_err());
    }

    #[test]
    fn it_is_saved_again_when_a_delay_has_moved_by_an_eighth() {
        let known = Known::default();
        known.set("a", throttled(800, 0));
        assert!(known.take().is_some());
        for (delay, is_news) in [(800, false), (900, false), (901, true), (850, false), (700, true)] {
            known.set("a", throttled(delay, 0));
            assert_eq!(known.take().is_some(), is_news, "{delay}");
        }
    }

    #[test]
    fn of_too_many_hosts_those_that_answered_longest_ago_are_forgotten() {
        let known = Known::default();
        for n in 0..=MOST {
            known.set(&n.to_string(), throttled(1, 0));
            known.set("always", throttled(2, 0));
        }
        let count = known.lock().hosts.len();
        assert!(count <= MOST && count > MOST / 2, "{count}");
        assert_eq!(known.get("0"), None);
        assert!(known.get("always").is_some() && known.get(&MOST.to_string()).is_some());
    }
}
