//! `lease`: which lease a crawl would get for a URL, taken from the control plane of the settings and given back.
//!
//! Shows names only: nothing that an identity adds to a request is printed.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use url::Url;

use super::exit::{self, CliError};
use super::logging::{self, LogOptions};
use super::options::SettingsOptions;
use super::{out, signals};
use crate::api::request::Request;
use crate::broker::rules::Rules;
use crate::plane::{Ask, ControlPlane, Grant, Refusal, RefusalKind};
use crate::run::plane::{Opened, open, rules, unmatched};
use crate::settings::{Environment, LeaseRule, Settings, UnmatchedLease};

/// Stopped by a signal.
const STOPPED: u8 = 2;
/// No lease, or one that could not be given back.
const REFUSED: u8 = 3;

/// Shows the lease a crawl would get for a URL: takes it, says what it is, gives it back.
///
/// The rule is that of LEASES in the settings, the control plane that of SPINNERET_URL, or the embedded one. Values that an
/// identity adds to a request are not shown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline lease https://shop.example/books/1        rule, identity, proxy and expiry
  dragline lease https://shop.example/ --session-key cart-7 --json
  dragline lease https://shop.example/ --site shop --client web --group search
  dragline lease https://shop.example/ --hold 60     keeps it for a minute; Ctrl-C gives it back earlier

Exit codes:
  0 leased and given back, or no lease is needed   2 stopped by a signal before the answer
  3 refused, or the control plane is not to be reached   64 bad usage or settings")]
pub(crate) struct LeaseArgs {
    /// The URL a crawl would fetch
    #[arg(value_name = "URL")]
    url: String,
    /// The control plane's name of the site, instead of that of a rule
    #[arg(long, value_name = "NAME", requires = "client")]
    site: Option<String>,
    /// The control plane's name of the client, instead of that of a rule
    #[arg(long, value_name = "NAME", requires = "site")]
    client: Option<String>,
    /// The endpoint group, instead of that of the rule or of the path
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Requests with the same key keep their identity
    #[arg(long, value_name = "KEY")]
    session_key: Option<String>,
    /// Seconds to keep the lease, renewed when that is needed
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    hold: u32,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsOptions,
}

/// Runs the verb; answers the exit code.
///
/// # Errors
/// When the call or the settings are wrong, or the output cannot be written.
pub(crate) fn lease(args: &LeaseArgs, to: &mut dyn Write) -> Result<u8, CliError> {
    let layers = args.settings.layers(None, Path::new("."), Environment::of(std::env::vars_os()));
    let settings = layers.resolve_without_secrets().map_err(CliError::usage)?.settings;
    logging::install(&LogOptions::of(&settings)).map_err(CliError::usage)?;
    crate::actor::run_system(async {
        let interrupted = signals::first()?;
        show(args, &settings, interrupted, to).await
    })
}

async fn show(
    args: &LeaseArgs,
    settings: &Settings,
    interrupted: impl Future<Output = ()>,
    to: &mut dyn Write,
) -> Result<u8, CliError> {
    let request = Request::get(&args.url, &()).map_err(|error| CliError::usage(format!("{}: {error}", args.url)))?;
    if !matches!(request.url().scheme(), "http" | "https") {
        return Err(CliError::usage(format!("{}: a crawl fetches only http and https; give such a URL", args.url)));
    }
    let covered = covered(args, settings, &request)?;
    let mut page = Page { is_json: args.json, value: Map::new(), to };
    page.set("url", json!(shown(request.url())));
    let opened = open(settings)?;
    page.set("plane", json!(opened.name));
    page.line("plane", &opened.name)?;
    page.line("rule", &covered.text)?;
    page.set("rule", json!(covered.text));
    let Some(ask) = covered.ask else { return page.end(covered.code) };
    page.set(
        "asked",
        json!({
            "site": *ask.site,
            "client": *ask.client,
            "endpoint_group": *ask.group,
            "path": ask.path,
            "session_key": ask.session_key.as_deref(),
        }),
    );
    let mut interrupted = pin!(interrupted);
    let answer = tokio::select! {
        answer = opened.plane.acquire(ask.clone()) => answer,
        () = &mut interrupted => {
            logging::current().fail("stopped before the control plane had answered; a lease it may have given expires by itself");
            return page.end(STOPPED);
        }
    };
    let grant = match answer {
        Ok(grant) => grant,
        Err(refusal) => {
            let advice = advice(&refusal, &ask, &opened, covered.rule.as_deref());
            page.set(
                "refused",
                json!({
                    "reason": refusal.why.name(),
                    "message": refusal.message,
                    "retry_after_ms": refusal.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
                    "advice": advice,
                }),
            );
            logging::current().fail(&format!("no lease: {}; {advice}", refusal.message));
            return page.end(REFUSED);
        }
    };
    page.grant(&grant)?;
    if args.hold > 0 {
        page.line("held", &format!("{} s, or until Ctrl-C", args.hold))?;
        hold(opened.plane.as_ref(), &grant, Duration::from_secs(args.hold.into()), interrupted).await;
    }
    match opened.plane.release(grant.lease.clone()).await {
        Ok(()) => {
            page.line("released", "yes")?;
            page.set("released", json!(true));
            page.end(exit::FINISHED)
        }
        Err(error) => {
            page.set("released", json!(false));
            let text = format!("the lease was not given back: {error}; it ends by itself when it expires");
            logging::current().fail(&text);
            page.end(REFUSED)
        }
    }
}

/// Keeps the lease for so long, or until a signal, and renews it meanwhile.
async fn hold(plane: &dyn ControlPlane, grant: &Grant, time: Duration, interrupted: impl Future<Output = ()>) {
    let end = Instant::now() + time;
    let keeping = async {
        let mut expires = grant.expires_at;
        loop {
            let due = expires.checked_sub(grant.renew_before).unwrap_or(expires).max(Instant::now() + Duration::from_secs(1));
            if due >= end {
                tokio::time::sleep_until(end).await;
                return;
            }
            tokio::time::sleep_until(due).await;
            match plane.renew(grant.lease.clone()).await {
                Ok(until) => expires = until,
                Err(error) => {
                    logging::current().fail(&format!("the lease cannot be renewed: {error}"));
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = keeping => {}
        () = interrupted => {}
    }
}

/// What the rules say of the URL.
struct Covered {
    /// What to ask for; nothing where no lease is taken, and the exit code says how that is to be seen.
    ask: Option<Ask>,
    code: u8,
    /// What named site and client.
    rule: Option<Arc<str>>,
    text: String,
}

fn covered(args: &LeaseArgs, settings: &Settings, request: &Request) -> Result<Covered, CliError> {
    let host = request.url().host_str().unwrap_or_default().to_owned();
    let (ask, rule, from) = if let (Some(site), Some(client)) = (&args.site, &args.client) {
        let ask = Ask {
            site: site.as_str().into(),
            client: client.as_str().into(),
            group: "".into(),
            path: request.url().path().to_owned(),
            session_key: None,
            anonymous: false,
            rule: None,
        };
        (ask, None, "none asked: site and client of the call".to_owned())
    } else {
        match first(settings, request)? {
            Some((number, rule, ask)) => {
                let name: Arc<str> = format!("LEASES rule {number}").into();
                let from = format!("{name}: {}", rule.domains.join(", "));
                (Ask { rule: Some(Arc::clone(&name)), ..ask }, Some(name), from)
            }
            None => return Ok(uncovered(&host, settings)),
        }
    };
    let group = args.group.as_deref().map_or(ask.group, Arc::from);
    let session_key = args.session_key.as_deref().map(Arc::from).or(ask.session_key);
    let by = if group.is_empty() { "the group of the path".to_owned() } else { format!("group {group}") };
    let key = if session_key.is_some() { ", with a session key" } else { "" };
    let text = format!("{from} → site {}, client {}, {by}{key}", ask.site, ask.client);
    Ok(Covered { ask: Some(Ask { group, session_key, ..ask }), code: exit::FINISHED, rule, text })
}

/// The first rule that covers the request, counted from 1, and what it asks for.
fn first<'r>(settings: &'r Settings, request: &Request) -> Result<Option<(usize, &'r LeaseRule, Ask)>, CliError> {
    // Read as a whole first, so that an error names the place in the settings.
    rules(settings)?;
    for (number, rule) in (1..).zip(&settings.leases) {
        let alone = Rules::new(std::slice::from_ref(rule), UnmatchedLease::Refuse).map_err(CliError::usage)?;
        if let Some(ask) = alone.ask(request) {
            return Ok(Some((number, rule, ask)));
        }
    }
    Ok(None)
}

/// What becomes of a request that no rule covers.
fn uncovered(host: &str, settings: &Settings) -> Covered {
    let none = if settings.leases.is_empty() {
        "LEASES has no rule (those that a spider brings are not looked at)".to_owned()
    } else {
        format!("no rule of LEASES covers {host}")
    };
    let (code, then) = match (unmatched(settings), settings.spinneret_url.is_some()) {
        (UnmatchedLease::Refuse, _) => (
            REFUSED,
            format!(
                "LEASE_UNMATCHED is refuse: a crawl drops such requests; add a rule with the domain {host:?}, or set \
                 LEASE_UNMATCHED=anonymous to send them without identity and proxy"
            ),
        ),
        (UnmatchedLease::Anonymous, true) => {
            (exit::FINISHED, "LEASE_UNMATCHED is anonymous: a crawl sends such requests without identity and proxy".to_owned())
        }
        (UnmatchedLease::Anonymous, false) => (
            exit::FINISHED,
            "with the embedded control plane a crawl sends such requests without identity and proxy, whatever LEASE_UNMATCHED is"
                .to_owned(),
        ),
    };
    Covered { ask: None, code, rule: None, text: format!("{none}; {then}") }
}

/// What to do about a refusal.
fn advice(refusal: &Refusal, ask: &Ask, opened: &Opened, rule: Option<&str>) -> String {
    let (site, client) = (&ask.site, &ask.client);
    let rule = rule.unwrap_or("--site and --client");
    let wait = refusal.retry_after.map_or_else(
        || "try again later".to_owned(),
        |wait| format!("the control plane says to come again in {}", seconds(wait)),
    );
    let here = if opened.remote.is_some() { "at the control plane" } else { "in the file of IDENTITIES" };
    match refusal.why {
        RefusalKind::NoIdentity => {
            format!(
                "{wait}; every identity of {site} is in use, rests or cools down: more of them, or other rotation rules, help"
            )
        }
        RefusalKind::NoProxy => format!("{wait}; every proxy is in use or cools down, or none fits the rules of {site}"),
        RefusalKind::RateLimited => format!("{wait}; the token makes more calls than it may: raise its limit {here}"),
        RefusalKind::CircuitOpen => {
            format!("{wait}; the site turned too many away, or somebody opened the breaker by hand")
        }
        RefusalKind::SitePaused => format!("resume {site} {here}; a crawl waits until then"),
        RefusalKind::Overloaded => format!("{wait}; the control plane has too much to do"),
        RefusalKind::SiteUnknown => format!("name a site that is there in {rule}, or add {site} {here}"),
        RefusalKind::ClientUnknown => format!("name a client of {site} in {rule}, or add {client} to the site {here}"),
        RefusalKind::GroupUnknown => {
            format!("leave the endpoint group out for that of the path, or add it to {site}/{client} {here}")
        }
        RefusalKind::Invalid => format!("mend what it names in {rule} or in the URL"),
        RefusalKind::Unauthorized => "give a token that is valid in SPINNERET_TOKEN; a crawl stops with exit code 3".to_owned(),
        RefusalKind::Forbidden => {
            format!("give the token the scope lease:acquire:{site}, or allow this address; a crawl stops with exit code 3")
        }
        RefusalKind::Unreachable => {
            format!("see whether {} runs and can be reached from here, and whether SPINNERET_URL is right", opened.name)
        }
        RefusalKind::Unanswered => {
            "the call was read and its answer lost, so a lease may be out that nobody knows; it expires by itself".to_owned()
        }
    }
}

/// What is printed, line by line for people, or as one object at the end.
struct Page<'t> {
    is_json: bool,
    value: Map<String, Value>,
    to: &'t mut dyn Write,
}

impl Page<'_> {
    fn set(&mut self, name: &str, value: Value) {
        self.value.insert(name.to_owned(), value);
    }

    fn line(&mut self, name: &str, text: &str) -> Result<(), CliError> {
        if self.is_json { Ok(()) } else { out(self.to, &format!("{name:<10}{text}\n")) }
    }

    fn grant(&mut self, grant: &Grant) -> Result<(), CliError> {
        let (about, credential) = (&grant.about, &grant.credential);
        let headers: Vec<&str> = credential.headers.keys().map(http::HeaderName::as_str).collect();
        let cookies: Vec<&str> = credential.cookies.iter().map(|(name, _)| name.as_str()).collect();
        let query: Vec<&str> = credential.query.iter().map(|(name, _)| name.as_str()).collect();
        let values: Vec<&str> = credential.values.keys().map(String::as_str).collect();
        let left = grant.expires_at.saturating_duration_since(Instant::now());
        let expires = jiff::SignedDuration::try_from(left).ok().and_then(|left| Timestamp::now().checked_add(left).ok());
        let expires = expires.map_or_else(|| "in a long time".to_owned(), |at| format!("{at:.0}"));
        self.set("lease", json!({
            "lease_id": *grant.lease.0,
            "endpoint_group": *about.group,
            "identity_id": *grant.identity.name,
            "identity_type": *about.identity_type,
            "proxy": about.proxy.as_ref().map(|proxy| json!({ "id": *proxy.id, "kind": *proxy.kind, "region": *proxy.region })),
            "sticky": about.is_sticky,
            "probe": about.is_probe,
            "adds": {
                "headers": headers,
                "cookies": cookies,
                "query": query,
                "json": !credential.json.is_null(),
                "values": values,
            },
            "expires_at": expires,
            "expires_in_ms": u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            "renew_before_ms": u64::try_from(grant.renew_before.as_millis()).unwrap_or(u64::MAX),
        }));
        self.line("lease", &grant.lease.0)?;
        if !about.group.is_empty() {
            self.line("group", &about.group)?;
        }
        let kind = if about.identity_type.is_empty() { String::new() } else { format!(" ({})", about.identity_type) };
        let mut identity = format!("{}{kind}", grant.identity.name);
        if about.is_sticky {
            identity.push_str(", by the session key");
        }
        if about.is_probe {
            identity.push_str(", as a probe");
        }
        self.line("identity", &identity)?;
        let proxy = match (&about.proxy, &grant.proxy) {
            (Some(proxy), _) => {
                let words: Vec<&str> = [&*proxy.kind, &*proxy.region].into_iter().filter(|word| !word.is_empty()).collect();
                if words.is_empty() { proxy.id.to_string() } else { format!("{} ({})", proxy.id, words.join(", ")) }
            }
            (None, Some(url)) => format!("{url:?}"),
            (None, None) => "none".to_owned(),
        };
        self.line("proxy", &proxy)?;
        let mut adds = String::new();
        let free: &[&str] = if credential.json.is_null() { &[] } else { &["json"] };
        for (what, names) in
            [("headers", &*headers), ("cookies", &*cookies), ("query", &*query), ("for authorize", free), ("values", &*values)]
        {
            if !names.is_empty() {
                let _ = write!(adds, "{}{what} {}", if adds.is_empty() { "" } else { "; " }, names.join(", "));
            }
        }
        self.line("adds", if adds.is_empty() { "nothing" } else { &adds })?;
        let renew = if grant.renew_before.is_zero() {
            String::new()
        } else {
            format!(", renewed {} before if it is still in use", seconds(grant.renew_before))
        };
        self.line("expires", &format!("{expires} (in {}{renew})", seconds(left)))
    }

    fn end(self, code: u8) -> Result<u8, CliError> {
        if self.is_json {
            out(self.to, &format!("{:#}\n", Value::Object(self.value)))?;
        }
        Ok(code)
    }
}

/// A URL without what may be a secret in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}

fn seconds(time: Duration) -> String {
    let tenths = time.as_millis().div_ceil(100);
    if tenths.is_multiple_of(10) { format!("{} s", tenths / 10) } else { format!("{}.{} s", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests;
