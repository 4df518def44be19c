//! The whole engine on one thread and a paused clock: every actor is the real one, the site, the control
//! plane and the sink are played. Times are exact because nothing else moves the clock.

mod ahead;
mod books;
mod callbacks;
mod crash;
mod fakes;
mod keeping;
mod limits;
mod records;
mod redirects;
mod refusals;
mod reports;
mod restarts;
mod retries;
mod robots;
mod script;
mod shutdown;
mod sides;
mod stand;

use std::time::Duration;

use crate::plane::embedded::roster::{Identity, Roster, Site};
use crate::settings::LeaseRule;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

/// One site with so many identities, each for one lease at a time.
fn roster(site: &str, identities: usize) -> Roster {
    let identities = (0..identities).map(|n| Identity::new(&n.to_string())).collect();
    Roster { sites: vec![Site::new(site, identities)], proxies: Vec::new() }
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
