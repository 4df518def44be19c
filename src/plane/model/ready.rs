//! The ready queue of one endpoint group: identities by the moment they are available (wire contract, section 21.2).
//!
//! The order is available-at, then key. An identity nothing has happened to in this group is available since 0 and costs one
//! bit; only one with a moment of its own has an entry. Keys are small numbers given out densely. Never decides who is fit.

mod bits;

use std::collections::BTreeSet;

use self::bits::Bits;
use super::Ms;

/// Keys whose moments lie in one page.
const PAGE: usize = 32;
/// In a page: no entry.
const NONE: Ms = Ms::MAX;

/// Bounds of a hint: when to ask again.
const SHORTEST_HINT: Ms = 50;
const LONGEST_HINT: Ms = 60_000;
/// The hint when an identity is due and what lacks is a proxy.
const PROXY_HINT: Ms = 1_000;

/// The queue. A clone of one nobody was moved in is the cheap way to a group's queue.
///
/// An entry takes 50 bytes at most: 8 in its page, 16 in a tree whose nodes are at least five elevenths full.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadyQueue {
    /// Available since 0.
    fresh: Bits,
    /// Everyone else, in order.
    timed: BTreeSet<(Ms, u32)>,
    /// The moments of `timed`, by key.
    moments: Vec<Option<Box<[Ms; PAGE]>>>,
}

/// What an attempt that picked nobody lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Identity,
    Proxy,
}

impl ReadyQueue {
    /// How many members there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.timed.len()
    }

    /// Whether `key` is a member.
    pub(crate) fn contains(&self, key: u32) -> bool {
        self.available_at(key).is_some()
    }

    /// When `key` is available; `None` when it is no member.
    pub(crate) fn available_at(&self, key: u32) -> Option<Ms> {
        match self.moment(key) {
            Some(at) => Some(at),
            None => self.fresh.contains(key).then_some(0),
        }
    }

    /// Makes `key` a member that is available at `at`, or moves it there. 0 is "always was".
    pub(crate) fn set(&mut self, key: u32, at: Ms) {
        let at = at.min(NONE - 1);
        match self.moment(key) {
            Some(old) if old == at => return,
            Some(old) => {
                self.timed.remove(&(old, key));
            }
            None if at == 0 => {}
            None => {
                self.fresh.remove(key);
            }
        }
        if at == 0 {
            self.note(key, NONE);
            self.fresh.insert(key);
        } else {
            self.note(key, at);
            self.timed.insert((at, key));
        }
    }

    /// Takes `key` out; `false` when it was no member.
    pub(crate) fn remove(&mut self, key: u32) -> bool {
        match self.moment(key) {
            Some(at) => {
                self.note(key, NONE);
                self.timed.remove(&(at, key))
            }
            None => self.fresh.remove(key),
        }
    }

    /// Appends to `into` the `want` members available at `now` that come first, without those `skip` names; they stay members.
    /// Answers how many: fewer than `want` means that there are no more.
    pub(crate) fn due(&self, now: Ms, want: usize, mut skip: impl FnMut(u32) -> bool, into: &mut Vec<u32>) -> usize {
        let mut found = 0;
        let mut from = 0;
        while found < want {
            let Some(key) = self.fresh.next(from) else { break };
            if !skip(key) {
                into.push(key);
                found += 1;
            }
            let Some(next) = key.checked_add(1) else { break };
            from = next;
        }
        for (at, key) in &self.timed {
            if found == want || *at > now {
                break;
            }
            if !skip(*key) {
                into.push(*key);
                found += 1;
            }
        }
        found
    }

    /// When the first member is available.
    pub(crate) fn earliest(&self) -> Option<Ms> {
        if self.fresh.len() > 0 { Some(0) } else { self.timed.first().map(|(at, _)| *at) }
    }

    /// How long to wait after an attempt that picked nobody, in milliseconds.
    pub(crate) fn retry_hint(&self, now: Ms, lack: Lack) -> Ms {
        match self.earliest() {
            None => LONGEST_HINT,
            Some(at) if at > now => (at - now).clamp(SHORTEST_HINT, LONGEST_HINT),
            Some(_) => match lack {
                Lack::Identity => SHORTEST_HINT,
                Lack::Proxy => PROXY_HINT,
            },
        }
    }

    fn moment(&self, key: u32) -> Option<Ms> {
        let page = self.moments.get(key as usize / PAGE)?.as_ref()?;
        page.get(key as usize % PAGE).copied().filter(|at| *at != NONE)
    }

    fn note(&mut self, key: u32, at: Ms) {
        let page = key as usize / PAGE;
        if self.moments.len() <= page {
            if at == NONE {
                return;
            }
            self.moments.resize(page + 1, None);
        }
        let Some(page) = self.moments.get_mut(page) else { return };
        if at == NONE && page.is_none() {
            return;
        }
        if let Some(moment) = page.get_or_insert_with(|| Box::new([NONE; PAGE])).get_mut(key as usize % PAGE) {
            *moment = at;
        }
    }
}

#[cfg(test)]
mod tests;
