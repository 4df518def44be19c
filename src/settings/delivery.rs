//! Rules for where batches go and for the keys they are signed and sent with.
//!
//! Their messages never show a value: a URL may hold a password, and a key is one.

use serde_json::Value;
use url::Url;

use super::redact::REDACTED;
use super::rule::{Problem, Rule};
use super::secret::Secret;
use super::table::Settings;

/// The base URL of a backend, empty for none.
pub(crate) struct BaseUrl {
    example: &'static str,
    secrets: &'static str,
}

impl BaseUrl {
    pub(crate) const APCLOUDY: Self =
        Self { example: "https://apcloudy.example/api", secrets: "keys go into APCLOUDY_API_KEY and APCLOUDY_SECRET_KEY" };
    pub(crate) const SPINNERET: Self =
        Self { example: "https://spinneret.example", secrets: "the token goes into SPINNERET_TOKEN" };
}

impl Rule for BaseUrl {
    type Out = Option<String>;

    fn read(&self, value: &Value) -> Result<Option<String>, Problem> {
        let read = || {
            let Some(text) = text_of(value)? else {
                return Ok(None);
            };
            fault_of_url(text).map_or_else(|| Ok(Some(text.to_owned())), Err)
        };
        read().map_err(|found| Problem { found, allowed: self.allowed() })
    }

    fn kind(&self) -> &'static str {
        "URL"
    }

    fn allowed(&self) -> String {
        format!(
            "an http or https URL, with a path if wanted, for example {:?}; leave out user, password, query and fragment, {} \
             (empty: not set)",
            self.example, self.secrets
        )
    }
}

/// The key that names the sender, carried by a header; empty for none.
pub(crate) struct ApiKey;

impl Rule for ApiKey {
    type Out = Option<Secret>;

    fn read(&self, value: &Value) -> Result<Option<Secret>, Problem> {
        secret(value, |text| match () {
            () if text.contains(|c: char| c.is_whitespace() || c.is_control()) => Some("white space or a line break in it"),
            () if !text.is_ascii() => Some("a character outside ASCII in it"),
            () => None,
        })
        .map_err(|found| Problem { found, allowed: self.allowed() })
    }

    fn kind(&self) -> &'static str {
        "secret"
    }

    fn allowed(&self) -> String {
        "text of visible ASCII characters, as a header carries it (empty: not set)".to_owned()
    }

    fn show(&self, value: &Value) -> Value {
        shown(value)
    }
}

/// The key that batches are signed with, empty for none.
pub(crate) struct SecretKey;

impl Rule for SecretKey {
    type Out = Option<Secret>;

    fn read(&self, value: &Value) -> Result<Option<Secret>, Problem> {
        secret(value, |text| match () {
            () if text.trim().is_empty() => Some("nothing but white space in it"),
            () if text.contains(char::is_control) => Some("a line break or another control character in it"),
            () => None,
        })
        .map_err(|found| Problem { found, allowed: self.allowed() })
    }

    fn kind(&self) -> &'static str {
        "secret"
    }

    fn allowed(&self) -> String {
        "text on one line (empty: not set)".to_owned()
    }

    fn show(&self, value: &Value) -> Value {
        shown(value)
    }
}

/// Settings of a backend that were given without others they need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Half {
    pub(crate) what: &'static str,
    pub(crate) way_out: &'static str,
    pub(crate) given: Vec<&'static str>,
    pub(crate) missing: Vec<&'static str>,
}

/// Whether delivery to APCloudy is set up by half; `None` when it is as a whole, or not at all.
pub(crate) fn half(settings: &Settings) -> Option<Half> {
    let needed = [
        ("APCLOUDY_URL", settings.apcloudy_url.is_some()),
        ("APCLOUDY_API_KEY", settings.apcloudy_api_key.is_some()),
        ("APCLOUDY_SECRET_KEY", settings.apcloudy_secret_key.is_some()),
    ];
    let names = |those: bool| needed.iter().filter(move |(_, set)| *set == those).map(|(name, _)| *name);
    let mut given: Vec<&'static str> = names(true).collect();
    given.extend(settings.apcloudy_ca_file.is_some().then_some("APCLOUDY_CA_FILE"));
    let missing: Vec<&'static str> = names(false).collect();
    let (what, way_out) = (
        "APCloudy",
        "give all of APCLOUDY_URL, APCLOUDY_API_KEY and APCLOUDY_SECRET_KEY, or none of them and no APCLOUDY_CA_FILE to deliver \
         into the job store of DATA_DIR",
    );
    (!given.is_empty() && !missing.is_empty()).then_some(Half { what, way_out, given, missing })
}

/// Whether the control plane is set up by half; `None` when it is as a whole, or not at all.
pub(crate) fn half_plane(settings: &Settings) -> Option<Half> {
    let needed = [("SPINNERET_URL", settings.spinneret_url.is_some()), ("SPINNERET_TOKEN", settings.spinneret_token.is_some())];
    let names = |those: bool| needed.iter().filter(move |(_, set)| *set == those).map(|(name, _)| *name);
    let (given, missing): (Vec<_>, Vec<_>) = (names(true).collect(), names(false).collect());
    let (what, way_out) = (
        "The control plane",
        "give SPINNERET_URL and SPINNERET_TOKEN, or none of them for the embedded control plane (IDENTITIES)",
    );
    (!given.is_empty() && !missing.is_empty()).then_some(Half { what, way_out, given, missing })
}

/// Whether HTTP authentication is set up by half: a password for nobody, or for everybody.
pub(crate) fn half_auth(settings: &Settings) -> Option<Half> {
    let named = [("HTTPAUTH_USER", settings.httpauth_user.is_some()), ("HTTPAUTH_PASS", settings.httpauth_pass.is_some())];
    let mut given: Vec<&'static str> = named.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    let way_out = "give HTTPAUTH_DOMAIN with HTTPAUTH_USER or HTTPAUTH_PASS, or none of them";
    let missing = match (given.is_empty(), settings.httpauth_domain.is_some()) {
        (false, false) => vec!["HTTPAUTH_DOMAIN"],
        (true, true) => {
            given.push("HTTPAUTH_DOMAIN");
            vec!["HTTPAUTH_USER"]
        }
        _ => return None,
    };
    Some(Half { what: "HTTP authentication", way_out, given, missing })
}

/// Reads a secret that has no fault.
fn secret(value: &Value, fault: impl Fn(&str) -> Option<&'static str>) -> Result<Option<Secret>, String> {
    let Some(text) = text_of(value)? else {
        return Ok(None);
    };
    match fault(text) {
        Some(fault) => Err(format!("text (not shown) with {fault}")),
        None => Ok(Some(Secret::from(text))),
    }
}

/// A text, nothing for an empty one, or what else was found. A number may be a key without quotes.
fn text_of(value: &Value) -> Result<Option<&str>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Number(_) => Err("a number (not shown); put it in quotes".to_owned()),
        Value::Bool(_) => Err("true or false".to_owned()),
        Value::Array(_) => Err("a list (not shown)".to_owned()),
        Value::Object(_) => Err("a table (not shown)".to_owned()),
    }
}

/// What is wrong with a base URL, without a word of it.
fn fault_of_url(text: &str) -> Option<String> {
    let found = |what: &str| Some(format!("{what} (not shown)"));
    // The parser would drop these without a word.
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return found("text with white space or a line break in it");
    }
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme)));
    let Some(rest) = scheme.and_then(|scheme| text.get(scheme.len()..)) else {
        return found("text that does not begin with http:// or https://");
    };
    if rest.split(['/', '\\', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
        return found("a URL with a user or password");
    }
    match Url::parse(text) {
        Err(error) => found(&format!("a URL that cannot be used: {error}")),
        Ok(url) if url.query().is_some() => found("a URL with a query"),
        Ok(url) if url.fragment().is_some() => found("a URL with a fragment"),
        Ok(_) => None,
    }
}

/// A secret as anybody may see it: set or not.
fn shown(value: &Value) -> Value {
    match text_of(value) {
        Ok(None) => Value::from(""),
        _ => Value::from(REDACTED),
    }
}
