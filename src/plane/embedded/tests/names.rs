//! Names that are not there, and what is done by hand.

use super::*;
use crate::plane::RefusalKind;
use crate::plane::embedded::{IdentityChange, Operation};

#[tokio::test(start_paused = true)]
async fn unknown_names_are_refused_for_good_with_what_is_known() {
    let plane = shop(&["a"], "clients = [\"web\", \"app\"]\n[[sites.groups]]\nname = \"search\"\nprefix = [\"/search/\"]\n");
    let with = |site: &str, client: &str, group: &str| {
        let ask = Ask { client: client.into(), group: group.into(), ..ask(site, "/") };
        let refusal = plane.acquire_now(&ask).unwrap_err();
        assert!(!refusal.why.is_temporary() && refusal.retry_after.is_none());
        (refusal.why, refusal.message)
    };
    for (site, client, group, why, message) in [
        ("shp", "web", "", RefusalKind::SiteUnknown, "ids.toml has no site \"shp\"; it has shop"),
        ("shop", "tv", "", RefusalKind::ClientUnknown, "in ids.toml the site \"shop\" has no client \"tv\"; it has web, app"),
        (
            "shop",
            "web",
            "cart",
            RefusalKind::GroupUnknown,
            "in ids.toml the client \"shop\"/\"web\" has no endpoint group \"cart\"; it has _default, search",
        ),
    ] {
        assert_eq!(with(site, client, group), (why, message.to_owned()));
    }
    assert_eq!(with("shop", "", "").0, RefusalKind::Invalid);
    let odd = Ask { path: "no path".into(), ..ask("shop", "/") };
    assert_eq!(plane.acquire_now(&odd).unwrap_err().why, RefusalKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_paused_site_and_an_open_breaker_refuse_until_that_is_over() {
    let plane = shop(&["a"], "");
    let why = |plane: &Embedded| {
        let refusal = plane.acquire_now(&ask("shop", "/")).unwrap_err();
        (refusal.why, refusal.retry_after)
    };
    assert_eq!(plane.operate(Operation::Pause { site: "shop", reason: "moving" }), Ok(true));
    assert_eq!(why(&plane), (RefusalKind::SitePaused, Some(seconds(30))));
    assert_eq!(plane.operate(Operation::Resume { site: "shop" }), Ok(true));
    let (client, group) = ("web", "_default");
    let open = Operation::OpenBreaker { site: "shop", client, group, time: Some(seconds(20)) };
    assert_eq!(plane.operate(open), Ok(true));
    assert_eq!(why(&plane), (RefusalKind::CircuitOpen, Some(seconds(20))));
    assert_eq!(plane.operate(Operation::CloseBreaker { site: "shop", client, group }), Ok(true));
    assert_eq!(plane.operate(Operation::CloseBreaker { site: "shop", client, group }), Ok(false));
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
    assert!(matches!(plane.operate(Operation::Resume { site: "shoe" }), Err(PlaneError::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn an_identity_is_banned_and_taken_back_by_hand() {
    let plane = shop(&["a"], "");
    let change = |change| plane.operate(Operation::Identity { site: "shop", identity: "a", change });
    assert_eq!(change(IdentityChange::Ban(None)), Ok(true));
    assert_eq!(plane.acquire_now(&ask("shop", "/")).unwrap_err().why, RefusalKind::NoIdentity);
    assert!(matches!(change(IdentityChange::Activate), Err(PlaneError::NotFound(_))));
    for step in [IdentityChange::Unban, IdentityChange::Activate, IdentityChange::Quarantine(seconds(1))] {
        assert_eq!(change(step), Ok(true), "{step:?}");
    }
    let rest = [
        IdentityChange::Unquarantine,
        IdentityChange::Expire,
        IdentityChange::Disable,
        IdentityChange::Enable,
        IdentityChange::Archive,
        IdentityChange::Restore,
    ];
    for step in rest {
        assert_eq!(change(step), Ok(true), "{step:?}");
    }
    assert!(plane.acquire_now(&ask("shop", "/")).unwrap().about.is_probe);
    let ledger = plane.ledger_now();
    assert_eq!(ledger.cooled, 0, "no report did that");
}
