//! What operators do: pausing sites, opening and closing breakers, publishing; and the `_runtime` items that say so (wire
//! contract, sections 28 to 30).

use super::Plane;
use super::site::{Pause, Site};
use crate::plane::model::Ms;
use crate::plane::model::breaker::Phase;
use crate::plane::model::config_center::{Format, ItemName, Published};
use crate::plane::model::refusal::Refusal;
use crate::plane::model::runtime_items::{GroupNow, NotClosed, PauseNow, Raise, SiteNow};

/// Longest reason, characters.
const REASON: usize = 1_024;

impl Plane {
    /// Pauses a site, or changes the reason of its pause; answers whether anything changed.
    ///
    /// # Errors
    /// `site_unknown`, `invalid_argument` for a reason of more than 1,024 characters.
    pub(crate) fn pause(&mut self, site: &str, reason: &str, now: Ms) -> Result<bool, Refusal> {
        check_reason(reason)?;
        let place = self.named_mut(site)?;
        if place.pause.as_ref().is_some_and(|pause| *pause.reason == *reason) {
            return Ok(false);
        }
        let since = place.pause.as_ref().map_or(now, |pause| pause.since);
        place.pause = Some(Pause { reason: reason.into(), since });
        self.raise(Raise::Both);
        Ok(true)
    }

    /// Ends a site's pause; answers whether it was paused.
    ///
    /// # Errors
    /// `site_unknown`.
    pub(crate) fn resume(&mut self, site: &str) -> Result<bool, Refusal> {
        let was_paused = self.named_mut(site)?.pause.take().is_some();
        if was_paused {
            self.raise(Raise::Both);
        }
        Ok(was_paused)
    }

    /// Opens a breaker by hand, for so many milliseconds or until it is closed.
    ///
    /// # Errors
    /// `site_unknown`, `client_unknown`, `endpoint_group_unknown`, `invalid_argument` for a reason of more than 1,024
    /// characters.
    pub(crate) fn open_breaker(
        &mut self,
        site: &str,
        client: &str,
        group: &str,
        duration: Option<Ms>,
        reason: &str,
        now: Ms,
    ) -> Result<(), Refusal> {
        check_reason(reason)?;
        let (place, index) = self.group_named(site, client, group)?;
        if let Some(group) = place.group_mut(index) {
            let transition = group.breaker.open_manually(duration, reason, now);
            place.moved(index, &transition, now);
        }
        self.raise_moved();
        Ok(())
    }

    /// Closes a breaker by hand, without probes; answers whether it was not closed.
    ///
    /// # Errors
    /// As [`Plane::open_breaker`].
    pub(crate) fn close_breaker(
        &mut self,
        site: &str,
        client: &str,
        group: &str,
        reason: &str,
        now: Ms,
    ) -> Result<bool, Refusal> {
        check_reason(reason)?;
        let (place, index) = self.group_named(site, client, group)?;
        let transition = place.group_mut(index).and_then(|group| group.breaker.close_manually(reason, now));
        if let Some(transition) = &transition {
            place.moved(index, transition, now);
        }
        self.raise_moved();
        Ok(transition.is_some())
    }

    /// Publishes a config item; whose watches that ends is with those of [`Plane::take_woken`].
    ///
    /// # Errors
    /// As [`ConfigCenter::publish`](crate::plane::model::config_center::ConfigCenter::publish).
    pub(crate) fn publish(&mut self, name: ItemName<'_>, format: Format, content: &str, now: Ms) -> Result<i32, Refusal> {
        let Published { version, mut woken } = self.center.publish(name, format, content, now)?;
        self.woken.append(&mut woken);
        Ok(version)
    }

    /// Renders `_runtime` anew if a breaker moved.
    pub(super) fn raise_moved(&mut self) {
        // Every site is asked, so that one call raises once.
        let moved = self.sites.iter_mut().filter_map(|site| std::mem::take(&mut site.has_moved).then_some(())).count();
        if moved > 0 {
            self.raise(Raise::Breakers);
        }
    }

    pub(super) fn raise(&mut self, what: Raise) {
        let sites = self
            .sites
            .iter()
            .enumerate()
            .filter(|(key, site)| self.by_name.get(&site.name).is_some_and(|named| *named as usize == *key));
        let now: Vec<SiteNow<'_>> = sites.map(|(_, site)| site.as_it_is()).collect();
        let mut woken = self.center.raise(what, &now);
        self.woken.append(&mut woken);
    }

    pub(super) fn named_mut(&mut self, site: &str) -> Result<&mut Site, Refusal> {
        let key = self.by_name.get(site).copied();
        key.and_then(|key| self.sites.get_mut(key as usize)).ok_or_else(|| Refusal::site_unknown(site))
    }

    fn group_named(&mut self, site: &str, client: &str, group: &str) -> Result<(&mut Site, u32), Refusal> {
        let place = self.named_mut(site)?;
        let found = place.client(client).and_then(|client| place.clients.get(client as usize));
        let found = found.ok_or_else(|| Refusal::client_unknown(site, client))?;
        let index = found.routes.index_of(group).and_then(|index| found.groups.get(index as usize)).copied();
        let index = index.ok_or_else(|| Refusal::endpoint_group_unknown(site, client, group))?;
        Ok((place, index))
    }
}

impl Site {
    /// What `_runtime` says of it.
    pub(super) fn as_it_is(&self) -> SiteNow<'_> {
        let of_clients = self.clients.iter().flat_map(|client| client.groups.iter().map(|group| (&client.name, *group)));
        let groups = of_clients.filter_map(|(client, group)| {
            let group = self.group(group)?;
            let state = match group.breaker.phase() {
                Phase::Closed => return None,
                Phase::Open(until) => NotClosed::Open(until),
                Phase::HalfOpen => NotClosed::HalfOpen,
            };
            let (manual, reason) = (group.breaker.is_manual(), &**group.breaker.reason());
            Some(GroupNow { client, group: &group.name, state, manual, reason })
        });
        SiteNow {
            name: &self.name,
            pause: self.pause.as_ref().map(|pause| PauseNow { reason: &pause.reason, since: pause.since }),
            groups: groups.collect(),
        }
    }
}

fn check_reason(reason: &str) -> Result<(), Refusal> {
    match reason.chars().nth(REASON) {
        None => Ok(()),
        Some(_) => Err(Refusal::invalid_argument(format!("a reason has at most {REASON} characters; shorten it"))),
    }
}
