//! What the machine says of this process: memory, processor time, and of a directory: its bytes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Bytes of memory this process holds now.
pub(crate) fn resident() -> f64 {
    status("VmRSS:")
}

/// The most bytes of memory it held since [`forget_peak`].
pub(crate) fn peak() -> f64 {
    status("VmHWM:")
}

/// The peak counts from here.
pub(crate) fn forget_peak() {
    // Where that is not allowed the peak is that of the whole run: a figure too high, none too low.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// Processor time of all threads.
pub(crate) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

/// Processor time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Bytes that a directory takes on disk.
pub(crate) fn on_disk(dir: &Path) -> f64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0.0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // Files come and go while a store tidies up.
        let Ok(meta) = entry.metadata() else { continue };
        bytes += if meta.is_dir() { on_disk(&entry.path()) } else { meta.blocks() as f64 * 512.0 };
    }
    bytes
}
