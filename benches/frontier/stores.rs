//! The stores under measurement.

use std::path::{Path, PathBuf};

use dragline::scheduler::MemoryStore;
use dragline::scheduler::store::Store;

use crate::machine;

/// No case comes near it.
const BOUND: usize = 1 << 40;

/// A kind of store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Memory,
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Self {
        match name {
            "memory" => Self::Memory,
            other => panic!("no store is called {other}"),
        }
    }

    /// Where one lies.
    pub fn place(&self, dir: &Path) -> Place {
        Place { kind: self.clone(), dir: dir.join("frontier") }
    }
}

/// A store's place.
#[derive(Debug)]
pub struct Place {
    kind: Kind,
    dir: PathBuf,
}

impl Place {
    pub fn open(&self) -> Box<dyn Store> {
        match self.kind {
            Kind::Memory => Box::new(MemoryStore::new(BOUND)),
        }
    }

    /// Whether what was stored is there again after a close.
    pub fn lasts(&self) -> bool {
        self.kind != Kind::Memory
    }

    /// Bytes it takes beside this process.
    pub fn bytes(&self) -> f64 {
        machine::on_disk(&self.dir)
    }
}
