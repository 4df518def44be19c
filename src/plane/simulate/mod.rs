//! Runs the policies of a plane file against reports that were recorded or made up, in simulated time.
//!
//! Every event is an attempt: a lease is taken when it was sent, reported and released when it was over. Time jumps from one
//! to the next, with the plane's own jobs in between. Nothing is sent anywhere, and the same input gives the same output.

mod error;
mod event;
mod places;
mod record;
mod run;
mod show;
#[cfg(test)]
mod tests;

use std::io::BufRead;
use std::path::Path;

pub(crate) use self::error::SimulateError;
pub(crate) use self::event::{Defaults, Timeline};
pub(crate) use self::run::run;
pub(crate) use self::show::{json_lines, table};
use super::seed::{self, Part, Seed, SeedError};

/// Events of one run: they are sorted by time, so all of them are kept.
const EVENTS: usize = 2_000_000;

/// Reads a plane file: one that is all about the plane, or the part `plane` of what `dragline serve` reads.
///
/// # Errors
/// As [`seed::load`].
pub(crate) fn load(path: &Path) -> Result<Seed, SeedError> {
    let unreadable = |source| SeedError::Read { path: path.to_owned(), key: None, source };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is no UTF-8 text")))?;
    let part = if has_part(&text, path) { Part::Under("plane") } else { Part::Whole };
    seed::parse(&text, path, part, &|path: &Path| std::fs::read(path))
}

/// Reads events, one JSON object on a line; blank lines are passed over.
///
/// # Errors
/// The first line that cannot be used.
pub(crate) fn read(from: &mut dyn BufRead, name: &str, seed: &Seed, defaults: &Defaults) -> Result<Timeline, SimulateError> {
    let places = places::Places { seed, defaults };
    let mut timeline = Timeline::default();
    let mut text = String::new();
    for line in 1_u64.. {
        text.clear();
        let read = from.read_line(&mut text).map_err(|source| SimulateError::Read { name: name.to_owned(), source })?;
        if read == 0 {
            break;
        }
        if text.trim().is_empty() {
            continue;
        }
        if timeline.events.len() == EVENTS {
            return Err(SimulateError::at(name, line, format!("more than {EVENTS} events; split the file")));
        }
        timeline.add(&places, &text, line).map_err(|wrong| wrong.on(name, line))?;
    }
    Ok(timeline)
}

/// Whether a file has a table `plane` among other things. One that is wrong is left to the seed, which says why.
fn has_part(text: &str, path: &Path) -> bool {
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json {
        serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.get("plane").is_some())
    } else {
        toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("plane"))
    }
}
