//! Where everything arrives that is not the answer that somebody waits for.
//!
//! Progress goes to its call, log messages and changes to whoever listens, and what the server asks is answered. Knows
//! no transport: what it sends goes through the connection it belongs to.

mod asked;
mod told;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{Semaphore, broadcast, watch};
use turnbuckle_protocol::types::LoggingMessageParams;
use turnbuckle_protocol::{RequestId, RpcError};

use crate::answer::RawResult;
use crate::cache::Cache;
use crate::callbacks::guard;
use crate::change::Change;
use crate::client::Inner;
use crate::error::{ConnectError, TransportError};
use crate::given_up::GivenUp;
use crate::incoming::{self, Received};
use crate::limits::Limits;
use crate::listen::Subscriptions;
use crate::oddity::Oddity;
use crate::pending_sends::PendingSends;
use crate::progress::Watchers;
use crate::tasks;
use crate::traffic::{Direction, Traffic};

pub(crate) type OnLog = Arc<dyn Fn(LoggingMessageParams) + Send + Sync>;
pub(crate) type OnOddity = Arc<dyn Fn(Oddity) + Send + Sync>;
pub(crate) type OnTraffic = Arc<dyn Fn(Traffic<'_>) + Send + Sync>;

/// How many changes a slow listener may lag behind before it misses some.
const LAG: usize = 256;

/// What all transports share.
pub(crate) struct Hub {
    pub(crate) limits: Limits,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) given_up: GivenUp,
    /// The `tasks/cancel` requests in flight for tasks whose call was dropped.
    pub(crate) task_cancellations: PendingSends,
    pub(crate) signals: broadcast::Sender<Signal>,
    /// The listen requests that are open, by their ids.
    pub(crate) subscriptions: Subscriptions,
    /// The answers that may be used again, until something changes.
    cache: Mutex<Cache>,
    listeners: Listeners,
    asked: asked::Asked,
    /// Bounds how many answers are on their way, and how many refusals.
    answering: Arc<Semaphore>,
    refusing: Arc<Semaphore>,
    client: Mutex<Weak<Inner>>,
    /// Whether the last clone of the client was dropped.
    let_go: watch::Sender<bool>,
}

/// Something that those who listen for changes need to know.
#[derive(Clone, Debug)]
pub(crate) enum Signal {
    /// Something changed.
    Change(Change),
    /// The connection was interrupted, or a new session was begun: changes may have been missed.
    Gap,
    /// The connection has ended.
    End(TransportError),
}

/// Who wants to know what.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    pub(crate) log: Option<OnLog>,
    pub(crate) oddity: Option<OnOddity>,
    pub(crate) traffic: Option<OnTraffic>,
}

impl Hub {
    pub(crate) fn new(limits: Limits, listeners: Listeners) -> Arc<Self> {
        Arc::new(Self {
            watchers: Arc::default(),
            given_up: GivenUp::default(),
            task_cancellations: PendingSends::default(),
            signals: broadcast::Sender::new(LAG),
            subscriptions: Subscriptions::default(),
            cache: Mutex::new(Cache::new(limits.kept_answers, limits.kept_bytes)),
            listeners,
            asked: asked::Asked::default(),
            answering: Arc::new(Semaphore::new(limits.asked)),
            refusing: Arc::new(Semaphore::new(limits.asked)),
            client: Mutex::default(),
            let_go: watch::Sender::new(false),
            limits,
        })
    }

    /// Says whose hub it is, again if a server had to be started again; until then, nothing that the server asks can be
    /// answered.
    pub(crate) fn belongs_to(&self, client: Weak<Inner>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// Takes bytes that hold nobody's answer, or perhaps several messages.
    pub(crate) fn receive_bytes(self: &Arc<Self>, bytes: &Bytes) {
        incoming::read(bytes, |received| self.receive(received));
    }

    /// Takes a message that is not the answer somebody waits for.
    pub(crate) fn receive(self: &Arc<Self>, received: Received) {
        match received {
            Received::Answer { id, outcome } => self.unawaited(id, &outcome),
            Received::BadAnswer { error, .. } => self.odd(Oddity::InvalidAnswer(error)),
            Received::Complaint(error) => self.odd(Oddity::Complaint(error)),
            Received::Malformed { id, error } => {
                self.odd(Oddity::Noise(error.to_string()));
                self.refuse(id, error);
            }
            Received::Notification { method, params } => self.told(&method, params.as_str()),
            Received::Request { id, method, params } => self.asked(id, method, params),
        }
    }

    /// Takes an answer that nobody waits for: odd, unless somebody did and gave up.
    pub(crate) fn unawaited(&self, id: RequestId, outcome: &Result<RawResult, RpcError>) {
        if !self.given_up.take(&id) {
            return self.odd(Oddity::AnswerForNobody(id));
        }
        // A call may have become a task before the server heard that nobody waits for it.
        if let (Ok(result), Some(client)) = (outcome, self.client()) {
            tasks::abandon(&client.into(), result.json.as_str());
        }
    }

    /// Lets everyone know who listens: changes may have been missed.
    pub(crate) fn gap(&self) {
        self.cache().clear();
        let _ = self.signals.send(Signal::Gap);
    }

    /// Begins a new session if anybody listens: without one they would hear nothing more.
    pub(crate) fn session_over(self: &Arc<Self>) {
        let (hub, client) = (Arc::clone(self), self.client());
        let Some(client) = client.filter(|_| self.signals.receiver_count() > 0) else {
            return;
        };
        tokio::spawn(async move {
            let known = client.agreed();
            if let Err(error) = client.renew(&known).await {
                tracing::debug!(%error, "no new session");
                hub.end(match error {
                    ConnectError::Authorization(failure) => TransportError::Authorization(failure),
                    _ => TransportError::SessionEnded,
                });
            }
        });
    }

    /// Returns the answers that may be used again.
    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everyone know who listens: there will be nothing more.
    pub(crate) fn end(&self, reason: TransportError) {
        let _ = self.signals.send(Signal::End(reason));
    }

    /// Ends everything that still holds the client: nobody else does.
    pub(crate) fn let_go(&self) {
        self.let_go.send_replace(true);
    }

    /// Reports what is odd.
    pub(crate) fn odd(&self, oddity: Oddity) {
        tracing::warn!(%oddity, "the server did something odd");
        if let Some(tell) = &self.listeners.oddity {
            guard::tell(|| tell(oddity));
        }
    }

    /// Shows a message that passes to whoever wants to see it.
    pub(crate) fn tap(&self, direction: Direction, message: &[u8]) {
        if let Some(tell) = &self.listeners.traffic {
            let message = &String::from_utf8_lossy(message);
            guard::tell(|| tell(Traffic { direction, message }));
        }
    }

    /// Returns whose hub it is, while that is there.
    pub(crate) fn client(&self) -> Option<Arc<Inner>> {
        let client = self.client.lock();
        client.unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}
