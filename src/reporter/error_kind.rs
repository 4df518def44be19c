//! Error kinds: what the control plane is told about an attempt without a response.

use crate::api::failure::FailureKind;
use crate::plane::ErrorKind;

/// The control plane's class of `failure`; `None` where the attempt had a response or was never made, so
/// that the report speaks by its status.
#[must_use]
pub fn error_kind(failure: FailureKind) -> Option<ErrorKind> {
    match failure {
        FailureKind::Resolve => Some(ErrorKind::Dns),
        FailureKind::Refused => Some(ErrorKind::ConnRefused),
        // A lease that could not be renewed ended the attempt by its time limit.
        FailureKind::ConnectTimeout | FailureKind::Timeout | FailureKind::IdleTimeout | FailureKind::LeaseLost => {
            Some(ErrorKind::Timeout)
        }
        FailureKind::Lost | FailureKind::DataLoss => Some(ErrorKind::ConnReset),
        FailureKind::Tls => Some(ErrorKind::Tls),
        // Nobody is there, or it breaks off: what a connection to the proxy is, not what the target answered.
        FailureKind::Proxy => Some(ErrorKind::ConnRefused),
        FailureKind::ProxyAuth => Some(ErrorKind::ProxyAuth),
        FailureKind::BadReply | FailureKind::Decode => Some(ErrorKind::Other),
        // We hung up: it says nothing against identity, proxy or target.
        FailureKind::Cancelled => Some(ErrorKind::Other),
        FailureKind::UnsupportedScheme | FailureKind::PrivateAddress | FailureKind::Middleware | FailureKind::Internal => {
            Some(ErrorKind::Other)
        }
        // Of a body that is too large there was a status, which is what is reported.
        FailureKind::TooLarge | FailureKind::Callback => None,
        FailureKind::HttpStatus
        | FailureKind::RobotsForbidden
        | FailureKind::RobotsUnavailable
        | FailureKind::RedirectLimit
        | FailureKind::RedirectTarget
        | FailureKind::RedirectDuplicate
        | FailureKind::Offsite
        | FailureKind::LeaseUnavailable
        | FailureKind::LeaseRefused
        | FailureKind::LeaseUnmatched => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn every_failure_has_its_class() {
        use ErrorKind as E;
        use FailureKind as F;
        for (failure, kind) in [
            (F::Resolve, Some(E::Dns)),
            (F::Refused, Some(E::ConnRefused)),
            (F::ConnectTimeout, Some(E::Timeout)),
            (F::Timeout, Some(E::Timeout)),
            (F::IdleTimeout, Some(E::Timeout)),
            (F::Lost, Some(E::ConnReset)),
            (F::Tls, Some(E::Tls)),
            (F::Proxy, Some(E::ConnRefused)),
            (F::ProxyAuth, Some(E::ProxyAuth)),
            (F::BadReply, Some(E::Other)),
            (F::DataLoss, Some(E::ConnReset)),
            (F::TooLarge, None),
            (F::Decode, Some(E::Other)),
            (F::UnsupportedScheme, Some(E::Other)),
            (F::HttpStatus, None),
            (F::RobotsForbidden, None),
            (F::RobotsUnavailable, None),
            (F::RedirectLimit, None),
            (F::RedirectTarget, None),
            (F::RedirectDuplicate, None),
            (F::Offsite, None),
            (F::PrivateAddress, Some(E::Other)),
            (F::LeaseUnavailable, None),
            (F::LeaseRefused, None),
            (F::LeaseUnmatched, None),
            (F::LeaseLost, Some(E::Timeout)),
            (F::Middleware, Some(E::Other)),
            (F::Cancelled, Some(E::Other)),
            (F::Internal, Some(E::Other)),
        ] {
            assert_eq!(error_kind(failure), kind, "{failure}");
        }
    }

    #[test]
    fn what_never_reached_the_target_is_no_fault_of_it() {
        assert_eq!(error_kind(FailureKind::Cancelled), Some(ErrorKind::Other));
    }
}
