//! The whole engine on one thread and a paused clock: every actor is the real one, the site, the control
//! plane and the sink are played. Times are exact because nothing else moves the clock.

mod ahead;
mod books;
mod cached;
mod callbacks;
mod closing;
mod crash;
mod durable;
mod fakes;
#[cfg(feature = "redis")]
mod fleet;
mod keeping;
mod limits;
mod live;
mod pacing;
mod records;
mod redirects;
mod refreshes;
mod refusals;
mod reports;
mod restarts;
mod retries;
mod robots;
mod script;
mod shared;
mod shutdown;
mod sides;
mod stand;

use std::time::Duration;

use crate::settings::LeaseRule;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

/// One site with so many identities, each for one lease at a time.
fn identities(site: &str, number: usize) -> String {
    let identities = (0..number).map(|n| format!("[[sites.identities]]\nname = \"{n}\"\n"));
    std::iter::once(format!("[[sites]]\nname = \"{site}\"\n")).chain(identities).collect()
}

/// A rule that leases a domain under a site.
fn rule(domain: &str, site: &str) -> LeaseRule {
    LeaseRule {
        domains: vec![domain.to_owned()],
        site: site.to_owned(),
        client: "web".to_owned(),
        endpoint_group: String::new(),
        session_key: String::new(),
    }
}
