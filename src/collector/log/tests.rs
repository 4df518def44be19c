#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod crash;
mod model;
mod rot;
mod salvage;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::apcloudy::JobId;

fn job() -> JobId {
    JobId::from("job-1")
}

fn options() -> LogOptions {
    LogOptions::new(0x1122_3344_5566_7788)
}

fn open(dir: &Path) -> (RecordLog, Recovered) {
    RecordLog::open(dir, &job(), options()).unwrap()
}

fn small(dir: &Path) -> (RecordLog, Recovered) {
    let options = LogOptions { segment_bytes: 400, ..options() };
    RecordLog::open(dir, &job(), options).unwrap()
}

fn end(request: u128) -> Entry<'static> {
    Entry::End(End { request, attempt: 1, outcome: 2 })
}

fn item(n: u64) -> Entry<'static> {
    Entry::Item(format!("{{\"n\": {n}, \"pad\": \"{}\"}}", "x".repeat(60)).into())
}

fn all(log: &mut RecordLog) -> Vec<(u64, Entry<'static>)> {
    let range = SeqRange { first: 1, last: u64::MAX };
    log.read(range).unwrap().collect::<Result<_, _>>().unwrap()
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    paths.sort();
    paths
}

fn cut(first: u64, last: u64) -> Cut {
    Cut { id: BatchId::of(&job(), options().log_id, first), range: SeqRange { first, last } }
}

/// Writes the log of the golden file: one of every kind.
fn write_golden(dir: &Path) {
    let (mut log, _) = open(dir);
    log.append_group(&[Entry::Item("{\"a\": \"\\u0416\"}".into()), Entry::Request("{\"url\": \"u\"}".into()), end(7)]).unwrap();
    log.append_group(&[Entry::Log("{\"index\": 0}".into())]).unwrap();
    log.append_group(&[Entry::Stats("{}".into()), end(u128::MAX)]).unwrap();
    log.cut(&cut(1, 5)).unwrap();
    log.delivered(cut(1, 5).id).unwrap();
    log.mark_settled(3);
    log.flush_writes().unwrap();
    log.append_group(&[Entry::Item("{}".into()), Entry::Item("{}".into())]).unwrap();
    log.cut(&cut(10, 11)).unwrap();
    for part in golden_parts() {
        log.part(&part).unwrap();
    }
    log.flush_writes().unwrap();
}

fn golden_parts() -> [Part; 2] {
    let batch = cut(10, 11).id;
    [Part { batch, first: 0, last: 0, fate: Fate::Delivered }, Part { batch, first: 1, last: 1, fate: Fate::Rejected }]
}

const GOLDEN_V1: &[u8] = include_bytes!("../../../tests/data/spool/v1.log");
const GOLDEN: &[u8] = include_bytes!("../../../tests/data/spool/v2.log");

#[test]
fn a_segment_of_version_two_is_written_as_ever() {
    let dir = TempDir::new().unwrap();
    write_golden(dir.path());
    let written = fs::read(&segments(dir.path())[0]).unwrap();
    assert_eq!(written, GOLDEN);
}

#[test]
fn a_segment_of_version_two_reads_as_ever() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("seg-00000000000000000001.log"), GOLDEN).unwrap();
    let (log, recovered) = open(dir.path());
    assert_eq!(
        recovered,
        Recovered {
            ends: vec![(6, End { request: u128::MAX, attempt: 1, outcome: 2 })],
            cuts: vec![cut(10, 11)],
            parts: golden_parts().to_vec(),
            ..Recovered::default()
        }
    );
    assert!(log.held_bytes() > 0);
}

#[test]
fn a_segment_of_version_one_reads_as_ever() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("seg-00000000000000000001.log"), GOLDEN_V1).unwrap();
    let (mut log, recovered) = open(dir.path());
    assert_eq!(
        recovered,
        Recovered { ends: vec![(6, End { request: u128::MAX, attempt: 1, outcome: 2 })], ..Recovered::default() }
    );
    assert_eq!(log.held_bytes(), 0);
    assert_eq!(
        all(&mut log),
        [
            (1, Entry::Item("{\"a\": \"\\u0416\"}".into())),
            (2, Entry::Request("{\"url\": \"u\"}".into())),
            (3, end(7)),
            (4, Entry::Log("{\"index\": 0}".into())),
            (5, Entry::Stats("{}".into())),
            (6, end(u128::MAX)),
        ]
    );
    // It goes on in a segment of its own.
    log.append_group(&[item(1)]).unwrap();
    log.flush_writes().unwrap();
    let paths = segments(dir.path());
    assert_eq!(fs::read(&paths[0]).unwrap(), GOLDEN_V1);
    assert_eq!(fs::read(&paths[1]).unwrap()[4], 2);
}

#[test]
fn what_was_flushed_is_there_after_the_process_is_gone_and_the_rest_is_not() {
    let dir = TempDir::new().unwrap();
    let (mut log, recovered) = open(dir.path());
    assert_eq!(recovered, Recovered::default());
    log.append_group(&[item(1), end(1)]).unwrap();
    log.flush_writes().unwrap();
    log.append_group(&[item(2), end(2)]).unwrap();
    drop(log);
    let (mut log, recovered) = open(dir.path());
    assert_eq!(recovered.uncut, Some(SeqRange { first: 1, last: 1 }));
    assert_eq!(recovered.ends, [(2, End { request: 1, attempt: 1, outcome: 2 })]);
    assert_eq!(all(&mut log), [(1, item(1)), (2, end(1))]);
    assert_eq!(log.append_group(&[item(3)]).unwrap().first, 3);
}

#[test]
fn a_cut_without_delivery_comes_back_with_its_id_and_range() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    for n in 1..=5 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.cut(&cut(1, 2)).unwrap();
    log.cut(&cut(3, 4)).unwrap();
    log.delivered(cut(1, 2).id).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    let (log, recovered) = open(dir.path());
    assert_eq!(recovered.cuts, [cut(3, 4)]);
    assert_eq!(recovered.uncut, Some(SeqRange { first: 5, last: 5 }));
    assert!(log.held_bytes() > 0 && log.held_bytes() <= log.bytes());
    assert_eq!((log.records_of(&cut(3, 4)), log.records_of(&cut(1, 2))), (2, 0));
}

#[test]
fn a_cut_may_neither_leave_out_nor_invent_records() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1), item(2), item(3)]).unwrap();
    for (first, last) in [(2, 3), (1, 9), (0, 1), (2, 1)] {
        assert!(matches!(log.cut(&cut(first, last)), Err(LogError::BadCut { .. })), "{first}-{last}");
    }
    log.cut(&cut(1, 2)).unwrap();
    assert!(matches!(log.cut(&cut(2, 3)), Err(LogError::BadCut { .. })));
    assert!(matches!(log.delivered(cut(3, 3).id), Err(LogError::UnknownBatch { .. })));
    log.delivered(cut(1, 2).id).unwrap();
    assert!(matches!(log.delivered(cut(1, 2).id), Err(LogError::UnknownBatch { .. })));
}

#[test]
fn parts_of_a_batch_come_back_until_the_batch_is_delivered() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1), item(2), item(3), item(4)]).unwrap();
    log.cut(&cut(1, 2)).unwrap();
    log.cut(&cut(3, 4)).unwrap();
    let part = |batch: Cut, first, fate| Part { batch: batch.id, first, last: first, fate };
    let noted = [part(cut(3, 4), 0, Fate::Rejected), part(cut(1, 2), 1, Fate::Delivered), part(cut(1, 2), 0, Fate::Rejected)];
    for part in &noted {
        log.part(part).unwrap();
    }
    let unknown = log.part(&part(cut(2, 2), 0, Fate::Delivered)).unwrap_err();
    assert!(matches!(unknown, LogError::UnknownBatch { .. }), "{unknown}");
    log.flush_writes().unwrap();
    drop(log);
    let (mut log, recovered) = open(dir.path());
    assert_eq!(recovered.parts, [noted[1], noted[2], noted[0]]);
    log.delivered(cut(1, 2).id).unwrap();
    let delivered = log.part(&noted[1]).unwrap_err();
    assert!(matches!(delivered, LogError::UnknownBatch { .. }), "{delivered}");
    assert_eq!(log.close().unwrap().parts, [noted[0]]);
    let (_, recovered) = open(dir.path());
    assert_eq!(recovered.parts, [noted[0]]);
}

#[test]
fn parts_of_one_batch_have_ids_of_their_own_that_never_change() {
    let batch = BatchId::of(&JobId::from(7), 1, 10);
    let id = BatchId::of_part(batch, 0, 24);
    assert_eq!(id.to_string(), "95ccd9c44fc805d871eccfb8791e5b2f");
    let others = [(0, 23), (1, 24), (0, 0), (24, 0)].map(|(first, last)| BatchId::of_part(batch, first, last));
    assert!(!others.contains(&id) && !others.contains(&batch) && id != batch);
    assert_ne!(id, BatchId::of_part(BatchId(batch.0 + 1), 0, 24));
}

#[test]
fn a_segment_goes_only_when_all_of_it_is_delivered_and_settled() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=8 {
        log.append_group(&[item(n), end(n.into())]).unwrap();
    }
    log.flush_writes().unwrap();
    let count = segments(dir.path()).len();
    assert!(count >= 3, "{count}");
    let size = log.bytes();
    assert_eq!(log.delete_delivered().unwrap(), 0);
    log.cut(&cut(1, 15)).unwrap();
    log.delivered(cut(1, 15).id).unwrap();
    log.flush_writes().unwrap();
    assert_eq!(log.delete_delivered().unwrap(), 0, "delivered, but no end is settled");
    for seq in [2, 4, 6, 8, 10, 12, 14] {
        log.mark_settled(seq);
    }
    let freed = log.delete_delivered().unwrap();
    assert!(freed > 0 && log.bytes() < size);
    assert!(segments(dir.path()).len() < count);
    drop(log);
    // Ends that were settled without a mark in the log may come back, the open one must.
    let (_, recovered) = small(dir.path());
    assert!(recovered.ends.iter().any(|(seq, _)| *seq == 16));
    assert_eq!((recovered.cuts.len(), recovered.uncut), (0, None));
    assert!(recovered.damaged.is_empty() && recovered.missing.is_empty());
}

#[test]
fn an_undelivered_batch_in_front_keeps_everything_behind_it() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=8 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.cut(&cut(1, 1)).unwrap();
    log.cut(&cut(2, 8)).unwrap();
    log.delivered(cut(2, 8).id).unwrap();
    log.flush_writes().unwrap();
    assert_eq!(log.delete_delivered().unwrap(), 0);
    log.delivered(cut(1, 1).id).unwrap();
    assert!(log.delete_delivered().unwrap() > 0);
}

#[test]
fn a_finished_log_leaves_nothing_and_a_later_run_has_other_batch_ids() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1), end(1)]).unwrap();
    log.cut(&cut(1, 1)).unwrap();
    log.delivered(cut(1, 1).id).unwrap();
    log.mark_settled(2);
    let first_id = log.log_id();
    assert_eq!(log.close().unwrap(), Recovered::default());
    assert!(segments(dir.path()).is_empty());
    let (log, _) = RecordLog::open(dir.path(), &job(), LogOptions::new(99)).unwrap();
    assert_ne!(BatchId::of(&job(), first_id, 1), BatchId::of(&job(), log.log_id(), 1));
}

#[test]
fn a_closed_log_with_leftovers_names_them_and_the_next_run_has_other_ids() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1), item(2), end(1)]).unwrap();
    log.cut(&cut(1, 1)).unwrap();
    log.mark_settled(3);
    let left = log.close().unwrap();
    assert_eq!(left.cuts, [cut(1, 1)]);
    assert_eq!(left.uncut, Some(SeqRange { first: 2, last: 2 }));
    let (log, recovered) = RecordLog::open(dir.path(), &job(), LogOptions::new(99)).unwrap();
    assert_eq!(recovered, left);
    assert_eq!(log.log_id(), 99);
}

#[test]
fn two_processes_and_two_jobs_cannot_share_a_directory() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1)]).unwrap();
    log.flush_writes().unwrap();
    let second = RecordLog::open(dir.path(), &job(), options()).unwrap_err();
    assert!(matches!(second, LogError::Locked { .. }), "{second}");
    drop(log);
    let other = RecordLog::open(dir.path(), &JobId::from("job-2"), options()).unwrap_err();
    assert!(matches!(other, LogError::OtherJob { .. }), "{other}");
    assert!(other.to_string().contains("seg-00000000000000000001.log"));
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("seg-00000000000000000001.log");
    let mut newer = GOLDEN.to_vec();
    newer[4] = 3;
    let sum = xxhash_rust::xxh3::xxh3_64(&newer[..40]);
    newer[40..48].copy_from_slice(&sum.to_le_bytes());
    fs::write(&file, &newer).unwrap();
    let error = RecordLog::open(dir.path(), &job(), options()).unwrap_err();
    assert!(matches!(error, LogError::NewerFormat { found: 3, supported: 2, .. }), "{error}");
    assert_eq!(fs::read(&file).unwrap(), newer);
}

#[test]
fn a_segment_that_vanished_is_named() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=9 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.flush_writes().unwrap();
    drop(log);
    let paths = segments(dir.path());
    assert!(paths.len() >= 3);
    fs::remove_file(&paths[1]).unwrap();
    let (_, recovered) = small(dir.path());
    assert_eq!(recovered.missing, [Missing { after: 3, up_to: 6 }]);
    assert_eq!(recovered.lost, 3);
    let (mut log, again) = small(dir.path());
    assert_eq!((again.missing, again.lost), (vec![], 0));
    assert_eq!(all(&mut log).len(), 6);
}

#[test]
fn a_failed_write_stops_appending_until_a_flush_succeeds() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    log.append_group(&[item(1)]).unwrap();
    log.flush_writes().unwrap();
    log.append_group(&[item(2)]).unwrap();
    log.break_file_for_test(true);
    assert!(matches!(log.flush_writes(), Err(LogError::Io { what: "write", .. })));
    assert!(matches!(log.append_group(&[item(3)]), Err(LogError::Stalled { .. })));
    log.break_file_for_test(false);
    log.flush_writes().unwrap();
    log.append_group(&[item(3)]).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    let (mut log, recovered) = small(dir.path());
    assert_eq!(recovered.uncut, Some(SeqRange { first: 1, last: 3 }));
    assert_eq!(all(&mut log).len(), 3);
}

#[test]
fn a_part_waits_for_a_stalled_log_like_everything_else() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1), item(2)]).unwrap();
    log.cut(&cut(1, 2)).unwrap();
    log.flush_writes().unwrap();
    let parts = [0, 1].map(|place| Part { batch: cut(1, 2).id, first: place, last: place, fate: Fate::Delivered });
    log.part(&parts[0]).unwrap();
    log.break_file_for_test(true);
    assert!(matches!(log.flush_writes(), Err(LogError::Io { what: "write", .. })));
    assert!(matches!(log.part(&parts[1]), Err(LogError::Stalled { .. })));
    log.break_file_for_test(false);
    log.flush_writes().unwrap();
    log.part(&parts[1]).unwrap();
    log.flush_writes().unwrap();
    drop(log);
    assert_eq!(open(dir.path()).1.parts, parts);
}

#[test]
fn the_parts_of_a_waiting_batch_outlive_the_segments_before_them() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = small(dir.path());
    for n in 1..=9 {
        log.append_group(&[item(n)]).unwrap();
    }
    log.cut(&cut(1, 8)).unwrap();
    log.cut(&cut(9, 9)).unwrap();
    let parts: Vec<_> = (0..20)
        .map(|n| Part { batch: if n % 2 == 0 { cut(9, 9).id } else { cut(1, 8).id }, first: n, last: n, fate: Fate::Rejected })
        .collect();
    for part in &parts {
        log.part(part).unwrap();
    }
    log.delivered(cut(1, 8).id).unwrap();
    log.flush_writes().unwrap();
    let count = segments(dir.path()).len();
    assert!(log.delete_delivered().unwrap() > 0);
    assert!(segments(dir.path()).len() < count);
    drop(log);
    let (mut log, recovered) = small(dir.path());
    let of_the_waiting: Vec<_> = parts.into_iter().filter(|part| part.batch == cut(9, 9).id).collect();
    assert_eq!((recovered.cuts, recovered.parts), (vec![cut(9, 9)], of_the_waiting));
    log.delivered(cut(9, 9).id).unwrap();
    log.flush_writes().unwrap();
    log.delete_delivered().unwrap();
    assert_eq!(segments(dir.path()).len(), 1, "parts of a delivered batch keep nothing");
}

#[test]
fn a_sync_is_needed_only_when_something_was_appended_since_the_last() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.sync().unwrap();
    assert!(!log.needs_sync());
    log.append_group(&[item(1)]).unwrap();
    assert!(log.needs_sync());
    log.sync().unwrap();
    assert!(!log.needs_sync());
}

#[test]
fn empty_groups_are_refused() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    assert!(matches!(log.append_group(&[]), Err(LogError::EmptyGroup)));
    assert!(segments(dir.path()).is_empty());
}

#[test]
fn a_reader_says_where_a_file_went_bad_after_opening() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path());
    log.append_group(&[item(1)]).unwrap();
    log.append_group(&[item(2)]).unwrap();
    log.flush_writes().unwrap();
    let file = segments(dir.path())[0].clone();
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    let mut reader = log.read(SeqRange { first: 1, last: 2 }).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), (1, item(1)));
    let error = reader.next().unwrap().unwrap_err();
    assert!(matches!(error, LogError::Damaged { .. }), "{error}");
    assert!(reader.next().is_none());
    fs::remove_file(&file).unwrap();
    let error = log.read(SeqRange { first: 1, last: 2 }).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, LogError::Io { what: "open", .. }), "{error}");
}
