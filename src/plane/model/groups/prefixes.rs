//! Prefixes, sorted: the longest one of a path is found by one binary search and a walk up.

/// The prefixes of a client.
#[derive(Debug, Default)]
pub(super) struct Prefixes(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    prefix: Box<str>,
    rank: u32,
    /// Index of the longest other entry that this one starts with.
    shorter: Option<usize>,
}

impl Prefixes {
    /// Of equal prefixes the one with the lower rank stays.
    pub(super) fn new(mut prefixes: Vec<(Box<str>, u32)>) -> Self {
        prefixes.sort();
        prefixes.dedup_by(|later, earlier| later.0 == earlier.0);
        let mut entries: Vec<Entry> = Vec::with_capacity(prefixes.len());
        for (prefix, rank) in prefixes {
            let last = entries.len().checked_sub(1);
            let shorter = walk(&entries, last, &prefix);
            entries.push(Entry { prefix, rank, shorter });
        }
        Self(entries)
    }

    /// The rank of the longest prefix of `path`.
    pub(super) fn find(&self, path: &str) -> Option<u32> {
        // Everything sorted between a prefix of the path and the path itself starts with that prefix.
        let behind = self.0.partition_point(|entry| &*entry.prefix <= path);
        walk(&self.0, behind.checked_sub(1), path).and_then(|index| self.0.get(index)).map(|entry| entry.rank)
    }
}

/// The first entry, from `start` towards the shorter, that `text` starts with.
fn walk(entries: &[Entry], start: Option<usize>, text: &str) -> Option<usize> {
    let mut at = start;
    while let Some(index) = at {
        let entry = entries.get(index)?;
        if text.starts_with(&*entry.prefix) {
            return Some(index);
        }
        at = entry.shorter;
    }
    None
}
