//! The closing summary: what a person wants to know when a crawl is over. A pure function of the report.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::exit::{self, meaning};
use super::text::{grouped, spoken};
use crate::engine::lease_books::LeaseBooks;
use crate::plane::IdentityUse;
use crate::run::Report;

/// Reasons of failures that are listed; the rest is a number.
const REASONS: usize = 5;

/// Identities that are listed, those used most.
const IDENTITIES: usize = 5;

/// The summary, with a line feed at its end.
pub(crate) fn summary(report: &Report) -> String {
    let mut rows = Rows(String::new());
    let ended = &report.ended;
    let _ = writeln!(
        rows.0,
        "{}: {}, job {}, took {} (exit code {}: {})",
        ended.reason,
        report.spider,
        report.job_id,
        spoken(report.took),
        ended.code,
        meaning(ended.code)
    );
    rows.add("requests", &requests(report));
    if report.was_finished {
        rows.add("why", "an earlier run with this JOBDIR finished the job: nothing is left to do, and nothing was done");
        rows.add("next", &finished_before(report));
        return rows.0;
    }
    if let Some(pages) = count(&ended.stats, "response_received_count") {
        let retries = count(&ended.stats, "retry/count").unwrap_or(0);
        rows.add("responses", &format!("{} received, {} retries", grouped(pages), grouped(retries)));
    }
    if let Some(note) = &ended.note {
        rows.add("why", note);
    }
    if ended.tally.callback_errors > 0 {
        rows.add("callbacks", &format!("{} failed; the log names page and step", grouped(ended.tally.callback_errors)));
    }
    rows.add("items", &items(report));
    if ended.delivery.items == 0 {
        rows.add("", "no callback gave an item that was kept");
    }
    rows.add("leases", &leases(report));
    if let Some(identities) = identities(&report.identities) {
        rows.add("identities", &identities);
    }
    for (uri, written) in &ended.delivery.feeds {
        rows.add("feed", &format!("{uri}: {} items", grouped(*written)));
    }
    for error in &ended.delivery.feed_errors {
        rows.add("feed lost", error);
    }
    let ask = report.job_store().map(|store| move |query: &str| format!("sqlite3 {} {}", shell(store), shell(query)));
    match report.job_store() {
        Some(store) => rows.add("job store", store),
        None => rows.add("sink", &report.place),
    }
    if let Some(ask) = &ask
        && ended.delivery.items > 0
    {
        rows.add("", &ask(&query(&report.job_id, "record FROM items")));
    }
    for (reason, times, example) in ended.failures.iter().take(REASONS) {
        let example = if example.is_empty() { String::new() } else { format!(", for example {example}") };
        rows.add("failed", &format!("{} × {}{example}", grouped(*times), reason.trim_end_matches('.')));
    }
    if let Some(more) = ended.failures.len().checked_sub(REASONS).filter(|more| *more > 0) {
        let failed = format!("{} AND NOT success", query(&report.job_id, "url, error FROM requests"));
        let where_to = ask.map_or_else(|| "see the log".to_owned(), |ask| ask(&failed));
        rows.add("failed", &format!("{more} more reasons: {where_to}"));
    }
    if let Some(many) = count(&ended.stats, "lease/unmatched").filter(|many| *many > 0) {
        let text = format!(
            "{} × dropped, as no rule of LEASES covers the host, which the log names: add a rule, or set \
             LEASE_UNMATCHED to anonymous",
            grouped(many)
        );
        rows.add("no rule", &text);
    }
    for imbalance in &ended.imbalances {
        rows.add("wrong", imbalance);
    }
    if let Some(spool) = &report.spool {
        rows.add("spool", &format!("{} holds what is not delivered", spool.display()));
    }
    if let Some(next) = next(report) {
        rows.add("next", &next);
    }
    rows.0
}

struct Rows(String);

impl Rows {
    fn add(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.0, "  {name:<10} {text}");
    }
}

fn requests(report: &Report) -> String {
    let books = &report.ended.books;
    format!(
        "{} taken = {} handled + {} failed + {} dropped + {} set aside + {} left; {}",
        grouped(books.enqueued),
        grouped(books.handled),
        grouped(books.failed),
        grouped(books.dropped),
        grouped(books.set_aside),
        grouped(books.pending),
        balance(books.balances())
    )
}

fn items(report: &Report) -> String {
    let delivery = &report.ended.delivery;
    let mut text = format!("{} kept = {} delivered", grouped(delivery.items), grouped(delivery.delivered));
    let _ = write!(text, " + {} in the spool + {} refused", grouped(delivery.spooled), grouped(delivery.rejected));
    let accounted = delivery.delivered.saturating_add(delivery.spooled).saturating_add(delivery.rejected);
    let _ = write!(text, "; {}", balance(delivery.items == accounted));
    if delivery.undelivered_records > 0 {
        let _ = write!(text, "; {} records of all kinds not delivered", grouped(delivery.undelivered_records));
    }
    text
}

fn leases(report: &Report) -> String {
    let Some(ledger) = &report.plane else { return own_leases(&report.ended.leases, &report.ended.stats) };
    format!(
        "{} acquired = {} released + {} expired + {} open; {}; {} reported, {} cooled down",
        grouped(ledger.acquired),
        grouped(ledger.released),
        grouped(ledger.expired),
        grouped(ledger.open),
        balance(ledger.balances()),
        grouped(ledger.reports),
        grouped(ledger.cooled)
    )
}

/// What the crawl itself knows of the leases of a plane elsewhere.
fn own_leases(books: &LeaseBooks, stats: &Map<String, Value>) -> String {
    let mut text = format!(
        "{} acquired = {} ended by report + {} released + {} lost; {}; {} reported",
        grouped(books.acquired),
        grouped(books.reported),
        grouped(books.released),
        grouped(books.lost),
        balance(books.balances()),
        grouped(books.reports)
    );
    for (name, what) in [
        ("reporter/rejected", "reports refused"),
        ("reporter/undelivered", "reports not delivered"),
        ("lease/acquire_ambiguous", "asks without an answer"),
    ] {
        if let Some(many) = count(stats, name).filter(|many| *many > 0) {
            let _ = write!(text, ", {} {what}", grouped(many));
        }
    }
    text + "; what cooled down the control plane knows"
}

/// Who was at work.
fn identities(uses: &[IdentityUse]) -> Option<String> {
    let first = uses.iter().take(IDENTITIES).map(|of| format!("{} {}", of.identity.name, grouped(of.leases)));
    let mut text = format!("{} leases", first.collect::<Vec<_>>().join(", "));
    if let Some(more) = uses.len().checked_sub(IDENTITIES).filter(|more| *more > 0) {
        let _ = write!(text, ", and {} more identities", grouped(more as u64));
    }
    (!uses.is_empty()).then_some(text)
}

fn balance(holds: bool) -> &'static str {
    if holds { "balances" } else { "DOES NOT BALANCE" }
}

fn count(stats: &Map<String, Value>, name: &str) -> Option<u64> {
    stats.get(name).and_then(Value::as_u64)
}

fn query(job_id: &str, what: &str) -> String {
    format!("SELECT {what} WHERE job_id = '{}'", job_id.replace('\'', "''"))
}

/// As one word of a shell command.
fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.contains(['"', '$', '`', '\\', '!']) { format!("'{}'", text.replace('\'', r"'\''")) } else { format!("\"{text}\"") }
}

/// What to do now, where the exit code asks for it.
fn next(report: &Report) -> Option<String> {
    if let (4, Some(spool)) = (report.ended.code, &report.spool) {
        let dir = shell(&spool.display().to_string());
        return Some(match report.ended.delivery.left {
            0 => format!("mend what was refused; dragline deliver --rejected --spool {dir} sends it again"),
            _ => format!("dragline deliver --spool {dir} sends the rest"),
        });
    }
    if let (2, Some(same)) = (report.ended.code, report.resumes)
        && report.ended.books.pending > 0
    {
        return Some(format!("start it again with the same {same}: it goes on from here"));
    }
    let advice = match report.ended.code {
        exit::FINISHED => return None,
        2 if report.ended.books.pending > 0 => "without a JOBDIR it begins anew; with one it would go on from here",
        3 if report.ended.failures.is_empty() => "see `why` and the log, mend it and start again",
        3 => "see `failed` and the log for what refused, mend it and start again",
        4 if report.job_store().is_some() => "the feed named above is incomplete; the job store has all its items",
        4 => "the feed named above is incomplete; the sink has all its items",
        5 if lost_reports_alone(report) => {
            "see that the control plane runs and can be reached; leases without a report expire there, and no item is lost by it"
        }
        5 | exit::INTERNAL => "please report this with the lines above and the log",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// What can be done with a job that is over.
fn finished_before(report: &Report) -> String {
    let Some(failed) = Some(report.ended.books.failed).filter(|failed| *failed > 0) else {
        return "another JOBDIR begins the crawl anew".to_owned();
    };
    let failed = grouped(failed);
    format!("`dragline frontier retry-failed JOBDIR` queues its {failed} failed requests again; another JOBDIR begins anew")
}

/// Whether nothing is wrong but that the control plane took no reports at the end.
fn lost_reports_alone(report: &Report) -> bool {
    let ended = &report.ended;
    ended.imbalances.len() == 1 && count(&ended.stats, "reporter/undelivered").is_some_and(|many| many > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::collector::message::Closed;
    use crate::engine::message::Ended;
    use crate::plane::{IdentityKey, PlaneLedger};
    use crate::scheduler::job::Books;

    fn used(name: &str) -> IdentityUse {
        IdentityUse { identity: IdentityKey { site: "bookshop".into(), name: name.into() }, leases: 650 }
    }

    fn report() -> Report {
        Report {
            ended: Ended {
                leases: crate::engine::lease_books::LeaseBooks::default(),
                reason: "finished".to_owned(),
                code: 0,
                books: Books { enqueued: 1_234, handled: 1_200, failed: 12, dropped: 22, set_aside: 0, pending: 0 },
                delivery: Closed {
                    items: 1_010,
                    delivered: 1_010,
                    feeds: vec![("items.jsonl".to_owned(), 1_010)],
                    ..Closed::default()
                },
                stats: json!({"response_received_count": 1_250, "retry/count": 40, "start": "x"}).as_object().unwrap().clone(),
                failures: vec![("http_status 500".to_owned(), 10, "http://127.0.0.1/products/7-a".to_owned())],
                imbalances: Vec::new(),
                tally: crate::engine::hub::Tally::default(),
                note: None,
            },
            plane: Some(PlaneLedger { acquired: 1_300, released: 1_299, expired: 1, open: 0, reports: 1_310, cooled: 7 }),
            identities: ["reader-1", "reader-2"].map(used).into(),
            place: "embedded .dragline/jobs.db".to_owned(),
            spool: None,
            job_id: "0199".to_owned(),
            spider: "bookshop".to_owned(),
            took: Duration::from_millis(12_340),
            was_finished: false,
            resumes: None,
        }
    }

    #[test]
    fn a_good_end_is_told_in_a_few_lines() {
        assert_eq!(
            summary(&report()),
            "finished: bookshop, job 0199, took 12.3 s (exit code 0: finished)\n  \
             requests   1,234 taken = 1,200 handled + 12 failed + 22 dropped + 0 set aside + 0 left; balances\n  \
             responses  1,250 received, 40 retries\n  \
             items      1,010 kept = 1,010 delivered + 0 in the spool + 0 refused; balances\n  \
             leases     1,300 acquired = 1,299 released + 1 expired + 0 open; balances; 1,310 reported, 7 cooled down\n  \
             identities reader-1 650, reader-2 650 leases\n  \
             feed       items.jsonl: 1,010 items\n  \
             job store  .dragline/jobs.db\n             \
             sqlite3 .dragline/jobs.db \"SELECT record FROM items WHERE job_id = '0199'\"\n  \
             failed     10 × http_status 500, for example http://127.0.0.1/products/7-a\n"
        );
    }

    #[test]
    fn a_job_that_was_finished_before_says_so_and_what_can_be_done() {
        let mut before = report();
        before.was_finished = true;
        let text = summary(&before);
        assert_eq!(
            text,
            "finished: bookshop, job 0199, took 12.3 s (exit code 0: finished)\n  \
             requests   1,234 taken = 1,200 handled + 12 failed + 22 dropped + 0 set aside + 0 left; balances\n  \
             why        an earlier run with this JOBDIR finished the job: nothing is left to do, and nothing was done\n  \
             next       `dragline frontier retry-failed JOBDIR` queues its 12 failed requests again; another JOBDIR begins anew\n"
        );
        before.ended.books.failed = 0;
        assert!(summary(&before).ends_with("next       another JOBDIR begins the crawl anew\n"));
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        let mut bad = report();
        bad.ended.code = 4;
        bad.ended.reason = "finished".to_owned();
        bad.ended.books.handled -= 1;
        bad.ended.delivery.delivered -= 10;
        bad.ended.delivery.spooled = 9;
        bad.ended.delivery.undelivered_records = 30;
        bad.ended.delivery.left = 29;
        bad.ended.delivery.feed_errors = vec!["cannot write a.csv: disk full".to_owned()];
        bad.ended.imbalances = vec!["one request has no end".to_owned()];
        bad.plane = None;
        bad.spool = Some(".dragline/spool/0199".into());
        let text = summary(&bad);
        for part in [
            "exit code 4: not everything was delivered",
            "+ 0 left; DOES NOT BALANCE",
            "1,010 kept = 1,000 delivered + 9 in the spool + 0 refused; DOES NOT BALANCE; 30 records",
            "feed lost  cannot write a.csv",
            "wrong      one request has no end",
            "spool      .dragline/spool/0199",
            "next       dragline deliver --spool .dragline/spool/0199 sends the rest",
            "leases     0 acquired = 0 ended by report + 0 released + 0 lost; balances",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        bad.ended.delivery.left = 0;
        let refused = summary(&bad);
        assert!(refused.contains("dragline deliver --rejected --spool .dragline/spool/0199 sends it again"), "{refused}");
    }

    #[test]
    fn the_leases_of_a_plane_elsewhere_are_told_as_the_crawl_counted_them() {
        let mut remote = report();
        remote.plane = None;
        remote.identities.clear();
        let counts = json!({"reporter/reports": 9_999, "reporter/rejected": 2});
        remote.ended.stats = counts.as_object().unwrap().clone();
        remote.ended.leases =
            LeaseBooks { acquired: 1_300, reported: 1_258, released: 40, lost: 2, reports: 1_265, ..LeaseBooks::default() };
        let text = summary(&remote);
        let row = "leases     1,300 acquired = 1,258 ended by report + 40 released + 2 lost; balances; 1,265 reported, 2 reports \
                   refused; what cooled down the control plane knows\n";
        assert!(text.contains(row) && !text.contains("identities"), "{text}");
    }

    #[test]
    fn requests_without_a_rule_are_told_with_the_way_out() {
        let mut none = report();
        none.ended.stats = json!({"lease/unmatched": 2}).as_object().unwrap().clone();
        assert!(summary(&none).contains("no rule    2 × dropped, as no rule of LEASES covers the host"), "{}", summary(&none));
        assert!(!summary(&report()).contains("no rule"));
    }

    #[test]
    fn reports_that_the_plane_did_not_take_are_no_fault_of_the_program() {
        let mut lost = report();
        lost.ended.code = 5;
        lost.ended.imbalances = vec!["22 reports were not taken by the control plane in time".to_owned()];
        assert!(summary(&lost).contains("next       please report this"));
        lost.ended.stats.insert("reporter/undelivered".to_owned(), json!(22));
        assert!(summary(&lost).contains("next       see that the control plane runs"), "{}", summary(&lost));
        lost.ended.imbalances.push("one request has no end".to_owned());
        assert!(summary(&lost).contains("next       please report this"));
    }

    #[test]
    fn five_identities_are_enough() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let text = identities(&names.map(used)).unwrap();
        assert_eq!(text, "a 650, b 650, c 650, d 650, e 650 leases, and 2 more identities");
        assert_eq!(identities(&[]), None);
    }

    #[test]
    fn the_next_step_points_to_a_row_that_is_there() {
        let mut bad = report();
        bad.ended.code = 4;
        bad.ended.delivery.feed_errors = vec!["cannot write a.csv: disk full".to_owned()];
        assert!(summary(&bad).contains("next       the feed named above is incomplete"), "{}", summary(&bad));
        bad.ended.code = 3;
        bad.ended.note = Some("start failed: no".to_owned());
        assert!(summary(&bad).contains("next       see `failed`"));
        bad.ended.failures.clear();
        assert!(summary(&bad).contains("next       see `why`"));
    }

    #[test]
    fn a_sink_elsewhere_is_named_instead_of_the_job_store() {
        let mut elsewhere = report();
        elsewhere.place = "apcloudy https://in.example/base".to_owned();
        elsewhere.ended.failures = (0..7).map(|n| (format!("reason {n}"), 7 - n, String::new())).collect();
        elsewhere.ended.delivery.feed_errors = vec!["cannot write a.csv: disk full".to_owned()];
        elsewhere.ended.code = 4;
        let text = summary(&elsewhere);
        assert!(text.contains("\n  sink       apcloudy https://in.example/base\n"), "{text}");
        assert!(text.contains("2 more reasons: see the log\n"), "{text}");
        assert!(text.contains("incomplete; the sink has all its items\n"), "{text}");
        assert!(!text.contains("job store") && !text.contains("sqlite3"), "{text}");
    }

    #[test]
    fn five_reasons_are_enough() {
        let mut many = report();
        many.ended.failures = (0..7).map(|n| (format!("reason {n}"), 7 - n, String::new())).collect();
        let text = summary(&many);
        assert!(text.contains("failed     3 × reason 4\n") && !text.contains("reason 5"), "{text}");
        assert!(
            text.contains("2 more reasons: sqlite3 .dragline/jobs.db \"SELECT url, error FROM requests WHERE job_id = '0199' AND NOT success\""),
            "{text}"
        );
    }

    #[test]
    fn a_stop_that_left_requests_says_how_to_go_on() {
        let mut stopped = report();
        stopped.ended.code = 2;
        assert!(!summary(&stopped).contains("next "));
        stopped.ended.books.pending = 3;
        assert!(summary(&stopped).contains("next       without a JOBDIR it begins anew; with one it would go on from here"));
        stopped.resumes = Some("JOBDIR");
        assert!(summary(&stopped).contains("next       start it again with the same JOBDIR: it goes on from here"));
    }

    #[test]
    fn the_query_can_be_pasted_whatever_the_job_is_called() {
        for (word, quoted) in [("a/b.db", "a/b.db"), ("a b", "\"a b\""), ("a'$b", r"'a'\''$b'"), ("", "\"\"")] {
            assert_eq!(shell(word), quoted);
        }
        assert_eq!(query("o'x", "record FROM items"), "SELECT record FROM items WHERE job_id = 'o''x'");
    }
}
