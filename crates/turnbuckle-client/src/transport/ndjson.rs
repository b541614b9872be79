//! Newline-delimited JSON over a pair of byte streams, for stdio, unix sockets and in-memory pipes.

mod reader;
mod writer;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
};
use turnbuckle_protocol::{
    RequestId,
    jsonrpc::write_notification,
    method,
    recording::{MessageSide, OpenEntry},
    types::CancelledParams,
};

use crate::{
    client::Client,
    error::{ConnectError, TransportError},
    inbound::{
        InboundRouter, message::RawResponse, observers::MessageDirection,
        pending_requests::PendingRequests, recorder::ConnectionRecorder,
    },
    sync::lock,
    transport::{
        OutgoingRequest,
        ndjson::{reader::NdjsonInbound, writer::NdjsonWriter},
        stdio::{Process, SpawnedProcess},
    },
};

/// A pair of byte streams that are connected to a server.
pub struct NdjsonClient {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The child process that the streams belong to.
    process: Option<Process>,
    /// Records the connection.
    recorder: Option<ConnectionRecorder>,
}

impl NdjsonClient {
    /// Creates a target from the server's output and input.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            process: None,
            recorder: None,
        }
    }

    pub(crate) fn from_process(
        child: SpawnedProcess,
        recorder: Option<ConnectionRecorder>,
    ) -> Self {
        Self {
            process: Some(child.process),
            recorder,
            ..Self::new(child.output, child.input)
        }
    }
}

impl fmt::Debug for NdjsonClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NdjsonClient").finish_non_exhaustive()
    }
}

/// Connects to the server on the other side of a pair of byte streams.
pub async fn connect(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<Client, ConnectError> {
    Client::default_builder()
        .connect(NdjsonClient::new(reader, writer))
        .await
}

/// A connection that all requests share.
#[derive(Debug)]
pub(crate) struct NdjsonConnection {
    writer: Mutex<Option<Arc<NdjsonWriter>>>,
    pending: Arc<PendingRequests>,
    reader_task: JoinHandle<()>,
    /// The child process of the server.
    process: Option<Process>,
    recorder: Option<ConnectionRecorder>,
}

impl NdjsonConnection {
    /// Starts the reader and the writer.
    pub(crate) fn start(lines: NdjsonClient, router: &Arc<InboundRouter>) -> Self {
        let pending = Arc::new(PendingRequests::default());
        let (writer, failure) = NdjsonWriter::start(lines.writer);
        let (router, pending_requests) = (Arc::clone(router), Arc::clone(&pending));
        let process = lines.process.clone();
        let open = || Some(router.recorder()?.open(OpenEntry::default()));
        let recorder = lines.recorder.or_else(open);
        let closing = recorder.clone().map(|recorder| RecordedClose {
            recorder,
            process: process.clone(),
        });
        let reader_task = tokio::spawn(async move {
            let inbound = NdjsonInbound {
                router: &router,
                pending: &pending_requests,
                recorder: closing.as_ref().map(|closing| &closing.recorder),
            };
            let ended = reader::read(lines.reader, failure, &inbound).await;
            let reason = reader::with_exit_status(ended, process).await;
            drop(closing);
            pending_requests.end(reason.clone());
            router.end(reason);
        });
        Self {
            writer: Mutex::new(Some(Arc::new(writer))),
            pending,
            reader_task,
            process: lines.process,
            recorder,
        }
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn send_request(
        &self,
        outgoing: &OutgoingRequest<'_>,
        body: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<RawResponse, TransportError> {
        let writer = self.writer()?;
        let mut response = self.pending.open(outgoing.id.clone())?;
        let mut cancel = NdjsonCancelGuard {
            connection: self,
            router,
            id: Some(outgoing.id.clone()),
            cancellable: outgoing.rules.cancellable(outgoing.method.name),
        };
        trace_sent(router, self.recorder.as_ref(), &body);
        let queued = tokio::select! {
            biased;
            queued = writer.queue(body) => queued,
            // The queue may stay full, but the connection may end.
            ended = &mut response => {
                cancel.id = None;
                return ended.unwrap_or(Err(TransportError::Closed));
            }
        };
        if let Err(error) = queued {
            // The reader knows why the stream closed.
            return Err(self.pending.ended().unwrap_or(error));
        }
        let response = response.await;
        cancel.id = None;
        response.unwrap_or(Err(TransportError::Closed))
    }

    /// Sends a message without a response.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<(), TransportError> {
        trace_sent(router, self.recorder.as_ref(), &message);
        self.writer()?.write(message).await
    }

    /// Cancels the open listen requests: some servers do not exit while one is open.
    pub(crate) fn cancel_listen_requests(&self, router: &InboundRouter) {
        let Ok(writer) = self.writer() else {
            return;
        };
        for id in router.subscriptions.ids() {
            queue_cancellation(&writer, router, self.recorder.as_ref(), id);
        }
    }

    /// Fails all pending requests, and closes the stream.
    pub(crate) fn end(&self, reason: TransportError) {
        self.pending.end(reason);
        if let Some(writer) = self.close_writer() {
            writer.end();
        }
    }

    /// Closes the connection; the server is expected to close its side. A child process is awaited, and killed if
    /// necessary.
    pub(crate) async fn close(&self) {
        self.end(TransportError::ClientClosed);
        if let Some(process) = &self.process {
            process.end().await;
        }
    }

    /// Returns whether the server closed the connection after it had sent a valid message.
    pub(crate) fn is_server_gone(&self) -> bool {
        let left = self
            .pending
            .ended()
            .is_some_and(|ended| ended.is_server_gone());
        left && self.pending.has_received()
    }

    /// Returns the reason why the connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        self.writer().err()
    }

    /// Returns the child process of the server.
    pub(crate) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    fn writer(&self) -> Result<Arc<NdjsonWriter>, TransportError> {
        if let Some(ended) = self.pending.ended() {
            return Err(ended);
        }
        let writer = lock(&self.writer);
        writer.clone().ok_or(TransportError::ClientClosed)
    }

    fn close_writer(&self) -> Option<Arc<NdjsonWriter>> {
        let mut writer = lock(&self.writer);
        writer.take()
    }
}

impl Drop for NdjsonConnection {
    fn drop(&mut self) {
        self.reader_task.abort();
        if let Some(writer) = self.close_writer() {
            writer.end();
        }
        if let Some(process) = &self.process {
            process.end_in_background();
        }
    }
}

/// Records the end of a connection when it is dropped: at its end, or with the task that reads it.
struct RecordedClose {
    recorder: ConnectionRecorder,
    process: Option<Process>,
}

impl Drop for RecordedClose {
    fn drop(&mut self) {
        let process = self.process.as_ref();
        self.recorder.record_close(process.and_then(Process::exit));
    }
}

/// Notifies the server of a cancelled request when it is dropped.
struct NdjsonCancelGuard<'c> {
    connection: &'c NdjsonConnection,
    router: &'c InboundRouter,
    id: Option<RequestId>,
    cancellable: bool,
}

impl Drop for NdjsonCancelGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        if !self.connection.pending.cancel(&id) || !self.cancellable {
            return;
        }
        if let Ok(writer) = self.connection.writer() {
            let recorder = self.connection.recorder.as_ref();
            queue_cancellation(&writer, self.router, recorder, id);
        }
    }
}

/// Queues `notifications/cancelled` for a request.
fn queue_cancellation(
    writer: &Arc<NdjsonWriter>,
    router: &InboundRouter,
    recorder: Option<&ConnectionRecorder>,
    id: RequestId,
) {
    let mut message = Vec::new();
    let params = CancelledParams::new(id);
    if write_notification(&mut message, method::CANCELLED.name, &params).is_err() {
        return;
    }
    trace_sent(router, recorder, &message);
    if !writer.try_queue(message.clone()) {
        // The queue is full: wait for capacity in a task.
        let writer = Arc::clone(writer);
        tokio::spawn(async move { writer.queue(message).await });
    }
}

/// Reports a message to the observer and the recorder.
fn trace_sent(router: &InboundRouter, recorder: Option<&ConnectionRecorder>, message: &[u8]) {
    router.trace(MessageDirection::Sent, message);
    if let Some(recorder) = recorder {
        recorder.record_line(MessageSide::Client, message);
    }
}
