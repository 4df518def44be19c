//! What is left of damaged segments, case by case.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::*;
use crate::collector::log::salvage::die_at;

/// Four groups of two records and an end in one segment, all uncut; gives the places of their frames.
fn four_groups(dir: &Path) -> (PathBuf, Vec<Range<usize>>) {
    let (mut log, _) = open(dir);
    for n in 0..4 {
        log.append_group(&[item(2 * n), item(2 * n + 1), end(n.into())]).unwrap();
    }
    log.flush_writes().unwrap();
    let file = segments(dir)[0].clone();
    let frames = frames(&fs::read(&file).unwrap());
    (file, frames)
}

/// Where the frames of a good segment lie.
pub(super) fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = 48;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        frames.push(at..at + length + 21);
        at += length + 21;
    }
    frames
}

fn numbers(log: &mut RecordLog) -> Vec<u64> {
    all(log).into_iter().map(|(seq, _)| seq).collect()
}

/// Opens a damaged log, and once more: the second time nothing is new.
fn open_twice(dir: &Path) -> (RecordLog, Recovered) {
    let (log, first) = open(dir);
    drop(log);
    let (log, second) = open(dir);
    assert_eq!((&second.damaged, &second.torn, second.lost), (&vec![], &None, 0));
    assert_eq!((&first.ends, &first.cuts, &first.parts), (&second.ends, &second.cuts, &second.parts));
    assert_eq!((&first.uncut, &first.set_aside), (&second.uncut, &second.set_aside));
    (log, first)
}

fn overwrite(file: &Path, range: Range<usize>, with: u8) -> Vec<u8> {
    let mut bytes = fs::read(file).unwrap();
    bytes[range].fill(with);
    fs::write(file, &bytes).unwrap();
    bytes
}

#[test]
fn damage_costs_the_frame_it_hits_and_nothing_behind_it() {
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    let bytes = overwrite(&file, frames[4].start + 30..frames[4].start + 31, 0);
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]);
    let set_aside = dir.path().join("seg-00000000000000000001.log.damaged");
    let damage =
        Damage { file, offset: frames[4].start as u64, bytes: frames[4].len() as u64, lost: 1, set_aside: set_aside.clone() };
    assert_eq!((recovered.damaged, recovered.lost), (vec![damage], 1));
    assert_eq!(recovered.set_aside, std::slice::from_ref(&set_aside));
    assert_eq!(fs::read(set_aside).unwrap(), bytes);
    assert_eq!(recovered.uncut, Some(SeqRange { first: 1, last: 11 }));
    assert!(log.append_group(&[item(0)]).unwrap().first > 12);
}

#[test]
fn a_group_that_lost_its_head_or_its_end_gives_the_rest() {
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    // The head of the second group, the end of the third.
    overwrite(&file, frames[3].clone(), 0);
    overwrite(&file, frames[8].clone(), 255);
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), [1, 2, 3, 5, 6, 7, 8, 10, 11, 12]);
    assert_eq!(recovered.lost, 2);
    assert_eq!(recovered.damaged.len(), 1);
    assert_eq!(recovered.damaged[0].bytes, (frames[3].len() + frames[8].len()) as u64);
}

#[test]
fn an_interrupted_write_behind_damage_still_never_happened() {
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    let mut bytes = overwrite(&file, frames[1].clone(), 0);
    bytes.truncate(frames[11].start + 5);
    fs::write(&file, bytes).unwrap();
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), [1, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(recovered.lost, 1);
}

#[test]
fn a_damaged_last_frame_is_lost_and_counted_and_the_rest_of_its_group_is_not() {
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    overwrite(&file, frames[11].start + 15..frames[11].start + 16, 9);
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(recovered.lost, 1);
    assert!(log.append_group(&[item(0)]).unwrap().first > 12);
}

#[test]
fn a_damaged_header_costs_no_record() {
    for at in 0..48 {
        let dir = TempDir::new().unwrap();
        let (file, _) = four_groups(dir.path());
        let was = fs::read(&file).unwrap()[at];
        overwrite(&file, at..at + 1, was ^ 0x10);
        let (mut log, recovered) = open_twice(dir.path());
        assert_eq!(numbers(&mut log), (1..=12).collect::<Vec<_>>(), "{at}");
        assert_eq!((recovered.lost, recovered.damaged.len(), recovered.damaged[0].offset), (0, 1, 0), "{at}");
    }
}

#[test]
fn wrong_lengths_and_numbers_lead_nowhere() {
    for length in [0u32, 1, 20, 22, 5_000, 256 * 1024 * 1024, u32::MAX] {
        for number in [0u64, 4, 6, 1 << 33, u64::MAX] {
            let dir = TempDir::new().unwrap();
            let (file, frames) = four_groups(dir.path());
            let mut bytes = fs::read(&file).unwrap();
            let at = frames[4].start;
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            bytes[at + 5..at + 13].copy_from_slice(&number.to_le_bytes());
            fs::write(&file, bytes).unwrap();
            let (mut log, recovered) = open_twice(dir.path());
            assert_eq!(numbers(&mut log), [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12], "{length} {number}");
            assert_eq!(recovered.lost, 1);
        }
    }
}

#[test]
fn bytes_that_are_there_twice_or_in_another_order_give_each_record_once() {
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    let bytes = fs::read(&file).unwrap();
    let part = |range: Range<usize>| &bytes[frames[range.start].start..frames[range.end - 1].end];
    let mixed = [&bytes[..48], part(0..2), part(6..9), part(2..8), &[7; 30], part(0..4), part(8..12)].concat();
    fs::write(&file, mixed).unwrap();
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), (1..=12).collect::<Vec<_>>());
    assert_eq!(recovered.lost, 0);
}

#[test]
fn zeros_and_rubbish_are_set_aside_whole_in_no_time() {
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let size = if cfg!(debug_assertions) { 1 << 20 } else { 8 << 20 };
    let rubbish: Vec<u8> = (0..size / 8).flat_map(|_| random().to_le_bytes()).collect();
    for fill in [vec![0; size], vec![1; size], rubbish] {
        for keep in [0, 48] {
            let dir = TempDir::new().unwrap();
            let (file, _) = four_groups(dir.path());
            let mut bytes = fs::read(&file).unwrap();
            bytes.truncate(keep);
            bytes.extend(&fill);
            fs::write(&file, &bytes).unwrap();
            let began = Instant::now();
            let (mut log, recovered) = open_twice(dir.path());
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
            assert_eq!(recovered.damaged.len(), 1);
            assert_eq!((recovered.damaged[0].offset, recovered.damaged[0].bytes), (keep as u64, fill.len() as u64));
            assert!(numbers(&mut log).is_empty());
            assert!(log.bytes() < 200);
            assert!(log.append_group(&[item(0)]).unwrap().first > 12);
        }
    }
}

/// Heads that promise long frames, each in the payload of the one before: every one wants to be checked.
#[test]
fn heads_that_promise_much_cost_little() {
    let dir = TempDir::new().unwrap();
    let (file, _) = four_groups(dir.path());
    let mut bytes = fs::read(&file).unwrap();
    let good = bytes.len();
    while bytes.len() < good + (1 << 20) {
        bytes.extend_from_slice(&600_000u32.to_le_bytes());
        bytes.push(1);
        bytes.extend_from_slice(&13u64.to_le_bytes());
    }
    fs::write(&file, &bytes).unwrap();
    let began = Instant::now();
    let (mut log, recovered) = open_twice(dir.path());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(numbers(&mut log), (1..=12).collect::<Vec<_>>());
    assert_eq!(recovered.damaged[0].offset, good as u64);
}

#[test]
fn a_segment_that_is_there_twice_gives_its_records_once() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=9 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.flush_writes().unwrap();
    drop(log);
    let paths = segments(dir.path());
    let copy = dir.path().join("seg-00000000000000000002.log");
    fs::copy(&paths[1], &copy).unwrap();
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), (1..=9).collect::<Vec<_>>());
    assert_eq!((recovered.damaged.len(), recovered.lost), (1, 0));
    assert_eq!(recovered.damaged[0].file, copy);
    assert_eq!(segments(dir.path()), paths);
}

#[test]
fn a_segment_under_a_wrong_name_is_used() {
    let dir = TempDir::new().unwrap();
    let (file, _) = four_groups(dir.path());
    fs::rename(&file, dir.path().join("seg-00000000000000000077.log")).unwrap();
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), (1..=12).collect::<Vec<_>>());
    assert_eq!((recovered.damaged.len(), recovered.lost), (1, 0));
    assert_eq!(segments(dir.path()), [file]);
}

#[test]
fn an_empty_segment_and_names_that_are_no_numbers_of_ours_do_no_harm() {
    let dir = TempDir::new().unwrap();
    let (_, _) = four_groups(dir.path());
    fs::write(dir.path().join("seg-00000000000000000013.log"), "").unwrap();
    fs::write(dir.path().join("seg-18446744073709551615.log"), "x").unwrap();
    fs::write(dir.path().join("seg-00000000000000000000.log"), "x").unwrap();
    let (log, recovered) = open(dir.path());
    assert_eq!(recovered.torn.as_ref().map(|torn| torn.bytes), Some(0));
    drop(log);
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!((recovered.torn, recovered.damaged), (None, vec![]));
    assert_eq!(log.append_group(&[item(0)]).unwrap().first, 14);
}

#[test]
fn an_empty_segment_in_the_middle_is_a_loss() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=9 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.flush_writes().unwrap();
    drop(log);
    let paths = segments(dir.path());
    fs::write(&paths[1], "").unwrap();
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), [1, 2, 3, 7, 8, 9]);
    assert_eq!((recovered.damaged.len(), recovered.lost), (1, 3));
    assert_eq!(recovered.damaged[0].file, paths[1]);
}

#[test]
fn a_segment_that_was_cut_off_behind_its_header_is_missing_once() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=9 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.flush_writes().unwrap();
    drop(log);
    let path = &segments(dir.path())[1];
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..48]).unwrap();
    let (mut log, recovered) = open_twice(dir.path());
    assert_eq!(numbers(&mut log), [1, 2, 3, 7, 8, 9]);
    assert_eq!((recovered.missing, recovered.lost), (vec![Missing { after: 3, up_to: 6 }], 3));
}

#[test]
fn what_cannot_be_read_is_named_and_nothing_is_changed() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    let bytes = overwrite(&file, frames[1].clone(), 0);
    let blocked = dir.path().join("seg-00000000000000000099.log");
    fs::create_dir(&blocked).unwrap();
    let refused = |blocked: &Path| {
        let error = RecordLog::open(dir.path(), &job(), options()).unwrap_err();
        assert!(matches!(&error, LogError::Io { path, .. } if path == blocked), "{error}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    };
    refused(&blocked);
    fs::remove_dir(&blocked).unwrap();
    fs::write(&blocked, "").unwrap();
    fs::set_permissions(&blocked, fs::Permissions::from_mode(0o0)).unwrap();
    // Root reads it all the same.
    if fs::read(&blocked).is_err() {
        refused(&blocked);
    }
}

/// Cuts 1-2, 4-5, 7-8 and 10-11; the second is delivered, the third has lost its cut, the first has lost a record.
#[test]
fn cuts_keep_what_is_left_and_records_without_a_cut_get_one_of_their_own() {
    let dir = TempDir::new().unwrap();
    let (file, mut frames) = {
        let (file, _) = four_groups(dir.path());
        let (mut log, _) = open(dir.path());
        let cuts = [(1, 2), (4, 5), (7, 8), (10, 11)].map(|(first, last)| cut(first, last));
        for cut in &cuts {
            log.cut(cut).unwrap();
        }
        log.delivered(cuts[1].id).unwrap();
        log.flush_writes().unwrap();
        drop(log);
        let frames = frames(&fs::read(&file).unwrap());
        (file, frames)
    };
    overwrite(&file, frames[0].clone(), 0);
    let marks = segments(dir.path())[1].clone();
    frames = self::frames(&fs::read(&marks).unwrap());
    overwrite(&marks, frames[2].clone(), 0);
    let fresh = LogOptions::new(5);
    let (log, recovered) = RecordLog::open(dir.path(), &job(), fresh).unwrap();
    let orphan = Cut { id: BatchId::of(&job(), 5, 7), range: SeqRange { first: 7, last: 8 } };
    assert_eq!(recovered.cuts[1..], [orphan, cut(10, 11)]);
    // What is left of the first is not the batch that the sink may know.
    assert_eq!(recovered.cuts[0].range, cut(1, 2).range);
    assert_ne!(recovered.cuts[0].id, cut(1, 2).id);
    assert_eq!((recovered.uncut, recovered.lost), (None, 2));
    drop(log);
    let (mut log, again) = RecordLog::open(dir.path(), &job(), LogOptions::new(6)).unwrap();
    assert_eq!(again.cuts, recovered.cuts);
    let left: Vec<_> = log.read(cut(1, 2).range).unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(left, [2]);
    for cut in &again.cuts {
        log.delivered(cut.id).unwrap();
    }
    for (seq, _) in &again.ends {
        log.mark_settled(*seq);
    }
    log.flush_writes().unwrap();
    assert!(log.delete_delivered().unwrap() > 0);
    assert_eq!(log.close().unwrap(), Recovered::default());
    assert!(segments(dir.path()).is_empty());
}

#[test]
fn the_rest_of_a_batch_gets_a_new_id_once_and_its_parts_are_counted_anew() {
    let dir = TempDir::new().unwrap();
    let (file, frames) = four_groups(dir.path());
    let (mut log, _) = open(dir.path());
    log.cut(&cut(1, 8)).unwrap();
    let part = |batch| Part { batch, first: 1, last: 2, fate: Fate::Delivered };
    log.part(&part(cut(1, 8).id)).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    overwrite(&file, frames[4].clone(), 0);
    let (mut log, recovered) = open_twice(dir.path());
    // The places have moved: what was said of the old ones says nothing of the new ones.
    assert_eq!(recovered.parts, []);
    let rest = recovered.cuts[0];
    assert_eq!((recovered.cuts.len(), rest.range), (1, cut(1, 8).range));
    assert_ne!(rest.id, cut(1, 8).id);
    log.part(&part(rest.id)).unwrap();
    // A batch that is cut in the knowledge of a gap keeps its id over it.
    let later = log.append_group(&[item(0)]).unwrap().first;
    let across = Cut { id: BatchId::of(&job(), 9, 10), range: SeqRange { first: 10, last: later } };
    log.cut(&across).unwrap();
    log.part(&part(across.id)).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    let (mut log, again) = open_twice(dir.path());
    assert_eq!((again.cuts, again.parts), (vec![rest, across], vec![part(rest.id), part(across.id)]));
    log.delivered(rest.id).unwrap();
    log.delivered(across.id).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    assert_eq!(open(dir.path()).1.cuts, []);
}

#[test]
fn a_gap_is_written_as_ever() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("seg-00000000000000000001.log");
    let mut damaged = GOLDEN.to_vec();
    let frames = frames(&damaged);
    damaged[frames[3].start..frames[4].end].fill(0);
    fs::write(&file, damaged).unwrap();
    let (_, recovered) = open_twice(dir.path());
    assert_eq!(recovered.lost, 2);
    assert_eq!(fs::read(&file).unwrap(), include_bytes!("../../../../tests/data/spool/v2_salvaged.log"));
}

#[test]
fn a_batch_whose_cut_is_gone_but_not_its_delivery_is_not_sent_again() {
    let dir = TempDir::new().unwrap();
    let (file, _) = four_groups(dir.path());
    let (mut log, _) = open(dir.path());
    log.cut(&cut(1, 5)).unwrap();
    log.delivered(cut(1, 5).id).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    let marks = segments(dir.path())[1].clone();
    let frames = frames(&fs::read(&marks).unwrap());
    overwrite(&marks, frames[0].clone(), 0);
    let (_, recovered) = open_twice(dir.path());
    assert_eq!((recovered.cuts.len(), recovered.uncut), (0, Some(SeqRange { first: 7, last: 11 })));
    assert!(file.exists());
}

#[test]
fn an_opening_that_dies_at_any_step_is_repeated_with_the_same_result() {
    let spoil = |dir: &Path| {
        let (mut log, _) = small(dir);
        for n in 1..=9 {
            log.append_group(&[item(n)]).unwrap();
        }
        log.flush_writes().unwrap();
        drop(log);
        let paths = segments(dir);
        // A hole, a wrong name, nothing but rubbish, and a start that did not get far.
        overwrite(&paths[0], 180..190, 7);
        fs::rename(&paths[1], dir.join("seg-00000000000000000008.log")).unwrap();
        overwrite(&paths[2], 0..240, 7);
        fs::write(dir.join("seg-00000000000000000050.log"), "DRGL").unwrap();
    };
    let look = |dir: &Path| {
        let (mut log, recovered) = small(dir);
        let files: Vec<_> =
            segments(dir).iter().map(|path| (path.file_name().unwrap().to_owned(), fs::read(path).unwrap())).collect();
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        (all(&mut log), recovered.uncut, files, names)
    };
    let dir = TempDir::new().unwrap();
    spoil(dir.path());
    let expected = look(dir.path());
    assert_eq!(expected.0.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 3, 4, 5, 6, 9]);
    for at in 0.. {
        let dir = TempDir::new().unwrap();
        spoil(dir.path());
        die_at(Some(at));
        let died = RecordLog::open(dir.path(), &job(), LogOptions { segment_bytes: 400, ..options() });
        die_at(None);
        match died {
            Ok(_) => {
                assert!(at > 15, "only {at} steps");
                return;
            }
            Err(error) => assert!(error.to_string().contains("the process ends here"), "{error}"),
        }
        let found = look(dir.path());
        assert_eq!((&found.0, &found.1, &found.2), (&expected.0, &expected.1, &expected.2), "died at step {at}");
        assert_eq!(found.3, expected.3, "files after dying at step {at}");
    }
}
