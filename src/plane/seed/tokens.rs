//! The tokens of a plane that is served (wire contract, section 17).

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;

use super::table::{Field, Table};
use super::{Ms, SeedError, SeedToken};
use crate::plane::model::scope::Scopes;
use crate::plane::model::token::{Cidr, RateLimit, Token, Tokens};

const KEYS: [&str; 8] = ["name", "token", "namespace", "scopes", "ip_allowlist", "expires_at", "rate_limit_rps", "revoked"];

/// Reads the list `tokens`.
pub(super) fn read(top: &Table<'_, '_>, namespace: &Arc<str>) -> Result<Vec<SeedToken>, SeedError> {
    let mut names = HashSet::new();
    let mut texts = HashSet::new();
    let mut tokens = Vec::new();
    for field in top.list("tokens")? {
        let table = field.table(&KEYS)?;
        let name = table.required("name", "what people call the token")?;
        if !names.insert(name.name()?) {
            return Err(name.place.wrong("another token has this name; names are unique"));
        }
        let text = table.required("token", "its text, spn_ and 43 letters or digits")?;
        if !texts.insert(text.text()?) {
            return Err(text.place.wrong("another token has the same text; each needs its own"));
        }
        tokens.push(token(&table, name.name()?, &text, namespace)?);
    }
    Ok(tokens)
}

fn token(table: &Table<'_, '_>, name: &str, text: &Field<'_, '_>, namespace: &Arc<str>) -> Result<SeedToken, SeedError> {
    let namespace = match table.get("namespace") {
        Some(field) => super::namespace(&field)?,
        None => Arc::clone(namespace),
    };
    let scopes = table.required("scopes", "what it may do, such as [\"lease:acquire\", \"report:write\", \"config:read\"]")?;
    let mut written = Vec::new();
    for scope in scopes.list()? {
        let scope_text = scope.text()?;
        Scopes::parse([scope_text]).map_err(|error| scope.place.wrong(error))?;
        written.push(scope_text);
    }
    let mut networks: Vec<Cidr> = Vec::new();
    for network in table.list("ip_allowlist")? {
        networks.push(network.text()?.parse().map_err(|error| network.place.wrong(error))?);
    }
    let rate_limit = match table.get("rate_limit_rps") {
        Some(field) => {
            let rate = u32::try_from(field.whole(0..=1_000_000)?).unwrap_or(0);
            RateLimit::new(rate).map_err(|error| field.place.wrong(error))?
        }
        None => None,
    };
    let token = Token {
        name: name.into(),
        namespace,
        scopes: Scopes::parse(written).map_err(|error| scopes.place.wrong(error))?,
        networks,
        expires_at: table.get("expires_at").map(|field| moment(&field)).transpose()?,
        rate_limit,
    };
    let secret = SecretString::from(text.text()?);
    Tokens::default().admit(&secret, token.clone()).map_err(|error| text.place.wrong(error))?;
    Ok(SeedToken { text: secret, token, is_revoked: table.flag("revoked")?.unwrap_or(false) })
}

/// A moment after 1970 with its offset (RFC 3339).
pub(super) fn moment(field: &Field<'_, '_>) -> Result<Ms, SeedError> {
    let moment = field.text()?.parse::<Timestamp>().ok().and_then(|moment| u64::try_from(moment.as_millisecond()).ok());
    moment.ok_or_else(|| field.place.wrong("expected a moment with its offset, such as 2027-01-31T12:00:00Z"))
}
