//! How a request ended, as one byte of the record log and of the frontier on disk.
//!
//! The numbers are part of both formats: they are added to and never changed.

use super::Outcome;
use crate::api::failure::FailureKind as Kind;

const HANDLED: u8 = 0;
const SET_ASIDE: u8 = 1;
const FAILED: u8 = 0x40;
const DROPPED: u8 = 0x80;

/// Every kind, at the place of its number.
const KINDS: [Kind; 30] = [
    Kind::Resolve,
    Kind::Refused,
    Kind::ConnectTimeout,
    Kind::Timeout,
    Kind::IdleTimeout,
    Kind::Lost,
    Kind::Tls,
    Kind::Proxy,
    Kind::BadReply,
    Kind::DataLoss,
    Kind::TooLarge,
    Kind::Decode,
    Kind::UnsupportedScheme,
    Kind::HttpStatus,
    Kind::RobotsForbidden,
    Kind::RobotsUnavailable,
    Kind::RedirectLimit,
    Kind::RedirectTarget,
    Kind::RedirectDuplicate,
    Kind::Offsite,
    Kind::LeaseUnavailable,
    Kind::LeaseRefused,
    Kind::LeaseLost,
    Kind::Middleware,
    Kind::Callback,
    Kind::Cancelled,
    Kind::Internal,
    Kind::ProxyAuth,
    Kind::LeaseUnmatched,
    Kind::PrivateAddress,
];

/// The byte of an outcome.
pub(crate) const fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Handled => HANDLED,
        Outcome::SetAside => SET_ASIDE,
        Outcome::Failed(kind) => FAILED | number(kind),
        Outcome::Dropped(kind) => DROPPED | number(kind),
    }
}

/// The outcome of a byte. A kind of failure that a newer version wrote is `Internal`; its class is kept.
pub(crate) fn outcome(code: u8) -> Outcome {
    let kind = KINDS.get(usize::from(code & 0x3f)).copied().unwrap_or(Kind::Internal);
    match code & 0xc0 {
        FAILED => Outcome::Failed(kind),
        DROPPED => Outcome::Dropped(kind),
        _ if code == SET_ASIDE => Outcome::SetAside,
        _ => Outcome::Handled,
    }
}

const fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Resolve => 0,
        Kind::Refused => 1,
        Kind::ConnectTimeout => 2,
        Kind::Timeout => 3,
        Kind::IdleTimeout => 4,
        Kind::Lost => 5,
        Kind::Tls => 6,
        Kind::Proxy => 7,
        Kind::BadReply => 8,
        Kind::DataLoss => 9,
        Kind::TooLarge => 10,
        Kind::Decode => 11,
        Kind::UnsupportedScheme => 12,
        Kind::HttpStatus => 13,
        Kind::RobotsForbidden => 14,
        Kind::RobotsUnavailable => 15,
        Kind::RedirectLimit => 16,
        Kind::RedirectTarget => 17,
        Kind::RedirectDuplicate => 18,
        Kind::Offsite => 19,
        Kind::LeaseUnavailable => 20,
        Kind::LeaseRefused => 21,
        Kind::LeaseLost => 22,
        Kind::Middleware => 23,
        Kind::Callback => 24,
        Kind::Cancelled => 25,
        Kind::Internal => 26,
        Kind::ProxyAuth => 27,
        Kind::LeaseUnmatched => 28,
        Kind::PrivateAddress => 29,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_comes_back_from_its_byte() {
        for (n, kind) in (0_u8..).zip(KINDS) {
            assert_eq!(number(kind), n);
            for outcome_in in [Outcome::Failed(kind), Outcome::Dropped(kind), Outcome::Handled, Outcome::SetAside] {
                assert_eq!(outcome(code(outcome_in)), outcome_in);
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        // Golden values: logs of earlier versions hold them.
        assert_eq!(code(Outcome::Handled), 0x00);
        assert_eq!(code(Outcome::SetAside), 0x01);
        assert_eq!(code(Outcome::Failed(Kind::Timeout)), 0x43);
        assert_eq!(code(Outcome::Dropped(Kind::Offsite)), 0x93);
        assert_eq!(outcome(0x7f), Outcome::Failed(Kind::Internal));
    }
}
