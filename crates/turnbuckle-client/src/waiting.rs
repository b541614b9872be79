//! Who waits for which answer, on a connection that all requests share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use turnbuckle_protocol::RequestId;

use crate::answer::Answer;
use crate::error::TransportError;
use crate::hub::Hub;
use crate::incoming::Received;
use crate::oddity::Oddity;

/// How a request ended: with an answer, or without.
pub(crate) type Settled = Result<Answer, TransportError>;

/// The requests that are open on one connection.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: HashMap<RequestId, oneshot::Sender<Settled>>,
    /// The server said something sensible already.
    heard: bool,
    /// Why nothing can be awaited any more.
    ended: Option<TransportError>,
}

impl Waiting {
    /// Begins to wait; an error if the connection has ended already.
    pub(crate) fn open(&self, id: RequestId) -> Result<oneshot::Receiver<Settled>, TransportError> {
        let mut state = self.lock();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let (sender, receiver) = oneshot::channel();
        state.open.insert(id, sender);
        Ok(receiver)
    }

    /// Gives an answer to whoever waits for it, and everything else to the hub.
    pub(crate) fn take(&self, received: Received, hub: &Arc<Hub>) {
        self.lock().heard = true;
        match received {
            Received::Answer { id, outcome } => {
                let http = None;
                if let Some(Ok(answer)) = self.settle(&id, Ok(Answer { http, outcome })) {
                    hub.unawaited(id, &answer.outcome);
                }
            }
            Received::BadAnswer {
                id: Some(id),
                error,
            } => {
                let reason = error.message.clone();
                let not_an_answer = Err(TransportError::NotAnAnswer { reason });
                if self.settle(&id, not_an_answer).is_some() {
                    hub.odd(Oddity::InvalidAnswer(error));
                }
            }
            other => hub.receive(other),
        }
    }

    /// Hands over what came for a request; gives it back if nobody waits for it.
    pub(crate) fn settle(&self, id: &RequestId, with: Settled) -> Option<Settled> {
        let open = self.lock().open.remove(id);
        match open {
            // Whoever gave up in this moment has said so to the server already.
            Some(sender) => {
                let _ = sender.send(with);
                None
            }
            None => Some(with),
        }
    }

    /// Stops waiting; `false` if the answer came first.
    pub(crate) fn give_up(&self, id: &RequestId) -> bool {
        self.lock().open.remove(id).is_some()
    }

    /// Tells everyone who waits, and everyone who will, that the connection has ended; the first reason stands.
    pub(crate) fn end(&self, reason: TransportError) {
        let mut state = self.lock();
        let open = std::mem::take(&mut state.open);
        let reason = state.ended.get_or_insert(reason).clone();
        drop(state);
        for sender in open.into_values() {
            let _ = sender.send(Err(reason.clone()));
        }
    }

    /// Returns why the connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        self.lock().ended.clone()
    }

    /// Says whether the server said anything sensible.
    pub(crate) fn has_heard(&self) -> bool {
        self.lock().heard
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
