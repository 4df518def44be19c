//! A Redis server of a test's own.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::{Membership, RedisOptions, RedisStore, RedisUrl};
use crate::scheduler::pacing::Pacing;

/// A running server on a loopback port; it ends with this value.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    dir: tempfile::TempDir,
    args: Vec<String>,
}

impl Server {
    /// A server that keeps nothing.
    pub(crate) fn start() -> Self {
        Self::with(&["--save", "", "--appendonly", "no"])
    }

    /// A server with these arguments.
    pub(crate) fn with(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        // Another process may take the port between the look and the start: then the next one is tried.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut child = spawn(port, dir.path(), &args);
            if answers(port, &mut child) {
                return Self { child, port, dir, args };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("redis-server does not start: is it installed?");
    }

    pub(crate) fn url(&self) -> RedisUrl {
        format!("redis://127.0.0.1:{}", self.port).parse().unwrap()
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on its port, over its files.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.port, self.dir.path(), &self.args);
        assert!(answers(self.port, &mut self.child), "it starts again");
    }

    /// Lets it stand still, or go on.
    pub(super) fn freeze(&self, still: bool) {
        let signal = if still { "-STOP" } else { "-CONT" };
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// A worker of a job, joined.
    pub(crate) fn join(&self, job: &str, worker: &str, visibility: Duration) -> RedisStore {
        self.join_paced(job, worker, visibility, &Pacing::default())
    }

    /// A worker with a pacing.
    pub(crate) fn join_paced(&self, job: &str, worker: &str, visibility: Duration, pacing: &Pacing) -> RedisStore {
        let options = RedisOptions { visibility, pacing: pacing.clone(), ..RedisOptions::default() };
        RedisStore::open(&self.url(), member(job, worker), options).unwrap()
    }

    /// A plain connection, for looking and for breaking things.
    pub(crate) fn plain(&self) -> redis::Connection {
        redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap().get_connection().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn member(job: &str, worker: &str) -> Membership {
    Membership { job: job.to_owned(), spider: "shop".to_owned(), worker: worker.to_owned() }
}

fn spawn(port: u16, dir: &Path, args: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(dir)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed")
}

/// Whether the server answers before it ends or ten seconds are over.
fn answers(port: u16, child: &mut Child) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        let pid = client.get_connection().and_then(|mut c| redis::cmd("INFO").arg("server").query::<String>(&mut c));
        if let Ok(info) = pid {
            // Ours, and not one that had the port before. It answers the question while it loads, and no other.
            let ours = info.lines().any(|line| line.trim() == format!("process_id:{}", child.id()));
            let ready = client.get_connection().is_ok_and(|mut c| redis::cmd("DBSIZE").query::<u64>(&mut c).is_ok());
            if ours && ready {
                return true;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
