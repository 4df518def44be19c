//! Config items and secrets (wire contract, section 30).

use std::collections::HashSet;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use super::node::Raw;
use super::table::{Field, Table, guess, shown};
use super::{Given, SeedError, SeedItem, SeedSecret, SeedSite, tokens};
use crate::plane::model::config_center::{ConfigCenter, Format, ItemName};
use crate::plane::model::scope::Scopes;

const ITEM_KEYS: [&str; 5] = ["group", "key", "format", "content", "file"];
const SECRET_KEYS: [&str; 3] = ["value", "file", "expires_at"];

/// Reads the table `secrets`: values by their paths.
pub(super) fn secrets(top: &Table<'_, '_>, centre: &mut ConfigCenter) -> Result<Vec<SeedSecret>, SeedError> {
    let Some(field) = top.get("secrets") else { return Ok(Vec::new()) };
    let table = field.open_table("a table of secrets by their paths, \"shop/key\" = \"value\"")?;
    let mut secrets = Vec::new();
    for (path, field) in table.fields() {
        let (value, expires_at) = match &field.node.raw {
            Raw::Table(_) => {
                let table = field.table(&SECRET_KEYS)?;
                let value = match (table.get("value"), table.get("file")) {
                    (Some(value), None) => value.scalar()?,
                    // Editors end a file with a line break; a secret has none there.
                    (None, Some(file)) => file.file()?.into_text()?.trim_end_matches(['\r', '\n']).to_owned(),
                    _ => return Err(field.place.wrong("write either value or file; a path with dots needs quotes")),
                };
                (value, table.get("expires_at").map(|field| tokens::moment(&field)).transpose()?)
            }
            _ => (field.scalar()?, None),
        };
        let value = SecretString::from(value);
        let copy = SecretString::from(value.expose_secret());
        centre.secrets_mut().put(path, copy, expires_at).map_err(|refusal| field.place.wrong(refusal.message))?;
        secrets.push(SeedSecret { path: path.into(), value, expires_at });
    }
    Ok(secrets)
}

/// Reads the list `config`.
pub(super) fn items(top: &Table<'_, '_>, centre: &mut ConfigCenter) -> Result<Vec<SeedItem>, SeedError> {
    let namespace = Arc::clone(centre.namespace());
    let mut names = HashSet::new();
    let mut items = Vec::new();
    for field in top.list("config")? {
        let table = field.table(&ITEM_KEYS)?;
        let group = table.required("group", "the group of the item")?.text()?;
        let key = table.required("key", "the key of the item")?.text()?;
        let item = item(&field, &table, group, key)?;
        let name = ItemName { group, key };
        if !names.insert(name) {
            return Err(field.place.wrong(format_args!("the item {} is there twice; keep one", shown(&name.to_string()))));
        }
        if let Err(refusal) = centre.publish(name, item.format, &item.content, 0) {
            return Err(field.place.wrong(refusal.message));
        }
        centre.get(&Scopes::everything(), &namespace, name).map_err(|refusal| field.place.wrong(refusal.message))?;
        items.push(item);
    }
    Ok(items)
}

fn item(field: &Field<'_, '_>, table: &Table<'_, '_>, group: &str, key: &str) -> Result<SeedItem, SeedError> {
    let formats = [Format::Json, Format::Yaml, Format::Text].map(|format| (format.name(), format));
    let format = table.choice("format", &formats)?;
    let (content, implied, place) = match (table.get("content"), table.get("file")) {
        (Some(content), None) => match &content.node.raw {
            Raw::Text(text) => (text.clone(), Format::Text, content.place),
            _ if matches!(format, None | Some(Format::Json)) => {
                (content.node.to_value().to_string(), Format::Json, content.place)
            }
            _ => return Err(content.expected("a text, for this format; only json takes a table or another value")),
        },
        (None, Some(file)) => {
            let place = file.place.clone();
            let beside = file.file()?;
            let implied = match beside.ending().as_str() {
                "json" => Format::Json,
                "yaml" | "yml" => Format::Yaml,
                _ => Format::Text,
            };
            (beside.into_text()?, implied, place)
        }
        _ => return Err(field.place.wrong("write either content or file")),
    };
    let format = format.unwrap_or(implied);
    // A reference may stand where JSON has no text, and then only the delivered content is JSON.
    if format == Format::Json && !content.contains("${secret:") {
        serde_json::from_str::<serde::de::IgnoredAny>(&content).map_err(|error| {
            place.wrong(format_args!("the content is not JSON: wrong at its line {}, column {}", error.line(), error.column()))
        })?;
    }
    Ok(SeedItem { group: group.into(), key: key.into(), format, content: content.into() })
}

/// Every secret that an identity refers to is there.
pub(super) fn check_references(top: &Table<'_, '_>, sites: &[SeedSite], secrets: &[SeedSecret]) -> Result<(), SeedError> {
    let known: Vec<&str> = secrets.iter().map(|secret| &*secret.path).collect();
    let by_path: HashSet<&str> = known.iter().copied().collect();
    for site in sites {
        for identity in &site.identities {
            let Given::Typed { kind, payload } = &identity.given else { continue };
            if let Some((field, path)) = payload.secrets().find(|(_, path)| !by_path.contains(path)) {
                let field = kind.fields.get(field).map_or("?", |field| &*field.name);
                let guess = guess(path, &known);
                let reason = format!("there is no secret {path:?}{guess}; write it under secrets");
                let identity = format!("sites[\"{}\"].identities[\"{}\"]", site.name, identity.id);
                return Err(top.place.wrong_below(&format!("{identity}.payload.{field}"), reason));
            }
        }
    }
    Ok(())
}
