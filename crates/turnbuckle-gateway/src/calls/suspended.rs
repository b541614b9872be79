//! Calls of modern clients that wait for input, while the call at the legacy server stays open.
//!
//! The result `input_required` carries a sealed state with the id of the suspended call. The retry delivers the
//! responses to the server and waits again. A call that is not retried in time ends.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::task::AbortHandle;
use turnbuckle_protocol::RpcError;
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::running::{CallerKey, RunningCall},
    lock,
};

/// Time in which the client has to retry.
pub(crate) const RETRY_TIMEOUT: Duration = Duration::from_secs(300);
/// Time in which the server has to end a call after its client requests have expired.
const END_TIMEOUT: Duration = Duration::from_secs(5);

const MAX_PER_CALLER: usize = 16;
const MAX_TOTAL: usize = 1_024;
/// Maximum number of retries of a call.
const MAX_ROUNDS: u32 = 32;

/// The result of an upstream call, once it has one.
pub(crate) type SharedResult = Arc<Mutex<Option<Result<String, RpcError>>>>;

/// An upstream call that may outlive the request of the client.
pub(crate) struct OpenCall {
    pub(crate) call: Arc<RunningCall>,
    pub(crate) result: SharedResult,
    _task: AbortOnDrop,
    round: u32,
}

/// Ends the task of an upstream call, which cancels it.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The id of a suspended call.
type SuspendedCallId = [u8; 16];

/// The suspended calls.
#[derive(Default)]
pub(crate) struct SuspendedCalls {
    calls: Mutex<HashMap<SuspendedCallId, OpenCall>>,
}

impl OpenCall {
    /// Starts an upstream call in a task of its own.
    pub(crate) fn start(
        call: Arc<RunningCall>,
        run: impl Future<Output = Result<String, RpcError>> + Send + 'static,
    ) -> Self {
        let result = SharedResult::default();
        let (ended, stored) = (Arc::clone(&call), Arc::clone(&result));
        let task = tokio::spawn(async move {
            let outcome = run.await;
            *lock(&stored) = Some(outcome);
            ended.changed.notify_one();
        });
        Self {
            call,
            result,
            _task: AbortOnDrop(task.abort_handle()),
            round: 0,
        }
    }

    /// Waits for the result, or for input requests.
    pub(crate) async fn next(&self) -> CallEvent {
        loop {
            if let Some(result) = lock(&self.result).take() {
                return CallEvent::Result(result);
            }
            if let Some(requests) = self.call.input_requests() {
                return CallEvent::InputRequests(requests);
            }
            self.call.changed.notified().await;
        }
    }
}

/// What an upstream call waits for, or its result.
pub(crate) enum CallEvent {
    Result(Result<String, RpcError>),
    InputRequests(String),
}

impl SuspendedCalls {
    /// Keeps a call until it is retried. Returns the state for the client.
    pub(crate) fn suspend(
        self: &Arc<Self>,
        mut open: OpenCall,
        request: &RelayedRequest,
        purpose: &str,
    ) -> Result<String, RpcError> {
        open.round += 1;
        if open.round > MAX_ROUNDS {
            return Err(RpcError::internal("the server requested input too often"));
        }
        open.call.detach();
        let mut id = SuspendedCallId::default();
        getrandom::fill(&mut id).map_err(|error| RpcError::internal(error.to_string()))?;
        {
            let mut calls = lock(&self.calls);
            let of_caller = |caller: &CallerKey| {
                calls
                    .values()
                    .filter(|open| open.call.caller == *caller)
                    .count()
            };
            if calls.len() >= MAX_TOTAL || of_caller(&open.call.caller) >= MAX_PER_CALLER {
                return Err(RpcError::internal("busy: too many calls wait for input"));
            }
            calls.insert(id, open);
        }
        self.expire_later(id);
        Ok(request.seal(&id, purpose, RETRY_TIMEOUT))
    }

    /// Takes the call that a retry continues. Every state works once.
    pub(crate) fn resume(
        &self,
        state: &str,
        request: &RelayedRequest,
        purpose: &str,
    ) -> Result<OpenCall, RpcError> {
        let id = request.open(state, purpose);
        let id = id.and_then(|id| SuspendedCallId::try_from(id).ok());
        let open = id.and_then(|id| lock(&self.calls).remove(&id));
        let gone =
            || RpcError::invalid_params("this call does not wait for input any more; call again");
        let open = open.ok_or_else(gone)?;
        open.call.attach(request);
        Ok(open)
    }

    /// Ends all suspended calls.
    pub(crate) fn clear(&self) {
        lock(&self.calls).clear();
    }

    fn expire_later(self: &Arc<Self>, id: SuspendedCallId) {
        let suspended = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_TIMEOUT).await;
            let open = suspended
                .upgrade()
                .and_then(|suspended| lock(&suspended.calls).remove(&id));
            if let Some(open) = open {
                open.call.expire_inputs();
                let _ = tokio::time::timeout(END_TIMEOUT, open.next()).await;
            }
        });
    }
}
