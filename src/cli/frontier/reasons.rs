//! Which of the requests that ended are meant: by reason and host.

use std::collections::BTreeSet;

use clap::Args;

use crate::cli::exit::CliError;
use crate::nearest::nearest;
use crate::scheduler::job::Outcome;
use crate::scheduler::job::{Job, outcome};

/// Narrows down a list.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Filter {
    /// Only those that failed for this reason, as timeout or http_status; may be repeated
    #[arg(long, value_name = "REASON")]
    reason: Vec<String>,
    /// Only those of this host; may be repeated
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
}

impl Filter {
    /// Whether nothing is left out.
    pub(super) fn is_by_reason(&self) -> bool {
        !self.reason.is_empty()
    }

    /// Fails for a reason that no request can have.
    ///
    /// # Errors
    /// [`CliError::Usage`] with the nearest one and all there are.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let known = known();
        match self.reason.iter().find(|reason| !known.contains(reason.as_str())) {
            None => Ok(()),
            Some(reason) => {
                let guess =
                    nearest(reason, known.iter().copied()).map_or_else(String::new, |near| format!("did you mean {near:?}? "));
                let all = known.into_iter().collect::<Vec<_>>().join(", ");
                Err(CliError::usage(format!("no request fails for the reason {reason:?}; {guess}reasons are {all}")))
            }
        }
    }

    /// Whether a request is meant.
    pub(super) fn takes(&self, reason: &str, job: &Job) -> bool {
        let host = job.url().host_str().unwrap_or_default();
        (self.reason.is_empty() || self.reason.iter().any(|wanted| wanted == reason))
            && (self.host.is_empty() || self.host.iter().any(|wanted| wanted.eq_ignore_ascii_case(host)))
    }

    /// Whether everything is meant.
    pub(super) fn takes_all(&self) -> bool {
        self.reason.is_empty() && self.host.is_empty()
    }
}

/// Why a shared frontier gives a request up that every worker was lost with.
const WORKER_LOST: &str = "worker_lost";

/// The names of all reasons.
fn known() -> BTreeSet<&'static str> {
    let failed = (0x40..0x80_u8).map(outcome::outcome);
    let failed = failed.filter_map(|outcome| if let Outcome::Failed(kind) = outcome { Some(kind.name()) } else { None });
    // A shared frontier's own reason, which no worker lives to tell.
    failed.chain([WORKER_LOST]).collect()
}
