#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;

pub(super) fn sample(n: usize) -> Report {
    let at = jiff::Timestamp::from_second(1_789_000_000).unwrap();
    Report {
        report_id: format!("r{n}"),
        lease_id: format!("lse_{n}"),
        uri: format!("/search/{n}"),
        method: "GET".to_owned(),
        http_status: 200,
        business_code: String::new(),
        error_kind: String::new(),
        markers: Vec::new(),
        outcome_hint: String::new(),
        latency_ms: 120,
        response_bytes: 4_096,
        started_at: at,
        finished_at: at,
        release: false,
    }
}
