//! What a report leads to: cooldowns, quarantine, expiry and bans, planned from plain numbers (wire contract, section 27).
//!
//! Plans only. Whether a plan is carried out (mode `shadow`, a state that refuses it, a longer cooldown that runs already) is
//! up to whoever asked.

mod bans;
mod ladder;
mod plan;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use bans::{BanHistory, Escalation};
pub(crate) use ladder::Ladder;
#[cfg(test)]
pub(crate) use plan::Source;
pub(crate) use plan::{Act, Facts, Health, Plan, Planned, Streaks};
pub(crate) use rules::{Deed, HealthLimits, Length, Often, Outcomes, Rule, Rules, Scope, Who};
