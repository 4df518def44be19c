//! Whether a crawl may ask addresses of its own machine and network: said by `ALLOW_PRIVATE_ADDRESSES`, or found out by
//! what the crawl is started with.
//!
//! Shared by whoever decides: the scheduler before a request is queued, the transport before one is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use url::Url;

use crate::api::failure::{FailureKind, Fault};
use crate::settings::PrivateAddresses;
use crate::web::address::names_private;

/// The fault of a target that may not be asked.
pub(crate) fn out_of_reach(host: &str) -> Fault {
    let message = format!(
        "{host} is an address of this machine or its network, to which pages of the web may not lead; allow such addresses with \
         ALLOW_PRIVATE_ADDRESSES, or name the host in HOSTS"
    );
    Fault::new(FailureKind::PrivateAddress, message)
}

/// The answer for a crawl as a whole; copies share it. It goes from no to yes and never back.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    is_open: Arc<AtomicBool>,
    decides: Decides,
}

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decides {
    Setting,
    Start,
}

impl Reach {
    pub(crate) fn of(setting: PrivateAddresses) -> Self {
        let decides = if setting == PrivateAddresses::Auto { Decides::Start } else { Decides::Setting };
        Self { is_open: Arc::new(AtomicBool::new(setting == PrivateAddresses::Allow)), decides }
    }

    /// Whether private addresses may be asked.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Hears of a request that the job's owner wants by that very URL. True when it changed the answer.
    pub(crate) fn wanted(&self, url: &Url) -> bool {
        self.decides == Decides::Start && !self.is_open() && names_private(url) && !self.is_open.swap(true, Ordering::Relaxed)
    }

    /// Whether a URL may not be asked for by what it says itself.
    pub(crate) fn refuses(&self, url: &Url) -> bool {
        !self.is_open() && names_private(url)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_wanted_private_url_opens_and_only_where_the_setting_leaves_it_to_that() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (own, public) = (url("http://127.0.0.1:8000/"), url("http://a.test/"));
        for (setting, before, after) in [
            (PrivateAddresses::Auto, false, true),
            (PrivateAddresses::Allow, true, true),
            (PrivateAddresses::Refuse, false, false),
        ] {
            let reach = Reach::of(setting);
            assert!(!reach.wanted(&public) && !reach.refuses(&public));
            assert_eq!((reach.is_open(), reach.refuses(&own)), (before, !before));
            let copy = reach.clone();
            assert_eq!(reach.wanted(&own), before != after, "{setting:?}");
            assert!(!reach.wanted(&own));
            assert_eq!((copy.is_open(), copy.refuses(&own)), (after, !after), "{setting:?}");
        }
    }
}
