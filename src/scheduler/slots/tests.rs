#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
mod pacing;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn pacing(per_slot: usize, delay: Duration, jitter: f64) -> Pacing {
    Pacing { per_slot, delay, jitter, ..Pacing::default() }
}

fn slots(per_slot: usize, delay: Duration) -> Slots {
    Slots::new(pacing(per_slot, delay, 0.0), 1)
}

/// Picks and takes everything that may go from endless queues, and names the hosts.
fn take_all(slots: &mut Slots, now: Instant, most: usize) -> Vec<String> {
    let mut taken = Vec::new();
    while taken.len() < most
        && let Some(pick) = slots.pick(now, true)
    {
        let (Pick::Hop(id) | Pick::Robots(id) | Pick::Queued(id)) = pick;
        taken.push(slots.key(id).0.to_string());
        slots.take(pick, 0, now);
    }
    taken
}

fn queue(slots: &mut Slots, host: &str, now: Instant) -> SlotId {
    let id = slots.id(host);
    slots.queued(id, now, 0, now);
    id
}

#[test]
fn a_slot_never_has_more_places_taken_than_its_limit() {
    let now = Instant::now();
    let mut slots = slots(3, Duration::ZERO);
    queue(&mut slots, "a.test", now);
    assert_eq!(take_all(&mut slots, now, 100).len(), 3);
    slots.freed("a.test", false, now);
    assert_eq!(take_all(&mut slots, now, 100).len(), 1);
}

#[test]
fn a_slot_without_delay_has_more_out_than_its_places_when_leases_are_asked_for_ahead() {
    let now = Instant::now();
    let mut slots = slots(3, Duration::ZERO);
    queue(&mut slots, "a.test", now);
    assert_eq!(take_all(&mut slots, now, 100).len(), 3);
    slots.set_ahead(2, now);
    assert_eq!(take_all(&mut slots, now, 100).len(), 2, "at once, though nothing came back");
    slots.set_ahead(0, now);
    for left in (0..5).rev() {
        slots.freed("a.test", false, now);
        assert_eq!(take_all(&mut slots, now, 100).len(), usize::from(left < 3), "{left} left");
        if left < 3 {
            break;
        }
    }
}

#[test]
fn a_slot_with_a_delay_or_a_gate_never_has_more_out_than_its_places() {
    let now = Instant::now();
    let mut paced = slots(1, 500 * MS);
    paced.set_ahead(5, now);
    queue(&mut paced, "a", now);
    assert_eq!(take_all(&mut paced, now, 9), ["a"]);
    paced.sent("a", now, now);
    assert!(take_all(&mut paced, now + 10_000 * MS, 9).is_empty(), "its one place is taken");

    let mut gated = slots(1, Duration::ZERO);
    gated.set_ahead(5, now);
    queue(&mut gated, "a", now);
    gated.gate("a", now + 1_000 * MS, now);
    assert!(take_all(&mut gated, now + 999 * MS, 9).is_empty());
    assert_eq!(take_all(&mut gated, now + 1_000 * MS, 9).len(), 6);
}

#[test]
fn the_slot_with_the_fewest_places_taken_goes_first_then_the_one_served_longest_ago() {
    let now = Instant::now();
    let mut slots = slots(2, Duration::ZERO);
    for host in ["a", "b", "c"] {
        queue(&mut slots, host, now);
    }
    assert_eq!(take_all(&mut slots, now, 100), ["a", "b", "c", "a", "b", "c"]);
    slots.freed("c", false, now);
    slots.freed("a", false, now);
    assert_eq!(take_all(&mut slots, now, 100), ["a", "c"]);
}

#[test]
fn among_slots_with_as_many_places_taken_the_priority_decides() {
    let now = Instant::now();
    let mut slots = slots(1, Duration::ZERO);
    for (host, priority) in [("low", -1), ("mid", 0), ("high", 5)] {
        let id = slots.id(host);
        slots.queued(id, now, priority, now);
    }
    assert_eq!(take_all(&mut slots, now, 100), ["high", "mid", "low"]);
}

#[test]
fn a_paced_slot_waits_for_the_sending_and_then_for_its_delay() {
    let now = Instant::now();
    let mut slots = slots(8, 500 * MS);
    queue(&mut slots, "a", now);
    assert_eq!(take_all(&mut slots, now, 9), ["a"]);
    assert!(take_all(&mut slots, now + 5_000 * MS, 9).is_empty(), "the first is not sent yet");
    slots.sent("a", now + 5_000 * MS, now + 5_001 * MS);
    assert_eq!(slots.next_job(), Some(now + 5_500 * MS));
    assert!(take_all(&mut slots, now + 5_499 * MS, 9).is_empty());
    assert_eq!(take_all(&mut slots, now + 5_500 * MS, 9), ["a"]);
}

#[test]
fn a_request_that_was_never_sent_gives_way_without_a_delay() {
    let now = Instant::now();
    let mut slots = slots(8, 500 * MS);
    queue(&mut slots, "a", now);
    assert_eq!(take_all(&mut slots, now, 9), ["a"]);
    slots.freed("a", false, now);
    assert_eq!(take_all(&mut slots, now, 9), ["a"]);
}

#[test]
fn a_request_that_was_never_sent_does_not_shut_the_slot_until_a_slow_one_ends() {
    let now = Instant::now();
    let mut slots = slots(8, 100 * MS);
    queue(&mut slots, "a", now);
    assert_eq!(take_all(&mut slots, now, 9), ["a"]);
    slots.sent("a", now, now);
    let later = now + 100 * MS;
    assert_eq!(take_all(&mut slots, later, 9), ["a"]);
    assert!(take_all(&mut slots, later + 5_000 * MS, 9).is_empty());
    slots.freed("a", true, later);
    assert_eq!(take_all(&mut slots, later, 9), ["a"], "the first one is still under way");
}

#[test]
fn an_answer_does_not_let_a_second_request_go_beside_one_that_is_not_sent_yet() {
    let now = Instant::now();
    let mut slots = slots(8, 500 * MS);
    queue(&mut slots, "a", now);
    take_all(&mut slots, now, 9);
    slots.sent("a", now, now);
    let later = now + 600 * MS;
    assert_eq!(take_all(&mut slots, later, 9), ["a"]);
    slots.freed("a", false, later);
    assert!(take_all(&mut slots, later, 9).is_empty());
    slots.freed("a", false, later);
    assert_eq!(take_all(&mut slots, later, 9), ["a"], "nothing is out any more");
}

#[test]
fn the_delay_is_remembered_while_the_slot_is_idle_and_no_longer() {
    let now = Instant::now();
    let mut slots = slots(1, 500 * MS);
    let id = queue(&mut slots, "a", now);
    take_all(&mut slots, now, 9);
    slots.sent("a", now, now);
    slots.queue_is(id, None, now);
    slots.freed("a", false, now + 10 * MS);
    assert_eq!((slots.len(), slots.next()), (1, None));
    queue(&mut slots, "a", now + 20 * MS);
    assert_eq!(slots.next_job(), Some(now + 500 * MS));
    let id = slots.id("a");
    slots.queue_is(id, None, now + 30 * MS);
    assert_eq!(slots.pick(now + 500 * MS, true), None);
    assert_eq!(slots.len(), 0);
}

#[test]
fn a_gate_holds_everything_of_its_slot_and_the_later_one_counts() {
    let now = Instant::now();
    let mut slots = slots(8, Duration::ZERO);
    let id = queue(&mut slots, "a", now);
    queue(&mut slots, "b", now);
    slots.gate("a", now + 50 * MS, now);
    slots.gate("a", now + 20 * MS, now);
    slots.hop(id, now);
    slots.robots_is(id, Some(now), now);
    assert_eq!(take_all(&mut slots, now, 2), ["b", "b"]);
    assert_eq!(slots.next(), Some(now + 50 * MS));
    assert!(matches!(slots.pick(now + 50 * MS, true), Some(Pick::Hop(_))));
}

#[test]
fn hops_pass_jobs_and_need_no_credit() {
    let now = Instant::now();
    let mut slots = slots(8, 100 * MS);
    let id = queue(&mut slots, "a", now);
    slots.hop(id, now);
    assert_eq!(slots.pick(now, false), Some(Pick::Hop(id)));
    assert!(slots.take(Pick::Hop(id), 0, now));
    slots.sent("a", now, now);
    slots.hop(id, now);
    let later = now + 100 * MS;
    assert_eq!(slots.pick(later, true), Some(Pick::Hop(id)));
    slots.take(Pick::Hop(id), 0, later);
    slots.sent("a", later, later);
    assert_eq!(slots.pick(later + 100 * MS, true), Some(Pick::Queued(id)));
}

#[test]
fn a_hop_that_waits_for_its_delay_is_not_forgotten_when_robots_goes_without_one() {
    let now = Instant::now();
    let mut slots = slots(8, 100 * MS);
    let id = queue(&mut slots, "a", now);
    take_all(&mut slots, now, 1);
    slots.sent("a", now, now);
    slots.hop(id, now);
    slots.robots_is(id, Some(now), now);
    assert_eq!(slots.pick(now, false), None);
    assert_eq!(slots.next(), Some(now + 100 * MS));
    assert_eq!(slots.pick(now, true), Some(Pick::Robots(id)));
    assert_eq!(slots.pick(now + 100 * MS, false), Some(Pick::Hop(id)));
}

#[test]
fn a_parked_slot_lets_only_robots_go() {
    let now = Instant::now();
    let mut slots = slots(1, Duration::ZERO);
    let id = queue(&mut slots, "a", now);
    slots.park(id, true, now);
    assert_eq!(slots.pick(now, true), None);
    slots.robots_is(id, Some(now), now);
    assert_eq!(slots.pick(now, true), Some(Pick::Robots(id)));
    assert!(!slots.take(Pick::Robots(id), 0, now), "robots.txt has no delay");
    slots.robots_is(id, None, now);
    slots.park(id, false, now);
    assert_eq!(slots.pick(now, true), None, "its place is taken");
    slots.freed("a", false, now);
    assert_eq!(slots.pick(now, true), Some(Pick::Queued(id)));
}

#[test]
fn new_pacing_counts_at_once_also_for_a_delay_that_runs() {
    let now = Instant::now();
    let mut slots = slots(1, 1_000 * MS);
    queue(&mut slots, "a", now);
    take_all(&mut slots, now, 9);
    slots.sent("a", now, now);
    slots.freed("a", false, now);
    assert_eq!(slots.next_job(), Some(now + 1_000 * MS));
    slots.set_pacing(pacing(2, 200 * MS, 0.0), now);
    assert_eq!(slots.next_job(), Some(now + 200 * MS));
    slots.set_pacing(pacing(2, Duration::ZERO, 0.0), now);
    assert_eq!(take_all(&mut slots, now, 9).len(), 2);
}

#[test]
fn a_crawl_delay_is_a_least_delay_that_jitter_does_not_shorten() {
    let now = Instant::now();
    let mut slots = Slots::new(pacing(8, 100 * MS, 0.5), 3);
    let id = queue(&mut slots, "a", now);
    assert!(slots.set_crawl_delay(id, 2_000 * MS, now));
    let mut at = now;
    for _ in 0..50 {
        assert_eq!(take_all(&mut slots, at, 9), ["a"]);
        slots.sent("a", at, at);
        slots.freed("a", false, at);
        let next = slots.next_job().unwrap();
        assert!(next - at >= 2_000 * MS && next - at <= 3_000 * MS, "{:?}", next - at);
        at = next;
    }
}

#[test]
fn a_hundred_thousand_slots_are_served_without_scanning_them() {
    let now = Instant::now();
    let mut slots = slots(1, 1_000 * MS);
    for n in 0..100_000 {
        queue(&mut slots, &format!("{n}.test"), now);
    }
    let began = std::time::Instant::now();
    let mut taken = 0;
    while let Some(pick) = slots.pick(now, true) {
        slots.take(pick, 0, now);
        taken += 1;
    }
    assert_eq!(taken, 100_000);
    for n in 0..100_000 {
        let host = format!("{n}.test");
        slots.sent(&host, now, now);
        slots.freed(&host, false, now);
    }
    assert_eq!(slots.pick(now, true), None);
    // A scan of all slots per pick would take minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for id in slots.slab.ids() {
        slots.queue_is(id, None, now);
    }
    assert_eq!(slots.pick(now + 1_000 * MS, true), None);
    assert_eq!((slots.len(), slots.expiring.len()), (0, 0));
}

#[derive(Debug, Clone)]
enum Event {
    Queue(usize),
    Hop(usize),
    Send(usize),
    Free(usize, bool),
    Gate(usize, u64),
    Heard(usize, u16, u64),
    Wait(u64),
    Pick,
}

fn event() -> impl Strategy<Value = Event> {
    let host = 0_usize..4;
    prop_oneof![
        2 => host.clone().prop_map(Event::Queue),
        1 => host.clone().prop_map(Event::Hop),
        4 => host.clone().prop_map(Event::Send),
        4 => (host.clone(), any::<bool>()).prop_map(|(h, sent)| Event::Free(h, sent)),
        1 => (host.clone(), 0_u64..300).prop_map(|(h, t)| Event::Gate(h, t)),
        2 => (host, prop_oneof![Just(200_u16), Just(429), Just(404)], 0_u64..90).prop_map(|(h, s, t)| Event::Heard(h, s, t)),
        3 => (1_u64..120).prop_map(Event::Wait),
        1 => (1_000_u64..40_000).prop_map(Event::Wait),
        6 => Just(Event::Pick),
    ]
}

/// What the test itself knows of a host.
#[derive(Default, Clone)]
struct Known {
    unsent: usize,
    sent: usize,
    sends: Vec<Instant>,
    gate: Option<Instant>,
}

proptest! {
    #[test]
    fn no_order_of_events_breaks_a_limit_a_delay_or_a_gate(
        events in proptest::collection::vec(event(), 1..300),
        per_slot in 1_usize..4,
        delay_ms in prop_oneof![Just(0_u64), 20_u64..200],
        jitter in 0.0_f64..1.0,
        per_minute in prop_oneof![2 => Just(0_u32), 1 => 1_u32..6],
        throttles: bool,
        seed: u64,
    ) {
        let delay = Duration::from_millis(delay_ms);
        let mut slots = Slots::new(Pacing { per_minute, throttles, ..pacing(per_slot, delay, jitter) }, seed);
        let mut hosts = vec![Known::default(); 4];
        let mut now = Instant::now();
        for event in events {
            match event {
                Event::Queue(h) => { queue(&mut slots, &h.to_string(), now); }
                Event::Hop(h) => { let id = slots.id(&h.to_string()); slots.hop(id, now); }
                Event::Send(h) => if hosts[h].unsent > 0 {
                    hosts[h].unsent -= 1;
                    hosts[h].sent += 1;
                    let least = delay.mul_f64(1.0 - jitter).saturating_sub(Duration::from_micros(1));
                    if let Some(last) = hosts[h].sends.last() {
                        prop_assert!(now - *last >= least, "{:?} after the last, at least {least:?}", now - *last);
                    }
                    hosts[h].sends.push(now);
                    let in_minute = hosts[h].sends.iter().filter(|sent| now - **sent < Duration::from_secs(60)).count();
                    prop_assert!(per_minute == 0 || in_minute <= per_minute as usize, "{in_minute} in a minute");
                    slots.sent(&h.to_string(), now, now);
                },
                Event::Free(h, sent) => if hosts[h].sent > 0 || hosts[h].unsent > 0 {
                    let unsent = hosts[h].sent == 0 || (!sent && hosts[h].unsent > 0);
                    if unsent { hosts[h].unsent -= 1; } else { hosts[h].sent -= 1; }
                    slots.freed(&h.to_string(), unsent, now);
                },
                Event::Gate(h, ms) => {
                    let until = now + Duration::from_millis(ms);
                    hosts[h].gate = hosts[h].gate.max(Some(until));
                    slots.gate(&h.to_string(), until, now);
                }
                Event::Heard(h, status, ms) => {
                    let answer = Answer { status, latency: Duration::from_millis(ms), sent: now };
                    prop_assert_eq!(slots.heard(&h.to_string(), answer, now).is_some(), throttles);
                }
                Event::Wait(ms) => now += Duration::from_millis(ms),
                Event::Pick => if let Some(pick) = slots.pick(now, true) {
                    let (Pick::Hop(id) | Pick::Robots(id) | Pick::Queued(id)) = pick;
                    let host: usize = slots.key(id).0.parse().unwrap();
                    let known = &mut hosts[host];
                    prop_assert!(known.gate.is_none_or(|gate| gate <= now));
                    if slots.take(pick, 0, now) {
                        prop_assert_eq!(known.unsent, 0, "a second one beside one that is not sent");
                        known.unsent += 1;
                    } else {
                        known.sent += 1;
                    }
                    prop_assert!(known.sent + known.unsent <= per_slot);
                },
            }
        }
        // Everything comes back: whatever waits must be able to go.
        for (h, known) in hosts.iter().enumerate() {
            for _ in 0..known.sent + known.unsent {
                slots.freed(&h.to_string(), false, now);
            }
        }
        for _ in 0..10_000 {
            let Some(at) = slots.next().filter(|_| slots.pick(now, true).is_none()) else { break };
            now = at;
        }
        let waiting = slots.slab.0.iter().flatten().any(|s| s.rare().hops > 0 || s.queued_at.is_some());
        prop_assert_eq!(slots.pick(now, true).is_some(), waiting);
    }
}
