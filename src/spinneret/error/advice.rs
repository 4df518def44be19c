//! What a node should do about an error, in one sentence.

use super::Error;
use crate::spinneret::code::Code;
use crate::spinneret::error_kind::ErrorKind;

impl Error {
    /// What the node should do: by the kind of error, and by its reason where that says more (wire contract, section 5).
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => self.about_the_token(),
            Self::PermissionDenied(_) => self.about_permission(),
            Self::InvalidArgument(_) => self.about_the_request(),
            Self::NotFound(_) => "look up the name of the item, secret or namespace; do not ask again in a tight loop",
            Self::LeaseUnknown(_) => "acquire another lease: this one is gone, or never was this node's",
            Self::AlreadyExists(_) => "use the one that exists",
            Self::FailedPrecondition(_) => "mend what the message names, a reference to a missing secret for one; then ask again",
            Self::LeaseReleased(_) => "acquire another lease: this one was given back",
            Self::LeaseExpired(details) if details.reason == "lease_lifetime_exceeded" => {
                "acquire another lease: this one was prolonged as often as the policy allows"
            }
            Self::LeaseExpired(_) => "acquire another lease, and renew it in time or ask for less work with it",
            Self::Aborted(_) => "try again later: another call was faster",
            Self::ResourceExhausted(details) if details.reason == "rate_limited" => {
                "wait for the hint, then ask less often: the token's rate or number of watchers is used up"
            }
            Self::ResourceExhausted(_) => "wait for the hint, then ask less or less often",
            Self::NoIdentityAvailable(_) => "wait for the hint, then acquire again; more identities serve more requests",
            Self::NoProxyAvailable(_) => "wait for the hint, then acquire again; more proxies serve more requests",
            Self::Unavailable(details) if details.is_bare => "try again later; something in front of the server answered for it",
            Self::Unavailable(_) => "try again after the hint, or after a moment without one",
            Self::CircuitOpen(_) => "pause the endpoint group for the hint: the site refuses too many of its requests",
            Self::SitePaused(_) => "pause the site for the hint: an operator has paused it",
            Self::Transport(details) => about_the_way(details.error_kind),
            Self::DeadlineExceeded(_) => "try again later: the server ran out of time",
            Self::Unimplemented(_) => "check that the URL leads to a Spinneret server of this version of the API",
            Self::Internal(details) if details.is_bare || details.reason == "invalid_response" => {
                "check that the URL leads to a Spinneret server and not to something that answers for it"
            }
            Self::Internal(_) => "try again later; if it lasts, look into the log of the server",
            Self::Configuration(_) => "mend the setting that the message names; nothing was sent",
            Self::ReporterClosed(_) => "report before the reporter is closed; this report was not taken",
            Self::ClientClosed(_) => "make calls before the client is closed; nothing was sent",
            Self::Other(details) if details.code == Code::Canceled => {
                "connect again: the server is shutting down or was told to stop"
            }
            Self::Other(_) => "read the message: this client does not know the code, perhaps it is older than the server",
        }
    }

    fn about_the_token(&self) -> &'static str {
        match self.reason() {
            "token_expired" => "stop and alert a person: the token is past its end, a new one is needed",
            "token_revoked" => "stop and alert a person: the token was revoked, a new one is needed",
            "session_invalid" => {
                "stop and alert a person: no token reached the server, something on the way removes the Authorization header"
            }
            _ if self.is_bare() => "stop and alert a person: something in front of the server asks for a login of its own",
            _ => "stop and alert a person: the server does not accept the token",
        }
    }

    fn about_permission(&self) -> &'static str {
        match self.reason() {
            "ip_not_allowed" => "stop and alert a person: the token may not be used from this address",
            "scope_missing" => "stop and alert a person: the token lacks the scope, or the namespace is not its own",
            _ if self.is_bare() => "stop and alert a person: something in front of the server refuses the call",
            _ => "stop and alert a person: the token may not do this",
        }
    }

    fn about_the_request(&self) -> &'static str {
        match self.reason() {
            "site_unknown" => "correct the site's name, or let an operator create the site; trying again does not help",
            "client_unknown" => "use a client type that the site declares; trying again does not help",
            "endpoint_group_unknown" => "use an endpoint group of the site, or none; trying again does not help",
            "uri_invalid" => "give a path that begins with a slash, or an http(s) URL; trying again does not help",
            _ => "correct the program or its settings as the message says; trying again does not help",
        }
    }
}

/// Some failures to reach the server pass by themselves, others wait for a person.
const fn about_the_way(kind: Option<ErrorKind>) -> &'static str {
    match kind {
        Some(ErrorKind::Tls) => {
            "look at the certificate of the server and at the URL: SPINNERET_CA_FILE names the CA of an internal server; trying again \
             seldom helps"
        }
        Some(ErrorKind::Dns) => "try again later; if it lasts, check the host in the URL and the resolver",
        Some(ErrorKind::ProxyAuth) => {
            "mend the user and password of the proxy on the way to the server; trying again does not help"
        }
        Some(ErrorKind::Timeout) => {
            "try again later; if it lasts, check the load of the server, the network and the limits of time"
        }
        _ => "try again later; if it lasts, check that the server runs, the URL and the network",
    }
}
