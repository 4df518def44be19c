//! How mistakes are told.

use super::{SITE, all_wrong, read};

#[test]
fn a_mistake_in_an_identity_names_file_line_key_and_what_is_allowed() {
    for (line, parts) in [
        ("tokn = 1", &["dir/ids.toml:5: sites[\"shop\"].identities[\"a\"].tokn: no such key", "cookies"][..]),
        ("cookie = { a = 1 }", &["cookie: no such key, did you mean cookies?"]),
        ("concurrency = 8", &["dir/ids.toml:5: ", "concurrency: this key is no more", "max_concurrent_leases"]),
        ("clients = [\"wep\"]", &["clients[1]: the site has no client \"wep\", did you mean web?", "it has web"]),
        ("clients = []", &["clients: found an empty list"]),
        ("headers = { Cookie = \"x\" }", &["headers.\"Cookie\": ", "under cookies"]),
        ("headers = { \"a b\" = \"x\" }", &["headers.\"a b\": ", "letters, digits and hyphens"]),
        ("headers = { a = \"1\", A = \"2\" }", &["written twice"]),
        ("headers = \"x\"", &["dir/ids.toml:5: ", "headers: found a text; expected a table"]),
        ("cookies = { a = \"1;2\" }", &["cookies.\"a\": "]),
        ("cookies = { a = { b = \"c\" } }", &["cookies.\"a\": found a table; expected a text"]),
        ("state = \"banned\"", &["state: found \"banned\"", "allowed are active, pending, disabled"]),
        ("proxy = \"ftp://h:1\"", &["proxy: ", "socks5"]),
        ("proxy = \"office\"", &["proxy: no proxy has this name"]),
        ("account = \"\"", &["account: expected 1 to 256"]),
        ("type = \"session\"", &["type: site shop has no identity type \"session\"; it has none"]),
        ("payload = { a = 1 }", &["payload: a payload needs a type"]),
        ("[[sites.identities]]\nname = \"a\"", &["dir/ids.toml:5: ", "another identity"]),
        ("[[sites.identities]]\ncookies = { a = 1 }", &["identities[2].name: the key is missing"]),
        ("[[sites.identities]]\nname = \"two words\"", &["name: expected 1 to 64 letters"]),
        ("name =", &["dir/ids.toml:5: not valid TOML: "]),
        ("json = { a = nan }", &["dir/ids.toml:5: ", "nan"]),
        ("json = { a = 99999999999999999999 }", &["dir/ids.toml:5: ", "64 bits"]),
    ] {
        let text = format!("{SITE}{line}\n");
        let error = read(&text).map(|_| ()).expect_err(line);
        for part in parts {
            assert!(error.contains(part), "{line}\n  {error}\n  lacks {part}");
        }
    }
}

#[test]
fn a_mistake_in_a_site_is_told_alike() {
    let site = |line: &str| SITE.replace("[[sites.id", &format!("{line}\n[[sites.id"));
    for (line, parts) in [
        ("clients = [\"Web\"]", &["dir/ids.toml:3: sites[\"shop\"].clients: ", "a-z"][..]),
        ("clients = []", &["clients: ", "1 to 16"]),
        ("ttl = 300", &["ttl: this key is no more; write [sites.rotation] lease_ttl"]),
        ("rotation = { lease_ttl = 300 }", &["dir/ids.toml:3: sites[\"shop\"].rotation: rotation.lease_ttl is 300", "30s"]),
        ("rotation = { lease_tll = \"1s\" }", &["lease_tll", "did you mean \"lease_ttl\"?"]),
        ("proxy = { mode = \"pol\" }", &["sites[\"shop\"].proxy: proxy.mode is \"pol\"", "\"pool\""]),
        ("breaker = { window = \"0\" }", &["sites[\"shop\"].breaker: window is \"0\""]),
        ("action = { name = \"x\" }", &["action.name: ", "under policies"]),
        ("cooldown_429 = 1", &["cooldown_429: found a number; expected a text such as \"1s\""]),
        ("cooldown_403 = \"permanent\"", &["cooldown_403: ", "with an end"]),
        ("cooldown_403 = \"5\"", &["cooldown_403: ", "unit"]),
        ("cooldown_403 = \"5s\"\naction = { mode = \"shadow\" }", &["cooldown_403: ", "policy of its own"]),
        ("paused = 1", &["paused: found a number", "reason"]),
        ("proxies = [{ url = \"http://h\" }]", &["dir/ids.toml:3: sites[\"shop\"].proxies[1]: url: ", "port"]),
        ("proxies = [{ url = \"http://h:1\", regoin = 1 }]", &["regoin: no such key, did you mean region?"]),
        ("proxies = [{ url = \"http://h:1\", concurrency = 1 }]", &["write max_concurrency"]),
        ("proxies = [{ url = \"http://h:1\", max_concurrency = 0 }]", &["max_concurrency: expected a whole number from 1"]),
        ("proxies = [\"http://h:1\", \"http://H:1\"]", &["proxies[2]: ", "equal URLs"]),
        ("proxies = [\"\"]", &["found an empty text"]),
        ("accounts = [{ name = \"x\", state = \"activ\" }]", &["state: found \"activ\", did you mean active?"]),
        ("accounts = [{ name = \"x\" }, { name = \"x\" }]", &["another account"]),
        ("groups = [{ name = \"Api\" }]", &["groups[\"Api\"].name: ", "a-z"]),
        ("groups = [{ name = \"g\", prefixes = [] }]", &["prefixes: ", "write prefix"]),
        ("groups = [{ name = \"g\", prefix = \"x\" }]", &["groups[\"g\"]: ", "start with /"]),
        ("groups = [{ name = \"g\", regex = \"(\" }]", &["groups[\"g\"]: ", "regex"]),
        ("groups = [{ name = \"g\", rules = [{ kind = \"prefx\" }] }]", &["kind: found \"prefx\", did you mean prefix?"]),
        ("groups = [{ name = \"g\", rules = [{ pattern = \"/\" }] }]", &["kind: the key is missing"]),
        ("groups = [{ name = \"g\" }, { name = \"g\" }]", &["groups[\"g\"].name: client web has a group of this name"]),
        ("groups = [{ name = \"_default\", prefix = \"/\" }]", &["_default has rules"]),
        ("identity_types = [{ name = \"plain\", fields.u = { type = \"string\", required = true } }]", &["choose another"]),
        (
            "identity_types = [{ name = \"s\", fields.u.type = \"strin\" }]",
            &["dir/ids.toml:3: ", "fields.u.type: allowed are string"],
        ),
        ("identity_types = [{ file = \"session.yaml\", name = \"s\" }]", &["name: no such key"]),
    ] {
        all_wrong(&[(&site(line), parts)]);
    }
}

#[test]
fn a_mistake_at_the_top_is_told_alike() {
    let token = format!("[[tokens]]\nname = \"t\"\ntoken = \"spn_{}\"\nscopes = [\"admin\"]\n", "a".repeat(43));
    all_wrong(&[
        ("sits = []", &["dir/ids.toml:1: sits: no such key, did you mean sites?"]),
        ("sites = 1", &["sites: found a number; expected a list"]),
        ("namespace = \"Prod\"", &["namespace: expected 1 to 64"]),
        (&format!("{SITE}{SITE}"), &["dir/ids.toml:5: sites[\"shop\"].name: another site"]),
        ("[[sites]]\nname = \"Shop\"\n", &["sites[\"Shop\"].name: ", "a-z"]),
        (&token.replace("admin", "lease:aquire"), &["tokens[\"t\"].scopes[1]: ", "lease:acquire"]),
        (&token.replace("aaa", ""), &["dir/ids.toml:3: tokens[\"t\"].token: ", "43 letters"]),
        (&token.replace("scopes", "scope"), &["did you mean scopes?"]),
        (&format!("{token}{token}"), &["tokens[\"t\"].name: another token"]),
        (&format!("{token}{}", token.replace("\"t\"", "\"u\"")), &["tokens[\"u\"].token: another token has the same text"]),
        (&format!("{token}ip_allowlist = [\"10/8\"]\n"), &["ip_allowlist[1]: 10/8 is no network"]),
        (&format!("{token}rate_limit_rps = 1000001\n"), &["rate_limit_rps: found 1000001", "0 to 1000000"]),
        (&format!("{token}expires_at = 2027-01-01\n"), &["expires_at: expected a moment with its offset"]),
        ("[[policies.rotation]]\nname = \"p\"\nrotation.probe.max_leases = 0\n", &["dir/ids.toml:3: policies.rotation[\"p\"]: "]),
        (
            "[[policies.rotation]]\nname = \"p\"\nbind = [{ site = \"sop\" }]\n[[sites]]\nname = \"shop\"\n",
            &["bind: site \"sop\" is not in the file, did you mean shop?"],
        ),
        (
            "[[policies.breaker]]\nname = \"p\"\nbind = [{ site = \"shop\", client = \"app\" }]\n[[sites]]\nname = \"shop\"\n",
            &["bind: client \"app\" is not in the file"],
        ),
        (
            "[[policies.breaker]]\nname = \"p\"\nbind = [{ site = \"shop\", client = \"web\", endpoint_group = \"x\" }]\n[[sites]]\nname = \"shop\"\n",
            &["bind: endpoint_group \"x\" is not", "_default"],
        ),
        (
            "[[policies.rotation]]\nname = \"p\"\nidentity_types = [\"x\"]\n",
            &["identity_types: no site has the identity type \"x\"", "plain"],
        ),
        ("[[policies.signal]]\nname = \"p\"\nextends = \"q\"\n", &["policies.signal[\"p\"]: ", "no signal policy of that name"]),
        (
            "[[policies.action]]\nname = \"p\"\n[[policies.action]]\nname = \"p\"\n",
            &["dir/ids.toml:3: ", "another action policy has this name"],
        ),
        (
            "[[policies.action]]\nname = \"p\"\nbind = [{}]\n[[policies.action]]\nname = \"q\"\nbind = [{}]\n",
            &["dir/ids.toml:4: policies.action[\"q\"]: ", "bound already"],
        ),
        ("[[config]]\ngroup = \"g\"\nkey = \"k\"\n", &["config[1]: write either content or file"]),
        ("[[config]]\ngroup = \"_g\"\nkey = \"k\"\ncontent = \"\"\n", &["begin with _"]),
        (
            "[[config]]\ngroup = \"g\"\nkey = \"k\"\nformat = \"json\"\ncontent = \"{\"\n",
            &["dir/ids.toml:5: config[1].content: the content is not JSON"],
        ),
        (
            "[[config]]\ngroup = \"g\"\nkey = \"k\"\nformat = \"text\"\ncontent = 1\n",
            &["content: found a number; expected a text"],
        ),
        ("[[config]]\ngroup = \"g\"\nkey = \"k\"\ncontent = \"${secret:a}\"\n", &["config[1]: ", "secret a"]),
        ("[secrets]\na.b = \"x\"\n", &["secrets.\"a\".b: no such key"]),
        ("[secrets]\nA = \"x\"\n", &["secrets.\"A\": a secret's path"]),
        (
            "[[sites]]\nname = \"s\"\nidentity_types = [{ name = \"k\", fields.r = { type = \"secret_ref\", required = true } }]\nidentities = [{ name = \"a\", type = \"k\", payload = { r = \"bok\" } }]\n[secrets]\nbook = \"x\"\n",
            &["identities[\"a\"].payload.r", "no secret \"bok\", did you mean book?"],
        ),
    ]);
}
