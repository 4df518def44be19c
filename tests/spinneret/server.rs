//! A control plane on a loopback port, small but with books: it grants, counts, forgets nothing, and fails on demand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Values that no log, error or debug text may show.
pub const CANARIES: [&str; 7] =
    ["c4n4ry-token", "c4n4ry-cookie", "c4n4ry-agent", "c4n4ry-query", "c4n4ry-password", "c4n4ry-content", "c4n4ry-secret"];

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is served.
    Serve,
    /// It is served, and the connection closed instead of an answer.
    ServeAndReset,
    /// The connection is closed before it is served.
    Reset,
    /// 503 of the server itself: overloaded.
    Overloaded,
    /// 503 of something in between, with a page.
    Page,
}

/// How a lease was used.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// Reports under it, by id.
    pub reports: Vec<Value>,
    /// Releases by a report or a call that ended it; more than one would be a fault of the server.
    pub ends: u32,
    /// Reports that came after the end.
    pub after_end: u32,
    /// Whether the answer of its acquisition went out.
    pub is_known: bool,
}

#[derive(Default)]
pub struct Books {
    pub leases: BTreeMap<String, Life>,
    pub report_ids: HashSet<String>,
    pub duplicated: u32,
    pub calls: HashMap<String, u32>,
    pub headers: Vec<HeaderMap>,
    pub items: BTreeMap<(String, String), (i32, String, bool)>,
}

type Fates = Arc<dyn Fn(&str, u32) -> Fate + Send + Sync>;

pub struct Server {
    pub url: String,
    pub books: Arc<Mutex<Books>>,
    changed: watch::Sender<u64>,
    accept: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    books: Arc<Mutex<Books>>,
    fates: Fates,
    changed: watch::Sender<u64>,
}

impl Server {
    pub async fn start() -> Self {
        Self::failing(|_, _| Fate::Serve).await
    }

    /// `fates` is asked with the method's name and the number of the call of this kind, from 1.
    pub async fn failing(fates: impl Fn(&str, u32) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let books = Arc::<Mutex<Books>>::default();
        let (changed, _) = watch::channel(0);
        let shared = Shared { books: Arc::clone(&books), fates: Arc::new(fates), changed: changed.clone() };
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| shared.clone().serve(request));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url, books, changed, accept }
    }

    /// Publishes an item.
    pub fn publish(&self, group: &str, key: &str, content: &str, has_secret_refs: bool) {
        let mut books = self.books.lock().unwrap();
        let item = books.items.entry((group.to_owned(), key.to_owned())).or_default();
        *item = (item.0 + 1, content.to_owned(), has_secret_refs);
        drop(books);
        self.changed.send_modify(|n| *n += 1);
    }

    /// Leases that are out, of those whose acquisition was answered.
    pub fn open(&self) -> Vec<String> {
        let books = self.books.lock().unwrap();
        books.leases.iter().filter(|(_, life)| life.is_known && life.ends == 0).map(|(id, _)| id.clone()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Makes hyper close the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("reset on demand")]
struct OnDemand;

impl Shared {
    async fn serve(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, OnDemand> {
        let (head, body) = request.into_parts();
        let method = head.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let body = body.collect().await.map_err(|_| OnDemand)?.to_bytes();
        let fate = {
            let mut books = self.books.lock().unwrap();
            books.headers.push(head.headers.clone());
            let n = books.calls.entry(method.clone()).or_default();
            *n += 1;
            (self.fates)(&method, *n)
        };
        match fate {
            Fate::Reset => return Err(OnDemand),
            Fate::Overloaded => return Ok(refusal(503, "unavailable", "overloaded", Some(20))),
            Fate::Page => {
                let page = "<html>upstream gone; you sent Authorization: Bearer c4n4ry-token</html>";
                return Ok(Response::builder().status(503).body(Full::from(page)).unwrap());
            }
            Fate::Serve | Fate::ServeAndReset => {}
        }
        if head.headers.get("authorization").is_none_or(|token| token != "Bearer c4n4ry-token") {
            return Ok(refusal(401, "unauthenticated", "token_invalid", None));
        }
        let Ok(body) = serde_json::from_slice::<Value>(&body) else {
            return Ok(refusal(400, "invalid_argument", "", None));
        };
        let answer = match method.as_str() {
            "WatchConfig" => self.watch(&body).await,
            _ => self.books.lock().unwrap().answer(&method, &body, fate == Fate::Serve),
        };
        if fate == Fate::ServeAndReset {
            return Err(OnDemand);
        }
        Ok(match answer {
            Ok(answer) => Response::new(Full::from(answer.to_string())),
            Err((status, code, reason)) => refusal(status, code, reason, None),
        })
    }

    async fn watch(&self, body: &Value) -> Answer {
        let mut changed = self.changed.subscribe();
        let limit = tokio::time::Instant::now() + Duration::from_millis(body["timeout_ms"].as_u64().unwrap_or(30_000));
        loop {
            let news: Vec<Value> = {
                let books = self.books.lock().unwrap();
                let items = body["items"].as_array().cloned().unwrap_or_default();
                let held = items.iter().filter_map(|held| Some((books.item(held)?, held["version"].as_i64()?)));
                held.filter(|(item, version)| item["version"] != *version).map(|(item, _)| item).collect()
            };
            if !news.is_empty() || tokio::time::timeout_at(limit, changed.changed()).await.is_err() {
                return Ok(json!({ "items": news }));
            }
        }
    }
}

type Answer = Result<Value, (u16, &'static str, &'static str)>;

impl Books {
    fn item(&self, name: &Value) -> Option<Value> {
        let (group, key) = (name["group"].as_str()?, name["key"].as_str()?);
        let (version, content, secret) = self.items.get(&(group.to_owned(), key.to_owned()))?;
        Some(json!({
            "namespace": "prod", "group": group, "key": key, "format": "text", "version": version, "content": content,
            "updated_at": "2026-09-16T08:30:00Z", "has_secret_refs": secret
        }))
    }

    fn answer(&mut self, method: &str, body: &Value, is_answered: bool) -> Answer {
        match method {
            "Acquire" => Ok(self.grant(is_answered)),
            "AcquireBatch" => {
                let count = body["count"].as_u64().unwrap_or(1);
                let leases: Vec<Value> = (0..count).map(|_| self.grant(is_answered)).collect();
                Ok(json!({"leases": leases, "requested": count}))
            }
            "Renew" => Ok(json!({"expires_at": "2099-01-01T00:00:00Z"})),
            "Release" => Ok(json!({"released": self.end(body["lease_id"].as_str().unwrap_or_default())})),
            "Report" => Ok(self.report(body)),
            "GetConfig" => self.item(body).map(|item| json!({ "item": item })).ok_or((404, "not_found", "not_found")),
            "BatchGetConfig" => {
                let asked = body["items"].as_array().cloned().unwrap_or_default();
                let missing: Vec<&Value> = asked.iter().filter(|name| self.item(name).is_none()).collect();
                let items: Vec<Value> = asked.iter().filter_map(|name| self.item(name)).collect();
                Ok(json!({"items": items, "missing": missing}))
            }
            "GetSecret" => Ok(json!({"path": body["path"], "version": 3, "value": "c4n4ry-secret", "expires_at": null})),
            _ => Err((404, "unimplemented", "")),
        }
    }

    fn grant(&mut self, is_answered: bool) -> Value {
        let id = format!("lse_{:06}", self.leases.len());
        self.leases.insert(id.clone(), Life { is_known: is_answered, ..Life::default() });
        json!({
            "lease": {"lease_id": id, "identity_id": "idt_1", "identity_type": "account", "endpoint_group": "_default",
                      "expires_at": "2099-01-01T00:00:00Z", "sticky": false, "probe": false},
            "credential": {"cookies": {"sid": "c4n4ry-cookie"}, "cookie_header": "sid=c4n4ry-cookie",
                           "headers": {"User-Agent": "c4n4ry-agent"}, "query": {"sig": "c4n4ry-query"}, "json": null, "values": {}},
            "proxy": {"proxy_id": "pxy_1", "url": "http://user:c4n4ry-password@127.0.0.1:9", "kind": "datacenter", "region": ""},
            "hints": {"renew_before_ms": 30_000}
        })
    }

    fn end(&mut self, id: &str) -> bool {
        let Some(life) = self.leases.get_mut(id) else { return false };
        // A release that is made again is no fault.
        if life.ends > 0 {
            return false;
        }
        life.ends += 1;
        true
    }

    fn report(&mut self, body: &Value) -> Value {
        let (mut accepted, mut duplicated) = (0, 0);
        for report in body["reports"].as_array().into_iter().flatten() {
            if !self.report_ids.insert(report["report_id"].as_str().unwrap_or_default().to_owned()) {
                duplicated += 1;
                continue;
            }
            accepted += 1;
            let id = report["lease_id"].as_str().unwrap_or_default().to_owned();
            if let Some(life) = self.leases.get_mut(&id) {
                life.after_end += u32::from(life.ends > 0);
                life.reports.push(report.clone());
            }
            if report["release"] == true {
                self.end(&id);
            }
        }
        self.duplicated += duplicated;
        json!({"accepted": accepted, "duplicated": duplicated, "rejected": []})
    }
}

fn refusal(status: u16, code: &str, reason: &str, hint: Option<u64>) -> Response<Full<Bytes>> {
    let mut answer = Response::builder().status(StatusCode::from_u16(status).unwrap());
    if !reason.is_empty() {
        answer = answer.header("Spinneret-Reason", reason);
    }
    if let Some(hint) = hint {
        answer = answer.header("Spinneret-Retry-After-Ms", hint);
    }
    answer.body(Full::from(json!({"code": code, "message": format!("scripted {code}")}).to_string())).unwrap()
}
