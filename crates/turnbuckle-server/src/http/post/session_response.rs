//! The response of a call that outlives its connection.
//!
//! The connection runs the call until it is decided whether the response is one JSON body or a stream. A stream is written
//! to the event log by a task, from which the connection reads it. If the log is full, the response is one body, however
//! long it takes. If the connection closes before, a task continues the call.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use ::http::{Response, StatusCode};
use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, timeout_at},
};
use turnbuckle_store::{EventBatch, SessionOwner, SessionRecord, StoreError};

use crate::{
    http::{
        body::ResponseBody,
        endpoint::{InFlightPermit, RequestHead},
        post::call_set::{CallSet, CallSetEvent},
        responses::{self, event_stream},
        session::{ActiveSessionGuard, SessionRefresher},
        stream::{CallStreamWriter, ResumableStream, StreamOpening, encode_finished, first_event},
    },
    lifecycle::{RevisionRules, session},
    request::FinalResponse,
};

/// The form of the response.
enum ResponseMode {
    /// One JSON body.
    Json(FinalResponse),
    /// An event stream.
    Stream(Box<ResumableStream>),
    /// No response, since the client cancelled the call.
    Cancelled,
}

/// Runs calls, in a task of their own if the connection closes, and responds in the form that they select.
pub(crate) async fn run_detached(
    calls: CallSet,
    record: &SessionRecord,
    active: ActiveSessionGuard,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    SessionRefresher::start(&active.endpoint);
    let (mode_sender, mode_receiver) = oneshot::channel();
    let session_response = SessionResponse {
        calls,
        rules: session::rules(record),
        owner: record.owner.clone(),
        active,
        _permit: permit,
    };
    let mode = mode_of(session_response.run(mode_sender), mode_receiver).await;
    match mode {
        Ok(ResponseMode::Json(final_response)) => responses::rpc_response(final_response),
        Ok(ResponseMode::Stream(stream)) => {
            event_stream(ResponseBody::from_sse(stream.into_body()))
        }
        Ok(ResponseMode::Cancelled) => event_stream(ResponseBody::empty()),
        // The runtime is shutting down.
        Err(_) => responses::status_only(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// Runs calls until they select the form of the response. A task continues them afterwards.
async fn mode_of(
    run: impl Future<Output = ()> + Send + 'static,
    mode: oneshot::Receiver<ResponseMode>,
) -> Result<ResponseMode, oneshot::error::RecvError> {
    let mut run = ContinuedRun {
        run: Some(Box::pin(run)),
        mode,
    };
    poll_fn(|cx| {
        run.poll(cx);
        Pin::new(&mut run.mode).poll(cx)
    })
    .await
}

/// Pauses until a task continues the calls. The task polls them, so nothing has to wake them.
async fn wait_for_task() {
    let mut was_polled = false;
    poll_fn(|_| {
        if std::mem::replace(&mut was_polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Calls that a task continues when this is dropped before they have finished.
struct ContinuedRun {
    run: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    mode: oneshot::Receiver<ResponseMode>,
}

impl ContinuedRun {
    fn poll(&mut self, cx: &mut Context<'_>) {
        let Some(run) = &mut self.run else {
            return;
        };
        // Handlers are caught where they run. A panic of anything else must not end the connection.
        let polled = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx)));
        if !matches!(polled, Ok(Poll::Pending)) {
            self.run = None;
        }
    }
}

impl Drop for ContinuedRun {
    fn drop(&mut self) {
        // In the task, calls that select a form later must not wait for another one.
        self.mode.close();
        if let (Some(run), Ok(runtime)) = (self.run.take(), Handle::try_current()) {
            runtime.spawn(run);
        }
    }
}

struct SessionResponse {
    calls: CallSet,
    rules: &'static RevisionRules,
    owner: SessionOwner,
    active: ActiveSessionGuard,
    _permit: InFlightPermit,
}

/// What the calls have sent and the writer has not got yet.
#[derive(Default)]
struct CallOutput {
    messages: Vec<Bytes>,
    responses: Vec<FinalResponse>,
    /// Set if the client's connection is to be closed after these.
    closes_stream: bool,
    /// Set once all calls have finished.
    is_last: bool,
}

/// Maximum number of messages and responses that are appended to the log together.
const MAX_BATCH: usize = 64;

impl CallOutput {
    fn is_full(&self) -> bool {
        self.is_last || self.messages.len() + self.responses.len() >= MAX_BATCH
    }
}

impl SessionResponse {
    async fn run(mut self, mode_sender: oneshot::Sender<ResponseMode>) {
        let Some(mut output) = self.run_until_streaming().await else {
            return self.send_json(mode_sender);
        };
        self.collect_ready(&mut output);
        let opening = StreamOpening {
            owner: self.owner.clone(),
            requests: self.calls.running_ids(),
        };
        let mut writer = CallStreamWriter::new(self.active.clone(), opening);
        let reader = writer.channel.attach();
        let mut next = CallOutput::default();
        let mut responses = std::mem::take(&mut output.responses);
        let bodies = responses.iter_mut().map(take_body);
        writer.add(
            output.messages.drain(..).chain(bodies),
            self.calls.take_answered(),
        );
        if output.is_last {
            writer.end();
        }
        if let Err(error) = self.flush(&mut writer, &mut next).await {
            log_rejected_stream(&self.active, &error);
            restore_bodies(&mut responses, writer.take_events().collect());
            responses.append(&mut next.responses);
            self.calls.restore_responses(responses);
            while !matches!(self.calls.next().await, CallSetEvent::Done) {}
            return self.send_json(mode_sender);
        }
        let stream = ResumableStream::of_new(self.active.clone(), reader, writer.start())
            .with_prelude(self.rules.sends_priming_event);
        if output.closes_stream {
            writer.channel.close_reader();
        }
        let mode = ResponseMode::Stream(Box::new(stream));
        if mode_sender.send(mode).is_ok() && !writer.is_closed() {
            // The connection sends the stream from here on, and a task goes on with the calls.
            wait_for_task().await;
        }
        self.write_stream(&mut writer, next).await;
    }

    /// Writes what the calls send until they have finished and everything is in the log.
    async fn write_stream(&mut self, writer: &mut CallStreamWriter, mut next: CallOutput) {
        while !writer.has_ended() {
            writer.channel.wait_for_room().await;
            let mut output = std::mem::take(&mut next);
            self.wait_for_output(writer, &mut output).await;
            let bodies = output.responses.iter_mut().map(take_body);
            writer.add(
                output.messages.into_iter().chain(bodies),
                self.calls.take_answered(),
            );
            if output.is_last {
                writer.end();
            }
            // The stream is open, so it is not rejected.
            let _ = self.flush(writer, &mut next).await;
            if output.closes_stream {
                writer.channel.close_reader();
            }
        }
        writer.append_later().await;
    }

    /// Waits until there is something to write, or events have to be appended again.
    async fn wait_for_output(&mut self, writer: &CallStreamWriter, output: &mut CallOutput) {
        if output.messages.is_empty() && output.responses.is_empty() && !output.is_full() {
            let event = match writer.retry_at() {
                None => self.calls.next().await,
                Some(at) => match timeout_at(at, self.calls.next()).await {
                    Ok(event) => event,
                    Err(_) => return,
                },
            };
            self.take_event(event, output);
        }
        self.collect_ready(output);
    }

    /// Appends what the writer has. If the store is slow, the calls continue, and `next` gets what they send.
    async fn flush(
        &mut self,
        writer: &mut CallStreamWriter,
        next: &mut CallOutput,
    ) -> Result<(), StoreError> {
        let mut flush = pin!(writer.flush());
        poll_fn(|cx| {
            if let Poll::Ready(flushed) = flush.as_mut().poll(cx) {
                return Poll::Ready(flushed);
            }
            while !next.is_full()
                && let Poll::Ready(event) = self.calls.poll_next(cx)
            {
                self.take_event(event, next);
            }
            Poll::Pending
        })
        .await
    }

    /// Takes everything that is ready without running a handler.
    fn collect_ready(&mut self, output: &mut CallOutput) {
        while !output.is_full()
            && let Some(event) = self.calls.next_ready()
        {
            self.take_event(event, output);
        }
    }

    fn take_event(&mut self, event: CallSetEvent, output: &mut CallOutput) {
        match event {
            CallSetEvent::Message(message) => output.messages.push(message),
            CallSetEvent::CallFinished => {
                self.active.session.runtime.note_first_response();
                output.responses.append(&mut self.calls.take_responses());
            }
            CallSetEvent::CloseStream => output.closes_stream |= self.rules.sends_priming_event,
            CallSetEvent::Done => {
                output.responses.append(&mut self.calls.take_responses());
                output.is_last = true;
            }
        }
    }

    /// Responds with one body.
    fn send_json(self, mode_sender: oneshot::Sender<ResponseMode>) {
        self.active.session.runtime.note_first_response();
        let mode = self
            .calls
            .into_response()
            .map_or(ResponseMode::Cancelled, ResponseMode::Json);
        // If the connection is lost before it received an event id, the client cannot resume, so the response is dropped.
        let _ = mode_sender.send(mode);
    }

    /// Runs the calls while the response can still be one body. Returns `None` if they finished, otherwise the first output
    /// for the stream.
    async fn run_until_streaming(&mut self) -> Option<CallOutput> {
        let deadline = Instant::now() + self.active.endpoint.options.sse_upgrade_after;
        let mut output = CallOutput::default();
        loop {
            match timeout_at(deadline, self.calls.next()).await {
                Ok(CallSetEvent::Done) => return None,
                Ok(CallSetEvent::CallFinished) => continue,
                Ok(CallSetEvent::Message(message)) => output.messages.push(message),
                Ok(CallSetEvent::CloseStream) if self.rules.sends_priming_event => {
                    output.closes_stream = true;
                }
                Ok(CallSetEvent::CloseStream) => continue,
                Err(_) => {}
            }
            output.responses.append(&mut self.calls.take_responses());
            return Some(output);
        }
    }
}

/// Responds to a call that has sent messages and has finished without waiting, with a stream that is complete.
///
/// While the store is unavailable, a task keeps the events, and the call is counted as in flight.
pub(crate) async fn respond_finished(
    messages: Vec<Bytes>,
    mut final_response: FinalResponse,
    record: &SessionRecord,
    active: ActiveSessionGuard,
    head: &RequestHead,
    mut permit: InFlightPermit,
) -> Response<ResponseBody> {
    active.session.runtime.note_first_response();
    let opening = StreamOpening {
        owner: record.owner.clone(),
        requests: Vec::new(),
    };
    let mut events = messages;
    events.insert(0, Bytes::new());
    events.push(take_body(&mut final_response));
    let start = first_event(active.endpoint.stream_ids.next());
    let batch = EventBatch {
        head: Some(opening.head(active.endpoint.instance_id())),
        first: start.sequence,
        events: &events,
        end: true,
        ..EventBatch::default()
    };
    let store = active.endpoint.server.store_ref();
    let appended = store
        .events
        .append(&active.session_id, &start.stream, batch)
        .await;
    let primes = session::rules(record).sends_priming_event;
    let encode = |events: &[Bytes]| encode_finished(start, primes, &events[1..]);
    let body = match appended {
        Ok(()) => {
            let body = encode(&events);
            head.connection.return_session(active);
            body
        }
        Err(error @ StoreError::Unavailable { .. }) => {
            let body = encode(&events);
            let mut writer = CallStreamWriter::of_finished(active, opening, start, events, &error);
            permit.count_for(head);
            tokio::spawn(async move {
                let _permit = permit;
                writer.append_later().await;
            });
            body
        }
        Err(error) => {
            log_rejected_stream(&active, &error);
            restore_bodies(std::slice::from_mut(&mut final_response), events);
            return responses::rpc_response(final_response);
        }
    };
    event_stream(ResponseBody::finished_events(body))
}

/// Logs that the log had no room for a stream.
fn log_rejected_stream(active: &ActiveSessionGuard, error: &StoreError) {
    if let Some(suppressed) = active.endpoint.log_limiters.stream_rejected.try_pass() {
        tracing::warn!(%error, suppressed, "cannot open a stream; messages before the response are dropped");
    }
}

/// Takes the body of a response, to send it as an event.
fn take_body(final_response: &mut FinalResponse) -> Bytes {
    std::mem::replace(&mut final_response.body, Vec::new().into()).into_bytes()
}

/// Puts the bodies back, which are the last of these events.
fn restore_bodies(responses: &mut [FinalResponse], mut events: Vec<Bytes>) {
    let bodies = events.split_off(events.len() - responses.len());
    for (final_response, body) in responses.iter_mut().zip(bodies) {
        final_response.body = Vec::from(body).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_the_calls_does_not_reach_the_connection() {
        let (sender, receiver) = oneshot::channel();
        let run = async move {
            let _sender = sender;
            tokio::task::yield_now().await;
            panic!("a store that is broken");
        };

        assert!(mode_of(run, receiver).await.is_err());
    }
}
