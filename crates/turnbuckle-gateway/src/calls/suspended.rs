//! Calls of modern clients that wait for input, while the call at the legacy server stays open.
//!
//! The result `input_required` carries a sealed state with the id of the suspended call and the number of the round trip.
//! The retry delivers the responses to the server and waits again. A call that is not retried in time ends.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::AbortHandle,
    time::Instant,
};
use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};
use turnbuckle_server::relay::RelayedRequest;

use crate::{calls::running::RunningCall, lock};

/// Time in which the client has to retry.
pub(crate) const RETRY_TIMEOUT: Duration = Duration::from_secs(300);
/// Time in which the server has to end a call after its client requests have expired.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which no retry can find the call or its result.
const STATE_LIFETIME: Duration = Duration::from_secs(2 * 300 + 5);

const MAX_PER_CALLER: usize = 16;
const MAX_TOTAL: usize = 1_024;
/// Maximum number of retries of a call.
pub(crate) const MAX_ROUND_TRIPS: u32 = 32;
/// Maximum size of all results that wait for a retry.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// The outcome of an upstream call.
pub(crate) type CallFuture = Pin<Box<dyn Future<Output = Result<String, RpcError>> + Send>>;

/// An upstream call that may outlive the request of the client.
pub(crate) struct OpenCall {
    call: Arc<RunningCall>,
    driver: CallDriver,
    round_trip: u32,
}

/// What runs an upstream call. Dropping it cancels the call.
enum CallDriver {
    /// The request of the client.
    Request(CallFuture),
    /// A task of its own, after the call was suspended.
    Task {
        outcome: SharedOutcome,
        _abort: AbortOnDrop,
    },
}

/// Client requests that the server still waits for fail when the call has ended.
impl Drop for OpenCall {
    fn drop(&mut self) {
        self.call.inputs().end();
    }
}

/// The outcome of a call that was suspended, once it has one.
type SharedOutcome = Arc<Mutex<Option<KeptOutcome>>>;

/// An outcome that waits for a retry.
struct KeptOutcome {
    outcome: Result<String, RpcError>,
    _reserved: Option<OwnedSemaphorePermit>,
}

/// Ends the task of an upstream call, which cancels it.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What an upstream call waits for, or its outcome.
pub(crate) enum CallEvent {
    Outcome(Result<String, RpcError>),
    InputRequests(String),
}

impl OpenCall {
    /// Starts an upstream call. It runs while [`next`](Self::next) is awaited, until it is suspended.
    pub(crate) fn new(call: Arc<RunningCall>, run: CallFuture) -> Self {
        Self {
            call,
            driver: CallDriver::Request(run),
            round_trip: 0,
        }
    }

    /// Waits for the outcome, or for input requests.
    pub(crate) async fn next(&mut self) -> CallEvent {
        let inputs = self.call.inputs();
        loop {
            if let CallDriver::Task { outcome, .. } = &self.driver
                && let Some(kept) = lock(outcome).take()
            {
                return CallEvent::Outcome(kept.outcome);
            }
            if let Some(requests) = inputs.requests() {
                return CallEvent::InputRequests(requests);
            }
            match &mut self.driver {
                CallDriver::Request(run) => tokio::select! {
                    biased;
                    outcome = run => return CallEvent::Outcome(outcome),
                    () = inputs.changed.notified() => {}
                },
                CallDriver::Task { .. } => inputs.changed.notified().await,
            }
            // Requests that arrived together are passed on together.
            tokio::task::yield_now().await;
        }
    }

    /// Lets the call run without a request of the client.
    fn detach(&mut self, outcome_budget: &Arc<Semaphore>) {
        let driver = std::mem::replace(
            &mut self.driver,
            CallDriver::Request(Box::pin(std::future::pending())),
        );
        self.driver = match driver {
            CallDriver::Request(run) => {
                let outcome = SharedOutcome::default();
                let task = keep_outcome(
                    run,
                    Arc::clone(&self.call),
                    Arc::clone(&outcome),
                    Arc::clone(outcome_budget),
                );
                let task = tokio::spawn(task);
                CallDriver::Task {
                    outcome,
                    _abort: AbortOnDrop(task.abort_handle()),
                }
            }
            task @ CallDriver::Task { .. } => task,
        };
        self.call.detach();
    }

    fn has_outcome(&self) -> bool {
        match &self.driver {
            CallDriver::Request(_) => false,
            CallDriver::Task { outcome, .. } => lock(outcome).is_some(),
        }
    }
}

/// Runs a suspended call, and keeps its outcome for the retry.
async fn keep_outcome(
    run: CallFuture,
    call: Arc<RunningCall>,
    stored: SharedOutcome,
    outcome_budget: Arc<Semaphore>,
) {
    let mut outcome = run.await;
    let mut reserved = None;
    if let Ok(result) = &outcome {
        let size = u32::try_from(result.len()).unwrap_or(u32::MAX);
        match outcome_budget.try_acquire_many_owned(size) {
            Ok(permit) => reserved = Some(permit),
            Err(_) => outcome = Err(RpcError::internal("busy: too many results wait")),
        }
    }
    *lock(&stored) = Some(KeptOutcome {
        outcome,
        _reserved: reserved,
    });
    call.inputs().changed.notify_one();
}

/// The id of a suspended call.
type SuspendedCallId = [u8; 16];

/// The suspended calls.
pub(crate) struct SuspendedCalls {
    /// Distinguishes the states of this instance from those of others with the same keys.
    instance: [u8; 8],
    table: Mutex<SuspendedTable>,
    outcome_budget: Arc<Semaphore>,
}

#[derive(Default)]
struct SuspendedTable {
    calls: HashMap<SuspendedCallId, SuspendedCall>,
    /// Whether a task ends calls in time.
    has_expiry_task: bool,
}

struct SuspendedCall {
    open: OpenCall,
    phase: SuspendedPhase,
    deadline: Instant,
}

/// The phase of a suspended call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SuspendedPhase {
    /// The server waits for the client.
    Waiting,
    /// The client requests have expired, and the server may end the call.
    Ending,
    /// The outcome waits for a late retry.
    Ended,
}

/// The content of a sealed state.
struct SuspendedState {
    id: SuspendedCallId,
    instance: [u8; 8],
    round_trip: u32,
}

impl SuspendedState {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.id[..], &self.instance, &self.round_trip.to_be_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (instance, rest) = rest.split_first_chunk()?;
        Some(Self {
            id: *id,
            instance: *instance,
            round_trip: u32::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

impl Default for SuspendedCalls {
    fn default() -> Self {
        let mut instance = [0; 8];
        // Without randomness no call can be suspended either.
        let _ = getrandom::fill(&mut instance);
        Self {
            instance,
            table: Mutex::default(),
            outcome_budget: Arc::new(Semaphore::new(MAX_KEPT_BYTES)),
        }
    }
}

impl SuspendedCalls {
    /// Keeps a call until it is retried. Returns the state for the client. On an error the call is cancelled.
    pub(crate) fn suspend(
        self: &Arc<Self>,
        mut open: OpenCall,
        request: &RelayedRequest,
        purpose: &str,
    ) -> Result<String, RpcError> {
        open.round_trip += 1;
        if open.round_trip > MAX_ROUND_TRIPS {
            return Err(RpcError::internal("the server requested input too often"));
        }
        let mut id = SuspendedCallId::default();
        getrandom::fill(&mut id).map_err(|error| RpcError::internal(error.to_string()))?;
        let state = SuspendedState {
            id,
            instance: self.instance,
            round_trip: open.round_trip,
        };
        let mut table = lock(&self.table);
        let caller = &open.call.caller;
        let of_caller = table
            .calls
            .values()
            .filter(|other| other.open.call.caller == *caller);
        if table.calls.len() >= MAX_TOTAL || of_caller.count() >= MAX_PER_CALLER {
            return Err(RpcError::internal("busy: too many calls wait for input"));
        }
        open.detach(&self.outcome_budget);
        let suspended = SuspendedCall {
            open,
            phase: SuspendedPhase::Waiting,
            deadline: Instant::now() + RETRY_TIMEOUT,
        };
        table.calls.insert(id, suspended);
        if !std::mem::replace(&mut table.has_expiry_task, true) {
            tokio::spawn(expire(Arc::downgrade(self)));
        }
        drop(table);
        Ok(request.seal(&state.to_bytes(), &sealing_purpose(purpose), STATE_LIFETIME))
    }

    /// Takes the call that a retry continues, and delivers the responses to it.
    ///
    /// Returns `None` if the state is not one of a suspended call for this caller and request. A retry that is rejected
    /// changes nothing.
    pub(crate) fn resume(
        &self,
        state: &str,
        responses: &str,
        request: &RelayedRequest,
        purpose: &str,
    ) -> Option<Result<OpenCall, RpcError>> {
        let state = request.open(state, &sealing_purpose(purpose))?;
        let state = SuspendedState::from_bytes(&state)?;
        Some(self.take(&state, responses, request))
    }

    fn take(
        &self,
        state: &SuspendedState,
        responses: &str,
        request: &RelayedRequest,
    ) -> Result<OpenCall, RpcError> {
        let responses = RawObject::parse(responses)
            .map_err(|_| RpcError::invalid_params("`inputResponses` is not an object"))?;
        let mut table = lock(&self.table);
        let suspended = table.calls.get(&state.id);
        let suspended = suspended.filter(|suspended| {
            state.instance == self.instance && suspended.open.round_trip == state.round_trip
        });
        suspended
            .ok_or_else(call_again_error)?
            .open
            .call
            .inputs()
            .check(&responses)?;
        let suspended = table.calls.remove(&state.id).ok_or_else(call_again_error)?;
        drop(table);
        let call = &suspended.open.call;
        call.attach(request);
        call.inputs().deliver(&responses);
        Ok(suspended.open)
    }

    /// Returns the number of suspended calls.
    pub(crate) fn len(&self) -> usize {
        lock(&self.table).calls.len()
    }

    /// Ends all suspended calls.
    pub(crate) fn clear(&self) {
        let calls = std::mem::take(&mut lock(&self.table).calls);
        drop(calls);
    }

    /// Starts the next phase of expired calls. Returns the next deadline, or `None` if no call is left.
    fn expire_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut table = lock(&self.table);
        let ended: Vec<_> = table
            .calls
            .extract_if(|_, suspended| suspended.deadline <= now && !suspended.advance(now))
            .collect();
        let next = table
            .calls
            .values()
            .map(|suspended| suspended.deadline)
            .min();
        table.has_expiry_task = next.is_some();
        drop(table);
        // Dropped without the lock, because that cancels the calls.
        drop(ended);
        next
    }
}

impl SuspendedCall {
    /// Enters the next phase. Returns `false` if there is none.
    fn advance(&mut self, now: Instant) -> bool {
        let has_outcome = self.open.has_outcome();
        match self.phase {
            SuspendedPhase::Waiting if !has_outcome => {
                self.open.call.inputs().expire();
                self.phase = SuspendedPhase::Ending;
                self.deadline = now + END_TIMEOUT;
            }
            SuspendedPhase::Ending if has_outcome => {
                self.phase = SuspendedPhase::Ended;
                self.deadline = now + RETRY_TIMEOUT;
            }
            _ => return false,
        }
        true
    }
}

/// Ends calls in time, until none is left.
async fn expire(suspended: std::sync::Weak<SuspendedCalls>) {
    loop {
        let next = suspended
            .upgrade()
            .and_then(|suspended| suspended.expire_due());
        match next {
            Some(next) => tokio::time::sleep_until(next).await,
            None => return,
        }
    }
}

/// States of suspended calls are not valid as those of modern servers, and the other way round.
fn sealing_purpose(purpose: &str) -> String {
    format!("suspended {purpose}")
}

/// Returns the error for a retry of a call that does not wait for it.
pub(crate) fn call_again_error() -> RpcError {
    RpcError::invalid_params("this call does not wait for input any more; call again")
}
