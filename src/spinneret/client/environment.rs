//! Where settings come from that are not given: the process's variables, or a test's.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::spinneret::Result;
use crate::spinneret::error::Error;

type Lookup = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Looks variables up. `Debug` shows none.
#[derive(Clone)]
pub(crate) struct Environment(Lookup);

impl Environment {
    pub(crate) fn new(lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    /// These and no others.
    #[cfg(test)]
    pub(crate) fn of(variables: &[(&'static str, &'static str)]) -> Self {
        let variables = variables.to_vec();
        Self::new(move |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
    }

    /// As it is.
    pub(crate) fn get(&self, name: &str) -> Option<OsString> {
        (self.0)(name)
    }

    /// A text; a blank one is none.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let text = value
            .into_string()
            .map_err(|_| Error::configuration(format!("{name} is no UTF-8 text; set it again, or unset it to do without it")))?;
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    /// A path; a blank one is none.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.get(name)?;
        let is_blank = value.to_str().is_some_and(|text| text.trim().is_empty());
        (!is_blank).then(|| PathBuf::from(value))
    }
}

impl Default for Environment {
    /// The process's own.
    fn default() -> Self {
        Self::new(|name| std::env::var_os(name))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
