//! JSON lines: one item a line, written as it comes. The file is valid after every flush; a line that a crash cut short
//! is removed when the file is next appended to.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::item::Projection;
use super::journal::{cut_torn_tail, lock};
use super::sink::Sink;
use super::{Empty, Encoding, Existing, Feed, FeedError, FeedOptions, FeedSummary, ItemText, text, uri};

#[derive(Debug)]
pub(super) struct JsonLines {
    sink: Sink,
    file: Option<(PathBuf, File)>,
    encoding: Encoding,
    empty: Empty,
    projection: Option<Projection>,
    items: u64,
    /// Lines of the call at hand; kept for its memory.
    lines: String,
}

impl JsonLines {
    pub(super) fn open(path: &Path, options: FeedOptions) -> Result<Self, FeedError> {
        let mut file = File::options()
            .read(fs::metadata(path).is_ok_and(|meta| meta.is_file()) || !path.exists())
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(FeedError::io("open", path))?;
        // A pipe or a device has neither a length nor a tail.
        if file.metadata().is_ok_and(|meta| meta.is_file()) {
            lock(&file, path)?;
            match options.existing {
                Existing::Overwrite => file.set_len(0).map_err(FeedError::io("empty", path))?,
                Existing::Append => cut_torn_tail(&mut file, path).map_err(FeedError::io("repair", path))?,
            }
        }
        let out = file.try_clone().map_err(FeedError::io("open", path))?;
        Ok(Self::new(Sink::new(Box::new(out), Some(path.to_owned())), Some((path.to_owned(), file)), options))
    }

    pub(super) fn to_writer(out: Box<dyn Write + Send>, options: FeedOptions) -> Self {
        Self::new(Sink::new(out, None), None, options)
    }

    fn new(sink: Sink, file: Option<(PathBuf, File)>, options: FeedOptions) -> Self {
        Self {
            sink,
            file,
            encoding: options.encoding,
            empty: options.empty,
            projection: options.fields.as_deref().map(Projection::new),
            items: 0,
            lines: String::new(),
        }
    }

    fn path(&self) -> String {
        uri(self.file.as_ref().map(|(path, _)| path))
    }
}

impl Feed for JsonLines {
    fn write(&mut self, items: &[ItemText]) -> Result<(), FeedError> {
        self.sink.make_room()?;
        self.lines.clear();
        let mut projected = String::new();
        for item in items {
            let mut line = item.as_str();
            if memchr::memchr(b'\n', line.as_bytes()).is_some() {
                return Err(FeedError::Item { path: self.path(), reason: "it holds a line break".to_owned() });
            }
            if let Some(projection) = &self.projection {
                projected.clear();
                projection
                    .apply(line, &mut projected)
                    .map_err(|error| FeedError::Item { path: self.path(), reason: error.to_string() })?;
                line = &projected;
            }
            match self.encoding {
                Encoding::Ascii => self.lines.push_str(line),
                Encoding::Utf8 => text::unescape(line, &mut self.lines),
            }
            self.lines.push('\n');
        }
        self.sink.push(self.lines.as_bytes());
        self.items += items.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        self.sink.flush()
    }

    fn close(mut self: Box<Self>) -> Result<FeedSummary, FeedError> {
        self.sink.flush()?;
        let mut bytes = self.sink.written();
        if let Some((path, file)) = &self.file
            && let Ok(meta) = file.metadata()
            && meta.is_file()
        {
            bytes = meta.len();
            if bytes == 0 && self.empty == Empty::Omit {
                fs::remove_file(path).map_err(FeedError::io("remove", path))?;
            }
        }
        Ok(FeedSummary { uri: self.path(), items: self.items, bytes })
    }
}
