//! Whose certificates are trusted: the roots browsers trust, and those of files the user names; and TLS on top of them.
//!
//! Reads files, once. Never turns verification off.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{PemObject as _, SectionKind};

/// Why a file of certificates cannot be used. Whoever knows which setting names the file adds that.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootsError {
    /// It cannot be read.
    #[error("the certificate file {} cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    /// It holds no certificate.
    #[error(
        "the certificate file {} holds no certificate: found {found}; it must hold PEM blocks that begin with -----BEGIN CERTIFICATE-----",
        file.display()
    )]
    NoCertificate { file: PathBuf, found: String },
}

/// The compiled-in roots and those of the files.
pub(crate) fn roots<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<RootCertStore, RootsError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for file in files {
        let pem = std::fs::read(file).map_err(|source| RootsError::Unreadable { file: file.to_owned(), source })?;
        add(&mut roots, &pem).map_err(|found| RootsError::NoCertificate { file: file.to_owned(), found })?;
    }
    Ok(roots)
}

/// Verified TLS by ring with these roots, for the protocols to be offered (ALPN). reqwest adds none to a ready one.
pub(crate) fn client_config(roots: RootCertStore, protocols: &[&str]) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(config)
}

/// Adds the certificates of a PEM text; `Err` tells what is there when none can be used. A bundle may hold some that
/// cannot be used beside those that can.
fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), String> {
    let (mut used, mut unusable, mut others) = (0_u32, 0_u32, Vec::new());
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        match section {
            Ok((SectionKind::Certificate, der)) => match roots.add(CertificateDer::from(der)) {
                Ok(()) => used += 1,
                Err(_) => unusable += 1,
            },
            Ok((kind, _)) => others.push(name(kind)),
            Err(_) => unusable += 1,
        }
    }
    if used > 0 {
        return Ok(());
    }
    Err(match (unusable, others.first()) {
        (0, None) if pem.is_empty() => "an empty file".to_owned(),
        (0, None) if pem.first() == Some(&0x30) => {
            "DER; write it as PEM with openssl x509 -inform der -in FILE -out FILE.pem".to_owned()
        }
        (0, None) => "no PEM block".to_owned(),
        (0, Some(other)) => format!("{other} and no certificate"),
        (1, _) => "one certificate that cannot be read".to_owned(),
        (n, _) => format!("{n} certificates that cannot be read"),
    })
}

const fn name(kind: SectionKind) -> &'static str {
    match kind {
        SectionKind::RsaPrivateKey | SectionKind::PrivateKey | SectionKind::EcPrivateKey => "a private key",
        SectionKind::PublicKey => "a public key",
        SectionKind::Csr => "a request for a certificate",
        SectionKind::Crl => "a list of revoked certificates",
        _ => "another kind of PEM block",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    const CA: &str = include_str!("../tests/data/tls/private_ca.pem");
    const OTHER: &str = include_str!("../tests/data/tls/other_ca.pem");

    fn added(pem: &str) -> Result<usize, String> {
        let mut roots = RootCertStore::empty();
        add(&mut roots, pem.as_bytes()).map(|()| roots.len())
    }

    #[test]
    fn a_file_may_hold_one_certificate_or_many() {
        assert_eq!(added(CA), Ok(1));
        assert_eq!(added(&format!("# ours\n{CA}\n\nand theirs\n{OTHER}")), Ok(2));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(added(&format!("{broken}{CA}")), Ok(1), "one that cannot be used costs only itself");
    }

    #[test]
    fn a_file_without_a_certificate_says_what_it_holds() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for (pem, found) in [
            ("", "an empty file"),
            ("hello", "no PEM block"),
            ("0\u{1}DER", "DER; write"),
            (key, "a private key and no certificate"),
            (broken, "one certificate that cannot be read"),
            (&broken.repeat(2), "2 certificates that cannot be read"),
        ] {
            let error = added(pem).unwrap_err();
            assert!(error.starts_with(found), "{error}");
        }
        let file = Path::new("/nowhere/ca.pem");
        let error = roots([file]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/ca.pem") && error.contains("No such file"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        std::fs::write(&file, key).unwrap();
        let error = roots([file.as_path()]).unwrap_err().to_string();
        assert!(error.contains("key.pem") && error.contains("found a private key"), "{error}");
    }
}
