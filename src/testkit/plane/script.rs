//! What goes wrong with calls to a scripted plane, when, and for how long.

use std::time::Duration;

use crate::spinneret::{Code, Procedure};

/// A call of the node API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// One lease.
    Acquire,
    /// Several leases.
    AcquireBatch,
    /// Prolongs a lease.
    Renew,
    /// Gives a lease back.
    Release,
    /// Hands over reports.
    Report,
    /// One config item.
    GetConfig,
    /// Several config items.
    BatchGetConfig,
    /// Waits for a change of config items.
    WatchConfig,
    /// A secret.
    GetSecret,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mishap {
    /// The call is refused with this and not carried out.
    Refuse(Refused),
    /// The call is read, and neither carried out nor answered as long as the caller waits, or until the plane is healed; then
    /// it is carried out.
    Hang,
    /// The call is read and not carried out; the connection ends.
    LoseCall,
    /// The call is carried out; the connection ends before its answer.
    LoseAnswer,
}

/// A refusal that the script makes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The code; decides the HTTP status.
    pub code: Code,
    /// The header `Spinneret-Reason`; empty: none.
    pub reason: String,
    /// The text for people.
    pub message: String,
    /// The hint when to come again.
    pub retry_after: Option<Duration>,
}

/// How often it happens.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum When {
    /// Each time.
    Always,
    /// The next so many times.
    Next(u32),
    /// To this share of the calls, 0 to 1, spread evenly: exactly so many of each hundred.
    Share(f64),
}

/// One line of the script.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) calls: Vec<Call>,
    pub(super) when: When,
    pub(super) what: Mishap,
    /// What part of the next one is reached.
    pub(super) share: f64,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Acquire,
        Self::AcquireBatch,
        Self::Renew,
        Self::Release,
        Self::Report,
        Self::GetConfig,
        Self::BatchGetConfig,
        Self::WatchConfig,
        Self::GetSecret,
    ];

    /// Those that ask for leases.
    pub const ACQUIRES: [Self; 2] = [Self::Acquire, Self::AcquireBatch];

    /// The call at this path; nothing for other paths.
    pub(in crate::testkit) fn at(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        Procedure::ALL.into_iter().find(|procedure| procedure.path() == path).map(|procedure| match procedure {
            Procedure::Acquire => Self::Acquire,
            Procedure::AcquireBatch => Self::AcquireBatch,
            Procedure::Renew => Self::Renew,
            Procedure::Release => Self::Release,
            Procedure::Report => Self::Report,
            Procedure::GetConfig => Self::GetConfig,
            Procedure::BatchGetConfig => Self::BatchGetConfig,
            Procedure::WatchConfig => Self::WatchConfig,
            Procedure::GetSecret => Self::GetSecret,
        })
    }
}

impl Refused {
    /// A refusal without a hint.
    #[must_use]
    pub fn new(code: Code, reason: &str) -> Self {
        Self { code, reason: reason.to_owned(), message: format!("scripted: {reason}"), retry_after: None }
    }

    /// The same with a hint when to come again.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Too much to do; come again in 150 ms.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::new(Code::Unavailable, "overloaded").after(Duration::from_millis(150))
    }

    /// The token is nobody's.
    #[must_use]
    pub fn token_invalid() -> Self {
        Self::new(Code::Unauthenticated, "token_invalid")
    }
}

impl Trouble {
    /// Whether it happens to this call; counts it.
    pub(super) fn meets(&mut self, call: Call) -> bool {
        if !self.calls.contains(&call) {
            return false;
        }
        match &mut self.when {
            When::Always => true,
            When::Next(0) => false,
            When::Next(left) => {
                *left -= 1;
                true
            }
            When::Share(share) => {
                // A hair more, so that ten tenths are one.
                self.share += share.clamp(0.0, 1.0);
                let is_reached = self.share > 1.0 - 1e-9;
                if is_reached {
                    self.share -= 1.0;
                }
                is_reached
            }
        }
    }

    /// Whether it has happened as often as it was to.
    pub(super) fn is_over(&self) -> bool {
        self.when == When::Next(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(when: When) -> Trouble {
        Trouble { calls: Call::ACQUIRES.to_vec(), when, what: Mishap::Hang, share: 0.0 }
    }

    #[test]
    fn a_share_is_met_exactly_and_evenly() {
        for (share, of) in [(0.1, 100), (0.25, 250), (0.0, 0), (1.0, 1_000), (7.0, 1_000)] {
            let mut trouble = trouble(When::Share(share));
            let met: Vec<usize> = (0..1_000).filter(|_| trouble.meets(Call::Acquire)).collect();
            assert_eq!(met.len(), of, "{share}");
            if share == 0.1 {
                assert!(met.iter().zip(1..).all(|(at, number)| at + 1 == number * 10), "{met:?}");
            }
        }
    }

    #[test]
    fn the_next_ones_are_met_and_then_none_and_other_calls_never() {
        let mut trouble = trouble(When::Next(2));
        assert!(!trouble.meets(Call::Report));
        assert!(trouble.meets(Call::Acquire) && !trouble.is_over());
        assert!(trouble.meets(Call::AcquireBatch) && trouble.is_over());
        assert!(!trouble.meets(Call::Acquire));
    }
}
