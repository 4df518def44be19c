//! The webhook as a program: what it takes, what it refuses, and what it keeps when it is killed.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use dragline::apcloudy::Signer;
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Folder, Running};

const ENDPOINT: &str = "/api/webhook/consume";
const BODY: &str = r#"{"job_id": 7, "data": {"requests": [], "items": [{"n": 1}], "logs": []}}"#;

/// A webhook in a process of its own.
pub(crate) struct Hook {
    pub(crate) running: Running,
    address: String,
}

/// A POST as the Python client makes it, to be changed before it is sent.
#[derive(Clone)]
pub(crate) struct Post {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl Post {
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self::signed(body, now(), "sample-secret")
    }

    fn signed(body: impl Into<Vec<u8>>, at: u64, secret: &str) -> Self {
        let body = body.into();
        let timestamp = at.to_string();
        let signature = Signer::new(secret.to_owned().into()).sign(&timestamp, &body);
        let headers = [
            ("User-Agent", "python-requests/2.34.2"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
            ("Accept", "*/*"),
            ("Connection", "keep-alive"),
            ("X-API-KEY", "sample-key"),
            ("X-TIMESTAMP", &timestamp),
            ("X-SIGNATURE", &signature),
            ("Content-Type", "application/json"),
        ];
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { method: "POST", path: ENDPOINT.to_owned(), headers, body }
    }

    /// With a header, or without it.
    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    fn to(mut self, method: &'static str, path: &str) -> Self {
        (self.method, self.path) = (method, path.to_owned());
        self
    }
}

impl Hook {
    pub(crate) fn start(folder: &Folder, options: &[&str]) -> Self {
        let running = folder.start(&[&["serve", "--listen", "127.0.0.1:0"], options].concat());
        let line = running.first_line();
        let address = line.strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { running, address }
    }

    /// Status and JSON of the answer.
    pub(crate) fn post(&self, post: &Post) -> (u16, Value) {
        let (status, text) = self.raw(post);
        assert!(text.ends_with('\n') && text.lines().count() == 1, "one line: {text}");
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// Status and body of the answer.
    fn raw(&self, post: &Post) -> (u16, String) {
        self.try_raw(post).unwrap_or_else(|| panic!("no answer\n{}", self.running.err()))
    }

    /// The same, from a server that may be gone.
    fn try_raw(&self, post: &Post) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", post.method, post.path, self.address);
        for (name, value) in post.headers.iter().filter(|(name, _)| name != "Connection") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n", post.body.len()));
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&post.body).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }
}

fn ask<T: rusqlite::types::FromSql>(folder: &Folder, sql: &str) -> T {
    Connection::open(folder.file(".dragline/jobs.db")).unwrap().query_row(sql, (), |row| row.get(0)).unwrap()
}

fn captured() -> Vec<Value> {
    let text = include_str!("../data/apcloudy/payloads.json");
    let all: Vec<Value> = serde_json::from_str(text).unwrap();
    all.into_iter().filter(|capture| capture["captured"] == json!(true)).collect()
}

#[test]
fn every_captured_body_is_taken_once_and_answers_in_sql() {
    let folder = Folder::new();
    let hook = Hook::start(&folder, &[]);
    let captures = captured();
    assert_eq!(captures.len(), 18);
    let mut sums = [0_i64; 3];
    for round in ["stored", "duplicate"] {
        for capture in &captures {
            let body = capture["body"].as_str().unwrap();
            // A path prefix and the client's own headers change nothing.
            let post = Post::new(body).to("POST", &format!("/run/ok{ENDPOINT}"));
            let (status, answer) = hook.post(&post);
            assert_eq!((status, &answer["status"]), (200, &json!(round)), "{}: {answer}", capture["name"]);
            if round == "stored" {
                for (sum, kind) in sums.iter_mut().zip(["items", "requests", "logs"]) {
                    *sum += answer[kind].as_i64().unwrap();
                }
            }
        }
    }
    hook.running.signal(Signal::INT);
    let ended = hook.running.end();
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 1), "{ended}");
    ended.says(&["sample keys"]);
    assert_eq!(ask::<i64>(&folder, "SELECT count(*) FROM batches"), 18);
    for (sum, table) in sums.iter().zip(["items", "requests", "logs"]) {
        assert_eq!(ask::<i64>(&folder, &format!("SELECT count(*) FROM {table}")), *sum, "{table}");
    }
    assert!(sums.iter().all(|sum| *sum > 20), "{sums:?}");
    let bodies: BTreeSet<Vec<u8>> = captures.iter().map(|capture| capture["body"].as_str().unwrap().into()).collect();
    let store = Connection::open(folder.file(".dragline/jobs.db")).unwrap();
    let mut query = store.prepare("SELECT coalesce(raw, CAST(body AS BLOB)) FROM batches").unwrap();
    let stored: BTreeSet<Vec<u8>> = query.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(stored, bodies, "kept byte for byte");
    assert_eq!(ask::<i64>(&folder, "SELECT count(*) FROM batches WHERE raw IS NOT NULL"), 3);
    assert_eq!(ask::<i64>(&folder, "SELECT count(*) FROM batches WHERE NOT json_valid(body)"), 0);
}

#[test]
fn what_is_wrong_is_refused_with_its_status_and_nothing_is_stored() {
    let folder = Folder::new();
    let hook = Hook::start(&folder, &["--max-body", "4096"]);
    let good = Post::new(BODY);
    let old = Post::signed(BODY, now() - 400, "sample-secret");
    let tampered = Post { body: BODY.replace(": 1}", ": 2}").into_bytes(), ..good.clone() };
    let large = Post::new(format!("{{\"job_id\": 7, \"data\": {{\"items\": [{{\"x\": \"{}\"}}]}}}}", "y".repeat(5_000)));
    let cases = [
        (good.clone().to("POST", "/api/webhook"), 404, "not_found", &[ENDPOINT][..]),
        (good.clone().to("PUT", ENDPOINT), 405, "method_not_allowed", &["PUT", "POST"]),
        (
            good.clone().with("Content-Type", Some("text/plain")),
            415,
            "unsupported_media_type",
            &["text/plain", "application/json"],
        ),
        (good.clone().with("Content-Type", None), 415, "unsupported_media_type", &["missing"]),
        (large, 413, "too_large", &["4096", "--max-body"]),
        (good.clone().with("X-API-KEY", None), 401, "missing_api_key", &["X-API-KEY"]),
        (good.clone().with("X-API-KEY", Some("canary-key")), 401, "unknown_api_key", &["X-API-KEY"]),
        (good.clone().with("X-TIMESTAMP", None), 401, "missing_timestamp", &["X-TIMESTAMP"]),
        (good.clone().with("X-TIMESTAMP", Some("soon")), 401, "malformed_timestamp", &["soon"]),
        (good.clone().with("X-SIGNATURE", None), 401, "missing_signature", &["X-SIGNATURE"]),
        (good.clone().with("X-SIGNATURE", Some("abc")), 401, "malformed_signature", &["3 characters", "64"]),
        (old, 401, "clock_skew", &["X-TIMESTAMP says", "this server's clock", "300"]),
        (Post::signed(BODY, now(), "canary-secret"), 401, "bad_signature", &["secret key"]),
        (tampered, 401, "bad_signature", &["body bytes"]),
        (good.clone().with("Idempotency-Key", Some(&"x".repeat(300))), 400, "malformed_idempotency_key", &["300", "255"]),
        (Post::new(&BODY[..40]), 400, "malformed_json", &["byte 40"]),
        (Post::new("[]"), 422, "wrong_shape", &["a list", "object"]),
        (Post::new(BODY.replace("7", "\"\"")), 422, "wrong_shape", &["job_id is empty"]),
        (Post::new(r#"{"job_id": 7, "data": {"items": {}}}"#), 422, "wrong_shape", &["data.items", "list"]),
        (Post::new(r#"{"job_id": 7, "data": {"items": [{}, 1]}}"#), 422, "wrong_shape", &["data.items[1]"]),
        (Post::new(r#"{"job_id": 7, "data": {"requests": [{}]}}"#), 422, "wrong_shape", &["data.requests[0]", "url"]),
    ];
    for (post, status, code, parts) in cases {
        let (found, answer) = hook.post(&post);
        assert_eq!((found, answer["error"]["code"].as_str()), (status, Some(code)), "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(parts.iter().all(|part| message.contains(part)), "{code}: {message}");
        assert!(!message.contains("canary"), "{message}");
    }
    assert_eq!(ask::<i64>(&folder, "SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM jobs)"), 0);
    // The same server takes what is right.
    assert_eq!(hook.post(&good).0, 200);
    hook.running.signal(Signal::TERM);
    let ended = hook.running.end();
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(!ended.err.contains("canary"), "{ended}");
}

#[test]
fn a_batch_is_the_same_by_its_key_and_a_key_is_for_one_body() {
    let folder = Folder::new();
    let hook = Hook::start(&folder, &[]);
    let keyed = |body: &str| Post::new(body).with("Idempotency-Key", Some("batch-1"));
    let other = BODY.replace("\"n\": 1", "\"n\": 2");
    let (status, answer) = hook.post(&keyed(BODY));
    assert_eq!((status, answer), (200, json!({"status": "stored", "batch": "batch-1", "items": 1, "requests": 0, "logs": 0})));
    assert_eq!(hook.post(&keyed(BODY)).1["status"], "duplicate");
    let (status, answer) = hook.post(&keyed(&other));
    assert_eq!((status, &answer["error"]["code"]), (422, &json!("idempotency_key_reused")));
    assert!(answer["error"]["message"].as_str().unwrap().contains("batch-1"), "{answer}");
    // Without a key, the body is the key.
    assert_eq!(hook.post(&Post::new(other.as_str())).1["status"], "stored");
    assert_eq!(hook.post(&Post::new(other.as_str())).1["status"], "duplicate");
    assert_eq!(ask::<String>(&folder, "SELECT group_concat(record ->> 'n') FROM items"), "1,2");
}

#[test]
fn many_senders_at_once_lose_nothing() {
    let folder = Folder::new();
    let hook = Hook::start(&folder, &[]);
    std::thread::scope(|scope| {
        for sender in 0..20 {
            let hook = &hook;
            scope.spawn(move || {
                for n in 0..10 {
                    let body = format!("{{\"job_id\": \"s{sender}\", \"data\": {{\"items\": [{{\"n\": {n}}}]}}}}");
                    assert_eq!(hook.post(&Post::new(body)).0, 200);
                }
            });
        }
    });
    assert_eq!(ask::<i64>(&folder, "SELECT count(*) FROM items"), 200);
    assert_eq!(ask::<i64>(&folder, "SELECT count(*) FROM jobs"), 20);
}

#[test]
fn what_was_confirmed_survives_a_kill() {
    let folder = Folder::new();
    let confirmed: Mutex<BTreeSet<String>> = Mutex::default();
    for round in 0..3 {
        let hook = Hook::start(&folder, &[]);
        let before = confirmed.lock().unwrap().len();
        std::thread::scope(|scope| {
            for sender in 0..4 {
                let (hook, confirmed) = (&hook, &confirmed);
                scope.spawn(move || {
                    for n in 0.. {
                        let id = format!("{round}-{sender}-{n}");
                        match hook.try_raw(&Post::new(BODY).with("Idempotency-Key", Some(&id))) {
                            Some((status, _)) => assert_eq!(status, 200),
                            None => return,
                        }
                        confirmed.lock().unwrap().insert(id);
                    }
                });
            }
            hook.running.until("twenty batches", || confirmed.lock().unwrap().len() >= before + 20);
            hook.running.signal(Signal::KILL);
        });
        assert_eq!(hook.running.end().code, None);
    }
    let store = Connection::open(folder.file(".dragline/jobs.db")).unwrap();
    let mut query = store.prepare("SELECT id FROM batches").unwrap();
    let stored: BTreeSet<String> = query.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let confirmed = confirmed.into_inner().unwrap();
    assert!(confirmed.len() >= 60 && confirmed.is_subset(&stored), "{:?}", confirmed.difference(&stored));
}

#[test]
fn keys_are_those_of_the_file_and_the_sample_ones_stay_on_this_machine() {
    let folder = Folder::new();
    let said = folder.refused(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(said.contains("0.0.0.0:0") && said.contains("config/serve.toml") && said.contains("--file"), "{said}");
    let said = folder.refused(&["serve", "--keys", "none.toml"]);
    assert!(said.contains("none.toml"), "{said}");
    folder.write("bad.toml", "[[keys]]\napi_key = \"canary-a\"\nsecret = \"canary-b\"\n");
    let said = folder.refused(&["serve", "--keys", "bad.toml"]);
    assert!(said.contains("bad.toml:3: unknown field `secret`") && !said.contains("canary"), "{said}");
    assert!(!folder.file(".dragline").exists());

    folder.write("config/serve.toml", "[[keys]]\napi_key = \"own-key\"\nsecret_key = \"canary-own\"\n");
    let hook = Hook::start(&folder, &[]);
    hook.running.says("chmod 600");
    let own = Post::signed(BODY, now(), "canary-own").with("X-API-KEY", Some("own-key"));
    assert_eq!(hook.post(&own).0, 200);
    assert_eq!(hook.post(&Post::new(BODY)).1["error"]["code"], "unknown_api_key");
    hook.running.signal(Signal::INT);
    let ended = hook.running.end();
    assert!(ended.code == Some(0) && !ended.err.contains("canary") && !ended.err.contains("sample keys"), "{ended}");
    for file in folder.files().iter().filter(|file| !file.ends_with("serve.toml") && !file.ends_with("bad.toml")) {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"canary-own"), "{}", file.display());
    }
}

#[test]
fn a_port_in_use_and_a_store_of_something_else_are_bad_usage() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = folder.refused(&["serve", "--listen", &address]);
    assert!(said.contains("already in use"), "{said}");
    folder.write("notes.db", "this is no database, however long it is made to be");
    let said = folder.refused(&["serve", "--listen", "127.0.0.1:0", "--db", "notes.db"]);
    assert!(said.contains("notes.db"), "{said}");
}
