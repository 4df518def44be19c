//! From names to addresses: those given by `HOSTS`, else those of the system, kept for a while, without private ones.
//!
//! What is checked is what is connected to: the client connects to the addresses given here and to no others, so a name
//! that means something else at its second look-up gains nothing. Literals never come here: [`Names::refuse`] is for them.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::{Host, Url};

use crate::reach::Reach;
use crate::settings::{Hosts, PrivateAddresses, Settings};
use crate::web::address::{is_localhost, is_private};

/// How long addresses are kept: the system does not tell how long they hold.
const KEPT: Duration = Duration::from_secs(60);

/// Asks the system; tests ask themselves.
type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The addresses of a name; whoever needs them first looks them up, others wait for that.
type Known = Arc<OnceCell<Arc<[IpAddr]>>>;

/// The names of one crawl; copies share what is known.
#[derive(Clone)]
pub struct Names {
    hosts: Arc<Hosts>,
    cache: Option<Cache<String, Known>>,
    timeout: Duration,
    reach: Reach,
    look_up: LookUp,
}

/// Why a name has no address for us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NameError {
    /// The system knows none.
    #[error("{0}")]
    Unknown(#[from] io::Error),
    /// It did not say in time.
    #[error("no answer within DNS_TIMEOUT ({0:?})")]
    Late(Duration),
    /// Every address is private.
    #[error("{0} is private")]
    Private(IpAddr),
}

impl Names {
    /// Names as the settings say.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            hosts: Arc::new(settings.hosts.clone()),
            cache: settings
                .dnscache_enabled
                .then(|| Cache::builder().max_capacity(settings.dnscache_size).time_to_live(KEPT).build()),
            timeout: settings.dns_timeout,
            reach: Reach::of(settings.allow_private_addresses),
            look_up: Arc::new(|name| Box::pin(by_system(name))),
        }
    }

    /// Names as the system has them, private addresses among them.
    #[must_use]
    pub fn of_system() -> Self {
        Self::from_settings(&Settings { allow_private_addresses: PrivateAddresses::Allow, ..Settings::default() })
    }

    /// These, with private addresses as far as `reach` goes.
    #[must_use]
    pub(crate) fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// The names of proxies: what the operator chose is neither replaced nor refused.
    pub(crate) fn of_proxies(&self) -> Self {
        Self { hosts: Arc::default(), reach: Reach::of(PrivateAddresses::Allow), ..self.clone() }
    }

    /// Whether a URL names by itself an address that may not be asked. A proxy finds the addresses of names, so that nothing
    /// else of them is known before a request goes through one.
    pub(crate) fn refuse(&self, url: &Url, is_proxied: bool) -> bool {
        let by_hand = |host: Host<&str>| matches!(host, Host::Domain(name) if !is_proxied && self.hosts.get(name).is_some());
        self.reach.refuses(url) && !url.host().is_some_and(by_hand)
    }

    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, NameError> {
        if let Some(address) = self.hosts.get(name) {
            return Ok(vec![address]);
        }
        let found = timeout(self.timeout, self.known(name)).await.map_err(|_| NameError::Late(self.timeout))??;
        let is_open = self.reach.is_open();
        let allowed = |ip: &&IpAddr| is_open || !(is_private(**ip) || is_localhost(name));
        let addresses: Vec<_> = found.iter().filter(allowed).map(|ip| SocketAddr::new(*ip, 0)).collect();
        match found.first() {
            Some(first) if addresses.is_empty() => Err(NameError::Private(*first)),
            _ => Ok(addresses),
        }
    }

    async fn known(&self, name: &str) -> io::Result<Arc<[IpAddr]>> {
        let look_up = async || (self.look_up)(name.to_owned()).await.map(Arc::from);
        match &self.cache {
            Some(cache) => {
                let known = cache.get(name).unwrap_or_else(|| cache.get_with(name.to_owned(), Arc::default));
                known.get_or_try_init(look_up).await.cloned()
            }
            None => look_up().await,
        }
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let addresses = names.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("hosts", &self.hosts).field("reach", &self.reach).finish_non_exhaustive()
    }
}

async fn by_system(name: String) -> io::Result<Vec<IpAddr>> {
    let found: Vec<IpAddr> = tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect();
    if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Names whose system answers with these addresses in turn, the last for ever, each after a second.
    fn names(settings: &Settings, answers: &[&[&str]]) -> (Names, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let answers: Vec<Vec<IpAddr>> = answers.iter().map(|a| a.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        let (answers, count) = (Mutex::new(answers), asked.clone());
        let look_up: LookUp = Arc::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let mut answers = answers.lock().unwrap();
            let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if answer.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(answer) }
            })
        });
        (Names { look_up, ..Names::from_settings(settings) }, asked)
    }

    async fn of(names: &Names, name: &str) -> Result<Vec<String>, String> {
        let addresses = names.addresses(name).await.map_err(|error| error.to_string())?;
        Ok(addresses.iter().map(ToString::to_string).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_come_first_may_be_private_and_keep_their_port() {
        let hosts: Hosts = [("a.test", "127.0.0.1:8080".parse().unwrap())].into_iter().collect();
        let (names, asked) = names(&Settings { hosts, ..Settings::default() }, &[&["8.8.8.8"]]);
        assert_eq!(of(&names, "a.test").await.unwrap(), ["127.0.0.1:8080"]);
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        assert_eq!(of(&names, "b.test").await.unwrap(), ["8.8.8.8:0"]);
        assert_eq!(of(&names.of_proxies(), "a.test").await.unwrap(), ["8.8.8.8:0"]);
    }

    #[tokio::test(start_paused = true)]
    async fn private_addresses_are_left_out_and_a_name_with_no_other_is_refused() {
        let (names, _) = names(&Settings::default(), &[&["10.0.0.1", "8.8.8.8", "::1"], &["169.254.169.254"]]);
        assert_eq!(of(&names, "a.test").await.unwrap(), ["8.8.8.8:0"]);
        assert_eq!(of(&names, "b.test").await.unwrap_err(), "169.254.169.254 is private");
        assert_eq!(of(&names.of_proxies(), "b.test").await.unwrap(), ["169.254.169.254:0"]);
        assert_eq!(of(&names, "c.localhost").await.unwrap_err(), "169.254.169.254 is private");
        assert!(names.reach.wanted(&Url::parse("http://[::1]/").unwrap()));
        assert_eq!(of(&names, "b.test").await.unwrap(), ["169.254.169.254:0"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_turns_private_at_its_next_look_up_is_refused() {
        let (names, asked) = names(&Settings::default(), &[&["8.8.8.8"], &["127.0.0.1"]]);
        assert_eq!(of(&names, "a.test").await.unwrap(), ["8.8.8.8:0"]);
        assert_eq!(of(&names, "a.test").await.unwrap(), ["8.8.8.8:0"]);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        // What the cache calls old it tells by the real clock: a new one stands for it.
        names.cache.as_ref().unwrap().invalidate_all();
        assert_eq!(of(&names, "a.test").await.unwrap_err(), "127.0.0.1 is private");
    }

    #[tokio::test(start_paused = true)]
    async fn many_that_ask_for_one_name_cost_one_look_up_and_a_failure_is_not_kept() {
        let (names, asked) = names(&Settings::default(), &[&[], &["8.8.8.8"]]);
        let (a, b) = tokio::join!(of(&names, "a.test"), of(&names, "a.test"));
        assert!(a.is_err() && b.unwrap() == ["8.8.8.8:0"], "the one that waited asks again");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        let (a, b) = tokio::join!(of(&names, "b.test"), of(&names, "b.test"));
        assert!(a.is_ok() && b.is_ok());
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_cache_every_connection_asks_and_none_waits_for_ever() {
        let settings = Settings { dnscache_enabled: false, dns_timeout: Duration::from_millis(1500), ..Settings::default() };
        let (names, asked) = names(&settings, &[&["8.8.8.8"]]);
        for _ in 0..2 {
            of(&names, "a.test").await.unwrap();
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        let hasty = Names { timeout: Duration::from_millis(500), ..names };
        assert_eq!(of(&hasty, "a.test").await.unwrap_err(), "no answer within DNS_TIMEOUT (500ms)");
    }

    #[tokio::test]
    async fn the_system_knows_literals_and_localhost() {
        let names = Names::of_system();
        assert!(of(&names, "localhost").await.unwrap().iter().any(|a| a == "127.0.0.1:0" || a == "[::1]:0"));
        let error = Names::from_settings(&Settings::default()).addresses("localhost").await.unwrap_err();
        assert!(matches!(error, NameError::Private(_)), "{error}");
    }

    #[test]
    fn a_literal_is_refused_through_a_proxy_too_and_a_host_by_hand_is_not() {
        let hosts: Hosts = [("here.localhost", "127.0.0.1:8080".parse().unwrap())].into_iter().collect();
        let names = Names::from_settings(&Settings { hosts, ..Settings::default() });
        for (url, is_proxied, refused) in [
            ("http://127.0.0.1/", false, true),
            ("http://127.0.0.1/", true, true),
            ("http://8.8.8.8/", false, false),
            ("http://a.test/", true, false),
            ("http://localhost/", true, true),
            ("http://here.localhost/", false, false),
            ("http://here.localhost/", true, true),
        ] {
            assert_eq!(names.refuse(&Url::parse(url).unwrap(), is_proxied), refused, "{url} {is_proxied}");
        }
        assert!(!Names::of_system().refuse(&Url::parse("http://127.0.0.1/").unwrap(), false));
    }
}
