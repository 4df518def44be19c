//! A set of small numbers, one bit each, that finds its next member without walking the gaps.
//!
//! Three levels of words: a bit of the upper one says that the word below is not empty. Never shrinks.

/// Levels of words; the topmost is walked.
const LEVELS: usize = 3;

/// The set.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    levels: [Vec<u64>; LEVELS],
    len: usize,
}

impl Bits {
    /// How many members there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether `member` is in the set.
    pub(super) fn contains(&self, member: u32) -> bool {
        let [words, ..] = &self.levels;
        words.get(member as usize >> 6).is_some_and(|word| word & bit(member as usize) != 0)
    }

    /// Puts `member` in; `false` when it was in.
    pub(super) fn insert(&mut self, member: u32) -> bool {
        if self.contains(member) {
            return false;
        }
        let mut place = member as usize;
        for words in &mut self.levels {
            if words.len() <= place >> 6 {
                words.resize((place >> 6) + 1, 0);
            }
            if let Some(word) = words.get_mut(place >> 6) {
                *word |= bit(place);
            }
            place >>= 6;
        }
        self.len += 1;
        true
    }

    /// Takes `member` out; `false` when it was not in.
    pub(super) fn remove(&mut self, member: u32) -> bool {
        if !self.contains(member) {
            return false;
        }
        let mut place = member as usize;
        for words in &mut self.levels {
            if let Some(word) = words.get_mut(place >> 6) {
                *word &= !bit(place);
                if *word != 0 {
                    break;
                }
            }
            place >>= 6;
        }
        self.len -= 1;
        true
    }

    /// The lowest member that is not below `from`.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let mut place = from as usize;
        let mut level = 0;
        // Up, until a word has something at or after the place.
        loop {
            let words = self.levels.get(level)?;
            let first = words.get(place >> 6)? & (u64::MAX << (place & 63));
            if first != 0 {
                place = (place & !63) | first.trailing_zeros() as usize;
                break;
            }
            place = (place >> 6) + 1;
            level += 1;
            if level == LEVELS {
                let (skipped, word) = self.levels.last()?.iter().enumerate().skip(place).find(|(_, word)| **word != 0)?;
                place = (skipped << 6) | word.trailing_zeros() as usize;
                level = LEVELS - 1;
                break;
            }
        }
        // Down, along the lowest bits.
        for words in self.levels.get(..level)?.iter().rev() {
            place = (place << 6) | words.get(place)?.trailing_zeros() as usize;
        }
        u32::try_from(place).ok()
    }
}

const fn bit(place: usize) -> u64 {
    1 << (place & 63)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_beyond_the_first_word_of_every_level_are_found() {
        let members = [0_u32, 63, 64, 4_095, 4_096, 262_143, 262_144, 900_000];
        let mut bits = Bits::default();
        assert!(members.iter().all(|member| bits.insert(*member)));
        assert!(members.iter().all(|member| !bits.insert(*member)));
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(member) = bits.next(from) {
            found.push(member);
            from = member + 1;
        }
        assert_eq!(found, members);
        assert!(members.iter().all(|member| bits.remove(*member)));
        assert_eq!((bits.next(0), bits.len()), (None, 0));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(steps in proptest::collection::vec((any::<bool>(), 0_u32..600_000, 0_u32..600_000), 1..200)) {
            let (mut bits, mut model) = (Bits::default(), BTreeSet::new());
            for (add, member, from) in steps {
                // Half of the numbers are close together, so that words fill and empty.
                let member = if member % 2 == 0 { member % 130 } else { member };
                if add {
                    prop_assert_eq!(bits.insert(member), model.insert(member));
                } else {
                    prop_assert_eq!(bits.remove(member), model.remove(&member));
                }
                prop_assert_eq!(bits.len(), model.len());
                for from in [from, from % 130] {
                    prop_assert_eq!(bits.next(from), model.range(from..).next().copied());
                }
            }
        }
    }
}
