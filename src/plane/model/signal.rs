//! What a report stands for: the rules of a signal policy, compiled, applied to one report (wire contract, section 25).
//!
//! The first rule that matches decides; without one the outcome is `unknown`, or what the report proposes if the policy
//! trusts it. Built once for a policy; classifying allocates nothing. Says who is to blame, does nothing about it.

use super::policy::{ErrorKinds, PolicyError, SignalPolicy, SignalRule, Status, UriCondition, When, lineage};
use super::{Blame, Outcome};

/// The rules of a policy and of those it extends.
#[derive(Debug, Clone)]
pub(crate) struct Classifier {
    rules: Box<[SignalRule]>,
    trust_outcome_hint: bool,
}

/// What a report says about one attempt, as far as rules look at it. `M` is however the caller keeps its markers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'r, M> {
    pub(crate) uri: &'r str,
    pub(crate) method: &'r str,
    /// 0 stands for no response.
    pub(crate) http_status: u16,
    pub(crate) business_code: &'r str,
    pub(crate) error_kind: &'r str,
    pub(crate) markers: &'r [M],
    pub(crate) outcome_hint: &'r str,
    pub(crate) latency_ms: u64,
    pub(crate) response_bytes: u64,
}

/// What it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict<'c> {
    pub(crate) outcome: Outcome,
    pub(crate) blame: Blame,
    /// The rule that matched, counted over all rules of the policies it extends and its own.
    pub(crate) rule: Option<usize>,
    /// Its name; empty without a rule or a name.
    pub(crate) rule_name: &'c str,
}

impl Classifier {
    /// The rules of those the policy extends, then its own. `find` knows the built-in policy as well.
    ///
    /// # Errors
    ///
    /// A parent that does not exist, a cycle, too many parents.
    pub(crate) fn of<'p>(policy: &'p SignalPolicy, find: impl Fn(&str) -> Option<&'p SignalPolicy>) -> Result<Self, PolicyError> {
        let rules = lineage(policy, find)?.into_iter().flat_map(|policy| policy.rules.iter().cloned()).collect();
        Ok(Self { rules, trust_outcome_hint: policy.trust_outcome_hint })
    }

    /// What the report stands for.
    pub(crate) fn classify<M: AsRef<str>>(&self, seen: &Seen<'_, M>) -> Verdict<'_> {
        let kind = ErrorKinds::of(seen.error_kind);
        match self.rules.iter().enumerate().find(|(_, rule)| rule.when.holds(seen, kind)) {
            Some((index, rule)) => Verdict {
                outcome: rule.outcome,
                blame: rule.blame.unwrap_or(rule.outcome.blame()),
                rule: Some(index),
                rule_name: &rule.name,
            },
            None => {
                let hint = if self.trust_outcome_hint { Outcome::of(seen.outcome_hint) } else { None };
                let outcome = hint.unwrap_or(Outcome::Unknown);
                Verdict { outcome, blame: outcome.blame(), rule: None, rule_name: "" }
            }
        }
    }
}

impl When {
    /// Whether all conditions hold, the cheap ones asked first; `kind` is the report's error kind.
    fn holds<M: AsRef<str>>(&self, seen: &Seen<'_, M>, kind: ErrorKinds) -> bool {
        self.error_kind.is_none_or(|kinds| kinds.meets(kind))
            && self.http_status.as_ref().is_none_or(|status| status.holds(seen.http_status))
            && self.latency_ms.is_none_or(|range| range.holds(seen.latency_ms))
            && self.response_bytes.is_none_or(|range| range.holds(seen.response_bytes))
            && self
                .markers
                .as_ref()
                .is_none_or(|wanted| seen.markers.iter().any(|marker| wanted.iter().any(|wanted| **wanted == *marker.as_ref())))
            && self
                .business_code
                .as_ref()
                .is_none_or(|codes| !seen.business_code.is_empty() && codes.iter().any(|code| **code == *seen.business_code))
            && self.method.as_ref().is_none_or(|methods| methods.iter().any(|method| method.eq_ignore_ascii_case(seen.method)))
            && self.uri.as_ref().is_none_or(|uri| match uri {
                UriCondition::Prefix(prefix) => seen.uri.starts_with(&**prefix),
                UriCondition::Regex(pattern) => pattern.is_in(seen.uri),
            })
    }
}

impl Status {
    fn holds(&self, status: u16) -> bool {
        match self {
            Self::Among(codes) => codes.contains(&status),
            Self::Within(range) => status != 0 && range.holds(u64::from(status)),
        }
    }
}

#[cfg(test)]
mod tests;
