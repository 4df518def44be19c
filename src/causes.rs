//! What lies behind an error of an HTTP client: its causes in their order, the two that have no public type, and what
//! all of them say together.
//!
//! Decides nothing: what a cause means is the business of whoever asked the other side.

use std::error::Error;
use std::io;
use std::iter::successors;

use rustls::CertificateError;

/// How far a chain is followed. No client nests its errors as deep, and one that names itself as its cause has no end.
const LONGEST: usize = 16;

/// What the errors of a chain say together. Texts are whoever's who asks.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    /// What the operating system said, or else the outermost I/O error.
    pub(crate) io: Option<io::ErrorKind>,
    /// Why TLS failed.
    pub(crate) tls: Option<&'a rustls::Error>,
    /// The connection was closed in the handshake of TLS.
    pub(crate) is_tls_eof: bool,
    /// What came is not HTTP.
    pub(crate) parse: Option<&'a hyper::Error>,
    /// The connection was closed before the whole message had come.
    pub(crate) is_incomplete: bool,
    /// The connection handed the request back, or did not take it: none of it was written.
    pub(crate) is_canceled: bool,
    /// How HTTP/2 failed.
    pub(crate) h2: Option<&'a h2::Error>,
    /// The words of a proxy that opened no tunnel.
    pub(crate) tunnel: Option<String>,
}

impl<'a> Said<'a> {
    /// Hears the error and its causes.
    pub(crate) fn of(error: &'a (dyn Error + 'static)) -> Self {
        let mut said = Self::default();
        chain(error).for_each(|link| said.hear(link));
        said
    }

    fn hear(&mut self, link: &'a (dyn Error + 'static)) {
        if let Some(error) = link.downcast_ref::<io::Error>() {
            self.is_tls_eof |= is_tls_eof(error);
            match error.get_ref() {
                Some(_) => _ = self.io.get_or_insert(error.kind()),
                None => self.io = Some(error.kind()),
            }
        } else if let Some(error) = link.downcast_ref::<hyper::Error>() {
            self.is_incomplete |= error.is_incomplete_message();
            self.is_canceled |= error.is_canceled() || error.is_closed();
            if error.is_parse() {
                self.parse = Some(error);
            }
        } else if let Some(error) = link.downcast_ref::<rustls::Error>() {
            self.tls = Some(error);
        } else if let Some(error) = link.downcast_ref::<h2::Error>() {
            self.h2 = Some(error);
        } else if self.tunnel.is_none() {
            self.tunnel = no_tunnel(link);
        }
    }
}

/// The first of this type among an error and its causes.
pub(crate) fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|link| link.downcast_ref::<E>())
}

/// What a TLS error means and what to do about it; `ca_file` is the setting that names the CA's certificate.
pub(crate) fn tls_words(error: &rustls::Error, ca_file: &str) -> String {
    let rustls::Error::InvalidCertificate(error) = error else {
        return format!("TLS failed: {error}");
    };
    let why = match error {
        CertificateError::UnknownIssuer => format!("unknown issuer; name the file with its CA's certificate in {ca_file}"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; is this machine's clock right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        CertificateError::BadSignature => {
            format!("its signature is not its issuer's; name the file with its CA's certificate in {ca_file}")
        }
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is a CA's own; give the server one that the CA signed".to_owned()
        }
        other => other.to_string(),
    };
    format!("certificate not trusted: {why}")
}

/// The error and its causes, the nearest one first, at most [`LONGEST`] in all. An I/O error hides the one it was made
/// of from `source`; here that one comes next.
pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |cause| behind(*cause)).take(LONGEST)
}

fn behind<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => cause.source(),
    }
}

/// Whether the connection was closed in the handshake of TLS.
pub(crate) fn is_tls_eof(error: &io::Error) -> bool {
    let said = || error.get_ref().is_some_and(|inner| inner.to_string() == "tls handshake eof");
    error.kind() == io::ErrorKind::UnexpectedEof && said()
}

/// The words of a proxy that opened no tunnel.
pub(crate) fn no_tunnel(cause: &(dyn Error + 'static)) -> Option<String> {
    let text = cause.to_string();
    ["tunnel error: ", "SOCKS error: "].iter().find_map(|kind| text.strip_prefix(kind)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Outer(&'static str, #[source] io::Error);

    /// An error that names itself as its cause.
    #[derive(Debug)]
    struct Cyclic;

    impl std::fmt::Display for Cyclic {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("again")
        }
    }

    impl Error for Cyclic {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }

    #[test]
    fn a_chain_without_an_end_ends() {
        assert_eq!(chain(&Cyclic).count(), LONGEST);
        assert!(Said::of(&Cyclic).io.is_none());
    }

    #[test]
    fn the_operating_system_is_believed_before_those_who_pass_it_on() {
        let passed_on = |inner| io::Error::new(io::ErrorKind::InvalidData, Outer("reading", inner));
        let kind = |error: &io::Error| Said::of(error).io;
        assert_eq!(kind(&passed_on(io::Error::from(io::ErrorKind::ConnectionReset))), Some(io::ErrorKind::ConnectionReset));
        assert_eq!(kind(&passed_on(io::Error::other("words"))), Some(io::ErrorKind::InvalidData));
    }

    #[test]
    fn causes_go_through_io_errors() {
        let innermost = Outer("tunnel error: refused", io::Error::from(io::ErrorKind::ConnectionRefused));
        let error = Outer("outermost", io::Error::other(io::Error::other(innermost)));
        let texts: Vec<String> = chain(&error).filter(|link| !link.is::<io::Error>()).map(ToString::to_string).collect();
        assert_eq!(texts, ["outermost", "tunnel error: refused"]);
        assert_eq!(chain(&error).count(), 5);
        let said = Said::of(&error);
        assert_eq!((said.io, said.tunnel.as_deref()), (Some(io::ErrorKind::ConnectionRefused), Some("refused")));
    }

    #[test]
    fn an_end_in_the_handshake_is_told_from_others() {
        let eof = |text| io::Error::new(io::ErrorKind::UnexpectedEof, text);
        assert!(is_tls_eof(&eof("tls handshake eof")));
        assert!(!is_tls_eof(&eof("another")) && !is_tls_eof(&io::Error::other("tls handshake eof")));
    }
}
