//! The body of one POST, put together from records that are already text.

use super::job::JobId;

/// The list of a body a record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// `data.requests`
    Request,
    /// `data.items`
    Item,
    /// `data.logs`
    Log,
    /// `data.stats`, one object and not a list
    Stats,
}

/// Collects ready record texts and writes the body around them; nothing is parsed again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyBuilder {
    requests: String,
    items: String,
    logs: String,
    stats: Option<String>,
}

impl BodyBuilder {
    /// An empty body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one record's text. A later `Stats` replaces an earlier one.
    pub fn push(&mut self, kind: RecordKind, text: &str) {
        let list = match kind {
            RecordKind::Request => &mut self.requests,
            RecordKind::Item => &mut self.items,
            RecordKind::Log => &mut self.logs,
            RecordKind::Stats => {
                self.stats = Some(text.to_owned());
                return;
            }
        };
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(text);
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.items.is_empty() && self.logs.is_empty() && self.stats.is_none()
    }

    /// Bytes of the texts held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let stats = self.stats.as_ref().map_or(0, String::len);
        self.requests.len() + self.items.len() + self.logs.len() + stats
    }

    /// The whole body for a job. `stats` is left out when there are none; the lists are always there.
    #[must_use]
    pub fn finish(&self, job: &JobId) -> String {
        let job = job.to_json();
        let mut body = String::with_capacity(self.bytes() + job.len() + 80);
        body.push_str("{\"job_id\": ");
        body.push_str(&job);
        for (name, list) in
            [(", \"data\": {\"requests\": [", &self.requests), ("], \"items\": [", &self.items), ("], \"logs\": [", &self.logs)]
        {
            body.push_str(name);
            body.push_str(list);
        }
        body.push(']');
        if let Some(stats) = &self.stats {
            body.push_str(", \"stats\": ");
            body.push_str(stats);
        }
        body.push_str("}}");
        body
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::Value;
    use crate::apcloudy::testdata::captures;

    #[test]
    fn an_empty_body_has_its_lists_and_no_stats() {
        let body = BodyBuilder::new();
        assert!(body.is_empty());
        assert_eq!(body.finish(&JobId::from("a")), r#"{"job_id": "a", "data": {"requests": [], "items": [], "logs": []}}"#);
    }

    #[test]
    fn records_keep_their_order_and_stats_come_last() {
        let mut body = BodyBuilder::new();
        for (kind, text) in [
            (RecordKind::Stats, "{\"old\": 1}"),
            (RecordKind::Item, "{\"a\": 1}"),
            (RecordKind::Request, "{\"r\": 1}"),
            (RecordKind::Item, "{\"a\": 2}"),
            (RecordKind::Stats, "{\"s\": 1}"),
        ] {
            body.push(kind, text);
        }
        assert_eq!(
            body.finish(&JobId::from(123)),
            r#"{"job_id": 123, "data": {"requests": [{"r": 1}], "items": [{"a": 1}, {"a": 2}], "logs": [], "stats": {"s": 1}}}"#
        );
    }

    #[test]
    fn captured_bodies_are_rebuilt_byte_for_byte_from_their_records() {
        let mut rebuilt = 0;
        for capture in captures().into_iter().filter(|capture| capture.captured) {
            let parsed = Value::parse(capture.body.as_bytes()).unwrap();
            let job = JobId::from_wire(parsed.get("job_id").unwrap()).unwrap();
            let data = parsed.get("data").unwrap();
            let mut body = BodyBuilder::new();
            for (kind, list) in [(RecordKind::Request, "requests"), (RecordKind::Item, "items"), (RecordKind::Log, "logs")] {
                for record in data.get(list).unwrap().as_list().unwrap() {
                    body.push(kind, &record.write());
                }
            }
            if let Some(stats) = data.get("stats") {
                body.push(RecordKind::Stats, &stats.write());
            }
            assert_eq!(body.finish(&job), capture.body, "{}", capture.name);
            rebuilt += 1;
        }
        assert_eq!(rebuilt, 18);
    }
}
