//! What every store must do.

use std::cell::Cell;
use std::rc::Rc;

use super::LONG;
use super::lost::Way;
use super::server::Server;
use crate::scheduler::model::{self, Harness, Lost};
use crate::scheduler::suite;

#[test]
fn it_does_what_every_store_must_do() {
    let server = Server::start();
    let jobs = Cell::new(0);
    suite::run(|_| {
        jobs.set(jobs.get() + 1);
        server.join(&format!("job {}", jobs.get()), "one", LONG)
    });
}

#[test]
fn it_behaves_like_the_model_also_when_answers_and_workers_are_lost() {
    let server = Server::start();
    let way = Rc::new(Way::to(server.port));
    let jobs = Rc::new(Cell::new(0));
    let made = Rc::clone(&jobs);
    let (one, again, cut) = (Rc::clone(&way), Rc::clone(&way), Rc::clone(&way));
    model::run_model(&Harness {
        make: Box::new(move || {
            made.set(made.get() + 1);
            one.lose(0);
            one.join(&format!("job {}", made.get()), "one")
        }),
        // What was answered is at the server: whoever joins under its name returns what it held.
        crash: Box::new(move |store| {
            drop(store);
            again.lose(0);
            (again.join(&format!("job {}", jobs.get()), "one"), Lost::Nothing)
        }),
        // Its commits do not fail, but the answer to whatever comes next gets lost.
        fail: Box::new(move |_, _| {
            cut.lose(1);
            false
        }),
    });
}
