//! The settings of a client, after arguments and environment have been weighed: an argument wins, even an empty one.
//!
//! No error and no `Debug` shows the token, or what a URL says besides its host.

use std::fmt;
use std::path::{Path, PathBuf};

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

use super::address::{Address, AddressError};
use super::{Environment, node_name};
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::transport::{Salutation, bearer};

/// What this client calls itself.
const PRODUCT: &str = concat!("dragline-spinneret/", env!("CARGO_PKG_VERSION"));

/// What was given as an argument.
#[derive(Clone, Default)]
pub(super) struct Given {
    pub(super) url: Option<String>,
    pub(super) token: Option<SecretString>,
    pub(super) node: Option<String>,
    pub(super) cache_dir: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) user_agent: Option<String>,
}

/// Who speaks to whom.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) address: Address,
    pub(crate) token: SecretString,
    pub(crate) node: String,
    /// None when it is not set and there is no home directory.
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) ca_files: Vec<PathBuf>,
    user_agent: String,
}

impl Settings {
    pub(super) fn of(given: Given, environment: &Environment) -> Result<Self> {
        let url = given.url.map_or_else(|| environment.text("SPINNERET_URL"), |url| Ok(Some(url)))?;
        let address = url.ok_or(AddressError::Missing).and_then(|url| Address::of(&url));
        let node = given.node.map_or_else(|| environment.text("SPINNERET_NODE"), |node| Ok(Some(node)))?;
        Ok(Self {
            address: address.map_err(|error| Error::configuration(error.to_string()))?,
            token: token(given.token, environment)?,
            node: node.map_or_else(node_name::of_host, |node| node_name::sanitised(&node)),
            cache_dir: cache_dir(given.cache_dir, environment)?,
            ca_files: ca_files(given.ca_file, environment)?,
            user_agent: user_agent(given.user_agent.as_deref())?,
        })
    }

    /// What is said with every call.
    pub(super) fn salutation(&self) -> Result<Salutation> {
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| Error::configuration("the user agent is no header"));
        Ok(Salutation {
            authorization: bearer(&self.token).ok_or_else(unsendable_token)?,
            node: header(&self.node)?,
            user_agent: header(&self.user_agent)?,
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("url", &self.address.base()).field("node", &self.node).finish_non_exhaustive()
    }
}

fn token(given: Option<SecretString>, environment: &Environment) -> Result<SecretString> {
    let token = match given {
        Some(token) => token,
        None => environment.text("SPINNERET_TOKEN")?.map(SecretString::from).ok_or_else(|| {
            Error::configuration(
                "SPINNERET_TOKEN (ClientBuilder::token) is not set; give the token of this node, which begins with spn_",
            )
        })?,
    };
    let text = token.expose_secret().trim();
    let wrong = |what: &str| {
        Err(Error::configuration(format!(
            "SPINNERET_TOKEN (ClientBuilder::token) {what} (not shown); give the token of this node as the console showed it"
        )))
    };
    if text.is_empty() {
        return wrong("is empty");
    }
    if text.chars().any(char::is_whitespace) {
        return wrong("holds white space");
    }
    if text.chars().any(char::is_control) {
        return wrong("holds a control character");
    }
    if !text.is_ascii() {
        return wrong("holds a character outside ASCII, which no header carries");
    }
    Ok(text.into())
}

fn unsendable_token() -> Error {
    Error::configuration("SPINNERET_TOKEN (ClientBuilder::token) cannot be a header (not shown)")
}

fn cache_dir(given: Option<PathBuf>, environment: &Environment) -> Result<Option<PathBuf>> {
    const SETTING: &str = "SPINNERET_CACHE_DIR (ClientBuilder::cache_dir)";
    let (path, is_default) = match given.or_else(|| environment.path("SPINNERET_CACHE_DIR")) {
        Some(path) if path.as_os_str().is_empty() => {
            return Err(Error::configuration(format!(
                "{SETTING} is empty; name a folder, or leave it out for ~/.spinneret/cache"
            )));
        }
        Some(path) => (path, false),
        None => (PathBuf::from("~/.spinneret/cache"), true),
    };
    match expanded(&path, environment) {
        Some(path) => Ok(Some(path)),
        None if is_default => Ok(None),
        None => Err(Error::configuration(format!(
            "{SETTING} is {}, and there is no home directory; set HOME, or name the folder without ~",
            path.display()
        ))),
    }
}

/// The path with `~` at its beginning replaced by the home directory; none when there is no such directory.
fn expanded(path: &Path, environment: &Environment) -> Option<PathBuf> {
    let Ok(rest) = path.strip_prefix("~") else {
        return Some(path.to_owned());
    };
    let home = environment.path("HOME").or_else(std::env::home_dir).filter(|home| !home.as_os_str().is_empty())?;
    // Joining nothing would leave a slash at the end.
    Some(if rest.as_os_str().is_empty() { home } else { home.join(rest) })
}

fn ca_files(given: Option<PathBuf>, environment: &Environment) -> Result<Vec<PathBuf>> {
    if given.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
        return Err(Error::configuration(
            "SPINNERET_CA_FILE (ClientBuilder::ca_file) is empty; name a PEM file, or leave it out to trust only the usual roots",
        ));
    }
    let own = given.or_else(|| environment.path("SPINNERET_CA_FILE"));
    let files = own.into_iter().chain(environment.path("SSL_CERT_FILE"));
    files
        .map(|file| {
            expanded(&file, environment).ok_or_else(|| {
                let file = file.display();
                Error::configuration(format!(
                    "the certificate file {file} (SPINNERET_CA_FILE, ClientBuilder::ca_file or SSL_CERT_FILE) lies in a home \
                     directory, and there is none; set HOME, or name the file without ~"
                ))
            })
        })
        .collect()
}

fn user_agent(given: Option<&str>) -> Result<String> {
    let own = given.map(str::trim).unwrap_or_default();
    if !own.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return Err(Error::configuration(
            "the user agent (ClientBuilder::user_agent) holds a character that no header carries; give printable ASCII",
        ));
    }
    Ok(if own.is_empty() { PRODUCT.to_owned() } else { format!("{own} {PRODUCT}") })
}

#[cfg(test)]
mod tests;
