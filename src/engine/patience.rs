//! Patience: for how long a site has granted nothing, on a clock that stands still while the whole plane is away.
//!
//! Pure. A plane that answers nobody says nothing of any site; how long that may last is the broker's business.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::broker::message::Refused;
use crate::plane::RefusalKind;

/// Sites that refuse, since when.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: HashMap<Arc<str>, Since>,
    /// How long the plane was away in all, before the present absence.
    away: Duration,
    away_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Since {
    at: Instant,
    /// How long the plane had been away by then.
    away: Duration,
    /// The reason of the last refusal.
    why: RefusalKind,
}

impl Patience {
    /// Whether every site grants.
    pub(super) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// Sites that refuse, since when, and why the last time.
    pub(super) fn sites(&self) -> impl Iterator<Item = (&str, Instant, RefusalKind)> {
        self.since.iter().map(|(site, since)| (&**site, since.at, since.why))
    }

    /// The site granted a lease.
    pub(super) fn granted(&mut self, site: &str, now: Instant) {
        self.is_there(now);
        self.since.remove(site);
    }

    /// The site refused; for how long it has granted nothing, `None` where that says nothing of the site itself.
    pub(super) fn refused(&mut self, site: &Arc<str>, refused: &Refused, now: Instant) -> Option<Duration> {
        let is_away = matches!(refused.refusal.why, RefusalKind::Unreachable | RefusalKind::Unanswered);
        // What a gate holds was not asked: nothing new is known of the plane.
        if !refused.is_held {
            if is_away {
                self.away_since.get_or_insert(now);
            } else {
                self.is_there(now);
            }
        }
        let away = self.away + self.away_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let why = refused.refusal.why;
        let since = self.since.entry(site.clone()).or_insert(Since { at: now, away, why });
        since.why = why;
        let present = now.saturating_duration_since(since.at).saturating_sub(away.saturating_sub(since.away));
        (!is_away).then_some(present)
    }

    fn is_there(&mut self, now: Instant) {
        if let Some(since) = self.away_since.take() {
            self.away += now.saturating_duration_since(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ticket::Tag;
    use crate::plane::Refusal;

    const SECOND: Duration = Duration::from_secs(1);

    fn refused(why: RefusalKind, is_held: bool) -> Refused {
        let refusal = Refusal { why, retry_after: None, message: String::new() };
        Refused { tag: Tag { ticket: 1, epoch: 0 }, refusal, wait: Duration::ZERO, is_held }
    }

    #[test]
    fn a_grant_begins_the_count_anew() {
        let (start, mut patience) = (Instant::now(), Patience::default());
        let (site, no) = (Arc::from("shop"), refused(RefusalKind::NoIdentity, false));
        assert_eq!(patience.refused(&site, &no, start), Some(Duration::ZERO));
        assert_eq!(patience.refused(&site, &no, start + 9 * SECOND), Some(9 * SECOND));
        patience.granted("other", start + 9 * SECOND);
        let sites: Vec<_> = patience.sites().map(|(site, _, why)| (site, why)).collect();
        assert_eq!(sites, [("shop", RefusalKind::NoIdentity)]);
        patience.granted("shop", start + 10 * SECOND);
        assert!(patience.is_empty());
        assert_eq!(patience.refused(&site, &no, start + 11 * SECOND), Some(Duration::ZERO));
    }

    #[test]
    fn time_in_which_the_plane_is_away_does_not_count() {
        for away in [RefusalKind::Unreachable, RefusalKind::Unanswered] {
            let (start, mut patience) = (Instant::now(), Patience::default());
            let site = Arc::from("shop");
            let (no, away) = (refused(RefusalKind::SitePaused, false), refused(away, false));
            let held = refused(RefusalKind::SitePaused, true);
            assert_eq!(patience.refused(&site, &no, start), Some(Duration::ZERO));
            assert_eq!(patience.refused(&site, &away, start + 10 * SECOND), None);
            // A gate that holds still names the site's own reason.
            assert_eq!(patience.refused(&site, &held, start + 1000 * SECOND), Some(10 * SECOND));
            assert_eq!(patience.refused(&site, &away, start + 2000 * SECOND), None);
            assert_eq!(patience.refused(&site, &no, start + 3000 * SECOND), Some(10 * SECOND));
            assert_eq!(patience.refused(&site, &held, start + 3005 * SECOND), Some(15 * SECOND));
        }
    }

    #[test]
    fn a_site_that_refuses_first_while_the_plane_is_away_counts_from_its_return() {
        let (start, mut patience) = (Instant::now(), Patience::default());
        let (one, two) = (Arc::from("one"), Arc::from("two"));
        patience.refused(&one, &refused(RefusalKind::Unreachable, false), start);
        patience.refused(&two, &refused(RefusalKind::NoProxy, true), start + 50 * SECOND);
        patience.granted("one", start + 100 * SECOND);
        let no = refused(RefusalKind::NoProxy, false);
        assert_eq!(patience.refused(&two, &no, start + 107 * SECOND), Some(7 * SECOND));
    }
}
