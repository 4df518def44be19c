//! What is known of a proxy everywhere, and what a policy asks of it (wire contract, section 23).

use crate::plane::model::Ms;

/// A kind, tag, provider or region, as the caller numbers them; 0 is the empty text.
pub(crate) type Symbol = u32;

/// A proxy of the catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxyTraits {
    /// Neither disabled, dead, banned, quarantined nor retired.
    pub(crate) active: bool,
    pub(crate) kind: Symbol,
    pub(crate) provider: Symbol,
    pub(crate) region: Symbol,
    pub(crate) tags: Box<[Symbol]>,
    /// Leases at once, per site; 1 by default.
    pub(crate) max_concurrency: u32,
    /// Until when it cools down everywhere.
    pub(crate) cooldown: Ms,
}

/// What a policy asks for; an empty list asks nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxyFilter {
    /// Any of these.
    pub(crate) kinds: Box<[Symbol]>,
    /// All of these.
    pub(crate) tags: Box<[Symbol]>,
    /// Any of these.
    pub(crate) providers: Box<[Symbol]>,
    /// Any of these.
    pub(crate) regions: Box<[Symbol]>,
    /// The identity's region exactly, the empty one included: mode `region_match`, or the flag of that name.
    pub(crate) same_region: bool,
}

impl ProxyFilter {
    /// Whether a proxy fits an identity of `region`.
    pub(crate) fn admits(&self, proxy: &ProxyTraits, region: Symbol) -> bool {
        let any = |wanted: &[Symbol], has: Symbol| wanted.is_empty() || wanted.contains(&has);
        any(&self.kinds, proxy.kind)
            && any(&self.providers, proxy.provider)
            && any(&self.regions, proxy.region)
            && self.tags.iter().all(|tag| proxy.tags.contains(tag))
            && (!self.same_region || proxy.region == region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b148_kinds_providers_and_regions_are_any_of_tags_all_of() {
        let proxy = ProxyTraits { kind: 1, provider: 2, region: 3, tags: [4, 5].into(), ..ProxyTraits::default() };
        let list = |symbols: &[Symbol]| symbols.into();
        let none = ProxyFilter::default();
        for (filter, fits) in [
            (none.clone(), true),
            (ProxyFilter { kinds: list(&[9, 1]), ..none.clone() }, true),
            (ProxyFilter { kinds: list(&[9]), ..none.clone() }, false),
            (ProxyFilter { providers: list(&[2]), ..none.clone() }, true),
            (ProxyFilter { providers: list(&[1, 3]), ..none.clone() }, false),
            (ProxyFilter { regions: list(&[3, 8]), ..none.clone() }, true),
            (ProxyFilter { regions: list(&[0]), ..none.clone() }, false),
            (ProxyFilter { tags: list(&[5]), ..none.clone() }, true),
            (ProxyFilter { tags: list(&[5, 4]), ..none.clone() }, true),
            (ProxyFilter { tags: list(&[4, 6]), ..none.clone() }, false),
            (ProxyFilter { kinds: list(&[1]), tags: list(&[6]), ..none }, false),
        ] {
            assert_eq!(filter.admits(&proxy, 0), fits, "{filter:?}");
        }
    }

    #[test]
    fn b148_an_empty_region_matches_only_an_empty_region() {
        let filter = ProxyFilter { same_region: true, ..ProxyFilter::default() };
        let of = |region| ProxyTraits { region, ..ProxyTraits::default() };
        for (proxy, identity, fits) in [(3, 3, true), (3, 4, false), (0, 3, false), (3, 0, false), (0, 0, true)] {
            assert_eq!(filter.admits(&of(proxy), identity), fits, "{proxy} {identity}");
        }
    }
}
