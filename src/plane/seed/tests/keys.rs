//! What each key comes to.

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::super::*;
use super::{SITE, read};
use crate::plane::model::Outcome;
use crate::plane::model::config_center::Format;
use crate::plane::model::policy::{Action, ProxyMode, Term};

#[test]
fn a_token_is_read_whole() {
    let text = format!(
        "[[tokens]]\nname = \"t\"\ntoken = \"spn_{}\"\nnamespace = \"other\"\nscopes = [\"admin\"]\n\
         ip_allowlist = [\"10.0.0.0/8\"]\nexpires_at = 1970-01-01T00:00:01.5Z\nrate_limit_rps = 0\nrevoked = true\n",
        "a".repeat(43)
    );
    let seed = read(&text).unwrap();
    let token = &seed.tokens[0];
    assert_eq!((&*token.token.name, &*token.token.namespace, token.is_revoked), ("t", "other", true));
    assert_eq!((token.token.expires_at, token.token.rate_limit, token.token.networks.len()), (Some(1_500), None, 1));
    assert!(token.token.scopes.check_admin().is_ok());
}

#[test]
fn groups_belong_to_the_clients_they_name() {
    let seed = read(
        "[[sites]]\nname = \"shop\"\nclients = [\"web\", \"app\"]\n\
         groups = [{ name = \"api\", clients = [\"app\"], prefix = \"/api\" }, { name = \"item\", template = [\"/item/{id}\"], \
         rules = [{ kind = \"regex\", pattern = \"^/i[0-9]\", position = 3 }] }]\n",
    )
    .unwrap();
    let [web, app] = &seed.sites[0].clients[..] else { panic!() };
    assert_eq!(web.groups.names().len(), 2);
    assert_eq!(app.groups.names().len(), 3);
    let of = |client: &SeedClient, path| client.groups.names()[client.groups.matching(path).group as usize].to_string();
    assert_eq!((of(web, "/api/x"), of(app, "/api/x")), ("_default".to_owned(), "api".to_owned()));
    assert_eq!((of(web, "/item/7"), of(app, "/i7")), ("item".to_owned(), "item".to_owned()));
}

#[test]
fn a_plain_identity_is_what_it_shows() {
    let seed = read(&format!(
        "{SITE}headers = {{ X-Key = \"k\", x-pin = 1234 }}\ncookies = {{ sid = \"s\" }}\ncookie_header = \"a=1\"\n\
         query = {{ key = true }}\njson = {{ a = [1, {{ b = true }}] }}\nvalues = {{ n = 2 }}\naccount = \"acc\"\nregion = \"de\"\n\
         tags = \"old\"\nlabels = {{ since = 2024 }}\nstate = \"disabled\"\n"
    ))
    .unwrap();
    let site = &seed.sites[0];
    let identity = &site.identities[0];
    let Given::Plain(credential) = &identity.given else { panic!() };
    assert_eq!(
        serde_json::to_string(&**credential).unwrap(),
        "{\"cookies\":{\"sid\":\"s\"},\"cookie_header\":\"a=1\",\"headers\":{\"X-Key\":\"k\",\"x-pin\":\"1234\"},\
         \"query\":{\"key\":\"true\"},\"json\":{\"a\":[1,{\"b\":true}]},\"values\":{\"n\":2}}"
    );
    assert_eq!((&*identity.kind, identity.state), (PLAIN, Start::Disabled));
    assert_eq!(identity.attributes.account.as_deref(), Some("acc"));
    assert_eq!(identity.attributes.tags.as_deref(), Some(&["old".to_owned()][..]));
    assert_eq!(site.accounts, [SeedAccount { name: "acc".into(), state: AccountStart::Active }]);
    assert_eq!(&*site.clients[0].name, "web", "the contract's default");
}

#[test]
fn cookies_are_also_taken_as_a_browser_shows_them() {
    for cookies in ["\"a=1; b=2\"", "[{ name = \"a\", value = \"1\" }, { name = \"b\", value = \"2\" }]", "{ a = 1, b = 2 }"] {
        let seed = read(&format!("{SITE}cookies = {cookies}\n")).unwrap();
        let Given::Plain(credential) = &seed.sites[0].identities[0].given else { panic!() };
        assert_eq!(format!("{:?}", credential.cookies), r#"{"a": "1", "b": "2"}"#, "{cookies}");
    }
}

#[test]
fn proxies_decide_the_mode_until_a_policy_does() {
    let mode = |text: &str| {
        let seed = read(text).unwrap();
        seed.policies.rotation.first().map(|policy| policy.proxy.mode)
    };
    let shared = "proxies = [\"http://10.0.0.1:3128 region=de\"]\n";
    assert_eq!(mode(SITE), None);
    assert_eq!(mode(&format!("{shared}{SITE}")), Some(ProxyMode::Pool));
    assert_eq!(mode(&format!("{shared}{SITE}proxy = \"http://10.0.0.1:3128\"\n")), Some(ProxyMode::BindIdentity));
    assert_eq!(mode(&format!("{SITE}proxy = \"http://u:p@10.0.0.2:3128\"\n")), Some(ProxyMode::BindIdentity));
    assert_eq!(mode(&format!("{shared}{SITE}[sites.proxy]\nregion_match = true\n")), Some(ProxyMode::None));
    assert_eq!(mode(&format!("{shared}{SITE}[sites.rotation]\nlease_ttl = \"1m\"\n")), Some(ProxyMode::Pool));
    let bound = format!("{shared}{SITE}[[policies.rotation]]\nname = \"mine\"\nbind = [{{}}]\n");
    assert_eq!(mode(&bound), Some(ProxyMode::None));
    assert_eq!(read(&bound).unwrap().policies.rotation.len(), 1, "the namespace's own holds");
}

#[test]
fn a_proxy_of_an_identity_is_its_alone() {
    let seed = read(&format!("{SITE}proxy = \"socks5://u:p@10.0.0.2:1080\"\n")).unwrap();
    let site = &seed.sites[0];
    let proxy = &site.proxies[0];
    assert_eq!(site.identities[0].proxy.as_deref(), Some(&*proxy.id));
    assert_eq!(proxy.reserved_for.as_deref(), Some("a"));
    assert_eq!(proxy.proxy.url.reveal(), "socks5://u:p@10.0.0.2:1080");
}

#[test]
fn proxies_have_ids_that_do_not_repeat() {
    let seed = read(
        "proxies = [\"http://a:1@10.0.0.1:80\", \"http://b:2@10.0.0.1:80\", \
         { name = \"office\", url = \"http://10.0.0.2:80\", max_concurrency = 4, tags = [\"x\"] }]\n",
    )
    .unwrap();
    let ids: Vec<&str> = seed.proxies.iter().map(|proxy| &*proxy.id).collect();
    assert_eq!(ids, ["http://10.0.0.1:80", "http://10.0.0.1:80#2", "office"]);
    assert_eq!((seed.proxies[2].proxy.max_concurrency, &*seed.proxies[2].proxy.tags), (4, &["x".to_owned()][..]));
}

#[test]
fn short_cooldowns_change_the_built_in_rules() {
    let text = SITE.replace("[[sites.id", "cooldown_429 = \"1h\"\ncooldown_403 = \"5m\"\ncooldown_proxy = \"0\"\n[[sites.id");
    let seed = read(&text).unwrap();
    let rules = &seed.policies.action[0].rules;
    assert_eq!(rules.len(), ActionPolicy::default().rules.len(), "one more, one less");
    let of = |outcome| {
        rules.iter().filter(|rule| rule.count.is_none() && rule.outcomes.contains(outcome)).find_map(|rule| match rule.action {
            Action::Cooldown(cooldown) => Some((cooldown.base.as_secs(), cooldown.max.as_secs())),
            _ => None,
        })
    };
    assert_eq!(of(Outcome::RateLimited), Some((3_600, 3_600)));
    assert_eq!(of(Outcome::Forbidden), Some((300, 1_800)));
    assert_eq!(of(Outcome::ProxyError), None);
}

#[test]
fn policies_are_bound_where_they_say() {
    let seed = read(&format!(
        "{SITE}[sites.signal]\nextends = \"default-signal\"\nrules = [{{ when = {{ http_status = 404 }}, outcome = \"empty\" }}]\n\
         [sites.breaker]\nenabled = false\n[sites.action]\nrules = []\n\
         [[policies.action]]\nname = \"default-action\"\n\
         rules = [{{ when = {{ outcome = \"banned\" }}, action = \"ban\", scope = \"identity\", duration = \"permanent\" }}]\n"
    ))
    .unwrap();
    let policies = &seed.policies;
    assert_eq!((policies.signal.len(), policies.breaker.len(), policies.action.len()), (1, 1, 2));
    assert_eq!(policies.breaker[0].head.bind[0].to_string(), "shop");
    assert_eq!(policies.action[0].head.bind[0].to_string(), "the namespace");
    assert_eq!(policies.action[0].rules[0].action, Action::Ban(Term::Permanent));
    assert_eq!(policies.rotation.len(), 0);
}

#[test]
fn config_items_and_secrets_are_read() {
    let seed = read(
        "[[config]]\ngroup = \"crawl\"\nkey = \"a\"\ncontent = \"x ${secret:shop/key}\"\n\
         [[config]]\ngroup = \"crawl\"\nkey = \"b\"\ncontent = { n = 1.5 }\n\
         [[config]]\ngroup = \"crawl\"\nkey = \"c\"\nformat = \"yaml\"\ncontent = \"n: 1\"\n\
         [secrets]\n\"shop/key\" = \"s\"\npin = { value = 12, expires_at = \"1970-01-01T00:00:02Z\" }\n",
    )
    .unwrap();
    let items: Vec<_> = seed.config.iter().map(|item| (&*item.key, item.format, &*item.content)).collect();
    assert_eq!(
        items,
        [("a", Format::Text, "x ${secret:shop/key}"), ("b", Format::Json, "{\"n\":1.5}"), ("c", Format::Yaml, "n: 1")]
    );
    let secrets: Vec<_> =
        seed.secrets.iter().map(|secret| (&*secret.path, secret.value.expose_secret(), secret.expires_at)).collect();
    assert_eq!(secrets, [("shop/key", "s", None), ("pin", "12", Some(2_000))]);
}

#[test]
fn a_site_is_paused_with_or_without_a_reason() {
    for (value, paused) in [("true", Some("")), ("false", None), ("\"why\"", Some("why"))] {
        let seed = read(&SITE.replace("[[sites.id", &format!("paused = {value}\n[[sites.id"))).unwrap();
        assert_eq!(seed.sites[0].paused.as_deref(), paused);
    }
}

#[test]
fn the_same_in_json() {
    let text = r#"{"namespace": "prod", "sites": [{"name": "shop", "identities": [{"name": "a", "cookies": {"s": "1"}, "json": null}],
        "rotation": {"lease_ttl": "1m"}}]}"#;
    let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let seed = parse(text, Path::new("ids.json"), Part::Whole, &read).unwrap();
    assert_eq!((&*seed.namespace, seed.sites[0].identities.len()), ("prod", 1));
    assert_eq!(seed.policies.rotation[0].lease_ttl, Duration::from_secs(60));
    let error = parse("{\n\"sites\": [{,", Path::new("ids.json"), Part::Whole, &read).unwrap_err().to_string();
    assert_eq!(error, "ids.json:2: not valid JSON: wrong at column 12");
    let error = parse("{\"sits\": 1}", Path::new("ids.json"), Part::Whole, &read).unwrap_err().to_string();
    assert!(error.starts_with("ids.json: sits: no such key, did you mean sites?"), "{error}");
}
