//! Coalescing: asks for the same leases become one call, without one of them being held back.
//!
//! A line without a call goes out with the turn that asked. While a call of the line is out the next ones gather,
//! and go out together when it is over, or as soon as they are enough for a call of their own: else a long way to the
//! plane would bound the leases a second. There is no timer: after a turn a line with gathered asks always has a call
//! out. Pure; calls nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::plane::{Ask, BATCH_MAX};

/// So many gathered asks do not wait for the call that is out: together they are worth another one.
const ENOUGH: usize = 16;
/// Calls of one line that are out at once at most, but for those a full line needs.
const MOST_OUT: usize = 4;

/// Names a line: asks that any of the same leases will do for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    site: Arc<str>,
    client: Arc<str>,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Group(Arc<str>),
    Path(String),
}

/// Asks to be made in one call: at least one, at most [`BATCH_MAX`].
#[derive(Debug)]
pub(super) struct Batch<T> {
    pub(super) key: Key,
    /// The oldest first.
    pub(super) asks: Vec<T>,
}

/// Asks with what a call brought for them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shared<T, G> {
    /// The oldest asks, with a grant each.
    pub(super) served: Vec<(T, G)>,
    /// Asks the call brought nothing for.
    pub(super) again: VecDeque<T>,
    /// Grants nobody asked for.
    pub(super) spare: Vec<G>,
}

/// All lines of one plane.
#[derive(Debug)]
pub(super) struct Coalescer<T> {
    lines: HashMap<Key, Line<T>>,
    /// Lines of this turn that have no call yet.
    fresh: Vec<Key>,
}

#[derive(Debug)]
struct Line<T> {
    /// Calls without an answer yet; 0 only within the turn that began the line.
    out: usize,
    gathered: VecDeque<T>,
}

impl Key {
    /// The line of `ask`; `None` where it must have a call of its own.
    pub(super) fn of(ask: &Ask) -> Option<Self> {
        if ask.anonymous || ask.session_key.is_some() {
            return None;
        }
        let place = if ask.group.is_empty() { Place::Path(ask.path.clone()) } else { Place::Group(Arc::clone(&ask.group)) };
        Some(Self { site: Arc::clone(&ask.site), client: Arc::clone(&ask.client), place })
    }
}

impl<T> Coalescer<T> {
    pub(super) fn new() -> Self {
        Self { lines: HashMap::new(), fresh: Vec::new() }
    }

    /// Takes one ask in, to be called for by [`Coalescer::begin`] or, if a call of its line is out and few have gathered,
    /// after that.
    pub(super) fn gather(&mut self, key: Key, ask: T) {
        if let Some(line) = self.lines.get_mut(&key) {
            line.gathered.push_back(ask);
            // A line without a call out is among the fresh ones already.
            if line.gathered.len() == ENOUGH && (1..MOST_OUT).contains(&line.out) {
                self.fresh.push(key);
            }
        } else {
            self.fresh.push(key.clone());
            self.lines.insert(key, Line { out: 0, gathered: VecDeque::from([ask]) });
        }
    }

    /// The calls of lines that had none before this turn, or have gathered enough; to be made at its end.
    pub(super) fn begin(&mut self) -> Vec<Batch<T>> {
        let mut batches = Vec::new();
        for key in std::mem::take(&mut self.fresh) {
            let asks = self.lines.get_mut(&key).map(|line| std::mem::take(&mut line.gathered)).unwrap_or_default();
            batches.extend(self.launch(&key, asks));
        }
        batches
    }

    /// Tells that a call of the line is over; gives what gathered meanwhile, the oldest first.
    pub(super) fn over(&mut self, key: &Key) -> VecDeque<T> {
        let Some(line) = self.lines.get_mut(key) else { return VecDeque::new() };
        let gathered = std::mem::take(&mut line.gathered);
        line.out = line.out.saturating_sub(1);
        if line.out == 0 {
            self.lines.remove(key);
        }
        gathered
    }

    /// Makes calls of `asks`, all to be made now: as few as can be.
    pub(super) fn launch(&mut self, key: &Key, mut asks: VecDeque<T>) -> Vec<Batch<T>> {
        let mut batches = Vec::with_capacity(asks.len().div_ceil(BATCH_MAX));
        while !asks.is_empty() {
            let asks = asks.drain(..asks.len().min(BATCH_MAX)).collect();
            batches.push(Batch { key: key.clone(), asks });
        }
        if !batches.is_empty() {
            let line = self.lines.entry(key.clone()).or_insert_with(|| Line { out: 0, gathered: VecDeque::new() });
            line.out += batches.len();
        }
        batches
    }
}

/// Hands `grants` out to the oldest of `asks`.
pub(super) fn share<T, G>(asks: Vec<T>, grants: Vec<G>) -> Shared<T, G> {
    let (mut asks, mut grants) = (VecDeque::from(asks), VecDeque::from(grants));
    let mut served = Vec::with_capacity(asks.len().min(grants.len()));
    while let (Some(_), Some(_)) = (asks.front(), grants.front()) {
        served.extend(asks.pop_front().zip(grants.pop_front()));
    }
    Shared { served, again: asks, spare: grants.into() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    fn ask(site: &str, group: &str, path: &str) -> Ask {
        Ask {
            site: site.into(),
            client: "web".into(),
            group: group.into(),
            path: path.to_owned(),
            session_key: None,
            anonymous: false,
            rule: None,
        }
    }

    fn key(name: &str) -> Key {
        Key::of(&ask(name, "g", "/")).unwrap()
    }

    #[test]
    fn enough_asks_do_not_wait_for_the_call_that_is_out() {
        let mut coalescer = Coalescer::new();
        coalescer.gather(key("a"), 0);
        assert_eq!(coalescer.begin().len(), 1);
        for call in 1..=MOST_OUT {
            for n in 0..ENOUGH {
                coalescer.gather(key("a"), n);
            }
            let sizes: Vec<_> = coalescer.begin().iter().map(|batch| batch.asks.len()).collect();
            assert_eq!(sizes, if call < MOST_OUT { vec![ENOUGH] } else { vec![] }, "call {call}");
        }
        assert_eq!(coalescer.over(&key("a")).len(), ENOUGH, "what is too much goes with the next answer");
    }

    #[test]
    fn asks_share_a_line_by_their_named_group_or_else_by_their_path() {
        let of = |site, group, path| Key::of(&ask(site, group, path));
        assert_eq!(of("a", "g", "/1"), of("a", "g", "/2"));
        assert_ne!(of("a", "g", "/1"), of("a", "h", "/1"));
        assert_ne!(of("a", "g", "/1"), of("b", "g", "/1"));
        assert_eq!(of("a", "", "/1"), of("a", "", "/1"));
        assert_ne!(of("a", "", "/1"), of("a", "", "/2"));
        assert_ne!(of("a", "", "/1"), of("a", "/1", "/1"));
        assert_ne!(Key::of(&Ask { client: "app".into(), ..ask("a", "g", "/") }), of("a", "g", "/"));
        assert_eq!(Key::of(&Ask { session_key: Some("s".into()), ..ask("a", "g", "/") }), None);
        assert_eq!(Key::of(&Ask { anonymous: true, ..ask("a", "", "/") }), None);
    }

    fn sizes<T>(batches: &[Batch<T>]) -> Vec<usize> {
        batches.iter().map(|batch| batch.asks.len()).collect()
    }

    #[test]
    fn a_turn_goes_at_once_and_the_next_gather_until_it_is_over() {
        let mut coalescer = Coalescer::new();
        coalescer.gather(key("a"), 1);
        coalescer.gather(key("b"), 9);
        let first = coalescer.begin();
        assert_eq!(sizes(&first), [1, 1], "no line waits for another");
        for n in 2..=4 {
            coalescer.gather(key("a"), n);
            assert!(coalescer.begin().is_empty());
        }
        let gathered = coalescer.over(&key("a"));
        let batches = coalescer.launch(&key("a"), gathered);
        assert_eq!((batches.len(), &batches[0].asks[..]), (1, &[2, 3, 4][..]));
        coalescer.gather(key("a"), 5);
        assert!(coalescer.begin().is_empty());
        let gathered = coalescer.over(&key("a"));
        coalescer.launch(&key("a"), gathered);
        assert!(coalescer.over(&key("a")).is_empty());
        assert!(coalescer.over(&key("b")).is_empty());
        assert!(coalescer.lines.is_empty(), "lines without a call leave nothing behind");
    }

    #[test]
    fn more_than_a_batch_holds_become_several_calls() {
        let mut coalescer = Coalescer::new();
        (0..=2 * BATCH_MAX).for_each(|n| coalescer.gather(key("a"), n));
        assert_eq!(sizes(&coalescer.begin()), [BATCH_MAX, BATCH_MAX, 1]);
        coalescer.gather(key("a"), 900);
        assert_eq!(coalescer.over(&key("a")), [900], "the first that is over takes what gathered");
    }

    #[test]
    fn grants_go_to_the_oldest_asks() {
        let few = share(vec![1, 2, 3], vec!['a', 'b']);
        assert_eq!((few.served, few.again, few.spare), (vec![(1, 'a'), (2, 'b')], VecDeque::from([3]), vec![]));
        let many = share(vec![1], vec!['a', 'b']);
        assert_eq!((many.served, many.again, many.spare), (vec![(1, 'a')], VecDeque::new(), vec!['b']));
    }

    proptest! {
        #[test]
        fn every_ask_is_in_one_call_at_a_time_and_none_waits_without_a_call(
            steps in proptest::collection::vec((0usize..3, 0u8..4, 0usize..60), 1..400)
        ) {
            let names = ["a", "b", "c"];
            let mut coalescer = Coalescer::new();
            let mut out: Vec<Batch<u32>> = Vec::new();
            let (mut asked, mut served) = (0u32, std::collections::BTreeSet::new());
            for (line, what, brought) in steps {
                if what < 3 || out.is_empty() {
                    for _ in 0..=brought * usize::from(what) {
                        coalescer.gather(key(names[line]), asked);
                        asked += 1;
                    }
                    out.extend(coalescer.begin());
                } else {
                    let Batch { key, asks } = out.swap_remove(brought % out.len());
                    let shared = share(asks, vec![(); brought]);
                    for (ask, ()) in shared.served {
                        prop_assert!(served.insert(ask), "served twice");
                    }
                    let mut waiting = shared.again;
                    waiting.extend(coalescer.over(&key));
                    out.extend(coalescer.launch(&key, waiting));
                }
                for batch in &out {
                    prop_assert!(!batch.asks.is_empty() && batch.asks.len() <= BATCH_MAX);
                    prop_assert!(batch.asks.is_sorted());
                }
                for (key, line) in &coalescer.lines {
                    prop_assert_eq!(line.out, out.iter().filter(|batch| batch.key == *key).count());
                    prop_assert!(line.out > 0);
                }
                let gathered: usize = coalescer.lines.values().map(|line| line.gathered.len()).sum();
                let called: usize = out.iter().map(|batch| batch.asks.len()).sum();
                prop_assert_eq!(gathered + called + served.len(), asked as usize);
            }
        }
    }
}
