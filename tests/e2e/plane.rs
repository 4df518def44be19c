//! The control plane in a process of its own (`dragline serve`), and what its ledger says.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::harness::{Folder, Running};

/// The token of every plane here.
pub(crate) const TOKEN: &str = "spn_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

/// What a plane leases, as the text of its file.
pub(crate) struct Site {
    pub(crate) name: String,
    /// Keys of the site's table, one a line.
    pub(crate) keys: String,
    pub(crate) identities: usize,
    /// Lines for identity number `{n}`.
    pub(crate) identity: String,
}

impl Site {
    /// A site whose identities carry canaries in header, cookie and query.
    pub(crate) fn new(name: &str, identities: usize, concurrency: usize) -> Self {
        Self {
            name: name.to_owned(),
            keys: format!("rotation = {{ max_concurrent_leases = {concurrency} }}"),
            identities,
            identity: "headers = { X-Reader = \"canary-{n}-header\" }\ncookies = { session = \"canary-{n}-cookie\" }\n\
                       query = { key = \"canary-{n}-query\" }"
                .to_owned(),
        }
    }

    /// With further keys of its table.
    pub(crate) fn with(mut self, keys: &str) -> Self {
        self.keys = format!("{}\n{keys}", self.keys);
        self
    }
}

/// The file of a plane with these sites; `more` stands at the end of the `plane` table.
pub(crate) fn file(sites: &[Site], more: &str) -> String {
    let mut text = format!(
        "[[keys]]\napi_key = \"sample-key\"\nsecret_key = \"sample-secret\"\n\n[[plane.tokens]]\nname = \"node\"\ntoken = \"{TOKEN}\"\n\
         scopes = [\"lease:acquire\", \"report:write\", \"config:read\", \"secret:read:default/*\"]\n\n"
    );
    for site in sites {
        write!(text, "[[plane.sites]]\nname = \"{}\"\nclients = [\"web\"]\n{}\n\n", site.name, site.keys).unwrap();
        for n in 0..site.identities {
            let lines = site.identity.replace("{n}", &n.to_string()).replace("{site}", &site.name);
            write!(text, "[[plane.sites.identities]]\nname = \"reader-{n}\"\n{lines}\n\n").unwrap();
        }
    }
    text.push_str(more);
    text
}

/// `dragline serve`.
pub(crate) struct Plane {
    _running: Running,
    pub(crate) address: String,
}

impl Plane {
    pub(crate) fn start(folder: &Folder, text: &str) -> Self {
        Self::at(folder, text, "127.0.0.1:0")
    }

    pub(crate) fn at(folder: &Folder, text: &str, listen: &str) -> Self {
        folder.write_secret("serve.toml", text);
        let running = folder.start(&["serve", "--listen", listen, "--keys", "serve.toml"]);
        let line = running.first_line();
        let address =
            line.strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}")).trim_end_matches('/').to_owned();
        Self { _running: running, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the process without a word (SIGKILL), as dropping it does.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Status and JSON of an answer of the plane's own addresses.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}")))
    }

    /// Does something by hand; it must work.
    pub(crate) fn act(&self, deed: &str, body: Value) -> Value {
        let (status, answer) = self.ask("POST", &format!("/plane/{deed}"), &body);
        assert_eq!(status, 200, "{deed}: {answer}");
        answer
    }

    pub(crate) fn publish(&self, group: &str, key: &str, content: &Value) {
        self.act("config/publish", json!({ "group": group, "key": key, "format": "json", "content": content.to_string() }));
    }

    /// The ledger of a site.
    pub(crate) fn ledger(&self, site: &str) -> Value {
        let (status, answer) = self.ask("GET", "/plane/ledger", &Value::Null);
        assert_eq!(status, 200, "{answer}");
        answer["sites"][site].clone()
    }

    /// A number of a site's ledger.
    pub(crate) fn count(&self, site: &str, name: &str) -> u64 {
        self.ledger(site)[name].as_u64().unwrap_or_else(|| panic!("{name} of {site}: {}", self.ledger(site)))
    }
}

/// The settings of a crawl that leases from `plane`, as the text of a settings file.
pub(crate) fn settings(plane: &str, rules: &[(&str, &str)], more: &str) -> String {
    let mut text = format!("{more}\nSPINNERET_URL = \"{plane}\"\nSPINNERET_TOKEN = \"{TOKEN}\"\n");
    for (domain, site) in rules {
        write!(text, "\n[[LEASES]]\ndomains = [\"{domain}\"]\nsite = \"{site}\"\nclient = \"web\"\n").unwrap();
    }
    text
}
