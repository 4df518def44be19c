//! Whole engines as workers of one job, on one clock, over a server in memory.

use std::sync::{Arc, Mutex};

use futures_util::future::{join, join_all};
use tokio::time::{Instant, sleep};

use super::script::Do;
use super::script::{follow, item};
use super::stand::{Desk, Outcome, PATIENCE, Stand};
use super::{MILLI, SECOND};
use crate::actor::run_local;
use crate::scheduler::fleet::fake::World;
use crate::scheduler::redis::FleetState;
use crate::testkit::transport::Answer;

const PAGES: usize = 60;

fn url(page: usize) -> String {
    format!("http://{}.test/{page}", ["a", "b", "c"][page % 3])
}

/// One start request, a page that links to all others, and a page of each.
fn worker(world: &Arc<Mutex<World>>, name: &'static str) -> Stand {
    let mut stand = Stand::new().start([follow(&url(0))]).with(|s| s.concurrent_requests = 4);
    let links: Vec<Do> = (1..PAGES).map(|page| follow(&url(page))).chain([item("0")]).collect();
    stand = stand.page(&url(0), links);
    for page in 1..PAGES {
        stand = stand.page(&url(page), [item(&page.to_string()), follow(&url(0)), follow(&url(PAGES - page))]);
    }
    for page in 0..PAGES {
        stand = stand.answers(&url(page), [Answer::html("<html></html>").after(100 * MILLI)]);
    }
    stand.fleet = Some((world.clone(), name));
    stand
}

async fn alone(_: Desk) {}

/// Each page was asked for once and gave its item once, whoever it was.
fn assert_once(done: &[Outcome]) {
    let mut asked: Vec<String> = done.iter().flat_map(|one| one.asked.iter().map(|asked| asked.url.to_string())).collect();
    asked.sort();
    let mut expected: Vec<String> = (0..PAGES).map(url).collect();
    expected.sort();
    assert_eq!(asked, expected);
    let mut ids: Vec<usize> = done.iter().flat_map(|one| one.ids()).map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..PAGES).collect::<Vec<_>>());
}

#[test]
fn workers_share_the_pages_and_end_together() {
    run_local(async {
        let world = World::new();
        let workers = ["a", "b", "c"].map(|name| worker(&world, name).play(alone));
        let done = join_all(workers).await;
        for one in &done {
            one.assert_sound();
            assert_eq!((one.ended.reason.as_str(), one.ended.code), ("finished", 0), "{:?}", one.ended);
            assert_eq!((one.ended.books.enqueued, one.ended.books.handled), (PAGES as u64, PAGES as u64));
        }
        assert_once(&done);
        assert!(done.iter().all(|one| one.asked.len() > 5), "everybody had a share");
        let world = world.lock().unwrap();
        assert_eq!((world.state, world.cursors.start, world.out()), (FleetState::Finished, 1, 0));
    });
}

#[test]
fn a_worker_that_is_stopped_leaves_the_rest_to_the_others() {
    run_local(async {
        let world = World::new();
        let leaver = worker(&world, "a").play(|desk| async move {
            sleep(450 * MILLI).await;
            desk.stop();
        });
        let (left, stayed) = join(leaver, worker(&world, "b").play(alone)).await;
        left.assert_sound();
        stayed.assert_sound();
        assert_eq!((left.ended.reason.as_str(), left.ended.code), ("shutdown", 2));
        assert!(left.ended.books.pending > 0, "what the others have to do is no imbalance");
        assert_eq!((stayed.ended.reason.as_str(), stayed.ended.code), ("finished", 0));
        assert_once(&[left, stayed]);
    });
}

#[test]
fn a_spider_that_stops_its_job_stops_it_for_all() {
    run_local(async {
        let world = World::new();
        let mut stops = worker(&world, "a");
        let mut follows = worker(&world, "b");
        for page in 10..PAGES {
            let list = vec![item(&page.to_string()), Do::Stop("sold out")];
            stops.script.pages.insert(url(page), list.clone());
            follows.script.pages.insert(url(page), list);
        }
        let (one, other) = join(stops.play(alone), follows.play(alone)).await;
        for done in [&one, &other] {
            done.assert_sound();
            assert_eq!((done.ended.reason.as_str(), done.ended.code), ("sold out", 0));
        }
        assert_eq!(world.lock().unwrap().state, FleetState::Stopping);
        assert_eq!(world.lock().unwrap().out(), 0, "all that was in flight is handled or back");
    });
}

#[test]
fn a_server_that_goes_away_holds_the_crawl_up_and_costs_nothing() {
    run_local(async {
        let world = World::new();
        let cut = world.clone();
        let act = |_: Desk| async move {
            sleep(450 * MILLI).await;
            cut.lock().unwrap().is_down = true;
            sleep(20 * SECOND).await;
            cut.lock().unwrap().is_down = false;
            cut.lock().unwrap().loses_answer = true;
        };
        let (one, other) = join(worker(&world, "a").play(act), worker(&world, "b").play(alone)).await;
        for done in [&one, &other] {
            done.assert_sound();
            assert_eq!((done.ended.reason.as_str(), done.ended.code), ("finished", 0));
            assert!(done.took > 20 * SECOND);
        }
        assert_once(&[one, other]);
    });
}

#[test]
fn a_server_that_stays_away_ends_the_worker_with_exit_3() {
    run_local(async {
        let world = World::new();
        let cut = world.clone();
        let began = Instant::now();
        let done = worker(&world, "a")
            .play(|_| async move {
                sleep(450 * MILLI).await;
                cut.lock().unwrap().is_down = true;
            })
            .await;
        assert_eq!((done.ended.reason.as_str(), done.ended.code), ("frontier_unavailable", 3), "{:?}", done.ended);
        assert!(done.ended.note.as_ref().is_some_and(|note| note.contains("the cable is out")), "{:?}", done.ended.note);
        assert!(began.elapsed() >= PATIENCE && began.elapsed() < PATIENCE + 30 * SECOND, "{:?}", began.elapsed());
    });
}

#[test]
fn a_job_whose_worker_died_is_finished_by_the_others() {
    run_local(async {
        let world = World::new();
        let (_, _, running, _rest) = worker(&world, "a").put_together();
        sleep(450 * MILLI).await;
        // It says nothing more, and hears nothing.
        (running.stop_actors)();
        drop(running);
        let held = world.lock().unwrap().out();
        assert!(held > 0);
        let done = worker(&world, "b").play(alone).await;
        done.assert_sound();
        assert_eq!((done.ended.reason.as_str(), done.ended.code), ("finished", 0));
        assert_eq!(done.ended.books.handled, PAGES as u64, "{held} were held by the dead");
    });
}
