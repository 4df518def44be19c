//! Laws that hold whatever is called in whatever order, with named and anonymous leases together.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Acquire {
        anonymous: bool,
    },
    Batch(usize),
    /// Of the n-th lease ever granted, whatever became of it.
    Report {
        lease: usize,
        status: u16,
        release: bool,
        repeat: bool,
    },
    Release(usize),
    Renew(usize),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lease = 0..60_usize;
    let step = prop_oneof![
        8 => any::<bool>().prop_map(|anonymous| Step::Acquire { anonymous }),
        1 => (1..5_usize).prop_map(Step::Batch),
        6 => (lease.clone(), prop::sample::select(vec![200, 404, 429, 500]), any::<bool>(), any::<bool>())
            .prop_map(|(lease, status, release, repeat)| Step::Report { lease, status, release, repeat }),
        3 => lease.clone().prop_map(Step::Release),
        1 => lease.prop_map(Step::Renew),
        3 => (0..200_u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..80)
}

async fn run(steps: Vec<Step>) {
    let plane = shop(&["a", "b", "c"], "[sites.rotation]\nmax_concurrent_leases = 2\n");
    let mut leases: Vec<Grant> = Vec::new();
    let (mut reports, mut next) = (BTreeMap::<LeaseId, u64>::new(), 0);
    let (mut taken, mut duplicated) = (0, 0);
    for step in steps {
        match step {
            Step::Acquire { anonymous } => leases.extend(plane.acquire_now(&Ask { anonymous, ..ask("shop", "/") }).ok()),
            Step::Batch(count) => {
                let batch = plane.acquire_batch_now(&ask("shop", "/"), count).unwrap_or_default();
                let mut names: Vec<_> = batch.iter().map(|grant| grant.identity.name.clone()).collect();
                names.sort();
                names.dedup();
                assert_eq!((names.len(), batch.len() <= count), (batch.len(), true));
                leases.extend(batch);
            }
            Step::Report { lease, status, release, repeat } => {
                let Some(grant) = leases.get(lease) else { continue };
                let id = reports.get(&grant.lease).copied().filter(|_| repeat).unwrap_or_else(|| {
                    next += 1;
                    next
                });
                let answer = plane.report_now(&[Report { status: Some(status), ..report(id, &grant.lease, release) }]);
                assert!(answer.rejected.iter().all(|rejected| rejected.id == id && rejected.is_unknown_lease));
                duplicated += answer.duplicated;
                if answer == Taken::default() {
                    taken += 1;
                    reports.insert(grant.lease.clone(), id);
                }
            }
            Step::Release(lease) => {
                if let Some(grant) = leases.get(lease) {
                    // Long after its end a lease is forgotten.
                    let released = plane.release_now(&grant.lease);
                    assert!(matches!(released, Ok(()) | Err(PlaneError::UnknownLease(_))));
                }
            }
            Step::Renew(lease) => {
                if let Some(Ok(until)) = leases.get(lease).map(|grant| plane.renew_now(&grant.lease)) {
                    assert!(until > Instant::now());
                }
            }
            Step::Pass(time) => advance(seconds(time)).await,
        }
        let ledger = plane.ledger_now();
        assert!(ledger.balances(), "{ledger:?}");
        assert_eq!((ledger.acquired, ledger.reports), (leases.len() as u64, taken), "{duplicated} repeated");
    }
    advance(seconds(3_600)).await;
    assert_eq!(plane.ledger_now().open, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_lease_has_one_end_and_every_report_counts_once(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(steps));
    }
}
