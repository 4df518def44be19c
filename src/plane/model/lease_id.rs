//! Lease ids: `lse_<32 hex of a UUIDv7>_<site key in base 36>_<2 hex of a shard>` (wire contract, sections 4.1 and 22).
//!
//! The UUID's layout is RFC 9562, 5.7. Of its random part, 42 bits are thrown and 32 hide the lease's slot in its table, so
//! that an id is found without a search. An id is read back only in the spelling it was written in.

use std::fmt;
use std::sync::Arc;

use super::Ms;
use crate::dice::{Dice, scramble};

/// Longest text of an id.
const LONGEST: usize = 4 + 32 + 1 + 13 + 1 + 2;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The id of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeaseId {
    uuid: u128,
    site: u64,
    shard: u8,
}

impl LeaseId {
    /// A new id of the site with the key `site` for the lease in `slot`; its shard is one of `shards` (0 counts as 1).
    pub(crate) fn new(now: Ms, site: u64, shards: u8, slot: u32, dice: &mut Dice) -> Self {
        let thrown = dice.roll();
        let first = (now << 16) | 0x7000 | (thrown & 0x0fff);
        let second = (1 << 31) | ((thrown >> 12) & 0x3fff_ffff);
        // The bits of the throw that the UUID has no room for.
        let shard = u8::try_from((thrown >> 42) % u64::from(shards.max(1))).unwrap_or(0);
        let above = (u128::from(first) << 32) | u128::from(second);
        Self { uuid: (above << 32) | u128::from(slot ^ veil(above)), site, shard }
    }

    /// Reads an id; `None` of every text that [`Display`](fmt::Display) does not write.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("lse_")?.split('_');
        let (uuid, site, shard) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || uuid.len() != 32 || shard.len() != 2 || site.is_empty() {
            return None;
        }
        if site.len() > 1 && site.starts_with('0') {
            return None;
        }
        Some(Self {
            uuid: number(uuid, 16)?,
            site: u64::try_from(number(site, 36)?).ok()?,
            shard: u8::try_from(number(shard, 16)?).ok()?,
        })
    }

    /// The slot it was made for, or any number if it is not one of ours.
    pub(crate) const fn slot(self) -> u32 {
        self.uuid as u32 ^ veil(self.uuid >> 32)
    }

    /// The key of its site.
    pub(crate) const fn site(self) -> u64 {
        self.site
    }

    /// The shard whose reports are in order.
    pub(crate) const fn shard(self) -> u8 {
        self.shard
    }

    /// As [`Display`](fmt::Display) writes it, made at once.
    pub(crate) fn text(self) -> Arc<str> {
        let (text, length) = self.spelled();
        text.get(..length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default().into()
    }

    fn spelled(self) -> ([u8; LONGEST], usize) {
        let mut text = [0; LONGEST];
        let mut end = 0;
        let mut put = |byte: u8| {
            if let Some(place) = text.get_mut(end) {
                *place = byte;
                end += 1;
            }
        };
        b"lse_".iter().for_each(|byte| put(*byte));
        (0..32).rev().for_each(|place| put(digit((self.uuid >> (place * 4)) as u64 & 15)));
        put(b'_');
        let mut power = 1_u64;
        while self.site / power >= 36 {
            power *= 36;
        }
        while power > 0 {
            put(digit(self.site / power % 36));
            power /= 36;
        }
        put(b'_');
        put(digit(u64::from(self.shard >> 4)));
        put(digit(u64::from(self.shard & 15)));
        (text, end)
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, length) = self.spelled();
        f.write_str(text.get(..length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default())
    }
}

/// What hides the slot: neighbours do not get similar ids.
const fn veil(above: u128) -> u32 {
    scramble(above as u64) as u32
}

fn digit(value: u64) -> u8 {
    DIGITS.get(value as usize).copied().unwrap_or(b'0')
}

/// A number in lowercase digits of `base`, nothing else.
fn number(text: &str, base: u32) -> Option<u128> {
    text.bytes().try_fold(0_u128, |value, byte| {
        if byte.is_ascii_uppercase() {
            return None;
        }
        let digit = char::from(byte).to_digit(base)?;
        value.checked_mul(u128::from(base))?.checked_add(u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    const NOW: Ms = 1_790_000_000_123;

    #[test]
    fn b134_an_id_matches_the_contracts_pattern_and_is_read_back() {
        let pattern = Regex::new("^lse_[0-9a-f]{32}_[0-9a-z]+_[0-9a-f]{2}$").unwrap();
        let mut dice = Dice::new(3);
        for (site, spelled) in [(0, "_0_"), (35, "_z_"), (36, "_10_"), (46_655, "_zzz_"), (u64::MAX, "_3w5e11264sgsf_")] {
            let id = LeaseId::new(NOW, site, 16, 9, &mut dice);
            let text = id.to_string();
            assert!(pattern.is_match(&text) && text.contains(spelled) && text.len() <= LONGEST, "{text}");
            assert_eq!((LeaseId::parse(&text), &*id.text()), (Some(id), &*text));
            assert!(id.shard() < 16 && id.site() == site);
        }
    }

    #[test]
    fn b134_its_uuid_is_of_version_7_and_tells_the_time() {
        let mut dice = Dice::new(9);
        for _ in 0..100 {
            let id = uuid::Uuid::from_u128(LeaseId::new(NOW, 5, 0, 1, &mut dice).uuid);
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
            let (seconds, nanoseconds) = id.get_timestamp().unwrap().to_unix();
            assert_eq!(seconds * 1000 + u64::from(nanoseconds) / 1_000_000, NOW);
        }
    }

    #[test]
    fn b138_every_other_spelling_is_no_id() {
        let uuid = "0190aaaaaaaa7bbb8cccddddddddeeee";
        assert!(LeaseId::parse(&format!("lse_{uuid}_a_0f")).is_some());
        for text in [
            String::new(),
            "lse_".into(),
            format!("lse_{uuid}"),
            format!("lse_{uuid}_a"),
            format!("lse_{uuid}_a_0f_"),
            format!("lse_{uuid}__0f"),
            format!("lse_{uuid}_0a_0f"),
            format!("lse_{uuid}_A_0f"),
            format!("lse_{uuid}_a_0F"),
            format!("lse_{uuid}_a_+f"),
            format!("lse_{uuid}_a_g0"),
            format!("lse_{}_a_0f", &uuid[1..]),
            format!("lse_{}G_a_0f", &uuid[1..]),
            format!("LSE_{uuid}_a_0f"),
            format!("lse_{uuid}_zzzzzzzzzzzzz_0f"),
            format!("lse_{uuid}_{}_0f", "z".repeat(90)),
            format!("lse_{}é_a_0f", &uuid[2..]),
        ] {
            assert_eq!(LeaseId::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn an_id_names_its_slot_and_neighbours_differ() {
        let mut dice = Dice::new(2);
        let mut ids: Vec<LeaseId> = (0..10_000).map(|slot| LeaseId::new(NOW, 1, 16, slot, &mut dice)).collect();
        assert!(ids.iter().zip(0..).all(|(id, slot)| id.slot() == slot));
        assert_eq!(LeaseId::new(NOW, 1, 16, u32::MAX, &mut dice).slot(), u32::MAX);
        let in_place = ids.iter().zip(0_u32..).filter(|(id, slot)| id.uuid as u32 == *slot).count();
        assert!(in_place < 3, "{in_place}");
        ids.sort_unstable();
        ids.dedup_by_key(|id| id.uuid >> 32);
        assert_eq!(ids.len(), 10_000, "the rest of the id alone tells them apart");
        assert_eq!((0..16_u8).filter(|shard| ids.iter().any(|id| id.shard() == *shard)).count(), 16);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(
            uuid in any::<u128>(), site in any::<u64>(), shard in any::<u8>(), noise in "lse_[0-9a-f]{32}_[0-9a-z]{1,14}_[0-9a-g]{2}"
        ) {
            let id = LeaseId { uuid, site, shard };
            prop_assert_eq!(LeaseId::parse(&id.to_string()), Some(id));
            if let Some(read) = LeaseId::parse(&noise) {
                prop_assert_eq!(read.to_string(), noise);
            }
        }
    }
}
