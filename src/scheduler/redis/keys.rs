//! Names of keys: `dragline:{JOB}:…`, the job's id between braces, so that a cluster keeps a job together.

/// Begins every key of ours.
pub(super) const ROOT: &str = "dragline:{";

/// The beginning of all keys of a job. Of its id, letters, digits, `.`, `_` and `-` stand for themselves; every other byte
/// is written as `%` and two hex digits, so that two ids never share a key.
pub(super) fn prefix(job: &str) -> String {
    let mut name = String::from(ROOT);
    for byte in job.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name.push_str("}:");
    name
}

/// The job's id of a key made by [`prefix`].
pub(super) fn job_of(key: &[u8]) -> Option<String> {
    let key = std::str::from_utf8(key).ok()?;
    let (name, _) = key.strip_prefix(ROOT)?.split_once('}')?;
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_jobs_keys_have_its_id_as_their_hash_tag() {
        assert_eq!(prefix("shop-2026.1_a"), "dragline:{shop-2026.1_a}:");
        assert_eq!(prefix("a}:b{ä%"), "dragline:{a%7D%3Ab%7B%C3%A4%25}:");
    }

    proptest! {
        #[test]
        fn an_id_comes_back_from_its_keys(job in ".{0,20}", rest in ".{0,8}") {
            prop_assert_eq!(job_of(format!("{}{rest}", prefix(&job)).as_bytes()), Some(job));
        }
    }
}
