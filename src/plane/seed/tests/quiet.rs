//! No message and no debug text shows a value that may be a secret.

use std::path::Path;

use super::super::{Part, parse};
use super::{SITE, read};

#[test]
fn no_message_shows_a_value() {
    let typed =
        "[[sites]]\nname = \"s\"\nidentity_types = [{ name = \"k\", fields.n = { type = \"number\", required = true } }]\n";
    let lines = [
        "headers = \"canary\"",
        "headers = [\"canary\"]",
        "headers = { x = [\"canary\"] }",
        "headers = { x = \"canary\\n\" }",
        "headers = { x = \"canary\" \"y\" }",
        "cookies = { x = \"canary;\" }",
        "cookies = { x = \"canary\\u0000\" }",
        "cookies = { x = \"canary }",
        "cookies = { x = canary }",
        "cookies = { x = \"canary\", x = \"canary\" }",
        "cookies = [{ name = \"x\", value = \"canary;\" }]",
        "cookie_header = \"canary\\n\"",
        "query = \"canary=, expected canary\"",
        "query = [\n\"canary=\"]",
        "query = \"\"\"\ncanary = \\q\n\"\"\"",
        "proxy = \"ftp://user:canary@host:1\"",
        "proxy = \"http://user:canary@host\"",
        "proxy = \"canary\"",
        "clients = \"canary\"",
        "[[proxies]]\nurl = \"http://user:canary@host\"",
        "[[proxies]]\nurl = \"http://user:canary@host:1\"\nsession_template = \"{canary\"",
        "[[proxies]]\nurl = { a = \"canary\" }",
        "[[tokens]]\nname = \"t\"\ntoken = \"spn_canary\"\nscopes = []",
        "[[tokens]]\nname = \"t\"\ntoken = [\"spn_canary\"]\nscopes = []",
        "[secrets]\nA = \"canary\"",
        "[secrets]\na = { valeu = \"canary\" }",
        "[secrets]\na = [\"canary\"]",
        "[[config]]\ngroup = \"g\"\nkey = \"k\"\nformat = \"json\"\ncontent = \"canary\"",
    ];
    let texts = lines.map(|line| format!("{SITE}{line}\n")).into_iter().chain([
        format!("{typed}identities = [{{ name = \"a\", type = \"k\", payload = {{ n = \"canary\" }} }}]\n"),
        format!("{typed}identities = [{{ name = \"a\", type = \"k\", payload = \"canary\" }}]\n"),
    ]);
    for text in texts {
        let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let error = parse(&text, Path::new("ids.toml"), Part::Whole, &read).map(|_| ()).expect_err(&text);
        assert!(!error.to_string().contains("canary"), "{text}: {error}");
        assert!(!format!("{error:?}").contains("canary"), "{text}: {error:?}");
    }
}

#[test]
fn no_debug_text_shows_a_value() {
    let text = format!(
        "pepper = \"canary\"\nproxies = [\"http://canary:canary@10.0.0.2:1\"]\n{SITE}proxy = \"http://canary:canary@10.0.0.1:1\"\n\
         headers = {{ x = \"canary\" }}\ncookies = {{ x = \"canary\" }}\ncookie_header = \"canary\"\nquery = {{ x = \"canary\" }}\n\
         json = {{ x = \"canary\" }}\nvalues = {{ x = \"canary\" }}\n[secrets]\na = \"canary\"\n\
         [[config]]\ngroup = \"g\"\nkey = \"k\"\ncontent = \"canary\"\n\
         [[tokens]]\nname = \"t\"\ntoken = \"spn_canary{}\"\nscopes = []\n",
        "a".repeat(37)
    );
    assert!(!format!("{:?}", read(&text).unwrap()).contains("canary"));
}
