//! A hasher for keys that are hashes already.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes [`Fold`]s.
pub(super) type Folding = BuildHasherDefault<Fold>;

/// Folds 128 bits to 64.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(crate::dice::STEP);
        }
    }

    fn write_u128(&mut self, bits: u128) {
        self.0 = bits as u64 ^ (bits >> 64) as u64;
    }
}
