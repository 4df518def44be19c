//! Cross attribution: whether it was the proxy or the identity, told by the company they kept (wire contract, section 26).
//!
//! A proxy through which several identities were turned away is to blame; an identity turned away through several proxies
//! is. Remembers only the latest partners of each, which is all a threshold can ask for.

use super::counts::Shelf;
use super::{Blame, Ms, Outcome};

/// How many identities, and how many proxies, one site remembers partners of.
const MOST: usize = 1 << 17;

/// No threshold is above this; it bounds the partners remembered.
const HIGHEST_THRESHOLD: u32 = 1_024;

/// When company tells; the defaults are the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrossNumbers {
    pub(crate) enabled: bool,
    /// How long company is remembered, in milliseconds.
    pub(crate) window: Ms,
    /// So many identities on one proxy speak against the proxy.
    pub(crate) identities: u32,
    /// So many proxies of one identity speak against the identity.
    pub(crate) proxies: u32,
}

impl Default for CrossNumbers {
    fn default() -> Self {
        Self { enabled: true, window: 600_000, identities: 3, proxies: 3 }
    }
}

/// Who was seen with whom when turned away, for one site.
#[derive(Debug, Clone)]
pub(crate) struct Cross {
    on_proxy: Shelf<u32, Company>,
    of_identity: Shelf<u32, Company>,
    /// The most any policy of the site asks for, so that one policy cannot make another forget.
    keep: usize,
    window: Ms,
}

impl Cross {
    pub(crate) const fn new() -> Self {
        Self { on_proxy: Shelf::new(MOST), of_identity: Shelf::new(MOST), keep: 1, window: 0 }
    }

    /// Takes in a report that is on time, and says who is to blame for it. Without a proxy, and for outcomes that are no
    /// risk, the blame stays.
    pub(crate) fn attribute(
        &mut self,
        outcome: Outcome,
        blame: Blame,
        identity: u32,
        proxy: Option<u32>,
        now: Ms,
        numbers: &CrossNumbers,
    ) -> Blame {
        let Some(proxy) = proxy.filter(|_| numbers.enabled && outcome.is_risk()) else { return blame };
        let needed = numbers.identities.max(numbers.proxies).clamp(1, HIGHEST_THRESHOLD);
        self.keep = self.keep.max(needed as usize);
        self.window = self.window.max(numbers.window);
        let (keep, longest) = (self.keep, self.window);

        let company = self.on_proxy.entry(proxy, |company| company.is_over(now, longest));
        company.meet(identity, now, keep);
        let identities = company.within(now, numbers.window);
        let company = self.of_identity.entry(identity, |company| company.is_over(now, longest));
        company.meet(proxy, now, keep);
        let proxies = company.within(now, numbers.window);

        let many_proxies = proxies >= numbers.proxies.min(HIGHEST_THRESHOLD);
        if identities >= numbers.identities.min(HIGHEST_THRESHOLD) && !many_proxies {
            return Blame::Proxy;
        }
        match blame {
            Blame::Proxy | Blame::Both if many_proxies => Blame::Both,
            _ if many_proxies => Blame::Identity,
            _ => blame,
        }
    }
}

/// The latest partners of one identity or proxy, the latest last.
#[derive(Debug, Clone, Default)]
struct Company(Vec<(u32, Ms)>);

impl Company {
    fn meet(&mut self, partner: u32, now: Ms, keep: usize) {
        self.0.retain(|(other, _)| *other != partner);
        let now = self.0.last().map_or(now, |(_, last)| now.max(*last));
        self.0.push((partner, now));
        let surplus = self.0.len().saturating_sub(keep);
        self.0.drain(..surplus);
    }

    fn within(&self, now: Ms, window: Ms) -> u32 {
        self.0.iter().rev().take_while(|(_, at)| now.saturating_sub(*at) <= window).count() as u32
    }

    fn is_over(&self, now: Ms, window: Ms) -> bool {
        self.within(now, window) == 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const MINUTE: Ms = 60_000;

    /// Attributes a row of rate limits with the contract's defaults, a second apart.
    fn blames(pairs: &[(u32, u32)]) -> Vec<Blame> {
        let mut cross = Cross::new();
        let numbers = CrossNumbers::default();
        (pairs.iter().zip(0..))
            .map(|((identity, proxy), second)| {
                cross.attribute(Outcome::RateLimited, Blame::Both, *identity, Some(*proxy), second * 1_000, &numbers)
            })
            .collect()
    }

    #[test]
    fn b162_three_identities_limited_through_one_proxy_blame_the_proxy() {
        assert_eq!(blames(&[(1, 9), (2, 9), (3, 9)]), [Blame::Both, Blame::Both, Blame::Proxy]);
        assert_eq!(blames(&[(1, 9), (1, 9), (2, 9)])[2], Blame::Both);
    }

    #[test]
    fn b162_one_identity_limited_through_three_proxies_is_blamed() {
        assert_eq!(blames(&[(1, 7), (1, 8), (1, 9)]), [Blame::Both; 3]);
        let (mut cross, numbers) = (Cross::new(), CrossNumbers::default());
        for (proxy, before, expected) in [
            (1, Blame::Proxy, Blame::Proxy),
            (2, Blame::Nobody, Blame::Nobody),
            (3, Blame::Proxy, Blame::Both),
            (4, Blame::Nobody, Blame::Identity),
            (5, Blame::Identity, Blame::Identity),
        ] {
            assert_eq!(cross.attribute(Outcome::Captcha, before, 1, Some(proxy), 5, &numbers), expected, "{proxy}");
        }
    }

    #[test]
    fn both_thresholds_reached_keep_the_identity_to_blame() {
        let pairs = [(1, 7), (1, 8), (2, 9), (3, 9), (1, 9)];
        assert_eq!(blames(&pairs)[4], Blame::Both);
    }

    #[test]
    fn company_is_forgotten_after_the_window() {
        let (mut cross, numbers) = (Cross::new(), CrossNumbers::default());
        let mut limited = |identity, now| cross.attribute(Outcome::RateLimited, Blame::Both, identity, Some(9), now, &numbers);
        limited(1, 0);
        limited(2, MINUTE);
        assert_eq!(limited(3, 10 * MINUTE + 1), Blame::Both);
        assert_eq!(limited(4, 11 * MINUTE), Blame::Proxy);
    }

    #[test]
    fn outcomes_without_risk_and_requests_without_a_proxy_are_not_counted() {
        let (mut cross, numbers) = (Cross::new(), CrossNumbers::default());
        for identity in 0..9 {
            assert_eq!(cross.attribute(Outcome::Empty, Blame::Identity, identity, Some(9), 5, &numbers), Blame::Identity);
            assert_eq!(cross.attribute(Outcome::Captcha, Blame::Identity, identity, None, 5, &numbers), Blame::Identity);
        }
        let off = CrossNumbers { enabled: false, ..numbers };
        for identity in 0..9 {
            assert_eq!(cross.attribute(Outcome::Captcha, Blame::Identity, identity, Some(9), 5, &off), Blame::Identity);
        }
        assert_eq!((cross.on_proxy.len(), cross.of_identity.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn attribution_agrees_with_a_list_of_all_reports(
            reports in prop::collection::vec((0_u32..6, 0_u32..6, 0_u64..3 * MINUTE), 1..150),
            identities in 1_u32..5, proxies in 1_u32..5,
        ) {
            let (mut cross, mut seen, mut now) = (Cross::new(), Vec::new(), 1_000_000_000);
            let numbers = CrossNumbers { identities, proxies, ..CrossNumbers::default() };
            for (identity, proxy, pause) in reports {
                now += pause;
                seen.push((identity, proxy, now));
                let fresh = || seen.iter().filter(|(_, _, at)| now - at <= 10 * MINUTE);
                let on_proxy: BTreeSet<u32> = fresh().filter(|(_, p, _)| *p == proxy).map(|(i, _, _)| *i).collect();
                let of_identity: BTreeSet<u32> = fresh().filter(|(i, _, _)| *i == identity).map(|(_, p, _)| *p).collect();
                let expected = match (on_proxy.len() as u32 >= identities, of_identity.len() as u32 >= proxies) {
                    (true, false) => Blame::Proxy,
                    (_, true) => Blame::Identity,
                    (false, false) => Blame::Identity,
                };
                let blame = cross.attribute(Outcome::Captcha, Blame::Identity, identity, Some(proxy), now, &numbers);
                prop_assert_eq!(blame, expected);
            }
        }
    }
}
