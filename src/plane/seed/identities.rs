//! Identity types, identities and accounts of a site (wire contract, sections 19, 20 and 37).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::groups::some_clients;
use super::table::{Field, NAME, Table, guess, is_name, shown};
use super::{AccountStart, Given, PLAIN, SeedAccount, SeedError, SeedIdentity, Start, credential, proxies};
use crate::plane::model::identity_type::{Activation, IdentityType, Payload, Source, TypeError, UniqueKey};
use crate::plane::model::import::{
    Attributes, Format, IdentityChange, IdentityImport, MAX_TAGS, Mode, Proxy, Run, import_identities,
};
use crate::plane::model::proxy_url::ProxyUrl;

const KEYS: [&str; 16] = [
    "name",
    "type",
    "payload",
    "clients",
    "account",
    "region",
    "tags",
    "labels",
    "state",
    "proxy",
    "cookies",
    "cookie_header",
    "headers",
    "query",
    "json",
    "values",
];
const RENAMED: [(&str, &str); 2] = [
    ("concurrency", "write max_concurrent_leases into the site's rotation, or give the identity a type and the type a policy"),
    ("reuse_interval", "write it into the site's rotation, or give the identity a type and the type a policy"),
];
const STATES: [(&str, Start); 3] = [("active", Start::Active), ("pending", Start::Pending), ("disabled", Start::Disabled)];
const ACCOUNT_STATES: [(&str, AccountStart); 3] =
    [("active", AccountStart::Active), ("banned", AccountStart::Banned), ("disabled", AccountStart::Disabled)];

/// What identities are read with.
pub(super) struct Reader<'r> {
    pub(super) site: &'r str,
    pub(super) clients: &'r [Arc<str>],
    pub(super) pepper: &'r [u8],
    pub(super) types: &'r [Arc<IdentityType>],
    /// The site's own proxies; a URL of an identity is added.
    pub(super) own: &'r mut proxies::List,
    pub(super) shared: &'r proxies::List,
}

/// Reads the list `identity_types` of a site: tables in the contract's form, or `{file = "…"}` with one in YAML.
pub(super) fn types(table: &Table<'_, '_>, site: &str, clients: &[Arc<str>]) -> Result<Vec<Arc<IdentityType>>, SeedError> {
    let mut types: Vec<Arc<IdentityType>> = Vec::new();
    for field in table.list("identity_types")? {
        let written = field.open_table("a table with name, client, fields and deliver")?;
        let kind = match written.get("file") {
            Some(file) => from_file(&field, &file)?,
            None => IdentityType::read(&with_client(field.node.to_value(), clients)).map_err(|error| match &error {
                TypeError::Key { key, problem, .. } => {
                    field.place.wrong_at(field.node.locate(key), format_args!("{key}: {problem}"))
                }
                TypeError::Yaml { .. } => field.place.wrong(&error),
            })?,
        };
        if !kind.site.is_empty() && *kind.site != *site {
            let reason = format_args!("found {}, and the table is in the site {site}; leave the key out", kind.site);
            return Err(field.place.wrong_key("site", reason));
        }
        if !clients.contains(&kind.client) {
            let known: Vec<&str> = clients.iter().map(|client| &**client).collect();
            let guess = guess(&kind.client, &known);
            let reason = format!("the site has no client {:?}{guess}; it has {}", &*kind.client, known.join(", "));
            return Err(field.place.wrong_key("client", reason));
        }
        if *kind.name == *PLAIN {
            return Err(field.place.wrong_key("name", "identities without a type have this one; choose another"));
        }
        if types.iter().any(|other| other.name == kind.name) {
            return Err(field.place.wrong_key("name", "another type of the site has this name; names are unique in a site"));
        }
        types.push(Arc::new(kind));
    }
    Ok(types)
}

/// In the seed the only client of a site need not be named again.
fn with_client(mut written: Value, clients: &[Arc<str>]) -> Value {
    if let (Value::Object(map), [only]) = (&mut written, clients) {
        map.entry("client").or_insert_with(|| Value::from(&**only));
    }
    written
}

fn from_file(field: &Field<'_, '_>, file: &Field<'_, '_>) -> Result<IdentityType, SeedError> {
    field.table(&["file"])?;
    let content = file.file()?;
    let path = content.path.clone();
    IdentityType::from_yaml(&content.into_text()?).map_err(|error| match error {
        TypeError::Yaml { line, problem } => {
            SeedError::Wrong { path, line: u64::try_from(line).ok(), key: file.place.path().to_owned(), reason: problem }
        }
        TypeError::Key { .. } => {
            SeedError::Wrong { path, line: None, key: file.place.path().to_owned(), reason: error.to_string() }
        }
    })
}

/// Reads `accounts` of a site and adds the accounts of its identities.
pub(super) fn accounts(table: &Table<'_, '_>, identities: &[SeedIdentity]) -> Result<Vec<SeedAccount>, SeedError> {
    let mut accounts: Vec<SeedAccount> = Vec::new();
    let mut known: HashSet<Arc<str>> = HashSet::new();
    for field in table.list("accounts")? {
        let table = field.table(&["name", "state"])?;
        let name = table.required("name", "the name identities give as their account")?;
        let text: Arc<str> = checked_account(&name)?.into();
        if !known.insert(Arc::clone(&text)) {
            return Err(name.place.wrong("another account has this name; take one out"));
        }
        let state = table.choice("state", &ACCOUNT_STATES)?.unwrap_or(AccountStart::Active);
        accounts.push(SeedAccount { name: text, state });
    }
    for name in identities.iter().filter_map(|identity| identity.attributes.account.as_deref()) {
        if !known.contains(name) {
            let name: Arc<str> = name.into();
            known.insert(Arc::clone(&name));
            accounts.push(SeedAccount { name, state: AccountStart::Active });
        }
    }
    Ok(accounts)
}

fn checked_account<'n>(field: &Field<'_, 'n>) -> Result<&'n str, SeedError> {
    let text = field.text()?;
    if text.is_empty() || text.chars().count() > 256 || text.chars().any(char::is_control) {
        return Err(field.place.wrong("expected 1 to 256 characters, none of them a control character"));
    }
    Ok(text)
}

impl Reader<'_> {
    /// Reads `identities` and `import` of a site.
    pub(super) fn read(&mut self, table: &Table<'_, '_>) -> Result<Vec<SeedIdentity>, SeedError> {
        let mut ids: HashSet<Arc<str>> = HashSet::new();
        let mut keys: HashMap<(Arc<str>, UniqueKey), Arc<str>> = HashMap::new();
        let mut identities = Vec::new();
        for field in table.list("identities")? {
            let (identity, key) = self.inline(&field)?;
            if !ids.insert(Arc::clone(&identity.id)) {
                return Err(field.place.wrong_key("name", "another identity of the site has this name; choose another"));
            }
            if let Some(other) = key.and_then(|key| keys.insert((Arc::clone(&identity.kind), key), Arc::clone(&identity.id))) {
                let reason = format_args!("these values make it the same identity as {other}; take one out");
                return Err(field.place.wrong_key("payload", reason));
            }
            identities.push(identity);
        }
        for field in table.list("import")? {
            let table = field.table(&["type", "file", "format", "clients", "state"])?;
            let kind = self.kind(&table.required("type", "the name of an identity type of the site")?)?;
            let state = table.choice("state", &STATES)?.unwrap_or_else(|| start(&kind));
            let file = table.required("file", "the path of a JSONL or CSV file")?;
            let beside = file.file()?;
            let formats = [("jsonl", Format::Jsonl), ("csv", Format::Csv)];
            let by_name = if beside.ending() == "csv" { Format::Csv } else { Format::Jsonl };
            let format = table.choice("format", &formats)?.unwrap_or(by_name);
            let wrong = |line, reason: String| SeedError::Wrong {
                path: beside.path.clone(),
                line,
                key: file.place.path().to_owned(),
                reason,
            };
            let import = IdentityImport {
                kind: &kind,
                type_id: &kind.name,
                pepper: self.pepper,
                format,
                mode: Mode::Upsert,
                run: Run::Real,
            };
            let imported = import_identities(import, &beside.bytes, |_| None).map_err(|error| wrong(None, error.to_string()))?;
            if let Some((line, problem)) = super::first_failure(&imported.counts.failed) {
                return Err(wrong(line, problem));
            }
            for change in imported.changes {
                let (IdentityChange::Create { line, key, payload, attributes }
                | IdentityChange::Update { line, key, payload, attributes }) = change
                else {
                    continue;
                };
                let id = id_of(&kind, &key, &attributes).map_err(|problem| wrong(Some(line), problem.to_owned()))?;
                if !ids.insert(Arc::clone(&id)) {
                    return Err(wrong(Some(line), format!("another identity of the site has the id {id}; choose another")));
                }
                if let Some(other) = keys.insert((Arc::clone(&kind.name), key), Arc::clone(&id)) {
                    return Err(wrong(Some(line), format!("the same identity as {other}; take one out")));
                }
                identities.push(SeedIdentity {
                    id,
                    kind: Arc::clone(&kind.name),
                    given: Given::Typed { kind: Arc::clone(&kind), payload },
                    clients: vec![Arc::clone(&kind.client)],
                    state,
                    attributes,
                    proxy: None,
                });
            }
        }
        Ok(identities)
    }

    fn inline(&mut self, field: &Field<'_, '_>) -> Result<(SeedIdentity, Option<UniqueKey>), SeedError> {
        let table = field.table_renamed(&KEYS, &RENAMED)?;
        let id: Arc<str> = table.required("name", "a name, unique in the site")?.name()?.into();
        let attributes = attributes(&table)?;
        let written = table.choice("state", &STATES)?;
        let (given, kind, clients, state, key) = match table.get("type") {
            Some(kind) => {
                let kind = self.kind(&kind)?;
                let misplaced = credential::KEYS.into_iter().chain(["clients"]).find_map(|key| table.get(key));
                if let Some(misplaced) = misplaced {
                    return Err(misplaced.place.wrong("an identity with a type has a payload, and its type says the rest"));
                }
                let (payload, key) = self.payload(&kind, &table)?;
                let clients = vec![Arc::clone(&kind.client)];
                (Given::Typed { kind: Arc::clone(&kind), payload }, Arc::clone(&kind.name), clients, start(&kind), Some(key))
            }
            None => {
                if let Some(payload) = table.get("payload") {
                    return Err(payload.place.wrong("a payload needs a type; write type, or cookies, headers, query and json"));
                }
                let given = Given::Plain(Arc::new(credential::read(&table)?));
                (given, PLAIN.into(), some_clients(&table, self.clients)?, Start::Active, None)
            }
        };
        let proxy = table.get("proxy").map(|field| self.proxy(&field, &id)).transpose()?;
        Ok((SeedIdentity { id, kind, given, clients, state: written.unwrap_or(state), attributes, proxy }, key))
    }

    fn payload(&self, kind: &IdentityType, table: &Table<'_, '_>) -> Result<(Payload, UniqueKey), SeedError> {
        let field = table.required("payload", "the values of the type's fields")?;
        let Value::Object(values) = field.node.to_value() else { return Err(field.expected("a table of the type's fields")) };
        if values.is_empty() {
            return Err(field.place.wrong("the payload is empty; write the values of the type's fields"));
        }
        let payload = Payload::new(kind, values, Source::Json).map_err(|error| field.place.wrong(error))?;
        let key = UniqueKey::new(self.pepper, &kind.name, kind, &payload).map_err(|error| field.place.wrong(error))?;
        Ok((payload, key))
    }

    fn kind(&self, field: &Field<'_, '_>) -> Result<Arc<IdentityType>, SeedError> {
        let given = field.text()?;
        self.types.iter().find(|kind| *kind.name == *given).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.types.iter().map(|kind| &*kind.name).collect();
            let guess = guess(given, &known);
            let has = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let site = self.site;
            field.place.wrong(format_args!("site {site} has no identity type {:?}{guess}; it has {has}", shown(given)))
        })
    }

    /// The id of the proxy: one of the lists, or the one with the URL that is written here.
    fn proxy(&mut self, field: &Field<'_, '_>, identity: &Arc<str>) -> Result<Arc<str>, SeedError> {
        let text = field.text()?;
        if !text.contains("://") || self.own.find(text).is_some() || self.shared.find(text).is_some() {
            let found = self.own.find(text).or_else(|| self.shared.find(text));
            return found.map(|proxy| Arc::clone(&proxy.id)).ok_or_else(|| {
                let known: Vec<&str> = self.own.ids().chain(self.shared.ids()).collect();
                let guess = guess(text, &known);
                field.place.wrong(format_args!("no proxy has this name{guess}; write a URL, or the name of a listed proxy"))
            });
        }
        let url = ProxyUrl::parse(text).map_err(|error| field.place.wrong(error))?;
        let proxy = Proxy { max_concurrency: 10_000, ..Proxy::new(url) };
        self.own.add(Some(&format!("of-{identity}")), proxy, Some(identity)).map_err(|problem| field.place.wrong(problem))
    }
}

fn attributes(table: &Table<'_, '_>) -> Result<Attributes, SeedError> {
    let account = table.get("account").map(|field| checked_account(&field).map(str::to_owned)).transpose()?;
    let tags = match table.get("tags") {
        None => None,
        Some(field) => {
            let mut tags: Vec<String> = Vec::new();
            for item in field.one_or_more()? {
                let tag = item.text()?.trim();
                if !tag.is_empty() && !tags.iter().any(|known| known == tag) {
                    tags.push(tag.to_owned());
                }
            }
            few(&field, tags.len())?;
            Some(tags)
        }
    };
    let labels = match table.get("labels") {
        None => None,
        Some(field) => {
            let table = field.open_table("a table of texts")?;
            let labels: BTreeMap<String, String> =
                table.fields().map(|(name, field)| Ok((name.to_owned(), field.scalar()?))).collect::<Result<_, SeedError>>()?;
            few(&field, labels.len())?;
            Some(labels)
        }
    };
    Ok(Attributes { account, region: table.text("region")?.filter(|region| !region.is_empty()).map(str::to_owned), tags, labels })
}

fn few(field: &Field<'_, '_>, found: usize) -> Result<(), SeedError> {
    if found > MAX_TAGS {
        return Err(field.place.wrong(format_args!("found {found}; allowed are at most {MAX_TAGS}")));
    }
    Ok(())
}

const fn start(kind: &IdentityType) -> Start {
    match kind.activation {
        Activation::Probe => Start::Pending,
        Activation::Immediate => Start::Active,
    }
}

/// The id of an imported identity: the label `name`, else its type and what tells it apart.
fn id_of(kind: &IdentityType, key: &UniqueKey, attributes: &Attributes) -> Result<Arc<str>, &'static str> {
    if let Some(name) = attributes.labels.as_ref().and_then(|labels| labels.get("name")) {
        return if is_name(name) { Ok(name.as_str().into()) } else { Err(NAME) };
    }
    let mut id = format!("{}-", kind.name);
    for byte in key.as_bytes().iter().take(8) {
        // Writing into a text cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id.into())
}
