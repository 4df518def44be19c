//! A file that changes while its plane runs.

use std::sync::Arc;

use serde_json::json;

use super::support::*;
use crate::plane::model::action::Length;
use crate::plane::model::authority::Manual;
use crate::plane::model::authority::identity::AccountState;
use crate::plane::model::config_center::{Format, ItemName};
use crate::plane::model::groups::Groups;
use crate::plane::model::refusal::Reason;
use crate::plane::model::render::Credential;
use crate::plane::model::scope::Scopes;
use crate::plane::seed::{AccountStart, Given, SeedItem, Start};

fn item(content: &str) -> SeedItem {
    SeedItem { group: "crawler".into(), key: "limits".into(), format: Format::Text, content: content.into() }
}

#[test]
fn what_stays_keeps_its_leases_and_states_and_what_goes_is_retired() {
    let mut world = Setup::new().active(3).open();
    let lease = world.acquire("search").lease;
    world.report(&lease.lease_id, 429);
    let kept = lease.identity_id.clone();
    let key = world.plane.sites[0].by_id[kept.as_str()];
    let mut next = Setup::new().active(3);
    next.site().identities.retain(|identity| *identity.id == *kept);
    next.site().identities.push(identity("new", Start::Active));
    let changes = world.plane.reload(next.0, world.now).unwrap();
    assert_eq!((changes.identities_added, changes.identities_changed, changes.identities_removed), (1, 0, 2));
    assert!(world.cooldown(key, "search") > 0);
    assert_eq!(world.acquire("search").lease.identity_id, "new");
    assert_eq!(world.release(&lease.lease_id), Ok(true));
    assert_eq!(world.acquire("item").lease.identity_id, kept);
    let states: Vec<String> = ["i0", "i1", "i2"].iter().filter(|id| **id != kept).map(|id| world.state(id)).collect();
    assert_eq!(states, ["retired", "retired"]);
}

#[test]
fn another_credential_makes_an_identity_new() {
    let mut world = Setup::new().active(1).open();
    world.cycle("search", 401);
    assert_eq!(world.state("i0"), "expired");
    let same = world.plane.reload(Setup::new().active(1).0, world.now).unwrap();
    assert_eq!((same, world.state("i0").as_str()), (Default::default(), "expired"));
    let mut next = Setup::new();
    let mut other = identity("other", Start::Pending);
    other.id = "i0".into();
    next.site().identities.push(other);
    assert_eq!(world.plane.reload(next.0, world.now).unwrap().identities_changed, 1);
    assert_eq!(world.state("i0"), "pending");
    assert_eq!(world.acquire("search").credential.headers["x-id"], "other");
}

#[test]
fn sites_come_and_go_and_leases_of_gone_ones_can_be_given_back() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    let mut next = Setup::new();
    next.0.sites = vec![site("other")];
    let changes = world.plane.reload(next.0, world.now).unwrap();
    assert_eq!((changes.sites_added, changes.sites_removed), (1, 1));
    assert_eq!(world.refused("search").0, Reason::SiteUnknown);
    assert_eq!(world.release(&lease), Ok(true));
    world.plane.reload(Setup::new().active(1).0, world.now).unwrap();
    world.acquire("search");
}

#[test]
fn a_reload_leaves_what_operators_did_alone() {
    let mut setup = Setup::new().active(1);
    setup.0.config.push(item("1"));
    let mut world = setup.open();
    let name = ItemName { group: "crawler", key: "limits" };
    world.plane.pause("shop", "by hand", world.now).unwrap();
    world.plane.publish(name, Format::Text, "by hand", world.now).unwrap();
    let again = |content: &str, paused: Option<Arc<str>>| {
        let mut setup = Setup::new().active(1);
        setup.0.config.push(item(content));
        setup.site().paused = paused;
        setup.0
    };
    world.plane.reload(again("1", None), world.now).unwrap();
    let content =
        |world: &mut World| world.plane.config_center().get(&Scopes::everything(), "", name).unwrap().content.to_string();
    assert_eq!((world.refused("search").0, content(&mut world)), (Reason::SitePaused, "by hand".to_owned()));
    let changes = world.plane.reload(again("2", Some("file".into())), world.now).unwrap();
    assert_eq!((changes.items_published, changes.sites_switched, content(&mut world)), (1, 1, "2".to_owned()));
    world.plane.reload(again("2", None), world.now).unwrap();
    world.acquire("search");
    assert_eq!(world.plane.reload(Setup::new().active(1).0, world.now).unwrap().items_deleted, 1);
}

#[test]
fn proxies_of_a_gone_line_are_not_given_any_more() {
    let pool = || serde_json::json!({"proxy": {"mode": "pool"}});
    let mut world = Setup::new().active(2).proxies(&["", ""]).rotation(pool()).open();
    let changes = world.plane.reload(Setup::new().active(2).proxies(&[""]).rotation(pool()).0, world.now).unwrap();
    assert_eq!((changes.proxies_added, changes.proxies_removed), (0, 1));
    assert_eq!(world.acquire("search").proxy.unwrap().proxy_id, "p0");
    assert_eq!(world.refused("search").0, Reason::NoProxyAvailable);
    world.plane.reload(Setup::new().active(2).proxies(&["", ""]).rotation(pool()).0, world.now).unwrap();
    assert_eq!(world.acquire("search").proxy.unwrap().proxy_id, "p1");
}

#[test]
fn identities_the_file_did_not_change_keep_all_they_have() {
    let setup = || Setup::new().active(4).account("a", 3..4);
    let mut world = setup().open();
    let leases = world.batch("search", 4).unwrap().leases;
    let id_of = |name: &str| leases.iter().find(|lease| lease.lease.identity_id == name).unwrap().lease.lease_id.clone();
    world.report(&id_of("i0"), 429);
    world.report(&id_of("i1"), 401);
    world.plane.change("shop", "i2", Manual::Ban(Length::Forever), world.now).unwrap();
    let before = (world.cooldown(0, "search"), world.state("i1"), world.state("i2"), world.plane.totals());
    assert!(before.0 >= 48 * SECOND);
    assert_eq!((before.1.as_str(), before.2.as_str()), ("expired", "banned"));
    let changes = world.plane.reload(setup().0, world.now).unwrap();
    assert_eq!((changes.identities_added, changes.identities_changed, changes.identities_removed), (0, 0, 0));
    assert_eq!(before, (world.cooldown(0, "search"), world.state("i1"), world.state("i2"), world.plane.totals()));
    assert!(!world.plane.sites[0].groups.iter().any(|group| group.queue.contains(1) || group.queue.contains(2)));
    assert_eq!(world.plane.sites[0].accounts[0].members, [3]);
    assert_eq!(world.release(&id_of("i3")), Ok(true));
}

#[test]
fn another_credential_is_another_beginning_but_no_pardon() {
    let mut world = Setup::new().active(2).open();
    for lease in world.batch("search", 2).unwrap().leases {
        world.report(&lease.lease.lease_id, 403);
        world.report(&lease.lease.lease_id, 401);
        world.release(&lease.lease.lease_id).unwrap();
    }
    world.plane.change("shop", "i1", Manual::Ban(Length::Forever), world.now).unwrap();
    let mut changed = Setup::new().active(2);
    for identity in &mut changed.site().identities {
        let headers = [("x-id".to_owned(), "new".to_owned())].into();
        identity.given = Given::Plain(Arc::new(Credential { headers, ..Credential::default() }));
    }
    assert_eq!(world.plane.reload(changed.0, world.now).unwrap().identities_changed, 2);
    assert_eq!((world.state("i0").as_str(), world.state("i1").as_str()), ("active", "banned"));
    let site = &world.plane.sites[0];
    let search = site.groups.iter().find(|group| *group.name == *"search").unwrap();
    for (key, identity) in (0..).zip(&site.identities) {
        let here = search.states.get(key).unwrap();
        assert_eq!((identity.score.samples(), identity.streak.failures()), (0, 0));
        assert_eq!((here.score.samples(), here.streak.failures()), (0, 0));
    }
    let lease = world.acquire("search");
    assert_eq!((lease.lease.identity_id.as_str(), &*lease.credential.headers["x-id"]), ("i0", "new"));
}

#[test]
fn a_proxy_that_the_file_now_reserves_is_taken_from_who_was_bound_to_it() {
    let bind = || serde_json::json!({"proxy": {"mode": "bind_identity"}});
    let mut world = Setup::new().active(2).proxies(&[""]).rotation(bind()).open();
    let lease = world.acquire("search");
    let (bound, other) = if lease.lease.identity_id == "i0" { (0, 1) } else { (1, 0) };
    world.release(&lease.lease.lease_id).unwrap();
    let mut setup = Setup::new().active(2).proxies(&[""]).rotation(bind());
    setup.0.proxies[0].reserved_for = Some(format!("i{other}").into());
    setup.site().identities[other].proxy = Some("p0".into());
    world.plane.reload(setup.0, world.now).unwrap();
    assert_eq!(world.plane.sites[0].identities[bound].binding.proxy(), None);
    for _ in 0..5 {
        let lease = world.acquire("search");
        assert_eq!(lease.lease.identity_id, format!("i{other}"));
        world.release(&lease.lease.lease_id).unwrap();
    }
}

#[test]
fn a_lease_of_a_group_that_no_longer_leases_its_identity_brings_it_back_nowhere() {
    let only = |kind: &str| {
        let bind = json!({"site": "shop", "client": "web", "endpoint_group": "search"});
        Setup::new().active(1).rotation(json!({"identity_types": [kind], "bind": bind}))
    };
    type Use = fn(&mut World, &str);
    let uses: [Use; 3] = [
        |world, lease| assert!(world.renew(lease, 600_000).is_ok()),
        |world, lease| world.report(lease, 429),
        |world, lease| assert_eq!(world.release(lease), Ok(true)),
    ];
    for act in uses {
        let mut world = only("plain").open();
        let lease = world.acquire("search").lease.lease_id;
        world.plane.reload(only("member").0, world.now).unwrap();
        act(&mut world, &lease);
        let _ = world.release(&lease);
        world.now += HOUR;
        assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
        world.acquire("item");
    }
}

#[test]
fn whoever_is_gone_from_the_file_is_leased_to_nobody_when_somebody_restores_it() {
    let mut world = Setup::new().active(2).open();
    let mut next = Setup::new();
    let mut other = identity("other", Start::Active);
    other.kind = "member".into();
    next.site().identities.push(other);
    world.plane.reload(next.0, world.now).unwrap();
    world.plane.change("shop", "i0", Manual::Restore, world.now).unwrap();
    assert_eq!(world.acquire("search").lease.identity_id, "other");
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
    world.plane.reload(Setup::new().active(2).0, world.now).unwrap();
    world.acquire("search");
}

#[test]
fn runtime_forgets_the_breaker_of_a_group_that_is_gone() {
    let mut world = Setup::new().active(1).open();
    world.plane.open_breaker("shop", "web", "search", None, "sale", world.now).unwrap();
    let mut next = Setup::new().active(1);
    let client = &mut next.site().clients[0];
    client.written.retain(|group| *group.name != *"search");
    client.groups = Groups::compile("shop", "web", &client.written).unwrap();
    world.plane.reload(next.0, world.now).unwrap();
    let name = ItemName { group: "_runtime", key: "breakers" };
    let content =
        |world: &mut World| world.plane.config_center().get(&Scopes::everything(), "", name).unwrap().content.to_string();
    assert!(!content(&mut world).contains("web/search"));
    world.plane.reload(Setup::new().active(1).0, world.now).unwrap();
    assert!(!content(&mut world).contains("web/search"));
    world.acquire("search");
}

#[test]
fn an_account_is_what_the_file_says_anew_and_else_what_reports_made_of_it() {
    let at = |state| {
        let mut setup = Setup::new().active(1).account("a", 0..1);
        setup.site().accounts[0].state = state;
        setup
    };
    for hindered in [AccountStart::Banned, AccountStart::Disabled] {
        let mut world = at(hindered).open();
        assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
        world.plane.reload(at(hindered).0, world.now).unwrap();
        assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
        world.plane.reload(at(AccountStart::Active).0, world.now).unwrap();
        let lease = world.acquire("search").lease.lease_id;
        world.plane.reload(at(hindered).0, world.now).unwrap();
        world.release(&lease).unwrap();
        assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
    }
    let rule = json!({"name": "out", "when": {"outcome": "forbidden"}, "action": "ban", "scope": "account", "duration": "1h"});
    let active = || at(AccountStart::Active).action(json!({"rules": [rule]}));
    let mut world = active().open();
    world.cycle("search", 403);
    world.plane.reload(active().0, world.now).unwrap();
    assert_eq!(world.plane.sites[0].accounts[0].state, AccountState::Banned(Some(NOW + HOUR)));
}
