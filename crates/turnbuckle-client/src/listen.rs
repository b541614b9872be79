//! Listening for changes, in both eras as one stream.
//!
//! Since 2026-07-28 a request is held open for it; before, changes simply come, and single resources are subscribed to.

mod pushed;
mod requested;
mod subscriptions;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use turnbuckle_protocol::types::SubscriptionFilter;

pub(crate) use subscriptions::Subscriptions;

use crate::call::{Call, Options};
use crate::change::Change;
use crate::client::Client;
use crate::error::CallError;

/// How much a slow listener may leave unread before the server has to wait, or changes are missed.
const UNREAD: usize = 256;

/// What a listener hears.
#[derive(Debug)]
#[non_exhaustive]
pub enum Heard {
    /// From now on changes are told, of the kinds named here. What changed before is to be asked for.
    Listening(SubscriptionFilter),
    /// Something changed.
    Change(Change),
    /// Changes may have been missed; if the connection was lost, another [`Listening`](Self::Listening) follows.
    Interrupted,
    /// The server will tell nothing more.
    Ended,
}

/// A stream of changes; dropping it ends the subscription.
///
/// ```no_run
/// # async fn run(client: turnbuckle_client::Client) -> Result<(), turnbuckle_client::CallError> {
/// use turnbuckle_client::{Change, Heard};
/// use turnbuckle_protocol::types::SubscriptionFilter;
///
/// let mut changes = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
/// while let Some(heard) = changes.next().await {
///     if let Heard::Change(Change::Tools) = heard? {
///         println!("{:?}", client.tools().all().await?);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the subscription"]
pub struct Listening {
    heard: mpsc::Receiver<Result<Heard, CallError>>,
    task: JoinHandle<()>,
}

impl Client {
    /// Listens for changes; returns once the server has said that it will tell them, or nothing of the kind exists.
    ///
    /// After a lost connection it listens again by itself, and says so.
    pub fn listen(&self, filter: SubscriptionFilter) -> Call<Listening> {
        Call::new(self, async move |client: Client, options: Options| {
            let (tell, heard) = mpsc::channel(UNREAD);
            let (ready, is_ready) = tokio::sync::oneshot::channel();
            let ears = Ears {
                tell,
                ready: Some(ready),
            };
            let requested = client.inner.rules().listens;
            let task = tokio::spawn(async move {
                match requested {
                    true => requested::listen(client, filter, options, ears).await,
                    false => pushed::listen(client, filter, options, ears).await,
                }
            });
            let listening = Listening { heard, task };
            match is_ready.await {
                Ok(Ok(())) => Ok(listening),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(CallError::Disconnected {
                    method: "subscriptions/listen",
                    source: crate::TransportError::Closed,
                }),
            }
        })
    }
}

impl Listening {
    /// Returns what is heard next; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<Heard, CallError>> {
        self.heard.recv().await
    }
}

impl Stream for Listening {
    type Item = Result<Heard, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.heard.poll_recv(cx)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// Where a listener is told; at first, also whether it listens at all.
struct Ears {
    tell: mpsc::Sender<Result<Heard, CallError>>,
    ready: Option<tokio::sync::oneshot::Sender<Result<(), CallError>>>,
}

impl Ears {
    /// Says that changes are told from now on.
    async fn listening(&mut self, filter: SubscriptionFilter) {
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Ok(()));
        }
        self.hear(Heard::Listening(filter)).await;
    }

    async fn hear(&self, heard: Heard) {
        // Whoever stopped listening ends this task too.
        let _ = self.tell.send(Ok(heard)).await;
    }

    /// Says that it is over, and why.
    async fn fail(&mut self, error: CallError) {
        match self.ready.take() {
            Some(ready) => drop(ready.send(Err(error))),
            None => drop(self.tell.send(Err(error)).await),
        }
    }
}
