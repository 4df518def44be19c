//! What the code under test writes to the log of its thread.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// The lines of one target while this lives, as `LEVEL target: message field=value`.
pub(crate) struct Logs {
    lines: Arc<Mutex<Vec<String>>>,
    _installed: DefaultGuard,
    /// With one dispatcher alone, tracing asks the thread that first meets a callsite, and caches its answer for all.
    _second: Dispatch,
}

impl Logs {
    pub(crate) fn of_target(target: &'static str) -> Self {
        let lines = Arc::default();
        let second = Dispatch::new(tracing_subscriber::registry());
        let installed = set_default(tracing_subscriber::registry().with(Keep { target, lines: Arc::clone(&lines) }));
        Self { lines, _installed: installed, _second: second }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// The lines of this level, `WARN` for one.
    pub(crate) fn at(&self, level: &str) -> Vec<String> {
        self.all().into_iter().filter(|line| line.split(' ').next() == Some(level)).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.at("WARN")
    }

    /// How many lines of this level have this text.
    pub(crate) fn count(&self, level: &str, text: &str) -> usize {
        self.at(level).iter().filter(|line| line.contains(text)).count()
    }
}

struct Keep {
    target: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

impl<S: Subscriber> Layer<S> for Keep {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        if about.target() == self.target {
            let mut line = Line(format!("{} {}:", about.level(), about.target()));
            event.record(&mut line);
            self.lines.lock().unwrap().push(line.0);
        }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = Some(field.name()).filter(|name| *name != "message").map(|name| format!("{name}=")).unwrap_or_default();
        write!(self.0, " {name}{value:?}").unwrap();
    }
}
