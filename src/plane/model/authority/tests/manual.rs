//! What operators do to identities.

use super::support::*;
use crate::plane::model::action::Length;
use crate::plane::model::authority::Manual;
use crate::plane::model::refusal::Reason;
use crate::plane::seed::Start;

const ALL: [(&str, Manual); 10] = [
    ("ban", Manual::Ban(Length::For(HOUR))),
    ("unban", Manual::Unban),
    ("quarantine", Manual::Quarantine(HOUR)),
    ("unquarantine", Manual::Unquarantine),
    ("expire", Manual::Expire),
    ("disable", Manual::Disable),
    ("enable", Manual::Enable),
    ("archive", Manual::Archive),
    ("restore", Manual::Restore),
    ("activate", Manual::Activate),
];

/// The way to a state from pending, and what each change makes of it, in the order of `ALL`.
const TABLE: [(&str, &[Manual], [&str; 10]); 7] = [
    ("pending", &[], ["banned", "", "quarantined", "", "expired", "disabled", "", "retired", "", "active"]),
    ("active", &[Manual::Activate], ["banned", "", "quarantined", "", "expired", "disabled", "", "retired", "", ""]),
    ("banned", &[Manual::Ban(Length::Forever)], ["", "pending", "", "", "", "disabled", "", "retired", "", ""]),
    ("quarantined", &[Manual::Quarantine(1)], ["banned", "", "", "pending", "expired", "disabled", "", "retired", "", ""]),
    ("expired", &[Manual::Expire], ["banned", "", "", "", "", "disabled", "", "retired", "", ""]),
    ("disabled", &[Manual::Disable], ["banned", "", "", "", "", "disabled", "active", "retired", "", ""]),
    ("retired", &[Manual::Archive], ["", "", "", "", "", "", "", "retired", "pending", ""]),
];

#[test]
fn every_change_leads_where_the_table_says_or_is_refused() {
    for (state, way, ends) in TABLE {
        for ((name, change), end) in ALL.into_iter().zip(ends) {
            let mut world = Setup::new().identities(1, Start::Pending).open();
            let now = world.now;
            way.iter().for_each(|step| world.plane.change("shop", "i0", *step, now).unwrap());
            assert_eq!(world.state("i0"), state);
            let done = world.plane.change("shop", "i0", change, now);
            if end.is_empty() {
                let refusal = done.unwrap_err();
                assert_eq!(refusal.reason, Some(Reason::FailedPrecondition), "{name} of {state}");
                assert!(refusal.message.contains("invalid_transition") && refusal.message.contains(name), "{refusal}");
                assert_eq!(world.state("i0"), state);
            } else {
                done.unwrap();
                assert_eq!(world.state("i0"), end, "{name} of {state}");
            }
            // Whoever is pending or active, and nobody else, can be leased.
            let is_leased = matches!(world.state("i0").as_str(), "pending" | "active");
            assert_eq!(world.try_acquire("search").is_ok(), is_leased, "{name} of {state}");
        }
    }
}

#[test]
fn a_ban_by_hand_ends_like_any_other_and_lets_leases_go_on() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    world.plane.change("shop", "i0", Manual::Ban(Length::For(MINUTE)), world.now).unwrap();
    assert!(world.renew(&lease, 0).is_ok());
    assert_eq!(world.release(&lease), Ok(true));
    world.pass(MINUTE + 10 * SECOND);
    assert_eq!((world.state("i0").as_str(), world.plane.ledger().sites["shop"].identities["i0"].bans), ("pending", 1));
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut world = Setup::new().active(1).open();
    let refusal = world.plane.change("shop", "i9", Manual::Expire, world.now).unwrap_err();
    assert_eq!((refusal.reason, &*refusal.message), (Some(Reason::NotFound), "the site shop has no identity i9"));
    let refusal = world.plane.change("shoe", "i0", Manual::Expire, world.now).unwrap_err();
    assert_eq!(refusal.reason, Some(Reason::SiteUnknown));
}
