//! The actor under test: does what its messages say and notes what it did.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dragline::actor::{Cx, Died, Epoch, Inbox, Place, Policy, Reply, Slot, Supervised, Worker, supervise};

#[derive(Debug)]
pub(crate) enum Order {
    Note(u32),
    /// Keeps the slot until [`Control::Release`].
    Keep(u32),
    /// Keeps the slot in a future for so long.
    Work(Duration),
    /// Keeps the thread busy for so long, in real time.
    Spin(Duration),
    /// Posts this fact to itself while handling it.
    Again(u32),
    Question(Reply<u32>),
    Panic(&'static str),
}

#[derive(Debug)]
pub(crate) enum Control {
    Note(u32),
    Arm(Duration, u32),
    /// Re-armed by hand for ever.
    Tick(Duration),
    Release,
    Panic,
    PanicAfter(Duration),
    PanicInFuture,
    PanicWhenDone,
    PanicAtTurnEnd,
    PanicWhenDropped,
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Started(Epoch),
    Order(u32),
    Control(u32),
    Tick,
    Worked,
    TurnEnd,
}

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Did>>>);

impl Log {
    pub(crate) fn add(&self, did: Did) {
        self.0.lock().unwrap().push(did);
    }

    pub(crate) fn all(&self) -> Vec<Did> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn orders(&self) -> Vec<u32> {
        self.all().into_iter().filter_map(|did| if let Did::Order(n) = did { Some(n) } else { None }).collect()
    }

    pub(crate) fn count(&self, did: &Did) -> usize {
        self.all().iter().filter(|d| *d == did).count()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

pub(crate) struct Player {
    pub(crate) log: Log,
    pub(crate) kept: Vec<Slot>,
    panic_at_turn_end: bool,
    panic_when_dropped: bool,
}

impl Player {
    pub(crate) fn new(log: Log) -> Self {
        Self { log, kept: Vec::new(), panic_at_turn_end: false, panic_when_dropped: false }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        assert!(!self.panic_when_dropped, "in the destructor");
    }
}

impl Worker for Player {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.log.add(Did::Started(cx.epoch()));
    }

    fn handle(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        match order {
            Order::Note(n) => self.log.add(Did::Order(n)),
            Order::Keep(n) => {
                self.log.add(Did::Order(n));
                self.kept.push(slot);
            }
            Order::Work(time) => cx.spawn(
                async move {
                    tokio::time::sleep(time).await;
                    slot
                },
                |player, slot, _| {
                    drop(slot);
                    player.log.add(Did::Worked);
                },
            ),
            Order::Spin(time) => {
                let begun = std::time::Instant::now();
                while begun.elapsed() < time {
                    std::hint::spin_loop();
                }
                self.log.add(Did::Order(0));
            }
            Order::Again(n) => {
                self.log.add(Did::Order(n));
                cx.facts().post(Order::Again(n + 1));
            }
            Order::Question(reply) => {
                reply.answer(42);
                self.log.add(Did::Order(42));
            }
            Order::Panic(text) => panic!("{text}"),
        }
    }

    fn control(&mut self, control: Control, cx: &mut Cx<'_, Self>) {
        match control {
            Control::Note(n) => self.log.add(Did::Control(n)),
            Control::Arm(after, n) => {
                cx.after(after, Control::Note(n));
            }
            Control::Tick(every) => {
                self.log.add(Did::Tick);
                cx.after(every, Control::Tick(every));
            }
            Control::Release => self.kept.clear(),
            Control::Panic => panic!("in control"),
            Control::PanicAfter(delay) => {
                cx.after(delay, Control::Panic);
            }
            Control::PanicInFuture => cx.spawn(async { panic!("in a future") }, |_, (), _| {}),
            Control::PanicWhenDone => cx.spawn(async {}, |_, (), _| panic!("when done")),
            Control::PanicAtTurnEnd => self.panic_at_turn_end = true,
            Control::PanicWhenDropped => self.panic_when_dropped = true,
            Control::Stop => cx.stop(),
        }
    }

    fn turn_end(&mut self, _: &mut Cx<'_, Self>) {
        self.log.add(Did::TurnEnd);
        assert!(!self.panic_at_turn_end, "at the end of a turn");
    }
}

pub(crate) type Deaths = Arc<Mutex<Vec<Died>>>;

/// A player with its inbox, its log, and the reports of its ends.
pub(crate) struct Stage {
    pub(crate) inbox: Inbox<Player>,
    pub(crate) log: Log,
    pub(crate) deaths: Deaths,
    pub(crate) actor: Supervised<Player>,
}

pub(crate) const QUICK: Policy = Policy {
    max_restarts: 3,
    within: Duration::from_secs(60),
    first_backoff: Duration::from_millis(100),
    max_backoff: Duration::from_millis(300),
};

impl Stage {
    pub(crate) fn new(place: Place, bound: usize, policy: Policy) -> Self {
        let (inbox, log, deaths) = (Inbox::new("player", bound), Log::default(), Deaths::default());
        let actor = supervise(
            place,
            &inbox,
            policy,
            {
                let log = log.clone();
                move |_| Player::new(log.clone())
            },
            {
                let deaths = Arc::clone(&deaths);
                move |died| deaths.lock().unwrap().push(died)
            },
        );
        Self { inbox, log, deaths, actor }
    }

    pub(crate) fn here(bound: usize) -> Self {
        Self::new(Place::Here, bound, QUICK)
    }

    pub(crate) fn deaths(&self) -> Vec<Died> {
        self.deaths.lock().unwrap().clone()
    }
}

/// Lets everything that can run do so; moves a paused clock by one millisecond.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Waits in real time until `done`, ten seconds at most.
pub(crate) async fn until(what: &str, done: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(10), "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
