//! The scripts that run at the server, one step each.

use std::sync::LazyLock;

use redis::Script;

/// A script's text with its name at the server (the SHA-1 of the text).
#[derive(Debug)]
pub(super) struct Code {
    pub(super) text: &'static str,
    pub(super) name: String,
}

impl Code {
    fn new(text: &'static str) -> Self {
        Self { text, name: Script::new(text).get_hash().to_owned() }
    }
}

/// Does a batch. The parts are one script: the server knows no libraries that every version has.
pub(super) static APPLY: LazyLock<Code> = LazyLock::new(|| {
    Code::new(concat!(
        include_str!("scripts/prelude.lua"),
        include_str!("scripts/hosts.lua"),
        include_str!("scripts/out.lua"),
        include_str!("scripts/offer.lua"),
        include_str!("scripts/lease.lua"),
        include_str!("scripts/requests.lua"),
        include_str!("scripts/claims.lua"),
        include_str!("scripts/apply.lua"),
    ))
});

/// Makes a job or joins it.
pub(super) static JOIN: LazyLock<Code> = LazyLock::new(|| Code::new(include_str!("scripts/join.lua")));

/// Hosts with queued work and their earliest not-before time.
pub(super) static SLOTS: LazyLock<Code> = LazyLock::new(|| Code::new(include_str!("scripts/slots.lua")));

/// Puts dead letters or what was set aside back into the queue.
pub(super) static REQUEUE: LazyLock<Code> = LazyLock::new(|| Code::new(include_str!("scripts/requeue.lua")));

/// Changes what the whole job is doing.
pub(super) static STATE: LazyLock<Code> = LazyLock::new(|| Code::new(include_str!("scripts/state.lua")));
