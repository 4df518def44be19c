//! The feeds of a job, all fed the same items.
//!
//! A feed that cannot be written never stops the crawl, and never costs an item its way to the sink: what it misses is
//! counted and told at the end.

use crate::export::{Feed, FeedError, ItemText};

/// Panics of a feed after which it is not written any more.
const PANICS: u32 = 2;

/// Several feeds and the lines that wait for them.
#[derive(Debug, Default)]
pub(super) struct FeedSet {
    feeds: Vec<Open>,
    lines: Vec<ItemText>,
    written: Vec<(String, u64)>,
    errors: Vec<String>,
}

#[derive(Debug)]
struct Open {
    name: String,
    feed: Option<Box<dyn Feed>>,
    /// Whether it has the lines that wait.
    done: bool,
    /// Set around a call: still set at the next one, the call panicked.
    calling: bool,
    panics: u32,
    missed: u64,
    error: Option<String>,
}

impl FeedSet {
    pub(super) fn new(feeds: Vec<(String, Box<dyn Feed>)>) -> Self {
        let open = |(name, feed)| Open { name, feed: Some(feed), done: false, calling: false, panics: 0, missed: 0, error: None };
        Self { feeds: feeds.into_iter().map(open).collect(), ..Self::default() }
    }

    /// Adds an item to what is written next.
    pub(super) fn add(&mut self, item: &str) {
        if !self.feeds.is_empty() {
            self.lines.push(ItemText::new(item));
        }
    }

    /// Writes and flushes what waits. Called again after a panic it goes on where that happened.
    pub(super) fn write(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        for open in &mut self.feeds {
            open.write(&self.lines);
        }
        self.lines.clear();
        for open in &mut self.feeds {
            open.done = false;
        }
    }

    /// Finishes all feeds: their names and items, and what went wrong.
    pub(super) fn close(&mut self) -> (Vec<(String, u64)>, Vec<String>) {
        self.write();
        while !self.feeds.is_empty() {
            let mut open = self.feeds.remove(0);
            // Should closing it panic, the next incarnation goes on with the next feed and this stands.
            self.errors.push(format!("{}: closing it panicked", open.name));
            match open.feed.take().map(|feed| feed.close()) {
                Some(Ok(summary)) => self.written.push((summary.uri, summary.items)),
                Some(Err(error)) => open.fail(&error),
                None => {}
            }
            self.errors.pop();
            if let Some(error) = open.error {
                self.errors.push(match open.missed {
                    0 => format!("{}: {error}", open.name),
                    missed => format!("{}: {missed} items are missing: {error}", open.name),
                });
            }
        }
        (std::mem::take(&mut self.written), std::mem::take(&mut self.errors))
    }
}

impl Open {
    fn write(&mut self, lines: &[ItemText]) {
        if std::mem::take(&mut self.calling) {
            self.panics += 1;
            if self.panics >= PANICS {
                self.feed = None;
                self.tell("writing it panicked; it is not written any more".to_owned());
            }
        }
        let Some(feed) = self.feed.as_mut() else {
            self.missed += if self.done { 0 } else { lines.len() as u64 };
            self.done = true;
            return;
        };
        self.calling = true;
        let mut failed = None;
        if !self.done {
            if let Err(error) = feed.write(lines) {
                failed = Some(error);
                // Nothing of them was taken: one bad item must not cost the others.
                self.missed += lines.iter().map(|line| u64::from(feed.write(std::slice::from_ref(line)).is_err())).sum::<u64>();
            }
            self.done = true;
        }
        failed = failed.or(feed.flush().err());
        self.calling = false;
        if let Some(error) = failed {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &FeedError) {
        self.tell(error.to_string());
    }

    fn tell(&mut self, error: String) {
        if self.error.is_none() {
            tracing::error!(feed = self.name, error, "a feed cannot be written: its items still go to the sink");
            self.error = Some(error);
        }
    }
}
