//! What DOWNLOAD_SLOTS, the throttle, the last minute and pauses do to a slot.

use std::collections::HashMap;

use super::super::super::pacing::{HostPacing, Throttle};
use super::*;

fn answer(status: u16, latency: Duration, sent: Instant) -> Answer {
    Answer { status, latency, sent }
}

fn throttling() -> Pacing {
    let throttle = Throttle { start: 200 * MS, max: 2_000 * MS, target: 1.0, debug: false };
    Pacing { per_slot: 8, throttles: true, throttle, ..Pacing::default() }
}

#[test]
fn a_throttled_slot_waits_for_the_delay_its_answers_led_to() {
    let now = Instant::now();
    let mut slots = Slots::new(throttling(), 1);
    queue(&mut slots, "a", now);
    assert_eq!(take_all(&mut slots, now, 9), ["a"]);
    slots.sent("a", now, now);
    assert_eq!(slots.next_job(), Some(now + 200 * MS), "the start delay");
    assert_eq!(slots.heard("a", answer(200, 100 * MS, now), now + 100 * MS), Some((200 * MS, 150 * MS)));
    slots.freed("a", false, now + 100 * MS);
    assert_eq!(slots.next_job(), Some(now + 150 * MS), "at once, also for a delay that runs");
    slots.heard("a", answer(429, 5 * MS, now), now + 110 * MS);
    assert_eq!(slots.next_job(), Some(now + 300 * MS));
    // Those under way with it, and those that were sent before, say nothing new.
    slots.heard("a", answer(429, 5 * MS, now), now + 120 * MS);
    assert_eq!(slots.next_job(), Some(now + 300 * MS));
    slots.heard("a", answer(503, 5 * MS, now + 110 * MS), now + 130 * MS);
    assert_eq!(slots.next_job(), Some(now + 600 * MS));
    assert_eq!(slots.heard("b", answer(200, MS, now), now).map(|(before, _)| before), Some(200 * MS));
}

#[test]
fn a_refusals_floor_is_not_made_shorter_by_jitter() {
    let now = Instant::now();
    let mut slots = Slots::new(Pacing { jitter: 0.9, ..throttling() }, 3);
    queue(&mut slots, "a", now);
    slots.heard("a", answer(429, MS, now), now);
    let mut at = now;
    for _ in 0..50 {
        assert_eq!(take_all(&mut slots, at, 9), ["a"]);
        slots.sent("a", at, at);
        slots.freed("a", false, at);
        let next = slots.next_job().unwrap();
        assert!(next - at >= 400 * MS && next - at <= 760 * MS, "{:?}", next - at);
        at = next;
    }
}

#[test]
fn what_the_throttle_knows_of_a_host_outlasts_its_slot() {
    let now = Instant::now();
    let mut slots = Slots::new(throttling(), 1);
    slots.heard("a", answer(429, MS, now), now);
    assert_eq!(slots.len(), 0, "nothing else speaks for it");
    let id = queue(&mut slots, "a", now + 1_000 * MS);
    assert_eq!(slots.delay(id), 400 * MS);
    // Switched off it counts no more, and when it is on again it does.
    slots.set_pacing(Pacing { throttles: false, ..throttling() }, now);
    assert_eq!((slots.delay(id), slots.heard("a", answer(429, MS, now), now)), (Duration::ZERO, None));
    slots.set_pacing(throttling(), now);
    assert_eq!(slots.delay(id), 400 * MS);
    let lower = Throttle { max: 300 * MS, ..throttling().throttle };
    slots.set_pacing(Pacing { throttle: lower, ..throttling() }, now);
    assert_eq!(slots.delay(id), 300 * MS);
}

#[test]
fn a_named_host_has_its_own_places_delay_and_throttle() {
    let now = Instant::now();
    let slow = HostPacing { per_slot: Some(1), delay: Some(500 * MS), jitter: Some(0.0), throttles: Some(false) };
    let wide = HostPacing { per_slot: Some(3), throttles: Some(false), ..HostPacing::default() };
    let hosts = Arc::new(HashMap::from([("slow".into(), slow), ("wide".into(), wide)]));
    let mut slots = Slots::new(Pacing { per_slot: 2, hosts, ..throttling() }, 1);
    for host in ["slow", "wide", "other"] {
        queue(&mut slots, host, now);
    }
    let mut taken = take_all(&mut slots, now, 9);
    taken.sort();
    assert_eq!(taken, ["other", "slow", "wide", "wide", "wide"]);
    slots.sent("slow", now, now);
    slots.freed("slow", false, now);
    assert_eq!(slots.next_job(), Some(now + 500 * MS));
    assert_eq!(slots.heard("slow", answer(429, MS, now), now), None);
    // While it runs, the rules may come and go.
    slots.set_pacing(pacing(2, Duration::ZERO, 0.0), now);
    assert_eq!(take_all(&mut slots, now, 9).len(), 3, "two of slow, and one more of other");
}

#[test]
fn a_slot_has_no_more_than_its_requests_in_any_minute() {
    let start = Instant::now();
    let mut slots = Slots::new(Pacing { per_minute: 3, ..Pacing::default() }, 1);
    queue(&mut slots, "a", start);
    let mut sends = Vec::new();
    let mut now = start;
    while now < start + Duration::from_secs(300) {
        if let Some(pick) = slots.pick(now, true) {
            assert!(slots.take(pick, 0, now), "its sending counts");
            assert_eq!(slots.pick(now, true), None, "the next one waits for it");
            now += 7_000 * MS;
            slots.sent("a", now, now);
            sends.push(now);
            slots.freed("a", false, now);
        } else {
            now = slots.next_job().unwrap();
        }
    }
    assert!(sends.len() >= 12, "{}", sends.len());
    for four in sends.windows(4) {
        assert!(four[3] - four[0] >= Duration::from_secs(60), "{:?}", four[3] - four[0]);
    }
    // Without work it is remembered as long as it counts.
    let id = slots.id("a");
    slots.queue_is(id, None, now);
    assert_eq!(slots.len(), 1);
    assert_eq!(slots.pick(now + Duration::from_secs(60), true), None);
    assert_eq!(slots.len(), 0);
}

#[test]
fn a_robots_request_counts_for_the_minute_and_waits_for_nothing() {
    let now = Instant::now();
    let mut slots = Slots::new(Pacing { per_minute: 1, ..Pacing::default() }, 1);
    let id = queue(&mut slots, "a", now);
    slots.robots_is(id, Some(now), now);
    let pick = slots.pick(now, true).unwrap();
    assert!(matches!(pick, Pick::Robots(_)) && !slots.take(pick, 0, now));
    slots.robots_is(id, None, now);
    assert_eq!((slots.pick(now, true), slots.next_job()), (None, Some(now + Duration::from_secs(60))));
}

#[test]
fn nobody_lifts_a_pause() {
    let now = Instant::now();
    let mut slots = slots(8, Duration::ZERO);
    let id = queue(&mut slots, "a", now);
    slots.hop(id, now);
    slots.robots_is(id, Some(now), now);
    slots.pause("a", now + 50 * MS, now);
    slots.gate("a", now + 90 * MS, now);
    assert_eq!((slots.pick(now, true), slots.next()), (None, Some(now + 90 * MS)));
    slots.lift("a", now);
    assert_eq!((slots.pick(now + 49 * MS, true), slots.next()), (None, Some(now + 50 * MS)));
    assert!(matches!(slots.pick(now + 50 * MS, true), Some(Pick::Hop(_))));
}
