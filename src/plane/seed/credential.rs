//! What an identity without a type shows of itself, as it is written: cookies, headers, query, JSON and values.

use std::collections::{BTreeMap, HashSet};

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::SeedError;
use super::table::{Field, Table};
use crate::plane::model::identity_type::cookies;
use crate::plane::model::render::Credential;

/// The keys of a credential, the segments of the contract's section 19.
pub(super) const KEYS: [&str; 6] = ["cookies", "cookie_header", "headers", "query", "json", "values"];

/// Headers no identity may set: the client makes them itself, or they have a key of their own.
const NOT_HERE: [&str; 6] = ["cookie", "host", "content-length", "connection", "transfer-encoding", "proxy-authorization"];

/// Reads the keys of a credential in the table of an identity.
pub(super) fn read(table: &Table<'_, '_>) -> Result<Credential, SeedError> {
    let cookie_header = table.get("cookie_header").map(|field| {
        let text = field.text()?.to_owned();
        HeaderValue::from_str(&text).map_err(|_| field.place.wrong(NO_VALUE))?;
        Ok(text)
    });
    Ok(Credential {
        cookies: table.get("cookies").map(|field| cookies_of(&field)).transpose()?.unwrap_or_default(),
        cookie_header: cookie_header.transpose()?.unwrap_or_default(),
        headers: table.get("headers").map(|field| headers(&field)).transpose()?.unwrap_or_default(),
        query: table.get("query").map(|field| texts(&field)).transpose()?.unwrap_or_default(),
        json: table.get("json").map(|field| field.node.to_value()),
        values: table.get("values").map(|field| values(&field)).transpose()?.unwrap_or_default(),
    })
}

const NO_VALUE: &str = "the value has characters no header may have; use visible ASCII, without line breaks";

fn cookies_of(field: &Field<'_, '_>) -> Result<BTreeMap<String, String>, SeedError> {
    let Ok(table) = field.open_table("cookies") else {
        let allowed = "expected a table of names and values, a list of {name, value} or the text of a Cookie header";
        return cookies::read(&field.node.to_value()).map_err(|problem| field.place.wrong(format_args!("{problem}; {allowed}")));
    };
    let mut cookies = BTreeMap::new();
    for (name, field) in table.fields() {
        let value = field.scalar()?;
        cookies::check_name(name).map_err(|problem| field.place.wrong(problem))?;
        cookies::check_value(&value).map_err(|problem| field.place.wrong(problem))?;
        if HeaderValue::from_str(&value).is_err() {
            return Err(field.place.wrong(NO_VALUE));
        }
        cookies.insert(name.to_owned(), value);
    }
    Ok(cookies)
}

fn headers(field: &Field<'_, '_>) -> Result<BTreeMap<String, String>, SeedError> {
    let mut seen = HashSet::new();
    let mut headers = BTreeMap::new();
    for (name, field) in field.open_table("a table of names and values")?.fields() {
        let Ok(header) = HeaderName::try_from(name) else {
            return Err(field.place.wrong("not a header name; use letters, digits and hyphens (RFC 9110, 5.1)"));
        };
        if NOT_HERE.contains(&header.as_str()) {
            return Err(field.place.wrong(match header.as_str() {
                "cookie" => "write cookies under cookies, one key each",
                "proxy-authorization" => "write user and password into the proxy's URL",
                _ => "the client sets this header itself; take it out",
            }));
        }
        let value = field.scalar()?;
        if HeaderValue::from_str(&value).is_err() {
            return Err(field.place.wrong(NO_VALUE));
        }
        headers.insert(name.to_owned(), value);
        if !seen.insert(header) {
            return Err(field.place.wrong("written twice; header names do not distinguish upper and lower case"));
        }
    }
    Ok(headers)
}

fn texts(field: &Field<'_, '_>) -> Result<BTreeMap<String, String>, SeedError> {
    let table = field.open_table("a table of names and values")?;
    table.fields().map(|(name, field)| Ok((name.to_owned(), field.scalar()?))).collect()
}

fn values(field: &Field<'_, '_>) -> Result<Map<String, Value>, SeedError> {
    let table = field.open_table("a table of names and values")?;
    Ok(table.fields().map(|(name, field)| (name.to_owned(), field.node.to_value())).collect())
}
