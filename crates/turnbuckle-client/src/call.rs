//! A call that is about to be made.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use turnbuckle_protocol::meta::Meta;
use turnbuckle_protocol::pending::Patience;

use crate::client::Client;
use crate::error::CallError;
use crate::held::Held;
use crate::progress::{OnProgress, Progress, ProgressStream};

/// A future on the heap.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call that is made when it is awaited.
///
/// Dropping it while it waits cancels it: the server is told in the way of its revision.
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
#[must_use = "a call is made when it is awaited"]
pub struct Call<T> {
    client: Client,
    pub(crate) options: Options,
    run: Run<T>,
}

type Run<T> = Box<dyn FnOnce(Client, Options) -> Boxed<Result<T, CallError>> + Send>;

/// What can be said about one call.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) patience: Patience,
    /// How much of the total was spent on earlier rounds.
    pub(crate) spent: Duration,
    /// How long somebody got credentials for it, where that can be.
    pub(crate) held: Option<Arc<Held>>,
    pub(crate) max_rounds: usize,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) meta: Meta,
    /// How long a task should be kept that this call becomes.
    pub(crate) task_lifetime: Option<Duration>,
    /// Whether an answer that was kept will not do.
    pub(crate) fresh: bool,
}

impl Options {
    /// What holds for every call of a client.
    pub(crate) fn of(client: &Client) -> Self {
        let settings = &client.inner.settings;
        Self {
            patience: settings.patience,
            spent: Duration::ZERO,
            held: client.inner.transport.held(),
            max_rounds: settings.max_rounds,
            on_progress: None,
            meta: Meta::default(),
            task_lifetime: None,
            fresh: false,
        }
    }
}

impl<T: Send + 'static> Call<T> {
    /// Prepares a call.
    pub(crate) fn new<F>(
        client: &Client,
        run: impl FnOnce(Client, Options) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        Self {
            client: client.clone(),
            options: Options::of(client),
            run: Box::new(move |client, options| Box::pin(run(client, options))),
        }
    }

    /// Makes it with the options of another call.
    pub(crate) fn with(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Says how long silence may last; progress starts it anew.
    pub fn timeout(mut self, silence: Duration) -> Self {
        self.options.patience.silence = silence;
        self.options.patience.total = self.options.patience.total.max(silence);
        self
    }

    /// Says how long to wait for the answer.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.options.patience = patience;
        self
    }

    /// Says how often to go along when the server asks for input first.
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.options.max_rounds = rounds;
        self
    }

    /// Adds to the `_meta` of the request.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.options.meta = meta;
        self
    }

    /// Asks the server even if there is an answer that it allowed to use again.
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }

    /// Is called whenever the call has come further.
    pub fn on_progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.options.on_progress = Some(Arc::new(tell));
        self
    }

    /// Hands out progress as a stream beside the call.
    ///
    /// A reader that is slow misses some of it; the stream ends with the call.
    pub fn with_progress(self) -> (ProgressStream, Self) {
        let (tell, stream) = ProgressStream::new();
        (stream, self.on_progress(tell))
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
