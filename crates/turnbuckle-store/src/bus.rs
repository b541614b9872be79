//! "Something changed", told to everyone who listens.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::{BoxFuture, TaskRecord};

/// Tells every listener, wherever it runs, what changed.
pub trait Bus: Send + Sync {
    /// Tells everyone who listens now; never waits for a slow listener.
    fn publish(&self, change: Change);

    /// Listens to everything published from now on.
    fn subscribe(&self) -> Subscription;
}

/// Something that clients may want to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools is another one.
    ToolsChanged,
    /// The list of prompts is another one.
    PromptsChanged,
    /// The list of resources is another one.
    ResourcesChanged,
    /// The content of a resource is another one.
    ResourceUpdated {
        /// Which resource.
        uri: Arc<str>,
    },
    /// A task has changed.
    Task {
        /// As it is now.
        task: Arc<TaskRecord>,
    },
    /// A visit to a URL that a client was asked for is over.
    ElicitationCompleted {
        /// Which visit.
        id: Arc<str>,
    },
}

/// A listener was too slow and missed this many changes; it listens on from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("missed {missed} changes")]
pub struct Lagged {
    /// How many changes it missed.
    pub missed: u64,
}

/// One listener's view of the bus.
///
/// A bus that is gone says nothing more: its subscriptions stay silent, they do not end.
pub struct Subscription {
    state: State,
}

enum State {
    /// Nothing is being waited for.
    Idle(Receiver<Change>),
    /// The receiver is inside a future that knows whom to wake, and comes back with its result.
    Waiting(BoxFuture<'static, (Result<Change, RecvError>, Receiver<Change>)>),
    /// The bus is gone.
    Closed,
}

impl Subscription {
    /// Listens with `receiver`, which a store feeds from wherever its changes come.
    pub fn new(receiver: Receiver<Change>) -> Self {
        Self {
            state: State::Idle(receiver),
        }
    }

    /// Waits for the next change. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Change, Lagged> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Returns the next change, or sees to it that `cx` is woken when there is one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Change, Lagged>> {
        loop {
            match std::mem::replace(&mut self.state, State::Closed) {
                State::Closed => return Poll::Pending,
                State::Idle(receiver) => self.state = State::Waiting(wait(receiver)),
                State::Waiting(mut waiting) => {
                    let Poll::Ready((result, receiver)) = waiting.as_mut().poll(cx) else {
                        self.state = State::Waiting(waiting);
                        return Poll::Pending;
                    };
                    self.state = State::Idle(receiver);
                    match result {
                        Ok(change) => return Poll::Ready(Ok(change)),
                        Err(RecvError::Lagged(missed)) => {
                            return Poll::Ready(Err(Lagged { missed }));
                        }
                        Err(RecvError::Closed) => self.state = State::Closed,
                    }
                }
            }
        }
    }
}

fn wait(
    mut receiver: Receiver<Change>,
) -> BoxFuture<'static, (Result<Change, RecvError>, Receiver<Change>)> {
    Box::pin(async move { (receiver.recv().await, receiver) })
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
