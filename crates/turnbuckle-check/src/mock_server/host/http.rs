//! Serves HTTP connections of the mock server.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Limited};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

use super::{
    MockHost,
    connection::{BodyChunks, MockConnection},
    http_sse,
};
use crate::{
    engine::transcript::{HttpHead, TranscriptEntry},
    mock_server::{
        script::{BodyKind, ScriptStep, ScriptedReply},
        server::{ENDPOINT, NonRpcRequest},
    },
    redact, wire,
};

/// The maximum size of a body.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

pub(super) async fn serve(
    host: Arc<MockHost>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let service = service_fn(move |request| {
        let host = host.clone();
        async move { Ok::<_, Infallible>(response(host, request).await) }
    });
    // A client may disconnect at any time.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A received HTTP request.
pub(super) struct ReceivedHttpRequest {
    pub(super) channel: usize,
    /// The number of its entry.
    pub(super) number: usize,
    pub(super) method: String,
    /// The path and query.
    pub(super) path: String,
    pub(super) head: HttpHead,
    pub(super) body: String,
}

async fn response(host: Arc<MockHost>, request: Request<Incoming>) -> Response<ChunkedBody> {
    let Some(request) = ReceivedHttpRequest::read(&host, request).await else {
        let (_, nothing) = mpsc::channel(1);
        let mut response = Response::new(ChunkedBody(nothing));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        return response;
    };
    if host.mock.is_http_sse() {
        return http_sse::response(&host, &request).await;
    }
    let at_endpoint = request.path.split('?').next() == Some(ENDPOINT);
    match request.method.as_str() {
        "POST" if at_endpoint => post(&host, &request).await,
        method => {
            let reply = host.mock.page(&NonRpcRequest {
                method,
                path: &request.path,
                head: &request.head,
                body: &request.body,
            });
            respond(&host, &request, reply).await
        }
    }
}

async fn post(host: &Arc<MockHost>, request: &ReceivedHttpRequest) -> Response<ChunkedBody> {
    let messages = match serde_json::from_str(&request.body) {
        Ok(Value::Array(messages)) => messages,
        Ok(message) => vec![message],
        Err(_) => return respond(host, request, ScriptedReply::status(400)).await,
    };
    let replies = messages
        .iter()
        .filter_map(|message| host.receive(message, Some(&request.head)));
    let mut replies: Vec<_> = replies.collect();
    let reply = match replies.len() {
        0 => host.mock.accepted(&request.head),
        1 => replies.remove(0),
        _ => ScriptedReply::steps(replies.into_iter().flat_map(|reply| reply.steps)).streamed(),
    };
    respond(host, request, reply).await
}

/// Sends a response and starts its steps.
pub(super) async fn respond(
    host: &Arc<MockHost>,
    request: &ReceivedHttpRequest,
    reply: ScriptedReply,
) -> Response<ChunkedBody> {
    let (kind, text) = match reply.body_kind {
        BodyKind::Empty => (None, String::new()),
        BodyKind::Json => (
            Some("application/json"),
            last_message(host, &reply.steps).await,
        ),
        BodyKind::Stream => (Some("text/event-stream"), String::new()),
    };
    let mut headers = reply.headers;
    headers.extend(kind.map(|kind| ("content-type".to_owned(), kind.to_owned())));
    let (chunks, response) = start_response(host, request, reply.status, headers, &text);
    match reply.body_kind {
        BodyKind::Empty | BodyKind::Json => {
            let _ = chunks.try_send(Ok(text.into()));
        }
        BodyKind::Stream => {
            let mut connection =
                MockConnection::events(&host.transcript, request.channel, request.number, chunks);
            let running = host.clone();
            host.spawn(async move {
                connection.comment().await;
                running.run_steps(reply.steps, connection).await;
            });
        }
    }
    response
}

/// Starts a response; its body is sent through the returned sender.
pub(super) fn start_response(
    host: &MockHost,
    request: &ReceivedHttpRequest,
    status: u16,
    headers: Vec<(String, String)>,
    text: &str,
) -> (BodyChunks, Response<ChunkedBody>) {
    host.transcript.push(TranscriptEntry {
        head: Some(HttpHead {
            start_line: status.to_string(),
            headers: headers.clone(),
        }),
        response_to: Some(request.number),
        ..TranscriptEntry::sent(request.channel, text)
    });
    let (chunks, receiver) = mpsc::channel(16);
    let mut response = Response::new(ChunkedBody(receiver));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    (chunks, response)
}

/// Runs the steps before a single JSON response and returns the response.
async fn last_message(host: &MockHost, steps: &[ScriptStep]) -> String {
    let mut last = String::new();
    for step in steps {
        match step {
            ScriptStep::Send(message) => last = message.to_string(),
            ScriptStep::Wait(time) => tokio::time::sleep(*time).await,
            ScriptStep::SendAndWait(_)
            | ScriptStep::StartEventIds(_)
            | ScriptStep::Retry(_)
            | ScriptStep::Interrupt
            | ScriptStep::KeepOpen => {}
        }
    }
    host.note_activity();
    last
}

impl ReceivedHttpRequest {
    /// Reads a request; `None` over the message limit.
    async fn read(host: &MockHost, request: Request<Incoming>) -> Option<Self> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
        let truncated = body.is_err();
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let path = parts
            .uri
            .path_and_query()
            .map_or_else(|| "/".to_owned(), ToString::to_string);
        let headers = parts.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (
                name.as_str().to_owned(),
                redact_header(name.as_str(), &value),
            )
        });
        let head = HttpHead {
            start_line: format!("{} {path}", parts.method),
            headers: headers.collect(),
        };
        let channel = wire::channel();
        let recorded = if parts.uri.path() == ENDPOINT {
            body.clone()
        } else {
            redact::form(&body)
        };
        let number = host.record(TranscriptEntry {
            head: Some(head.clone()),
            truncated,
            ..TranscriptEntry::received(channel, recorded)
        })?;
        Some(Self {
            channel,
            number,
            method: parts.method.to_string(),
            path,
            head,
            body,
        })
    }
}

/// Redacts credentials for other servers; tokens of the mock server are not secret.
fn redact_header(name: &str, value: &str) -> String {
    match name {
        "authorization" if value.contains("turnbuckle-") => value.to_owned(),
        "authorization" => {
            let scheme = value.split(' ').next().unwrap_or_default();
            format!("{scheme} ***")
        }
        name => redact::header(name, value),
    }
}

/// A body that is sent in chunks and may end with an error.
pub(super) struct ChunkedBody(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let chunk = self.0.poll_recv(cx);
        chunk.map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
