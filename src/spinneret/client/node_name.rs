//! The name of a node: what the control plane counts its calls under.

/// The longest name.
const LONGEST: usize = 128;
/// A node that has no name.
const UNKNOWN: &str = "unknown";

/// The name as it is sent: each run of characters outside `A-Za-z0-9._:@-` becomes one `-`, those at the ends go, what is
/// beyond 128 characters is cut off, and nothing becomes `unknown`.
pub(super) fn sanitised(name: &str) -> String {
    let mut clean = String::with_capacity(name.len().min(LONGEST));
    let mut is_in_run = false;
    for c in name.trim().chars() {
        let is_kept = c.is_ascii_alphanumeric() || "._:@-".contains(c);
        if is_kept {
            clean.push(c);
        } else if !is_in_run {
            clean.push('-');
        }
        is_in_run = !is_kept;
    }
    let mut clean = clean.trim_matches('-').to_owned();
    clean.truncate(LONGEST);
    if clean.is_empty() { UNKNOWN.to_owned() } else { clean }
}

/// The name of this machine, sanitised.
pub(super) fn of_host() -> String {
    sanitised(&rustix::system::uname().nodename().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b007_a_name_is_made_fit_for_a_header() {
        for (name, clean) in [
            ("pod name/with spaces", "pod-name-with-spaces"),
            ("  ", "unknown"),
            ("", "unknown"),
            ("---", "unknown"),
            ("пример", "unknown"),
            ("a пример b", "a-b"),
            ("a\r\nX: y", "a-X:-y"),
            ("-crawl.7:a@b-", "crawl.7:a@b"),
            ("a--b", "a--b"),
        ] {
            assert_eq!(sanitised(name), clean, "{name}");
        }
        assert_eq!(sanitised(&"a".repeat(200)), "a".repeat(128));
        assert_eq!(sanitised(&format!("{}é", "a".repeat(127))), "a".repeat(127));
        assert_eq!(of_host(), sanitised(&of_host()));
    }
}
