//! What every store must do.

use std::cell::Cell;
use std::time::Duration;

use super::server::Server;
use crate::scheduler::suite;

#[test]
fn it_does_what_every_store_must_do() {
    let server = Server::start();
    let jobs = Cell::new(0);
    suite::run(|_| {
        jobs.set(jobs.get() + 1);
        server.join(&format!("job {}", jobs.get()), "one", Duration::from_secs(60))
    });
}
