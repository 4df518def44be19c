//! This process's memory, as the kernel tells it in `/proc/self/status`. Absent where there is no such file.

/// Resident memory. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Now.
    pub resident: i64,
    /// The most so far.
    pub peak: i64,
}

impl Memory {
    /// Reads it.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/status").ok()?)
    }

    /// The most so far.
    pub(crate) fn most() -> Option<i64> {
        Self::now().map(|memory| memory.peak)
    }

    /// What is resident now.
    pub(crate) fn resident_now() -> Option<i64> {
        Self::now().map(|memory| memory.resident)
    }

    fn parse(status: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().strip_suffix("kB")?.trim_end().parse::<i64>().ok()?.checked_mul(1024)
        };
        Some(Self { resident: bytes("VmRSS")?, peak: bytes("VmHWM")? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_kernel_s_kilobytes_become_bytes() {
        let status = "Name:\tdragline\nVmPeak:\t  999999 kB\nVmHWM:\t   81920 kB\nVmRSS:\t   79765 kB\nThreads:\t4\n";
        assert_eq!(Memory::parse(status), Some(Memory { resident: 81_679_360, peak: 83_886_080 }));
        assert_eq!(Memory::parse("VmRSS:\t 1 kB\n"), None);
        assert_eq!(Memory::parse("VmHWM:\t x kB\nVmRSS:\t 1 kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_some() {
        let memory = Memory::now().unwrap();
        assert!(memory.resident > 1 << 20 && memory.peak >= memory.resident / 2, "{memory:?}");
    }
}
