//! A Redis server of a test's own, on a free loopback port, with everything it keeps in the test's folder.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::Folder;

/// The longest a server may take to start.
const STARTS: Duration = Duration::from_secs(20);

/// The server; it ends with this.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    dir: std::path::PathBuf,
}

impl Redis {
    /// Starts one that writes each change to disk before it answers it, as far as the system goes.
    pub(crate) fn start(folder: &Folder) -> Self {
        let dir = folder.file("redis");
        std::fs::create_dir_all(&dir).unwrap();
        // Another process may take the port before the server does.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut redis = Self { child: spawn(&dir, port), port, dir: dir.clone() };
            if redis.answers() {
                return redis;
            }
        }
        panic!("no Redis server starts in {}", dir.display());
    }

    /// For `FRONTIER`.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it with `kill -9`, and starts it again on the same port a while later.
    pub(crate) fn restart_after(&mut self, pause: Duration) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::thread::sleep(pause);
        self.child = spawn(&self.dir, self.port);
        assert!(self.answers(), "the server does not start again");
    }

    /// The first line of its answer to a command without arguments that need quotes.
    pub(crate) fn ask(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut answer = [0; 256];
        let read = stream.read(&mut answer).ok()?;
        Some(String::from_utf8_lossy(answer.get(..read)?).lines().next()?.to_owned())
    }

    fn answers(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < STARTS {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if self.ask("PING").is_some_and(|answer| answer == "+PONG") {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &std::path::Path, port: u16) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]).arg("--dir").arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is installed by tests/run, or with: apt-get install redis-server")
}
