use std::time::Instant as Clock;

use tokio::time::Instant;

use super::*;
use crate::actor::Slot;
use crate::courier::message::{How, Order as Parcel, Report, Settled};

const PAGES: u64 = 200_000;
const PER_TURN: u64 = 16;

/// Wire texts of the usual size: an item of 300 bytes and a request record of 260.
fn usual(ticket: u64) -> Arc<Group> {
    let mut group = Arc::into_inner(page(ticket)).unwrap();
    group.items = vec![format!(r#"{{"n": {ticket}, "title": "{}", "price": "12.30"}}"#, "x".repeat(260))];
    group.records = vec![format!(r#"{{"url": "http://h/{ticket}", "error": null, "fingerprint": "{}"}}"#, "f".repeat(200))];
    Arc::new(group)
}

/// What this thread has run so far.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "measures, on Linux: run alone with optimisation"]
fn a_page_costs_less_than_four_microseconds() {
    let dir = TempDir::new().unwrap();
    let outlets = Outlets { feeds: Vec::new(), ring: Arc::new(LogRing::new(100)), stats: Stats::new(), indexes: None };
    let mut config = config();
    config.limits.size = 50;
    config.segment_bytes = 8 << 20;
    config.spool_max_bytes = 256 << 20;
    let seeds = Seeds { instance: 1, log_id: 2, jitter: 3 };
    let sink = Box::new(MemorySink::new());
    let opened = open_at(config, &dir.path().join("spool"), Tidy::Keep, &JobId::from(7), outlets, sink, seeds).unwrap();
    let courier = Tap::<Parcel>::new("courier", COURIER_BOUND);
    let link = courier.link();
    let groups: Vec<_> = (0..PAGES).map(usual).collect();
    let mut state = opened.collector.lock().unwrap();
    let (mut now, begun, used) = (Instant::now(), Clock::now(), processor_time());
    let (mut delivered, mut settled) = (0, Vec::new());
    for turn in groups.chunks(PER_TURN as usize) {
        for group in turn {
            state.gather(Arc::clone(group), Slot::empty());
            settled.push(RequestId(u128::from(group.tag.ticket)));
        }
        now += Duration::from_micros(60) * PER_TURN as u32;
        state.turn(now, 0, &link);
        state.facts.clear();
        state.settle(&settled);
        settled.clear();
        while let Some((Parcel::Cut { batch, .. }, slot)) = courier.take() {
            drop(slot);
            delivered += batch.counts.items;
            state.hear(Report::Settled(Settled { id: batch.id, counts: batch.counts, how: How::Delivered }));
        }
    }
    // The disk's share of the time says more about the disk.
    let page = (processor_time() - used) / PAGES as u32;
    assert!(delivered > PAGES * 9 / 10, "{delivered}");
    println!("{page:?} a page of processor time, {:?} with the waits for the disk", begun.elapsed() / PAGES as u32);
    assert!(page < Duration::from_micros(4), "{page:?}");
}
