//! Shared hosts: hosts whose requests are leased for more than one site, client or endpoint group.
//!
//! A refusal holds what it speaks of and no more. Where all requests of a host are leased for one thing, its slot is
//! gated, which costs nothing. On a shared host the slot goes on, and each request that is refused waits by itself; so that
//! a long queue of them is not gone through again and again, their waits are spread. Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::plane::Ask;
use crate::scheduler::job::SlotKey;

/// Most hosts that are remembered; then all are forgotten, which costs each some waiting.
const HOSTS: usize = 10_000;
/// The longest wait of one request: the broker knows without a call whether it is over.
const LONGEST: Duration = Duration::from_secs(1);
/// Between two requests of a host that come back, so that trying them in vain costs at most a hundredth of a processor.
const BETWEEN: Duration = Duration::from_millis(1);

/// What a request is leased for.
type Lane = (Arc<str>, Arc<str>, Arc<str>);

/// Hosts that had a refusal, and those that may be shared.
#[derive(Debug, Default)]
pub(super) struct SharedHosts(HashMap<SlotKey, Host>);

#[derive(Debug)]
struct Host {
    lane: Lane,
    is_shared: bool,
    /// When the next refused request may come back.
    next: Instant,
}

impl SharedHosts {
    /// Notes that a request of this host is queued that may be leased for something else than others of the host. One that
    /// names its site itself speaks for nobody else, so its host is shared.
    pub(super) fn queued(&mut self, slot: &SlotKey, ask: &Ask, names_its_own: bool, now: Instant) {
        let host = self.host(slot, ask, now);
        host.is_shared |= names_its_own || !is_of(&host.lane, ask);
    }

    /// Notes that a request of this host asks for a lease.
    pub(super) fn asks(&mut self, slot: &SlotKey, ask: &Ask) {
        if let Some(host) = self.0.get_mut(slot) {
            host.is_shared |= !is_of(&host.lane, ask);
        }
    }

    /// Notes a refusal. `None`: the whole host may be gated; otherwise how long this request waits by itself.
    pub(super) fn refused(&mut self, slot: &SlotKey, ask: &Ask, wait: Duration, now: Instant) -> Option<Duration> {
        let host = self.host(slot, ask, now);
        host.is_shared |= !is_of(&host.lane, ask);
        if !host.is_shared {
            return None;
        }
        let at = host.next.max(now + wait.min(LONGEST));
        host.next = at + BETWEEN;
        Some(at.duration_since(now))
    }

    fn host(&mut self, slot: &SlotKey, ask: &Ask, now: Instant) -> &mut Host {
        if self.0.len() >= HOSTS && !self.0.contains_key(slot) {
            self.0.clear();
        }
        let lane = || (ask.site.clone(), ask.client.clone(), ask.group.clone());
        self.0.entry(slot.clone()).or_insert_with(|| Host { lane: lane(), is_shared: false, next: now })
    }
}

fn is_of((site, client, group): &Lane, ask: &Ask) -> bool {
    *site == ask.site && *client == ask.client && *group == ask.group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(site: &str) -> Ask {
        Ask {
            site: site.into(),
            client: "web".into(),
            group: "".into(),
            path: "/".to_owned(),
            session_key: None,
            anonymous: false,
            rule: None,
        }
    }

    #[test]
    fn a_host_of_one_site_is_gated_as_a_whole_and_a_shared_one_never() {
        let (now, slot, wait) = (Instant::now(), SlotKey("shop.example".into()), Duration::from_secs(30));
        let mut hosts = SharedHosts::default();
        hosts.asks(&slot, &ask("other"));
        assert_eq!(hosts.refused(&slot, &ask("one"), wait, now), None, "nothing is known before a refusal");
        hosts.asks(&slot, &ask("one"));
        assert_eq!(hosts.refused(&slot, &ask("one"), wait, now), None);
        hosts.asks(&slot, &ask("other"));
        assert_eq!(hosts.refused(&slot, &ask("one"), wait, now), Some(LONGEST));
        assert_eq!(
            hosts.refused(&SlotKey("x.example".into()), &ask("other"), wait, now),
            None,
            "other hosts have nothing to do with it"
        );
    }

    #[test]
    fn a_host_is_known_to_be_shared_before_its_first_refusal_by_what_is_queued() {
        let (now, slot, wait) = (Instant::now(), SlotKey("shop.example".into()), Duration::from_secs(30));
        let mut hosts = SharedHosts::default();
        hosts.queued(&slot, &ask("one"), false, now);
        hosts.queued(&slot, &ask("one"), false, now);
        assert_eq!(hosts.refused(&slot, &ask("one"), wait, now), None);
        hosts.queued(&slot, &ask("two"), false, now);
        assert_eq!(hosts.refused(&slot, &ask("one"), wait, now), Some(LONGEST));
        let own = SlotKey("own.example".into());
        hosts.queued(&own, &ask("one"), true, now);
        assert_eq!(hosts.refused(&own, &ask("one"), wait, now), Some(LONGEST));
    }

    #[test]
    fn a_long_queue_comes_back_spread() {
        let (now, slot) = (Instant::now(), SlotKey("shop.example".into()));
        let mut hosts = SharedHosts::default();
        let waits: Vec<_> = (0..5_000)
            .filter_map(|n| hosts.refused(&slot, &ask(if n == 0 { "other" } else { "one" }), Duration::from_millis(100), now))
            .collect();
        assert_eq!((waits.len(), waits.first().copied()), (4_999, Some(Duration::from_millis(100))));
        assert!(waits.windows(2).all(|pair| matches!(pair, [one, next] if *next == *one + BETWEEN)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut hosts = SharedHosts::default();
        for n in 0..=HOSTS {
            hosts.refused(&SlotKey(n.to_string().into()), &ask("one"), Duration::ZERO, Instant::now());
        }
        assert_eq!(hosts.0.len(), 1);
    }
}
