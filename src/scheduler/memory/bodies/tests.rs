#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use proptest::prelude::*;

use super::*;

fn record(age: u64, len: usize) -> Vec<u8> {
    age.to_le_bytes().iter().cycle().take(len).copied().collect()
}

fn read(bodies: &Bodies, age: u64) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    bodies.read(age, &mut record).unwrap().then_some(record)
}

/// What the records hold, counted anew.
fn counted(bodies: &Bodies) -> usize {
    let pages: usize = bodies.pages.values().map(|page| PAGE + page.heap()).sum();
    let strays: usize = bodies.strays.values().map(|record| stray_bytes(record.len())).sum();
    pages + strays + bodies.spilled_strays.len() * entry(size_of::<Place>()) + bodies.open.heap()
}

#[test]
fn a_record_costs_few_bytes_beside_itself() {
    let mut bodies = Bodies::new(None);
    for age in 1..=100_000 {
        bodies.keep(age, &record(age, 120));
    }
    let each = bodies.bytes() as f64 / 100_000.0;
    assert!(each < 127.0, "{each} bytes for 120");
    // Every third goes: what is left is packed.
    (1..=100_000).filter(|age| age % 3 == 0).for_each(|age| bodies.drop_record(age));
    let each = bodies.bytes() as f64 / 66_667.0;
    assert!(each < 165.0, "{each} bytes for 120");
    // One of a thousand stays.
    (1..=100_000).filter(|age| age % 1_000 != 0).for_each(|age| bodies.drop_record(age));
    let each = bodies.bytes() / 100;
    assert!(each < 400, "{each} bytes for 120");
    assert_eq!(read(&bodies, 7_000), Some(record(7_000, 120)));
    (1..=100).for_each(|n| bodies.drop_record(n * 1_000));
    assert!(bodies.is_empty() && bodies.bytes() < 512, "{}", bodies.bytes());
}

#[test]
fn a_spilled_record_leaves_few_bytes_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut bodies = Bodies::new(Some(Spill::below(dir.path())));
    for age in 1..=100_000 {
        bodies.keep(age, &record(age, 120));
    }
    while bodies.spill_one().unwrap() {}
    let held = bodies.bytes();
    assert!(held < 600_000, "{held} bytes for 100,000");
    assert_eq!(bodies.spill().unwrap().bytes(), 12_000_000);
    assert_eq!(read(&bodies, 77_777), Some(record(77_777, 120)));
    (1..=100_000).for_each(|age| bodies.drop_record(age));
    assert!(bodies.is_empty() && bodies.bytes() == 0);
    assert_eq!(bodies.spill().unwrap().bytes(), 0, "what is not wanted leaves the disk");
}

#[test]
fn what_cannot_be_spilled_stays_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut bodies = Bodies::new(Some(Spill::below(&file.join("x"))));
    bodies.keep(1, &record(1, LARGE + 1));
    (2..20).for_each(|age| bodies.keep(age, &record(age, 9)));
    assert!(bodies.spill_one().is_err() && bodies.spill_one().is_err());
    assert_eq!(read(&bodies, 1), Some(record(1, LARGE + 1)));
    assert!((2..20).all(|age| read(&bodies, age) == Some(record(age, 9))));
    assert_eq!(bodies.bytes(), counted(&bodies));
}

#[derive(Debug, Clone)]
enum Op {
    Keep { gap: u64, len: usize },
    Drop { which: usize },
    DropOldest { times: usize },
    Spill,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (prop_oneof![9 => Just(1_u64), 1 => 1_u64..700], prop_oneof![20 => 0_usize..40, 1 => LARGE..LARGE + 9])
            .prop_map(|(gap, len)| Op::Keep { gap, len }),
        3 => any::<usize>().prop_map(|which| Op::Drop { which }),
        1 => (0_usize..30).prop_map(|times| Op::DropOldest { times }),
        1 => Just(Op::Spill),
    ]
}

proptest! {
    #[test]
    fn they_are_a_map_wherever_they_are(ops in proptest::collection::vec(op(), 0..400), spills in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let mut bodies = Bodies::new(spills.then(|| Spill::below(dir.path())));
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut age = 0;
        for op in ops {
            match op {
                Op::Keep { gap, len } => {
                    age += gap;
                    let record = record(age, len);
                    bodies.keep(age, &record);
                    model.insert(age, record);
                }
                Op::Drop { which } => {
                    if let Some(age) = model.keys().nth(which % model.len().max(1)).copied() {
                        bodies.drop_record(age);
                        model.remove(&age);
                    }
                }
                Op::DropOldest { times } => for _ in 0..times {
                    if let Some((age, _)) = model.pop_first() {
                        bodies.drop_record(age);
                    }
                },
                Op::Spill => drop(bodies.spill_one().unwrap()),
            }
            prop_assert_eq!(bodies.bytes(), counted(&bodies));
        }
        for age in 0..=age + 1 {
            prop_assert_eq!(read(&bodies, age), model.get(&age).cloned());
        }
        let used: usize = model.values().map(Vec::len).sum();
        model.keys().for_each(|age| bodies.drop_record(*age));
        prop_assert!(bodies.is_empty(), "{used} bytes were left");
        prop_assert_eq!(bodies.spill().map_or(0, Spill::bytes), 0);
    }
}
