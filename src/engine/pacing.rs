//! The pacing of hosts as the settings have it, and who must wait although it was given out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::act::Act;
use super::hub::Hub;
use crate::scheduler::job::{SlotKey, undotted};
use crate::scheduler::message::{Control as SchedulerControl, Hold, Order, Scope};
use crate::scheduler::pacing::{HostPacing, Pacing, Throttle};
use crate::settings::Settings;

/// Hosts that asked for a pause, as far as the engine has to know; more than that at once are let go by their time.
const MOST: usize = 10_000;

/// How hosts are paced by these settings.
pub(crate) fn pacing(settings: &Settings) -> Pacing {
    let jitter = |varies: bool| if varies { settings.download_delay_jitter } else { 0.0 };
    let hosts = settings.download_slots.iter().map(|(host, limits)| {
        let own = HostPacing {
            per_slot: limits.concurrency,
            delay: limits.delay,
            jitter: limits.randomize_delay.map(jitter),
            throttles: limits.throttle,
        };
        (undotted(host).into(), own)
    });
    Pacing {
        per_slot: settings.concurrent_requests_per_domain,
        delay: settings.download_delay,
        jitter: jitter(settings.randomize_download_delay),
        per_minute: settings.requests_per_minute,
        throttles: settings.autothrottle_enabled,
        throttle: Throttle {
            start: settings.autothrottle_start_delay,
            max: settings.autothrottle_max_delay,
            target: settings.autothrottle_target_concurrency,
            debug: settings.autothrottle_debug,
        },
        hosts: Arc::new(hosts.collect()),
    }
}

/// Until when hosts are left alone because they asked for it.
#[derive(Debug, Default)]
pub(super) struct Pauses(HashMap<SlotKey, Instant>);

impl Pauses {
    /// The later one of two holds; whether it is later than what was known.
    fn pause(&mut self, slot: &SlotKey, until: Instant, now: Instant) -> bool {
        if let Some(known) = self.0.get_mut(slot) {
            let is_later = until > *known;
            *known = until.max(*known);
            return is_later;
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, until| *until > now);
        }
        if self.0.len() < MOST {
            self.0.insert(slot.clone(), until);
        }
        true
    }

    /// How long the slot is to be left alone.
    pub(super) fn left(&mut self, slot: &SlotKey, now: Instant) -> Option<Duration> {
        let until = *self.0.get(slot)?;
        if until <= now {
            self.0.remove(slot);
            return None;
        }
        Some(until - now)
    }
}

impl Hub {
    /// The ticket's attempt is over. If it was answered, its host may want a pause, and its throttle learns from it.
    pub(super) fn note_answer(&mut self, id: u64, now: Instant) {
        let Some(ticket) = self.tickets.get(&id) else { return };
        let (Some(slot), Some(attempt)) = (&ticket.slot, &ticket.attempt) else { return };
        // What was not sent, as an answer from a cache, says nothing of the host.
        let (Some(status), Some(sent)) = (attempt.status, attempt.sent_at) else { return };
        if self.pacing.of(&slot.0).throttles {
            let latency = attempt.waited.unwrap_or(attempt.latency);
            self.acts.push(Act::Scheduler(Order::Answered { slot: slot.clone(), status, latency, sent }));
        }
        let longest = self.config.context.settings().retry_after_max;
        let asked = attempt.retry_after.filter(|_| status >= 400).map(|asked| asked.min(longest));
        if let Some(asked) = asked.filter(|asked| !asked.is_zero()) {
            let until = now + asked;
            if self.pauses.pause(slot, until, now) {
                self.stats.inc("retry/host_paused");
                tracing::debug!(host = &*slot.0, status, seconds = asked.as_secs(), "the host asks for a pause (Retry-After)");
                let scope = Scope::Slot(slot.clone());
                self.acts.push(Act::SchedulerControl(SchedulerControl::Gate { scope, until, hold: Hold::Job }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SlotLimits;

    #[test]
    fn the_settings_of_pacing_become_numbers_for_each_host() {
        let second = Duration::from_secs(1);
        let slow = SlotLimits { concurrency: Some(1), delay: Some(2 * second), randomize_delay: Some(false), throttle: None };
        let settings = Settings {
            download_delay: second,
            download_delay_jitter: 0.3,
            requests_per_minute: 7,
            autothrottle_enabled: true,
            download_slots: [("slow.test".to_owned(), slow)].into(),
            ..Settings::default()
        };
        let pacing = pacing(&settings);
        let (slow, other) = (pacing.of("slow.test"), pacing.of("other.test"));
        assert_eq!((slow.per_slot, slow.delay, slow.jitter, slow.throttles), (1, 2 * second, 0.0, true));
        assert_eq!((other.per_slot, other.delay, other.jitter, other.per_minute), (8, second, 0.3, 7));
        assert_eq!((pacing.throttle.start, pacing.throttle.max, pacing.throttle.target), (5 * second, 60 * second, 1.0));
    }

    #[test]
    fn the_later_pause_of_a_host_holds_until_it_is_over() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let slot = SlotKey("a.test".into());
        let mut pauses = Pauses::default();
        assert!(pauses.pause(&slot, now + 2 * second, now));
        assert!(!pauses.pause(&slot, now + second, now));
        assert_eq!(pauses.left(&slot, now + second), Some(second));
        assert_eq!(pauses.left(&slot, now + 2 * second), None);
        assert!(pauses.0.is_empty());
    }
}
