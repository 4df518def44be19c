//! What a job left in the store, read with plain SQL as a user would.

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::harness::Folder;

/// One request record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) error: Option<String>,
    pub(crate) success: bool,
}

fn open(folder: &Folder) -> Connection {
    Connection::open_with_flags(folder.file(".dragline/jobs.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// All request records, in their order.
pub(crate) fn requests(folder: &Folder) -> Vec<Record> {
    let connection = open(folder);
    let mut query = connection.prepare("SELECT url, status_code, error, success FROM requests ORDER BY arrival, n").unwrap();
    let rows =
        query.query_map((), |row| Ok(Record { url: row.get(0)?, status: row.get(1)?, error: row.get(2)?, success: row.get(3)? }));
    rows.unwrap().map(Result::unwrap).collect()
}

/// All items, in their order.
pub(crate) fn items(folder: &Folder) -> Vec<Value> {
    let connection = open(folder);
    let mut query = connection.prepare("SELECT record FROM items ORDER BY arrival, n").unwrap();
    let rows = query.query_map((), |row| row.get::<_, String>(0)).unwrap();
    rows.map(|text| serde_json::from_str(&text.unwrap()).unwrap()).collect()
}

/// A stat of the last job.
pub(crate) fn stat(folder: &Folder, name: &str) -> Option<u64> {
    let sql = "SELECT value FROM stats WHERE name = ?1 ORDER BY arrival DESC LIMIT 1";
    open(folder).query_row(sql, [name], |row| row.get::<_, i64>(0)).ok().and_then(|value| u64::try_from(value).ok())
}

/// All log records, in the order they arrived.
pub(crate) fn logs(folder: &Folder) -> Vec<Value> {
    let connection = open(folder);
    let mut query = connection.prepare("SELECT record FROM logs ORDER BY arrival, n").unwrap();
    let rows = query.query_map((), |row| row.get::<_, String>(0)).unwrap();
    rows.map(|text| serde_json::from_str(&text.unwrap()).unwrap()).collect()
}

/// The bodies that were sent, in the order they arrived.
pub(crate) fn bodies(folder: &Folder) -> Vec<Value> {
    let connection = open(folder);
    let mut query = connection.prepare("SELECT body FROM batches ORDER BY rowid").unwrap();
    let rows = query.query_map((), |row| row.get::<_, String>(0)).unwrap();
    rows.map(|text| serde_json::from_str(&text.unwrap()).unwrap()).collect()
}

/// How many log records there are with this text.
pub(crate) fn logs_with(folder: &Folder, text: &str) -> u64 {
    open(folder)
        .query_row("SELECT count(*) FROM logs WHERE instr(message, ?1)", [text], |row| row.get::<_, u32>(0))
        .unwrap()
        .into()
}

/// Why the last job ended.
pub(crate) fn finish_reason(folder: &Folder) -> Option<String> {
    open(folder).query_row("SELECT finish_reason FROM jobs ORDER BY started DESC LIMIT 1", (), |row| row.get(0)).unwrap()
}
