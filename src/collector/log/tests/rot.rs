//! Everything the log can be damaged by, at random, against what is still there byte by byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use prop::sample::Index;
use proptest::prelude::*;
use tempfile::TempDir;

use super::salvage::frames;
use super::*;

#[derive(Debug, Clone)]
enum Work {
    Append { records: u8, text: u8, end: bool },
    Cut { share: u8 },
    Deliver { which: Index },
    Part { which: Index, place: u8 },
    Settle { which: Index },
    Reopen,
}

#[derive(Debug, Clone)]
enum Rot {
    Truncate { at: Index },
    Flip { at: Index, bit: u8 },
    Zero { at: Index, bytes: u16 },
    Delete,
    Append { rubbish: Vec<u8> },
    Double { at: Index, bytes: u16, to: Index },
}

fn any_work() -> impl Strategy<Value = Work> {
    prop_oneof![
        6 => (0..5u8, any::<u8>(), any::<bool>()).prop_map(|(records, text, end)| Work::Append { records, text, end }),
        4 => any::<u8>().prop_map(|share| Work::Cut { share }),
        2 => any::<Index>().prop_map(|which| Work::Deliver { which }),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(which, place)| Work::Part { which, place }),
        1 => any::<Index>().prop_map(|which| Work::Settle { which }),
        1 => Just(Work::Reopen),
    ]
}

fn any_rot() -> impl Strategy<Value = (Index, Rot)> {
    let rot = prop_oneof![
        2 => any::<Index>().prop_map(|at| Rot::Truncate { at }),
        3 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Rot::Flip { at, bit }),
        3 => (any::<Index>(), 1..400u16).prop_map(|(at, bytes)| Rot::Zero { at, bytes }),
        1 => Just(Rot::Delete),
        1 => prop::collection::vec(any::<u8>(), 1..60).prop_map(|rubbish| Rot::Append { rubbish }),
        2 => (any::<Index>(), 1..400u16, any::<Index>()).prop_map(|(at, bytes, to)| Rot::Double { at, bytes, to }),
    ];
    (any::<Index>(), rot)
}

/// What was written, whatever became of it.
#[derive(Debug, Default)]
struct Written {
    entries: BTreeMap<u64, Entry<'static>>,
    groups: Vec<SeqRange>,
    cuts: Vec<Cut>,
    delivered: Vec<Cut>,
    parts: Vec<Part>,
    /// Ends the log may leave out.
    settled: BTreeSet<u64>,
    newest: u64,
}

fn open_with(dir: &Path, segment_bytes: u64, log_id: u64) -> (RecordLog, Recovered) {
    RecordLog::open(dir, &job(), LogOptions { segment_bytes, log_id }).unwrap()
}

fn write(dir: &Path, segment_bytes: u64, works: &[Work]) -> Written {
    let mut log = open_with(dir, segment_bytes, 1).0;
    let mut written = Written::default();
    let mut cut_up_to = 0;
    for (n, work) in works.iter().enumerate() {
        match work {
            Work::Append { records, text, end: with_end } => {
                let text = |i: u8| format!("{{\"n\": {n}, \"i\": {i}, \"pad\": \"{}\"}}", "x".repeat((*text).into()));
                let mut group: Vec<_> = (0..*records).map(|i| Entry::Item(text(i).into())).collect();
                if *with_end || group.is_empty() {
                    group.push(end(n as u128));
                }
                let range = log.append_group(&group).unwrap();
                written.groups.push(range);
                written.entries.extend((range.first..).zip(group));
                written.newest = range.last;
            }
            Work::Cut { share } => {
                let uncut: Vec<_> = written.entries.range(cut_up_to + 1..).filter(|(_, e)| e.record().is_some()).collect();
                let Some((first, _)) = uncut.first() else { continue };
                let last = *uncut[(uncut.len() - 1) * usize::from(*share) / 255].0;
                let cut = Cut { id: BatchId::of(&job(), log.log_id(), **first), range: SeqRange { first: **first, last } };
                log.cut(&cut).unwrap();
                written.cuts.push(cut);
                cut_up_to = last;
            }
            Work::Deliver { which } => {
                let open: Vec<_> = written.cuts.iter().filter(|cut| !written.delivered.contains(cut)).copied().collect();
                if open.is_empty() {
                    continue;
                }
                let cut = open[which.index(open.len())];
                log.delivered(cut.id).unwrap();
                written.delivered.push(cut);
            }
            Work::Part { which, place } => {
                let open: Vec<_> = written.cuts.iter().filter(|cut| !written.delivered.contains(cut)).collect();
                if open.is_empty() {
                    continue;
                }
                let place = u32::from(*place);
                let part = Part { batch: open[which.index(open.len())].id, first: place, last: place, fate: Fate::Rejected };
                log.part(&part).unwrap();
                written.parts.push(part);
            }
            Work::Settle { which } => {
                let ends: Vec<_> = written.entries.iter().filter(|(_, e)| e.record().is_none()).map(|(seq, _)| *seq).collect();
                if !ends.is_empty() {
                    let seq = ends[which.index(ends.len())];
                    log.mark_settled(seq);
                    written.settled.insert(seq);
                }
            }
            Work::Reopen => {
                log.flush_writes().unwrap();
                drop(log);
                log = open_with(dir, segment_bytes, n as u64 + 2).0;
            }
        }
        log.flush_writes().unwrap();
    }
    written
}

fn spoil(path: &Path, rot: &Rot) {
    let mut bytes = fs::read(path).unwrap();
    let len = bytes.len();
    let range = |at: &Index, bytes: &u16| {
        let at = at.index(len);
        at..(at + usize::from(*bytes)).min(len)
    };
    match rot {
        Rot::Delete => return fs::remove_file(path).unwrap(),
        Rot::Append { rubbish } => bytes.extend(rubbish),
        _ if len == 0 => return,
        Rot::Truncate { at } => bytes.truncate(at.index(len)),
        Rot::Flip { at, bit } => bytes[at.index(len)] ^= 1 << bit,
        Rot::Zero { at, bytes: n } => bytes[range(at, n)].fill(0),
        Rot::Double { at, bytes: n, to } => {
            let part = bytes[range(at, n)].to_vec();
            let to = to.index(len);
            bytes.splice(to..to, part);
        }
    }
    fs::write(path, bytes).unwrap();
}

/// Numbers and bytes of all frames in good segments.
fn all_frames(dir: &Path) -> BTreeMap<u64, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in segments(dir) {
        let bytes = fs::read(path).unwrap();
        for place in frames(&bytes) {
            let frame = &bytes[place];
            found.insert(u64::from_le_bytes(frame[5..13].try_into().unwrap()), frame.to_vec());
        }
    }
    found
}

/// Numbers of the frames of which a file still has every byte. Of two that share a byte, as where a cut and a copy meet by
/// chance, only one can be read.
fn whole(before: &BTreeMap<u64, Vec<u8>>, files: &[Vec<u8>]) -> BTreeSet<u64> {
    let mut whole = BTreeSet::new();
    for file in files {
        let places: Vec<(usize, usize, u64)> = before
            .iter()
            .flat_map(|(seq, frame)| {
                let starts = file.windows(frame.len()).enumerate().filter(move |(_, window)| window == frame);
                starts.map(|(start, window)| (start, start + window.len(), *seq))
            })
            .collect();
        let alone = |place: &&(usize, usize, u64)| places.iter().all(|of| of == *place || of.1 <= place.0 || place.1 <= of.0);
        whole.extend(places.iter().filter(alone).map(|place| place.2));
    }
    whole
}

fn holds(bytes: &[u8], frame: &[u8]) -> bool {
    bytes.windows(frame.len()).any(|window| window == frame)
}

/// Every record in a batch or in none, with how often it is there.
fn readable(log: &mut RecordLog, recovered: &Recovered) -> Vec<(u64, Entry<'static>)> {
    let mut read = Vec::new();
    for range in recovered.cuts.iter().map(|cut| cut.range).chain(recovered.uncut) {
        let entries = log.read(range).unwrap().map(Result::unwrap);
        read.extend(entries.filter(|(_, entry)| entry.record().is_some()));
    }
    read
}

fn cases() -> u32 {
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 4_000 } else { 96 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn whatever_is_still_there_is_read_exactly_once(
        works in prop::collection::vec(any_work(), 1..40),
        segment_bytes in prop::sample::select(vec![250u64, 900, 1 << 20]),
        rots in prop::collection::vec(any_rot(), 1..4),
    ) {
        let dir = TempDir::new().unwrap();
        let written = write(dir.path(), segment_bytes, &works);
        let before = all_frames(dir.path());
        let numbers: BTreeSet<u64> = before.keys().copied().collect();
        let mut shrunk = false;
        for (which, rot) in &rots {
            let paths = segments(dir.path());
            if !paths.is_empty() {
                spoil(&paths[which.index(paths.len())], rot);
                shrunk |= matches!(rot, Rot::Truncate { .. } | Rot::Delete);
            }
        }
        let files: Vec<Vec<u8>> = segments(dir.path()).iter().map(|path| fs::read(path).unwrap()).collect();
        let intact = whole(&before, &files);
        let is_intact = |wanted: &[u8], kind: u8| {
            before.iter().any(|(seq, frame)| intact.contains(seq) && frame[4] & 0x7f == kind && holds(frame, wanted))
        };
        // The group at the very end of the log may be an interrupted write.
        let in_newest = intact.iter().rev().find(|seq| files.last().is_some_and(|file| holds(file, &before[seq])));
        let torn = written.groups.iter().find(|group| in_newest.is_some_and(|seq| group.contains(*seq)));
        let torn = torn.filter(|group| (group.first..=group.last).any(|seq| !intact.contains(&seq)));

        let (mut log, recovered) = open_with(dir.path(), segment_bytes, 1_000);
        let read = readable(&mut log, &recovered);
        let mut seen = BTreeSet::new();
        for (seq, entry) in &read {
            prop_assert_eq!(written.entries.get(seq), Some(entry), "{} was never written", seq);
            prop_assert!(seen.insert(*seq), "{} is there twice", seq);
        }
        let delivered = |seq: u64| written.delivered.iter().find(|cut| cut.range.contains(seq));
        for (seq, entry) in written.entries.iter().filter(|(seq, entry)| intact.contains(seq) && entry.record().is_some()) {
            match delivered(*seq) {
                None => prop_assert!(
                    seen.contains(seq) || torn.is_some_and(|group| group.contains(*seq)),
                    "{} {:?} is intact and not read: {:?}", seq, entry, recovered
                ),
                Some(cut) => {
                    let id = cut.id.0.to_le_bytes();
                    prop_assert!(!(is_intact(&id, 6) && is_intact(&id, 7) && seen.contains(seq)), "{} is sent again", seq);
                }
            }
        }
        for (seq, end) in &recovered.ends {
            prop_assert_eq!(written.entries.get(seq), Some(&Entry::End(*end)));
        }
        let found: BTreeSet<u64> = recovered.ends.iter().map(|(seq, _)| *seq).collect();
        for (seq, entry) in &written.entries {
            let open = entry.record().is_none() && !written.settled.contains(seq) && intact.contains(seq);
            prop_assert!(!open || found.contains(seq) || torn.is_some_and(|group| group.contains(*seq)), "end {}", seq);
        }
        for cut in &recovered.cuts {
            let known = written.cuts.contains(cut);
            prop_assert!(known || written.cuts.iter().all(|old| old.id != cut.id), "an id stands for something else");
        }
        prop_assert!(recovered.parts.iter().all(|part| written.parts.contains(part)));
        for part in &written.parts {
            let id = part.batch.0.to_le_bytes();
            let waits = recovered.cuts.iter().any(|cut| cut.id == part.batch);
            let noted = [&id[..], &part.first.to_le_bytes()].concat();
            prop_assert!(!(waits && is_intact(&noted, 9)) || recovered.parts.contains(part));
        }
        let silent = recovered.damaged.is_empty() && recovered.torn.is_none() && recovered.missing.is_empty();
        prop_assert!(!silent || shrunk || intact == numbers, "a loss went unnoticed");
        drop(log);

        let (mut log, again) = open_with(dir.path(), segment_bytes, 2_000);
        prop_assert!(again.damaged.is_empty() && again.torn.is_none(), "{:?}", again);
        prop_assert_eq!(&readable(&mut log, &again), &read);
        prop_assert_eq!((&again.cuts, &again.parts, &again.ends), (&recovered.cuts, &recovered.parts, &recovered.ends));
        prop_assert!(again.missing.is_empty() && again.lost == 0, "{:?}", again);
        prop_assert_eq!(&again.set_aside, &recovered.set_aside);
        let next = log.append_group(&[item(0)]).unwrap().first;
        prop_assert!(intact.last().is_none_or(|newest| next > *newest || torn.is_some()));
        prop_assert!(shrunk || recovered.torn.is_some() || next > *numbers.last().unwrap_or(&0), "a number comes again");

        // And the log lives on until nothing is left.
        let uncut = SeqRange { first: again.uncut.map_or(next, |uncut| uncut.first), last: next };
        let last = Cut { id: BatchId::of(&job(), log.log_id(), uncut.first), range: uncut };
        log.cut(&last).unwrap();
        for cut in again.cuts.iter().chain([&last]) {
            log.delivered(cut.id).unwrap();
        }
        again.ends.iter().for_each(|(seq, _)| log.mark_settled(*seq));
        log.flush_writes().unwrap();
        log.delete_delivered().unwrap();
        prop_assert_eq!(segments(dir.path()).len(), 1);
        prop_assert_eq!(log.close().unwrap(), Recovered::default());
        prop_assert!(segments(dir.path()).is_empty());
    }
}
