//! Which products are awkward, and how.
//!
//! Products are cut into blocks of [`BLOCK`]; in each block a shuffle that follows from the seed hands every kind of [`Special`]
//! to exactly one product. A shop of N products therefore has at least N / BLOCK (rounded down) of each kind, and at least one of
//! each from 11 products on. Nothing is stored.

use super::dice::{Shuffle, mix};

/// How many products share one set of special ones.
pub const BLOCK: u32 = 100;

/// One redirect loop (two addresses) for this many blocks, and always one in the first.
pub const LOOP_EVERY_BLOCKS: u32 = 10;

const BLOCK_SHUFFLE: u64 = 0x0b10;

/// What is special about one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Special {
    /// The page takes [`slow_from`](super::Delays::slow_from) to [`slow_to`](super::Delays::slow_to).
    Slow,
    /// The first GET answers 503, every later one 200.
    FailsOnce,
    /// Every request answers 500.
    AlwaysFails,
    /// The first GET answers 429 with `Retry-After: 1`, every later one 200.
    RateLimited,
    /// The HTML breaks rules in ways a browser repairs.
    BrokenHtml,
    /// The page is sent as windows-1252, declared in the header or only in a `meta` element.
    Windows1252,
    /// The body is sent with `Content-Encoding: gzip`, unless the request rules it out.
    Gzip,
    /// Linked under a second address whose spellings differ in the order of the query and in the fragment only.
    ReorderedTwin,
    /// Linked under a second address that carries a session id.
    SessionTwin,
    /// Linked through an old address that redirects for good (301 or 308).
    MovedForGood,
    /// Linked through an old address that redirects for now (302 or 307).
    MovedForNow,
}

impl Special {
    /// Every kind, in the order in which the places of a block are handed out.
    pub const ALL: [Self; 11] = [
        Self::Slow,
        Self::FailsOnce,
        Self::AlwaysFails,
        Self::RateLimited,
        Self::BrokenHtml,
        Self::Windows1252,
        Self::Gzip,
        Self::ReorderedTwin,
        Self::SessionTwin,
        Self::MovedForGood,
        Self::MovedForNow,
    ];

    /// The name used in `/__truth`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::FailsOnce => "fails_once",
            Self::AlwaysFails => "always_fails",
            Self::RateLimited => "rate_limited",
            Self::BrokenHtml => "broken_html",
            Self::Windows1252 => "windows_1252",
            Self::Gzip => "gzip",
            Self::ReorderedTwin => "reordered_twin",
            Self::SessionTwin => "session_twin",
            Self::MovedForGood => "moved_for_good",
            Self::MovedForNow => "moved_for_now",
        }
    }
}

/// The special products of one shop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpecialPlan {
    seed: u64,
    products: u32,
}

impl SpecialPlan {
    pub(crate) const fn new(seed: u64, products: u32) -> Self {
        Self { seed, products }
    }

    /// How many blocks there are; the last one may be smaller than the others.
    pub(crate) const fn blocks(self) -> u32 {
        self.products.div_ceil(BLOCK)
    }

    /// How many redirect loops there are.
    pub(crate) const fn loops(self) -> u32 {
        self.blocks().div_ceil(LOOP_EVERY_BLOCKS)
    }

    /// What is special about the product, if anything.
    pub(crate) fn of(self, id: u32) -> Option<Special> {
        if id == 0 || id > self.products {
            return None;
        }
        let place = id - 1;
        let rank = self.shuffle(place / BLOCK).forward(place % BLOCK);
        Special::ALL.get(rank as usize).copied()
    }

    /// The product of that kind in the block; a small last block may have none.
    pub(crate) fn find(self, block: u32, kind: Special) -> Option<u32> {
        let rank = u32::try_from(Special::ALL.iter().position(|other| *other == kind)?).ok()?;
        if rank >= self.size_of(block) {
            return None;
        }
        Some(block * BLOCK + self.shuffle(block).back(rank) + 1)
    }

    /// The redirect status of an old product address.
    pub(crate) fn moved_status(self, id: u32) -> u16 {
        let odd = mix(self.seed, BLOCK_SHUFFLE + 1, u64::from(id)) & 1 == 1;
        match (self.of(id), odd) {
            (Some(Special::MovedForNow), true) => 307,
            (Some(Special::MovedForNow), false) => 302,
            (_, true) => 308,
            (_, false) => 301,
        }
    }

    fn size_of(self, block: u32) -> u32 {
        self.products.saturating_sub(block.saturating_mul(BLOCK)).min(BLOCK)
    }

    fn shuffle(self, block: u32) -> Shuffle {
        Shuffle::new(mix(self.seed, BLOCK_SHUFFLE, u64::from(block)), BLOCK_SHUFFLE, self.size_of(block))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn every_whole_block_has_one_of_each_kind() {
        for seed in [1, 2, 77] {
            let plan = SpecialPlan::new(seed, 1_000);
            for kind in Special::ALL {
                assert_eq!((1..=1_000).filter(|id| plan.of(*id) == Some(kind)).count(), 10, "{}", kind.name());
            }
        }
    }

    #[test]
    fn finding_a_kind_agrees_with_asking_each_product() {
        for products in [1, 5, 11, 60, 105, 300] {
            let plan = SpecialPlan::new(3, products);
            for kind in Special::ALL {
                let mut found: Vec<u32> = (0..plan.blocks()).filter_map(|block| plan.find(block, kind)).collect();
                found.sort_unstable();
                let asked: Vec<u32> = (1..=products).filter(|id| plan.of(*id) == Some(kind)).collect();
                assert_eq!(found, asked);
            }
        }
    }

    #[test]
    fn products_that_do_not_exist_are_not_special() {
        let plan = SpecialPlan::new(3, 10);
        assert_eq!([plan.of(0), plan.of(11), plan.of(u32::MAX)], [None; 3]);
        assert_eq!(plan.find(u32::MAX, Special::Slow), None);
    }

    #[test]
    fn moves_for_now_and_for_good_have_their_statuses() {
        let plan = SpecialPlan::new(5, 5_000);
        let statuses = |kind| {
            (0..50).filter_map(|b| plan.find(b, kind)).map(|id| plan.moved_status(id)).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(statuses(Special::MovedForGood).into_iter().collect::<Vec<_>>(), [301, 308]);
        assert_eq!(statuses(Special::MovedForNow).into_iter().collect::<Vec<_>>(), [302, 307]);
    }
}
