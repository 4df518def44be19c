//! Reading with places: tables whose keys are all known, values of the right kind. Every error knows where it is.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::SeedError;
use super::node::{Entry, Node, Raw, line_of};
use crate::nearest::nearest;

/// How a file beside the seed is read.
pub(super) type Read<'f> = &'f dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// What the reading of one seed shares.
pub(super) struct Source<'f> {
    pub(super) path: &'f Path,
    pub(super) text: &'f str,
    pub(super) read: Read<'f>,
    /// The files that were read.
    pub(super) files: RefCell<Vec<PathBuf>>,
}

/// Where we are.
#[derive(Clone)]
pub(super) struct Place<'f> {
    pub(super) source: &'f Source<'f>,
    path: String,
    at: Option<usize>,
}

/// A table all of whose keys are known.
#[derive(Clone)]
pub(super) struct Table<'f, 'n> {
    pub(super) place: Place<'f>,
    entries: &'n [Entry],
}

/// A value that is there.
#[derive(Clone)]
pub(super) struct Field<'f, 'n> {
    pub(super) place: Place<'f>,
    pub(super) node: &'n Node,
}

/// The content of a file beside the seed.
pub(super) struct Beside {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

impl<'f> Place<'f> {
    /// The document as a whole.
    pub(super) fn top(source: &'f Source<'f>) -> Self {
        Self { source, path: String::new(), at: None }
    }

    fn key(&self, key: &str, at: Option<usize>) -> Self {
        self.below(&shown(key), at)
    }

    /// A key that is not one of ours.
    fn quoted(&self, key: &str, at: Option<usize>) -> Self {
        self.below(&format!("\"{}\"", shown(key)), at)
    }

    fn below(&self, key: &str, at: Option<usize>) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { source: self.source, path: format!("{}{dot}{key}", self.path), at: at.or(self.at) }
    }

    fn item(&self, label: &str, at: Option<usize>) -> Self {
        Self { source: self.source, path: format!("{}[{label}]", self.path), at: at.or(self.at) }
    }

    /// The path of keys.
    pub(super) fn path(&self) -> &str {
        if self.path.is_empty() { "the file" } else { &self.path }
    }

    /// What is here is not allowed.
    pub(super) fn wrong(&self, reason: impl fmt::Display) -> SeedError {
        self.wrong_at(self.at, reason)
    }

    /// The same, with a place that is known better.
    pub(super) fn wrong_at(&self, at: Option<usize>, reason: impl fmt::Display) -> SeedError {
        SeedError::Wrong {
            path: self.source.path.to_owned(),
            line: at.map(|at| line_of(self.source.text, at)),
            key: self.path().to_owned(),
            reason: reason.to_string(),
        }
    }

    /// What is under this path is not allowed; where it stands is not known.
    pub(super) fn wrong_below(&self, path: &str, reason: impl fmt::Display) -> SeedError {
        self.below(path, None).wrong(reason)
    }

    /// A key of this table is not allowed.
    pub(super) fn wrong_key(&self, key: &str, reason: impl fmt::Display) -> SeedError {
        self.key(key, None).wrong(reason)
    }
}

impl<'f, 'n> Table<'f, 'n> {
    /// The value of a key; one that is `null` is left out.
    pub(super) fn get(&self, key: &str) -> Option<Field<'f, 'n>> {
        let entry = self.entries.iter().find(|entry| entry.key == key && !matches!(entry.node.raw, Raw::Null))?;
        Some(Field { place: self.place.key(key, entry.at), node: &entry.node })
    }

    /// The value of a key that has to be there.
    pub(super) fn required(&self, key: &str, allowed: &str) -> Result<Field<'f, 'n>, SeedError> {
        self.get(key).ok_or_else(|| self.place.wrong_key(key, format_args!("the key is missing; write {allowed}")))
    }

    /// All keys with their values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'n str, Field<'f, 'n>)> {
        let place = self.place.clone();
        self.entries
            .iter()
            .map(move |entry| (entry.key.as_str(), Field { place: place.quoted(&entry.key, entry.at), node: &entry.node }))
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'n str>, SeedError> {
        self.get(key).map(|field| field.text()).transpose()
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, SeedError> {
        self.get(key).map(|field| field.flag()).transpose()
    }

    /// The items of a list; none if it is left out.
    pub(super) fn list(&self, key: &str) -> Result<Vec<Field<'f, 'n>>, SeedError> {
        self.get(key).map_or_else(|| Ok(Vec::new()), |field| field.list())
    }

    /// One of the names.
    pub(super) fn choice<T: Copy>(&self, key: &str, names: &[(&str, T)]) -> Result<Option<T>, SeedError> {
        let Some(field) = self.get(key) else { return Ok(None) };
        let given = field.text()?;
        if let Some((_, value)) = names.iter().find(|(name, _)| *name == given) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        Err(field.place.wrong(format_args!("found {:?}{}; allowed are {}", shown(given), guess(given, &names), names.join(", "))))
    }
}

impl<'f, 'n> Field<'f, 'n> {
    /// It should be something else.
    pub(super) fn expected(&self, allowed: impl fmt::Display) -> SeedError {
        self.place.wrong(format_args!("found {}; expected {allowed}", self.node.kind()))
    }

    /// A table with no other keys than these.
    pub(super) fn table(&self, keys: &[&str]) -> Result<Table<'f, 'n>, SeedError> {
        self.table_renamed(keys, &[])
    }

    /// The same; a key of `renamed` is told its new name.
    pub(super) fn table_renamed(&self, keys: &[&str], renamed: &[(&str, &str)]) -> Result<Table<'f, 'n>, SeedError> {
        let table = self.open_table(&format!("a table with the keys {}", keys.join(", ")))?;
        for entry in table.entries {
            let key = entry.key.as_str();
            if keys.contains(&key) {
                continue;
            }
            let place = self.place.key(key, entry.at);
            if let Some((_, now)) = renamed.iter().find(|(old, _)| *old == key) {
                return Err(place.wrong(format_args!("this key is no more; {now}")));
            }
            return Err(place.wrong(format_args!("no such key{}; allowed here are {}", guess(key, keys), keys.join(", "))));
        }
        Ok(table)
    }

    /// A table with any keys.
    pub(super) fn open_table(&self, allowed: &str) -> Result<Table<'f, 'n>, SeedError> {
        let Raw::Table(entries) = &self.node.raw else { return Err(self.expected(allowed)) };
        Ok(Table { place: self.place.clone(), entries })
    }

    /// The items of a list.
    pub(super) fn list(&self) -> Result<Vec<Self>, SeedError> {
        let Raw::List(items) = &self.node.raw else { return Err(self.expected("a list")) };
        let items = items.iter().enumerate().map(|(index, item)| {
            // A table is known by its name, other items by their number from 1.
            let label = name_of(item).map_or_else(|| (index + 1).to_string(), |name| format!("\"{name}\""));
            Self { place: self.place.item(&label, item.at), node: item }
        });
        Ok(items.collect())
    }

    /// A list, or one item that stands for it.
    pub(super) fn one_or_more(&self) -> Result<Vec<Self>, SeedError> {
        if matches!(self.node.raw, Raw::List(_)) { self.list() } else { Ok(vec![self.clone()]) }
    }

    /// A text.
    pub(super) fn text(&self) -> Result<&'n str, SeedError> {
        if let Raw::Text(text) = &self.node.raw { Ok(text) } else { Err(self.expected("a text; quote it")) }
    }

    /// A text; a number or a truth value counts as the text it looks like.
    pub(super) fn scalar(&self) -> Result<String, SeedError> {
        match &self.node.raw {
            Raw::Text(text) => Ok(text.clone()),
            Raw::Number(number) => Ok(number.to_string()),
            Raw::Flag(flag) => Ok(flag.to_string()),
            _ => Err(self.expected("a text")),
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, SeedError> {
        if let Raw::Flag(flag) = self.node.raw { Ok(flag) } else { Err(self.expected("true or false")) }
    }

    /// A whole number within the limits.
    pub(super) fn whole(&self, limits: RangeInclusive<i64>) -> Result<i64, SeedError> {
        let allowed = format!("a whole number from {} to {}", limits.start(), limits.end());
        let Raw::Number(number) = &self.node.raw else { return Err(self.expected(allowed)) };
        number
            .as_i64()
            .filter(|number| limits.contains(number))
            .ok_or_else(|| self.place.wrong(format_args!("found {number}; expected {allowed}")))
    }

    /// A name of 1 to 64 letters, digits, dots, hyphens and underscores.
    pub(super) fn name(&self) -> Result<&'n str, SeedError> {
        let text = self.text()?;
        if is_name(text) { Ok(text) } else { Err(self.place.wrong(NAME)) }
    }

    /// What is in the file this names, seen from where the seed is.
    pub(super) fn file(&self) -> Result<Beside, SeedError> {
        let name = self.text()?;
        if name.is_empty() {
            return Err(self.place.wrong("found an empty text; expected the path of a file"));
        }
        let source = self.place.source;
        let path = source.path.parent().unwrap_or_else(|| Path::new("")).join(name);
        let bytes = (source.read)(&path).map_err(|error| SeedError::Read {
            path: path.clone(),
            key: Some(self.place.path().to_owned()),
            source: error,
        })?;
        let mut files = source.files.borrow_mut();
        if !files.contains(&path) {
            files.push(path.clone());
        }
        Ok(Beside { path, bytes })
    }
}

impl Beside {
    /// The ending of its name, in lower case.
    pub(super) fn ending(&self) -> String {
        self.path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
    }

    /// Its text.
    pub(super) fn into_text(self) -> Result<String, SeedError> {
        let Self { path, bytes } = self;
        String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let lines = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').fold(1, |line, _| line + 1);
            SeedError::Syntax { path, line: lines, reason: "the text is not UTF-8; save it as such".to_owned() }
        })
    }
}

/// What a name may be.
pub(super) const NAME: &str = "expected 1 to 64 letters, digits, dots, hyphens and underscores";

/// Whether it is one.
pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// The beginning of a text that is no secret, without control characters.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    if text.chars().nth(64).is_some() {
        shown.push('…');
    }
    shown
}

/// The nearest of the names, if any is near.
pub(super) fn guess(given: &str, names: &[&str]) -> String {
    if given.len() > 64 {
        return String::new();
    }
    nearest(given, names.iter().copied()).map_or_else(String::new, |name| format!(", did you mean {name}?"))
}

fn name_of(node: &Node) -> Option<&str> {
    let Raw::Table(entries) = &node.raw else { return None };
    entries.iter().find(|entry| entry.key == "name").and_then(|entry| match &entry.node.raw {
        Raw::Text(name) if is_name(name) => Some(name.as_str()),
        _ => None,
    })
}
