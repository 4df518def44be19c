//! The file of `serve`: keys of who may deliver, and under `plane` a control plane. Taken whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::ExposeSecret as _;

use super::keys::{Keys, KeysError};
use crate::permissions::is_open_to_others;
use crate::plane::seed::{self, Part, Seed, SeedError};

/// The file as shipped; also what counts when there is none.
pub(crate) const SAMPLE: &str = include_str!("../../config/serve.toml");
/// Where the file is when nobody says so.
pub(crate) const DEFAULT: &str = "config/serve.toml";
/// The key of the plane.
const PLANE: &str = "plane";

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FileError {
    /// It cannot be read.
    #[error("the file of serve {} cannot be read: {source}; check the path in --file", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// What it says of keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// What it says of the plane.
    #[error(transparent)]
    Plane(#[from] SeedError),
}

/// What the file says.
#[derive(Debug)]
pub(crate) struct ServeFile {
    pub(crate) keys: Keys,
    pub(crate) seed: Seed,
    /// Where it is; nowhere if it is the built-in one.
    place: Option<PathBuf>,
    /// Whether it says what the shipped one says.
    is_shipped: bool,
    has_sample_token: bool,
}

/// Everything of a file that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Census {
    /// Identities by site.
    pub(crate) sites: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pub(crate) tokens: BTreeSet<Arc<str>>,
    pub(crate) keys: usize,
}

impl ServeFile {
    /// The file as shipped, with what everybody knows.
    ///
    /// # Errors
    /// None, while the shipped file is one that can be read.
    pub(crate) fn sample() -> Result<Self, FileError> {
        let mut file = Self::parse(SAMPLE, Path::new(DEFAULT), &|_| Err(io::ErrorKind::NotFound.into()))?;
        (file.place, file.seed.files) = (None, Vec::new());
        Ok(file)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it, or a file it refers to, cannot be read or says something that is not allowed.
    pub(crate) fn load(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path, &|beside| std::fs::read(beside))
    }

    fn parse(text: &str, path: &Path, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Self, FileError> {
        let keys = Keys::parse(text, path)?;
        let seed = seed::parse(text, path, Part::Under(PLANE), read)?;
        let known = seed::parse(SAMPLE, path, Part::Under(PLANE), read)?.tokens;
        let is_known = |text: &str| known.iter().any(|known| known.text.expose_secret() == text);
        let has_sample_token = seed.tokens.iter().any(|token| !token.is_revoked && is_known(token.text.expose_secret()));
        Ok(Self { keys, seed, place: Some(path.to_owned()), is_shipped: text == SAMPLE, has_sample_token })
    }

    /// Where it is; none for the built-in one.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// What everybody knows of it, in words; `None` if it may be used at any address.
    pub(crate) fn samples(&self) -> Option<&'static str> {
        match (self.keys.has_sample(), self.has_sample_token) {
            (true, true) => Some("the sample keys and the sample token"),
            (true, false) => Some("the sample keys"),
            (false, true) => Some("the sample token"),
            (false, false) => None,
        }
    }

    /// The files that others than their owner may read although they hold secrets.
    pub(crate) fn open_to_others(&self) -> Vec<&Path> {
        let own = self.place().filter(|_| !self.is_shipped);
        let beside = self.seed.files.iter().map(PathBuf::as_path).filter(|file| Some(*file) != self.place());
        own.into_iter().chain(beside).filter(|file| is_open_to_others(file)).collect()
    }

    /// The names of it.
    pub(crate) fn census(&self) -> Census {
        let identities =
            |site: &seed::SeedSite| site.identities.iter().map(|identity| Arc::clone(&identity.id)).collect::<BTreeSet<_>>();
        let active = self.seed.tokens.iter().filter(|token| !token.is_revoked);
        Census {
            sites: self.seed.sites.iter().map(|site| (Arc::clone(&site.name), identities(site))).collect(),
            tokens: active.map(|token| Arc::clone(&token.token.name)).collect(),
            keys: self.keys.len(),
        }
    }
}

impl FileError {
    /// The file that could not be read.
    pub(crate) fn unread(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. } | Self::Plane(SeedError::Read { path, .. }) => Some(path),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A plane with a token of this text.
    fn own(token: &str) -> String {
        format!("[[plane.tokens]]\nname = \"own\"\ntoken = \"{token}\"\nscopes = [\"lease:acquire\"]\n")
    }

    fn read(text: &str) -> Result<ServeFile, FileError> {
        ServeFile::parse(text, Path::new("serve.toml"), &|_| Err(io::ErrorKind::NotFound.into()))
    }

    #[test]
    fn the_shipped_file_has_a_bookshop_with_three_readers_a_key_and_a_token() {
        let file = ServeFile::sample().unwrap();
        let census = file.census();
        let readers = ["reader-1", "reader-2", "reader-3"].map(Arc::from);
        assert_eq!(census.sites, BTreeMap::from([("bookshop".into(), BTreeSet::from(readers))]));
        assert_eq!((census.tokens, census.keys), (BTreeSet::from(["sample".into()]), 1));
        assert_eq!((file.samples(), file.place()), (Some("the sample keys and the sample token"), None));
        assert_eq!(&*file.seed.sites[0].clients[0].name, "web");
        assert_eq!(file.seed.tokens[0].text.expose_secret(), crate::serve::SAMPLE_TOKEN);
    }

    #[test]
    fn what_everybody_knows_is_found_under_any_name() {
        let token = ServeFile::sample().unwrap().seed.tokens[0].text.expose_secret().to_owned();
        let renamed = own(&token);
        assert_eq!(read(&renamed).unwrap().samples(), Some("the sample token"));
        assert_eq!(read(&format!("{renamed}revoked = true\n")).unwrap().samples(), None);
        let keys = "[[keys]]\napi_key = \"a\"\nsecret_key = \"sample-secret\"\n";
        assert_eq!(read(keys).unwrap().samples(), Some("the sample keys"));
    }

    #[test]
    fn an_error_names_its_place_whichever_part_it_is_in() {
        for (text, parts) in [
            ("[[keys]]\napi_key = \"canary\"\n", ["serve.toml:1", "secret_key"]),
            ("[[plane.tokens]]\nname = \"own\"\ntoken = \"canary\"\nscopes = []\n", ["serve.toml:3", "tokens"]),
            ("[plane]\nsights = []\n", ["serve.toml:2", "sights"]),
            ("[plane]\nproxy_files = [\"none.txt\"]\n", ["none.txt", "cannot be read"]),
        ] {
            let error = read(text).unwrap_err();
            let said = error.to_string();
            assert!(parts.iter().all(|part| said.contains(part)) && !said.contains("canary"), "{said}");
            assert_eq!(error.unread().is_some(), text.contains("none.txt"));
        }
        let said = ServeFile::load(Path::new("/nowhere/serve.toml")).unwrap_err().to_string();
        assert!(said.contains("/nowhere/serve.toml") && said.contains("--file"), "{said}");
    }

    #[test]
    fn files_with_secrets_that_others_may_read_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, beside) = (folder.path().join("serve.toml"), folder.path().join("proxies.txt"));
        std::fs::write(&beside, "http://10.0.0.1:3128\n").unwrap();
        let open = |text: &str, modes: [u32; 2]| {
            std::fs::write(&path, text).unwrap();
            for (file, mode) in [&path, &beside].into_iter().zip(modes) {
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            ServeFile::load(&path).unwrap().open_to_others().into_iter().map(Path::to_owned).collect::<Vec<_>>()
        };
        let own = own(&format!("spn_{}", "c".repeat(43)));
        let with_file = format!("[plane]\nproxy_files = [\"proxies.txt\"]\n{own}");
        assert_eq!(open(SAMPLE, [0o644, 0o644]), Vec::<PathBuf>::new(), "everybody has it");
        assert_eq!(open(&own, [0o644, 0o644]), vec![path.clone()]);
        assert_eq!(open(&with_file, [0o600, 0o644]), vec![beside.clone()]);
        assert_eq!(open(&with_file, [0o600, 0o600]), Vec::<PathBuf>::new());
    }
}
