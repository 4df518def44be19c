//! What crashes and rot leave behind, at random.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn any_group() -> impl Strategy<Value = Vec<Entry<'static>>> {
    let entry = (0..5u8, "[ -~]{0,90}").prop_map(|(kind, text)| match kind {
        0 => Entry::Item(text.into()),
        1 => Entry::Request(text.into()),
        2 => Entry::Log(text.into()),
        3 => Entry::Stats(text.into()),
        _ => end(text.len() as u128),
    });
    prop::collection::vec(entry, 1..5)
}

/// Writes groups, each flushed, and gives what was written in order with the ends of the groups.
fn write_groups(dir: &Path, groups: &[Vec<Entry<'static>>], segment_bytes: u64) -> (Vec<(u64, Entry<'static>)>, Vec<usize>) {
    let options = LogOptions { segment_bytes, ..options() };
    let (mut log, _) = RecordLog::open(dir, &job(), options).unwrap();
    let (mut written, mut ends) = (Vec::new(), vec![0]);
    for group in groups {
        let range = log.append_group(group).unwrap();
        log.flush_writes().unwrap();
        written.extend((range.first..=range.last).zip(group.iter().cloned()));
        ends.push(written.len());
    }
    (written, ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_write_torn_at_any_byte_leaves_whole_groups(
        groups in prop::collection::vec(any_group(), 1..12),
        segment_bytes in prop::sample::select(vec![200u64, 600, 1 << 20]),
        torn in any::<prop::sample::Index>(),
        rubbish in prop::collection::vec(prop::sample::select(vec![0u8, 255]), 0..40),
    ) {
        let dir = TempDir::new().unwrap();
        let (written, ends) = write_groups(dir.path(), &groups, segment_bytes);
        let newest = segments(dir.path()).pop().unwrap();
        let mut bytes = fs::read(&newest).unwrap();
        let keep = torn.index(bytes.len());
        bytes.truncate(keep);
        bytes.extend(&rubbish);
        fs::write(&newest, &bytes).unwrap();

        let (mut log, recovered) = open(dir.path());
        let read = all(&mut log);
        // Rubbish is not what an interrupted write leaves behind: then every record counts, whole group or not.
        prop_assert!(ends.contains(&read.len()) || !rubbish.is_empty(), "{} of {:?}", read.len(), ends);
        prop_assert_eq!(&read[..], &written[..read.len()]);
        let silent = recovered.torn.is_none() && recovered.damaged.is_empty();
        prop_assert!(!silent || rubbish.is_empty(), "rubbish went unnoticed");
        // And the log goes on from there, once and for all.
        let next = log.append_group(&[item(0)]).unwrap();
        log.flush_writes().unwrap();
        drop(log);
        let (mut log, recovered) = open(dir.path());
        prop_assert!(recovered.torn.is_none() && recovered.damaged.is_empty());
        let again = all(&mut log);
        prop_assert_eq!(again.len(), read.len() + 1);
        prop_assert_eq!(again.last(), Some(&(next.first, item(0))));
    }

    #[test]
    fn flipped_bits_never_give_a_wrong_record(
        groups in prop::collection::vec(any_group(), 1..12),
        segment_bytes in prop::sample::select(vec![300u64, 1 << 20]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..8u8), 1..4),
    ) {
        let dir = TempDir::new().unwrap();
        let (written, _) = write_groups(dir.path(), &groups, segment_bytes);
        let paths = segments(dir.path());
        let mut lost = 0;
        for (file, at, bit) in flips {
            let path = &paths[file.index(paths.len())];
            let mut bytes = fs::read(path).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            fs::write(path, bytes).unwrap();
            lost += 1;
        }
        let (mut log, recovered) = open(dir.path());
        let read = all(&mut log);
        prop_assert!(read.iter().all(|entry| written.contains(entry)));
        prop_assert!(read.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let silent = recovered.damaged.is_empty() && recovered.torn.is_none();
        prop_assert!(!silent || read.len() == written.len(), "{} flips lost silently", lost);
        let next = log.append_group(&[item(0)]).unwrap().first;
        prop_assert!(next > written.len() as u64, "a number was given out twice");
    }
}
