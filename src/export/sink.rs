//! A buffered writer whose failed writes can be repeated: what was written leaves the buffer, the rest stays.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use super::{FeedError, uri};

/// Bytes gathered before they are written.
const BUFFER: usize = 64 * 1024;

pub(super) struct Sink {
    out: Box<dyn Write + Send>,
    path: Option<PathBuf>,
    buffer: Vec<u8>,
    written: u64,
}

impl Sink {
    pub(super) fn new(out: Box<dyn Write + Send>, path: Option<PathBuf>) -> Self {
        Self { out, path, buffer: Vec::new(), written: 0 }
    }

    /// Makes room before anything of a call is taken, so that an error here means that nothing was.
    pub(super) fn make_room(&mut self) -> Result<(), FeedError> {
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Takes bytes. If they fill the buffer and cannot be written, the next call tries again and tells.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            let _ = self.flush();
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), FeedError> {
        let mut done = 0;
        let result = loop {
            let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) else {
                break self.out.flush();
            };
            match self.out.write(rest) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.buffer.drain(..done);
        self.written += done as u64;
        result.map_err(|source| FeedError::Io { doing: "write", path: uri(self.path.as_ref()), source })
    }

    /// Bytes handed to the writer so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("path", &self.path)
            .field("buffered", &self.buffer.len())
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Takes three bytes a call and fails every other call.
    struct Flaky(Arc<Mutex<Vec<u8>>>, bool);

    impl Write for Flaky {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let count = bytes.len().min(3);
            self.0.lock().unwrap().extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failed_flush_can_be_repeated_without_loss_or_double() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut sink = Sink::new(Box::new(Flaky(seen.clone(), false)), None);
        sink.push(b"0123456789");
        let mut failures = 0;
        while sink.flush().is_err() {
            failures += 1;
        }
        assert!(failures > 2);
        assert_eq!(*seen.lock().unwrap(), b"0123456789");
        assert_eq!(sink.written(), 10);
    }

    #[test]
    fn a_full_buffer_takes_nothing_more_while_it_cannot_be_written() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut sink = Sink::new(Box::new(Full), Some("x.jsonl".into()));
        sink.push(&[b'x'; BUFFER]);
        let error = sink.make_room().unwrap_err().to_string();
        assert!(error.contains("x.jsonl"), "{error}");
    }
}
