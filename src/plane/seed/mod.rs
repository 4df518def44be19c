//! The seed of an embedded control plane: what one file says of tokens, sites, identities, proxies, policies, config items
//! and secrets.
//!
//! Read once and checked whole with the rules of the model's own modules, so who builds a plane from it trusts every value.
//! An error names file, line and key, says what was found and what is allowed, and never quotes what may be a secret. Who may
//! read the files is for the caller to check: [`Seed::files`] names them.

mod config;
mod credential;
mod error;
mod groups;
mod identities;
mod node;
mod policies;
mod proxies;
mod sites;
mod table;
#[cfg(test)]
mod tests;
mod tokens;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;

pub use error::SeedError;

use self::node::{Node, Raw};
use self::table::{Beside, Field, Place, Read, Source, Table};
use crate::plane::model::Ms;
use crate::plane::model::config_center::{ConfigCenter, Format};
use crate::plane::model::groups::{Group, Groups, names};
use crate::plane::model::identity_type::{IdentityType, Payload};
use crate::plane::model::import::{Attributes, Failure, Proxy};
use crate::plane::model::policy::{ActionPolicy, BreakerPolicy, RotationPolicy, SignalPolicy};
use crate::plane::model::render::Credential;
use crate::plane::model::token::Token;

/// The namespace of a file that names none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// The type that identities without a written one belong to.
pub(crate) const PLAIN: &str = "plain";

/// Everything a plane begins with. One file is one namespace.
#[derive(Debug)]
pub(crate) struct Seed {
    /// Of sites, proxies, policies, config items and secrets, and of tokens that name no other.
    pub(crate) namespace: Arc<str>,
    /// In the order of the file; names and texts are unique.
    pub(crate) tokens: Vec<SeedToken>,
    /// In the order of the file; names are unique.
    pub(crate) sites: Vec<SeedSite>,
    /// For every site without proxies of its own.
    pub(crate) proxies: Vec<SeedProxy>,
    /// All of them, those of the sites' short keys too; names are unique within a kind, a place is bound once, and `extends`
    /// leads to a policy of the list or the built-in one.
    pub(crate) policies: SeedPolicies,
    /// Names are unique; every secret they refer to is there.
    pub(crate) config: Vec<SeedItem>,
    /// Paths are unique.
    pub(crate) secrets: Vec<SeedSecret>,
    /// The file itself and those it refers to: what to watch, and whose permissions to check.
    pub(crate) files: Vec<PathBuf>,
}

impl Default for Seed {
    /// Nothing, in the namespace of a file that names none.
    fn default() -> Self {
        Self {
            namespace: DEFAULT_NAMESPACE.into(),
            tokens: Vec::new(),
            sites: Vec::new(),
            proxies: Vec::new(),
            policies: SeedPolicies::default(),
            config: Vec::new(),
            secrets: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// A token of the server.
#[derive(Debug)]
pub(crate) struct SeedToken {
    /// Of the right form; [`Tokens::admit`](crate::plane::model::token::Tokens::admit) accepts it.
    pub(crate) text: SecretString,
    pub(crate) token: Token,
    /// Whether it is known but no longer accepted.
    pub(crate) is_revoked: bool,
}

/// A site.
#[derive(Debug)]
pub(crate) struct SeedSite {
    pub(crate) name: Arc<str>,
    /// 1 to 16.
    pub(crate) clients: Vec<SeedClient>,
    /// The written ones. Those of another site do not count here, even with the same name.
    pub(crate) types: Vec<Arc<IdentityType>>,
    /// Ids are unique in the site.
    pub(crate) identities: Vec<SeedIdentity>,
    /// Those that identities belong to, and those that are only listed; names are unique.
    pub(crate) accounts: Vec<SeedAccount>,
    /// Its own; with any of them the shared ones are not for this site.
    pub(crate) proxies: Vec<SeedProxy>,
    /// Why it is paused, maybe for no stated reason; `None` when it is not.
    pub(crate) paused: Option<Arc<str>>,
}

/// A client of a site, with its endpoint groups.
#[derive(Debug)]
pub(crate) struct SeedClient {
    pub(crate) name: Arc<str>,
    /// As written, to compare with those of another reading; `_default` is not among them unless it is written.
    pub(crate) written: Vec<Group>,
    /// The same, compiled.
    pub(crate) groups: Groups,
}

/// An identity.
#[derive(Debug)]
pub(crate) struct SeedIdentity {
    /// Its name; of an imported row without the label `name` the type and 16 hexadecimal digits of its unique key.
    pub(crate) id: Arc<str>,
    /// The name of its type; [`PLAIN`] for one without.
    pub(crate) kind: Arc<str>,
    pub(crate) given: Given,
    /// The clients it is for, of those the site declares; never empty.
    pub(crate) clients: Vec<Arc<str>>,
    pub(crate) state: Start,
    /// Account, region, tags and labels; the account is one of the site's.
    pub(crate) attributes: Attributes,
    /// The id of the proxy it is bound to from the start: one of the site's own or of the shared ones.
    pub(crate) proxy: Option<Arc<str>>,
}

/// What an identity shows of itself.
#[derive(Clone)]
pub(crate) enum Given {
    /// As it goes out.
    Plain(Arc<Credential>),
    /// Rendered by its type.
    Typed { kind: Arc<IdentityType>, payload: Payload },
}

/// The state an identity begins in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Pending,
    Active,
    Disabled,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeedAccount {
    pub(crate) name: Arc<str>,
    pub(crate) state: AccountStart,
}

/// The state an account begins in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccountStart {
    Active,
    Banned,
    Disabled,
}

/// A proxy.
#[derive(Debug, Clone)]
pub(crate) struct SeedProxy {
    /// Its name, else `scheme://host:port`, with `#2` and so on where another has the same; unique in its list.
    pub(crate) id: Arc<str>,
    pub(crate) proxy: Proxy,
    /// The identity that alone is ever given this one.
    pub(crate) reserved_for: Option<Arc<str>>,
}

/// All policies by kind; each is bound to the places its head names.
#[derive(Debug, Default)]
pub(crate) struct SeedPolicies {
    pub(crate) rotation: Vec<Arc<RotationPolicy>>,
    pub(crate) signal: Vec<Arc<SignalPolicy>>,
    pub(crate) action: Vec<Arc<ActionPolicy>>,
    pub(crate) breaker: Vec<Arc<BreakerPolicy>>,
}

/// A config item; its content may be one nobody else should see, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SeedItem {
    pub(crate) group: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) format: Format,
    pub(crate) content: Arc<str>,
}

/// A secret.
#[derive(Debug)]
pub(crate) struct SeedSecret {
    pub(crate) path: Arc<str>,
    pub(crate) value: SecretString,
    pub(crate) expires_at: Option<Ms>,
}

/// Reads the file at `path`: JSON if its name ends so, TOML otherwise.
///
/// # Errors
/// When it, or a file it refers to, cannot be read or says something that is not allowed.
pub(crate) fn load(path: &Path) -> Result<Seed, SeedError> {
    let read = |path: &Path| std::fs::read(path);
    let bytes = read(path).map_err(|source| SeedError::Read { path: path.to_owned(), key: None, source })?;
    let text = Beside { path: path.to_owned(), bytes }.into_text()?;
    parse(&text, path, Part::Whole, &read)
}

/// How much of a file is about the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'p> {
    /// All of it.
    Whole,
    /// The table under this key; the other keys are somebody else's. A file without it is an empty seed.
    Under(&'p str),
}

/// Reads the text of the file at `path`; `read` gets the files it refers to, which are beside it.
///
/// # Errors
/// When the text, or a file it refers to, says something that is not allowed.
pub(crate) fn parse(text: &str, path: &Path, part: Part<'_>, read: Read<'_>) -> Result<Seed, SeedError> {
    let source = Source { path, text, read, files: vec![path.to_owned()].into() };
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let node = if is_json { Node::from_json(text) } else { Node::from_toml(text) };
    let node = node.map_err(|error| SeedError::Syntax { path: path.to_owned(), line: error.line, reason: error.reason })?;
    let whole = Field { place: Place::top(&source), node: &node };
    let nothing = Node { at: None, raw: Raw::Table(Vec::new()) };
    let field = match part {
        Part::Whole => whole,
        Part::Under(key) => whole.open_table("a table")?.get(key).unwrap_or(Field { place: Place::top(&source), node: &nothing }),
    };
    let mut seed = seed(&field.table(&KEYS)?)?;
    seed.files = source.files.take();
    Ok(seed)
}

const KEYS: [&str; 9] = ["namespace", "pepper", "tokens", "sites", "proxies", "proxy_files", "policies", "config", "secrets"];

/// What unique keys are made with where the file has no pepper: with it an id tells who knows the file's secrets already.
const PEPPER: &str = "dragline";

fn seed(top: &Table<'_, '_>) -> Result<Seed, SeedError> {
    let namespace = match top.get("namespace") {
        Some(field) => self::namespace(&field)?,
        None => DEFAULT_NAMESPACE.into(),
    };
    let pepper = top.text("pepper")?.unwrap_or(PEPPER);
    let tokens = tokens::read(top, &namespace)?;
    let mut centre = ConfigCenter::new(Arc::clone(&namespace), 0, &[]);
    let secrets = config::secrets(top, &mut centre)?;
    let config = config::items(top, &mut centre)?;
    let shared = proxies::List::read(top)?;
    let mut policies = policies::Reader::read(top)?;
    let sites = sites::read(top, pepper.as_bytes(), &shared, &mut policies)?;
    config::check_references(top, &sites, &secrets)?;
    let policies = policies.finish(&sites)?;
    Ok(Seed { namespace, tokens, sites, proxies: shared.into_proxies(), policies, config, secrets, files: Vec::new() })
}

/// The name of a namespace; the contract gives none, so it is that of a site.
fn namespace(field: &Field<'_, '_>) -> Result<Arc<str>, SeedError> {
    let text = field.text()?;
    let allowed = "expected 1 to 64 of a-z, 0-9, _, . and -, not starting with . or -";
    names::site(text).map_err(|_| field.place.wrong(allowed))?;
    Ok(text.into())
}

/// The first row of an import that failed, and how many more did.
fn first_failure(failed: &[Failure]) -> Option<(Option<u64>, String)> {
    let first = failed.first()?;
    let more = failed.len() - 1;
    let rest = if more > 0 { format!(" (and {more} more rows have errors)") } else { String::new() };
    Some((Some(first.line).filter(|line| *line > 0), format!("{}{rest}", first.message)))
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(credential) => credential.fmt(f),
            Self::Typed { kind, payload } => write!(f, "{}: {payload:?}", kind.name),
        }
    }
}

impl fmt::Debug for SeedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}: {}, {} bytes", self.group, self.key, self.format.name(), self.content.len())
    }
}
