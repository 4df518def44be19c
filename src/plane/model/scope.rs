//! What a token may do, and where (wire contract, section 17).
//!
//! A scope is `<what>[:<where>]`. Nothing is implied: `admin` is the console's and gives no node call.

use super::glob::Glob;
use super::refusal::Refusal;
use crate::nearest::nearest;

/// Longest site name.
const SITE_NAME: usize = 64;

/// Why a text is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ScopeError {
    /// No scope begins like this.
    #[error("there is no scope {given}; {hint}")]
    Unknown {
        /// What was given.
        given: String,
        /// What may have been meant.
        hint: String,
    },
    /// `secret:read` alone.
    #[error("the scope {given} needs an argument: {name}:<pattern over namespace/path>")]
    NeedsArgument {
        /// What was given.
        given: String,
        /// The scope's name.
        name: &'static str,
    },
    /// `admin:x`.
    #[error("the scope {name} takes no argument, found {given}")]
    TakesNoArgument {
        /// What was given.
        given: String,
        /// The scope's name.
        name: &'static str,
    },
    /// Not a site's name behind the colon.
    #[error("the scope {given} names no site; a site's name is 1 to 64 of a-z 0-9 _ . - and begins with a letter, digit or _")]
    NotASite {
        /// What was given.
        given: String,
    },
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Acquire,
    Report,
    ConfigRead,
    ConfigPublish,
    SecretRead,
    IdentityWrite,
    ProxyWrite,
    Admin,
}

const KINDS: [(&str, Kind); 8] = [
    ("lease:acquire", Kind::Acquire),
    ("report:write", Kind::Report),
    ("config:read", Kind::ConfigRead),
    ("config:publish", Kind::ConfigPublish),
    ("secret:read", Kind::SecretRead),
    ("identity:write", Kind::IdentityWrite),
    ("proxy:write", Kind::ProxyWrite),
    ("admin", Kind::Admin),
];

/// The sites one kind of scope reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Sites {
    #[default]
    None,
    Some(Vec<Box<str>>),
    All,
}

/// All scopes of one token, ready to be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scopes {
    acquire: Sites,
    report: Sites,
    identity_write: Sites,
    config_read: Vec<Glob>,
    config_publish: Vec<Glob>,
    secret_read: Vec<Glob>,
    proxy_write: bool,
    admin: bool,
}

impl Scopes {
    /// Reads a list of scopes; the same one twice is the same as once.
    ///
    /// # Errors
    /// The first text that is no scope.
    pub(crate) fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, ScopeError> {
        let mut scopes = Self::default();
        for text in texts {
            scopes.add(text)?;
        }
        Ok(scopes)
    }

    /// May do everything: for a caller in the same process.
    pub(crate) fn everything() -> Self {
        let any = || vec![Glob::anything()];
        Self {
            acquire: Sites::All,
            report: Sites::All,
            identity_write: Sites::All,
            config_read: any(),
            config_publish: any(),
            secret_read: any(),
            proxy_write: true,
            admin: true,
        }
    }

    /// May it acquire leases of the site?
    ///
    /// # Errors
    /// `scope_missing`.
    pub(crate) fn check_acquire(&self, site: &str) -> Result<(), Refusal> {
        allowed(self.acquire.reach(site), "lease:acquire", site)
    }

    /// May it renew and release leases of the site? A lease that is none of its business does not exist for it.
    ///
    /// # Errors
    /// `lease_unknown`, as for a lease that never was.
    pub(crate) fn check_lease(&self, site: &str) -> Result<(), Refusal> {
        if self.acquire.reach(site) { Ok(()) } else { Err(Refusal::lease_unknown()) }
    }

    /// May it report at all?
    ///
    /// # Errors
    /// `scope_missing`, for the whole call.
    pub(crate) fn check_report_call(&self) -> Result<(), Refusal> {
        if self.report == Sites::None { Err(Refusal::scope_missing("report:write")) } else { Ok(()) }
    }

    /// May it report on leases of the site? If not, this one report is rejected.
    pub(crate) fn may_report(&self, site: &str) -> bool {
        self.report.reach(site)
    }

    /// May it read the config items of the group?
    ///
    /// # Errors
    /// `scope_missing`.
    pub(crate) fn check_config_read(&self, group: &str) -> Result<(), Refusal> {
        allowed(any(&self.config_read, group), "config:read", group)
    }

    /// May it publish config items of the group?
    ///
    /// # Errors
    /// `scope_missing`.
    #[cfg(test)]
    pub(crate) fn check_config_publish(&self, group: &str) -> Result<(), Refusal> {
        allowed(any(&self.config_publish, group), "config:publish", group)
    }

    /// May it read the secret of this namespace?
    ///
    /// # Errors
    /// `scope_missing`.
    pub(crate) fn check_secret_read(&self, namespace: &str, path: &str) -> Result<(), Refusal> {
        let whole = format!("{namespace}/{path}");
        allowed(any(&self.secret_read, &whole), "secret:read", &whole)
    }

    /// May it change identities of the site?
    ///
    /// # Errors
    /// `scope_missing`.
    #[cfg(test)]
    pub(crate) fn check_identity_write(&self, site: &str) -> Result<(), Refusal> {
        allowed(self.identity_write.reach(site), "identity:write", site)
    }

    /// May it change proxies?
    ///
    /// # Errors
    /// `scope_missing`.
    #[cfg(test)]
    pub(crate) fn check_proxy_write(&self) -> Result<(), Refusal> {
        if self.proxy_write { Ok(()) } else { Err(Refusal::scope_missing("proxy:write")) }
    }

    /// May it administer?
    ///
    /// # Errors
    /// `scope_missing`.
    #[cfg(test)]
    pub(crate) fn check_admin(&self) -> Result<(), Refusal> {
        if self.admin { Ok(()) } else { Err(Refusal::scope_missing("admin")) }
    }

    fn add(&mut self, text: &str) -> Result<(), ScopeError> {
        let (name, kind, argument) = split(text)?;
        let given = || text.to_owned();
        let pattern = || argument.map_or_else(Glob::anything, Glob::new);
        let sites = match kind {
            Kind::Acquire => &mut self.acquire,
            Kind::Report => &mut self.report,
            Kind::IdentityWrite => &mut self.identity_write,
            Kind::ConfigRead => {
                self.config_read.push(pattern());
                return Ok(());
            }
            Kind::ConfigPublish => {
                self.config_publish.push(pattern());
                return Ok(());
            }
            Kind::SecretRead if argument.is_none() => return Err(ScopeError::NeedsArgument { given: given(), name }),
            Kind::SecretRead => {
                self.secret_read.push(pattern());
                return Ok(());
            }
            Kind::ProxyWrite | Kind::Admin if argument.is_some() => {
                return Err(ScopeError::TakesNoArgument { given: given(), name });
            }
            Kind::ProxyWrite => {
                self.proxy_write = true;
                return Ok(());
            }
            Kind::Admin => {
                self.admin = true;
                return Ok(());
            }
        };
        match argument {
            None => *sites = Sites::All,
            Some(site) if is_site_name(site) => sites.add(site),
            Some(_) => return Err(ScopeError::NotASite { given: given() }),
        }
        Ok(())
    }
}

impl Sites {
    fn reach(&self, site: &str) -> bool {
        match self {
            Self::None => false,
            Self::Some(names) => names.iter().any(|name| **name == *site),
            Self::All => true,
        }
    }

    fn add(&mut self, site: &str) {
        match self {
            Self::All => {}
            Self::None => *self = Self::Some(vec![site.into()]),
            Self::Some(names) => names.push(site.into()),
        }
    }
}

fn any(patterns: &[Glob], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(text))
}

fn allowed(is_allowed: bool, scope: &str, place: &str) -> Result<(), Refusal> {
    if is_allowed { Ok(()) } else { Err(Refusal::scope_missing(&format!("{scope}:{place}"))) }
}

/// The scope's name, its kind and what stands behind its colon, which may not be nothing.
fn split(text: &str) -> Result<(&'static str, Kind, Option<&str>), ScopeError> {
    let known = KINDS.into_iter().find_map(|(name, kind)| match text.strip_prefix(name)?.strip_prefix(':') {
        None => (text == name).then_some((name, kind, None)),
        Some(argument) => (!argument.is_empty()).then_some((name, kind, Some(argument))),
    });
    known.ok_or_else(|| {
        let names = KINDS.map(|(name, _)| name);
        let hint =
            nearest(text, names).map_or_else(|| format!("there are {}", names.join(", ")), |near| format!("is it {near}?"));
        ScopeError::Unknown { given: text.to_owned(), hint }
    })
}

/// `^[a-z0-9_][a-z0-9_.-]{0,63}$` (section 18).
fn is_site_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= SITE_NAME
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|byte| plain(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::super::refusal::Reason;
    use super::*;

    fn scopes(texts: &[&str]) -> Scopes {
        Scopes::parse(texts.iter().copied()).unwrap()
    }

    fn reason(result: Result<(), Refusal>) -> Option<Reason> {
        result.err().and_then(|refusal| refusal.reason)
    }

    #[test]
    fn b149_a_token_for_one_site_is_refused_on_another() {
        let one = scopes(&["lease:acquire:shop"]);
        assert_eq!(reason(one.check_acquire("shop")), None);
        assert_eq!(reason(one.check_acquire("shop2")), Some(Reason::ScopeMissing));
        assert_eq!(reason(scopes(&["lease:acquire"]).check_acquire("any")), None);
        assert_eq!(reason(scopes(&["report:write"]).check_acquire("shop")), Some(Reason::ScopeMissing));
        let both = scopes(&["lease:acquire:shop", "lease:acquire", "lease:acquire:other"]);
        assert_eq!(reason(both.check_acquire("third")), None, "the wider scope is not narrowed by a later one");
    }

    #[test]
    fn b138_renew_and_release_hide_that_a_scope_is_missing() {
        assert_eq!(reason(scopes(&["lease:acquire:shop"]).check_lease("other")), Some(Reason::LeaseUnknown));
        assert_eq!(reason(scopes(&["lease:acquire:shop"]).check_lease("shop")), None);
    }

    #[test]
    fn reports_are_judged_one_by_one_unless_none_could_be_taken() {
        assert_eq!(reason(scopes(&["lease:acquire"]).check_report_call()), Some(Reason::ScopeMissing));
        let one = scopes(&["report:write:shop"]);
        assert_eq!(reason(one.check_report_call()), None);
        assert!(one.may_report("shop") && !one.may_report("other"));
    }

    #[test]
    fn groups_and_secrets_are_patterns() {
        let some = scopes(&["config:read:crawl*", "config:publish", "secret:read:prod/signing/*"]);
        assert_eq!(reason(some.check_config_read("crawler")), None);
        assert_eq!(reason(some.check_config_read("_runtime")), Some(Reason::ScopeMissing));
        assert_eq!(reason(some.check_config_publish("anything")), None);
        assert_eq!(reason(some.check_secret_read("prod", "signing/key/v2")), None);
        assert_eq!(reason(some.check_secret_read("test", "signing/key")), Some(Reason::ScopeMissing));
    }

    #[test]
    fn admin_gives_no_node_call_and_everything_gives_all() {
        let admin = scopes(&["admin"]);
        assert!(admin.check_admin().is_ok() && admin.check_acquire("shop").is_err() && admin.check_proxy_write().is_err());
        let all = Scopes::everything();
        for check in [
            all.check_acquire("a"),
            all.check_lease("a"),
            all.check_report_call(),
            all.check_config_read("_runtime"),
            all.check_config_publish("a"),
            all.check_secret_read("a", "b"),
            all.check_identity_write("a"),
            all.check_proxy_write(),
            all.check_admin(),
        ] {
            assert_eq!(check, Ok(()));
        }
        assert!(all.may_report("a"));
    }

    #[test]
    fn what_is_no_scope_is_refused_with_what_to_write() {
        for (text, says) in [
            ("lease:aquire", "there is no scope lease:aquire; is it lease:acquire?"),
            ("lease:acquire:", "there is no scope lease:acquire:; is it lease:acquire?"),
            ("lease:acquire:Shop", "the scope lease:acquire:Shop names no site"),
            ("secret:read", "the scope secret:read needs an argument"),
            ("admin:x", "the scope admin takes no argument, found admin:x"),
            ("proxy:write:x", "the scope proxy:write takes no argument"),
            ("", "there is no scope ; there are lease:acquire, report:write"),
            ("administrator", "there is no scope administrator"),
        ] {
            let error = Scopes::parse([text]).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
