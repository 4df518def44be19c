//! One request of a frontier as it is shown: as JSON, and as a line. Without anything that may be secret.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use url::Url;

use super::source::Kind;
use crate::scheduler::job::{Job, JobKind};

/// A request.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// Why it failed; empty for one that did not.
    pub(super) reason: String,
    /// When it may go, since the Unix epoch; zero for at once, or unknown.
    pub(super) not_before: Duration,
    /// The request, or why it cannot be read.
    pub(super) job: Result<Box<Job>, String>,
}

impl Entry {
    /// As a JSON object.
    pub(super) fn to_json(&self) -> Value {
        let job = match &self.job {
            Ok(job) => job,
            Err(error) => return json!({"state": Kind::Damaged.name(), "error": error}),
        };
        let request = &job.request;
        let headers: Vec<&str> =
            request.headers().into_iter().flat_map(|headers| headers.keys()).map(|name| name.as_str()).collect();
        let cookies: Vec<&str> = request.cookies().iter().map(|(name, _)| name.as_str()).collect();
        let mut value = json!({
            "state": self.kind.name(),
            "url": shown(job.url()),
            "method": job.method().as_str(),
            "step": step(job),
            "priority": request.priority_value(),
            "depth": job.depth,
            "attempts": job.attempts,
        });
        let mut add = |name: &str, more: Value| value.as_object_mut().map(|object| object.insert(name.to_owned(), more));
        if let Some(at) = self.not_before() {
            add("not_before", json!(at));
        }
        if !self.reason.is_empty() {
            add("reason", json!(self.reason));
        }
        if let Some(page) = &job.parent_url {
            add("found_on", json!(shown_text(page)));
        }
        if let Some(first) = &job.first_url {
            add("redirected_from", json!(shown_text(first)));
        }
        for (name, names) in [("headers", headers), ("cookies", cookies)] {
            if !names.is_empty() {
                add(name, json!(names));
            }
        }
        if !request.body_bytes().is_empty() {
            add("body_bytes", json!(request.body_bytes().len()));
        }
        add("id", json!(format!("{:?}", job.id)));
        value
    }

    /// Columns in the order of [`COLUMNS`], the URL last.
    pub(super) fn columns(&self) -> [String; 7] {
        match &self.job {
            Ok(job) => [
                job.request.priority_value().to_string(),
                job.depth.to_string(),
                job.attempts.to_string(),
                self.not_before().unwrap_or_else(|| "-".to_owned()),
                or_dash(plain(&self.reason)),
                plain(&step(job)),
                shown(job.url()),
            ],
            Err(error) => {
                let none = || "-".to_owned();
                [none(), none(), none(), none(), Kind::Damaged.name().to_owned(), none(), plain(error)]
            }
        }
    }

    fn not_before(&self) -> Option<String> {
        let at = SignedDuration::try_from(self.not_before).ok().filter(|at| !at.is_zero())?;
        // To the second: it is for people, and sorts as text.
        Timestamp::from_second(at.as_secs()).ok().map(|at| at.to_string())
    }
}

/// What the columns of [`Entry::columns`] are, and how wide at a terminal.
pub(super) const COLUMNS: [(&str, usize); 7] =
    [("priority", 8), ("depth", 5), ("attempts", 8), ("not before", 20), ("reason", 16), ("step", 16), ("url", 0)];

/// The step's name; what it carries is the spider's own business.
pub(super) fn step(job: &Job) -> String {
    if job.kind == JobKind::Robots { "(robots.txt)".to_owned() } else { job.request.step().name() }
}

/// A URL without its password.
pub(super) fn shown(url: &Url) -> String {
    if url.password().is_none() {
        return url.to_string();
    }
    let mut url = url.clone();
    let _ = url.set_password(Some("***"));
    url.into()
}

/// The same for a URL that is a text yet.
pub(super) fn shown_text(url: &str) -> String {
    Url::parse(url).map_or_else(|_| plain(url), |url| shown(&url))
}

/// A text without characters that move a terminal's cursor or end a column.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            let _ = write!(plain, "{}", character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
