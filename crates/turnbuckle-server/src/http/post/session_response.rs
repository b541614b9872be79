//! The response of a call that outlives its connection.
//!
//! The connection runs the call until it is decided whether the response is one JSON body or a stream. A stream is written
//! to the event log by a task, from which the connection reads it. If the log is full, the response is one body, however
//! long it takes. If the connection closes before, a task continues the call.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use ::http::{Response, StatusCode};
use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, timeout_at},
};
use turnbuckle_store::{SessionOwner, SessionRecord};

use crate::{
    http::{
        body::ResponseBody,
        endpoint::InFlightPermit,
        post::call_set::{CallSet, CallSetEvent},
        responses::{self, event_stream},
        session::{ActiveSessionGuard, SessionRefresher},
        stream::{ResumableStream, StreamWriter},
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

impl SessionResponse {
    async fn run(mut self, mode_sender: oneshot::Sender<ResponseMode>) {
        let Some((first, closes_stream)) = self.run_until_streaming().await else {
            return self.send_json(mode_sender);
        };
        let writer = match StreamWriter::open(&self.active, &self.owner).await {
            Ok(writer) => writer,
            Err(error) => {
                if let Some(suppressed) =
                    self.active.endpoint.log_limiters.stream_rejected.try_pass()
                {
                    tracing::warn!(%error, suppressed, "cannot open a stream; messages before the response are dropped");
                }
                while !matches!(self.calls.next().await, CallSetEvent::Done) {}
                return self.send_json(mode_sender);
            }
        };
        let stream = ResumableStream::new(
            self.active.clone(),
            Some(writer.channel.attach()),
            writer.start,
        )
        .with_prelude(self.rules.sends_priming_event);
        let mode = ResponseMode::Stream(Box::new(stream));
        if mode_sender.send(mode).is_ok() {
            // The connection sends the stream from here on, and a task goes on with the calls.
            wait_for_task().await;
        }
        if closes_stream {
            writer.channel.close_reader();
        }
        for message in first.into_iter().chain(self.calls.take_responses()) {
            writer.send(message).await;
        }
        self.stream(&writer).await;
        writer.close().await;
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

    /// Runs the calls while the response can still be one body. Returns `None` if they finished, otherwise the first message
    /// of the stream, and whether the stream is to be closed.
    async fn run_until_streaming(&mut self) -> Option<(Option<Bytes>, bool)> {
        let deadline = Instant::now() + self.active.endpoint.options.sse_upgrade_after;
        loop {
            match timeout_at(deadline, self.calls.next()).await {
                Ok(CallSetEvent::Done) => return None,
                Ok(CallSetEvent::CallFinished) => {}
                Ok(CallSetEvent::Message(message)) => return Some((Some(message), false)),
                Ok(CallSetEvent::CloseStream) if self.rules.sends_priming_event => {
                    return Some((None, true));
                }
                Ok(CallSetEvent::CloseStream) => {}
                Err(_) => return Some((None, false)),
            }
        }
    }

    async fn stream(&mut self, writer: &StreamWriter) {
        loop {
            match self.calls.next().await {
                CallSetEvent::Done => return,
                CallSetEvent::Message(message) => writer.send(message).await,
                CallSetEvent::CloseStream if self.rules.sends_priming_event => {
                    writer.channel.close_reader();
                }
                CallSetEvent::CloseStream => {}
                CallSetEvent::CallFinished => {
                    self.active.session.runtime.note_first_response();
                    for message in self.calls.take_responses() {
                        writer.send(message).await;
                    }
                }
            }
        }
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
