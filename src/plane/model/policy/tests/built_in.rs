//! The built-in policies are the contract's, to the last number.

use std::fmt::Debug;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::*;
use crate::plane::model::Outcome;

/// The built-in policy is what the document says in full, and looks as the dump does.
fn same<P: Policy + Default + DeserializeOwned + PartialEq + Debug>(document: &str, dump: &str) {
    let built_in = P::default();
    assert_eq!(toml::from_str::<P>(document).unwrap(), built_in);
    assert_eq!(format!("{built_in:#?}\n"), dump);
    assert_eq!(&*built_in.head().name, P::KIND.built_in());
}

#[test]
fn the_built_in_policies_are_the_contracts() {
    same::<RotationPolicy>(include_str!("../golden/rotation.toml"), include_str!("../golden/rotation.txt"));
    same::<SignalPolicy>(include_str!("../golden/signal.toml"), include_str!("../golden/signal.txt"));
    same::<ActionPolicy>(include_str!("../golden/action.toml"), include_str!("../golden/action.txt"));
    same::<BreakerPolicy>(include_str!("../golden/breaker.toml"), include_str!("../golden/breaker.txt"));
}

#[test]
fn a_document_that_says_nothing_has_the_defaults_but_no_rules() {
    let named = |name: &str| Head { name: name.into(), description: "".into(), bind: Vec::new() };
    let document = json!({"name": "p", "rotation": null, "proxy": {}});
    assert_eq!(RotationPolicy::read(&document).unwrap(), RotationPolicy { head: named("p"), ..RotationPolicy::default() });
    let document = json!({"name": "p", "trip": {}, "half_open": null});
    assert_eq!(BreakerPolicy::read(&document).unwrap(), BreakerPolicy { head: named("p"), ..BreakerPolicy::default() });
    let signal = SignalPolicy { head: named("p"), rules: Vec::new(), ..SignalPolicy::default() };
    assert_eq!(SignalPolicy::read(&json!({"name": "p"})).unwrap(), signal);
    let action = ActionPolicy { head: named("p"), rules: Vec::new(), escalation: Vec::new(), ..ActionPolicy::default() };
    assert_eq!(ActionPolicy::read(&json!({"name": "p", "health": {"observations": {}}})).unwrap(), action);
}

#[test]
fn every_built_in_observation_is_the_contracts() {
    let observations = Observations::default();
    let table: Vec<_> = Outcome::ALL
        .into_iter()
        .map(|outcome| (outcome.name(), observations.identity(outcome), Observations::proxy(outcome)))
        .collect();
    assert_eq!(
        table,
        [
            ("success", Some(100.0), Some(100.0)),
            ("empty", Some(60.0), None),
            ("rate_limited", Some(30.0), Some(30.0)),
            ("captcha", Some(0.0), None),
            ("auth_invalid", None, None),
            ("forbidden", Some(10.0), None),
            ("banned", None, None),
            ("proxy_error", None, Some(0.0)),
            ("network_error", Some(50.0), Some(40.0)),
            ("target_error", None, None),
            ("client_error", None, None),
            ("unknown", None, None),
        ]
    );
}

#[test]
fn the_streak_ends_after_the_longest_reset_of_the_cooldown_rules() {
    assert_eq!(ActionPolicy::default().failure_reset(), Duration::from_secs(3_600));
    let rule = |reset: &str| json!({"when": {"outcome": "captcha"}, "action": "cooldown", "scope": "identity", "base": "1s", "failure_reset_after": reset});
    let document = json!({"name": "p", "rules": [rule("10m"), rule("20m"), {"when": {"outcome": "banned"}, "action": "expire"}]});
    assert_eq!(ActionPolicy::read(&document).unwrap().failure_reset(), Duration::from_secs(1_200));
    let without = ActionPolicy { rules: Vec::new(), ..ActionPolicy::default() };
    assert_eq!(without.failure_reset(), Duration::from_secs(3_600));
}
