//! What the courier says: one line a failed try, with what was tried, what was answered and what happens next.
//!
//! All of it has one target, so that the log layer can hold back what comes too often.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::collector::log::BatchId;

/// What a line is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried<'a> {
    /// The id it was sent under.
    pub(super) id: BatchId,
    /// How many records it holds, stats counted as one.
    pub(super) records: u64,
    /// Where it was sent to.
    pub(super) place: &'a str,
    /// What was answered.
    pub(super) answer: &'a str,
}

/// What happens after a failed try.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next<'a> {
    Retry(Duration),
    Apart,
    PutAside(&'a Path),
    /// It is refused for good and cannot be put aside.
    Unwritten(&'a Path, &'a str, Duration),
    NothingMore(&'a Path),
    Spooled,
}

impl fmt::Display for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(wait) => write!(f, "next try in {:.1} s", wait.as_secs_f64()),
            Self::Apart => f.write_str("taking it apart"),
            Self::PutAside(file) => write!(f, "the record is in {}", file.display()),
            Self::Unwritten(spool, error, wait) => write!(
                f,
                "the record cannot be put aside in {}: {error}; next try in {:.1} s",
                spool.join(super::rejected::DIRECTORY).display(),
                wait.as_secs_f64()
            ),
            Self::NothingMore(spool) => write!(
                f,
                "nothing more is sent, everything stays in the spool {}; mend it and run `dragline deliver`",
                spool.display()
            ),
            Self::Spooled => f.write_str("it stays in the spool"),
        }
    }
}

/// Says that a try failed.
pub(super) fn failed(tried: Tried<'_>, next: Next<'_>) {
    let Tried { id, records, place, answer } = tried;
    // What another side said stays on this line.
    let answer = answer.replace(char::is_control, " ");
    let line = format_args!("Failed to send APCloudy batch {id}: {answer}; {next}");
    match next {
        Next::PutAside(_) | Next::NothingMore(_) => {
            tracing::error!(target: "dragline::courier", records, to = place, "{line}");
        }
        _ => tracing::warn!(target: "dragline::courier", records, to = place, "{line}"),
    }
}

/// Says that the sink takes batches again, after that many failed tries.
pub(super) fn back(place: &str, failures: u32) {
    tracing::info!(target: "dragline::courier", to = place, failures, "APCloudy batches are sent again");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_happens_next() {
        let (spool, file) = (Path::new("jobs/7/spool"), Path::new("jobs/7/spool/rejected/ab.json"));
        for (next, text) in [
            (Next::Retry(Duration::from_millis(3249)), "next try in 3.2 s"),
            (Next::Apart, "taking it apart"),
            (Next::PutAside(file), "the record is in jobs/7/spool/rejected/ab.json"),
            (
                Next::Unwritten(spool, "no space", Duration::from_secs(1)),
                "the record cannot be put aside in jobs/7/spool/rejected: no space; next try in 1.0 s",
            ),
            (
                Next::NothingMore(spool),
                "nothing more is sent, everything stays in the spool jobs/7/spool; mend it and run `dragline deliver`",
            ),
            (Next::Spooled, "it stays in the spool"),
        ] {
            assert_eq!(next.to_string(), text);
        }
    }
}
