//! What a server asks, in the revisions in which it may.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use tokio::time::Instant;
use turnbuckle_protocol::jsonrpc::{write_error, write_result};
use turnbuckle_protocol::method;
use turnbuckle_protocol::{RequestId, RpcError};

use super::Hub;
use crate::answer::RawJson;
use crate::client::Inner;
use crate::oddity::Oddity;

/// The requests of the server's that are being answered.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: Mutex<HashMap<RequestId, AbortHandle>>,
    /// When the last of them was answered.
    answered: Mutex<Option<Instant>>,
}

impl Asked {
    /// Stops answering, because the server gave up.
    pub(super) fn abort(&self, id: &RequestId) {
        let task = self.lock().remove(id);
        if let Some(task) = task {
            *self.answered() = Some(Instant::now());
            task.abort();
        }
    }

    /// Stops answering anything.
    fn abort_all(&self) {
        for (_, task) in self.lock().drain() {
            task.abort();
        }
    }

    /// Returns until when the server had a question open.
    fn last_open(&self) -> Option<Instant> {
        match self.lock().is_empty() {
            true => *self.answered(),
            false => Some(Instant::now()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) -> MutexGuard<'_, Option<Instant>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Returns until when the server had to wait for us: now, if it still does.
    pub(crate) fn last_awaited_by_server(&self) -> Option<Instant> {
        self.asked.last_open()
    }

    /// Answers a request of the server's, in a task of its own.
    pub(super) fn asked(self: &Arc<Self>, id: RequestId, method: String, params: RawJson) {
        let Some(client) = self.client() else {
            return;
        };
        // A server of 2026-07-28 never asks by a request, and must get no answer to one.
        if !client.rules().server_asks {
            return self.odd(Oddity::UnwelcomeRequest { method });
        }
        // Kept until the answer is out: who takes no answers is not answered without end.
        let turn = Arc::clone(&self.answering).try_acquire_owned();
        let mut open = self.asked.lock();
        let Some(turn) = turn.ok().filter(|_| !open.contains_key(&id)) else {
            drop(open);
            self.odd(Oddity::UnwelcomeRequest { method });
            let error = RpcError::internal("too many requests at once, or an id that is in use");
            return self.refuse(Some(id), error);
        };
        let hub = Arc::clone(self);
        let named = id.clone();
        let task = tokio::spawn(self.while_held(async move {
            let outcome = answer(&client, &method, params.as_str()).await;
            // Noted first, so that there is no moment at which neither is known. A ping is no question.
            if method != method::PING.name {
                *hub.asked.answered() = Some(Instant::now());
            }
            hub.asked.lock().remove(&named);
            client.reply(&named, outcome).await;
            drop(turn);
        }));
        open.insert(id, task.abort_handle());
    }

    /// Answers with an error, where there is somebody to be answered.
    ///
    /// Noise has no id. It gets no answer: to a server that prints into its own stream, that would be noise too.
    pub(super) fn refuse(&self, id: Option<RequestId>, error: RpcError) {
        let client = self.client().filter(|client| client.rules().server_asks);
        let turn = Arc::clone(&self.refusing).try_acquire_owned();
        if let (Some(client), Some(id), Ok(turn)) = (client, id, turn) {
            tokio::spawn(self.while_held(async move {
                client.reply(&id, Err(error)).await;
                drop(turn);
            }));
        }
    }

    /// Stops answering what was asked so far, since whoever asked is gone.
    pub(crate) fn forget_asked(&self) {
        self.asked.abort_all();
    }

    /// Does something that holds the client, but no longer than the last clone of it does: a form that stays open, or
    /// a server that takes no answer, must not keep the connection.
    pub(crate) fn while_held<F>(&self, work: F) -> impl Future<Output = ()> + use<F>
    where
        F: Future<Output = ()>,
    {
        let mut let_go = self.let_go.subscribe();
        async move {
            tokio::select! {
                biased;
                _ = let_go.wait_for(|gone| *gone) => {}
                () = work => {}
            }
        }
    }
}

/// Finds the answer to a request of the server's: the result as JSON text, or an error.
async fn answer(client: &Arc<Inner>, method: &str, params: &str) -> Result<Vec<u8>, RpcError> {
    if method == method::PING.name {
        return Ok(b"{}".to_vec());
    }
    let revision = client.rules().revision;
    let callbacks = &client.settings.callbacks;
    let result = callbacks.answer(method, params, revision).await?;
    Ok(result.to_string().into_bytes())
}

impl Inner {
    /// Answers a request of the server's; if the connection is gone, so is whoever asked.
    async fn reply(&self, id: &RequestId, outcome: Result<Vec<u8>, RpcError>) {
        let mut message = Vec::new();
        match outcome {
            Ok(result) => write_result(&mut message, id, &result),
            Err(error) => write_error(&mut message, Some(id), &error),
        }
        if let Err(error) = self.send(message).await {
            tracing::debug!(%id, %error, "an answer did not reach the server");
        }
    }
}
