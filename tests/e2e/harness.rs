//! Starts the binary in a folder of its own, with an environment of its own, and never waits without a limit.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The longest any crawl of these tests may take, on a machine that does much else.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The binary under test.
pub(crate) const DRAGLINE: &str = env!("CARGO_BIN_EXE_dragline");

/// How often something is repeated: `in_long` with `LONG_TESTS_OF_DRAGLINE=1`.
pub(crate) fn long(short: u64, in_long: u64) -> u64 {
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some_and(|value| value == "1") { in_long } else { short }
}

/// A folder to start programs in.
pub(crate) struct Folder(TempDir);

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    out: Text,
    err: Text,
    readers: Vec<JoinHandle<()>>,
    /// The most memory it had, in KiB, as far as it was seen.
    high_water: Arc<Mutex<u64>>,
}

/// A program that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: ended by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
    /// `VmHWM` in KiB.
    pub(crate) high_water: u64,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a file only its owner can read, as the control plane asks of identities.
    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(name, text);
        std::fs::set_permissions(self.file(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The binary, with nothing of this process's environment but the path.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(DRAGLINE), arguments)
    }

    pub(crate) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path());
        command.current_dir(self.path()).args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::of(self.command(arguments))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Runs a call that must be refused as bad usage; answers what it says.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(64), "{arguments:?}: {ended}");
        ended.err
    }

    /// The items of a feed of JSON lines.
    pub(crate) fn items(&self, name: &str) -> Vec<serde_json::Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every file below the folder.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let (mut files, mut folders) = (Vec::new(), vec![self.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (Text::default(), Text::default());
        let high_water = Arc::default();
        let readers = vec![
            out.follow(child.stdout.take().unwrap()),
            err.follow(child.stderr.take().unwrap()),
            watch_memory(child.id(), Arc::clone(&high_water)),
        ];
        Self { child, out, err, readers, high_water }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    pub(crate) fn err(&self) -> String {
        self.err.get()
    }

    /// Waits until standard error contains `text`.
    pub(crate) fn says(&self, text: &str) {
        self.until(text, || self.err.get().contains(text));
    }

    /// Waits until `is` holds.
    pub(crate) fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let started = Instant::now();
        while !is() {
            assert!(started.elapsed() < LIMIT, "never: {what}\n{}\n{}", self.out.get(), self.err.get());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The first line of standard output.
    pub(crate) fn first_line(&self) -> String {
        self.until("a line on standard output", || self.out.get().contains('\n'));
        self.out.get().lines().next().unwrap().to_owned()
    }

    /// Waits for the end, at most [`LIMIT`].
    pub(crate) fn end(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < LIMIT, "does not end\n{}\n{}", self.out.get(), self.err.get());
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = started.elapsed();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let high_water = *self.high_water.lock().unwrap_or_else(PoisonError::into_inner);
        Ended { code: status.code(), out: self.out.get(), err: self.err.get(), took, high_water }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Checks the exit code and that the summary's books balance.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        assert_eq!(self.err.matches("; balances").count(), 3, "requests, items and leases balance: {self}");
        assert!(!self.err.contains("DOES NOT BALANCE"), "{self}");
        self
    }

    /// The summary's line of this name, without the name.
    #[track_caller]
    pub(crate) fn row(&self, name: &str) -> &str {
        let row = self.err.lines().find_map(|line| line.strip_prefix(&format!("  {name:<10} ")));
        row.unwrap_or_else(|| panic!("no {name} in the summary: {self}"))
    }

    /// A number of the summary: the one before ` {word}` in the line of this name.
    #[track_caller]
    pub(crate) fn number(&self, row: &str, word: &str) -> u64 {
        let row = self.row(row);
        let before = row.split_once(&format!(" {word}")).unwrap_or_else(|| panic!("no {word} in {row}")).0;
        before.rsplit(' ').next().unwrap().replace(',', "").parse().unwrap_or_else(|_| panic!("no number before {word} in {row}"))
    }

    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in: {self}");
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {:?} after {:?}\n--- out\n{}\n--- err\n{}", self.code, self.took, self.out, self.err)
    }
}

impl Text {
    fn get(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn follow(&self, from: impl Read + Send + 'static) -> JoinHandle<()> {
        let text = self.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                text.0.lock().unwrap_or_else(PoisonError::into_inner).append(&mut line);
            }
        })
    }
}

fn watch_memory(pid: u32, highest: Arc<Mutex<u64>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
            let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) else { return };
            let now = line.trim().trim_end_matches(" kB").parse().unwrap();
            let mut highest = highest.lock().unwrap_or_else(PoisonError::into_inner);
            *highest = (*highest).max(now);
            drop(highest);
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

/// A demo shop in a process of its own.
pub(crate) struct Shop {
    _running: Running,
    pub(crate) url: String,
}

impl Shop {
    pub(crate) fn start(folder: &Folder, options: &[&str]) -> Self {
        let running = folder.start(&[&["site", "--listen", "127.0.0.1:0"], options].concat());
        let line = running.first_line();
        let url = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).trim().to_owned();
        Self { _running: running, url: format!("{}/", url.trim_end_matches('/')) }
    }

    /// What the shop answers under an address of its own books, such as `__truth`.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let url = url::Url::parse(&self.url).unwrap();
        let address = (url.host_str().unwrap(), url.port().unwrap());
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let ask = format!("GET /{path} HTTP/1.0\r\nhost: {}:{}\r\n\r\n", address.0, address.1);
        std::io::Write::write_all(&mut stream, ask.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}
