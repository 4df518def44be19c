-- The job store, version 2. A row is a body as it was sent; the views take it apart when asked. What was sent and is no
-- strict JSON lies beside the body, which then is the nearest strict one. Version 1 had no such column.

CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,        -- the id as text, to search by
    job TEXT NOT NULL,           -- the id as JSON: 123 or "123"
    received_at TEXT NOT NULL,   -- UTC, RFC 3339
    bytes INTEGER NOT NULL,      -- as sent
    body TEXT NOT NULL,          -- strict JSON
    raw BLOB                     -- as sent, where that is something else than the body
);

CREATE INDEX batches_of_job ON batches (job_id);

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    spider TEXT NOT NULL,        -- empty for a job whose start nobody noted here: it came over HTTP or from a spool
    started TEXT NOT NULL,       -- RFC 3339; for a job that came over HTTP, when its first batch did or what its stats say
    finished TEXT,
    finish_reason TEXT
);

-- A body that does not parse must not break the questions about all others.
CREATE VIEW bodies AS
SELECT
    rowid AS arrival, id, job_id, bytes,
    CASE WHEN json_valid(body) THEN body ELSE '{}' END AS body
FROM batches;

CREATE VIEW items AS
SELECT b.job_id, b.id AS batch_id, b.arrival, r.key AS n, r.value AS record
FROM bodies b, json_each(b.body, '$.data.items') r;

CREATE VIEW requests AS
SELECT
    b.job_id, b.id AS batch_id, b.arrival, r.key AS n,
    r.value ->> 'url' AS url,
    r.value ->> 'parent_url' AS parent_url,
    r.value ->> 'method' AS method,
    r.value ->> 'status_code' AS status_code,
    r.value ->> 'response_time' AS response_time,
    r.value ->> 'fingerprint' AS fingerprint,
    r.value ->> 'error' AS error,
    r.value ->> 'success' AS success,
    r.value AS record
FROM bodies b, json_each(b.body, '$.data.requests') r;

CREATE VIEW logs AS
SELECT
    b.job_id, b.id AS batch_id, b.arrival, r.key AS n,
    r.value ->> 'time' AS time,
    r.value ->> 'level' AS level,
    r.value ->> 'logger' AS logger,
    r.value ->> 'message' AS message,
    r.value ->> 'exception' AS exception,
    r.value ->> 'index' AS log_index,
    r.value AS record
FROM bodies b, json_each(b.body, '$.data.logs') r;

CREATE VIEW stats AS
SELECT b.job_id, b.id AS batch_id, b.arrival, s.key AS name, s.value AS value
FROM bodies b, json_each(b.body, '$.data.stats') s;

PRAGMA user_version = 2;
