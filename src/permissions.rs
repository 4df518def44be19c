//! Who may read a file that holds secrets.

use std::path::Path;

/// Whether others than the owner may do anything with a file. Where there are no such permissions, nobody else can.
#[cfg(unix)]
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_open_to_others(_: &Path) -> bool {
    false
}
