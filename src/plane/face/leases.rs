//! The calls about leases and reports: acquire with its waiting, renew, release, report (wire contract, sections 21.3, 22, 24).
//!
//! Between a grant and its answer nothing waits, so a caller that goes away while it waits has been granted nothing.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::read::{self, Incomplete};
use super::{Caller, Face};
use crate::plane::model::refusal::{Reason, Refusal};
use crate::plane::model::{Ms, Plane};
use crate::spinneret::messages::{ReleaseRequest, RenewRequest};
use crate::spinneret::{AcquireBatchRequest, AcquireBatchResponse, AcquireRequest, AcquireResponse, Rpc};
use crate::spinneret::{ReleaseResponse, RenewResponse, ReportResponse};

/// Rests between the first attempts of one call, ms, and between all further ones.
const RUNGS: [u64; 3] = [50, 100, 150];
const LAST_RUNG: u64 = 200;
/// Reports of one call.
const REPORTS: usize = 500;

impl Face {
    pub(super) async fn acquire(&self, caller: &Caller<'_>, body: &[u8]) -> Result<AcquireResponse, Refusal> {
        let request: AcquireRequest = read::message(body)?;
        let token = self.enter(caller)?;
        check(&request)?;
        self.attempts(1, request.wait_ms, |plane, now| plane.acquire(&token, &request, now)).await
    }

    pub(super) async fn acquire_batch(&self, caller: &Caller<'_>, body: &[u8]) -> Result<AcquireBatchResponse, Refusal> {
        let request: AcquireBatchRequest = read::message(body)?;
        let token = self.enter(caller)?;
        check(&request)?;
        let count = u32::try_from(request.count).unwrap_or(1);
        self.attempts(count, request.each.wait_ms, |plane, now| plane.acquire_batch(&token, &request, now)).await
    }

    pub(super) fn renew(&self, caller: &Caller<'_>, body: &[u8]) -> Result<RenewResponse, Refusal> {
        let request: RenewRequest = read::message(body)?;
        let token = self.enter(caller)?;
        check(&request)?;
        self.desk.with(|plane, now| plane.renew(&token, &request, now))
    }

    pub(super) fn release(&self, caller: &Caller<'_>, body: &[u8]) -> Result<ReleaseResponse, Refusal> {
        let request: ReleaseRequest = read::message(body)?;
        let token = self.enter(caller)?;
        check(&request)?;
        self.desk.with(|plane, now| plane.release(&token, &request, now))
    }

    pub(super) fn report(&self, caller: &Caller<'_>, body: &[u8]) -> Result<ReportResponse, Refusal> {
        let reports = read::reports(body)?;
        let token = self.enter(caller)?;
        if !(1..=REPORTS).contains(&reports.len()) {
            let found = reports.len();
            return Err(Refusal::invalid_argument(format!("a call is for 1 to {REPORTS} reports, found {found}")));
        }
        let incomplete: Vec<Incomplete> = reports.iter().filter_map(|report| report.as_ref().err().cloned()).collect();
        let reports = reports.into_iter().map(|report| report.map_err(|incomplete| incomplete.message)).collect();
        let mut answer = self.desk.with(|plane, now| plane.report(&token, reports, now))?;
        // The plane does not know which reports these were; they come in the order they were sent in.
        let mut incomplete = incomplete.into_iter().peekable();
        for rejected in answer.rejected.iter_mut().filter(|rejected| rejected.report_id.is_empty()) {
            if let Some(known) = incomplete.next_if(|incomplete| incomplete.message == rejected.message) {
                rejected.report_id = known.report_id;
            }
        }
        Ok(answer)
    }

    /// Attempts until one is granted, is refused for good, or the time is over; then the last refusal counts, and one of the
    /// gate only if no attempt got past it.
    async fn attempts<T>(
        &self,
        count: u32,
        wait_ms: i32,
        attempt: impl Fn(&mut Plane, Ms) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let end = Instant::now() + Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
        let mut rungs = RUNGS.into_iter().chain(std::iter::repeat(LAST_RUNG));
        let mut reached = None;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let shed = match self.turnstile.enter(count, left).await {
                Ok(pass) => {
                    let outcome = self.desk.with(&attempt);
                    drop(pass);
                    match outcome {
                        Err(refusal) if may_wait(&refusal) => reached = Some(refusal),
                        outcome => return outcome,
                    }
                    None
                }
                Err(refusal) => Some(refusal),
            };
            let left = end.saturating_duration_since(Instant::now());
            let is_over = left.is_zero() || self.is_stopping();
            if let Some(last) = reached.clone().or(shed).filter(|_| is_over) {
                return Err(last);
            }
            let rest = Duration::from_millis(rungs.next().unwrap_or(LAST_RUNG)).min(left);
            self.unless_stopping(sleep(rest)).await;
        }
    }
}

/// Whether another attempt may find what this one did not. A breaker that is open is not waited for.
fn may_wait(refusal: &Refusal) -> bool {
    matches!(refusal.reason, Some(Reason::NoIdentityAvailable | Reason::NoProxyAvailable))
}

/// The bounds of the fields.
fn check(request: &impl Rpc) -> Result<(), Refusal> {
    request.validate().map_err(|error| Refusal::invalid_argument(error.message().to_owned()))
}
