//! The files that the program ships.

use std::fmt::Write as _;

use secrecy::ExposeSecret as _;

use super::super::*;
use super::read_beside;

const IDENTITIES: &str = include_str!("../../../../config/identities.toml");
const SERVED: &str = include_str!("served.toml");

/// The seed in words, values and all.
fn told(seed: &Seed) -> String {
    let mut told = format!("namespace {}, {} tokens, {} proxies\n", seed.namespace, seed.tokens.len(), seed.proxies.len());
    for site in &seed.sites {
        writeln!(told, "site {} paused {:?} accounts {}", site.name, site.paused, site.accounts.len()).unwrap();
        for client in &site.clients {
            writeln!(told, "  client {} groups {:?}", client.name, client.groups.names()).unwrap();
        }
        for identity in &site.identities {
            let Given::Plain(credential) = &identity.given else { panic!("a type") };
            writeln!(
                told,
                "  {} {} {:?} for {:?} proxy {:?}: {:?} {:?}",
                identity.id,
                identity.kind,
                identity.state,
                identity.clients,
                identity.proxy,
                credential.cookies,
                credential.headers
            )
            .unwrap();
        }
    }
    for policy in &seed.policies.rotation {
        let leases = policy.max_concurrent_leases;
        writeln!(told, "rotation {} at {}: {leases} leases, {:?}", policy.head.name, policy.head.bind[0], policy.proxy.mode)
            .unwrap();
    }
    for policy in &seed.policies.action {
        writeln!(told, "action {} at {}: {:?}", policy.head.name, policy.head.bind[0], policy.rules[0].action).unwrap();
    }
    told
}

const BOOKSHOP: &str = "\
site bookshop paused None accounts 0
  client web groups [\"_default\"]
  reader-1 plain Active for [\"web\"] proxy None: {\"session\": \"demo-session-1\"} {\"X-Reader\": \"demo-reader-1\"}
  reader-2 plain Active for [\"web\"] proxy None: {\"session\": \"demo-session-2\"} {\"X-Reader\": \"demo-reader-2\"}
  reader-3 plain Active for [\"web\"] proxy None: {\"session\": \"demo-session-3\"} {\"X-Reader\": \"demo-reader-3\"}
rotation site/bookshop/rotation at bookshop: 8 leases, None
action site/bookshop/action at bookshop: Cooldown(Cooldown { base: 1s, multiplier: 2.0, max: 1800s, max_exponent: 10, \
failure_reset_after: 3600s })
";

#[test]
fn the_example_has_three_readers_of_the_bookshop() {
    let seed = read_beside(IDENTITIES, &[]).unwrap();
    assert_eq!(told(&seed), format!("namespace default, 0 tokens, 0 proxies\n{BOOKSHOP}"));
    assert_eq!((seed.config.len(), seed.secrets.len()), (0, 0));
}

#[test]
fn the_served_plane_has_the_same_and_a_token() {
    let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let seed = parse(SERVED, Path::new("serve.toml"), Part::Under("plane"), &read).unwrap();
    assert_eq!(told(&seed), format!("namespace default, 1 tokens, 0 proxies\n{BOOKSHOP}"));
    let token = &seed.tokens[0];
    assert!(token.text.expose_secret().starts_with("spn_") && !token.is_revoked);
    assert!(token.token.scopes.check_acquire("bookshop").is_ok() && token.token.scopes.check_config_read("crawl").is_ok());
    assert!(token.token.scopes.check_admin().is_err());
}

#[test]
fn the_keys_beside_the_plane_are_no_concern_of_its() {
    let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let empty = parse("[[keys]]\nx = 1\n", Path::new("serve.toml"), Part::Under("plane"), &read).unwrap();
    assert!(empty.sites.is_empty() && empty.tokens.is_empty());
    let error = parse("[plane]\nsits = 1\n", Path::new("serve.toml"), Part::Under("plane"), &read).unwrap_err().to_string();
    assert_eq!(
        error,
        "serve.toml:2: plane.sits: no such key, did you mean sites?; allowed here are namespace, pepper, tokens, sites, \
         proxies, proxy_files, policies, config, secrets"
    );
}

/// Whether a comment is a line of the file that is switched off, not a sentence.
fn is_switched_off(comment: &str) -> bool {
    let key = comment.split(" = ").next().unwrap_or_default();
    comment.starts_with('[') || (comment.contains(" = ") && !key.contains(' '))
}

#[test]
fn whatever_the_example_has_in_comments_works_too() {
    let mut text = String::from("proxy_files = [\"proxies.txt\"]\n");
    let mut switched = 0;
    for line in IDENTITIES.lines() {
        let comment = line.strip_prefix("# ").filter(|comment| is_switched_off(comment) && !comment.starts_with("proxy_files"));
        switched += usize::from(comment.is_some());
        text.push_str(comment.unwrap_or(line));
        text.push('\n');
    }
    assert!(switched > 70, "{switched} lines");
    let files = [
        ("sessions.jsonl", "{\"user\":\"bert\",\"cookies\":{\"sid\":\"2\"}}\n"),
        ("proxies.txt", "http://10.0.0.9:3128 region=de tags=fast,new\n"),
    ];
    let seed = read_beside(&text, &files).unwrap();
    let site = &seed.sites[0];
    assert_eq!(site.paused.as_deref(), Some("the shop is being moved"));
    assert_eq!(site.clients[0].groups.names().len(), 2);
    assert_eq!(site.clients[0].written[0].rules.len(), 4);
    assert_eq!(site.identities.len(), 5);
    assert_eq!((site.accounts.len(), site.proxies.len(), seed.proxies.len()), (1, 1, 2));
    assert_eq!(site.proxies[0].reserved_for.as_deref(), Some("reader-1"));
    assert_eq!((seed.policies.rotation.len(), seed.policies.breaker.len()), (2, 1));
    assert_eq!(&*seed.config[0].content, "{\"CONCURRENT_REQUESTS\":4}");
    assert_eq!(seed.files.len(), 3);
    // What the comments call the default is the default.
    let defaults = RotationPolicy::default();
    let written = seed.policies.rotation.iter().find(|policy| &*policy.head.name == "site/bookshop/rotation").unwrap();
    assert_eq!(
        (written.strategy, written.candidate_sample, written.lease_ttl, written.max_lease_lifetime, written.reuse_interval),
        (defaults.strategy, defaults.candidate_sample, defaults.lease_ttl, defaults.max_lease_lifetime, defaults.reuse_interval)
    );
    assert_eq!(
        (written.reuse_anchor, written.reuse_scope, written.sticky, written.warmup, written.probe),
        (defaults.reuse_anchor, defaults.reuse_scope, defaults.sticky, defaults.warmup, defaults.probe)
    );
    assert_eq!(written.proxy.rebind_tolerance, defaults.proxy.rebind_tolerance);
    assert_eq!(seed.policies.breaker[0].min_requests, BreakerPolicy::default().min_requests);
    assert_eq!(seed.policies.breaker[0].trip, BreakerPolicy::default().trip);
}
