//! A control plane that follows a script: the real model behind real sockets on a loopback port, on a thread of its own.
//!
//! Refuses, hangs, loses calls and answers, goes away and comes back as it is told, while it runs. Keeps the ledger of the
//! plane, counts calls, and remembers what every grant carried. Time is the system's.

mod ledger;
mod script;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use secrecy::ExposeSecret as _;
use tokio::sync::watch;

pub use self::ledger::{IdentityLedger, Ledger, SiteLedger};
use self::script::Trouble;
pub use self::script::{Call, Mishap, Refused, When};
use super::loopback::Serving;
use super::plane_wire as wire;
use crate::dice::Dice;
use crate::plane::face::{Clock, Face, FaceOptions};
use crate::plane::model::Plane;
use crate::plane::model::config_center::{Format, ItemName};
use crate::plane::model::refusal::Refusal;
use crate::plane::model::scope::Scopes;
use crate::plane::model::token::{Token, mint};
use crate::plane::seed::{self, Part, Seed, SeedToken};
use crate::spinneret::{AcquireBatchResponse, AcquireRequest, AcquireResponse};

/// How long a port that is to be used again may take to be free.
const PORT: Duration = Duration::from_secs(5);
/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(5);
/// The token of a file that names none.
const CHANCE: [u8; 32] = [0x5e; 32];

/// A control plane on the loopback. Stops when it is dropped.
///
/// ```
/// use dragline::testkit::plane::{Call, ScriptedPlane, When};
///
/// let plane = ScriptedPlane::start("[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"anna\"\n")?;
/// plane.overload(0.1); // one acquire in ten
/// assert_eq!(plane.calls(Call::Acquire).received, 0);
/// assert!(plane.ledger().balances());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ScriptedPlane {
    addr: SocketAddr,
    /// What the plane is made of, each time anew.
    text: String,
    token: String,
    shared: Arc<Shared>,
    life: Mutex<Life>,
}

/// What became of the calls of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// Read to their end.
    pub received: u64,
    /// Refused by the script.
    pub refused: u64,
    /// Carried out by the plane, whatever it said.
    pub served: u64,
}

/// A lease that was granted, as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The lease's id.
    pub lease: String,
    /// The site it was asked for.
    pub site: String,
    /// The identity's name.
    pub identity: String,
    /// The endpoint group.
    pub group: String,
    /// The proxy's name, if there is one.
    pub proxy: Option<String>,
    /// Whether the identity was chosen by the session key.
    pub is_sticky: bool,
    /// Whether the lease is a probe.
    pub is_probe: bool,
    /// Whether the answer was sent; one that was lost on purpose leaves a lease nobody knows.
    pub is_delivered: bool,
    /// Which plane it is of: 0 until the first [`ScriptedPlane::restart`].
    pub plane: usize,
}

/// What the sockets and the script share.
pub(super) struct Shared {
    state: Mutex<State>,
    heals: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    troubles: Vec<Trouble>,
    delay: Duration,
    calls: BTreeMap<Call, Calls>,
    grants: Vec<Given>,
    connections: usize,
    plane: usize,
}

/// The plane that there is, and those before it.
struct Life {
    face: Arc<Face>,
    /// The port that is listened on.
    open: Option<Serving>,
    earlier: Vec<Ledger>,
}

impl ScriptedPlane {
    /// Listens on a free port, with the plane that `identities` describes: TOML as the setting `IDENTITIES` takes it. Files it
    /// names are looked for in the current directory. Without a token in it the plane has one that may do everything.
    ///
    /// # Errors
    /// When the text is not allowed, or the system gives no port, no thread or no event queue.
    pub fn start(identities: &str) -> io::Result<Self> {
        let seed = read(identities)?;
        let token = seed.tokens.first().map_or_else(|| mint(CHANCE), |token| token.text.clone()).expose_secret().to_owned();
        let shared = Arc::new(Shared { state: Mutex::default(), heals: watch::Sender::new(0) });
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let addr = listener.local_addr()?;
        let face = face(seed, 0)?;
        let open = open(listener, Arc::clone(&shared), Arc::clone(&face))?;
        let life = Mutex::new(Life { face, open: Some(open), earlier: Vec::new() });
        Ok(Self { addr, text: identities.to_owned(), token, shared, life })
    }

    /// The base URL, for `SPINNERET_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The first token, for `SPINNERET_TOKEN`.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Lets something go wrong from now on. Of several troubles for a call the one that came first and is due happens.
    pub fn trouble(&self, calls: &[Call], when: When, what: Mishap) {
        self.shared.lock().troubles.push(Trouble { calls: calls.to_vec(), when, what, share: 0.0 });
    }

    /// Answers this share of the acquires `overloaded`, to come again in 150 ms.
    pub fn overload(&self, share: f64) {
        self.trouble(&Call::ACQUIRES, When::Share(share), Mishap::Refuse(Refused::overloaded()));
    }

    /// Refuses the next acquires with this.
    pub fn refuse_acquires(&self, next: u32, with: Refused) {
        self.trouble(&Call::ACQUIRES, When::Next(next), Mishap::Refuse(with));
    }

    /// Takes no token any more: every call is answered 401.
    pub fn reject_tokens(&self) {
        self.trouble(&Call::ALL, When::Always, Mishap::Refuse(Refused::token_invalid()));
    }

    /// Refuses every renewal with this.
    pub fn fail_renewals(&self, with: Refused) {
        self.trouble(&[Call::Renew], When::Always, Mishap::Refuse(with));
    }

    /// Answers none of these calls until it is healed.
    pub fn hang(&self, calls: &[Call]) {
        self.trouble(calls, When::Always, Mishap::Hang);
    }

    /// Carries out the next of these calls and ends their connections before the answer.
    pub fn lose_answers(&self, calls: &[Call], next: u32) {
        self.trouble(calls, When::Next(next), Mishap::LoseAnswer);
    }

    /// Ends all troubles; calls that hang are carried out. The wire stays as slow as it is, and who is away stays away.
    pub fn heal(&self) {
        let mut state = self.shared.lock();
        state.troubles.clear();
        self.shared.heals.send_modify(|heals| *heals += 1);
    }

    /// The time each call takes to get here and its answer to get back; 5 ms each make a wire of 10 ms there and back.
    pub fn set_delay(&self, each_way: Duration) {
        self.shared.lock().delay = each_way;
    }

    /// Cuts all connections and refuses new ones, until it comes back. Leases and all else stay as they are.
    pub fn go_away(&self) {
        let open = self.life().open.take();
        drop(open);
    }

    /// Listens again, with the plane as it was.
    ///
    /// # Errors
    /// When somebody else has taken the port meanwhile, or as [`start`](Self::start).
    pub fn come_back(&self) -> io::Result<()> {
        let mut life = self.life();
        if life.open.is_none() {
            life.open = Some(open(again(self.addr)?, Arc::clone(&self.shared), Arc::clone(&life.face))?);
        }
        Ok(())
    }

    /// Cuts all connections and begins anew at the same port: no lease, report, pause or published item of before is known.
    /// The time between is that of making the plane; [`go_away`](Self::go_away) makes it longer.
    ///
    /// # Errors
    /// As [`come_back`](Self::come_back).
    pub fn restart(&self) -> io::Result<()> {
        let mut life = self.life();
        life.open = None;
        let ledger = ledger_of(&life.face);
        life.earlier.push(ledger);
        let number = life.earlier.len();
        life.face = face(read(&self.text)?, number)?;
        self.shared.lock().plane = number;
        life.open = Some(open(again(self.addr)?, Arc::clone(&self.shared), Arc::clone(&life.face))?);
        Ok(())
    }

    /// Pauses a site.
    ///
    /// # Errors
    /// When there is no such site.
    pub fn pause(&self, site: &str, reason: &str) -> io::Result<()> {
        self.life().face.with_plane(|plane, now| plane.pause(site, reason, now)).map(drop).map_err(wrong)
    }

    /// Ends a site's pause.
    ///
    /// # Errors
    /// When there is no such site.
    pub fn resume(&self, site: &str) -> io::Result<()> {
        self.life().face.with_plane(|plane, _| plane.resume(site)).map(drop).map_err(wrong)
    }

    /// Opens a breaker by hand: for so long, or until it is closed.
    ///
    /// # Errors
    /// When there is no such endpoint group.
    pub fn open_breaker(&self, site: &str, client: &str, group: &str, time: Option<Duration>) -> io::Result<()> {
        let time = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let face = Arc::clone(&self.life().face);
        face.with_plane(|plane, now| plane.open_breaker(site, client, group, time, "scripted", now)).map_err(wrong)
    }

    /// Closes a breaker by hand.
    ///
    /// # Errors
    /// When there is no such endpoint group.
    pub fn close_breaker(&self, site: &str, client: &str, group: &str) -> io::Result<()> {
        let face = Arc::clone(&self.life().face);
        face.with_plane(|plane, now| plane.close_breaker(site, client, group, "scripted", now)).map(drop).map_err(wrong)
    }

    /// Publishes a config item in the format `json`, `yaml` or `text`; answers its version.
    ///
    /// # Errors
    /// When name, format or content are not allowed.
    pub fn publish(&self, group: &str, key: &str, format: &str, content: &str) -> io::Result<i32> {
        let format = Format::of(format).ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidInput, format!("format is {format:?}, allowed are json, yaml, text"))
        })?;
        let face = Arc::clone(&self.life().face);
        face.with_plane(|plane, now| plane.publish(ItemName { group, key }, format, content, now)).map_err(wrong)
    }

    /// The books of the plane that there is.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        ledger_of(&self.life().face)
    }

    /// The books of the planes before each restart, as they were then.
    #[must_use]
    pub fn earlier_ledgers(&self) -> Vec<Ledger> {
        self.life().earlier.clone()
    }

    /// What became of the calls of one kind, over all restarts.
    #[must_use]
    pub fn calls(&self, call: Call) -> Calls {
        self.shared.lock().calls.get(&call).copied().unwrap_or_default()
    }

    /// Every lease that was granted, in order, over all restarts.
    #[must_use]
    pub fn grants(&self) -> Vec<Given> {
        self.shared.lock().grants.clone()
    }

    /// How many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until so many calls of one kind were read; `false` if they are not within the limit.
    #[must_use]
    pub fn wait_for_calls(&self, call: Call, received: u64, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            if self.calls(call).received >= received {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ScriptedPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedPlane").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_connection(&self) {
        self.lock().connections += 1;
    }

    /// What happens to a call that was read, the time of the wire, and what tells of the next healing.
    pub(super) fn next(&self, call: Call) -> (Option<Mishap>, Duration, watch::Receiver<u64>) {
        let mut state = self.lock();
        state.calls.entry(call).or_default().received += 1;
        let mishap = state.troubles.iter_mut().find_map(|trouble| trouble.meets(call).then(|| trouble.what.clone()));
        state.troubles.retain(|trouble| !trouble.is_over());
        (mishap, state.delay, self.heals.subscribe())
    }

    pub(super) fn note_refusal(&self, call: Call) {
        self.lock().calls.entry(call).or_default().refused += 1;
    }

    pub(super) fn note_served(&self, call: Call) {
        self.lock().calls.entry(call).or_default().served += 1;
    }

    /// Notes the leases of an answer.
    pub(super) fn note_grants(&self, call: Call, request: &[u8], answer: &[u8], is_delivered: bool) {
        // A packed request does not read; the client packs large ones only, which these are not.
        let site = serde_json::from_slice::<AcquireRequest>(request).map(|request| request.site).unwrap_or_default();
        let leases = if call == Call::Acquire {
            serde_json::from_slice::<AcquireResponse>(answer).map(|one| vec![one])
        } else {
            serde_json::from_slice::<AcquireBatchResponse>(answer).map(|batch| batch.leases)
        };
        let mut state = self.lock();
        let plane = state.plane;
        state.grants.extend(leases.unwrap_or_default().into_iter().map(|answer| Given {
            lease: answer.lease.lease_id,
            site: site.clone(),
            identity: answer.lease.identity_id,
            group: answer.lease.endpoint_group,
            proxy: answer.proxy.map(|proxy| proxy.proxy_id),
            is_sticky: answer.lease.sticky,
            is_probe: answer.lease.probe,
            is_delivered,
            plane,
        }));
    }
}

fn read(text: &str) -> io::Result<Seed> {
    let read = |path: &Path| std::fs::read(path);
    let seed = seed::parse(text, Path::new("plane.toml"), Part::Whole, &read);
    let mut seed = seed.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))?;
    if seed.tokens.is_empty() {
        let token = Token {
            name: "scripted".into(),
            namespace: Arc::clone(&seed.namespace),
            scopes: Scopes::everything(),
            networks: Vec::new(),
            expires_at: None,
            rate_limit: None,
        };
        seed.tokens.push(SeedToken { text: mint(CHANCE), token, is_revoked: false });
    }
    Ok(seed)
}

/// A plane behind its face. Each one after a restart has leases of its own.
fn face(seed: Seed, number: usize) -> io::Result<Arc<Face>> {
    let options = FaceOptions::default();
    let now = now(&options.clock);
    let plane = Plane::new(seed, now, Dice::new(number as u64 + 1));
    let plane = plane.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))?;
    Ok(Arc::new(Face::new(plane, options)))
}

fn now(clock: &Clock) -> u64 {
    (clock.0)()
}

fn ledger_of(face: &Face) -> Ledger {
    face.with_plane(|plane, now| {
        plane.tick(now);
        plane.ledger().into()
    })
}

/// Serves on a thread of its own, whose end cuts every connection.
fn open(listener: std::net::TcpListener, shared: Arc<Shared>, face: Arc<Face>) -> io::Result<Serving> {
    Serving::start("scripted-plane", || async move {
        tokio::select! {
            () = wire::accept(listener, shared, Arc::clone(&face)) => {}
            () = Arc::clone(&face).keep_time() => {}
        }
    })
}

/// The port once more. It may still be busy for a moment.
fn again(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    let end = Instant::now() + PORT;
    loop {
        match std::net::TcpListener::bind(addr) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => std::thread::sleep(LOOK),
            bound => return bound,
        }
    }
}

fn wrong(refusal: Refusal) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, refusal.message.into_owned())
}

#[cfg(test)]
mod tests;
