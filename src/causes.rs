//! What lies behind an error of an HTTP client: its causes in their order, and the two that have no public type.
//!
//! Decides nothing: what a cause means is the business of whoever asked the other side.

use std::error::Error;
use std::io;
use std::iter::successors;

/// The causes of an error, the nearest one first. An I/O error hides the one it was made of from `source`; here that one
/// comes next.
pub(crate) fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(error.source(), |cause| behind(*cause))
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

    #[test]
    fn causes_go_through_io_errors() {
        let innermost = Outer("tunnel error: refused", io::Error::from(io::ErrorKind::ConnectionRefused));
        let error = Outer("outermost", io::Error::other(io::Error::other(innermost)));
        let texts: Vec<String> = causes(&error).filter(|cause| !cause.is::<io::Error>()).map(ToString::to_string).collect();
        assert_eq!(texts, ["tunnel error: refused"]);
        assert_eq!(causes(&error).count(), 4);
        assert_eq!(causes(&error).find_map(no_tunnel).as_deref(), Some("refused"));
        let kinds: Vec<_> = causes(&error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind).collect();
        assert_eq!(kinds.last(), Some(&io::ErrorKind::ConnectionRefused));
    }

    #[test]
    fn an_end_in_the_handshake_is_told_from_others() {
        let eof = |text| io::Error::new(io::ErrorKind::UnexpectedEof, text);
        assert!(is_tls_eof(&eof("tls handshake eof")));
        assert!(!is_tls_eof(&eof("another")) && !is_tls_eof(&io::Error::other("tls handshake eof")));
    }
}
