//! URLs of proxies, and the user name that a lease gets at a proxy with sessions (wire contract, section 23).
//!
//! `scheme://[user[:password]@]host:port` and nothing else. User and password are never in a message or a debug text.

use std::fmt;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

use sha2::{Digest as _, Sha256};

/// The longest URL and the longest session template, in bytes.
const MAX_URL: usize = 2048;
const MAX_TEMPLATE: usize = 512;

/// How to talk to a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ProxyScheme {
    Http,
    Https,
    Socks5,
}

impl ProxyScheme {
    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }
}

/// A URL that is none of a proxy. Never quotes it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ProxyUrlError {
    /// Longer than allowed.
    #[error("the proxy URL has {0} bytes; allowed: at most {MAX_URL}")]
    TooLong(usize),
    /// No or another scheme.
    #[error("a proxy URL starts with http://, https:// or socks5:// (names are resolved at the proxy)")]
    Scheme,
    /// Something behind the port, or a character that has to be encoded.
    #[error("a proxy URL ends with the port; percent-encode any / ? # @ \\ or white space in user and password")]
    Path,
    /// An odd `%`.
    #[error("a % in user or password of the proxy URL is not followed by two hexadecimal digits; write %25")]
    Percent,
    /// A password without a user.
    #[error("the proxy URL has an @ but no user before it; write user:password@, or take the @ out")]
    User,
    /// No or a wrong host.
    #[error("the host of the proxy URL is neither a name (ASCII), nor an IPv4 address, nor an IPv6 address in brackets")]
    Host,
    /// No or a wrong port.
    #[error("the proxy URL needs a port from 1 to 65535 behind the host")]
    Port,
}

/// A checked URL; scheme and host in lower case, so equal proxies are equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProxyUrl {
    scheme: ProxyScheme,
    host: Box<str>,
    port: u16,
    /// Percent-encoded, as the password.
    user: Option<Box<str>>,
    password: Option<Box<str>>,
}

impl ProxyUrl {
    /// Checks a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, ProxyUrlError> {
        if text.len() > MAX_URL {
            return Err(ProxyUrlError::TooLong(text.len()));
        }
        let (scheme, rest) = text.split_once("://").ok_or(ProxyUrlError::Scheme)?;
        let scheme = [ProxyScheme::Http, ProxyScheme::Https, ProxyScheme::Socks5]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known.name()))
            .ok_or(ProxyUrlError::Scheme)?;
        if rest.contains(|c: char| matches!(c, '/' | '?' | '#' | '\\') || c.is_whitespace() || c.is_control()) {
            return Err(ProxyUrlError::Path);
        }
        let (login, address) = rest.rsplit_once('@').map_or((None, rest), |(login, address)| (Some(login), address));
        let (user, password) = match login {
            None => (None, None),
            Some(login) => {
                check_login(login)?;
                let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
                if user.is_empty() {
                    return Err(ProxyUrlError::User);
                }
                (Some(user.into()), password.map(Into::into))
            }
        };
        let (host, port) = address.rsplit_once(':').ok_or(ProxyUrlError::Port)?;
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse::<u16>().ok().filter(|port| is_number && *port > 0).ok_or(ProxyUrlError::Port)?;
        if !is_host(host) {
            return Err(ProxyUrlError::Host);
        }
        Ok(Self { scheme, host: host.to_ascii_lowercase().into(), port, user, password })
    }

    /// The URL with user and password, as a lease carries it.
    pub(crate) fn reveal(&self) -> String {
        self.written(self.user.as_deref())
    }

    /// The URL as it may be shown: without user and password.
    pub(crate) fn shown(&self) -> String {
        format!("{}://{}:{}", self.scheme.name(), self.host, self.port)
    }

    fn written(&self, user: Option<&str>) -> String {
        let mut url = format!("{}://", self.scheme.name());
        if let Some(user) = user {
            url.push_str(user);
            if let Some(password) = &self.password {
                url.push(':');
                url.push_str(password);
            }
            url.push('@');
        }
        url.push_str(&self.host);
        url.push(':');
        url.push_str(&self.port.to_string());
        url
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = if self.user.is_some() { "…@" } else { "" };
        write!(f, "{}://{login}{}:{}", self.scheme.name(), self.host, self.port)
    }
}

/// What a user name is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Username,
    Password,
    IdentityId,
    IdentityHash,
    LeaseId,
    Random,
}

impl Piece {
    const ALL: [(&'static str, Self); 6] = [
        ("username", Self::Username),
        ("password", Self::Password),
        ("identity_id", Self::IdentityId),
        ("identity_hash", Self::IdentityHash),
        ("lease_id", Self::LeaseId),
        ("random", Self::Random),
    ];
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Piece(Piece),
}

/// A template for the user name of a lease.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SessionTemplate {
    text: Box<str>,
    parts: Vec<Part>,
}

/// The lease that a user name is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Session<'a> {
    pub(crate) identity_id: &'a str,
    pub(crate) lease_id: &'a str,
    /// Chance, written as eight hexadecimal digits.
    pub(crate) random: u32,
}

/// A session template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SessionTemplateError {
    /// Longer than allowed.
    #[error("the session template has {0} bytes; allowed: at most {MAX_TEMPLATE}")]
    TooLong(usize),
    /// A brace without its partner.
    #[error("the session template has a brace without its partner; a placeholder is written {{identity_id}}")]
    Brace,
    /// An unknown placeholder.
    #[error(
        "the session template has an unknown placeholder; allowed are username, password, identity_id, identity_hash, lease_id and random"
    )]
    Unknown,
    /// A control character.
    #[error("the session template has a control character; take it out")]
    Control,
}

impl SessionTemplate {
    /// Checks a template.
    pub(crate) fn parse(text: &str) -> Result<Self, SessionTemplateError> {
        if text.len() > MAX_TEMPLATE {
            return Err(SessionTemplateError::TooLong(text.len()));
        }
        if text.contains(char::is_control) {
            return Err(SessionTemplateError::Control);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}').ok_or(SessionTemplateError::Brace)?;
            let piece = Piece::ALL.iter().find(|(known, _)| *known == name).ok_or(SessionTemplateError::Unknown)?.1;
            literal(before, &mut parts)?;
            parts.push(Part::Piece(piece));
            rest = after;
        }
        literal(rest, &mut parts)?;
        Ok(Self { text: text.into(), parts })
    }

    /// The template as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The proxy's URL with the user name of this lease; unchanged if that comes out empty.
    pub(crate) fn render(&self, url: &ProxyUrl, session: Session<'_>) -> String {
        let mut user = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => encode(text.as_bytes(), &mut user),
                Part::Piece(Piece::Username) => encode(&decoded(url.user.as_deref()), &mut user),
                Part::Piece(Piece::Password) => encode(&decoded(url.password.as_deref()), &mut user),
                Part::Piece(Piece::IdentityId) => encode(session.identity_id.as_bytes(), &mut user),
                Part::Piece(Piece::IdentityHash) => user.push_str(&identity_hash(session.identity_id)),
                Part::Piece(Piece::LeaseId) => encode(session.lease_id.as_bytes(), &mut user),
                Part::Piece(Piece::Random) => user.push_str(&format!("{:08x}", session.random)),
            }
        }
        if user.is_empty() { url.reveal() } else { url.written(Some(&user)) }
    }
}

impl fmt::Debug for SessionTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A template may hold a customer's number or worse.
        f.debug_struct("SessionTemplate").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

/// The first twelve hexadecimal digits of SHA-256 of an identity's id.
pub(crate) fn identity_hash(identity_id: &str) -> String {
    let digest = Sha256::digest(identity_id.as_bytes());
    digest.iter().take(6).fold(String::with_capacity(12), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn literal(text: &str, parts: &mut Vec<Part>) -> Result<(), SessionTemplateError> {
    if text.contains('}') {
        return Err(SessionTemplateError::Brace);
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.into()));
    }
    Ok(())
}

fn check_login(login: &str) -> Result<(), ProxyUrlError> {
    if login.contains('@') {
        return Err(ProxyUrlError::Path);
    }
    let encoded = login.split('%').skip(1).all(|behind| {
        let mut digits = behind.bytes();
        (0..2).all(|_| digits.next().is_some_and(|digit| digit.is_ascii_hexdigit()))
    });
    if encoded { Ok(()) } else { Err(ProxyUrlError::Percent) }
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    (1..=253).contains(&host.len()) && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// Encodes all but the unreserved characters of RFC 3986.
fn encode(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

fn decoded(text: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.unwrap_or_default().bytes();
    while let Some(byte) = rest.next() {
        let digit =
            |byte: Option<u8>| char::from(byte.unwrap_or_default()).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match byte {
            b'%' => bytes.push(digit(rest.next()).unwrap_or_default() << 4 | digit(rest.next()).unwrap_or_default()),
            _ => bytes.push(byte),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_proxy_url_is_scheme_login_host_and_port() {
        for (text, revealed, shown) in [
            ("http://h:1", "http://h:1", "http://h:1"),
            ("HTTPS://Proxy.Example:443", "https://proxy.example:443", "https://proxy.example:443"),
            ("socks5://User:Pa%2Fss@10.0.0.1:1080", "socks5://User:Pa%2Fss@10.0.0.1:1080", "socks5://10.0.0.1:1080"),
            ("http://user@h:80", "http://user@h:80", "http://h:80"),
            ("http://user:@h:80", "http://user:@h:80", "http://h:80"),
            ("http://u:p:q@h:65535", "http://u:p:q@h:65535", "http://h:65535"),
            ("http://[::1]:8080", "http://[::1]:8080", "http://[::1]:8080"),
            ("http://a_b-c.d:1", "http://a_b-c.d:1", "http://a_b-c.d:1"),
        ] {
            let url = ProxyUrl::parse(text).unwrap();
            assert_eq!((url.reveal().as_str(), url.shown().as_str()), (revealed, shown));
            assert_eq!(ProxyUrl::parse(revealed), Ok(url));
        }
    }

    #[test]
    fn anything_else_is_refused_without_being_quoted() {
        use ProxyUrlError::{Host, Path, Percent, Port, Scheme, TooLong, User};
        let long = format!("http://{}:1", "h".repeat(2042));
        for (text, error) in [
            ("", Scheme),
            ("h:1", Scheme),
            ("ftp://h:1", Scheme),
            ("socks5h://h:1", Scheme),
            ("http:/h:1", Scheme),
            ("http://h", Port),
            ("http://h:", Port),
            ("http://h:0", Port),
            ("http://h:65536", Port),
            ("http://h:+1", Port),
            ("http://[::1]", Port),
            ("http://:1", Host),
            ("http://ü:1", Host),
            ("http://[x]:1", Host),
            ("http://a:b:1", Host),
            ("http://::1:80", Host),
            ("http://h:1/", Path),
            ("http://h:1/x", Path),
            ("http://h:1?x", Path),
            ("http://h:1#x", Path),
            ("http://canary:a/b@h:1", Path),
            ("http://u:canary@x@h:1", Path),
            ("http://u v:canary@h:1", Path),
            ("http://u:canary%2@h:1", Percent),
            ("http://u:canary%zz@h:1", Percent),
            ("http://@h:1", User),
            ("http://:canary@h:1", User),
            (long.as_str(), TooLong(2051)),
        ] {
            let found = ProxyUrl::parse(text).unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!found.to_string().contains("canary"));
        }
    }

    fn rendered(template: &str, url: &str) -> String {
        let session = Session { identity_id: "idt_1", lease_id: "lse_2", random: 0xab };
        SessionTemplate::parse(template).unwrap().render(&ProxyUrl::parse(url).unwrap(), session)
    }

    #[test]
    fn a_session_template_renders_the_user_name_and_keeps_the_password() {
        for (template, url, expected) in [
            ("{username}-session-{identity_hash}", "http://u:p@h:1", "http://u-session-a9a8f624ba93:p@h:1"),
            ("{identity_id}/{lease_id}/{random}", "http://u:p@h:1", "http://idt_1%2Flse_2%2F000000ab:p@h:1"),
            ("{username}:{password}", "http://a%40b:p%2Fq@h:1", "http://a%40b%3Ap%2Fq:p%2Fq@h:1"),
            ("fixed é", "socks5://h:1", "socks5://fixed%20%C3%A9@h:1"),
            ("", "http://u:p@h:1", "http://u:p@h:1"),
            ("{username}{password}", "http://h:1", "http://h:1"),
            ("{password}", "http://u@h:1", "http://u@h:1"),
        ] {
            assert_eq!(rendered(template, url), expected, "{template}");
        }
    }

    #[test]
    fn a_template_with_unknown_parts_is_refused() {
        for (template, error) in [
            ("{user}", SessionTemplateError::Unknown),
            ("{}", SessionTemplateError::Unknown),
            ("{ username }", SessionTemplateError::Unknown),
            ("{username", SessionTemplateError::Brace),
            ("username}", SessionTemplateError::Brace),
            ("a\nb", SessionTemplateError::Control),
            (&"a".repeat(513), SessionTemplateError::TooLong(513)),
        ] {
            assert_eq!(SessionTemplate::parse(template), Err(error), "{template}");
        }
        assert!(SessionTemplate::parse(&"a".repeat(512)).is_ok());
    }

    #[test]
    fn debug_texts_show_no_login() {
        let url = ProxyUrl::parse("http://canary:canary@h:1").unwrap();
        assert_eq!(format!("{url:?}"), "http://…@h:1");
        assert!(!format!("{:?}", SessionTemplate::parse("canary-{random}").unwrap()).contains("canary"));
    }

    #[test]
    fn the_hash_of_an_identity_is_the_contracts() {
        assert_eq!(identity_hash("idt_1"), "a9a8f624ba93");
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_a_url_reads_itself_back(
            text in "\\PC{0,40}|(http|socks5)://([a-z%0-9]{0,6}:?[a-z%0-9]{0,6}@)?[a-z.\\[\\]:]{0,8}:[0-9]{0,6}",
            template in "\\PC{0,20}|[a-z{}_]{0,20}|(\\{username\\}|\\{random\\}|-)*",
        ) {
            let template = SessionTemplate::parse(&template);
            if let Ok(url) = ProxyUrl::parse(&text) {
                prop_assert_eq!(ProxyUrl::parse(&url.reveal()), Ok(url.clone()));
                if let Ok(template) = template {
                    let session = Session { identity_id: &text, lease_id: &text, random: 1 };
                    let rendered = template.render(&url, session);
                    prop_assert_eq!(ProxyUrl::parse(&rendered).map(|url| url.shown()), Ok(url.shown()));
                }
            }
        }
    }
}
