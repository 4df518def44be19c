//! A store that outlives its process by what it committed, as a durable one does; its disk can be made to refuse.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::scheduler::MemoryStore;
use crate::scheduler::job::{Books, Job, Outcome, RequestId, SlotKey};
use crate::scheduler::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};

/// One change.
#[derive(Clone)]
enum Change {
    Offer(Vec<Job>),
    Admit(Job),
    Pull(SlotKey, Duration),
    PutBack(Job, Duration),
    Seen(u128),
    Settle(RequestId, Outcome),
    Advance(Cursors),
    Gate(SlotKey, Duration),
    Save(&'static str, Vec<u8>),
}

/// When the process ends: before or after the n-th step of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Never,
    Before(usize),
    After(usize),
}

/// What lies on the disk, and the store over it as the running process sees it. Clones are the same store.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    live: Mutex<Live>,
    crash: Crash,
    /// Called at the moment of the crash.
    at_crash: Box<dyn Fn() + Send + Sync>,
    steps: AtomicUsize,
    dead: AtomicBool,
    refuses: AtomicBool,
}

struct Live {
    store: MemoryStore,
    committed: Vec<Change>,
    pending: Vec<Change>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self::crashing(Crash::Never, || {})
    }

    pub(crate) fn crashing(crash: Crash, at_crash: impl Fn() + Send + Sync + 'static) -> Self {
        Self::over(Vec::new(), crash, Box::new(at_crash))
    }

    fn over(committed: Vec<Change>, crash: Crash, at_crash: Box<dyn Fn() + Send + Sync>) -> Self {
        let mut store = MemoryStore::new(usize::MAX);
        for change in &committed {
            apply(&mut store, change.clone()).unwrap();
        }
        Self(Arc::new(Shared {
            live: Mutex::new(Live { store, committed, pending: Vec::new() }),
            crash,
            at_crash,
            steps: AtomicUsize::new(0),
            dead: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
        }))
    }

    /// The store as the next process finds it, before it is recovered.
    pub(crate) fn next_run(&self) -> Self {
        Self::over(self.live().committed.clone(), Crash::Never, Box::new(|| {}))
    }

    /// Whether the process is over.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.dead.load(Ordering::SeqCst)
    }

    /// Steps taken.
    pub(crate) fn steps(&self) -> usize {
        self.0.steps.load(Ordering::SeqCst)
    }

    /// Lets the disk refuse, or take again.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.0.refuses.store(refuses, Ordering::SeqCst);
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.0.live.lock().unwrap()
    }

    fn step<T>(&self, act: impl FnOnce(&mut Live) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let gone = || Err(StoreError::Io("the process is over".to_owned()));
        if self.is_dead() {
            return gone();
        }
        let step = self.0.steps.fetch_add(1, Ordering::SeqCst);
        let die = || {
            self.0.dead.store(true, Ordering::SeqCst);
            (self.0.at_crash)();
        };
        if self.0.crash == Crash::Before(step) {
            die();
            return gone();
        }
        let done = act(&mut self.live());
        if self.0.crash == Crash::After(step) {
            die();
            return gone();
        }
        done
    }

    fn change(&self, change: Change) -> Result<(), StoreError> {
        self.step(|live| {
            live.pending.push(change.clone());
            apply(&mut live.store, change)
        })
    }
}

fn apply(store: &mut MemoryStore, change: Change) -> Result<(), StoreError> {
    match change {
        Change::Offer(mut jobs) => store.offer(&mut jobs).map(drop),
        Change::Admit(job) => store.admit(&job),
        Change::Pull(slot, now) => store.pull(&slot, now).map(drop),
        Change::PutBack(job, not_before) => store.put_back(job, not_before),
        Change::Seen(key) => store.mark_seen(key).map(drop),
        Change::Settle(id, outcome) => store.settle(id, outcome).map(drop),
        Change::Advance(to) => store.advance(to),
        Change::Gate(slot, until) => store.gate(&slot, until),
        Change::Save(name, state) => store.save(name, state),
    }
}

impl Store for Journal {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        self.step(|live| {
            live.pending.push(Change::Offer(jobs.clone()));
            live.store.offer(jobs)
        })
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        self.change(Change::Admit(job.clone()))
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        self.step(|live| {
            live.pending.push(Change::Pull(slot.clone(), now));
            live.store.pull(slot, now)
        })
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        self.change(Change::PutBack(job, not_before))
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        self.step(|live| {
            live.pending.push(Change::Seen(key));
            live.store.mark_seen(key)
        })
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError> {
        self.step(|live| {
            live.pending.push(Change::Settle(id, outcome));
            live.store.settle(id, outcome)
        })
    }

    fn books(&self) -> Books {
        self.live().store.books()
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.live().store.slots()
    }

    fn weight(&self) -> usize {
        self.live().store.weight()
    }

    fn medium(&self) -> Medium {
        Medium::Disk
    }

    fn cursors(&self) -> Cursors {
        self.live().store.cursors()
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.change(Change::Advance(to))
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        self.change(Change::Gate(slot.clone(), until))
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.live().store.gates(now)
    }

    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.change(Change::Save(name, state))
    }

    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.live().store.saved(name)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if self.live().pending.is_empty() {
            return Ok(());
        }
        let refuses = self.0.refuses.load(Ordering::SeqCst);
        self.step(|live| {
            if refuses {
                return Err(StoreError::Io("no space left on the device".to_owned()));
            }
            live.committed.append(&mut live.pending);
            Ok(())
        })
    }

    fn recover(&mut self) -> Result<u64, StoreError> {
        self.live().store.recover()
    }
}
