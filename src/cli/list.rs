//! `list`: the names of the spiders.

use std::io::Write;

use super::exit::CliError;
use super::options::names;
use super::out;
use crate::app::App;

/// Writes the names, sorted, one on a line.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn list(app: &App, to: &mut dyn Write) -> Result<(), CliError> {
    out(to, &names(app).iter().map(|name| format!("{name}\n")).collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_sorted_one_on_a_line() {
        let mut to = Vec::new();
        list(&crate::cli::testing::app(), &mut to).unwrap();
        assert_eq!(to, b"news\nshop\n");
    }
}
