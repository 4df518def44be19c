//! What a cycle costs. Run by hand, in release.

use std::time::Instant;

use super::support::*;
use crate::spinneret::{AcquireRequest, Report};

#[test]
#[ignore = "a measurement; run it in release"]
fn a_cycle_costs_less_than_two_microseconds() {
    const CYCLES: u32 = 300_000;
    let mut world = Setup::new().active(100_000).open();
    let request = AcquireRequest::new("shop", "web").endpoint_group("search");
    let mut best = f64::MAX;
    for _ in 0..5 {
        let mut leases = std::collections::VecDeque::new();
        let begun = Instant::now();
        for _ in 0..CYCLES {
            leases.push_back(world.request(&request).unwrap().lease.lease_id);
            if leases.len() > 64 {
                let lease = leases.pop_front().unwrap();
                let report = Report { release: true, ..world.make(&lease, 200) };
                world.send(vec![report]);
            }
            world.now += u64::from(leases.len() % 8 == 0);
        }
        best = best.min(begun.elapsed().as_secs_f64() / f64::from(CYCLES) * 1e6);
        for lease in leases {
            world.release(&lease).unwrap();
        }
    }
    println!("acquire and releasing report: {best:.2} µs");
    assert!(best < 2.0, "{best:.2} µs");
}
