//! A disk of a few MiB that only the programs of one test see: a tmpfs in a mount namespace of its own.
//!
//! A process that sleeps holds the namespace, so that the disk outlives the runs that use it. Needs `unshare`, `nsenter` and the
//! right to make user namespaces; where that is missing a test says so, and fails where `CI` is set.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::harness::{DRAGLINE, Folder, Running};

const BALLAST: &str = "ballast";

pub(crate) struct SmallDisk {
    holder: Child,
    /// Where programs of the namespace see it.
    at: PathBuf,
}

impl SmallDisk {
    /// A disk of so many MiB at a path below the folder. `None`: this machine makes no namespaces.
    pub(crate) fn at(folder: &Folder, path: &str, mebibytes: u32) -> Option<Self> {
        let at = folder.file(path);
        std::fs::create_dir_all(&at).unwrap();
        let script = format!("mount -t tmpfs -o size={mebibytes}m none \"$1\" && echo ready && exec sleep 600");
        let mut command = Command::new("unshare");
        command
            .args(["-rm", "sh", "-c", &script, "sh"])
            .arg(&at)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let missing = |why: &str| {
            assert!(std::env::var_os("CI").is_none(), "no disk of a few MiB can be made here: {why}");
            eprintln!("NOT TESTED: no disk of a few MiB can be made here: {why}");
        };
        let mut holder = match command.spawn() {
            Ok(holder) => holder,
            Err(error) => {
                missing(&format!("unshare: {error}"));
                return None;
            }
        };
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.trim() != "ready" {
            let output = holder.wait_with_output().unwrap();
            missing(String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Some(Self { holder, at })
    }

    /// Starts the binary in the folder, with the disk in its place.
    pub(crate) fn start(&self, folder: &Folder, arguments: &[&str]) -> Running {
        let mut command = folder.command_of("nsenter".as_ref(), &[]);
        let id = self.holder.id().to_string();
        command.args(["-t", &id, "-U", "-m", "--preserve-credentials", "sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh"]);
        command.arg(folder.path()).arg(DRAGLINE).args(arguments);
        Running::of(command)
    }

    /// The same files as seen from outside of the namespace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id());
        PathBuf::from(root).join(self.at.strip_prefix("/").unwrap()).join(name)
    }

    /// Takes all the room there is. Those who use the disk may free some meanwhile: so again and again.
    pub(crate) fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.outside(BALLAST)).unwrap();
        for piece in [64 * 1024, 4096, 1] {
            let bytes = vec![7; piece];
            loop {
                match ballast.write(&bytes) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// Gives all of it back.
    pub(crate) fn free(&self) {
        std::fs::remove_file(self.outside(BALLAST)).unwrap();
    }

    /// Makes it read-only; nobody may have a file open to write.
    pub(crate) fn make_read_only(&self) {
        let id = self.holder.id().to_string();
        let mut command = Command::new("nsenter");
        command.args(["-t", &id, "-U", "-m", "--preserve-credentials", "mount", "-o", "remount,ro"]).arg(&self.at);
        assert!(command.status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
