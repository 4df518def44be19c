//! Whatever happens in whatever order: one release for every lease that was granted, and reports in their order.

use proptest::prelude::*;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Report {
        is_releasing: bool,
    },
    Renew,
    CloseReporter,
    /// Release, waited for only so long (the server takes 100 ms).
    Release(u64),
    Wait(u64),
}

#[derive(Debug, Clone)]
enum End {
    Drop,
    Panic,
    Release,
    Cancel,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Report { is_releasing: false }),
        1 => Just(Step::Report { is_releasing: true }),
        1 => Just(Step::Renew),
        1 => Just(Step::CloseReporter),
        1 => prop::sample::select(vec![0, 50, 150]).prop_map(Step::Release),
        1 => (0_u64..300).prop_map(Step::Wait),
    ]
}

/// A life: what happens to a lease, how it ends, and how often the background fails first.
fn life() -> impl Strategy<Value = (Vec<Step>, End, usize)> {
    let end = prop_oneof![Just(End::Drop), Just(End::Panic), Just(End::Release), Just(End::Cancel)];
    (prop::collection::vec(step(), 0..12), end, 0_usize..3)
}

async fn play(rig: &Rig, steps: &[Step], end: &End, failures: usize) -> Vec<String> {
    let slow = super::Step::After(ms(100), Box::new(super::Step::Answer(json!({"released": true}))));
    rig.script.always(Procedure::Release, slow.clone());
    if matches!(end, End::Drop | End::Panic) && !steps.iter().any(|step| matches!(step, Step::Release(_))) {
        for _ in 0..failures {
            rig.script.next(Procedure::Release, internal());
        }
    }
    let mut taken = Vec::new();
    let lease = rig.acquire().await;
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Report { is_releasing } => {
                let draft = ReportDraft::status(200).report_id(n.to_string());
                if lease.report(if *is_releasing { draft.release() } else { draft }).is_ok() {
                    taken.push(n.to_string());
                }
            }
            Step::Renew => drop(lease.renew(Duration::ZERO).await),
            Step::CloseReporter => rig.client.reporter().close(None).await,
            Step::Release(limit) => drop(timeout(ms(*limit), lease.release()).await),
            Step::Wait(wait) => sleep(ms(*wait)).await,
        }
    }
    match end {
        End::Drop => drop(lease),
        End::Release => lease.release().await.unwrap(),
        End::Cancel => drop(timeout(ms(50), lease.release()).await),
        End::Panic => {
            let panicked = tokio::spawn(async move {
                let _held = lease;
                panic!("a bug of the spider")
            });
            assert!(panicked.await.is_err_and(|error| error.is_panic()));
        }
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_lease_is_released_exactly_once_and_its_reports_arrive_in_order((steps, end, failures) in life()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let rig = Rig::new();
        let taken = runtime.block_on(async {
            let taken = play(&rig, &steps, &end, failures).await;
            rig.settle().await;
            rig.client.reporter().flush(None).await;
            taken
        });
        let reports = rig.script.reports();
        let arrived: Vec<String> = reports.iter().map(|report| report["report_id"].as_str().unwrap().to_owned()).collect();
        prop_assert_eq!(&arrived, &taken);
        let releasing: Vec<usize> = (0..reports.len()).filter(|at| is_releasing(&reports[*at])).collect();
        let is_failing = matches!(end, End::Drop | End::Panic) && !steps.iter().any(|step| matches!(step, Step::Release(_)));
        let calls = if rig.released().is_empty() { 0 } else { rig.released().len() - if is_failing { failures } else { 0 } };
        prop_assert_eq!(releasing.len() + calls, 1, "reports {:?}, calls {:?}", &releasing, rig.released());
        prop_assert!(releasing.iter().all(|at| at + 1 == reports.len()));
    }
}
