//! What a lease remembers, and what follows: which report is sent now, which is held back, how the lease ends.
//!
//! The last report of a lease is the one that ends it, and nobody knows which is the last: so one is held back until
//! another one comes or the lease is over. No I/O, no lock, no clock: the lease feeds it and does what it says.

use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::Report;

/// The memory of one acquired lease.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The latest report, if it does not end the lease: it waits to learn whether it is the last.
    held_back: Option<Report>,
    is_released: bool,
}

/// How a lease ends.
#[derive(Debug, PartialEq)]
pub(super) enum Ending {
    /// It is over already.
    Over,
    /// By this report, whose `release` is set.
    Report(Box<Report>),
    /// By a call: nothing was reported.
    Call,
}

impl State {
    /// Takes a report and submits what is due, in order; the report comes back as it was built.
    ///
    /// What `submit` refuses changes nothing: a report held back before stays so.
    pub(super) fn report(&mut self, report: Report, mut submit: impl FnMut(Report) -> Result<()>) -> Result<Report> {
        if self.is_released {
            return Err(Error::lease_released(&report.lease_id));
        }
        if let Some(before) = &self.held_back {
            submit(before.clone())?;
            self.held_back = None;
        }
        if report.release {
            submit(report.clone())?;
            self.is_released = true;
        } else {
            self.held_back = Some(report.clone());
        }
        Ok(report)
    }

    /// Ends the lease: says how, once.
    pub(super) fn finish(&mut self) -> Ending {
        if self.is_released {
            return Ending::Over;
        }
        self.is_released = true;
        match self.held_back.take() {
            Some(report) => Ending::Report(Box::new(Report { release: true, ..report })),
            None => Ending::Call,
        }
    }

    /// Whether the lease was ended here.
    pub(super) const fn is_released(&self) -> bool {
        self.is_released
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn report(n: usize, release: bool) -> Report {
        Report {
            report_id: n.to_string(),
            lease_id: "lse_1".to_owned(),
            uri: "/".to_owned(),
            method: String::new(),
            http_status: 200,
            business_code: String::new(),
            error_kind: String::new(),
            markers: Vec::new(),
            outcome_hint: String::new(),
            latency_ms: 0,
            response_bytes: 0,
            started_at: Timestamp::UNIX_EPOCH,
            finished_at: Timestamp::UNIX_EPOCH,
            release,
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// A report is made.
        Report { is_releasing: bool },
        /// The reporter takes no report from now on, or takes them again.
        Reporter { is_open: bool },
        /// The reporter closes after so many more reports, in the middle of what is going on.
        ClosesAfter(usize),
        /// Release, the end of a block, or a drop.
        Finish,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => any::<bool>().prop_map(|is_releasing| Step::Report { is_releasing: is_releasing }),
            6 => Just(Step::Report { is_releasing: false }),
            2 => any::<bool>().prop_map(|is_open| Step::Reporter { is_open }),
            2 => (0_usize..3).prop_map(Step::ClosesAfter),
            1 => Just(Step::Finish),
        ]
    }

    /// What the server gets to see of one lease.
    #[derive(Default)]
    struct World {
        reports: Vec<Report>,
        calls: usize,
    }

    impl World {
        fn end(&mut self, ending: Ending) {
            match ending {
                Ending::Over => {}
                // A closed reporter is got round by a call of one's own: the report arrives all the same.
                Ending::Report(report) => self.reports.push(*report),
                Ending::Call => self.calls += 1,
            }
        }
    }

    proptest! {
        #[test]
        fn a_lease_is_released_exactly_once_and_its_reports_stay_in_order(steps in prop::collection::vec(step(), 0..40)) {
            let (mut state, mut world) = (State::default(), World::default());
            let mut room = usize::MAX;
            let mut taken = Vec::new();
            for (n, step) in steps.into_iter().enumerate() {
                let was_released = state.is_released();
                match step {
                    Step::Reporter { is_open } => room = if is_open { usize::MAX } else { 0 },
                    Step::ClosesAfter(more) => room = more,
                    Step::Finish => world.end(state.finish()),
                    Step::Report { is_releasing } => {
                        let sent = &mut world.reports;
                        let result = state.report(report(n, is_releasing), |report| {
                            room = room.checked_sub(1).ok_or_else(Error::reporter_closed)?;
                            sent.push(report);
                            Ok(())
                        });
                        match result {
                            Ok(back) => {
                                prop_assert!(!was_released);
                                prop_assert_eq!(back.release, is_releasing);
                                prop_assert_eq!(state.is_released(), is_releasing);
                                taken.push(n.to_string());
                            }
                            Err(Error::LeaseReleased(_)) => prop_assert!(was_released),
                            Err(Error::ReporterClosed(_)) => prop_assert!(!was_released && !state.is_released() && room == 0),
                            Err(other) => prop_assert!(false, "{}", other),
                        }
                    }
                }
            }
            world.end(state.finish());
            prop_assert_eq!(state.finish(), Ending::Over);

            let releasing = world.reports.iter().filter(|report| report.release).count();
            prop_assert_eq!(releasing + world.calls, 1, "exactly one release");
            let arrived: Vec<String> = world.reports.iter().map(|report| report.report_id.clone()).collect();
            prop_assert_eq!(arrived, taken, "every report that was taken, once and in order");
            let first_releasing = world.reports.iter().position(|report| report.release);
            prop_assert!(first_releasing.is_none_or(|at| at + 1 == world.reports.len()), "nothing after the release");
        }
    }

    #[test]
    fn a_refused_report_leaves_the_one_before_it_held_back() {
        let mut state = State::default();
        assert!(!state.report(report(1, false), |_| panic!("nothing is due")).unwrap().release);
        assert!(matches!(state.report(report(2, false), |_| Err(Error::reporter_closed())), Err(Error::ReporterClosed(_))));
        assert_eq!(state.finish(), Ending::Report(Box::new(report(1, true))));
    }
}
