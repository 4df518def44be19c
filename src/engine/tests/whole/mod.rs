//! The whole engine on one thread and a paused clock: every actor is the real one, the site, the control
//! plane and the sink are played. Times are exact because nothing else moves the clock.

mod books;
mod callbacks;
mod crash;
mod fakes;
mod limits;
mod live;
mod records;
mod redirects;
mod refusals;
mod restarts;
mod retries;
mod robots;
mod script;
mod shutdown;
mod sides;
mod stand;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
