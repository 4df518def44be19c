//! File descriptors: each connection takes one, and the system gives a process few unless it asks for more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Those for everything but connections: the store, the log, files that are read.
const OTHERS: u64 = 64;

/// Asks for enough of them; answers for how many connections there are enough.
pub(crate) fn enough_for(connections: usize) -> usize {
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // No limit is `None`.
    let Some(soft) = current.filter(|soft| *soft < wanted) else { return connections };
    let raised = maximum.map_or(wanted, |hard| hard.min(wanted)).max(soft);
    let got = if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() { raised } else { soft };
    usize::try_from(got.saturating_sub(OTHERS)).unwrap_or(usize::MAX).clamp(1, connections)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn what_is_asked_for_is_given_within_the_hard_limit() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(enough_for(100), 100);
        let got = enough_for(2_000);
        assert!(got == 2_000 || (got as u64) + OTHERS == hard, "{got} of {hard}");
        assert!(getrlimit(Resource::Nofile).current.is_none_or(|soft| soft >= got as u64 + OTHERS));
    }
}
