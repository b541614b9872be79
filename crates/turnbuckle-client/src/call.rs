//! Calls that are sent when awaited, and paginated lists.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    future::{Future, IntoFuture, poll_fn},
    hash::{BuildHasher, RandomState},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use turnbuckle_protocol::{meta::Meta, timeouts::Timeouts};

use crate::{
    client::{Client, timeout::AuthWait},
    error::CallError,
    inbound::progress::{OnProgress, Progress, ProgressStream},
};

/// A boxed future.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call that is sent when it is awaited.
///
/// Dropping it while it waits cancels it: the server is notified as its revision defines.
///
/// ```no_run
/// # async fn run(client: turnbuckle_client::Client) -> Result<(), turnbuckle_client::CallError> {
/// use serde_json::json;
///
/// let output = client
///     .call_tool("index", json!({ "path": "." }))
///     .on_progress(|progress| println!("{} of {:?}", progress.progress, progress.total))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call is sent only when it is awaited"]
pub struct Call<T> {
    client: Client,
    pub(crate) options: CallOptions,
    run: CallFn<T>,
}

type CallFn<T> = Box<dyn FnOnce(Client, CallOptions) -> Boxed<Result<T, CallError>> + Send>;

/// The options of one call.
#[derive(Clone)]
pub(crate) struct CallOptions {
    pub(crate) timeouts: Timeouts,
    /// Records the time spent on authorization, if authorization is configured.
    pub(crate) auth_wait: Option<Arc<AuthWait>>,
    pub(crate) max_round_trips: usize,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) meta: Meta,
    /// The lifetime to request for the task that this call may create.
    pub(crate) task_lifetime: Option<Duration>,
    /// Whether to bypass the response cache.
    pub(crate) bypass_cache: bool,
}

impl CallOptions {
    /// Returns the default options of a client.
    pub(crate) fn for_client(client: &Client) -> Self {
        let settings = &client.inner.settings;
        Self {
            timeouts: settings.timeouts,
            auth_wait: client.inner.transport.auth_wait(),
            max_round_trips: settings.max_round_trips,
            on_progress: None,
            meta: Meta::default(),
            task_lifetime: None,
            bypass_cache: false,
        }
    }
}

impl<T: Send + 'static> Call<T> {
    /// Creates a call that runs `run` when it is awaited.
    pub(crate) fn new<F>(
        client: &Client,
        run: impl FnOnce(Client, CallOptions) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        Self {
            client: client.clone(),
            options: CallOptions::for_client(client),
            run: Box::new(move |client, options| Box::pin(run(client, options))),
        }
    }

    /// Replaces the options with those of another call.
    pub(crate) fn with(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the idle timeout; progress restarts it.
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.options.timeouts.idle = idle;
        self.options.timeouts.total = self.options.timeouts.total.max(idle);
        self
    }

    /// Sets the timeouts of this call.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.options.timeouts = timeouts;
        self
    }

    /// Sets the maximum number of `input_required` round trips.
    pub fn max_round_trips(mut self, round_trips: usize) -> Self {
        self.options.max_round_trips = round_trips;
        self
    }

    /// Sets the `_meta` members to add to the request.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.options.meta = meta;
        self
    }

    /// Sends the request even if a cached response is fresh.
    pub fn bypass_cache(mut self) -> Self {
        self.options.bypass_cache = true;
        self
    }

    /// Calls `callback` with every progress report of the call.
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.options.on_progress = Some(Arc::new(callback));
        self
    }

    /// Returns a stream of progress reports, and the call.
    ///
    /// A slow reader misses reports. The stream ends with the call.
    pub fn with_progress(self) -> (ProgressStream, Self) {
        let (callback, stream) = ProgressStream::new();
        (stream, self.on_progress(callback))
    }
}

impl<T: Send + 'static> IntoFuture for Call<T> {
    type Output = Result<T, CallError>;
    type IntoFuture = Boxed<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        (self.run)(self.client, self.options)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// One page: its items, and the cursor of the next page.
pub(crate) type ListPage<T> = (Vec<T>, Option<String>);

/// The items of a paginated list; pages are fetched on demand.
///
/// Implements [`Stream`]; [`next`](Self::next) and [`all`](Self::all) work without the stream traits.
#[must_use = "pages are fetched only when items are requested"]
pub struct Pages<T> {
    method: &'static str,
    fetch: FetchPage<T>,
    fetching: Option<PageFuture<T>>,
    ready: VecDeque<T>,
    next: NextPage,
    seen: SeenCursors,
    entries: usize,
    max_entries: usize,
    max_pages: usize,
}

/// Fetches the page at a cursor.
type FetchPage<T> = Box<dyn Fn(Option<String>) -> PageFuture<T> + Send + Sync>;
type PageFuture<T> = Boxed<Result<ListPage<T>, CallError>>;

enum NextPage {
    Page(Option<String>),
    End,
}

/// The cursors that were received, as hashes: a cursor may be as long as a message, and there may be many.
#[derive(Default)]
pub(crate) struct SeenCursors {
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl SeenCursors {
    /// Stores a cursor; returns whether it is new.
    pub(crate) fn insert(&mut self, cursor: &str) -> bool {
        self.seen.insert(self.hasher.hash_one(cursor))
    }

    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }
}

impl<T> Pages<T> {
    pub(crate) fn new(
        method: &'static str,
        (max_entries, max_pages): (usize, usize),
        fetch: impl Fn(Option<String>) -> PageFuture<T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            method,
            fetch: Box::new(fetch),
            fetching: None,
            ready: VecDeque::new(),
            next: NextPage::Page(None),
            seen: SeenCursors::default(),
            entries: 0,
            max_entries,
            max_pages,
        }
    }

    /// Returns the next item.
    pub async fn next(&mut self) -> Option<Result<T, CallError>>
    where
        T: Unpin,
    {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns all items, or the error that ended the list.
    pub async fn all(mut self) -> Result<Vec<T>, CallError>
    where
        T: Unpin,
    {
        let mut all = Vec::new();
        while let Some(entry) = self.next().await {
            all.push(entry?);
        }
        Ok(all)
    }

    fn accept_page(&mut self, (entries, cursor): ListPage<T>) -> Result<(), CallError> {
        self.entries = self.entries.saturating_add(entries.len());
        if self.entries > self.max_entries {
            return Err(self.too_many_pages(format!("more than {} items", self.max_entries)));
        }
        self.ready = entries.into();
        self.next = NextPage::End;
        if let Some(cursor) = cursor {
            if self.seen.len() >= self.max_pages {
                return Err(self.too_many_pages(format!("more than {} pages", self.max_pages)));
            }
            if !self.seen.insert(&cursor) {
                return Err(self.too_many_pages("a cursor was repeated".to_owned()));
            }
            self.next = NextPage::Page(Some(cursor));
        }
        Ok(())
    }

    fn too_many_pages(&mut self, reason: String) -> CallError {
        self.ready.clear();
        self.next = NextPage::End;
        CallError::EndlessList {
            method: self.method,
            reason,
        }
    }
}

impl<T: Unpin> Stream for Pages<T> {
    type Item = Result<T, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if self.fetching.is_none() {
                let NextPage::Page(cursor) = std::mem::replace(&mut self.next, NextPage::End)
                else {
                    return Poll::Ready(None);
                };
                self.fetching = Some((self.fetch)(cursor));
            }
            let Some(fetching) = &mut self.fetching else {
                return Poll::Ready(None);
            };
            let page = ready!(fetching.as_mut().poll(cx));
            self.fetching = None;
            if let Err(error) = page.and_then(|page| self.accept_page(page)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
