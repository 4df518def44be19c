//! Rescue from a database of which some blocks cannot be read: what can be is copied to a new one.
//!
//! A damaged block would fail every rewrite of its table, in the background, for ever. The old database is kept beside the
//! new one; what is missing in the new one is found and told by the opening that follows.

use std::path::Path;

use super::base::{Base, Batch};
use super::error::DiskError;
use super::rows::Space;

/// Bytes of rows copied in one batch.
const BATCH_BYTES: usize = 256 << 10;

/// Copies what can be read of the rows of `from` to a new database at `to`.
pub(super) fn copy(owner: &Path, from: &Base, to: &Path) -> Result<(), DiskError> {
    let mut into = Base::open(owner, to)?;
    let mut batch = Batch::default();
    let mut bytes = 0;
    for space in Space::ALL {
        for (key, value) in Readable::new(from, space) {
            bytes += key.len() + value.len();
            batch.set(space, &key, &*value);
            if bytes > BATCH_BYTES {
                into.write(&batch, false)?;
                (batch, bytes) = (Batch::default(), 0);
            }
        }
    }
    into.write(&batch, true)?;
    into.settle_down()
}

/// The rows of a space that can be read.
struct Readable<'a> {
    base: &'a Base,
    space: Space,
    rows: Box<dyn Iterator<Item = Result<(fjall::Slice, fjall::Slice), DiskError>> + 'a>,
    /// The last key read, or the first there may be.
    last: Vec<u8>,
}

impl<'a> Readable<'a> {
    fn new(base: &'a Base, space: Space) -> Self {
        let width = match space {
            Space::Jobs | Space::Seen => 8,
            Space::Ended => 9,
            Space::Children | Space::Meta => 16,
        };
        Self { base, space, rows: Box::new(base.scan(space, &[])), last: vec![0; width] }
    }

    /// Goes on behind what cannot be read: at the first key from which on a row can be.
    fn skip(&mut self) -> bool {
        let can_read = |steps: u128| {
            let from = ahead(&self.last, steps)?;
            Some(self.base.scan(self.space, &from).next().is_none_or(|row| row.is_ok()))
        };
        // Wider and wider steps, then closer and closer ones.
        let mut bad = 0;
        let mut good = 1;
        loop {
            match can_read(good) {
                Some(true) => break,
                Some(false) if good < 1 << 126 => (bad, good) = (good, good * 2),
                _ => return false,
            }
        }
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if can_read(middle) == Some(true) { good = middle } else { bad = middle }
        }
        let Some(from) = ahead(&self.last, good) else {
            return false;
        };
        self.rows = Box::new(self.base.scan(self.space, &from));
        self.last = from;
        true
    }
}

impl Iterator for Readable<'_> {
    type Item = (fjall::Slice, fjall::Slice);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.rows.next()? {
                Ok((key, value)) => {
                    self.last = key.to_vec();
                    return Some((key, value));
                }
                Err(_) if self.skip() => {}
                Err(_) => return None,
            }
        }
    }
}

/// The key that comes `steps` after `key`, both read as numbers of at most sixteen bytes; none after the last.
fn ahead(key: &[u8], steps: u128) -> Option<Vec<u8>> {
    let width = key.len().min(16);
    let mut number = [0; 16];
    let (_, tail) = number.split_at_mut(16 - width);
    tail.copy_from_slice(key.get(..width)?);
    let next = u128::from_be_bytes(number).checked_add(steps)?;
    if width < 16 && next >> (8 * width) != 0 {
        return None;
    }
    next.to_be_bytes().get(16 - width..).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_as_numbers_of_their_width() {
        assert_eq!(ahead(&[0, 255], 1), Some(vec![1, 0]));
        assert_eq!(ahead(&[255, 255], 1), None);
        assert_eq!(ahead(&[255; 16], 1), None);
        assert_eq!(ahead(&[0; 24], 1), Some(vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(ahead(b"gate a.b", 2), Some(b"gate a.d".to_vec()));
    }
}
