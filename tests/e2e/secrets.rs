//! Nothing a run leaves behind holds a part of an identity.

use super::harness::Folder;
use super::server::{Answer, Server};
use super::user_crate::start;

const CANARIES: [&str; 5] = ["canary-header", "canary-cookie", "canary-query", "canary-proxy", "canary-json"];

#[test]
fn no_part_of_an_identity_is_left_anywhere() {
    let server = Server::start(|asked| match asked.path() {
        "/moved" => Answer::moved("/target"),
        // As many sites do: the query goes with the visitor.
        "/repeats" => Answer::moved(asked.target.replace("/repeats", "/target")),
        "/big" => Answer::html("x".repeat(100_000)),
        "/hang" => Answer::Silence(std::time::Duration::from_secs(10)),
        "/noise" => Answer::Raw(b"not HTTP\r\n\r\n".to_vec()),
        "/fails" => Answer::status(500),
        "/short" => Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx".to_vec()),
        "/reset" => Answer::Reset,
        _ => Answer::html("<title>x</title><a href=/next>x</a>"),
    });
    let folder = Folder::new();
    // Kept away from the folder that is searched below.
    let secret = Folder::new();
    let identity = "[[sites]]\nname = \"x\"\ncooldown_proxy = \"50ms\"\n[[sites.identities]]\nname = \"one\"\nheaders = { Authorization = \"Bearer canary-header\" }\n\
                    cookies = { sid = \"canary-cookie\" }\nquery = { key = \"canary-query\" }\njson = { pin = \"canary-json\" }\n";
    secret.write_secret("direct.toml", identity);
    secret.write_secret("proxied.toml", &format!("{identity}proxy = \"http://canary-proxy:canary-proxy@127.0.0.1:1\"\n"));
    let base = format!("base={}", server.url(""));
    let paths = "paths=/fine,/moved,/repeats,/fails,/short,/reset,/big,/hang,/noise";
    let mut said = String::new();
    for (file, code) in [("direct.toml", 0), ("proxied.toml", 3)] {
        let identities = format!("IDENTITIES={}", secret.file(file).display());
        let mut call = vec!["crawl", "paths", "-a", &base, "-a", paths, "-L", "DEBUG", "-o", "a.jsonl", "-o", "b.csv", "-o", "-"];
        for pair in [
            identities.as_str(),
            "RETRY_BACKOFF=0.05",
            "DOWNLOAD_MAXSIZE=50KiB",
            "DOWNLOAD_TIMEOUT=1",
            "LEASES=[{\"domains\": [\"127.0.0.1\"], \"site\": \"x\", \"client\": \"web\"}]",
        ] {
            call.extend(["-s", pair]);
        }
        let shown = start(&folder, &call).end().with_code(code);
        let logged = start(&folder, &[&call[..], &["--logfile", "run.log"]].concat()).end();
        assert_eq!(logged.code, Some(code), "{logged}");
        said.push_str(&format!("{shown}\n{logged}\n"));
        let settings = folder.run(&["settings", "-s", &identities]);
        said.push_str(&settings.out);
    }
    let asked = server.asked();
    let fine = asked.iter().find(|asked| asked.path() == "/fine").unwrap();
    assert_eq!(fine.header("authorization"), Some("Bearer canary-header"), "the identity was used: {fine:?}");
    assert!(fine.target.contains("key=canary-query") && fine.header("cookie").unwrap().contains("canary-cookie"), "{fine:?}");
    assert!(said.contains("DEBUG"));

    let mut searched = vec![("what was said".to_owned(), said.into_bytes())];
    for file in folder.files() {
        searched.push((file.display().to_string(), std::fs::read(&file).unwrap()));
    }
    assert!(
        searched.iter().any(|(name, _)| name.ends_with("jobs.db")) && searched.iter().any(|(name, _)| name.ends_with("run.log"))
    );
    for (name, bytes) in &searched {
        for canary in CANARIES {
            let at = memchr::memmem::find(bytes, canary.as_bytes());
            let around =
                at.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..(at + 60).min(bytes.len())]).into_owned());
            assert_eq!(around, None, "{canary} is in {name}");
        }
    }
}
