//! Signal policy: which outcome a report stands for (wire contract, section 25). Read and checked here, applied by
//! [`Classifier`](crate::plane::model::signal::Classifier).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Policy;
use super::error::PolicyError;
use super::head::{self, Head, KEYS, Kind};
use super::pattern::Pattern;
use super::read::{At, Field, Table, show};
use super::rule::{OUTCOMES, rule_name};
use crate::plane::model::{Blame, Outcome};

/// Most rules of one policy.
const MAX_RULES: usize = 500;

/// Most values of one condition.
const MAX_VALUES: usize = 256;

/// The policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SignalPolicy {
    pub(crate) head: Head,
    /// The policy whose rules come first.
    pub(crate) extends: Option<Arc<str>>,
    /// Whether a report's own idea of its outcome counts where no rule matches.
    pub(crate) trust_outcome_hint: bool,
    /// The first that matches decides.
    pub(crate) rules: Vec<SignalRule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SignalRule {
    /// Empty if it has none.
    pub(crate) name: Arc<str>,
    pub(crate) when: When,
    pub(crate) outcome: Outcome,
    /// In place of the outcome's own.
    pub(crate) blame: Option<Blame>,
}

/// The conditions of a rule; all that are there must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct When {
    pub(crate) http_status: Option<Status>,
    /// Any of these.
    pub(crate) business_code: Option<Box<[Box<str>]>>,
    /// Any of these.
    pub(crate) error_kind: Option<ErrorKinds>,
    /// Any of these.
    pub(crate) markers: Option<Box<[Box<str>]>>,
    pub(crate) uri: Option<UriCondition>,
    /// Any of these, whatever their case.
    pub(crate) method: Option<Box<[Box<str>]>>,
    pub(crate) latency_ms: Option<Range>,
    pub(crate) response_bytes: Option<Range>,
}

/// A set of error kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorKinds(u8);

/// A condition on the status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Status {
    /// Any of these; 0 stands for no response.
    Among(Box<[u16]>),
    /// Never holds without a response.
    Within(Range),
}

/// Numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// A condition on the reported URI's text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UriCondition {
    Prefix(Box<str>),
    /// Found anywhere in it.
    Regex(Pattern),
}

impl Range {
    pub(crate) const fn holds(self, number: u64) -> bool {
        self.low <= number && number <= self.high
    }
}

impl ErrorKinds {
    /// The set of this kind alone; nothing for a name that is not the contract's. The empty text is one of them: there was no
    /// transport error.
    pub(crate) fn of(kind: &str) -> Self {
        ERROR_KINDS.iter().find(|(name, _)| *name == kind).map_or(Self(0), |(_, set)| *set)
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for ErrorKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(ERROR_KINDS.iter().filter(|(_, one)| self.meets(*one)).map(|(name, _)| name)).finish()
    }
}

const ERROR_KINDS: [(&str, ErrorKinds); 8] = [
    ("", ErrorKinds(1)),
    ("timeout", ErrorKinds(1 << 1)),
    ("conn_reset", ErrorKinds(1 << 2)),
    ("conn_refused", ErrorKinds(1 << 3)),
    ("proxy_auth", ErrorKinds(1 << 4)),
    ("tls", ErrorKinds(1 << 5)),
    ("dns", ErrorKinds(1 << 6)),
    ("other", ErrorKinds(1 << 7)),
];

impl Default for SignalPolicy {
    fn default() -> Self {
        let rule = |name: &str, outcome, when| SignalRule { name: name.into(), when, outcome, blame: None };
        let kinds = |names: &[&str]| {
            let set = names.iter().fold(ErrorKinds(0), |set, name| set.and(ErrorKinds::of(name)));
            When { error_kind: Some(set), ..When::default() }
        };
        let marker = |name: &str| When { markers: Some([name.into()].into()), ..When::default() };
        let status = |code: u16| Some(Status::Among([code].into()));
        let within = |low, high| When { http_status: Some(Status::Within(Range { low, high })), ..When::default() };
        let only = |code| When { http_status: status(code), ..When::default() };
        Self {
            head: Head::built_in(Kind::Signal),
            extends: None,
            trust_outcome_hint: false,
            rules: vec![
                rule("proxy-error", Outcome::ProxyError, kinds(&["proxy_auth", "conn_refused"])),
                rule("network-error", Outcome::NetworkError, kinds(&["timeout", "conn_reset", "tls", "dns"])),
                rule("captcha", Outcome::Captcha, marker("captcha_page")),
                rule("login-redirect", Outcome::AuthInvalid, marker("login_redirect")),
                rule("rate-limited", Outcome::RateLimited, only(429)),
                rule("target-error", Outcome::TargetError, within(500, u64::MAX)),
                rule("empty-list", Outcome::Empty, When { http_status: status(200), ..marker("empty_list") }),
                rule("client-error", Outcome::ClientError, only(400)),
                rule("auth-invalid", Outcome::AuthInvalid, only(401)),
                rule("forbidden", Outcome::Forbidden, only(403)),
                rule("success", Outcome::Success, within(200, 299)),
            ],
        }
    }
}

impl Policy for SignalPolicy {
    const KIND: Kind = Kind::Signal;

    fn head(&self) -> &Head {
        &self.head
    }

    fn read(document: &Value) -> Result<Self, PolicyError> {
        let [name, description, bind] = KEYS;
        let at = At::top(Self::KIND, document);
        let top = Table::of(document, at, &[name, description, bind, "extends", "trust_outcome_hint", "rules"])?;
        let parent = top.field("extends");
        Ok(Self {
            head: Head::read(&top)?,
            extends: if parent.value.is_some() { Some(head::policy_name(&parent)?) } else { None },
            trust_outcome_hint: top.field("trust_outcome_hint").flag()?.unwrap_or(false),
            rules: top.field("rules").items(MAX_RULES)?.into_iter().map(rule).collect::<Result<_, _>>()?,
        })
    }
}

fn rule(item: Field<'_>) -> Result<SignalRule, PolicyError> {
    let at = item.at.clone();
    let Some(table) = item.table(&["name", "when", "outcome", "blame"])? else {
        return Err(at.missing("a table with when and outcome"));
    };
    let outcome = table.field("outcome").required("the outcome of the rule")?;
    let at = outcome.at.clone();
    Ok(SignalRule {
        name: rule_name(&table)?,
        when: when(&table.table("when", &CONDITIONS)?)?,
        outcome: outcome.choice(&OUTCOMES)?.ok_or_else(|| at.missing("the outcome of the rule"))?,
        blame: table.field("blame").choice(&BLAMES)?,
    })
}

const CONDITIONS: [&str; 8] =
    ["http_status", "business_code", "error_kind", "markers", "uri", "method", "latency_ms", "response_bytes"];

const BLAMES: [(&str, Blame); 4] =
    [("none", Blame::Nobody), ("identity", Blame::Identity), ("proxy", Blame::Proxy), ("both", Blame::Both)];

fn when(table: &Table<'_>) -> Result<When, PolicyError> {
    let uri = table.field("uri");
    let at = uri.at.clone();
    Ok(When {
        http_status: status(table.field("http_status"))?,
        business_code: codes(&table.field("business_code"))?,
        error_kind: error_kinds(&table.field("error_kind"))?,
        markers: texts(&table.field("markers"), 64)?,
        uri: uri.table(&["prefix", "regex"])?.map(|table| uri_condition(&table, &at)).transpose()?,
        method: texts(&table.field("method"), 16)?,
        latency_ms: range(table.field("latency_ms"), u64::from(i32::MAX.unsigned_abs()))?,
        response_bytes: range(table.field("response_bytes"), i64::MAX.unsigned_abs())?,
    })
}

fn status(field: Field<'_>) -> Result<Option<Status>, PolicyError> {
    if let Some(Value::Object(_)) = field.value {
        return Ok(range(field, 999)?.map(Status::Within));
    }
    let Some(items) = field.some_items(MAX_VALUES)? else { return Ok(None) };
    let mut codes = Vec::with_capacity(items.len());
    for item in items {
        match item.value.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).filter(|code| *code <= 999) {
            Some(code) => codes.push(code),
            None => {
                let found = show(item.value.unwrap_or(&Value::Null));
                return Err(item.at.wrong(found, "a whole number from 0 to 999 (0: no response), a list of them, or a range"));
            }
        }
    }
    Ok(Some(Status::Among(codes.into())))
}

/// Codes, of which numbers stand for their decimal text.
fn codes(field: &Field<'_>) -> Result<Option<Box<[Box<str>]>>, PolicyError> {
    let Some(items) = field.some_items(MAX_VALUES)? else { return Ok(None) };
    let code = |item: Field<'_>| match item.value {
        Some(Value::String(text)) if text.chars().count() <= 64 => Ok(text.as_str().into()),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(number.to_string().into()),
        other => Err(item.at.wrong(show(other.unwrap_or(&Value::Null)), "a text of at most 64 characters or a whole number")),
    };
    items.into_iter().map(code).collect::<Result<_, _>>().map(Some)
}

fn texts(field: &Field<'_>, most: usize) -> Result<Option<Box<[Box<str>]>>, PolicyError> {
    let Some(items) = field.some_items(MAX_VALUES)? else { return Ok(None) };
    let text = |item: Field<'_>| match item.value {
        Some(Value::String(text)) if (1..=most).contains(&text.chars().count()) => Ok(text.as_str().into()),
        other => Err(item.at.wrong(show(other.unwrap_or(&Value::Null)), format!("a text of 1 to {most} characters"))),
    };
    items.into_iter().map(text).collect::<Result<_, _>>().map(Some)
}

fn error_kinds(field: &Field<'_>) -> Result<Option<ErrorKinds>, PolicyError> {
    let Some(items) = field.some_items(MAX_VALUES)? else { return Ok(None) };
    let mut set = ErrorKinds(0);
    for item in items {
        // A `null` in the list is no kind.
        match item.choice(&ERROR_KINDS)? {
            Some(kind) => set = set.and(kind),
            None => return Err(item.at.wrong("nothing", "the name of an error kind")),
        }
    }
    Ok(Some(set))
}

fn uri_condition(table: &Table<'_>, at: &At) -> Result<UriCondition, PolicyError> {
    let (prefix, regex) = (table.field("prefix"), table.field("regex"));
    match (prefix.text(2048)?, regex.text(1024)?) {
        (Some(""), None) => Err(prefix.at.wrong("an empty text", "the first 1 to 2048 characters of the URI")),
        (Some(text), None) => Ok(UriCondition::Prefix(text.into())),
        (None, Some(pattern)) => match Pattern::new(pattern) {
            Ok(pattern) => Ok(UriCondition::Regex(pattern)),
            Err(reason) => Err(regex.at.wrong(show(&Value::from(pattern)), format!("a regular expression ({reason})"))),
        },
        (Some(_), Some(_)) => Err(at.wrong("both prefix and regex", "one of them")),
        (None, None) => Err(at.missing("a table with either prefix or regex")),
    }
}

fn range(field: Field<'_>, most: u64) -> Result<Option<Range>, PolicyError> {
    let at = field.at.clone();
    let Some(table) = field.table(&["gte", "gt", "lte", "lt"])? else { return Ok(None) };
    // One more than the largest, so that `lt` can mean all.
    let bound = |key: &str| table.field(key).whole(0..=most.saturating_add(1));
    let (gte, gt, lte, lt) = (bound("gte")?, bound("gt")?, bound("lte")?, bound("lt")?);
    let low = match (gte, gt) {
        (Some(_), Some(_)) => return Err(at.wrong("both gte and gt", "one of them")),
        (gte, None) => gte,
        (None, Some(number)) => Some(number.saturating_add(1)),
    };
    let high = match (lte, lt) {
        (Some(_), Some(_)) => return Err(at.wrong("both lte and lt", "one of them")),
        (lte, None) => lte,
        (None, Some(0)) => return Err(at.wrong("a range below 0", "one that holds a number")),
        (None, Some(number)) => Some(number.saturating_sub(1)),
    };
    match (low, high) {
        (None, None) => Err(at.missing("a table with gte or gt, lte or lt, or one of each")),
        (Some(low), Some(high)) if low > high => {
            Err(at.wrong(format!("a range from {low} to {high}"), "one that holds a number"))
        }
        (low, high) => Ok(Some(Range { low: low.unwrap_or(0), high: high.unwrap_or(u64::MAX) })),
    }
}
