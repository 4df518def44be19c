//! Capture of what a spider prints: descriptor 1 becomes a pipe, and each line of it a log line.
//!
//! The real standard output stays open aside for feeds to `-`. Ending a capture never hangs: a child process that
//! still holds the pipe costs a short wait and nothing else.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{logging, terminal};
use crate::run::{Printed, StdoutSource};
use crate::settings::LogLevel;

/// A line without an end is passed on in parts of this size.
const LONGEST_LINE: u64 = 64 * 1024;

/// How long the end of a capture waits for the reader.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// A line that tells the reader to answer; nobody else prints it.
const MARK: &str = "\u{0}dragline has read what was printed so far\u{0}";

/// How long that answer may take.
const MARK_WAIT: Duration = Duration::from_millis(200);

/// The real standard output, put aside or not.
#[derive(Debug)]
pub(crate) struct Stdout {
    real: Arc<OwnedFd>,
    reader: Option<Receiver<()>>,
    marks: Option<Arc<Mutex<Receiver<()>>>>,
}

impl Stdout {
    /// Leaves standard output as it is.
    pub(crate) fn plain() -> io::Result<Self> {
        Ok(Self { real: Arc::new(io::stdout().as_fd().try_clone_to_owned()?), reader: None, marks: None })
    }

    /// Turns standard output into lines of the log until [`Stdout::close`] or the end of this value.
    pub(crate) fn capture() -> io::Result<Self> {
        let mut stdout = Self::plain()?;
        io::stdout().flush()?;
        let (from, to) = io::pipe()?;
        let (done, reader) = channel();
        let (passed, marks) = channel();
        std::thread::Builder::new().name("dragline-stdout".to_owned()).spawn(move || {
            pump(from, |line| tell(line, &passed));
            let _ = done.send(());
        })?;
        rustix::stdio::dup2_stdout(to)?;
        stdout.reader = Some(reader);
        stdout.marks = Some(Arc::new(Mutex::new(marks)));
        Ok(stdout)
    }

    /// Opens the real standard output.
    pub(crate) fn source(&self) -> StdoutSource {
        let real = Arc::clone(&self.real);
        StdoutSource(Box::new(move || Ok(Box::new(File::from(real.try_clone()?)))))
    }

    /// Waits, when called, until everything printed so far is logged; at most a moment.
    pub(crate) fn printed(&self) -> Printed {
        let marks = self.marks.clone();
        Printed(Box::new(move || {
            let Some(marks) = &marks else { return };
            let marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
            let mut printed = io::stdout().lock();
            // A line without an end before it is ended; a blank one is dropped.
            let written = write!(printed, "\n{MARK}\n").and_then(|()| printed.flush());
            drop(printed);
            if written.is_ok() {
                let _ = marks.recv_timeout(MARK_WAIT);
            }
        }))
    }

    /// Puts standard output back; what was printed before is logged when this returns.
    pub(crate) fn close(mut self) {
        self.restore();
    }

    fn restore(&mut self) {
        let Some(reader) = self.reader.take() else { return };
        // Ends a line that has no end, should a child process keep the pipe open; a blank line is dropped.
        let mut printed = io::stdout().lock();
        let _ = printed.write_all(b"\n").and_then(|()| printed.flush());
        drop(printed);
        // This closes the last writing end of ours, so the reader comes to its end.
        if rustix::stdio::dup2_stdout(&self.real).is_ok() {
            let _ = reader.recv_timeout(CLOSE_WAIT);
        }
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        self.restore();
    }
}

/// One printed line: logged, and on standard error in any case.
fn tell(line: &str, passed: &Sender<()>) {
    if line == MARK {
        // Whoever waited has gone on.
        let _ = passed.send(());
        return;
    }
    tracing::info!(target: "stdout", "{line}");
    let log = logging::current();
    if !log.shows(LogLevel::Info) && !log.is_json_on_stderr() {
        terminal::print(line);
    }
}

/// Hands on each line that is not blank, without its end, until the input ends.
fn pump(input: impl Read, mut take: impl FnMut(&str)) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end_matches(['\n', '\r']);
                if !text.trim().is_empty() {
                    take(text);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::process::Command;

    use super::*;
    use crate::cli::logging::{LogOptions, LogPlace};
    use crate::settings::LogFormat;

    fn lines(input: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        pump(input, |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn each_line_that_is_not_blank_comes_out() {
        assert_eq!(lines(b"one\n\n  \ntwo \r\npart"), ["one", "two ", "part"]);
        assert_eq!(lines(b"caf\xc3\xa9 \xff\n"), ["café \u{fffd}"]);
        assert_eq!(lines(b""), [""; 0]);
    }

    #[test]
    fn a_line_without_end_comes_in_parts() {
        let parts = lines(&vec![b'x'; LONGEST_LINE as usize + 5]);
        assert_eq!(parts.iter().map(String::len).collect::<Vec<_>>(), [LONGEST_LINE as usize, 5]);
    }

    /// Runs in a process of its own: descriptor 1 belongs to the whole process.
    #[test]
    #[ignore = "run by the test below in a process of its own"]
    fn child() {
        let log = LogOptions { level: LogLevel::Info, format: LogFormat::Text, place: LogPlace::Stderr };
        logging::install(&log).unwrap();
        for round in 1..=2 {
            let stdout = Stdout::capture().unwrap();
            let mut feed = stdout.source().0().unwrap();
            Command::new("sh").args(["-c", "echo from a child; sleep 3 & echo left one behind"]).status().unwrap();
            println!("line of round {round}");
            print!("no end in round {round}");
            stdout.printed().0();
            tracing::info!(target: "shop", "after the prints of round {round}");
            feed.write_all(format!("feed of round {round}\n").as_bytes()).unwrap();
            stdout.close();
        }
        println!("after all");
    }

    #[test]
    fn prints_become_log_lines_and_feeds_keep_the_real_output() {
        let begin = std::time::Instant::now();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cli::stdout::tests::child", "--ignored", "--nocapture", "--test-threads=1"])
            .output()
            .unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10), "no end of the capture waits for a child's child");
        let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
        for round in 1..=2 {
            assert!(out.contains(&format!("feed of round {round}\n")), "{out}");
            assert!(!out.contains(&format!("line of round {round}")), "{out}");
            assert!(err.contains(&format!("[stdout] INFO: line of round {round}\n")), "{err}");
            let (before, _) = err.split_once(&format!("[shop] INFO: after the prints of round {round}\n")).expect("logged");
            assert!(before.contains(&format!("[stdout] INFO: no end in round {round}\n")), "{err}");
            assert!(!err.contains("dragline has read"), "{err}");
        }
        assert!(err.contains("[stdout] INFO: from a child\n"), "{err}");
        assert!(out.contains("after all\n"), "{out}");
    }
}
