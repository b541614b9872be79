//! The in-process part of a session: running calls and pending client requests.
//!
//! An idle session does not have one.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{sync::oneshot, time::Instant};
use turnbuckle_protocol::{
    RequestId, RpcError,
    jsonrpc::{self, MalformedMessage, Response},
    meta::TraceContext,
    types::tasks::legacy::RelatedTask,
};
use turnbuckle_store::InstanceSlot;

use crate::{
    Server,
    input::ClientRequestError,
    request::{Outbox, RequestContext},
    server::instance::ServerInstance,
    sync::lock,
};

/// Running calls and pending client requests of one peer.
#[derive(Default)]
pub(crate) struct SessionRuntime {
    /// 0 until the first request.
    next_id: AtomicI64,
    pending: Mutex<HashMap<RequestId, PendingClientRequest>>,
    running: Mutex<HashMap<RequestId, Arc<RequestContext>>>,
    /// Number of running calls.
    in_flight: AtomicUsize,
    /// URL elicitations sent to the peer.
    pub(crate) url_elicitations: PendingUrlElicitations,
    first_response_sent: AtomicBool,
    closed: AtomicBool,
    /// Set if the store is shared.
    instance: Option<Arc<ServerInstance>>,
}

struct PendingClientRequest {
    response: oneshot::Sender<Result<String, RpcError>>,
    last_activity: Instant,
}

/// Time limits for the response to a client request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientRequestTimeouts {
    /// Maximum time without progress.
    pub(crate) idle: Duration,
    /// Maximum total time.
    pub(crate) total: Duration,
}

/// Members of `_meta` in a client request, in addition to the progress token.
#[derive(Clone, Copy)]
pub(crate) struct RequestMetaTags<'a> {
    /// The trace context.
    pub(crate) trace: Option<&'a TraceContext>,
    /// The task that sends the request.
    pub(crate) task: Option<&'a RelatedTask>,
    /// Members of a relayed request, as JSON text that starts with a comma; empty if there are none.
    pub(crate) relayed: &'a str,
}

impl SessionRuntime {
    /// Creates the runtime of a session of a server.
    pub(crate) fn of_server(server: &Server) -> Self {
        Self {
            instance: server.instance().cloned(),
            ..Self::default()
        }
    }

    /// Sends a request to the client on the stream of the call, and waits for the response.
    pub(crate) async fn send_request(
        &self,
        outbox: &Outbox,
        method: &'static str,
        params: &[u8],
        meta_tags: RequestMetaTags<'_>,
        timeouts: ClientRequestTimeouts,
    ) -> Result<String, ClientRequestError> {
        let id = RequestId::from(self.next_id());
        let (response, mut receiver) = oneshot::channel();
        let started = Instant::now();
        lock(&self.pending).insert(
            id.clone(),
            PendingClientRequest {
                response,
                last_activity: started,
            },
        );
        let mut guard = PendingRequestGuard {
            runtime: self,
            outbox,
            id,
            completed: false,
        };
        // Checked after the insertion: a concurrent `close` either removes the request or is visible here.
        if self.closed.load(Ordering::SeqCst) {
            guard.completed = true;
            return Err(ClientRequestError::CallEnded { method });
        }
        outbox.push(request(&guard.id, method, params, meta_tags).into());
        loop {
            let last_activity = lock(&self.pending)
                .get(&guard.id)
                .map_or(started, |request| request.last_activity);
            let deadline = (last_activity + timeouts.idle).min(started + timeouts.total);
            tokio::select! {
                response = &mut receiver => {
                    guard.completed = true;
                    return match response {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(ClientRequestError::Rejected { method, error: Box::new(error) }),
                        Err(_) => Err(ClientRequestError::CallEnded { method }),
                    };
                }
                () = outbox.closed() => return Err(ClientRequestError::CallEnded { method }),
                () = tokio::time::sleep_until(deadline) => {
                    let last_activity = lock(&self.pending).get(&guard.id).map_or(started, |request| request.last_activity);
                    let now = Instant::now();
                    if now >= started + timeouts.total || now >= last_activity + timeouts.idle {
                        return Err(ClientRequestError::TimedOut { method });
                    }
                }
            }
        }
    }

    /// Returns an id that is unique among all requests to this client, also across processes that served the session. It
    /// names this process, so that every instance knows where its response is expected.
    ///
    /// An idle session loses its counter, so each counter starts at a random value.
    fn next_id(&self) -> i64 {
        if self.next_id.load(Ordering::Relaxed) == 0 {
            // If another thread was first, its start value is used.
            let _ = self.next_id.compare_exchange(
                0,
                random_start(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        let counter = self.next_id.fetch_add(1, Ordering::Relaxed);
        let id = self.instance.as_ref().and_then(|instance| instance.id());
        client_request_id(id.unwrap_or_default().slot, counter)
    }

    /// Returns whether a client request waits for a response with this id.
    pub(crate) fn is_pending(&self, id: &RequestId) -> bool {
        lock(&self.pending).contains_key(id)
    }

    /// Returns the other instance that has sent the client request with this id, if one may have.
    pub(crate) fn sender_elsewhere(&self, id: &RequestId) -> Option<InstanceSlot> {
        let instance = self.instance.as_ref()?;
        let slot = slot_of(id)?;
        let is_here = instance.id().is_some_and(|own| own.slot == slot);
        (!is_here && !self.is_pending(id)).then_some(slot)
    }

    /// Completes the pending request that a response belongs to. Other responses are dropped.
    pub(crate) fn complete(&self, response: Response<'_>) {
        let request = lock(&self.pending).remove(&response.id);
        match request {
            Some(request) => drop(request.response.send(response.outcome.map(str::to_owned))),
            None => {
                tracing::debug!(id = %response.id, "received a response without a matching request");
            }
        }
    }

    /// Returns whether a malformed message was meant as a response: by its shape, or by the id of a pending request.
    pub(crate) fn is_awaiting(&self, malformed: &MalformedMessage) -> bool {
        let is_open = |id: &RequestId| self.is_pending(id);
        malformed.is_response() || malformed.id.as_ref().is_some_and(is_open)
    }

    /// Fails a pending request with a malformed response.
    pub(crate) fn fail(&self, id: &RequestId, error: RpcError) {
        if let Some(request) = lock(&self.pending).remove(id) {
            let _ = request.response.send(Err(error));
        }
    }

    /// Fails the pending requests with an id of another slot.
    pub(crate) fn fail_requests_of_other_slots(&self, slot: InstanceSlot) {
        lock(&self.pending).retain(|id, _| slot_of(id) == Some(slot));
    }

    /// Resets the idle timeout of a request, because the client reported progress.
    pub(crate) fn progressed(&self, token: &RequestId) {
        if let Some(request) = lock(&self.pending).get_mut(token) {
            request.last_activity = Instant::now();
        }
    }

    /// Closes the runtime: pending and later requests fail immediately.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        lock(&self.pending).clear();
    }

    /// Registers a running call, so that it can be cancelled. Fails if the id is in use.
    pub(crate) fn register(
        self: &Arc<Self>,
        call: &Arc<RequestContext>,
    ) -> Result<InFlightGuard, RpcError> {
        let mut running = lock(&self.running);
        if running.contains_key(&call.id) {
            return Err(in_use(&call.id));
        }
        running.insert(call.id.clone(), call.clone());
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Ok(InFlightGuard {
            runtime: self.clone(),
            call: call.clone(),
        })
    }

    /// Returns the number of running calls.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Fails if the id is in use by a running call.
    pub(crate) fn check_unused(&self, id: &RequestId) -> Result<(), RpcError> {
        if lock(&self.running).contains_key(id) {
            Err(in_use(id))
        } else {
            Ok(())
        }
    }

    /// Cancels a running call. Returns whether it runs here.
    pub(crate) fn cancel(&self, id: &RequestId) -> bool {
        let call = lock(&self.running).get(id).cloned();
        if let Some(call) = &call {
            call.outbox.cancel();
        }
        call.is_some()
    }

    /// Cancels all running calls.
    pub(crate) fn cancel_all(&self) {
        let calls: Vec<_> = lock(&self.running).values().cloned().collect();
        calls.iter().for_each(|call| call.outbox.cancel());
    }

    /// Records the first response after initialization.
    pub(crate) fn note_first_response(&self) {
        self.first_response_sent.store(true, Ordering::Relaxed);
    }

    /// Resets the first-response flag, when initialization starts or completes.
    pub(crate) fn reset_first_response(&self) {
        self.first_response_sent.store(false, Ordering::Relaxed);
    }

    /// Returns whether the peer has received a response after initialization.
    pub(crate) fn had_first_response(&self) -> bool {
        self.first_response_sent.load(Ordering::Relaxed)
    }
}

/// Keeps a call registered as running until it is dropped.
pub(crate) struct InFlightGuard {
    runtime: Arc<SessionRuntime>,
    call: Arc<RequestContext>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        lock(&self.runtime.running).remove(&self.call.id);
        self.runtime.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Cancels a client request that is dropped before its response.
struct PendingRequestGuard<'a> {
    runtime: &'a SessionRuntime,
    outbox: &'a Outbox,
    id: RequestId,
    completed: bool,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        lock(&self.runtime.pending).remove(&self.id);
        if !self.completed {
            let mut message = Vec::new();
            let params =
                json!({ "requestId": self.id, "reason": "the response is no longer needed" });
            if jsonrpc::write_notification(&mut message, "notifications/cancelled", &params).is_ok()
            {
                self.outbox.push(message.into());
            }
        }
    }
}

/// Writes a request. Its id is also its progress token, so that a slow client can extend the timeout.
fn request(id: &RequestId, method: &str, params: &[u8], meta_tags: RequestMetaTags<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + 128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","method":""#);
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(br#"","params":{"_meta":{"progressToken":"#);
    id.write(&mut out);
    if let Some(task) = meta_tags.task {
        out.extend_from_slice(br#","io.modelcontextprotocol/related-task":"#);
        out.extend_from_slice(&serde_json::to_vec(task).unwrap_or_default());
    }
    out.extend_from_slice(meta_tags.relayed.as_bytes());
    match meta_tags
        .trace
        .and_then(|trace| serde_json::to_vec(trace).ok())
    {
        Some(trace) => {
            out.push(b',');
            out.extend_from_slice(trace.strip_prefix(b"{").unwrap_or(b"}"));
        }
        None => out.push(b'}'),
    }
    let rest = params.strip_prefix(b"{").unwrap_or(b"}");
    if rest != b"}" {
        out.push(b',');
    }
    out.extend_from_slice(rest);
    out.push(b'}');
    out
}

/// The bits of the counter in the id of a client request.
const COUNTER_BITS: u32 = 40;

/// Set in the id of every client request, so that few ids of clients look like one.
const CLIENT_REQUEST: i64 = 1 << COUNTER_BITS;

/// Returns the id of a client request: the slot, one set bit, and the counter.
///
/// With the twelve bits of the slot it is below 2^53, the limit of exact integers in JavaScript.
fn client_request_id(slot: InstanceSlot, counter: i64) -> i64 {
    let counter = counter & (CLIENT_REQUEST - 1);
    i64::from(slot.number()) << (COUNTER_BITS + 1) | CLIENT_REQUEST | counter
}

/// Returns the slot of the instance that has sent a client request.
fn slot_of(id: &RequestId) -> Option<InstanceSlot> {
    let id = id.as_i64().filter(|id| id & CLIENT_REQUEST != 0)?;
    let slot = u16::try_from(id >> (COUNTER_BITS + 1)).ok()?;
    InstanceSlot::new(slot)
}

/// A random positive number that leaves room to count.
fn random_start() -> i64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("random bytes are available");
    (i64::from_le_bytes(bytes) & (CLIENT_REQUEST - 1)) | 1
}

fn in_use(id: &RequestId) -> RpcError {
    RpcError::invalid_request(format!(
        "id {id} is in use by a request that is still running"
    ))
}

/// Maximum number of elicitations kept; older ones are not announced.
const MAX_PENDING: usize = 64;

/// The pending URL elicitations of one session, oldest first.
#[derive(Default)]
pub(crate) struct PendingUrlElicitations {
    open: Mutex<VecDeque<String>>,
}

impl PendingUrlElicitations {
    /// Adds an elicitation.
    pub(crate) fn begin(&self, id: &str) {
        let mut open = lock(&self.open);
        if open.len() == MAX_PENDING {
            open.pop_front();
        }
        open.push_back(id.to_owned());
    }

    /// Returns whether an elicitation is pending.
    pub(crate) fn is_pending(&self, id: &str) -> bool {
        lock(&self.open).iter().any(|pending_id| pending_id == id)
    }

    /// Removes an elicitation. Returns whether it was pending.
    pub(crate) fn end(&self, id: &str) -> bool {
        let mut open = lock(&self.open);
        let at = open.iter().position(|pending_id| pending_id == id);
        at.and_then(|at| open.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_elicitation_ends_once_and_only_if_it_is_pending() {
        let pending = PendingUrlElicitations::default();
        pending.begin("a");

        assert!(!pending.is_pending("b"));
        assert!(!pending.end("b"));
        assert!(pending.is_pending("a"));
        assert!(pending.end("a"));
        assert!(!pending.is_pending("a"));
        assert!(!pending.end("a"));
    }

    #[test]
    fn the_id_of_a_client_request_names_the_instance_that_sent_it() {
        for number in [0, 1, 77, InstanceSlot::COUNT - 1] {
            let slot = InstanceSlot::new(number).unwrap();
            for counter in [1, CLIENT_REQUEST - 1, CLIENT_REQUEST, i64::MAX] {
                let id = client_request_id(slot, counter);
                assert!(id > 0 && id < 1 << 53);
                assert_eq!(slot_of(&RequestId::from(id)), Some(slot));
            }
        }
        let ids_of_clients = ["0", "77", "-1", "\"1099511627776\"", "9223372036854775807"];
        for id in ids_of_clients {
            assert_eq!(slot_of(&RequestId::from_json(id).unwrap()), None, "{id}");
        }
    }

    #[test]
    fn the_oldest_pending_url_elicitations_are_dropped() {
        let pending = PendingUrlElicitations::default();
        for id in 0..=MAX_PENDING {
            pending.begin(&id.to_string());
        }

        assert!(!pending.end("0"));
        assert!(pending.end("1"));
        assert!(pending.end(&MAX_PENDING.to_string()));
    }
}
