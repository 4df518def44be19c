//! Records a sink refuses for good, put aside: one file a part, in `rejected/` inside the spool.
//!
//! A file says what was refused, when and why, and holds the body as it was sent. Its name follows from batch and places,
//! so that a repetition after a crash writes the same file again.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::collector::batch::Batch;
use crate::collector::log::BatchId;

/// The directory's name inside the spool.
pub(crate) const DIRECTORY: &str = "rejected";

/// The form of the files.
const VERSION: u32 = 1;

/// What is refused: a batch, or the records at these places of it, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) batch: BatchId,
    pub(super) part: Option<(u32, u32)>,
}

impl Place {
    /// The file's name without its ending.
    pub(super) fn name(&self) -> String {
        match self.part {
            Some((first, last)) => format!("{}-{first}-{last}", self.batch),
            None => self.batch.to_string(),
        }
    }
}

#[derive(Serialize)]
struct Form<'a> {
    version: u32,
    batch: String,
    job_id: Box<RawValue>,
    answer: &'a str,
    rejected_at: &'a str,
    body: Body<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    /// As it was sent.
    Json(&'a RawValue),
    /// One that does not read.
    Text(&'a str),
}

/// Writes the file of what was refused. `refused` is what was sent, `at` a time in RFC 3339.
pub(super) fn write(spool: &Path, place: Place, refused: &Batch, answer: &str, at: &str) -> io::Result<PathBuf> {
    let dir = spool.join(DIRECTORY);
    fs::create_dir_all(&dir)?;
    let name = place.name();
    let path = dir.join(format!("{name}.json"));
    let unfinished = dir.join(format!("{name}.part"));
    let form = Form {
        version: VERSION,
        batch: place.batch.to_string(),
        job_id: RawValue::from_string(refused.job.to_json())?,
        answer,
        rejected_at: at,
        body: serde_json::from_str(&refused.body).map_or(Body::Text(&refused.body), Body::Json),
    };
    let mut text = serde_json::to_vec(&form)?;
    text.push(b'\n');
    let mut file = File::create(&unfinished)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    File::open(&dir)?.sync_all()?;
    // It may have been made just now.
    File::open(spool)?.sync_all()?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::Value;
    use tempfile::TempDir;

    use super::*;
    use crate::courier::testing::batch;

    const AT: &str = "2026-11-30T10:00:00Z";

    #[test]
    fn a_file_says_what_was_refused_and_why_and_holds_the_body() {
        let dir = TempDir::new().unwrap();
        let refused = batch(7, 1);
        let id = BatchId(0xab);
        for (part, name) in
            [(None, "000000000000000000000000000000ab.json"), (Some((3, 3)), "000000000000000000000000000000ab-3-3.json")]
        {
            let place = Place { batch: id, part };
            let file = write(dir.path(), place, &refused, "413: too large", AT).unwrap();
            assert_eq!(file, dir.path().join("rejected").join(name));
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains(&format!(r#""body":{}}}"#, refused.body)), "{text}");
            let form: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&form["version"], &form["batch"]), (&Value::from(1), &Value::from(id.to_string())));
            assert_eq!((&form["job_id"], &form["answer"]), (&Value::from(7), &Value::from("413: too large")));
            assert_eq!(form["rejected_at"], AT);
            // A repetition replaces it.
            assert_eq!(write(dir.path(), place, &refused, "413: too large", AT).unwrap(), file);
        }
        assert_eq!(fs::read_dir(dir.path().join("rejected")).unwrap().count(), 2);
    }

    #[test]
    fn a_body_that_does_not_read_is_kept_as_text() {
        let dir = TempDir::new().unwrap();
        let mut refused = batch(7, 1);
        refused.body = "{\"data".into();
        let file = write(dir.path(), Place { batch: refused.id, part: None }, &refused, "no", AT).unwrap();
        let form: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(form["body"], "{\"data");
    }
}
