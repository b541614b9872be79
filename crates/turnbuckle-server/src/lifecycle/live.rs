//! The part of a session that lives in this process: running calls, and questions that wait for the client.
//!
//! An idle session has none.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{sync::oneshot, time::Instant};
use turnbuckle_protocol::{
    RequestId, RpcError,
    jsonrpc::{self, Malformed, Response},
    meta::TraceContext,
    types::tasks::legacy::RelatedTask,
};

use super::visits::Visits;
use crate::{context::Call, input::AskError, outbox::Outbox};

/// Running calls and open questions of one peer.
#[derive(Default)]
pub(crate) struct Live {
    /// 0 until the first question.
    next_id: AtomicI64,
    questions: Mutex<HashMap<RequestId, Question>>,
    running: Mutex<HashMap<RequestId, Arc<Call>>>,
    /// Visits that the peer was asked for.
    pub(crate) visits: Visits,
    answered: AtomicBool,
    hung_up: AtomicBool,
}

struct Question {
    answer: oneshot::Sender<Result<String, RpcError>>,
    last_heard: Instant,
}

/// How long a client may take to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Without any sign of progress.
    pub(crate) silent: Duration,
    /// In all.
    pub(crate) total: Duration,
}

/// What the `_meta` of a request to the client says beside its progress token.
#[derive(Clone, Copy)]
pub(crate) struct Tags<'a> {
    /// Where it belongs in a distributed trace.
    pub(crate) trace: Option<&'a TraceContext>,
    /// The task that asks.
    pub(crate) task: Option<&'a RelatedTask>,
}

impl Live {
    /// Sends a request to the client on the stream of the call that causes it, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        outbox: &Outbox,
        method: &'static str,
        params: &[u8],
        tags: Tags<'_>,
        patience: Patience,
    ) -> Result<String, AskError> {
        let id = RequestId::from(self.next_id());
        let (answer, mut answered) = oneshot::channel();
        let begun = Instant::now();
        lock(&self.questions).insert(
            id.clone(),
            Question {
                answer,
                last_heard: begun,
            },
        );
        let mut open = OpenQuestion {
            live: self,
            outbox,
            id,
            settled: false,
        };
        // After the question is in the table: whoever hangs up meanwhile either takes it out or is seen here.
        if self.hung_up.load(Ordering::SeqCst) {
            open.settled = true;
            return Err(AskError::Gone { method });
        }
        outbox.push(request(&open.id, method, params, tags).into());
        loop {
            let heard = lock(&self.questions)
                .get(&open.id)
                .map_or(begun, |question| question.last_heard);
            let deadline = (heard + patience.silent).min(begun + patience.total);
            tokio::select! {
                answer = &mut answered => {
                    open.settled = true;
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(AskError::Refused { method, error: Box::new(error) }),
                        Err(_) => Err(AskError::Gone { method }),
                    };
                }
                () = outbox.closed() => return Err(AskError::Gone { method }),
                () = tokio::time::sleep_until(deadline) => {
                    let heard = lock(&self.questions).get(&open.id).map_or(begun, |question| question.last_heard);
                    let now = Instant::now();
                    if now >= begun + patience.total || now >= heard + patience.silent {
                        return Err(AskError::TimedOut { method });
                    }
                }
            }
        }
    }

    /// An id that no other request to the client has, in this process or another that served the session before.
    ///
    /// A session that rests is forgotten here and begins to count anew, so it begins somewhere else each time.
    fn next_id(&self) -> i64 {
        if self.next_id.load(Ordering::Relaxed) == 0 {
            // Whoever comes second loses, and counts on from the first.
            let _ = self.next_id.compare_exchange(
                0,
                random_start(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands an answer of the client to the question it belongs to. One for nobody is dropped.
    pub(crate) fn resolve(&self, response: Response<'_>) {
        let question = lock(&self.questions).remove(&response.id);
        match question {
            Some(question) => drop(question.answer.send(response.outcome.map(str::to_owned))),
            None => tracing::debug!(id = %response.id, "an answer to nothing that was asked"),
        }
    }

    /// Says whether a message that cannot be read was meant as an answer: it says so, or it has the id of a question.
    pub(crate) fn awaits(&self, malformed: &Malformed) -> bool {
        let is_open = |id| lock(&self.questions).contains_key(id);
        malformed.is_answer() || malformed.id.as_ref().is_some_and(is_open)
    }

    /// Ends a question whose answer was no valid response.
    pub(crate) fn spoil(&self, id: &RequestId, error: RpcError) {
        if let Some(question) = lock(&self.questions).remove(id) {
            let _ = question.answer.send(Err(error));
        }
    }

    /// The client works on a question: its time starts again.
    pub(crate) fn progressed(&self, token: &RequestId) {
        if let Some(question) = lock(&self.questions).get_mut(token) {
            question.last_heard = Instant::now();
        }
    }

    /// The client will answer nothing more: open questions and later ones fail at once.
    pub(crate) fn hang_up(&self) {
        self.hung_up.store(true, Ordering::SeqCst);
        lock(&self.questions).clear();
    }

    /// Notes a running call, so that it can be cancelled; refuses an id that is in use.
    pub(crate) fn begin(self: &Arc<Self>, call: &Arc<Call>) -> Result<Running, RpcError> {
        let mut running = lock(&self.running);
        if running.contains_key(&call.id) {
            return Err(in_use(&call.id));
        }
        running.insert(call.id.clone(), call.clone());
        Ok(Running {
            live: self.clone(),
            call: call.clone(),
        })
    }

    /// Refuses an id that is in use by a running call.
    pub(crate) fn check(&self, id: &RequestId) -> Result<(), RpcError> {
        if lock(&self.running).contains_key(id) {
            Err(in_use(id))
        } else {
            Ok(())
        }
    }

    /// Cancels a running call. One that is unknown or finished is ignored.
    pub(crate) fn cancel(&self, id: &RequestId) {
        let call = lock(&self.running).get(id).cloned();
        if let Some(call) = call {
            call.outbox.cancel();
        }
    }

    /// Cancels everything that runs.
    pub(crate) fn cancel_all(&self) {
        let calls: Vec<_> = lock(&self.running).values().cloned().collect();
        calls.iter().for_each(|call| call.outbox.cancel());
    }

    /// Notes that the peer has been answered something after its handshake.
    pub(crate) fn has_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// A handshake begins or is done: the peer has not been answered anything after it.
    pub(crate) fn starts_over(&self) {
        self.answered.store(false, Ordering::Relaxed);
    }

    /// Says whether the peer has been answered something after its handshake.
    pub(crate) fn was_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Keeps a call in the table of running ones.
pub(crate) struct Running {
    live: Arc<Live>,
    call: Arc<Call>,
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.live.running).remove(&self.call.id);
    }
}

/// Takes a question back when nobody waits for its answer any more.
struct OpenQuestion<'a> {
    live: &'a Live,
    outbox: &'a Outbox,
    id: RequestId,
    settled: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        lock(&self.live.questions).remove(&self.id);
        if !self.settled {
            let mut message = Vec::new();
            let params =
                json!({ "requestId": self.id, "reason": "the answer is no longer needed" });
            if jsonrpc::write_notification(&mut message, "notifications/cancelled", &params).is_ok()
            {
                self.outbox.push(message.into());
            }
        }
    }
}

/// Writes a request; its id is also its progress token, so that a slow client can ask for more time.
fn request(id: &RequestId, method: &str, params: &[u8], tags: Tags<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + 128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","method":""#);
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(br#"","params":{"_meta":{"progressToken":"#);
    id.write(&mut out);
    if let Some(task) = tags.task {
        out.extend_from_slice(br#","io.modelcontextprotocol/related-task":"#);
        out.extend_from_slice(&serde_json::to_vec(task).unwrap_or_default());
    }
    match tags.trace.and_then(|trace| serde_json::to_vec(trace).ok()) {
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

/// A positive number with room to count on below 2^53, beyond which JavaScript rounds.
fn random_start() -> i64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    (i64::from_le_bytes(bytes) & ((1 << 52) - 1)) | 1
}

fn in_use(id: &RequestId) -> RpcError {
    RpcError::invalid_request(format!(
        "id {id} is in use by a request that is still running"
    ))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a table is locked leaves a valid table behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
