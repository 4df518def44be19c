//! The log against a simple model, under random orders of work with restarts in between.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Append { items: u8 },
    Cut { share: u8 },
    Deliver { which: prop::sample::Index },
    Part { which: prop::sample::Index, place: u8 },
    Settle { which: prop::sample::Index },
    Delete,
    Restart,
}

#[derive(Debug, Default)]
struct Model {
    /// Records the sink does not have.
    records: BTreeMap<u64, Entry<'static>>,
    cuts: Vec<Cut>,
    parts: Vec<Part>,
    cut_up_to: u64,
    ends: BTreeSet<u64>,
    unsettled: BTreeSet<u64>,
    newest: u64,
}

impl Model {
    fn uncut(&self) -> Option<SeqRange> {
        let mut uncut = self.records.range(self.cut_up_to + 1..).map(|(seq, _)| *seq);
        let first = uncut.next()?;
        Some(SeqRange { first, last: uncut.next_back().unwrap_or(first) })
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8).prop_map(|items| Step::Append { items }),
        3 => (0..=255u8).prop_map(|share| Step::Cut { share }),
        3 => any::<prop::sample::Index>().prop_map(|which| Step::Deliver { which }),
        2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(which, place)| Step::Part { which, place }),
        3 => any::<prop::sample::Index>().prop_map(|which| Step::Settle { which }),
        2 => Just(Step::Delete),
        1 => Just(Step::Restart),
    ]
}

fn step(log: &mut RecordLog, model: &mut Model, step: &Step) {
    match step {
        Step::Append { items } => {
            let mut group: Vec<_> = (0..*items).map(|n| item(n.into())).collect();
            group.push(end(1));
            let range = log.append_group(&group).unwrap();
            assert!(range.first > model.newest);
            model.newest = range.last;
            model.ends.insert(range.last);
            model.unsettled.insert(range.last);
            model.records.extend((range.first..range.last).zip(group));
        }
        Step::Cut { share } => {
            let Some(uncut) = model.uncut() else { return };
            let last = uncut.first + (uncut.last - uncut.first) * u64::from(*share) / 255;
            let cut = cut(uncut.first, last);
            log.cut(&cut).unwrap();
            model.cuts.push(cut);
            model.cut_up_to = last;
        }
        Step::Deliver { which } => {
            if model.cuts.is_empty() {
                return;
            }
            let cut = model.cuts.remove(which.index(model.cuts.len()));
            log.delivered(cut.id).unwrap();
            model.records.retain(|seq, _| !cut.range.contains(*seq));
            model.parts.retain(|part| part.batch != cut.id);
        }
        Step::Part { which, place } => {
            if model.cuts.is_empty() {
                return;
            }
            let (batch, place) = (model.cuts[which.index(model.cuts.len())].id, u32::from(*place));
            let fate = if place % 2 == 0 { Fate::Delivered } else { Fate::Rejected };
            let part = Part { batch, first: place, last: place + 1, fate };
            log.part(&part).unwrap();
            model.parts.push(part);
        }
        Step::Settle { which } => {
            let open: Vec<_> = model.unsettled.iter().copied().collect();
            if let Some(seq) = open.get(which.index(open.len().max(1))) {
                log.mark_settled(*seq);
                model.unsettled.remove(seq);
            }
        }
        Step::Delete => {
            log.delete_delivered().unwrap();
        }
        Step::Restart => {}
    }
    log.flush_writes().unwrap();
}

fn check(log: &mut RecordLog, model: &Model) {
    let text: u64 = model.records.values().filter_map(Entry::record).map(|(_, text)| text.len() as u64).sum();
    assert!((text..=log.bytes()).contains(&log.held_bytes()), "{text} {} {}", log.held_bytes(), log.bytes());
    assert_eq!(log.held_bytes() == 0, model.records.values().all(|entry| entry.record().is_none()));
    for cut in &model.cuts {
        let inside = model.records.iter().filter(|(seq, entry)| cut.range.contains(**seq) && entry.record().is_some());
        assert_eq!(log.records_of(cut), inside.count() as u64);
    }
    let ranges = model.cuts.iter().map(|cut| cut.range).chain(model.uncut());
    let mut read = BTreeMap::new();
    for range in ranges {
        for entry in log.read(range).unwrap() {
            let (seq, entry) = entry.unwrap();
            if entry.record().is_some() {
                read.insert(seq, entry);
            }
        }
    }
    assert_eq!(read, model.records);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_undelivered_and_no_open_end_is_ever_lost(
        steps in prop::collection::vec(any_step(), 1..80),
        segment_bytes in prop::sample::select(vec![250u64, 700, 1 << 20]),
    ) {
        let dir = TempDir::new().unwrap();
        let options = LogOptions { segment_bytes, ..options() };
        let reopen = || RecordLog::open(dir.path(), &job(), options).unwrap();
        let mut log = reopen().0;
        let mut model = Model::default();
        for next in &steps {
            step(&mut log, &mut model, next);
            check(&mut log, &model);
            if matches!(next, Step::Restart) {
                drop(log);
                let (again, recovered) = reopen();
                log = again;
                let mut cuts = model.cuts.clone();
                cuts.sort_by_key(|cut| cut.range.first);
                prop_assert_eq!(&recovered.cuts, &cuts);
                let parts: Vec<_> = cuts.iter().flat_map(|cut| model.parts.iter().filter(|part| part.batch == cut.id)).collect();
                prop_assert_eq!(recovered.parts.iter().collect::<Vec<_>>(), parts);
                prop_assert_eq!(recovered.uncut, model.uncut());
                let ends: BTreeSet<_> = recovered.ends.iter().map(|(seq, _)| *seq).collect();
                prop_assert!(ends.is_superset(&model.unsettled) && ends.is_subset(&model.ends));
                prop_assert!(recovered.damaged.is_empty() && recovered.torn.is_none() && recovered.missing.is_empty());
                // Reported ends are open again until they are settled once more.
                model.unsettled = ends;
                check(&mut log, &model);
            }
        }
    }
}
