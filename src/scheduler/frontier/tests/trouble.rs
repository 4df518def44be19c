//! What a crash left, and queues that cannot be read.

use super::*;

#[test]
fn what_a_crash_left_is_pulled_again_robots_included() {
    let mut store = MemoryStore::new(usize::MAX);
    let now = Duration::from_secs(5);
    store.offer(&mut vec![with_priority(job(0, "http://a.test/1"), 2_000), job(1, "http://b.test/2")]).unwrap();
    let robots = Job { kind: JobKind::Robots, ..unfiltered(with_priority(job(9, "http://b.test/robots.txt"), 1000)) };
    store.admit(&robots).unwrap();
    for host in ["a.test", "b.test"] {
        store.pull(&SlotKey(host.into()), now).unwrap();
    }
    assert_eq!(store.recover().unwrap(), 3);
    let limits = SchedulerConfig { robots_agent: Some("dragline".into()), ..config() };
    let mut played = Played::over(limits, store);
    let mut urls = played.pulled(9);
    urls.sort();
    assert_eq!(urls, ["http://a.test/robots.txt", "http://b.test/robots.txt"], "no second one for b.test");
    played.rules("http://b.test", "");
    assert_eq!(played.next_paths(), ["/2"]);
}

#[test]
fn a_slot_whose_queue_cannot_be_read_pauses_and_the_others_go_on() {
    let (store, faults) = Fragile::new(Fault::Error);
    let mut played = Played::over(config(), store);
    played.pages(&["http://a.test/1", "http://b.test/2"]);
    faults.store(1, Ordering::SeqCst);
    assert_eq!(played.pulled(5), ["http://b.test/2"]);
    played.now += STORE_PAUSE;
    assert_eq!(played.next_paths(), ["/1"]);
}
