//! The policies a signal policy extends, oldest first (wire contract, section 25): their rules come before its own.

use super::error::PolicyError;
use super::head::Kind;
use super::read::label;
use super::signal::SignalPolicy;

/// Most policies above one.
const MAX_PARENTS: usize = 5;

/// The policy and all above it, the oldest first and the policy itself last. `find` knows the built-in policy as well.
///
/// # Errors
///
/// A parent that does not exist, a cycle, more than five above the policy.
pub(crate) fn lineage<'p>(
    leaf: &'p SignalPolicy,
    find: impl Fn(&str) -> Option<&'p SignalPolicy>,
) -> Result<Vec<&'p SignalPolicy>, PolicyError> {
    let mut line = vec![leaf];
    let mut youngest = leaf;
    while let Some(parent) = &youngest.extends {
        let through = || line.iter().map(|policy| &*policy.head.name).chain([&**parent]).collect::<Vec<_>>().join(" > ");
        let policy = || label(Kind::Signal, &leaf.head.name);
        if line.iter().any(|policy| policy.head.name == *parent) {
            return Err(PolicyError::Cycle { policy: policy(), through: through() });
        }
        if line.len() > MAX_PARENTS {
            return Err(PolicyError::TooDeep { policy: policy(), through: through(), allowed: MAX_PARENTS });
        }
        let Some(found) = find(parent) else {
            return Err(PolicyError::NoParent { policy: label(Kind::Signal, &youngest.head.name), parent: parent.to_string() });
        };
        line.push(found);
        youngest = found;
    }
    line.reverse();
    Ok(line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Policies `p0`, `p1`, …, each extending the next; the last extends `last`.
    fn chain(length: usize, last: Option<&str>) -> Vec<SignalPolicy> {
        (0..length)
            .map(|number| {
                let mut policy = SignalPolicy::default();
                policy.head.name = format!("p{number}").into();
                policy.extends = if number + 1 < length { Some(format!("p{}", number + 1).into()) } else { last.map(Into::into) };
                policy
            })
            .collect()
    }

    fn names(policies: &[SignalPolicy]) -> Result<String, String> {
        let find = |name: &str| policies.iter().find(|policy| &*policy.head.name == name);
        let line = lineage(policies.first().unwrap(), find).map_err(|e| e.to_string())?;
        Ok(line.iter().map(|policy| &*policy.head.name).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_oldest_comes_first() {
        assert_eq!(names(&chain(1, None)).unwrap(), "p0");
        assert_eq!(names(&chain(6, None)).unwrap(), "p5 p4 p3 p2 p1 p0");
    }

    #[test]
    fn too_many_cycles_and_strangers_are_errors() {
        assert_eq!(
            names(&chain(7, None)).unwrap_err(),
            "signal policy \"p0\": has more than 5 policies above it: p0 > p1 > p2 > p3 > p4 > p5 > p6; \
             allowed are 5, put their rules together"
        );
        assert_eq!(
            names(&chain(3, Some("p1"))).unwrap_err(),
            "signal policy \"p0\": extends itself through p0 > p1 > p2 > p1; take one `extends` out"
        );
        assert_eq!(
            names(&chain(1, Some("p0"))).unwrap_err(),
            "signal policy \"p0\": extends itself through p0 > p0; take one `extends` out"
        );
        assert_eq!(
            names(&chain(2, Some("gone"))).unwrap_err(),
            "signal policy \"p1\": extends \"gone\", and there is no signal policy of that name; write one, or take `extends` out"
        );
    }
}
