#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use super::*;
use crate::scheduler::testing::{child, job, unfiltered};

const NOW: Duration = Duration::from_secs(9);

fn slot(host: &str) -> SlotKey {
    SlotKey(host.into())
}

fn pulled(index: &mut Index, host: &str) -> Option<Queued> {
    match index.pull(&slot(host), NOW) {
        Next::Job(queued) => Some(queued),
        Next::NotBefore(_) | Next::Empty => None,
    }
}

#[test]
fn a_job_is_taken_in_as_it_was_found() {
    let mut index = Index::new();
    let first = job(0, "http://a/1");
    assert_eq!(index.look(&first), Found::New);
    assert_eq!(index.take(&first), Ok(Taken { age: 1, is_key_new: true, is_child: false }));
    assert_eq!((index.look(&first), index.take(&first)), (Found::Duplicate, Err(Found::Duplicate)));
    let again = unfiltered(job(1, "http://a/1"));
    assert_eq!(index.take(&again), Ok(Taken { age: 2, is_key_new: false, is_child: false }));
    let queued = pulled(&mut index, "a").unwrap();
    assert!(index.went_out(first.id, queued));
    let made = unfiltered(child(first.id, 0, "http://a/1"));
    assert_eq!(index.take(&made), Ok(Taken { age: 3, is_key_new: false, is_child: true }));
    assert_eq!((index.look(&made), index.take(&made)), (Found::Repeated, Err(Found::Repeated)));
    assert_eq!(index.settle(first.id, Outcome::Handled), Some(Settled { age: 1, had_children: true }));
    assert_eq!(index.settle(first.id, Outcome::Handled), None);
    let taken = index.take(&made).unwrap();
    assert!(!taken.is_child, "a settled parent is forgotten, and never remembered again");
    assert_eq!(index.children.parents().count(), 0);
    assert!(index.books.balances());
}

#[test]
fn a_job_that_could_not_be_read_is_at_its_place_again() {
    let mut index = Index::new();
    (0..2).for_each(|n| assert!(index.take(&job(n, &format!("http://a/{n}"))).is_ok()));
    let queued = pulled(&mut index, "a").unwrap();
    index.return_unread(&queued);
    assert_eq!(pulled(&mut index, "a"), Some(queued));
    assert_eq!(pulled(&mut index, "a").map(|q| q.age), Some(2));
}

#[test]
fn ages_are_never_given_twice() {
    let mut index = Index::new();
    index.restore("a", 5, 0, Duration::ZERO);
    index.restore("a", 7, 3, NOW + NOW);
    assert_eq!(index.take(&job(0, "http://a/1")).map(|taken| taken.age), Ok(8));
    let robots = job(1, "http://a/robots.txt");
    assert_eq!((index.admit(&robots), index.admit(&robots)), (Some(9), None));
    let moved = index.put_back(&robots, Duration::ZERO).unwrap();
    assert_eq!(moved.from, 9);
    assert!(moved.to > 10, "the age of a refused admission is not used again");
    assert_eq!(pulled(&mut index, "a").map(|q| q.age), Some(5), "the older of the same priority, and 7 is not due");
    index.skip_to(3);
    assert!(index.next_age() > moved.to);
}

#[test]
fn the_growth_told_covers_what_a_batch_adds() {
    let mut index = Index::new();
    let parent = job(0, "http://parent.test/");
    index.admit(&parent);
    for batch in 0..300_u64 {
        let jobs: Vec<Job> =
            (0..40).map(|n| child(parent.id, batch * 40 + n, &format!("http://{}.test/{batch}/{n}", n * batch % 777))).collect();
        let (before, told, most) = (index.bytes(), index.growth(jobs.iter()), index.most_growth(jobs.len()));
        jobs.iter().for_each(|job| assert!(index.take(job).is_ok()));
        let grown = index.bytes() - before;
        // Children are one large table here, which doubles in one step.
        let children = if batch == 0 { 0 } else { index.children.bytes() / 2 };
        assert!(grown <= told + children, "batch {batch}: {grown} of {told}");
        assert!(told <= most, "batch {batch}: {told} of at most {most}");
    }
}

#[test]
fn the_growth_told_covers_new_hosts() {
    let mut index = Index::new();
    for batch in 0..400 {
        let jobs: Vec<Job> = (batch * 10..batch * 10 + 10).map(|n| job(n, &format!("http://shop-{n}.example/"))).collect();
        let (before, told) = (index.bytes(), index.growth(jobs.iter()));
        jobs.iter().for_each(|job| assert!(index.take(job).is_ok()));
        assert!(index.bytes() - before <= told, "batch {batch}: {} of {told}", index.bytes() - before);
    }
}

#[test]
fn a_drained_index_holds_little_but_what_it_has_seen() {
    let mut index = Index::new();
    for n in 0..20_000 {
        index.take(&job(n, &format!("http://{n}.test/"))).unwrap();
    }
    for n in 0..20_000 {
        let queued = pulled(&mut index, &format!("{n}.test")).unwrap();
        let id = RequestId::child(None, n);
        assert!(index.went_out(id, queued));
        index.take(&unfiltered(child(id, 0, "http://x.test/"))).unwrap();
        index.settle(id, Outcome::Handled).unwrap();
        index.settle(id, Outcome::Handled);
    }
    assert_eq!((index.lines.len(), index.out.len(), index.children.parents().count()), (1, 0, 0));
    assert!(index.bytes() < index.seen.bytes() + 20_000 * 12 + 64_000, "{} of {}", index.bytes(), index.seen.bytes());
}
