//! The stores under measurement.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dragline::scheduler::MemoryStore;
use dragline::scheduler::disk::{DiskOptions, DiskStore};
use dragline::scheduler::store::Store;

use crate::machine;

/// No case comes near it.
const BOUND: usize = 1 << 40;

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Disk,
    /// At the server of [`crate::server::URL`].
    Redis,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::Redis];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Redis => "redis",
        }
    }

    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).expect("a store of this name")
    }
}

/// Where a store of this process or of its directory lies.
#[derive(Debug)]
pub(crate) struct Place {
    kind: Kind,
    dir: PathBuf,
}

impl Place {
    pub(crate) fn new(kind: Kind, dir: &Path) -> Self {
        Self { kind, dir: dir.join("frontier") }
    }

    pub(crate) fn open(&self) -> Box<dyn Store> {
        match self.kind {
            Kind::Memory => Box::new(MemoryStore::new(BOUND)),
            Kind::Disk => Box::new(
                DiskStore::open(
                    &self.dir,
                    DiskOptions { patience: Duration::from_secs(60), ..DiskOptions::default() },
                    &HashMap::new(),
                )
                .unwrap()
                .0,
            ),
            Kind::Redis => unreachable!("it has cases of its own"),
        }
    }

    /// Whether what was stored is there again after a close.
    pub(crate) fn lasts(&self) -> bool {
        self.kind == Kind::Disk
    }

    /// Bytes it takes beside this process.
    pub(crate) fn bytes(&self) -> f64 {
        machine::on_disk(&self.dir)
    }
}
