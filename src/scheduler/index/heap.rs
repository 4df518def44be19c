//! What things cost on the heap, so that a bound in bytes means something.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Tables and sets by id or seen key.
pub(crate) type KeyMap<T> = HashMap<u128, T, KeyHash>;
pub(crate) type KeySet = HashSet<u128, KeyHash>;
pub(crate) type KeyHash = BuildHasherDefault<Folded>;

/// Ids and seen keys are hashes already: they are folded, not hashed again.
#[derive(Debug, Default)]
pub(crate) struct Folded(u64);

/// What an allocation of `bytes` takes with its header and rounding, as common allocators do it.
pub(crate) const fn allocation(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=24 => 32,
        _ => (bytes + 8).next_multiple_of(16),
    }
}

/// What a hash table takes that holds up to `capacity` entries of `entry` bytes: a power of two of places, of which
/// seven eighths are used, with a byte of control each.
pub(crate) const fn table(capacity: usize, entry: usize) -> usize {
    match capacity {
        0 => 0,
        _ => allocation((capacity.saturating_mul(8) / 7).next_power_of_two() * (entry + 1) + 16),
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "both halves are folded into one")]
    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64 ^ key as u64;
    }
}
