//! Where a callback puts what it makes: requests and items, committed together when it ends well.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use serde::Serialize;
use tokio::time::Instant;
use url::Url;

use super::context::Context;
use super::lease::LeaseView;
use super::links::{is_nofollow, room_for_urls};
use super::request::{Request, RequestError};
use super::response::Response;
use super::robots_directives::MayFollow;
use super::spider::Spider;
use super::stats::Stats;
use crate::apcloudy::to_text_counting;
use crate::scheduler::job::{Job, RequestId};
use crate::web::key::seen_key;
use crate::web::referrer_policy::ReferrerPolicy;

/// Requests handed over by `send` in `start` at once: few enough to stay small, enough to be cheap.
const SEED_CHUNK: usize = 128;
/// A request sent by `start` waits at most this long for others to go with it.
const SEED_WAIT: Duration = Duration::from_millis(10);

/// Where a callback puts its requests and items.
///
/// Nothing of it counts before the callback returns `Ok`: an error or a panic takes everything back that was not committed
/// with [`flush`](Out::flush) or [`send`](Out::send). A request can be given more before the next line is reached:
///
/// ```
/// # use dragline::prelude::*;
/// # steps! { enum Step for Shop { Book { rank: usize } => book, Search => search } }
/// # #[derive(Deserialize)] struct Shop;
/// # impl Spider for Shop {
/// #     const NAME: &'static str = "shop"; type Step = Step; type Item = Value;
/// #     async fn start(&self, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// #     async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
/// #         self.dispatch(step, response, out).await
/// #     }
/// # }
/// # impl Shop {
/// # async fn book(&self, _: Response, _: &mut Out<Self>, _: usize) -> CallbackResult { Ok(()) }
/// async fn search(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
///     out.link(&response, "/bestsellers/1", Step::Book { rank: 1 })?.priority(10).meta("shelf", "top");
///     let mut next = Request::post(response.url().as_str(), &Step::Search)?;
///     next.form([("page", "2")]).dont_filter();
///     out.request(next)?;
///     out.item(json!({ "found": response.css("a.title").len() }));
///     Ok(())
/// }
/// # }
/// ```
pub struct Out<S: Spider> {
    pub(super) core: OutCore,
    spider: PhantomData<fn() -> S>,
}

/// An effect that was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutError {
    /// The request cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The callback holds too much that is not committed.
    #[error(
        "a callback may hold at most {limit} requests and items (CALLBACK_MAX_EFFECTS); commit them with `out.flush().await` or push with `out.send(request).await`"
    )]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A commit did not come about.
    #[error("what the callback made so far could not be committed: {0}")]
    Commit(String),
}

/// The way from a callback to the engine, for commits before its end.
pub(crate) trait Port {
    /// Begins to commit a part; the one before must be answered. It is the port's from here on.
    fn begin(&self, jobs: Vec<Job>, items: Vec<Scraped>);
    /// Resolves when the part that was begun is kept and there is room for more, at once if there is none.
    /// Dropped, it leaves the part where it is: the next call goes on with it.
    fn answered(&self) -> LocalBoxFuture<'static, Result<(), String>>;
}

/// An item as its callback gave it.
#[derive(Debug)]
pub(crate) enum Scraped {
    /// A JSON object in wire text form.
    Object(String),
    /// Not an object, or not serialisable: why.
    Broken(String),
}

/// Which requests a callback makes children of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `start`: leave out the first `skip`.
    Start { skip: u64 },
    /// `idle`: its `made`-th and later requests.
    Idle { made: u64 },
    /// A page or failure.
    Page,
}

/// The untyped part of [`Out`].
pub(crate) struct OutCore {
    pub(crate) origin: Origin,
    pub(crate) parent: Option<Arc<Job>>,
    pub(crate) context: Context,
    port: Rc<dyn Port>,
    limit: usize,
    depth_priority: i32,
    requests: Vec<Request>,
    items: Vec<Scraped>,
    next_index: u64,
    parent_url: Option<Arc<str>>,
    /// The page, to ask it what its links may tell of it.
    page: Option<Response>,
    referrer_policy: OnceCell<Option<ReferrerPolicy>>,
    /// What the page came under.
    lease: Option<LeaseView>,
    /// The first effect that was refused where no error could be returned.
    refused: Option<OutError>,
    /// How many effects are not committed, visible from outside even if the callback panics.
    held: Rc<Cell<u64>>,
    last_commit: Instant,
}

impl<S: Spider> Out<S> {
    pub(crate) fn new(core: OutCore) -> Self {
        Self { core, spider: PhantomData }
    }

    pub(crate) fn into_core(self) -> OutCore {
        self.core
    }

    /// Adds a GET request.
    ///
    /// # Errors
    /// When `url` is not absolute, or the callback holds too much (see [`Out::flush`]).
    pub fn get(&mut self, url: &str, step: S::Step) -> Result<&mut Request, OutError> {
        let request = Request::get(url, &step)?;
        self.core.push(request)
    }

    /// Adds a GET request for a link found on a page.
    ///
    /// # Errors
    /// When the two do not join, or the callback holds too much.
    pub fn link(&mut self, response: &Response, href: &str, step: S::Step) -> Result<&mut Request, OutError> {
        let url = response.join(href).map_err(|e| RequestError::Url { url: href.to_owned(), reason: e.to_string() })?;
        let request = Request::to_url(url, &step)?;
        self.core.push(request)
    }

    /// Adds any request.
    ///
    /// # Errors
    /// When the callback holds too much.
    pub fn request(&mut self, request: Request) -> Result<&mut Request, OutError> {
        self.core.push(request)
    }

    /// Follows what a CSS selector finds: the `href` (or `src`) of its elements, or its `::attr()` and
    /// `::text` values. Addresses that are not `http` or `https`, or do not parse, are left out and counted
    /// (`links/skipped`), and so is what comes when the URLs together are 32 times as long as the page and one MiB more, which
    /// only a page with an absurd `base` comes to. Answers how many requests were added.
    pub fn follow(&mut self, response: &Response, selector: &str, mut step: impl FnMut(&Url) -> S::Step) -> usize {
        let mut added = 0;
        let may = self.core.may_follow(response);
        if may == MayFollow::None {
            return 0;
        }
        let mut room = room_for_urls(response.page());
        let selection = response.css(selector);
        for (href, node) in selection.strings_of_nodes("href") {
            let url = if room == 0 { None } else { response.join(href).ok() };
            room = room.saturating_sub(url.as_ref().map_or(0, |url| url.as_str().len()));
            match url {
                Some(_) if !self.core.lets(may, may != MayFollow::All && is_nofollow(node)) => {}
                Some(url) if matches!(url.scheme(), "http" | "https") => {
                    let step = step(&url);
                    added += usize::from(self.core.follow(url, &step).is_some());
                }
                _ => self.core.context.stats().inc("links/skipped"),
            }
        }
        added
    }

    /// Adds an item. What does not serialise to a JSON object is an item error: counted (`item_error_count`),
    /// logged with the step, and nothing else is lost.
    pub fn item(&mut self, item: S::Item) {
        self.core.item(&item);
    }

    /// Adds a request and commits when enough have gathered: in `start` this suspends while the frontier has
    /// enough, in a callback while it has no room.
    ///
    /// # Errors
    /// When the job stops meanwhile.
    pub async fn send(&mut self, request: Request) -> Result<(), OutError> {
        let core = &mut self.core;
        core.requests.push(request);
        core.note_held();
        let due = match core.origin {
            Origin::Start { .. } => core.requests.len() >= SEED_CHUNK || core.last_commit.elapsed() >= SEED_WAIT,
            _ => core.requests.len() + core.items.len() >= (core.limit / 2).max(1),
        };
        if due { core.commit().await } else { Ok(()) }
    }

    /// Commits what was made so far and waits for room. What is committed stays, even if the callback fails later.
    /// A flush that is dropped, by a `timeout` or `select!` round it, loses nothing: the next one, or the end
    /// of the callback, goes on with it.
    ///
    /// # Errors
    /// When the job stops meanwhile.
    pub async fn flush(&mut self) -> Result<(), OutError> {
        self.core.commit().await
    }

    /// The job's surroundings.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.core.context
    }

    /// The job's stats.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        self.core.context.stats()
    }
}

impl OutCore {
    pub(crate) fn new(
        origin: Origin,
        parent: Option<Arc<Job>>,
        context: Context,
        port: Rc<dyn Port>,
        limit: usize,
        depth_priority: i32,
        held: Rc<Cell<u64>>,
    ) -> Self {
        let next_index = if let Origin::Idle { made } = origin { made } else { 0 };
        Self {
            origin,
            parent,
            context,
            port,
            limit,
            depth_priority,
            requests: Vec::new(),
            items: Vec::new(),
            next_index,
            parent_url: None,
            page: None,
            referrer_policy: OnceCell::new(),
            lease: None,
            refused: None,
            held,
            last_commit: Instant::now(),
        }
    }

    /// The same for a page that came under this lease: no request repeats its query.
    pub(crate) fn under(self, lease: Option<LeaseView>) -> Self {
        Self { lease, ..self }
    }

    /// The same for the callback of this page.
    pub(crate) fn of(self, page: Option<Response>) -> Self {
        Self { page, ..self }
    }

    /// What the page says that the settings do not say anyway.
    fn page_policy(&self) -> Option<ReferrerPolicy> {
        *self.referrer_policy.get_or_init(|| {
            let settings = self.context.settings();
            let page = self.page.as_ref().filter(|_| settings.referer_enabled)?;
            page.referrer_policy().filter(|policy| *policy != settings.referrer_policy)
        })
    }

    /// Takes out what is not committed: jobs with ids and seen keys, and items.
    pub(crate) fn take(&mut self) -> (Vec<Job>, Vec<Scraped>) {
        let requests = std::mem::take(&mut self.requests);
        let jobs = requests.into_iter().filter_map(|request| self.job(request)).collect();
        self.held.set(0);
        (jobs, std::mem::take(&mut self.items))
    }

    pub(crate) fn take_refused(&mut self) -> Option<OutError> {
        self.refused.take()
    }

    fn push(&mut self, request: Request) -> Result<&mut Request, OutError> {
        if self.requests.len() + self.items.len() >= self.limit {
            return Err(OutError::TooMany { limit: self.limit });
        }
        self.requests.push(request);
        self.note_held();
        self.requests.last_mut().ok_or(OutError::TooMany { limit: self.limit })
    }

    /// Adds a GET request for a link; an error is kept for the callback's end.
    pub(super) fn follow(&mut self, url: Url, step: &impl Serialize) -> Option<&mut Request> {
        let held = self.requests.len() + self.items.len();
        match Request::to_url(url, step) {
            Ok(_) if held >= self.limit => self.refuse(OutError::TooMany { limit: self.limit }),
            Ok(request) => return self.push(request).ok(),
            Err(error) => self.refuse(error.into()),
        }
        None
    }

    /// Counts addresses that are no links to follow.
    pub(super) fn count_skipped(&self, skipped: usize) {
        if skipped > 0 {
            self.context.stats().add("links/skipped", i64::try_from(skipped).unwrap_or(i64::MAX));
        }
    }

    fn item(&mut self, item: &impl Serialize) {
        if self.requests.len() + self.items.len() >= self.limit {
            self.refuse(OutError::TooMany { limit: self.limit });
            return;
        }
        let text = match to_text_counting(item) {
            Ok((text, non_finite)) => {
                if non_finite > 0 {
                    self.context.stats().add("item_nonfinite_count", i64::from(non_finite));
                }
                if text.starts_with('{') {
                    Scraped::Object(text)
                } else {
                    Scraped::Broken(format!("an item must serialise to a JSON object, this one is {}", kind_of(&text)))
                }
            }
            Err(error) => Scraped::Broken(error.to_string()),
        };
        self.items.push(text);
        self.note_held();
    }

    fn refuse(&mut self, error: OutError) {
        self.refused.get_or_insert(error);
    }

    fn note_held(&self) {
        self.held.set((self.requests.len() + self.items.len()) as u64);
    }

    /// Waits for a commit whose own wait was dropped.
    pub(crate) async fn committed(&self) -> Result<(), OutError> {
        self.port.answered().await.map_err(OutError::Commit)
    }

    async fn commit(&mut self) -> Result<(), OutError> {
        self.committed().await?;
        // From here to `begin` nothing is awaited: effects are either here or with the port.
        let (jobs, items) = self.take();
        self.last_commit = Instant::now();
        if jobs.is_empty() && items.is_empty() {
            return Ok(());
        }
        self.port.begin(jobs, items);
        let done = self.committed().await;
        self.last_commit = Instant::now();
        done
    }

    /// Gives a request its place in the job; `None` for a start request that an earlier run has.
    fn job(&mut self, mut request: Request) -> Option<Job> {
        let index = self.next_index;
        self.next_index += 1;
        let (parent, depth) = match self.origin {
            Origin::Start { skip } if index < skip => return None,
            Origin::Start { .. } => (None, 0),
            Origin::Idle { .. } => (Some(RequestId::IDLE), 0),
            Origin::Page => (self.parent.as_ref().map(|p| p.id), self.parent.as_ref().map_or(0, |p| p.depth + 1)),
        };
        if self.depth_priority != 0 {
            let depth = i32::try_from(depth).unwrap_or(i32::MAX);
            let priority = request.priority_value().saturating_sub(depth.saturating_mul(self.depth_priority));
            request.priority(priority);
        }
        if let (Some(lease), Some(page)) = (&self.lease, &self.parent) {
            let mut url = request.url().clone();
            lease.clear(&mut url, page.url());
            request.set_url(url);
        }
        if let Some(policy) = self.page_policy() {
            request.refer_by(policy);
        }
        let key = seen_key(request.method(), request.url(), request.body_bytes());
        let mut job = Job::page(RequestId::child(parent, index), key, request);
        job.parent = parent;
        job.depth = depth;
        if let Some(page) = &self.parent {
            job.parent_url = Some(self.parent_url.get_or_insert_with(|| Arc::from(page.url().as_str())).clone());
        }
        Some(job)
    }
}

impl<S: Spider> fmt::Debug for Out<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out")
            .field("requests", &self.core.requests.len())
            .field("items", &self.core.items.len())
            .finish_non_exhaustive()
    }
}

fn kind_of(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
