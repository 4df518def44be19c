//! The rows of a frontier on disk, format 1: keys and values as bytes, each value with a checksum.
//!
//! Numbers are big-endian, so that keys sort by them. A value ends with the xxh3-64 of what comes before it,
//! seeded with its key and its space: a value that turns up under another key is damaged too. What a record of a
//! job looks like is the record codec's business.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::scheduler::job::{Books, Outcome, RequestId, outcome};
use crate::scheduler::store::Cursors;

/// The format these rows are of.
pub(super) const FORMAT: u8 = 1;

/// The parts of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// Age of a job that has not ended: its record.
    Jobs = 1,
    /// Running number: keys seen first in one commit.
    Seen = 2,
    /// Parent and commit: children it queued then.
    Children = 3,
    /// Kind and age of a job that ended and is kept: its outcome and record.
    Ended = 4,
    /// The head, gates and states.
    Meta = 5,
}

impl Space {
    pub(super) const ALL: [Self; 5] = [Self::Jobs, Self::Seen, Self::Children, Self::Ended, Self::Meta];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Seen => "seen",
            Self::Children => "children",
            Self::Ended => "ended",
            Self::Meta => "meta",
        }
    }
}

/// Why a job that ended is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It failed for good.
    Failed = 1,
    /// Its step was unknown.
    SetAside = 2,
    /// Its record cannot be read; it counts as set aside.
    Damaged = 3,
}

/// Key of the one row that says how everything stands.
pub(super) const HEAD: &[u8] = b"head";

/// Prefix of the keys of slots' not-before times.
pub(super) const GATE: &[u8] = b"gate ";

/// Prefix of the keys of states of other parts of the job.
pub(super) const STATE: &[u8] = b"state ";

/// Key of a row that holds nothing and is written anew at times, so that an idle space keeps no journal alive.
pub(super) const HEARTBEAT: &[u8] = &[0];

const CHECKSUM: usize = 8;

/// How everything stood at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    /// Its running number.
    pub(super) commit: u64,
    /// Rows of seen keys written so far, and so the number of the last one.
    pub(super) seen_rows: u64,
    /// The youngest age given out.
    pub(super) last_age: u64,
    /// Jobs that were out.
    pub(super) out: u64,
    pub(super) books: Books,
    pub(super) cursors: Cursors,
}

impl Head {
    const BYTES: usize = 1 + 12 * 8;

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES + CHECKSUM);
        bytes.push(FORMAT);
        for number in self.numbers() {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        seal(Space::Meta, HEAD, bytes)
    }

    /// The head of a row; a text that says what is wrong with it.
    pub(super) fn decode(value: &[u8]) -> Result<Self, String> {
        match value.first() {
            Some(&FORMAT) => {}
            Some(other) => return Err(format!("its head row has format {other}, {FORMAT} is known")),
            None => return Err("its head row is empty".to_owned()),
        }
        let damaged = || "its head row fails its checksum".to_owned();
        let body = open(Space::Meta, HEAD, value).ok_or_else(damaged)?;
        let (numbers, []) = body.get(1..).unwrap_or_default().as_chunks::<8>() else {
            return Err(damaged());
        };
        let numbers: [[u8; 8]; 12] = numbers.try_into().map_err(|_| damaged())?;
        let [commit, seen_rows, last_age, out, enqueued, handled, failed, dropped, set_aside, pending, start, idle] =
            numbers.map(u64::from_be_bytes);
        let books = Books { enqueued, handled, failed, dropped, set_aside, pending };
        Ok(Self { commit, seen_rows, last_age, out, books, cursors: Cursors { start, idle } })
    }

    fn numbers(&self) -> [u64; 12] {
        let Books { enqueued, handled, failed, dropped, set_aside, pending } = self.books;
        let Cursors { start, idle } = self.cursors;
        let Self { commit, seen_rows, last_age, out, .. } = *self;
        [commit, seen_rows, last_age, out, enqueued, handled, failed, dropped, set_aside, pending, start, idle]
    }
}

/// Adds the checksum to a value.
pub(super) fn seal(space: Space, key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let sum = checksum(space, key, &value);
    value.extend_from_slice(&sum.to_be_bytes());
    value
}

/// What a value holds, when its checksum is right.
pub(super) fn open<'a>(space: Space, key: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    let (body, sum) = value.split_last_chunk::<CHECKSUM>()?;
    (u64::from_be_bytes(*sum) == checksum(space, key, body)).then_some(body)
}

fn checksum(space: Space, key: &[u8], body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, xxh3_64_with_seed(key, space as u64))
}

/// Key of a job, and of a row of seen keys.
pub(super) const fn numbered(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The number of a key of [`numbered`].
pub(super) fn number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.try_into().ok()?))
}

/// Ids or seen keys in a row of `space`.
pub(super) fn seal_ids(space: Space, key: &[u8], ids: &[u128]) -> Vec<u8> {
    let mut value = Vec::with_capacity(ids.len() * 16 + CHECKSUM);
    for id in ids {
        value.extend_from_slice(&id.to_be_bytes());
    }
    seal(space, key, value)
}

/// What [`seal_ids`] wrote.
pub(super) fn open_ids(space: Space, key: &[u8], value: &[u8]) -> Option<impl Iterator<Item = u128>> {
    let (ids, rest) = open(space, key, value)?.as_chunks::<16>();
    rest.is_empty().then(|| ids.iter().map(|id| u128::from_be_bytes(*id)))
}

/// Key of what a parent queued in one commit.
pub(super) fn children_key(parent: RequestId, commit: u64) -> [u8; 24] {
    let mut key = [0; 24];
    let (head, tail) = key.split_at_mut(16);
    head.copy_from_slice(&parent.0.to_be_bytes());
    tail.copy_from_slice(&commit.to_be_bytes());
    key
}

/// Parent and commit of a key of [`children_key`].
pub(super) fn parent_and_commit(key: &[u8]) -> Option<(RequestId, u64)> {
    let (parent, commit) = key.split_first_chunk::<16>()?;
    Some((RequestId(u128::from_be_bytes(*parent)), number(commit)?))
}

/// Key of a job that ended and is kept.
pub(super) fn ended_key(kept: Kept, age: u64) -> [u8; 9] {
    let mut key = [kept as u8; 9];
    if let Some((_, tail)) = key.split_first_mut() {
        tail.copy_from_slice(&age.to_be_bytes());
    }
    key
}

/// Why and since which age the job of a key of [`ended_key`] is kept.
pub(super) fn kept_and_age(key: &[u8]) -> Option<(Kept, u64)> {
    let (kept, age) = key.split_first()?;
    let kept = match kept {
        1 => Kept::Failed,
        2 => Kept::SetAside,
        3 => Kept::Damaged,
        _ => return None,
    };
    Some((kept, number(age)?))
}

impl Kept {
    /// How a job is kept that ended so, if it is.
    pub(super) const fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Failed(_) => Some(Self::Failed),
            Outcome::SetAside => Some(Self::SetAside),
            Outcome::Handled | Outcome::Dropped(_) => None,
        }
    }
}

/// How a job ended, and its record.
pub(super) fn seal_ended(key: &[u8], ended: Outcome, record: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(record.len() + 1 + CHECKSUM);
    value.push(outcome::code(ended));
    value.extend_from_slice(record);
    seal(Space::Ended, key, value)
}

/// What [`seal_ended`] wrote.
pub(super) fn open_ended<'a>(key: &[u8], value: &'a [u8]) -> Option<(Outcome, &'a [u8])> {
    let (code, record) = open(Space::Ended, key, value)?.split_first()?;
    Some((outcome::outcome(*code), record))
}

/// Key of a slot's not-before time.
pub(super) fn gate_key(slot: &str) -> Vec<u8> {
    [GATE, slot.as_bytes()].concat()
}

/// A not-before time, since the epoch.
pub(super) fn seal_gate(key: &[u8], until: Duration) -> Vec<u8> {
    let mut value = until.as_secs().to_be_bytes().to_vec();
    value.extend_from_slice(&until.subsec_nanos().to_be_bytes());
    seal(Space::Meta, key, value)
}

/// What [`seal_gate`] wrote.
pub(super) fn open_gate(key: &[u8], value: &[u8]) -> Option<Duration> {
    let (seconds, nanos) = open(Space::Meta, key, value)?.split_first_chunk::<8>()?;
    let nanos = u32::from_be_bytes(nanos.try_into().ok()?);
    Some(Duration::from_secs(u64::from_be_bytes(*seconds)).saturating_add(Duration::from_nanos(nanos.into())))
}

/// Key of a state.
pub(super) fn state_key(name: &str) -> Vec<u8> {
    [STATE, name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn head() -> Head {
        let books = Books { enqueued: 21, handled: 6, failed: 5, dropped: 4, set_aside: 3, pending: 3 };
        Head { commit: 1, seen_rows: 2, last_age: 3, out: 4, books, cursors: Cursors { start: 7, idle: 8 } }
    }

    #[test]
    fn the_bytes_are_those_of_format_1() {
        // Golden values: frontiers of earlier versions hold them.
        assert_eq!(Space::ALL.map(Space::name), ["jobs", "seen", "children", "ended", "meta"]);
        assert_eq!(hex(&head().encode()), GOLDEN_HEAD);
        assert_eq!(hex(&seal(Space::Jobs, &numbered(7), b"record".to_vec())), GOLDEN_JOB);
        assert_eq!(hex(&seal_ids(Space::Seen, &numbered(1), &[1, u128::MAX])), GOLDEN_SEEN);
        assert_eq!(hex(&children_key(RequestId(5), 6)), "000000000000000000000000000000050000000000000006");
        assert_eq!(hex(&ended_key(Kept::SetAside, 9)), "020000000000000009");
        assert_eq!(hex(&seal_gate(&gate_key("a"), Duration::new(3, 4))), GOLDEN_GATE);
        assert_eq!((gate_key("a.b"), state_key("cookies")), (b"gate a.b".to_vec(), b"state cookies".to_vec()));
    }

    const GOLDEN_HEAD: &str = "\
        010000000000000001000000000000000200000000000000030000000000000004000000000000001500000000000000\
        060000000000000005000000000000000400000000000000030000000000000003000000000000000700000000000000\
        08bc0e13b18c31cfac";
    const GOLDEN_JOB: &str = "7265636f7264a8776f2d79a9f2ec";
    const GOLDEN_SEEN: &str = "00000000000000000000000000000001ffffffffffffffffffffffffffffffff4a10ebabe6bb5f16";
    const GOLDEN_GATE: &str = "000000000000000300000004070810e563e98a04";

    #[test]
    fn rows_come_back_from_their_bytes() {
        assert_eq!(Head::decode(&head().encode()), Ok(head()));
        let key = numbered(3);
        let ids: Vec<u128> = open_ids(Space::Seen, &key, &seal_ids(Space::Seen, &key, &[4, 5])).unwrap().collect();
        assert_eq!(ids, [4, 5]);
        assert_eq!(parent_and_commit(&children_key(RequestId(u128::MAX), 6)), Some((RequestId(u128::MAX), 6)));
        for kept in [Kept::Failed, Kept::SetAside, Kept::Damaged] {
            assert_eq!(kept_and_age(&ended_key(kept, 9)), Some((kept, 9)));
        }
        let key = gate_key("a");
        assert_eq!(open_gate(&key, &seal_gate(&key, Duration::new(3, 4))), Some(Duration::new(3, 4)));
    }

    #[test]
    fn a_row_with_a_wrong_byte_or_under_a_wrong_key_is_damaged() {
        let sealed = seal(Space::Jobs, &numbered(7), b"record".to_vec());
        for place in 0..sealed.len() {
            let mut torn = sealed.clone();
            torn[place] ^= 1;
            assert_eq!(open(Space::Jobs, &numbered(7), &torn), None);
            assert_eq!(open(Space::Jobs, &numbered(7), &sealed[..place]), None);
        }
        assert_eq!(open(Space::Jobs, &numbered(8), &sealed), None);
        assert_eq!(open(Space::Ended, &numbered(7), &sealed), None);
        let head = head().encode();
        for place in 0..head.len() {
            let mut torn = head.clone();
            torn[place] ^= 1;
            assert!(Head::decode(&torn).is_err());
            assert!(Head::decode(&head[..place]).is_err());
        }
        assert!(Head::decode(&[9, 0]).unwrap_err().contains("format 9"));
    }
}
